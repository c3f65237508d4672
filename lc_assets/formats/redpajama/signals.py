"""Quality signals of one shard: ``quality_signals/{tag}.signals.json.gz``, one record per line.

The record is in the package's docstring. Nine tenths of such a file are line signals that are
rarely needed; only requested signals are decoded, and of a long file's lines as they are usually
written not even these (`lc_assets.formats.redpajama.signal_lines`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import nan
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
from msgspec import structs

from lc_assets.arrays import Floats, Int64s
from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.corpora.containers import CorpusDocument, as_float
from lc_assets.formats.redpajama.documents import DocumentRecord, id_int, line_reader
from lc_assets.formats.redpajama.lines import decode_json, read_lines, write_json_lines
from lc_assets.formats.redpajama.signal_lines import BULLET_NEEDS, NOT_READ, LineScanner, Scanned
from lc_assets.records import distinct
from lc_assets.text.signals.as_json import spans_as_json
from lc_assets.text.signals.names import BULLET_LINES, CCNET_SIGNALS, SCALARS, Signals
from lc_assets.text.signals.signals import MeasuredTexts, bullet_fraction, first_score
from lc_assets.text.texts import together
from lc_assets.vocabulary import Shard

_FIELDS_OF_CCNET = {name: name.removeprefix("ccnet_") for name in CCNET_SIGNALS}
BUCKET_SCORES = {"head": 0.0, "middle": 1.0, "tail": 2.0}


@distinct
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

    lines: Int64s
    urls: list[str]
    columns: dict[str, Floats]
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


def read_signals(
    stream: BinaryIO, *, shard: Shard, where: str, names: Collection[str], max_line_bytes: int
) -> SignalsTable:
    """Read the values named in ``names`` of a shard's documents.

    Args:
        stream: the gzipped file.
        shard: the shard of the signals.
        where: the file's name, for messages.
        names: of `lc_assets.text.signals.names.SCALARS`.
        max_line_bytes: longest line that is read; longer ones are counted and skipped.

    Raises:
        CorruptFile: when the file is damaged, holds an id of another shard, or an id twice.
    """
    known = [name for name in SCALARS if name in names]
    decoder, line_of = msgspec.json.Decoder(_record_type(known)), line_reader(shard)
    scanner = LineScanner(known, f"{shard.tag}.json.gz/")
    parts = [Scanned(np.empty(0, np.int64), [], np.empty((0, len(known))))]
    numbers = [np.empty(0, np.int64)]
    n_undecodable = n_oversize = 0
    batches = together(
        read_lines(stream, where=where, max_line_bytes=max_line_bytes),
        lambda numbered: len(numbered[1] or b""),
    )
    for place, batch in enumerate(batches):
        # The first lines are decoded, so that a short file does without the kernel.
        own = scanner.scan([(text or b"") if place else b"" for _, text in batch])
        for row in np.flatnonzero(own.lines == NOT_READ).tolist():
            number, text = batch[row]
            if text is None:
                n_oversize += 1
                continue
            at = f"{where}, line {number}"
            try:
                record: Any = decode_json(text, decoder, where=at)
            except CorruptFile:
                n_undecodable += 1
                continue
            own.lines[row], own.urls[row] = line_of(record.id, at), record.metadata.url
            own.scores[row] = list(_scores(record.quality_signals, known))
        read = np.flatnonzero(own.lines != NOT_READ)
        urls = [own.urls[row] for row in read.tolist()]
        parts.append(Scanned(own.lines[read], urls, own.scores[read]))
        numbers.append(batch[0][0] + read)
    found = Scanned(
        np.concatenate([part.lines for part in parts]),
        [url for part in parts for url in part.urls],
        np.concatenate([part.scores for part in parts]),
    )
    order = _order(found.lines, np.concatenate(numbers), shard, where)
    return SignalsTable(
        lines=found.lines[order],
        urls=[found.urls[row] for row in order.tolist()],
        columns={name: found.scores[order, at] for at, name in enumerate(known)},
        n_undecodable=n_undecodable,
        n_oversize=n_oversize,
    )


def _order(lines: Int64s, numbers: Int64s, shard: Shard, where: str) -> Int64s:
    """The rows by their documents' lines; ``numbers`` are of their own lines.

    Raises:
        CorruptFile: when two are of one document.
    """
    order: Int64s = np.argsort(lines, kind="stable")
    again = order[1:][np.diff(lines[order]) == 0]
    if len(again):
        row = again.min()
        raise CorruptFile(
            f"{where}, line {numbers[row]}: the signals of {shard.document_id(int(lines[row]))} a "
            "second time; expected each once"
        )
    return order


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
                shard.document_id(line),
                len(record.raw_content),
                structs.asdict(record),
                {name: spans for name, spans in signals.items() if name not in CCNET_SIGNALS},
            )
            for line, record, signals in rows
        ),
    )


def signals_lines(
    documents: Sequence[CorpusDocument],
    measured: MeasuredTexts,
    source_domains: Sequence[str],
    *,
    language: str,
) -> bytes:
    r"""Write the signals of some documents of any corpus: a line of JSON of each, with its newline.

    Of fields that a document's record lacks, strings are empty and ``ccnet_*`` signals are left
    out. Floats are printed as msgspec prints them, which is what wrote the published files:
    ``1e-8``, not ``1e-08``.

    >>> from lc_assets.text.signals.signals import signals_of_each
    >>> from lc_assets.text.texts import Texts
    >>> measured = signals_of_each(Texts(["Hi."]), [""])
    >>> line = signals_lines([CorpusDocument(id="7", text="Hi.")], measured, [""], language="en")
    >>> line[:19], msgspec.json.decode(line)["quality_signals"]["rps_doc_word_count"]
    (b'{"id":"7","id_int":', [[0, 3, 1]])
    """
    written = list[bytes]()
    for document, domain, spans in zip(
        documents, source_domains, spans_as_json(measured), strict=True
    ):
        stated = {"url": document.url, "language": language, "source_domain": domain}
        fields = record_fields(document) | stated
        head = msgspec.json.encode(_record(document.id, len(document.text), fields, {}))
        comma = b"" if head.endswith(b"{}}") else b","
        written += head[:-2], comma, spans, b"}}\n"
    return b"".join(written)


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
    if isinstance(bucket := fields.get("bucket"), str):
        fields = {**fields, "bucket": BUCKET_SCORES.get(bucket)}
    return {
        name: None if (value := fields.get(field)) is None else as_float(value)
        for name, field in _FIELDS_OF_CCNET.items()
    }


CCNET_FIELDS = ("cc_segment", *_FIELDS_OF_CCNET.values())
"""Names of the fields that CCNet writes."""

_CCNET_FIELDS = msgspec.json.Decoder(
    msgspec.defstruct("CcnetFields", [(name, Any, None) for name in CCNET_FIELDS])
)


def _record(
    document_id: str, n_chars: int, fields: Mapping[str, Any], signals: Signals
) -> dict[str, Any]:
    """One record of a signals file, in the published order; ``signals`` are all but CCNet's."""
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
        "quality_signals": {**ccnet, **signals},
    }


