"""`document_signatures`: a MinHash signature of every filtered document, published or computed.

A text is signed as it is tokenized. RedPajama-V2's signatures are of the published texts: they are
read where no personal data are replaced, and joined by id; missing ones are computed bit for bit as
upstream does.
Where `document_keys` needs sketches, they are made of the same shingles; where exact duplicates are
removed too, there are the keys of the texts (`lc_assets.stages.deduplication.signing.TEXT_FACTS`).
In either case there are digests of the texts, too (`keyed_texts.OF_TEXT`), in columns of the same
table.
The signatures of the first documents of every shard are also recomputed: if upstream's scheme
differs, published and computed ones are not comparable, and a check fails.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pyarrow as pa

from lc_assets.builds.ahead import Ahead
from lc_assets.builds.building import run_shards
from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.checks import (
    DOCUMENTS_SUFFIX,
    documents_files,
    reads_all_upstream_documents,
    shard_counts_match,
)
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.sharding import Read, Reads, Sharding, documents_read
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import read_schema, read_table
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.redpajama.minhash import (
    SCHEMA,
    read_signatures,
    scheme_label_of,
)
from lc_assets.lake.receipts import Fingerprint
from lc_assets.lake.upstream import UpstreamFile
from lc_assets.lake.versions import Published
from lc_assets.publishing import finished
from lc_assets.stages.deduplication.signing import (
    BROKEN,
    CHECKED,
    COMPUTED,
    DIFFERENT,
    MINHASH_SUFFIX,
    PUBLISHED,
    TOO_SHORT,
    SignTask,
    columns_beside,
    sign_shard,
    signatures_of,
    signing_shard,
    texts_of,
)
from lc_assets.stages.documents.keyed_texts import are_sketched
from lc_assets.stages.documents.raw_snapshot import read_manifest
from lc_assets.stages.tokens.tokenized_text import privacy_params
from lc_assets.text.duplicates.keys import PUBLISHED_SHINGLES, Shingles
from lc_assets.text.duplicates.minhash import FAST, RPV2
from lc_assets.text.duplicates.sketches import SKETCH_HASHES


def origin_of(recipe: Recipe) -> str:
    """The setting ``signatures``, with ``auto`` resolved: one scheme for all snapshots."""
    chosen = recipe.document_signatures.signatures
    if chosen != "auto":
        return chosen
    return "published_or_computed" if recipe.raw_snapshot.minhash else "fast"


def shingles_of(recipe: Recipe) -> Shingles:
    """The shingles of all signatures.

    Raises:
        BadInput: when they are not RedPajama-V2's, though its signatures are wanted.
    """
    settings = recipe.document_signatures
    shingles = Shingles(settings.shingle_size, settings.shingle_of)
    if shingles != PUBLISHED_SHINGLES and origin_of(recipe) != "fast":
        raise BadInput(
            "document_signatures: RedPajama-V2's signatures are of 13 words; leave out "
            'shingle_size and shingle_of, or set signatures = "fast"'
        )
    return shingles


def digests_are_published(recipe: Recipe) -> bool:
    """Whether texts are digested as they are signed: where they are sketched or keyed too."""
    return texts_are_sketched(recipe) or texts_are_keyed(recipe)


def texts_are_sketched(recipe: Recipe) -> bool:
    """Whether texts are sketched as they are signed: where both are needed."""
    return are_sketched(recipe) and recipe.near_duplicate_pairs.near


def texts_are_keyed(recipe: Recipe) -> bool:
    """Whether texts get their keys as they are signed: where both are needed."""
    return bool(recipe.removed_documents.exact) and recipe.near_duplicate_pairs.near


def write_document_signatures(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the signatures of one snapshot's filtered documents.

    Raises:
        Unreachable: when upstream fails after retries.
    """
    documents = documents_files(staging.own("filtered_documents").folder)
    tasks = _tasks(context, staging, documents, staging.folder)
    return run_shards(context, staging, sign_shard, tasks, what=f"sign {staging.key}")


def _tasks(
    context: BuildContext, staging: StagingFolder, documents: Iterable[Path], folder: Path
) -> list[SignTask]:
    """A task per table of filtered documents, into a folder."""
    origin, privacy = origin_of(context.recipe), context.recipe.token_documents.privacy
    shingles = shingles_of(context.recipe)
    are_read = origin == "published_or_computed" and not privacy.replace
    wanted = _published_files(staging.inputs, staging.key) if are_read else {}
    return [
        SignTask(
            documents=path,
            folder=folder,
            upstream=context.upstream,
            published=wanted.get(path.name.removesuffix(DOCUMENTS_SUFFIX)),
            shingles=shingles if origin == "fast" else None,
            sketched=shingles if texts_are_sketched(context.recipe) else None,
            keyed=texts_are_keyed(context.recipe),
            privacy=privacy,
        )
        for path in documents
    ]


def _ahead(
    context: BuildContext, staging: StagingFolder, made: Fingerprint, folder: Path
) -> dict[str, Ahead]:
    """Shards whose documents are about to be filtered, and whose signatures are not published."""
    if staging.fingerprint.stage != "filtered_documents":
        return {}
    files = _published_files(staging.inputs, staging.key)
    documents = [staging.folder / f"{name}{DOCUMENTS_SUFFIX}" for name in files]
    return {
        task.name: Ahead(
            fingerprint=made,
            table=task.documents.name,
            beside=(_signatures_read(files[task.name]),),
            task=task,
            files=(f"{task.name}{MINHASH_SUFFIX}",),
            begin=signing_shard,
            read=texts_of,
        )
        for task in _tasks(context, staging, documents, folder)
        if task.published is None
    }


