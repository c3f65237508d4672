"""Signing one shard: its documents' MinHash signatures, and what else is made of their shingles and
words.

A text is normalized once for all of them.
"""

import contextlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets.arrays import UInt64s
from lc_assets.builds.checks import DocumentsTask
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.tables import read_lines, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.errors import CorruptFile
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.formats.redpajama.minhash import SignaturesWriter, read_signatures
from lc_assets.lake.upstream import Upstream, UpstreamFile, with_retries
from lc_assets.publishing import publish
from lc_assets.records import record
from lc_assets.stages.documents.keyed_texts import OF_TEXT, SKETCH, digests_of
from lc_assets.stages.tokens.tokenized_text import text_columns, tokenized_utf8
from lc_assets.text.duplicates.keys import (
    PUBLISHED_SHINGLES,
    Key,
    Shingles,
    keyed_and_shingled,
    shingled,
    text_key,
)
from lc_assets.text.duplicates.minhash import (
    RPV2,
    MinHashScheme,
    Signature,
    fast_scheme,
    signature,
)
from lc_assets.text.duplicates.sketches import sketch_of
from lc_assets.vocabulary import parse_document_id

MINHASH_SUFFIX, DIGESTS_SUFFIX = ".minhash.parquet", ".digests.parquet"
"""Of signatures, and of the columns `OF_TEXT`."""
TEXTS_SUFFIX = ".texts.npy"
"""Of the arrays of `text_facts`."""
CHECKED_DOCUMENTS = 4
"""Published signatures of a shard that are computed too; four texts of 100 kB take 20 ms."""

PUBLISHED, COMPUTED, TOO_SHORT = (
    "signatures published",
    "signatures computed",
    "texts shorter than a shingle",
)
BROKEN, CHECKED, DIFFERENT = (
    "published files broken",
    "published signatures checked",
    "published signatures that differ",
)

TextFact = tuple[int, int, int]
"""The halves of a text's key, zeros where it has no words, and its characters as filtered."""


@record
class SignTask(DocumentsTask):
    """One shard of filtered documents to be signed into ``folder``.

    Attributes:
        published: RedPajama-V2's signatures of the shard, if enabled and available.
        shingles: of the scheme that computes; None for RedPajama-V2's.
        sketched: shingles of the sketches; None where there are none.
        keyed: whether the keys of texts are written.
        privacy: what is replaced in a text before it is signed.
    """

    upstream: Upstream
    published: UpstreamFile | None
    shingles: Shingles | None
    sketched: Shingles | None
    keyed: bool
    privacy: PrivacySettings

    @property
    def digests(self) -> list[pa.Field]:
        """Columns of the digests that are written, where texts are sketched or keyed."""
        written = [field for field in OF_TEXT if self.sketched or field != SKETCH]
        return written if self.sketched or self.keyed else []


@with_retries
def sign_shard(task: SignTask) -> Counts:
    """Sign one shard's documents, in their order."""
    counts = Counter({PUBLISHED: 0, COMPUTED: 0, TOO_SHORT: 0, BROKEN: 0, CHECKED: 0, DIFFERENT: 0})
    scheme: MinHashScheme = RPV2 if task.shingles is None else fast_scheme(task.shingles)
    published, keys, of_texts = _published(task, counts), list[TextFact](), list[dict[str, Any]]()
    path, shingles = task.folder / f"{task.name}{MINHASH_SUFFIX}", task.sketched or task.shingles
    shard_id, digests = "", task.digests
    with (
        publish(path) as staging,
        contextlib.closing(SignaturesWriter(staging, scheme.label)) as writer,
    ):
        columns = ["id", *text_columns(task.privacy)]
        for line in read_lines(task.documents, columns, batch_lines=16, utf8="raw_content"):
            name, (text, _) = line["id"], tokenized_utf8(line, task.privacy)
            hashes = None
            if task.keyed:
                key, hashes = keyed_and_shingled(text, shingles or PUBLISHED_SHINGLES)
                keys.append(_fact(key, line["raw_content"]))
            elif shingles:
                hashes = shingled(text, shingles)
            if digests:
                of_texts.append(digests_of(line["raw_content"], text))
            if task.sketched and hashes is not None:
                of_texts[-1][SKETCH.name] = sketch_of(hashes).tobytes()
            numbers = published[name] if name in published else signature(text, scheme, hashes)
            if name in published and counts[CHECKED] < CHECKED_DOCUMENTS:
                counts[CHECKED] += 1
                counts[DIFFERENT] += not _same(numbers, signature(text, scheme))
            origin = PUBLISHED if name in published else COMPUTED
            counts[TOO_SHORT if numbers is None else origin] += 1
            shard_id = shard_id or _shard_id(name)
            writer.add(name, shard_id, numbers)
    if digests:
        path = task.folder / f"{task.name}{DIGESTS_SUFFIX}"
        write_table(path, pa.Table.from_pylist(of_texts, pa.schema(digests)))
    if task.keyed:
        write_npy(task.folder / f"{task.name}{TEXTS_SUFFIX}", _rows(keys))
    n_documents = counts[PUBLISHED] + counts[COMPUTED] + counts[TOO_SHORT]
    return Counts(seen=n_documents, kept=n_documents, extra={"shards": 1, **counts})


def text_facts(documents: Path, privacy: PrivacySettings) -> UInt64s:
    """What exact duplicates are found by of each text of a shard, as it is tokenized: uint64,
    ``(documents, 3)``, a `TextFact` each.
    """
    lines = read_lines(documents, text_columns(privacy), batch_lines=16, utf8="raw_content")
    return _rows(
        [_fact(text_key(tokenized_utf8(line, privacy)[0]), line["raw_content"]) for line in lines]
    )


def n_text_facts(path: Path) -> int:
    """Number of texts in a file of `text_facts`; negative where it holds something else."""
    shape = read_npy(path).shape
    return shape[0] if shape[1:] == (3,) else -1


def _fact(key: Key | None, raw: bytes) -> TextFact:
    return (*(key or (0, 0)), len(raw.decode()))


def _rows(facts: Sequence[TextFact]) -> UInt64s:
    return np.array(facts, np.uint64).reshape(-1, 3)


def _published(task: SignTask, counts: Counter[str]) -> dict[str, Signature | None]:
    """Published signatures of the shard's documents, half a kilobyte each; none if the file is
    missing or broken, which is counted.
    """
    found: dict[str, Signature | None] = {}
    if task.published is None:
        return found
    wanted = frozenset(read_table(task.documents, ["id"])["id"].to_pylist())
    where = f"{task.upstream.root}/{task.published.path}"
    try:
        with task.upstream.open(task.published.path) as stream:
            for part in read_signatures(stream, where=where):
                for name, numbers, signed in zip(
                    part.ids, part.numbers, part.is_signed.tolist(), strict=True
                ):
                    if name in wanted:
                        found[name] = numbers.copy() if signed else None
    except CorruptFile:
        counts[BROKEN] += 1
        return {}
    return found


def _same(left: Signature | None, right: Signature | None) -> bool:
    return left is right if left is None or right is None else np.array_equal(left, right)


def _shard_id(name: str) -> str:
    """The file of a document: RedPajama-V2's, or partition and file of another source."""
    shard, _ = parse_document_id(name)
    return f"{shard.tag}.json.gz" if shard.number >= 0 else shard.tag
