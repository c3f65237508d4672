"""Quality signals of one shard: ``quality_signals/{tag}.signals.json.gz``, one record per line.

The record is in the package's docstring. Here: a table of the values that rules judge, joined to
documents by the line number in each ``id``; and writing such files. Not here: computing signals
(`lc_assets.text.signals.signals`).

Nine tenths of such a file are line signals that are rarely wanted; only what is wanted is decoded.
"""

from array import array
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import astuple
from numpy.typing import NDArray

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.redpajama.documents import DocumentRecord, id_int, line_reader
from lc_assets.formats.redpajama.lines import decode_json, read_lines, write_json_lines
from lc_assets.text.signals.names import BULLET_LINES, CCNET_SIGNALS, SCALARS, Signals, Span
from lc_assets.text.signals.signals import bullet_fraction, first_score
from lc_assets.vocabulary import Shard

BULLET_NEEDS: Final = ("rps_lines_start_with_bulletpoint", "ccnet_nlines")
BUCKET_SCORES: Final = {"head": 0.0, "middle": 1.0, "tail": 2.0}


@dataclass(frozen=True, slots=True, eq=False)
class SignalsTable:
    """The wanted values of one shard, one row per signals record, sorted by the document's line.

    Attributes:
        lines: int64, 0-based line of each row's document in the documents file; ascending, no two
            equal.
        urls: of each row's document, from the signals file; for checking the join.
        columns: float64 values by name; NaN where a value is missing.
        n_undecodable: lines of the signals file that are no signals record.
        n_oversize: lines of the signals file that were too long to read.
    """

    lines: NDArray[np.int64]
    urls: list[str]
    columns: dict[str, NDArray[np.float64]]
    n_undecodable: int
    n_oversize: int

    def row_of(self, line: int) -> int | None:
        """Row of the document on ``line``; None when it has no signals."""
        row = int(np.searchsorted(self.lines, line))
        return row if row < len(self.lines) and self.lines[row] == line else None

    def values_at(self, row: int) -> dict[str, float | None]:
        """Values of one row by name; None where missing."""
        return {
            name: None if np.isnan(column[row]) else float(column[row])
            for name, column in self.columns.items()
        }


class _Row(NamedTuple):
    line: int
    url: str
    values: list[float]


def read_signals(
    stream: BinaryIO, *, shard: Shard, where: str, wanted: Collection[str], max_line_bytes: int
) -> SignalsTable:
    """Read the ``wanted`` values of a shard's documents.

    Args:
        stream: the gzipped file.
        shard: whose signals they must be.
        where: the file's name, for messages.
        wanted: names of `lc_assets.text.signals.names.SCALARS`.
        max_line_bytes: longest line that is read; longer ones are counted and skipped.

    Raises:
        BadInput: when a wanted name is no signal.
        CorruptFile: when the file is damaged, holds an id of another shard, or an id twice.
    """
    names = _known(wanted)
    read_row = _row_reader(shard, names)
    rows = _Rows(len(names))
    n_undecodable = n_oversize = 0
    for number, text in read_lines(stream, where=where, max_line_bytes=max_line_bytes):
        if text is None:
            n_oversize += 1
        elif (row := read_row(text, f"{where}, line {number}")) is None:
            n_undecodable += 1
        elif not rows.add(row):
            raise CorruptFile(
                f"{where}, line {number}: the signals of {shard.document_id(row.line)} a second "
                "time; wanted each once"
            )
    lines, urls, values = rows.by_line()
    columns = {name: np.ascontiguousarray(values[:, place]) for place, name in enumerate(names)}
    return SignalsTable(lines, urls, columns, n_undecodable, n_oversize)


def write_signals(
    path: Path, shard: Shard, rows: Iterable[tuple[int, DocumentRecord, Signals]]
) -> None:
    """Write a shard's signals into an existing folder: ``(line, record, signals)`` for each
    document.

    The ``ccnet_*`` signals come first and are taken from the record; ``signals`` need not hold
    them.
    """
    write_json_lines(path, (_encodable(shard, *row) for row in rows))


