"""A page, its copies and its excerpts."""

from hypothesis import given, strategies as st
from msgspec.structs import replace

from lc_assets.sample.pages import Page

LINES = st.lists(st.text(alphabet="ab ", max_size=9).map(str.strip), max_size=12)


@given(LINES)
def test_content_holds_the_lines_and_the_record_the_title_too(lines: list[str]) -> None:
    page = Page(url="https://a.example/", title="Tea", lines=tuple(lines))
    assert page.content == "\n".join(lines)
    assert page.record.decode().split("\n") == ["Tea", *lines]


def test_two_pages_have_one_digest_only_when_title_and_lines_are_the_same() -> None:
    page = Page(url="https://a.example/", title="Tea", lines=("Green", "Black"))
    assert replace(page, url="https://b.example/").digest == page.digest
    assert replace(page, title="Coffee").digest != page.digest


@given(LINES, st.floats(0, 1, exclude_max=True), st.integers(1, 20))
def test_an_excerpt_is_a_passage_that_begins_in_the_first_half(
    lines: list[str], start: float, n_chars: int
) -> None:
    """It begins at a line that holds something, goes on without a gap, and ends as soon as it is
    long enough.
    """
    page = Page(url="https://a.example/", title="Tea", lines=tuple(lines))
    excerpt = page.excerpt("https://b.example/", start=start, n_chars=n_chars)
    passage = [excerpt.title, *excerpt.lines] if excerpt.title else []
    first = next(
        (number for number in range(int(start * (len(lines) // 2)), len(lines)) if lines[number]),
        len(lines),
    )
    assert passage == lines[first : first + len(passage)]
    assert bool(passage) == (first < len(lines))
    assert (
        len(passage) == len(lines) - first
        or len(excerpt.content) >= n_chars > len(excerpt.content) - len(passage[-1]) - 1
    )
    assert excerpt.url == "https://b.example/"