@lru_cache(maxsize=1 << 10)
def _snapshot(source: str) -> str:
    try:
        return Shard.parse(source.removesuffix(".json.gz")).snapshot
    except BadInput:
        return ""


def _record_type(names: list[str]) -> type[msgspec.Struct]:
    """A record with only the signals that are needed: msgspec skips all others without building
    them.
    """
    spans = list[tuple[int, int, float | None]] | None
    needed = {*names, *BULLET_NEEDS} - {BULLET_LINES} if BULLET_LINES in names else names
    signals = msgspec.defstruct("Signals", [(name, spans, None) for name in needed], frozen=True)
    metadata = msgspec.defstruct("Metadata", [("url", str, "")], frozen=True)
    return msgspec.defstruct(
        "SignalsRecord",
        [("id", str), ("metadata", metadata), ("quality_signals", signals)],
        frozen=True,
    )


def _scores(signals: Any, names: list[str]) -> Iterator[float]:
    """The scores of a record; NaN where one is missing."""
    for name in names:
        if name == BULLET_LINES:
            starts, n_lines = (getattr(signals, need) or () for need in BULLET_NEEDS)
            score = bullet_fraction(starts, first_score(n_lines))
        else:
            spans = getattr(signals, name)
            score = spans[0][2] if spans else None
        yield nan if score is None else score
