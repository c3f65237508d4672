"""What repeats, and where a shelf is cut into pages."""

from hypothesis import given
from hypothesis import strategies as st

from lc_assets.sample.prose import pages as pages_module
from lc_assets.sample.prose.pages import Chapter, cut_into_pages
from lc_assets.sample.prose.repeats import MAX_SEEN_SHARE, SEQUENCE_WORDS, is_new

LINES = st.lists(
    st.lists(st.sampled_from(["tea", "Cup", "pot", "a", "7", "8"]), min_size=1, max_size=9).map(
        " ".join
    ),
    max_size=12,
)


def slow_is_new(lines: list[str]) -> list[bool]:
    """Look through all kept lines for each sequence of each line."""
    kept: list[list[str]] = []
    verdicts = []
    for line in lines:
        words = ["0" if word.isdigit() else word.lower() for word in line.split()]
        sequences = [
            words[start : start + SEQUENCE_WORDS]
            for start in range(max(1, len(words) - SEQUENCE_WORDS + 1))
        ]
        seen = [any(sequence == old for old in kept) for sequence in sequences]
        verdicts.append(sum(seen) <= MAX_SEEN_SHARE * len(seen))
        kept += sequences if verdicts[-1] else []
    return verdicts


@given(LINES)
def test_repeats_are_found_as_by_looking_through_everything(lines: list[str]) -> None:
    assert list(is_new(lines)) == slow_is_new(lines)


def test_a_third_of_the_sequences_may_have_been_read_before() -> None:
    """Eight words are three sequences: with one of them read before a line stays, with two it
    goes.
    """
    first = "one two three four five six"
    assert list(is_new([first, f"{first} and more"])) == [True, True]
    assert list(is_new([first, "two three four five six 7", f"{first} 8 and"])) == [
        True,
        True,
        False,
    ]


def chapters(*lengths: int) -> list[Chapter]:
    """Chapters of one line each, all different."""
    return [
        Chapter(f"https://a.example/#{name}", f"c{name}", (chr(97 + name) * length,))
        for name, length in enumerate(lengths)
    ]


def lengths_of(*lengths: int) -> list[int]:
    return [len(page.lines) for page in cut_into_pages(chapters(*lengths))]


def test_a_page_ends_with_the_chapter_that_fills_it() -> None:
    full = pages_module.PAGE_CHARS
    assert lengths_of(full - 1, 10, full, full) == [
        1,
        2,
        1,
    ]  # a chapter counts one character per line more
    assert lengths_of(full // 2, full // 2, 10) == [3]


def test_a_rest_joins_the_last_page_only_while_that_is_not_too_long() -> None:
    full, most = pages_module.PAGE_CHARS, pages_module.MAX_PAGE_CHARS
    assert lengths_of(full, most - full - 2) == [2]
    assert lengths_of(full, most - full) == [1, 1]
    assert lengths_of(10) == [1]
    assert lengths_of() == []


@given(st.lists(LINES, max_size=8), st.booleans(), st.booleans())
def test_no_line_is_lost_whatever_the_cut(
    texts: list[list[str]], one_page: bool, keep_repeats: bool
) -> None:
    """Lines of all pages are the chapters' lines in order, but for chapters that say nothing new;
    kept ones are the new ones.
    """
    given_chapters = [
        Chapter(f"https://a.example/#{n}", f"c{n}", tuple(lines)) for n, lines in enumerate(texts)
    ]
    found = cut_into_pages(given_chapters, one_page=one_page, keep_repeats=keep_repeats)
    every = [line for lines in texts for line in lines]
    verdicts = [True] * len(every) if keep_repeats else slow_is_new(every)
    assert [line for page in found for line in page.content.split("\n")] == [
        line for line, new in zip(every, verdicts, strict=True) if new
    ]
    assert len(found) <= 1 or not one_page


def test_a_page_keeps_the_repeats_it_leaves_out() -> None:
    """The page still has the repeated line, so that original_nlines counts it, and says that it
    does not stay.
    """
    line = "The width of the figure in inches, as a number."
    (page,) = cut_into_pages(
        [Chapter("https://a.example/#a", "a", (line, line, "Another line that has six words."))]
    )
    assert page.kept == (0, 2)
    assert len(page.lines) == 3
