"""English prose from installed packages as pages of a crawl: their long docstrings and help texts,
descriptions and licences.

Nothing is imported, run or downloaded, and the same installed versions give the same pages. All are
of the packages of `SUBJECTS`. A long page ends where it fills a row of 65,536 tokens. Short ones
are descriptions and licences; some of these are equal word for word, so they are true duplicates.
"""

import ast
import contextlib
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from platform import python_version
from urllib.parse import quote

from lc_assets.execution.executor import Executor
from lc_assets.sample.pages import MIN_CHARS, Page, Texts

STANDARD_LIBRARY = "python"

SUBJECTS: Mapping[str, str] = {
    "python": "python",
    "databases": "SQLAlchemy alembic",
    "figures": "matplotlib pillow fonttools",
    "tables": "pandas pyarrow",
    "arrays": "numpy zarr",
    "clouds": "google-cloud-storage google-cloud-bigquery google-auth google-api-core",
}
"""Packages with long documentation that this project depends on, by subject."""

PAGES_OF_SUBJECT = 2
"""Further modules are not read: each page makes a row or two, and a try needs few rows."""
PAGE_CHARS = 310_000
"""A page ends with the module in which it reaches this: more than 65,536 tokens, at 4.0 to 4.6
characters a token in English documentation (measured over 37 packages).
"""
MIN_PASSAGE_CHARS = 600
"""Shorter docstrings are fragments: a sentence, and a table of parameters."""
MIN_FILE_BYTES = 16_000
"""Smaller modules have few long docstrings, and are not opened."""
MAX_FILE_BYTES = 2_000_000
"""Larger modules are assumed to be data tables."""

MIN_WORDS = 6
MIN_LETTERS_SHARE = 0.8
"""Of letters and blanks in a paragraph: sentences have 0.92 or more, lines of code 0.5 to 0.8."""
SEQUENCE_WORDS = 6
MAX_SEEN_SHARE = 1 / 3
"""A line with more six-word sequences that occurred before is a repeat."""

_LICENCE = re.compile(r"\.dist-info/(?:.*/)?(?:licen[cs]e|copying)[^/]*$", re.IGNORECASE)
_LEFT_OUT = {"tests", "test", "idle_test", "_vendor", "site-packages", "dist-packages"}
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_NEW_PARAGRAPH = re.compile(
    r"\n[ \t]*(?:(?:[-*+•]|\d{1,3}[.)])[ \t]+|:[a-z]+[^:\n]{0,80}:[ \t]+"
    r"|[*\w`.][*\w`., ]{0,80} : [^\n]{0,200}|[*\w.]{1,60} ?(?:\([^()\n]{0,120}\))?:[ \t])"
)
_MARKUP = re.compile(r":[a-z][\w:+-]{0,40}:(?=`)|\s?<[^<>]{1,300}>|`+_{0,2}|\*+|\]\([^)]{0,500}\)")
_NOT_WORDS = re.compile(r"[\W\d_]+")


def installed_prose(*, executor: Executor, subjects: Mapping[str, str] = SUBJECTS) -> Texts:
    """Read the documentation of installed packages: long pages by subject, then short ones by
    package.

    Args:
        executor: runs a task per subject.
        subjects: packages by subject, separated by spaces; those not installed are skipped.
    """
    tasks = list(subjects.values())
    found = dict(executor.run(_long_pages, tasks, what="read packages"))
    packages = _installed(" ".join(tasks).split())
    pages = [page for task in tasks for page in found[task]] + list(_short_pages(packages))
    sources = {one.metadata["Name"]: one.version for one in packages}
    return Texts(
        [page for page in pages if len(page.content) >= MIN_CHARS],
        sources | {STANDARD_LIBRARY: python_version()},
    )


def _long_pages(names: str) -> list[Page]:
    """The modules of some packages on pages, without repeats."""
    pages, seen = list[Page](), set[str]()
    url, lines, n_chars = "", list[str](), 0
    for name in names.split():
        for address, found in _chapters(name):
            url = url or address
            fresh = [line for line in found if is_new(line, seen)]
            lines += fresh
            n_chars += sum(map(len, fresh)) + len(fresh)
            if n_chars >= PAGE_CHARS:
                pages.append(_page(url, lines))
                url, lines, n_chars = "", [], 0
            if len(pages) == PAGES_OF_SUBJECT:
                return pages
    return [*pages, _page(url, lines)]


def _page(url: str, lines: Sequence[str]) -> Page:
    return Page(url=url, title=url.rpartition("/")[2], lines=tuple(lines))