def ccnet_signals(record: DocumentRecord) -> dict[str, list[Span]]:
    """The seven signals that CCNet measured, as floats, in the published order.

    >>> ccnet_signals(DocumentRecord(raw_content="Hello", nlines=1, bucket="middle"))["ccnet_bucket"]
    [(0, 5, 1.0)]
    """
    bucket = BUCKET_SCORES.get(record.bucket)
    counts = (record.length, record.original_length, record.nlines, record.original_nlines)
    scores = (*map(float, counts), record.language_score, record.perplexity, bucket)
    return {
        name: [(0, len(record.raw_content), score)]
        for name, score in zip(CCNET_SIGNALS, scores, strict=True)
    }


class _Rows:
    """Rows as they are read, packed: a few numbers and a URL per document."""

    def __init__(self, n_values: int) -> None:
        self._seen: set[int] = set()
        self._lines, self._urls, self._values = array("q"), list[str](), array("d")
        self._n_values = n_values

    def add(self, row: _Row) -> bool:
        """Add a row; False when its line has one already."""
        if row.line in self._seen:
            return False
        self._seen.add(row.line)
        self._lines.append(row.line)
        self._urls.append(row.url)
        self._values.extend(row.values)
        return True

    def by_line(self) -> tuple[NDArray[np.int64], list[str], NDArray[np.float64]]:
        """Lines, urls and values (row × name), sorted by line."""
        lines = np.array(self._lines)
        order = np.argsort(lines)
        values = np.array(self._values).reshape(len(lines), self._n_values)
        return lines[order], [self._urls[row] for row in order.tolist()], values[order]


def _known(wanted: Collection[str]) -> list[str]:
    unknown = sorted(set(wanted) - set(SCALARS))
    if unknown:
        raise BadInput(f"no such signal: {', '.join(unknown)}; there are {', '.join(SCALARS)}")
    return [name for name in SCALARS if name in set(wanted)]


def _row_reader(shard: Shard, names: list[str]) -> Callable[[bytes, str], _Row | None]:
    """Make a function that reads one line: it returns a row, or None for a line that is no
    signals record.
    """
    scores = [name for name in names if name != BULLET_LINES]
    bullets = BULLET_LINES in names
    decoder = msgspec.json.Decoder(
        _record_type([*scores, *(name for name in BULLET_NEEDS if bullets and name not in scores)])
    )
    line_of = line_reader(shard)

    def read_row(text: bytes, where: str) -> _Row | None:
        try:
            record: Any = decode_json(text, decoder, where=where)
        except CorruptFile:
            return None
        # `first_score` of each, but without half a million calls per shard.
        found = [
            spans[0][2] if spans else None
            for spans in astuple(record.quality_signals)[: len(scores)]
        ]
        if bullets:
            found.append(_bullets(record.quality_signals))
        values = [nan if value is None else value for value in found]
        return _Row(line_of(record.id, where), record.metadata.url, values)

    return read_row


def _record_type(fields: list[str]) -> type[msgspec.Struct]:
    """A record with only the fields that are needed: msgspec skips all others without building
    them.
    """
    spans = list[tuple[int, int, float | None]] | None
    signals = msgspec.defstruct(
        "WantedSignals", [(name, spans, None) for name in fields], frozen=True
    )
    metadata = msgspec.defstruct("Metadata", [("url", str, "")], frozen=True)
    return msgspec.defstruct(
        "SignalsRecord",
        [("id", str), ("metadata", metadata), ("quality_signals", signals)],
        frozen=True,
    )


def _bullets(signals: Any) -> float | None:
    return bullet_fraction(
        signals.rps_lines_start_with_bulletpoint or (), first_score(signals.ccnet_nlines or ())
    )


def _encodable(shard: Shard, line: int, record: DocumentRecord, signals: Signals) -> dict[str, Any]:
    document_id = shard.document_id(line)
    metadata = {
        "cc_segment": record.cc_segment,
        "cc_net_source": f"{shard.tag}.json.gz",
        "url": record.url,
        "source_domain": record.source_domain,
        "language": record.language,
        "snapshot_id": shard.snapshot,
    }
    ours: dict[str, Any] = {
        name: spans for name, spans in signals.items() if name not in CCNET_SIGNALS
    }
    return {
        "id": document_id,
        "id_int": id_int(document_id),
        "metadata": metadata,
        "quality_signals": ccnet_signals(record) | ours,
    }
