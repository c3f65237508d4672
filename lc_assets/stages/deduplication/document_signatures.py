"""`document_signatures`: a MinHash signature for every filtered document, published ones where
there are any.

RedPajama-V2's signatures are read as they are and joined by id; what they lack is computed, bit for
bit the same. The beginning of every shard is held against our own computation: if upstream's
signatures were made otherwise, the shard's published and computed ones would not fit together, and
a claim says so.

Here too: signing the files of a plain corpus, which is what ``lc minhash`` does. Not here: what
follows from signatures that agree.
"""

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lc_assets.build.building import (
    build,
    run_shards,
)
from lc_assets.build.checks import (
    DOCUMENTS_SUFFIX,
    documents_files,
    reads_all_upstream_documents,
    shard_counts_match,
)
from lc_assets.build.sharding import Read, Reads, Sharding, documents_read
from lc_assets.build.stage import (
    SAME_SNAPSHOT,
    WORKERS,
    BuildContext,
    Built,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
    later,
)
from lc_assets.build.tables import read_lines, read_table
from lc_assets.counts import Counts
from lc_assets.errors import CorruptFile
from lc_assets.execution.executor import Executor
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.corpora.records import Unread
from lc_assets.formats.redpajama.minhash import (
    Signatures,
    SignaturesWriter,
    read_signatures,
    scheme_label_of,
)
from lc_assets.lake.staging import once
from lc_assets.lake.upstream import Upstream, UpstreamFile, with_retries
from lc_assets.lake.versions import Published
from lc_assets.publishing import finished, publish
from lc_assets.stages.corpus_runs import over_corpus
from lc_assets.stages.documents.filtered_documents import STAGE as FILTERED_DOCUMENTS
from lc_assets.stages.documents.raw_snapshot import STAGE as RAW_SNAPSHOT
from lc_assets.stages.documents.raw_snapshot import read_manifest
from lc_assets.text.duplicates.minhash import (
    FAST,
    RPV2,
    MinHashScheme,
    Signature,
    scheme_named,
    signature,
)
from lc_assets.vocabulary import SnapshotId

MINHASH_SUFFIX = ".minhash.parquet"
CHECKED_DOCUMENTS = 4
"""Published signatures of a shard that are computed too; four texts of 100 kB take 20 ms."""

