"""Signing one shard: its documents' MinHash signatures, and what else is made of their shingles and
words.

A text is normalized once for all of them.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.arrays import Bytes, Int64s
from lc_assets.builds.ahead import Making, finished
from lc_assets.builds.checks import DOCUMENTS_SUFFIX, DocumentsTask
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.tables import read_table
from lc_assets.counts import Counts
from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.redpajama.minhash import Signatures, SignaturesWriter, read_signatures
from lc_assets.lake.upstream import Upstream, UpstreamFile, with_retries
from lc_assets.publishing import publish
from lc_assets.records import record
from lc_assets.stages.documents.keyed_texts import OF_TEXT, SKETCH, digests_of, sketched
from lc_assets.stages.tokens.tokenized_text import SomeTexts, read_texts, texts_in
from lc_assets.text.duplicates.grams import Hashes
from lc_assets.text.duplicates.keys import (
    Shingles,
    shingles_each,
    text_keys,
)
from lc_assets.text.duplicates.minhash import (
    N_PERMUTATIONS,
    RPV2,
    MinHashScheme,
    Signature,
    fast_scheme,
    signatures_each,
)
from lc_assets.text.folding import normalized_each
from lc_assets.text.texts import chosen
from lc_assets.vocabulary import parse_document_id

MINHASH_SUFFIX = ".minhash.parquet"
TEXT_FACTS = pa.schema({"text_high": "uint64", "text_low": "uint64", "n_chars": "int64"})
"""The halves of a text's key, null where it has no words, and its characters as filtered."""
READ = ("id", "raw_content")
"""Columns of filtered documents that are read."""
MOST_BYTES = 16 << 20
"""Of a text that is signed while its document is filtered."""
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
    def beside(self) -> list[pa.Field]:
        """The columns that are written beside the signatures."""
        return columns_beside(sketched=self.sketched is not None, keyed=self.keyed)


def signatures_of(documents: Path, folder: Path) -> Path:
    """The file in a folder that holds the signatures of a shard of filtered documents."""
    return folder / documents.name.replace(DOCUMENTS_SUFFIX, MINHASH_SUFFIX)


def columns_beside(*, sketched: bool, keyed: bool) -> list[pa.Field]:
    """The columns beside signatures of texts that are sketched or keyed, too."""
    of_text = [field for field in OF_TEXT if sketched or field != SKETCH]
    return [*(of_text if sketched or keyed else []), *(TEXT_FACTS if keyed else [])]


@with_retries
def sign_shard(task: SignTask) -> Counts:
    """Sign one shard's documents, in their order."""
    signing = signing_shard(task)
    next(signing)
    signing.send(read_texts(task.documents, READ, task.privacy))
    return finished(signing)


def texts_of(task: SignTask, table: pa.Table) -> Iterator[SomeTexts]:
    """What `signing_shard` takes of some of a shard's documents.

    Raises:
        BadInput: when a text is too long to be in memory beside what filtering has of it.
    """
    if (longest := pc.max(pc.binary_length(table["raw_content"])).as_py()) > MOST_BYTES:
        raise BadInput(f"{task}: a text of {longest:,} bytes is not signed before it is written")
    return texts_in(table, READ, task.privacy)


def signing_shard(task: SignTask) -> Making:
    """Sign one shard's documents as they are sent, in their order."""
    counts = Counter({PUBLISHED: 0, COMPUTED: 0, TOO_SHORT: 0, BROKEN: 0, CHECKED: 0, DIFFERENT: 0})
    scheme: MinHashScheme = RPV2 if task.shingles is None else fast_scheme(task.shingles)
    published, shard_id = _published(task, counts), ""
    with (
        publish(task.folder / f"{task.name}{MINHASH_SUFFIX}") as staging,
        contextlib.closing(SignaturesWriter(staging, scheme.label, task.beside)) as writer,
    ):
        while (found := (yield)) is not None:
            for texts in found:
                ids: list[str] = texts.lines["id"].to_pylist()
                shard_id = shard_id or _shard_id(ids[0])
                normalized = normalized_each(*texts.tokenized)
                made, hashes = _of_texts(task, texts, normalized)
                del texts
                signed = _signed(
                    ids, normalized, scheme, hashes, published=published, counts=counts
                )
                writer.add(signed, shard_id, [made[field.name] for field in task.beside])
    n_documents = counts[PUBLISHED] + counts[COMPUTED] + counts[TOO_SHORT]
    return Counts(seen=n_documents, kept=n_documents, extra={"shards": 1, **counts})


def _of_texts(
    task: SignTask, texts: SomeTexts, normalized: tuple[Bytes, Int64s]
) -> tuple[dict[str, pa.Array], tuple[Hashes, Int64s] | None]:
    """The columns beside the signatures of some texts, by name; and hashes of their shingles, where
    these are needed.
    """
    made = digests_of(texts) if task.beside else {}
    shingles = task.sketched or task.shingles
    hashes = shingles_each(*normalized, shingles) if shingles else None
    if task.keyed:
        made |= _facts_of(texts, *normalized)
    if task.sketched and hashes is not None:
        made[SKETCH.name] = sketched(*hashes)
    return made, hashes


def _signed(
    ids: list[str],
    normalized: tuple[Bytes, Int64s],
    scheme: MinHashScheme,
    hashes: tuple[Hashes, Int64s] | None,
    *,
    published: Mapping[str, Signature | None],
    counts: Counter[str],
) -> Signatures:
    """Signatures of some documents: published ones, of which the first are checked, or computed."""
    known = [place for place, name in enumerate(ids) if name in published]
    again = known[: CHECKED_DOCUMENTS - counts[CHECKED]]
    places = sorted({*range(len(ids))}.difference(known).union(again))
    numbers, is_signed = found = signatures_each(*chosen(*normalized, places), scheme, hashes)
    if known:
        numbers = np.zeros((len(ids), N_PERMUTATIONS), np.uint32)
        is_signed = np.zeros(len(ids), np.bool_)
        numbers[places], is_signed[places] = found
    for place in known:
        theirs = published[ids[place]]
        if place in again:
            ours = numbers[place] if is_signed[place] else None
            counts[DIFFERENT] += not _same(theirs, ours)
        is_signed[place] = theirs is not None
        numbers[place] = 0 if theirs is None else theirs
    counts[CHECKED] += len(again)
    counts[TOO_SHORT] += len(ids) - int(is_signed.sum())
    counts[PUBLISHED] += int(is_signed[known].sum())
    counts[COMPUTED] += int(is_signed.sum() - is_signed[known].sum())
    return Signatures(ids=ids, numbers=numbers, is_signed=is_signed)


def text_facts(documents: Path, privacy: PrivacySettings) -> pa.Table:
    """What exact duplicates are found by of each text of a shard, as it is tokenized: `TEXT_FACTS`,
    a line per document.
    """
    tables = [TEXT_FACTS.empty_table()]
    for texts in read_texts(documents, ["raw_content"], privacy):
        facts = _facts_of(texts, *normalized_each(*texts.tokenized))
        tables.append(pa.table(facts, schema=TEXT_FACTS))
        del texts, facts
    return pa.concat_tables(tables)


def _facts_of(texts: SomeTexts, data: Bytes, ends: Int64s) -> dict[str, pa.Array]:
    """`TEXT_FACTS` of some texts, which are given normalized, too."""
    keys, is_keyed = text_keys(data, ends)
    high, low = (pa.array(half, mask=~is_keyed) for half in keys.T)
    n_chars = pc.cast(pc.utf8_length(texts.lines["raw_content"]), pa.int64())
    return {"text_high": high, "text_low": low, "n_chars": n_chars}


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
