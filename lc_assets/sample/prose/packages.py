"""What is installed: the files and the descriptions of packages, found by their metadata and never
imported.

Source: "Recording installed projects" and "Core metadata specifications" of the Python packaging
    user guide, read by
`importlib.metadata`. The standard library counts as one more package.
"""

import csv
import platform
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from email import message_from_string
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlsplit

STANDARD_LIBRARY = "python"
"""Name under which the standard library is a package."""

NO_HOME = "https://packages.invalid/{name}/"
"""Address of a package that names no home page of its own; ``.invalid`` belongs to nobody (RFC
2606).
"""

_INDEX_PAGE = re.compile(r"/(?:project|simple|packages?)/", re.ASCII)
"""How the path of a package index's page begins: an index is nobody's home page, for it did not
write the text.
"""

_LEFT_OUT = frozenset(
    {"tests", "test", "idle_test", "_vendor", "site-packages", "dist-packages", "__pycache__"}
)
_HOME = re.compile(
    r"https?://[a-z0-9][a-z0-9.-]*\.[a-z]{2,}(?:/[\w./~-]*)?", re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Package:
    """An installed package.

    Attributes:
        name: as in its metadata.
        version: as in its metadata.
        home: the address of its own pages.
        root: the folder that ``files`` are relative to.
        files: its files as POSIX paths, sorted, none of which leaves ``root``.
        description: what it says of itself (its README, as a rule).
    """

    name: str
    version: str
    home: str
    root: Path
    files: tuple[str, ...]
    description: str = ""

    def modules(self) -> list[str]:
        """Its Python modules but for tests, copies of other packages and generated ones; sorted by
        path.
        """
        python = (
            path
            for path in self.files
            if path.endswith(".py") and not path.endswith(("_pb2.py", "_pb2_grpc.py"))
        )
        return [path for path in python if _LEFT_OUT.isdisjoint(PurePosixPath(path).parts)]

    def licences(self) -> list[str]:
        """The licence texts that its metadata folder holds; sorted by path."""
        return [
            path
            for path in self.files
            if ".dist-info/" in path
            and re.search(r"/(?:licen[cs]e|copying)[^/]*$", path, re.IGNORECASE)
        ]


def standard_library() -> Package:
    """The standard library of the running interpreter."""
    root = Path(sysconfig.get_path("stdlib"))
    files = (path.relative_to(root) for path in root.rglob("*.py"))
    own = sorted(path.as_posix() for path in files if _LEFT_OUT.isdisjoint(path.parts))
    return Package(
        STANDARD_LIBRARY, platform.python_version(), "https://docs.python.org/3/", root, tuple(own)
    )


def installed_package(name: str, *, paths: Sequence[Path] | None = None) -> Package | None:
    """The package of this name, or None when it is not installed.

    Args:
        name: as one would install it; case, ``-`` and ``_`` do not matter.
        paths: folders of installed packages; by default those that the interpreter imports from.
    """
    if name == STANDARD_LIBRARY:
        return standard_library()
    return next(_packages(Distribution.discover(name=name, path=_where(paths))), None)


def installed_packages(*, paths: Sequence[Path] | None = None) -> list[Package]:
    """Every installed package, sorted by name; of two with one name, the one that would be
    imported.
    """
    found: dict[str, Package] = {}
    for package in _packages(Distribution.discover(path=_where(paths))):
        found.setdefault(_plain(package.name), package)
    return [found[name] for name in sorted(found)]


def home_page(name: str, addresses: Iterable[tuple[str, str]]) -> str:
    """Choose a package's home page from labelled addresses, or a reserved one when there is none.

    >>> home_page("tea", [("changelog", "https://tea.example/news"), ("Homepage", "https://tea.example")])
    'https://tea.example'
    >>> home_page("tea", [("Homepage", "https://index.example/project/tea")])
    'https://packages.invalid/tea/'
    """
    usable = [(label.lower(), address) for label, address in addresses if _is_home(address)]
    for wanted in ("home", "documentation", "repository", "source"):
        for label, address in usable:
            if wanted in label:
                return address
    return NO_HOME.format(name=_plain(name))


def page_address(home: str, name: str) -> str:
    """Address of a page below a home page: a page of its own, not a place within one.

    >>> page_address("https://tea.example/#readme", "about tea"), page_address("https://packages.invalid/tea/", "tea.pot")
    ('https://tea.example/about%20tea', 'https://packages.invalid/tea/tea.pot')
    """
    return f"{home.partition('#')[0].partition('?')[0].rstrip('/')}/{quote(name)}"


def _is_home(address: str) -> bool:
    return (
        _HOME.fullmatch(address) is not None and _INDEX_PAGE.match(urlsplit(address).path) is None
    )


def _packages(distributions: Iterable[Distribution]) -> Iterator[Package]:
    for distribution in distributions:
        package = _package(distribution)
        if package is not None:
            yield package


def _package(distribution: Distribution) -> Package | None:
    """Read what an installed distribution says of itself, or None when it says nothing usable."""
    try:
        metadata = message_from_string(
            distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        )
        files = distribution.files or []
    except (
        OSError,
        ValueError,
        TypeError,
        csv.Error,
    ):  # unreadable, not UTF-8, or a list of files that is none
        return None
    name, version = metadata.get("Name"), metadata.get("Version")
    if not name or not version:
        return None
    labelled = [
        ("home", metadata.get("Home-page", "")),
        *map(_labelled, metadata.get_all("Project-URL", [])),
    ]
    description = metadata.get("Description") or str(metadata.get_payload())
    own = sorted(
        path.as_posix() for path in files if ".." not in path.parts and not path.is_absolute()
    )
    return Package(
        name,
        version,
        home_page(name, labelled),
        Path(str(distribution.locate_file(""))),
        tuple(own),
        description,
    )


def _labelled(field: str) -> tuple[str, str]:
    label, _, address = field.partition(",")
    return label, address.strip()


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower())


def _where(paths: Sequence[Path] | None) -> list[str]:
    return sys.path if paths is None else [str(path) for path in paths]
