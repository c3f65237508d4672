"""A pass over one file of a corpus: keys, date, length and bands of every document. Texts are not
kept.

A document of fewer words than a shingle is not signed, so it is nobody's near duplicate, only an
exact one.
"""

import contextlib
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from lc_assets.counts import Counts
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.corpora.records import CorpusDocument, Unread
from lc_assets.publishing import publish
from lc_assets.stages.deduplication.index import PLACE_BITS, facts_path, publish_bands
from lc_assets.stages.deduplication.settings import DIGEST, FACTS, NEAR, TEXT, URL
from lc_assets.stages.deduplication.stored_signatures import StoredSignatures
from lc_assets.stages.tables import TableWriter
from lc_assets.text.duplicates.keys import Key, band_keys, digest_key, text_key, url_key

Signer = Callable[[str], NDArray[np.uint32] | None]
"""Signs a text: ``(bands, rows)`` uint32; None for one of too few words. A module-level function:
it goes to workers.
"""

TOO_FEW_WORDS: Final = "too few words to be signed"
SIGNATURES_AT_ONCE: Final = 1024
LINE_BYTES: Final = 160
"""About what a line of facts takes."""


class _Rest(msgspec.Struct):
    digest: Any = ""


_REST: Final = msgspec.json.Decoder(_Rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsTask:
    """One file to be read.

    Attributes:
        path: the file.
        number: its number in the index.
        source: name of the source that it belongs to.
        folder: of the index.
        kinds: what is asked for, of `settings.KINDS`; other keys are null.
        n_bands: bands of a signature.
        sign: signs a text.
        stored: folder of signatures that are looked up by id instead; None: none is.
        stem: path of the file below its source, without the ends of its name; by it stored
            signatures are found.
        text_field: see `read_corpus`.
    """

    path: Path
    number: int
    source: str
    folder: Path
    kinds: tuple[str, ...]
    n_bands: int
    sign: Signer
    stored: Path | None = None
    stem: str = ""
    text_field: str | None = None

    def __str__(self) -> str:
        return str(self.path)

    def signer(self) -> Callable[[CorpusDocument], NDArray[np.uint32] | None]:
        """Signs a document, or looks its signature up."""
        if self.stored is None:
            return lambda document: self.sign(document.text)
        found = StoredSignatures(self.stored, self.stem, self.n_bands)
        return lambda document: found.of(document.id)


def gather_facts(task: FactsTask) -> Counts:
    """Publish facts and bands of one file; a record that cannot be read is counted by its
    reason.
    """
    unread: Counter[str] = Counter()
    bands = _Bands(task.n_bands)
    n_chars, signature_of = 0, task.signer()
    with (
        publish(facts_path(task.folder, task.number)) as draft,
        contextlib.closing(TableWriter(draft, FACTS)) as table,
    ):
        for place, document in enumerate(read_corpus(task.path, text_field=task.text_field)):
            if isinstance(document, Unread):
                unread[document.why] += 1
                bands.add(None)
                continue
            table.add(_facts(task, place, document), n_bytes=LINE_BYTES)
            n_chars += len(document.text)
            bands.add(signature_of(document) if NEAR in task.kinds else None)
    keys, signed = bands.all()
    n_seen, n_signed = len(signed) - unread.total(), int(signed.sum())
    if NEAR in task.kinds:
        publish_bands(task.folder, task.number, keys, signed)
    extra = {
        "characters": n_chars,
        "signed": n_signed,
        TOO_FEW_WORDS: n_seen - n_signed if NEAR in task.kinds else 0,
        "places": len(signed),
    }
    return Counts(
        seen=len(signed), kept=n_seen, dropped=dict(unread), failed_rules=dict(unread), extra=extra
    )


class _Bands:
    """Keys of the bands of a file's documents; signatures become keys some at a time, which NumPy
    does in a tenth of the time.
    """

    def __init__(self, n_bands: int) -> None:
        self._keys = [np.empty((0, n_bands), np.uint64)]
        self._waiting: list[NDArray[np.uint32]] = []
        self._signed = array("b")

    def add(self, signature: NDArray[np.uint32] | None) -> None:
        """Add the next document; None when it is not signed."""
        self._signed.append(signature is not None)
        if signature is not None:
            self._waiting.append(signature)
            if len(self._waiting) == SIGNATURES_AT_ONCE:
                self._flush()

    def all(self) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Keys of all documents, zeros where there is no signature; and which have one."""
        self._flush()
        signed = np.array(self._signed, dtype=np.bool_)
        keys = np.zeros((len(signed), self._keys[0].shape[1]), np.uint64)
        keys[signed] = np.concatenate(self._keys)
        return keys, signed

    def _flush(self) -> None:
        if self._waiting:
            self._keys.append(band_keys(np.array(self._waiting)))
            self._waiting.clear()


def documents_of(path: Path, text_field: str | None) -> Iterator[tuple[int, CorpusDocument]]:
    """The readable documents of a file, with their places; the same in every pass."""
    for place, document in enumerate(read_corpus(path, text_field=text_field)):
        if isinstance(document, CorpusDocument):
            yield place, document


def _facts(task: FactsTask, place: int, document: CorpusDocument) -> dict[str, Any]:
    keys = {
        DIGEST: digest_key(_digest(document)) if DIGEST in task.kinds else None,
        TEXT: text_key(document.text) if TEXT in task.kinds or NEAR in task.kinds else None,
        URL: url_key(document.url) if URL in task.kinds and document.url else None,
    }
    return {
        "number": task.number << PLACE_BITS | place,
        "id": document.id,
        "source": task.source,
        "date": document.date,
        "n_chars": len(document.text),
        "perplexity": None
        if document.perplexity is None or math.isnan(document.perplexity)
        else document.perplexity,
        **{name: half for kind, key in keys.items() for name, half in _halves(kind, key)},
    }


def _halves(kind: str, key: Key | None) -> list[tuple[str, int | None]]:
    high, low = key or (None, None)
    return [(f"{kind}_high", high), (f"{kind}_low", low)]


def _digest(document: CorpusDocument) -> str:
    digest = _REST.decode(document.rest).digest
    return digest if isinstance(digest, str) else ""
