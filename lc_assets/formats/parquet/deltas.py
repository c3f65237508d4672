"""Strings stored by the differences of their lengths: how many lengths a page states, which Arrow
makes room for before it looks further.

The number stands in the page itself, behind its levels and beneath its compression: eight bytes can
ask for eight gigabytes. So these pages, which few writers write, are unpacked twice. Here: that
number. Not here: the strings.

Source: ``Encodings.md`` of apache/parquet-format, DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY.
"""

from typing import Final

from lc_assets.errors import CorruptFile

DELTA_LENGTH_STRINGS: Final = 6
DELTA_STRINGS: Final = 7


def require_lengths(values: bytes, encoding: int, n_values: int) -> None:
    """Hold the numbers of lengths that a page states against its number of values.

    Args:
        values: the page, unpacked, from where its levels end.
        encoding: `DELTA_LENGTH_STRINGS` or `DELTA_STRINGS`.
        n_values: values of the page, nulls counted.

    Raises:
        CorruptFile: when it states more lengths than values; does not name the file.
    """
    try:
        end = _stream(values, 0, n_values)
        if encoding == DELTA_STRINGS:
            _stream(values, end, n_values)
    except IndexError as error:
        raise CorruptFile("holds lengths of strings that are cut short") from error


def _stream(content: bytes, at: int, n_values: int) -> int:
    """Where a stream of numbers that are stored by their differences ends; it may have as many as
    there are values.
    """
    block, at = _varint(content, at)
    n_parts, at = _varint(content, at)
    count, at = _varint(content, at)
    _, at = _varint(content, at)
    per_part = block // n_parts if n_parts else 0
    if count > n_values or per_part < 8 or n_parts > len(content):
        raise CorruptFile(
            f"holds lengths of {count:,} strings in {n_parts:,} parts of {per_part:,}, where "
            f"there are {n_values:,} values"
        )
    left = count - 1
    while left > 0:
        _, at = _varint(content, at)
        widths, at = content[at : at + n_parts], at + n_parts
        for width in widths:
            if left <= 0:
                break
            at += width * per_part // 8
            left -= per_part
        if at > len(content):
            raise IndexError
    return at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = content[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80 or shift > 63:
            return number, at