def _chapters(name: str) -> Iterator[tuple[str, list[str]]]:
    """Address and lines of prose of each module of a package, the largest module first."""
    root, paths = _modules(name)
    sizes: dict[str, int] = {}
    for path in paths:
        if _LEFT_OUT.isdisjoint(PurePosixPath(path).parts) and (root / path).is_file():
            sizes[path] = (root / path).stat().st_size
    for path in sorted(sizes, key=lambda path: (-sizes[path], path)):
        if MIN_FILE_BYTES <= sizes[path] <= MAX_FILE_BYTES:
            module = path.replace("/", ".").removesuffix(".py").removesuffix(".__init__")
            yield _address(name, module), module_lines((root / path).read_bytes())


def _modules(name: str) -> tuple[Path, list[str]]:
    if name == STANDARD_LIBRARY:
        root = Path(sysconfig.get_path("stdlib"))
        return root, [path.relative_to(root).as_posix() for path in root.rglob("*.py")]
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return Path(), []
    files = [path.as_posix() for path in found.files or [] if path.suffix == ".py"]
    return Path(str(found.locate_file(""))), [path for path in files if ".." not in path]


def _short_pages(packages: Iterable[Distribution]) -> Iterator[Page]:
    """Descriptions and licences of packages."""
    for found in packages:
        name = found.metadata["Name"]
        about = prose_lines(str(found.metadata.get_payload()))  # type: ignore[attr-defined]
        yield _page(_address(name, f"{name}-{found.version}"), about)
        for path in sorted(map(str, found.files or [])):
            if _LICENCE.search(path):
                file = Path(str(found.locate_file(path)))
                content = file.read_bytes()[:MAX_FILE_BYTES] if file.is_file() else b""
                lines = map(str.strip, content.decode("utf-8", "replace").splitlines())
                yield _page(_address(name, path), list(filter(None, lines)))


def _installed(names: Iterable[str]) -> list[Distribution]:
    """Those of the named packages that are installed, in this order."""
    found: list[Distribution] = []
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            found.append(distribution(name))
    return found


def _address(package: str, name: str) -> str:
    """A page's address; ``.invalid`` is reserved (RFC 2606)."""
    return f"https://packages.invalid/{quote(package.lower())}/{quote(name)}"


def module_lines(source: bytes) -> list[str]:
    """The long texts of a Python module as lines of prose, in the order of the file: docstrings and
    other string constants of `MIN_PASSAGE_CHARS` or more. None when it cannot be parsed.
    """
    text = source.decode("utf-8", "replace").replace("\r\n", "\n")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes of others
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    passages = [
        (node.lineno, node.col_offset, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and len(node.value) >= MIN_PASSAGE_CHARS
    ]
    return [line for *_, passage in sorted(passages) for line in prose_lines(passage)]


def prose_lines(text: str) -> list[str]:
    r"""The paragraphs of documentation that read like sentences, one line each, without markup.

    >>> prose_lines("Return the ``mean`` of all values\nthat were given, or None.\n\n>>> mean([1])")
    ['Return the mean of all values that were given, or None.']
    """
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    lines = []
    for block in _BLANK_LINE.split(text.expandtabs()):
        if ">>>" in block or block.lstrip().startswith((".. ", "```", "$ ")):
            continue
        for paragraph in _NEW_PARAGRAPH.split(f"\n{block}"):
            line = _MARKUP.sub("", " ".join(paragraph.split()))
            if is_prose(line):
                lines.append(line)
    return lines


def is_prose(line: str) -> bool:
    """Whether a line reads like a sentence rather than code, a heading or a table.

    >>> is_prose("Values outside the interval are clipped."), is_prose("def clip(a, a_min, a_max):")
    (True, False)
    """
    if len(line.split(None, MIN_WORDS)) < MIN_WORDS:
        return False
    return sum(map(str.isalpha, line)) + line.count(" ") >= MIN_LETTERS_SHARE * len(line)


def is_new(line: str, seen: set[str]) -> bool:
    """Whether most of a line's six-word sequences were not seen yet; they are then.

    >>> seen = set()
    >>> is_new("The width of the figure.", seen), is_new("The Width of the figure!", seen)
    (True, False)
    """
    words = _NOT_WORDS.split(line.lower())
    last = max(1, len(words) - SEQUENCE_WORDS + 1)
    sequences = {" ".join(words[at : at + SEQUENCE_WORDS]) for at in range(last)}
    new = len(sequences & seen) <= MAX_SEEN_SHARE * len(sequences)
    if new:
        seen |= sequences
    return new
