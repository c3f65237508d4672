"""From chapters to pages: where a shelf is cut so that many pages fill a row of the token grid and
few are too long.

Pure: values in, values out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lc_assets.sample.page import Page
from lc_assets.sample.prose.repeats import is_new

PAGE_CHARS = 310_000
"""A page is closed at the end of the chapter in which it reaches this. English documentation has
4.0 to 4.6 characters per GPT-2 token (measured over 37 packages), so every such page has more than
65,536 tokens.
"""

MAX_PAGE_CHARS = 560_000
"""What is left of a shelf joins the last page up to here, and else stands alone: 5.9 to 6.9
characters are a word, and Gopher's rules end at 100,000 words."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """The prose of one module, README or licence: where it is, and its lines."""

    url: str
    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Judged:
    chapter: Chapter
    new: tuple[bool, ...]

    @property
    def n_chars(self) -> int:
        return sum(
            len(line) + 1 for line, new in zip(self.chapter.lines, self.new, strict=True) if new
        )


def cut_into_pages(
    chapters: Sequence[Chapter], *, one_page: bool = False, keep_repeats: bool = False
) -> list[Page]:
    """Cut chapters into pages; a page has the address of its first chapter.

    Args:
        chapters: in reading order.
        one_page: do not cut.
        keep_repeats: every line stays, also those that repeat earlier ones.
    """
    judged = _judge(chapters, keep_repeats=keep_repeats)
    groups = [judged] if one_page else _groups(judged)
    return [_page(group) for group in groups if group]


def _judge(chapters: Sequence[Chapter], *, keep_repeats: bool) -> list[_Judged]:
    verdicts = is_new(line for chapter in chapters for line in chapter.lines)
    judged = [
        _Judged(chapter, tuple(keep_repeats | next(verdicts) for _ in chapter.lines))
        for chapter in chapters
    ]
    return [chapter for chapter in judged if any(chapter.new)]


def _groups(chapters: Sequence[_Judged]) -> list[list[_Judged]]:
    groups: list[list[_Judged]] = [[]]
    n_chars = [0]
    for chapter in chapters:
        if n_chars[-1] >= PAGE_CHARS:
            groups.append([])
            n_chars.append(0)
        groups[-1].append(chapter)
        n_chars[-1] += chapter.n_chars
    if len(groups) > 1 and n_chars[-1] < PAGE_CHARS and n_chars[-2] + n_chars[-1] <= MAX_PAGE_CHARS:
        groups[-2:] = [[*groups[-2], *groups[-1]]]
    return groups


def _page(group: Sequence[_Judged]) -> Page:
    first, last = group[0].chapter, group[-1].chapter
    verdicts = (new for chapter in group for new in chapter.new)
    return Page(
        url=first.url,
        title=first.title if len(group) == 1 else f"{first.title} to {last.title}",
        lines=tuple(line for judged in group for line in judged.chapter.lines),
        kept=tuple(number for number, new in enumerate(verdicts) if new),
    )
