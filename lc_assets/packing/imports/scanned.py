"""What one file says of others, and which file is of which language."""

from dataclasses import dataclass
from typing import Final

MOST_IMPORTS: Final = 2000
"""Of one file; what it names beyond that is not looked for."""

LANGUAGES: Final = {
    "python": (".py", ".pyi", ".pyw"),
    "c_family": (
        ".c",
        ".h",
        ".cc",
        ".cpp",
        ".cxx",
        ".c++",
        ".hh",
        ".hpp",
        ".hxx",
        ".h++",
        ".inl",
        ".cu",
        ".cuh",
        ".m",
        ".mm",
    ),
    "javascript": (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"),
    "go": (".go",),
    "rust": (".rs",),
    "java": (".java",),
}
"""Endings of names, by language."""

_OF_ENDING: Final = {
    ending: language for language, endings in LANGUAGES.items() for ending in endings
}


@dataclass(frozen=True, slots=True)
class Import:
    """One statement that names other files.

    Attributes:
        module: as it is written: ``..pkg.mod``, ``sys/types.h``, ``./button``, ``crate::a::b``,
            ``java.util``.
        names: what is taken out of it, where a language says so; ``*`` is everything.
        kind: of statement, where a language has several.
    """

    module: str
    names: tuple[str, ...] = ()
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Scanned:
    """What one file says.

    Attributes:
        imports: in the order of the text.
        package: that it declares to be part of; empty where a language has no such thing.
    """

    imports: tuple[Import, ...] = ()
    package: str = ""


def language_of(path: str) -> str | None:
    """Language of a file, by the end of its name; None for others, which import nothing.

    >>> language_of("src/Main.CPP"), language_of("go.mod"), language_of("README")
    ('c_family', 'go', None)
    """
    name = path.rpartition("/")[2]
    if name == "go.mod":
        return "go"
    dot = name.rfind(".")
    return _OF_ENDING.get(name[dot:].lower()) if dot > 0 else None
