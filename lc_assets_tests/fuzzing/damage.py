"""Damage to files: of their bytes, and of what their bytes mean.

A `Blow` is two numbers and a kind; what it does to a file follows from them alone, so hypothesis
can draw, repeat and shrink it. A file's `layers` say how far one can look into it: ``("gzip",
"json")`` is JSON lines within gzip, which are damaged as compressed bytes, as lines, and as values.
"""

import contextlib
import gzip
import io
import json
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

DEEP: Final = 100_000
HUGE: Final = (
    0,
    1,
    0x7F,
    0xFF,
    0x7FFF,
    0xFFFF,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)

ODD_TEXT: Final = (
    "",
    "\0",
    "../../../etc/passwd",
    "/etc/passwd",
    "a\\..\\b",
    "\ud800",
    "\u202e\ufeff\u0301\U0001f600",
    "NaN",
    "-1",
    "9" * 5000,
    "x" * 70_000,
    "%s%n{0}",
    "http://[::1",
    "http://xn--\u00df\u200d.\u3002/%zz?\0#",
    "//\t\n\r",
)
ODD_JSON: Final = (
    *(json.dumps(text) for text in ODD_TEXT),
    *(
        "null",
        "true",
        "false",
        "[]",
        "{}",
        "[[]]",
        "[null]",
        '{"a": null}',
        "NaN",
        "-Infinity",
        "01",
        "1.",
        '"',
    ),
    *(
        "0",
        "-1",
        "1.5",
        "-0.0",
        "1e308",
        "1e400",
        str(2**31),
        str(2**53),
        str(2**63),
        str(2**64),
        "1" + "0" * 400,
        "9" * 5000,
    ),
    *("[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP, "[" * DEEP, '{"a":1,"a":2}'),
)
ODD_TOML: Final = (
    *(
        '""',
        "''",
        '"../.."',
        '"\\u0000"',
        "true",
        "[]",
        "{}",
        "{ a = 1 }",
        "[[]]",
        "1979-05-27",
        "07:32:00",
        "inf",
        "-nan",
    ),
    *(
        "-1",
        "0",
        "1e400",
        "0.0",
        str(2**63),
        "9" * 5000,
        "0x" + "f" * 5000,
        '["en", 1]',
        '"""',
        "[" * 5000 + "]" * 5000,
    ),
)
ODD_WORDS: Final = (
    *(text for text in ODD_TEXT if "\ud800" not in text),
    "--",
    "=",
    "'",
    '"',
    "--seq-length",
    "1e400",
    "0x10",
    ",,,,",
    "#",
)

_TOKEN: Final = re.compile(rb"[\w.+-]+|\"[^\"\n]*\"")
_NUMBER: Final = re.compile(rb"\d+")


class Blow(NamedTuple):
    """One act of damage: which kind, and two numbers that say where and how."""

    kind: int
    where: int
    how: int


def struck(content: bytes, layers: Sequence[str], blows: Sequence[Blow]) -> bytes:
    """A file's bytes after some blows."""
    for blow in blows:
        acts = [
            (act, depth)
            for depth in range(len(layers) + 1)
            for act in (BYTES if depth == len(layers) else _acts(layers, depth))
        ]
        act, depth = acts[blow.kind % len(acts)]
        content = _within(
            content,
            layers[:depth],
            lambda inner, act=act, blow=blow: act(inner, blow.where, blow.how),
        )
    return content


def _acts(layers: Sequence[str], depth: int) -> Sequence[Callable[[bytes, int, int], bytes]]:
    """What can be done to the bytes below ``depth`` layers, by what they are."""
    return (*BYTES, *MEANT.get(layers[depth], ()))


def _within(content: bytes, wraps: Sequence[str], act: Callable[[bytes], bytes]) -> bytes:
    """Unwrap, damage, and wrap again; what an earlier blow has made unreadable is damaged as
    bytes.
    """
    if not wraps or wraps[0] not in WRAPS:
        return act(content)
    unwrap, wrap = WRAPS[wraps[0]]
    with contextlib.suppress(OSError, EOFError, zlib.error, zstandard.ZstdError, ValueError):
        inner = unwrap(content)
        return wrap(_within(inner, wraps[1:], act))
    return act(content)


def _ungzip(content: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
        return stream.read(1 << 20)


WRAPS: Final[dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]]] = {
    "gzip": (_ungzip, lambda inner: gzip.compress(inner, 1, mtime=0)),
    "zstd": (
        lambda content: zstandard.ZstdDecompressor().decompressobj().decompress(content),
        zstandard.compress,
    ),
}


# Bytes, whatever they mean.


def cut(content: bytes, where: int, how: int) -> bytes:
    return content[: where % (len(content) + 1)]


def flip(content: bytes, where: int, how: int) -> bytes:
    if not content:
        return b"\0"
    changed = bytearray(content)
    changed[where % len(changed)] ^= 1 << how % 8
    return bytes(changed)


def doubled(content: bytes, where: int, how: int) -> bytes:
    at = where % (len(content) + 1)
    return content[:at] + content[max(at - how % 64 - 1, 0) :]


def removed(content: bytes, where: int, how: int) -> bytes:
    at = where % (len(content) + 1)
    return content[:at] + content[at + how % 64 + 1 :]


def spliced(content: bytes, where: int, how: int) -> bytes:
    return content[: where % (len(content) + 1)] + content[how % (len(content) + 1) :]


def filled(content: bytes, where: int, how: int) -> bytes:
    at = where % (len(content) + 1)
    return (
        content[:at]
        + (b"\0", b"\xff", b"\n", b"\xed\xa0\x80", b"[")[how % 5] * (1 + how % 300)
        + content[at:]
    )


def number(content: bytes, where: int, how: int) -> bytes:
    """Write a number that is too large, or nothing, over 1, 2, 4 or 8 bytes, as headers hold
    them.
    """
    size = (1, 2, 4, 8)[how % 4]
    at = where % (len(content) + 1)
    packed = struct.pack("<Q", HUGE[how // 4 % len(HUGE)])[:size]
    return content[:at] + (packed if how % 3 else packed[::-1]) + content[at + size :]


def emptied(content: bytes, where: int, how: int) -> bytes:
    return b""


BYTES: Final = (cut, flip, doubled, removed, spliced, filled, number, flip, number, cut, emptied)


# Lines and words.


def line_moved(content: bytes, where: int, how: int) -> bytes:
    lines = content.splitlines(keepends=True)
    if lines:
        line = lines.pop(where % len(lines))
        for _ in range(how % 3):
            lines.insert(how // 3 % (len(lines) + 1), line)
    return b"".join(lines)


def word_replaced(content: bytes, where: int, how: int) -> bytes:
    return _replaced(_TOKEN, content, where, ODD_WORDS[how % len(ODD_WORDS)].encode())


def toml_replaced(content: bytes, where: int, how: int) -> bytes:
    return _replaced(
        re.compile(rb"(?<== )[^\n]+"), content, where, ODD_TOML[how % len(ODD_TOML)].encode()
    )


def number_replaced(content: bytes, where: int, how: int) -> bytes:
    words = (
        b"0",
        b"-1",
        b"1e9",
        b"99999999999",
        b"18446744073709551615",
        b"9" * 5000,
        b"",
        b"0x7f",
        b"4294967296",
    )
    return _replaced(_NUMBER, content, where, words[how % len(words)])


def _replaced(pattern: re.Pattern[bytes], content: bytes, where: int, by: bytes) -> bytes:
    found = list(pattern.finditer(content))
    if not found:
        return by
    one = found[where % len(found)]
    return content[: one.start()] + by + content[one.end() :]


# Values of JSON, a document or a line.


def json_replaced(content: bytes, where: int, how: int) -> bytes:
    """Put something odd in the place of one value, wherever it lies in the tree of one line."""
    return _in_tree(content, where, ODD_JSON[how % len(ODD_JSON)])


def json_dropped(content: bytes, where: int, how: int) -> bytes:
    return _in_tree(content, where, None)


def json_renamed(content: bytes, where: int, how: int) -> bytes:
    found = list(re.finditer(rb'"[^"\\\n]*"(?=:)', content))
    if not found:
        return content
    one = found[where % len(found)]
    other = (json.dumps(ODD_TEXT[how % len(ODD_TEXT)]).encode(), found[how % len(found)].group())[
        how % 2
    ]
    return content[: one.start()] + other + content[one.end() :]


def _in_tree(content: bytes, where: int, odd: str | None) -> bytes:
    begin, end, tree = _one_tree(content, where)
    if tree is None:
        return content
    places = list(_places(tree))
    if not places:
        return content[:begin] + (odd or "").encode() + content[end:]
    parent, key = places[where // 7 % len(places)]
    if odd is None:
        del parent[key]
        return content[:begin] + json.dumps(tree).encode() + content[end:]
    parent[key] = "@odd@"
    return content[:begin] + json.dumps(tree).replace('"@odd@"', odd).encode() + content[end:]


def _one_tree(content: bytes, where: int) -> tuple[int, int, Any]:
    """The whole as one value, or one of its lines, or what a line holds from its first brace on."""
    with contextlib.suppress(ValueError, RecursionError):
        return 0, len(content), json.loads(content)
    ends = [0, *(found.end() for found in re.finditer(rb"\n", content)), len(content)]
    at = where % (len(ends) - 1)
    begin, end = ends[at], ends[at + 1]
    begin = max(content.find(b"{", begin, end), begin)
    with contextlib.suppress(ValueError, RecursionError):
        return begin, end - content[begin:end].endswith(b"\n"), json.loads(content[begin:end])
    return 0, 0, None


def _places(tree: Any) -> Any:
    for key, value in (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    ):
        yield tree, key
        yield from _places(value)


# Columns of Parquet.


def column_changed(content: bytes, where: int, how: int) -> bytes:
    """A column of another type, with nulls, twice, or not at all."""
    with contextlib.suppress(pa.ArrowException, OSError, UnicodeDecodeError):
        table = pq.read_table(io.BytesIO(content))
        if not table.num_columns:
            return content
        at = where % table.num_columns
        name, n_rows = table.schema.names[at], table.num_rows
        column = ODD_COLUMNS[how % len(ODD_COLUMNS)]
        if column is None:
            table = (
                table.remove_column(at) if how % 2 else table.append_column(name, table.column(at))
            )
        else:
            table = table.set_column(at, name, pa.array([column.value] * n_rows, column.type))
        out = io.BytesIO()
        pq.write_table(table, out)
        return out.getvalue()
    return content


class OddColumn(NamedTuple):
    value: Any
    type: pa.DataType


ODD_COLUMNS: Final = (
    None,
    OddColumn(None, pa.null()),
    OddColumn(None, pa.string()),
    OddColumn(-1, pa.int64()),
    OddColumn(2**64 - 1, pa.uint64()),
    OddColumn(1e308, pa.float64()),
    OddColumn(b"\xff\xfe\0", pa.binary()),
    OddColumn("x", pa.large_string()),
    OddColumn(["x", None], pa.list_(pa.string())),
    OddColumn({"a": 1}, pa.struct([("a", pa.int8())])),
    OddColumn([(b"\xff", 1)], pa.map_(pa.binary(), pa.int64())),
    OddColumn(2**62, pa.timestamp("s")),
    OddColumn(1, pa.timestamp("ns", "Mars/Olympus")),
    OddColumn(1, pa.timestamp("ns")),
    OddColumn(2**30, pa.date32()),
    OddColumn(1, pa.duration("ns")),
    OddColumn(True, pa.bool_()),
    OddColumn(b"12", pa.binary(2)),
    OddColumn(float("nan"), pa.float16()),
    OddColumn(10**30, pa.decimal128(38, 2)),
)

MEANT: Final[dict[str, tuple[Callable[[bytes, int, int], bytes], ...]]] = {
    "json": (json_replaced, json_replaced, json_replaced, json_dropped, json_renamed, line_moved),
    "toml": (toml_replaced, toml_replaced, word_replaced, line_moved),
    "text": (word_replaced, number_replaced, line_moved),
    "headers": (number_replaced, number_replaced, word_replaced, line_moved),
    "parquet": (column_changed, column_changed),
}
"""What else can be done, by what bytes mean."""
