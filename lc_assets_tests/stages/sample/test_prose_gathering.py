"""What is found in a folder of installed packages, and what becomes of it."""

from pathlib import Path

import pytest

from lc_assets.errors import BadInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.sample.page import MIN_CHARS
from lc_assets.sample.prose.gather import InstalledProse, installed_prose
from lc_assets.sample.prose.packages import (
    home_page,
    installed_package,
    installed_packages,
    standard_library,
)
from lc_assets.sample.prose.shelves import SHELVES, Shelf

TEA = Shelf("tea", ("tea", "coffee"))


def gathered(site: Path, *shelves: Shelf, max_text_bytes: int = 10**6) -> InstalledProse:
    return installed_prose(
        executor=LocalExecutor(), shelves=shelves, max_text_bytes=max_text_bytes, paths=[site]
    )


def test_a_package_is_found_with_its_own_files_only(installed: Path) -> None:
    package = installed_package("Tea", paths=[installed])
    assert package is not None
    assert (package.name, package.version, package.home, package.root) == (
        "tea",
        "1.0",
        "https://tea.example",
        installed,
    )
    assert package.modules() == ["tea/broken.py", *(f"tea/part{part}.py" for part in range(9))]
    assert package.licences() == ["tea-1.0.dist-info/licenses/LICENSE"]
    assert not [path for path in package.files if ".." in path]
    assert installed_package("coffee", paths=[installed]) is None


def test_packages_come_sorted_and_once(installed: Path) -> None:
    assert [package.name for package in installed_packages(paths=[installed, installed])] == [
        "cup",
        "tea",
    ]


@pytest.mark.parametrize("damage", [b"\xff\xfe\xff", b"", b"Name: cup\n\n"])
def test_a_package_with_damaged_metadata_is_passed_over(installed: Path, damage: bytes) -> None:
    (installed / "cup-1.0.dist-info/METADATA").write_bytes(damage)
    assert [package.name for package in installed_packages(paths=[installed])] == ["tea"]


@pytest.mark.parametrize(
    "address",
    [
        "https://index.example/project/tea",
        "https://index.example/simple/tea",
        "ftp://tea.example",
        "https://tea.example/a b",
        "javascript:alert(1)",
        "",
    ],
)
def test_index_pages_and_oddities_are_no_home_pages(address: str) -> None:
    assert home_page("Tea_Pot", [("Homepage", address)]) == "https://packages.invalid/tea-pot/"


def test_documentation_becomes_pages_and_what_was_not_used_is_named(installed: Path) -> None:
    prose = gathered(installed, TEA)
    assert [page.url for page in prose] == [
        "https://tea.example/tea.part0",
        "https://packages.invalid/cup/about-cup",
        "https://packages.invalid/cup/cup-1.0.dist-info/licenses/LICENSE",
        "https://tea.example/about-tea",
        "https://tea.example/tea-1.0.dist-info/licenses/LICENSE",
    ]
    assert prose.pages[0].title == "tea.part0 to tea.part8"
    assert (
        len(prose.pages[0].kept) == 3 * 9
    )  # two docstrings and one block of comments in each of nine modules
    assert prose.sources == {"cup": "1.0", "tea": "1.0"}
    assert prose.skipped == {
        "not readable Python": ["tea: tea/broken.py"],
        "not installed": ["coffee"],
    }


def test_identical_licences_have_one_digest(installed: Path) -> None:
    licences = [page for page in gathered(installed, TEA) if page.url.endswith("LICENSE")]
    assert len({page.digest for page in licences}) == 1
    assert len({page.url for page in licences}) == 2


def test_addresses_differ_also_when_a_package_stands_on_two_shelves(installed: Path) -> None:
    prose = gathered(
        installed, TEA, Shelf("tea on one page", ("tea",), one_page=True, keep_repeats=True)
    )
    assert len({page.url for page in prose}) == len(prose.pages) == 6


def test_text_stays_within_its_bound_and_the_rest_is_named(installed: Path) -> None:
    whole = gathered(installed, TEA)
    exact = sum(len(page.record) for page in whole)
    assert gathered(installed, TEA, max_text_bytes=exact) == whole
    bound = exact - 1
    some = gathered(installed, TEA, max_text_bytes=bound)
    assert sum(len(page.record) for page in some) <= bound
    assert some.skipped[f"beyond {bound:,} bytes of text"] == [whole.pages[-1].url]


def test_two_workers_read_what_one_reads(installed: Path) -> None:
    other = installed_prose(executor=LocalExecutor(workers=2), shelves=[TEA], paths=[installed])
    assert other == gathered(installed, TEA)


def test_a_place_without_documentation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no documentation found"):
        gathered(tmp_path, TEA)
    with pytest.raises(BadInput, match="no documentation found"):
        gathered(tmp_path, TEA, max_text_bytes=0)


def test_the_standard_library_is_there_without_its_tests() -> None:
    modules = standard_library().modules()
    assert "json/decoder.py" in modules
    assert not [
        path
        for path in modules
        if path.startswith(("test/", "site-packages/")) or "/tests/" in path
    ]


def test_shelves_have_different_names_and_list_a_package_once() -> None:
    assert len({shelf.name for shelf in SHELVES}) == len(SHELVES)
    listed = [name for shelf in SHELVES if not shelf.one_page for name in shelf.packages]
    assert len(set(listed)) == len(listed)


def test_pages_too_short_for_ccnet_are_left_out(installed: Path) -> None:
    (installed / "cup-1.0.dist-info/licenses/LICENSE").write_text(
        "Licence\n" + "x" * (MIN_CHARS - 1)
    )
    assert not [
        page
        for page in gathered(installed, TEA)
        if page.url.endswith("cup-1.0.dist-info/licenses/LICENSE")
    ]