PUBLISHED, COMPUTED, TOO_SHORT = (
    "signatures published",
    "signatures computed",
    "texts of fewer than 13 words",
)
BROKEN, CHECKED, DIFFERENT = (
    "published files broken",
    "published signatures checked",
    "published signatures that differ",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignTask:
    """One shard of filtered documents to be signed into ``folder``.

    Attributes:
        documents: the shard's table.
        published: RedPajama-V2's signatures of the shard, when they are wanted and there.
        scheme: label of the scheme that computes.
    """

    documents: Path
    folder: Path
    upstream: Upstream
    published: UpstreamFile | None
    scheme: str

    @property
    def name(self) -> str:
        """The shard's name."""
        return self.documents.name.removesuffix(DOCUMENTS_SUFFIX)

    def __str__(self) -> str:
        return str(self.documents)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusTask:
    """One file of a plain corpus to be signed into ``path``."""

    file: Path
    path: Path
    scheme: str
    text_field: str | None = None

    def __str__(self) -> str:
        return str(self.file)


def write_document_signatures(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the signatures of one snapshot's filtered documents.

    Raises:
        NotPublished: when the filtered documents are not there.
        Unreachable: when upstream does not deliver, also when asked again.
    """
    settings = context.recipe.document_signatures
    scheme = FAST if settings.signatures == "fast" else RPV2

    def fill(staging: StagingFolder) -> Counts:
        manifest = read_manifest(staging.inputs[f"raw_snapshot/{snapshot}"])
        published = {files.shard.name: files.parts.get("minhash") for files in manifest}
        wanted = published if settings.signatures == "published_or_computed" else {}
        tasks = [
            SignTask(
                documents=path,
                folder=staging.folder,
                upstream=context.upstream,
                published=wanted.get(path.name.removesuffix(DOCUMENTS_SUFFIX)),
                scheme=scheme.label,
            )
            for path in documents_files(staging.inputs[f"filtered_documents/{snapshot}"].folder)
        ]
        return run_shards(context, staging, sign_shard, tasks, what=f"sign {snapshot}")

    return build(context, STAGE, snapshot, fill)


def _reads(inputs: Mapping[str, Published], key: str) -> dict[str, Reads]:
    """The shard's filtered documents, and its published signatures where there are any."""
    published = {
        files.shard.name: files.parts.get("minhash")
        for files in read_manifest(inputs[f"raw_snapshot/{key}"])
    }
    documents = documents_read(inputs[f"filtered_documents/{key}"], DOCUMENTS_SUFFIX)
    return {name: (read, _minhash_read(published.get(name))) for name, read in documents.items()}


def _minhash_read(file: UpstreamFile | None) -> Read:
    return Read("minhash", "") if file is None else Read("minhash", file.identity, file.n_bytes)


def sign_corpus(
    sources: Sequence[Path],
    out: Path,
    *,
    executor: Executor,
    scheme: MinHashScheme = RPV2,
    text_field: str | None = None,
) -> Counts:
    """Sign plain files: ``{stem}.minhash.parquet`` for each.

    Args:
        sources: files and folders.
        out: folder of the results.
        executor: what runs the files.
        scheme: how to sign.
        text_field: where a record's text is.

    Raises:
        BadInput: when a source cannot be meant, or two files would be written to the same place.
        CorruptFile: when a file's container is damaged.
    """

    def task_of(file: Path, stem: Path) -> CorpusTask:
        return CorpusTask(
            file=file,
            path=stem.with_name(f"{stem.name}{MINHASH_SUFFIX}"),
            scheme=scheme.label,
            text_field=text_field,
        )

    return over_corpus(sources, out, task_of, sign_file, executor=executor, what="sign")


def sign_file(task: CorpusTask) -> Counts:
    """Sign one file of a plain corpus; a document that cannot be read is dropped, by why."""
    scheme, counts, dropped = scheme_named(task.scheme), Counter[str](), Counter[str]()
    with (
        publish(task.path) as staging,
        contextlib.closing(SignaturesWriter(staging, scheme.label)) as writer,
    ):
        for document in read_corpus(task.file, text_field=task.text_field):
            if isinstance(document, Unread):
                dropped[document.why] += 1
                continue
            numbers = signature(document.text, scheme)
            counts[TOO_SHORT if numbers is None else COMPUTED] += 1
            writer.add(document.id, _shard_of(document.id) or task.file.name, numbers)
    n_signed = counts.total()
    return Counts(
        seen=n_signed + dropped.total(),
        kept=n_signed,
        dropped=dict(dropped),
        failed_rules=dict(dropped),
        extra=dict(counts),
    )


@once
@with_retries
def sign_shard(task: SignTask) -> Counts:
    """Sign one shard's documents, in their order."""
    counts = Counter({PUBLISHED: 0, COMPUTED: 0, TOO_SHORT: 0, BROKEN: 0, CHECKED: 0, DIFFERENT: 0})
    scheme = scheme_named(task.scheme)
    published = _published(task, counts)
    path = task.folder / f"{task.name}{MINHASH_SUFFIX}"
    with (
        publish(path) as staging,
        contextlib.closing(SignaturesWriter(staging, scheme.label)) as writer,
    ):
        for line in read_lines(task.documents, ["id", "raw_content"], batch_lines=16):
            numbers = _numbers(line["id"], line["raw_content"], published, scheme, counts)
            writer.add(line["id"], _shard_of(line["id"]), numbers)
    n_documents = counts[PUBLISHED] + counts[COMPUTED] + counts[TOO_SHORT]
    return Counts(seen=n_documents, kept=n_documents, extra={"shards": 1, **counts})


def _numbers(
    document_id: str,
    text: str,
    published: "Found | None",
    scheme: MinHashScheme,
    counts: Counter[str],
) -> Signature | None:
    place = published.place_of.get(document_id) if published else None
    if published is None or place is None:
        numbers = signature(text, scheme)
        counts[TOO_SHORT if numbers is None else COMPUTED] += 1
        return numbers
    found = published.numbers[place] if published.is_signed[place] else None
    counts[TOO_SHORT if found is None else PUBLISHED] += 1
    if counts[CHECKED] < CHECKED_DOCUMENTS:
        counts[CHECKED] += 1
        counts[DIFFERENT] += not _same(found, signature(text, scheme))
    return found


@dataclass(frozen=True, slots=True)
class Found:
    """Published signatures of the documents that are wanted; half a kilobyte each."""

    place_of: dict[str, int]
    numbers: NDArray[np.uint32]
    is_signed: NDArray[np.bool_]


def _published(task: SignTask, counts: Counter[str]) -> Found | None:
    """The shard's published signatures; None when there is no file, or it is broken, which is
    counted.
    """
    if task.published is None:
        return None
    wanted = frozenset(read_table(task.documents, ["id"])["id"].to_pylist())
    where = f"{task.upstream.root}/{task.published.path}"
    try:
        with task.upstream.open(task.published.path) as stream:
            return _chosen([_only(part, wanted) for part in read_signatures(stream, where=where)])
    except CorruptFile:
        counts[BROKEN] += 1
        return None


def _only(part: Signatures, wanted: frozenset[str]) -> Signatures:
    places = [place for place, document_id in enumerate(part.ids) if document_id in wanted]
    return Signatures(
        ids=[part.ids[place] for place in places],
        numbers=part.numbers[places],
        is_signed=part.is_signed[places],
    )


def _chosen(parts: Sequence[Signatures]) -> Found:
    ids = [document_id for part in parts for document_id in part.ids]
    none = (np.empty((0, len(RPV2.factors)), dtype=np.uint32), np.empty(0, dtype=np.bool_))
    return Found(
        place_of={document_id: place for place, document_id in enumerate(ids)},
        numbers=np.concatenate([none[0], *(part.numbers for part in parts)]),
        is_signed=np.concatenate([none[1], *(part.is_signed for part in parts)]),
    )


def _same(left: Signature | None, right: Signature | None) -> bool:
    return left is right if left is None or right is None else np.array_equal(left, right)


def _shard_of(document_id: str) -> str:
    """The documents file that an id names; empty when it is no id of RedPajama-V2's layout."""
    shard_id, _, _ = document_id.rpartition("/")
    return shard_id if shard_id.endswith(".json.gz") else ""


def every_document_is_signed_or_short(check_input: CheckInput) -> CheckResult:
    """The files name the filtered documents, in their order; each has a signature, or fewer than 13
    words; bands agree.
    """
    wrong, n_signed, n_short = [], 0, 0
    for path in documents_files(check_input.only_input("filtered_documents").folder):
        file = check_input.folder / path.name.replace(DOCUMENTS_SUFFIX, MINHASH_SUFFIX)
        ids: list[str] = []
        for part in read_signatures(file, where=str(file)):
            ids += part.ids
            n_signed += int(part.is_signed.sum())
            n_short += int((~part.is_signed).sum())
        if ids != read_table(path, ["id"])["id"].to_pylist():
            wrong.append(f"{file.name} names other documents than {path.name}")
    extra = check_input.counts.extra
    if n_signed != extra.get(PUBLISHED, 0) + extra.get(COMPUTED, 0) or n_short != extra.get(
        TOO_SHORT, 0
    ):
        wrong.append(
            f"the files hold {n_signed:,} signatures and {n_short:,} short texts, the receipt "
            f"says {extra}"
        )
    return CheckResult(
        check="every_document_is_signed_or_short",
        passed=not wrong,
        message="; ".join(wrong)
        or f"{n_signed:,} signatures, {n_short:,} texts of fewer than 13 words",
        values={"signatures": n_signed, TOO_SHORT: n_short},
    )


def one_scheme_signed_all(check_input: CheckInput) -> CheckResult:
    """All files say that they were made by one scheme; signatures of two say nothing about each
    other.
    """
    labels = {
        scheme_label_of(path, where=str(path))
        for path in finished(check_input.folder.glob(f"*{MINHASH_SUFFIX}"))
    }
    return CheckResult(
        check="one_scheme_signed_all",
        passed=len(labels) < 2,
        message=f"signed by {' and '.join(sorted(labels)) or 'none: there are no shards'}",
    )


def the_published_signatures_are_ours(check_input: CheckInput) -> CheckResult:
    """Some published signatures of every shard were computed too, and are the same; broken files
    upstream are counted.
    """
    extra = check_input.counts.extra
    n_different, n_broken = extra.get(DIFFERENT, 0), extra.get(BROKEN, 0)
    return CheckResult(
        check="the_published_signatures_are_ours",
        passed=not n_different and not n_broken,
        message=f"{extra.get(PUBLISHED, 0):,} published, {extra.get(COMPUTED, 0):,} computed; "
        f"{n_different:,} of "
        f"{extra.get(CHECKED, 0):,} that were checked differ; {n_broken:,} files upstream are "
        "broken and were computed instead",
        values={
            name: extra.get(name, 0) for name in (PUBLISHED, COMPUTED, CHECKED, DIFFERENT, BROKEN)
        },
        severity="warning",
    )


STAGE = Stage(
    name="document_signatures",
    description=(
        "MinHash signatures of one snapshot's filtered documents: RedPajama-V2's where "
        "published, otherwise computed."
    ),
    code_version="1",
    reads={RAW_SNAPSHOT: SAME_SNAPSHOT, FILTERED_DOCUMENTS: SAME_SNAPSHOT},
    params=lambda recipe, _: {
        "signatures": recipe.document_signatures.signatures,
        "schemes": [RPV2.label, FAST.label],
    },
    checks=(
        reads_all_upstream_documents("filtered_documents"),
        every_document_is_signed_or_short,
        one_scheme_signed_all,
        the_published_signatures_are_ours,
        shard_counts_match,
    ),
    sharding=Sharding(reads=_reads, suffixes=(MINHASH_SUFFIX,)),
    group="documents",
    job="snapshot_documents",
    pool=WORKERS,
    kinds=("parquet",),
    write=write_document_signatures,
    show=later("lc_assets.stages.shown.removing:document_signatures"),
)
"""MinHash signatures of the documents worth keeping."""
