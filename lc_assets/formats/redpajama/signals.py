"""Quality signals of one shard: ``quality_signals/{tag}.signals.json.gz``, one record per line.

The record is in the package's docstring. Nine tenths of such a file are line signals that are
rarely needed; only requested signals are decoded.
"""

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.corpora.containers import CorpusDocument, as_float
from lc_assets.formats.redpajama.documents import DocumentRecord, id_int, line_reader
from lc_assets.formats.redpajama.lines import decode_json, read_lines, write_json_lines
from lc_assets.text.signals.names import BULLET_LINES, CCNET_SIGNALS, SCALARS, Signals
from lc_assets.text.signals.signals import MeasuredSignals, bullet_fraction, first_score
from lc_assets.vocabulary import Shard

BULLET_NEEDS: Final = ("rps_lines_start_with_bulletpoint", "ccnet_nlines")
BUCKET_SCORES: Final = {"head": 0.0, "middle": 1.0, "tail": 2.0}


@dataclass(frozen=True, slots=True, eq=False)
class SignalsTable:
    """The requested values of one shard, one row per signals record, sorted by the document's line.

    Attributes:
        lines: int64, 0-based line of each row's document in the documents file; ascending, no two
            equal.
        urls: of each row's document, from the signals file; for checking the join.
        columns: float64 values by name; NaN where a value is missing.
        n_undecodable: lines of the signals file that are not a signals record.
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

    def of_lines(self, lines: Sequence[int]) -> "SignalsTable":
        """The rows of some lines, which must exist; ascending."""
        rows = np.searchsorted(self.lines, lines)
        urls = [self.urls[row] for row in rows.tolist()]
        columns = {name: column[rows] for name, column in self.columns.items()}
        return SignalsTable(self.lines[rows], urls, columns, 0, 0)

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
    """Read the values named in ``wanted`` of a shard's documents.

    Args:
        stream: the gzipped file.
        shard: the shard of the signals.
        where: the file's name, for messages.
        wanted: names of `lc_assets.text.signals.names.SCALARS`.
        max_line_bytes: longest line that is read; longer ones are counted and skipped.

    Raises:
        BadInput: when a name is not a signal.
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
    write_json_lines(
        path,
        (
            _record(
                shard.document_id(line), len(record.raw_content), structs.asdict(record), signals
            )
            for line, record, signals in rows
        ),
    )


def signals_line(
    document: CorpusDocument, measured: MeasuredSignals, *, language: str, source_domain: str
) -> bytes:
    r"""Write the signals of a document of any corpus: a line of JSON, with its newline.

    Of fields that the document's record lacks, strings are empty and ``ccnet_*`` signals are left
    out. Floats are printed as msgspec prints them, which is what wrote the published files:
    ``1e-8``, not ``1e-08``.

    >>> from lc_assets.text.signals.signals import measure_signals
    >>> document, measured = CorpusDocument(id="7", text="Hi."), measure_signals("Hi.")
    >>> line = signals_line(document, measured, language="en", source_domain="")
    >>> line[:19], msgspec.json.decode(line)["quality_signals"]["rps_doc_word_count"]
    (b'{"id":"7","id_int":', [[0, 3, 1]])
    """
    fields = record_fields(document) | {
        "url": document.url,
        "language": language,
        "source_domain": source_domain,
    }
    record = _record(document.id, measured.n_chars, fields, measured.spans())
    return msgspec.json.encode(record) + b"\n"


def record_fields(document: CorpusDocument) -> dict[str, Any]:
    """The fields that CCNet writes, of a record that may have them or not; of any type, because
    other records may use the names for other things.
    """
    fields = structs.asdict(_CCNET_FIELDS.decode(document.rest))
    return fields if document.perplexity is None else fields | {"perplexity": document.perplexity}


def ccnet_scores(fields: Mapping[str, Any]) -> dict[str, float | None]:
    """CCNet's values of a record, as floats in the published order; None where a field is missing
    or is not a number.

    >>> ccnet_scores({"nlines": 1, "bucket": "middle"})["ccnet_bucket"]
    1.0
    """
    found = {name: fields.get(name.removeprefix("ccnet_")) for name in CCNET_SIGNALS}
    if isinstance(bucket := found["ccnet_bucket"], str):
        found["ccnet_bucket"] = BUCKET_SCORES.get(bucket)
    return {name: as_float(value) for name, value in found.items()}


class _CcnetFields(msgspec.Struct):
    cc_segment: Any = None
    length: Any = None
    original_length: Any = None
    nlines: Any = None
    original_nlines: Any = None
    language_score: Any = None
    perplexity: Any = None
    bucket: Any = None


_CCNET_FIELDS: Final = msgspec.json.Decoder(_CcnetFields)


def _record(
    document_id: str, n_chars: int, fields: Mapping[str, Any], signals: Signals
) -> dict[str, Any]:
    """One record of a signals file, in the published order."""
    source, _, _ = document_id.rpartition("/")
    segment = fields["cc_segment"]
    ccnet = {
        name: [(0, n_chars, score)]
        for name, score in ccnet_scores(fields).items()
        if score is not None
    }
    return {
        "id": document_id,
        "id_int": id_int(document_id),
        "metadata": {
            "cc_segment": segment if isinstance(segment, str) else "",
            "cc_net_source": source,
            "url": fields["url"],
            "source_domain": fields["source_domain"],
            "language": fields["language"],
            "snapshot_id": _snapshot(source),
        },
        "quality_signals": ccnet
        | {name: spans for name, spans in signals.items() if name not in CCNET_SIGNALS},
    }


def _snapshot(source: str) -> str:
    try:
        return Shard.parse(source.removesuffix(".json.gz")).snapshot
    except BadInput:
        return ""


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
    """Make a function that reads one line: it returns a row, or None for a line that is not a
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
            for spans in structs.astuple(record.quality_signals)[: len(scores)]
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
