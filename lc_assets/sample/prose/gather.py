"""The prose that every installation has: documentation of the installed packages, as pages of a
crawl.

Long pages come from the shelves of `lc_assets.sample.prose.shelves`: docstrings and comments
of whole packages. Short ones are what packages say of themselves and their licences; many licences
are word for word the same, so they are true duplicates. Nothing is imported, run or downloaded, and
the same installed versions give the same pages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.execution.executor import Executor
from lc_assets.sample.page import MIN_CHARS, Page
from lc_assets.sample.prose.docstrings import constant_lines, module_lines
from lc_assets.sample.prose.packages import (
    Package,
    installed_package,
    installed_packages,
    page_address,
)
from lc_assets.sample.prose.pages import Chapter, cut_into_pages
from lc_assets.sample.prose.plain import prose_lines
from lc_assets.sample.prose.shelves import SHELVES, Shelf

MAX_TEXT_BYTES = 25_000_000
"""Text that is taken at most. The signals of a sample cost about one CPU-second per megabyte."""

MAX_FILE_BYTES = 2_000_000
"""A larger module is a table of data, not something that a person wrote."""

TABLES_OF_TEXTS = frozenset({"pydoc_data/topics.py"})
"""Modules whose prose stands in string constants: the reference of the Python language."""

OWN_NAME = "lc-assets"
"""This package stays out: its sample must not change whenever its code does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledProse:
    """Pages with what determines them; a `lc_assets.sample.page.Texts`.

    Attributes:
        pages: long pages in the order of the shelves, then short ones by package.
        sources: version of each package that was read.
        skipped: files that were not used, by reason.
    """

    pages: tuple[Page, ...]
    sources: dict[str, str]
    skipped: dict[str, list[str]]

    def __iter__(self) -> Iterator[Page]:
        return iter(self.pages)


@dataclass(slots=True)
class _Reading:
    """What one task has read; its fields are what `InstalledProse` adds up."""

    pages: list[Page] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, list[str]] = field(default_factory=dict)

    def skip(self, reason: str, name: str) -> None:
        self.skipped.setdefault(reason, []).append(name)

    def bytes_of(self, package: Package, path: str) -> bytes | None:
        """Content of a file, or None when it cannot be used; then it is counted."""
        place = package.root / path
        try:
            if place.stat().st_size <= MAX_FILE_BYTES:
                return place.read_bytes()
        except OSError:
            self.skip("cannot be opened", f"{package.name}: {path}")
            return None
        self.skip(f"larger than {MAX_FILE_BYTES:,} bytes", f"{package.name}: {path}")
        return None


@dataclass(frozen=True, slots=True)
class _Task:
    """A shelf to read, or, when there is none, the short pages."""

    number: int
    shelf: Shelf | None
    paths: tuple[Path, ...] | None


def installed_prose(
    *,
    executor: Executor,
    shelves: Sequence[Shelf] = SHELVES,
    max_text_bytes: int = MAX_TEXT_BYTES,
    paths: Sequence[Path] | None = None,
) -> InstalledProse:
    """Read the documentation of what is installed.

    Args:
        engine: where packages are read, one shelf per task.
        shelves: which packages stand together.
        max_text_bytes: UTF-8 bytes of all pages together, at most; a page that no longer fits is
            left out and named.
        paths: folders of installed packages; by default those that the interpreter imports from.

    Raises:
        BadInput: when nothing was found to read.
    """
    given = None if paths is None else tuple(paths)
    tasks = [_Task(number, shelf, given) for number, shelf in enumerate([*shelves, None])]
    readings = {
        task.number: reading
        for task, reading in executor.run(_read, tasks, what="read documentation")
    }
    return _together([readings[task.number] for task in tasks], max_text_bytes)


def _together(readings: Sequence[_Reading], max_text_bytes: int) -> InstalledProse:
    whole = _Reading()
    room = max_text_bytes
    for reading in readings:
        whole.sources |= reading.sources
        for reason, names in reading.skipped.items():
            whole.skipped.setdefault(reason, []).extend(names)
        for page in reading.pages:
            n_bytes = len(page.record)
            if n_bytes <= room:
                whole.pages.append(page)
                room -= n_bytes
            else:
                whole.skip(f"beyond {max_text_bytes:,} bytes of text", page.url)
    if not whole.pages:
        raise BadInput(
            "no documentation found in the installed packages: name a folder of text files instead"
        )
    return InstalledProse(
        pages=tuple(whole.pages), sources=dict(sorted(whole.sources.items())), skipped=whole.skipped
    )


def _read(task: _Task) -> _Reading:
    reading = _Reading()
    pages = (
        _short_pages(reading, task.paths)
        if task.shelf is None
        else _long_pages(reading, task.shelf, task.paths)
    )
    reading.pages += [page for page in pages if page.n_chars >= MIN_CHARS]
    return reading


def _long_pages(reading: _Reading, shelf: Shelf, paths: Sequence[Path] | None) -> list[Page]:
    chapters: list[Chapter] = []
    for name in shelf.packages:
        package = installed_package(name, paths=paths)
        if package is None:
            reading.skip("not installed", name)
        else:
            reading.sources[package.name] = package.version
            chapters += _module_chapters(
                reading, package, suffix="-on-one-page" if shelf.one_page else ""
            )
    return cut_into_pages(chapters, one_page=shelf.one_page, keep_repeats=shelf.keep_repeats)


def _module_chapters(reading: _Reading, package: Package, *, suffix: str) -> Iterator[Chapter]:
    for path in package.modules():
        source = reading.bytes_of(package, path)
        if source is None:
            continue
        prose_of = constant_lines if path in TABLES_OF_TEXTS else module_lines
        try:
            lines = prose_of(source, name=path)
        except CorruptFile:
            reading.skip("not readable Python", f"{package.name}: {path}")
            continue
        module = ".".join(PurePosixPath(path).with_suffix("").parts).removesuffix(".__init__")
        yield Chapter(page_address(package.home, f"{module}{suffix}"), module, tuple(lines))


def _short_pages(reading: _Reading, paths: Sequence[Path] | None) -> Iterator[Page]:
    for package in installed_packages(paths=paths):
        if package.name.lower().replace("_", "-") == OWN_NAME:
            continue
        reading.sources[package.name] = package.version
        yield Page.whole(
            page_address(package.home, f"about-{package.name}"),
            f"{package.name} {package.version}",
            prose_lines(package.description),
        )
        for path in package.licences():
            text = reading.bytes_of(package, path)
            if text is not None:
                title, *lines = _plain_lines(text)
                yield Page.whole(page_address(package.home, path), title, lines)


def _plain_lines(text: bytes) -> list[str]:
    """Lines of a text as CCNet reads them: stripped, none empty; at least one."""
    lines = (line.strip() for line in text.decode("utf-8", "replace").splitlines())
    return [line for line in lines if line] or [""]
