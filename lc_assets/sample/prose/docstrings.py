"""The prose of one Python module: its docstrings and its comments, in the order of the file.

A module is parsed with `ast`; it is never imported and never run. Comments are blocks of at least
two lines that hold nothing else, found by a pattern: the tokenizer of the standard library is
thirty times slower, and what the pattern finds in addition (lines inside long strings that begin
with ``#``) is text as well.
"""

import ast
import inspect
import re
import warnings
from collections.abc import Iterator
from typing import TypeAlias

from lc_assets.errors import CorruptFile
from lc_assets.sample.prose.plain import prose_lines

Documented: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

_COMMENT_BLOCK = re.compile(r"(?:^[ \t]*#[^\n]*\n){2,}", re.MULTILINE)
_COMMENT_SIGN = re.compile(r"^[ \t]*#[#!:]*", re.MULTILINE)
_TRIPLE_QUOTES = re.compile(r"\"\"\"|'''")


def module_lines(source: bytes, *, name: str) -> list[str]:
    """Docstrings and comments of a module as lines of prose.

    Args:
        source: the file's bytes; UTF-8.
        name: what to call it in an error.

    Raises:
        CorruptFile: when it is not UTF-8 or not Python of this interpreter's version.

    >>> module_lines(b'"Reads the parish registers of a village." # not this', name="registers.py")
    []
    >>> module_lines(b'\"\"\"Reads the parish registers of a village.\"\"\"', name="registers.py")
    ['Reads the parish registers of a village.']
    """
    text = _decode(source, name)
    found = [*_docstrings(text, name), *_comments(text)]
    return [line for _, part in sorted(found) for line in prose_lines(_encodable(part))]


def constant_lines(source: bytes, *, name: str) -> list[str]:
    """Prose of the long string constants of a module that is a table of texts, such as
    ``pydoc_data/topics.py``.

    Raises:
        CorruptFile: as `module_lines`.
    """
    tree = _parse(_decode(source, name), name)
    values = (
        value for node in ast.walk(tree) if isinstance(node, ast.Dict) for value in node.values
    )
    texts = (
        value.value
        for value in values
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    )
    return [line for text in texts for line in prose_lines(_encodable(text))]


def _docstrings(text: str, name: str) -> Iterator[tuple[int, str]]:
    if not _TRIPLE_QUOTES.search(text):
        return
    waiting: list[Documented] = [_parse(text, name)]
    while waiting:
        node = waiting.pop()
        docstring = ast.get_docstring(node, clean=True)
        if docstring:
            yield node.body[0].lineno, docstring
        waiting += [child for child in node.body if isinstance(child, Documented)]


def _comments(text: str) -> Iterator[tuple[int, str]]:
    line = 1
    end = 0
    for block in _COMMENT_BLOCK.finditer(text):
        line += text.count("\n", end, block.start())
        end = block.start()
        yield line, inspect.cleandoc(_COMMENT_SIGN.sub("", block.group()))


def _encodable(text: str) -> str:
    r"""Replace lone surrogates, which a string constant can spell as ``\ud800`` and UTF-8 cannot
    hold.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _decode(source: bytes, name: str) -> str:
    try:
        return source.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise CorruptFile(
            f"{name}: not UTF-8 at byte {error.start:,}; wanted a Python module in UTF-8"
        ) from error


def _parse(text: str, name: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other people's invalid escapes are not our news
            return ast.parse(text)
    except (
        SyntaxError,
        ValueError,
        RecursionError,
        MemoryError,
    ) as error:  # all four are how ast says no
        raise CorruptFile(f"{name}: not Python that this interpreter can read: {error}") from error