def _published_files(
    inputs: Mapping[str, Published], snapshot: str
) -> dict[str, UpstreamFile | None]:
    """RedPajama-V2's files of signatures, by shard."""
    manifest = read_manifest(inputs[f"raw_snapshot/{snapshot}"])
    return {files.shard.name: files.parts.get("minhash") for files in manifest}


def _reads(inputs: Mapping[str, Published], key: str) -> dict[str, Reads]:
    """The shard's filtered documents, and its published signatures where there are any."""
    found: dict[str, Reads] = {}
    published = _published_files(inputs, key)
    documents = documents_read(inputs[f"filtered_documents/{key}"], DOCUMENTS_SUFFIX)
    for name, read in documents.items():
        found[name] = read, _signatures_read(published.get(name))
    return found


def _signatures_read(file: UpstreamFile | None) -> Read:
    return Read("minhash", file.identity, file.n_bytes) if file else Read("minhash", "")


def every_document_is_signed_or_short(check_input: CheckInput) -> CheckResult:
    """The files list the filtered documents, in order; each has a signature or is too short,
    and bands agree; each has a sketch and a key of its text, where there are any.
    """
    params = check_input.fingerprint.params
    beside = columns_beside(sketched="sketches" in params, keyed="texts" in params)
    found = by_workers(
        check_input,
        partial(_signed_or_short, folder=check_input.folder, beside=beside),
        documents_files(check_input.only_input("filtered_documents").folder),
    )
    wrong = [words for complaints, _, _ in found for words in complaints]
    n_signed, n_short = sum(n for _, n, _ in found), sum(n for _, _, n in found)
    counted = Counter(check_input.counts.extra)
    if (n_signed, n_short) != (counted[PUBLISHED] + counted[COMPUTED], counted[TOO_SHORT]):
        wrong.append(
            f"the files hold {n_signed:,} signatures and {n_short:,} short texts, the receipt "
            f"says {dict(counted)}"
        )
    return CheckResult(
        passed=not wrong,
        message="; ".join(wrong) or f"{n_signed:,} signatures, {n_short:,} {TOO_SHORT}",
        values={"signatures": n_signed, TOO_SHORT: n_short},
    )


def _signed_or_short(
    documents: Path, folder: Path, *, beside: Sequence[pa.Field]
) -> tuple[list[str], int, int]:
    """Of a shard with signatures in a folder: whether it names other documents or lacks columns
    beside them; the number of signed documents, and of short ones.
    """
    file = signatures_of(documents, folder)
    parts = list(read_signatures(file, where=str(file)))
    n_signed = sum(int(part.is_signed.sum()) for part in parts)
    ids = [name for part in parts for name in part.ids]
    same = ids == read_table(documents, ["id"])["id"].to_pylist()
    wrong = [] if same else [f"{file.name} names other documents than {documents.name}"]
    if [field for field in read_schema(file) if field.name not in SCHEMA.names] != beside:
        wrong.append(
            f"{file.name} has other columns than {', '.join(field.name for field in beside)}"
        )
    return wrong, n_signed, len(ids) - n_signed


def one_scheme_signed_all(check_input: CheckInput) -> CheckResult:
    """All files state the same scheme; signatures of different schemes cannot be compared."""
    paths = finished(check_input.folder.glob(f"*{MINHASH_SUFFIX}"))
    labels = set(by_workers(check_input, _scheme, paths))
    return CheckResult(
        passed=len(labels) < 2,
        message=f"signed by {' and '.join(sorted(labels)) or 'none: there are no shards'}",
    )


def _scheme(path: Path) -> str:
    return scheme_label_of(path, where=str(path))


def the_published_signatures_are_ours(check_input: CheckInput) -> CheckResult:
    """Some published signatures of every shard were computed too, and are the same; broken files
    upstream are counted.
    """
    counted = Counter(check_input.counts.extra)
    return CheckResult(
        passed=not counted[DIFFERENT] and not counted[BROKEN],
        message=f"{counted[PUBLISHED]:,} published, {counted[COMPUTED]:,} computed; "
        f"{counted[DIFFERENT]:,} of {counted[CHECKED]:,} that were checked differ; "
        f"{counted[BROKEN]:,} files upstream are broken and were computed instead",
        values={name: counted[name] for name in (PUBLISHED, COMPUTED, CHECKED, DIFFERENT, BROKEN)},
        severity="warning",
    )


STAGE = Stage(
    name="document_signatures",
    description=(
        "MinHash signatures of one snapshot's filtered documents: RedPajama-V2's where "
        "published, otherwise computed."
    ),
    code_version="7",
    reads={"raw_snapshot": SAME_SNAPSHOT, "filtered_documents": SAME_SNAPSHOT},
    params=lambda recipe, _: (
        {
            "signatures": origin_of(recipe),
            "schemes": [RPV2.label, FAST.label],
            "shingles": asdict(shingles_of(recipe)),
        }
        | ({"sketches": SKETCH_HASHES} if texts_are_sketched(recipe) else {})
        | ({"texts": True} if texts_are_keyed(recipe) else {})
        | privacy_params(recipe)
    ),
    checks=(
        reads_all_upstream_documents("filtered_documents"),
        every_document_is_signed_or_short,
        one_scheme_signed_all,
        the_published_signatures_are_ours,
        shard_counts_match,
    ),
    columns=SCHEMA,
    sharding=Sharding(reads=_reads, suffixes=(MINHASH_SUFFIX,), ahead=_ahead),
    job="snapshot_documents",
    write=write_document_signatures,
)
"""MinHash signatures of the filtered documents."""
