"""A person's folder of texts."""

from pathlib import Path

import pytest

from lc_assets.errors import BadInput
from lc_assets.sample.pages import texts_of_folder

STORY = "\n".join(
    ["A Story", "", *[f"It was night number {number} and still it rained." for number in range(20)]]
)


def test_every_text_is_a_page_in_the_order_of_paths(books: Path) -> None:
    pages = texts_of_folder(books).pages
    assert [page.url for page in pages] == sorted(page.url for page in pages)
    assert len(pages) == 11
    for page in pages:
        text = (books / page.url.removeprefix("https://folder.invalid/")).read_text()
        assert f"{page.title}\n{page.content}" == text


def test_marks_line_ends_and_blanks_at_line_ends_go_and_nothing_else(tmp_path: Path) -> None:
    body = STORY.split("\n", 1)[1]
    windows = STORY.replace("\n", "  \r\n").encode("utf-8-sig")
    (tmp_path / "a.txt").write_bytes(b"\n \n" + STORY.encode() + b"\n\n")
    (tmp_path / "b.md").write_bytes(windows)
    pages = texts_of_folder(tmp_path).pages
    assert [(page.title, page.content) for page in pages] == [("A Story", body)] * 2
    assert pages[0].digest == pages[1].digest


def test_what_is_not_read_is_named_with_its_reason(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    (folder / "below").mkdir(parents=True)
    (folder / "good.txt").write_text(STORY)
    (folder / "below" / "latin.txt").write_bytes(STORY.encode() + b" caf\xe9")
    (folder / "short.rst").write_text("Too short")
    (folder / "cover.jpg").write_bytes(b"\xff\xd8")
    (tmp_path / "secret.txt").write_text(STORY)
    (folder / "away").symlink_to(tmp_path)
    texts = texts_of_folder(folder)
    assert list(texts.sources) == ["good.txt"]
    assert texts.skipped == {
        "not UTF-8": ["below/latin.txt"],
        "shorter than 300 characters": ["short.rst"],
    }


def test_names_that_are_no_utf8_can_be_shown_and_addressed(tmp_path: Path) -> None:
    (tmp_path / "na\udcffme#1?.txt").write_text(STORY)
    (page,) = texts_of_folder(tmp_path).pages
    assert page.url == "https://folder.invalid/na%FFme%231%3F.txt"


def test_folders_without_texts_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cover.jpg").write_bytes(b"\xff\xd8")
    with pytest.raises(BadInput, match=r"holds no file that ends in \.txt, \.md, \.rst"):
        texts_of_folder(tmp_path)
    with pytest.raises(BadInput, match="not a folder"):
        texts_of_folder(tmp_path / "cover.jpg")
