"""Lines of signals for documents of any corpus, as RedPajama-V2's own program writes them; the
package's docstring describes the record. For a document from elsewhere some fields are unknown:
their strings are empty, and ``ccnet_*`` signals of missing fields are left out, like signals that
were not computed.

Floats are printed as msgspec prints them, which is what wrote the published files: ``1e-8``, not
``1e-08``.

Not here: computing signals (`lc_assets.text.signals.signals`), whole shards of RedPajama-V2
    (`formats.redpajama.signals`).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from lc_assets.errors import BadInput
from lc_assets.formats.corpora.records import CorpusDocument, as_float
from lc_assets.formats.gzipping import gzipped
from lc_assets.formats.redpajama.documents import id_int
from lc_assets.formats.redpajama.signals import BUCKET_SCORES
from lc_assets.text.signals.signals import MeasuredSignals
from lc_assets.vocabulary import Shard

SUFFIX: Final = ".signals.json.gz"


class _Record(msgspec.Struct):
    """Fields that CCNet writes; of any type, because other records may use the names for other
    things.
    """

    cc_segment: Any = None
    length: Any = None
    original_length: Any = None
    nlines: Any = None
    original_nlines: Any = None
    language_score: Any = None
    perplexity: Any = None
    bucket: Any = None


_RECORD: Final = msgspec.json.Decoder(_Record)
_ENCODER: Final = msgspec.json.Encoder()


def signals_line(
    document: CorpusDocument, measured: MeasuredSignals, *, language: str, source_domain: str
) -> bytes:
    r"""Write the signals of one document: a line of JSON, with its newline.

    >>> from lc_assets.text.signals.signals import measure_signals
    >>> line = signals_line(CorpusDocument(id="7", text="Hi."), measure_signals("Hi."), language="en", source_domain="")
    >>> line[:19], msgspec.json.decode(line)["quality_signals"]["rps_doc_word_count"]
    (b'{"id":"7","id_int":', [[0, 3, 1]])
    """
    record = _RECORD.decode(document.rest)
    source, _, _ = document.id.rpartition("/")
    metadata = {
        "cc_segment": record.cc_segment if isinstance(record.cc_segment, str) else "",
        "cc_net_source": source,
        "url": document.url,
        "source_domain": source_domain,
        "language": language,
        "snapshot_id": _snapshot(source),
    }
    ccnet = {
        name: [(0, measured.n_chars, score)]
        for name, score in ccnet_scores(record, document.perplexity).items()
    }
    signals = ccnet | measured.spans()
    line = {
        "id": document.id,
        "id_int": id_int(document.id),
        "metadata": metadata,
        "quality_signals": signals,
    }
    return _ENCODER.encode(line) + b"\n"


def ccnet_scores(record: _Record, perplexity: float | None) -> Mapping[str, float]:
    """The scores that CCNet measured, from fields that exist and have the right type, in the
    published order.
    """
    values = {
        "ccnet_length": record.length,
        "ccnet_original_length": record.original_length,
        "ccnet_nlines": record.nlines,
        "ccnet_original_nlines": record.original_nlines,
        "ccnet_language_score": record.language_score,
        "ccnet_perplexity": record.perplexity if perplexity is None else perplexity,
        "ccnet_bucket": BUCKET_SCORES.get(record.bucket)
        if isinstance(record.bucket, str)
        else None,
    }
    return {
        name: number for name, value in values.items() if (number := as_float(value)) is not None
    }


def write_signal_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Write lines into a gzipped file."""
    with gzipped(path) as out:
        for line in lines:
            out.write(line)


def _snapshot(source: str) -> str:
    try:
        return Shard.parse(source.removesuffix(".json.gz")).snapshot
    except BadInput:
        return ""
