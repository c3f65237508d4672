"""From bands, or given pairs, to verified pairs: the exact similarity of each from its texts.

Shingles of the documents that are in a candidate are written one after the other, a file of numbers
per file of the index, and mapped into memory; a task compares the candidates of one file. So memory
is that of one document and one block, and the disk holds eight bytes per shingle (somewhat more
than the text) until it is done.
"""

import functools
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.arrays import Int64s
from lc_assets.builds.checks import DOCUMENTS_SUFFIX
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.stage import BuildContext
from lc_assets.builds.tables import read_all, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.execution.executor import Executor
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.lake.versions import Published
from lc_assets.publishing import finished, publish
from lc_assets.records import record
from lc_assets.stages.deduplication.candidates import (
    PAIRS,
    BandsTask,
    PairsTask,
    merge_pairs,
    pair_bands,
)
from lc_assets.stages.deduplication.document_signatures import shingles_of
from lc_assets.stages.deduplication.index import (
    BANDS,
    PLACE_BITS,
    PLACES,
    keyed_tables,
    numbers_in,
)
from lc_assets.stages.tokens.tokenized_text import read_texts
from lc_assets.text.duplicates.clusters import (
    Measure,
    Numbers,
    ShingleSets,
    Similarities,
    similarities,
)
from lc_assets.text.duplicates.grams import Hashes
from lc_assets.text.duplicates.keys import (
    PUBLISHED_SHINGLES,
    Shingles,
    ascending,
    shingle_hashes,
    shingles_each,
)
from lc_assets.text.folding import normalized_each
from lc_assets.text.texts import parts
from lc_assets.tokens.tokenizers import n_characters
from lc_assets.vocabulary import parse_document_id

TASK_KEYS = 1 << 21
"""Least number of keys per task."""
BLOCK_PAIRS = 1 << 18
"""Pairs that are compared at once."""
VERIFIED = pa.schema([*PAIRS, ("similarity", pa.float64())])

Part = tuple[Path, Sequence[int]]
"""A table of documents, and the places of its lines."""
Finder = Callable[[int, Numbers], tuple[Part, ...]]
"""The tables that hold some documents of a file, by ascending index."""


@record
class ShinglesTask:
    """Shingles of the documents of one file that are in a candidate.

    Attributes:
        parts: the tables that hold them.
        number: of the file.
        work: folder for scratch.
        privacy: what is replaced in a text before it is compared.
        shingles: what they are.
    """

    parts: tuple[Part, ...]
    number: int
    work: Path
    privacy: PrivacySettings
    shingles: Shingles

    def __str__(self) -> str:
        return str(self.parts[0][0])


def compared_pairs(
    work: Path,
    executor: Executor,
    files: dict[Path, int],
    find: Finder,
    *,
    first_new: int,
    floor: float,
    privacy: PrivacySettings,
    shingles: Shingles = PUBLISHED_SHINGLES,
    measure: Measure = "jaccard",
) -> tuple[list[Path], Counts]:
    """Find the pairs that share a band and are as similar as a floor.

    Args:
        work: folder for scratch.
        executor: runs the tasks.
        files: number of documents by folder of the bands of a file, in the files' order.
        find: locates texts.
        first_new: number of the first new file: pairs of two older documents are skipped.
        floor: least similarity.
        privacy: what is replaced in a text before it is compared.
        shingles: that documents are compared by.
        measure: of similarity.

    Returns:
        See `verified_pairs`.
    """
    together = max(1, TASK_KEYS // max(1, sum(files.values())))
    bands = [
        BandsTask(
            files=tuple(files),
            first_new=first_new,
            bands=tuple(range(first, min(first + together, BANDS))),
            out=work / "made" / f"{first:02d}.parquet",
        )
        for first in range(0, BANDS, together)
    ]
    list(executor.run(pair_bands, bands, what="match bands"))
    pairs = [
        PairsTask(work=work, number=number, floor=floor, measure=measure)
        for number in range(len(files))
    ]
    list(executor.run(merge_pairs, pairs, what="merge candidates"))
    shutil.rmtree(work / "made")
    return verified_pairs(pairs, executor, find, privacy, shingles)


def compared_by_keys(
    context: BuildContext,
    inputs: Mapping[str, Published],
    work: Path,
    pairs: Int64s,
    *,
    floor: float,
    measure: Measure = "jaccard",
) -> tuple[list[Path], Counts]:
    """Compare given pairs of filtered documents.

    Args:
        context: runs the tasks; its recipe says what documents are compared by.
        inputs: `filtered_documents` and `document_keys` of their snapshots.
        work: folder for scratch.
        pairs: ``(n, 2)`` int64, documents by their numbers (`numbers_in`), the lesser first.
        floor: least similarity.
        measure: of similarity.

    Returns:
        See `verified_pairs`; pairs ascend.
    """
    keys = keyed_tables(inputs)
    tasks = [
        PairsTask(work=work, number=number, floor=floor, measure=measure)
        for number in range(len(keys))
    ]
    pairs = pairs[np.lexsort([pairs[:, 1], pairs[:, 0]])]
    for task in tasks:
        ours = pairs[pairs[:, 0] >> PLACE_BITS == task.number]
        columns = [ours[:, 0], ours[:, 1], np.zeros(len(ours), np.uint64)]
        write_table(task.path("candidates"), pa.table(columns, schema=PAIRS))
        write_npy(task.path("candidates", ".npy"), np.unique(ours))
    read = [(path, inputs[f"filtered_documents/{key}"]) for key, path in keys.items()]
    return verified_pairs(
        tasks,
        context.executor,
        lambda number, places: parts_of(*read[number], places),
        context.recipe.token_documents.privacy,
        shingles_of(context.recipe),
    )


def similarities_by_id(
    context: BuildContext,
    inputs: Mapping[str, Published],
    work: Path,
    ids: pa.ChunkedArray,
    pairs: Int64s,
) -> Similarities:
    """How similar filtered documents are, ``(n,)``: pairs ``(n, 2)`` of places in ``ids``. Other
    arguments are those of `compared_by_keys`.
    """
    shutil.rmtree(work, ignore_errors=True)
    pairs = np.sort(numbers_in(keyed_tables(inputs), ids)[pairs], axis=1)
    measure = context.recipe.near_duplicate_pairs.measure
    tables, _ = compared_by_keys(context, inputs, work, pairs, floor=0.0, measure=measure)
    found = np.empty(len(pairs))
    order = np.lexsort([pairs[:, 1], pairs[:, 0]])
    found[order] = read_all(tables, VERIFIED)["similarity"].to_numpy()
    return found


def parts_of(keys: Path, filtered: Published, places: Numbers) -> tuple[Part, ...]:
    """The tables that hold some documents of a snapshot, with the place of each of their lines in
    its keys; -1 for a line that is not needed.
    """
    names = read_table(keys, ["id"])["id"].take(pa.array(places)).to_pylist()
    place_of = dict(zip(names, places.tolist(), strict=True))
    shards = sorted({parse_document_id(name)[0].name for name in names})
    files = [f"{shard}{DOCUMENTS_SUFFIX}" for shard in shards]
    folder = filtered.only(*files)
    ids = {file: read_table(folder / file, ["id"])["id"].to_pylist() for file in files}
    return tuple(
        (folder / file, [place_of.get(name, -1) for name in found]) for file, found in ids.items()
    )


def verified_pairs(
    pairs: Sequence[PairsTask],
    executor: Executor,
    find: Finder,
    privacy: PrivacySettings,
    shingles: Shingles = PUBLISHED_SHINGLES,
) -> tuple[list[Path], Counts]:
    """Compare the published candidates of some files.

    Args:
        pairs: the files, by number.
        executor: runs the tasks.
        find: locates texts.
        privacy: what is replaced in a text before it is compared.
        shingles: that documents are compared by.

    Returns:
        Tables of `VERIFIED`, in order; and counts of candidates, documents and characters.
    """
    work = pairs[0].work
    places = {task.number: wanted_places(work, task.number) for task in pairs}
    gathered = [
        ShinglesTask(
            parts=find(number, wanted),
            number=number,
            work=work,
            privacy=privacy,
            shingles=shingles,
        )
        for number, wanted in places.items()
        if len(wanted)
    ]
    read = list(executor.run(gather_shingles, gathered, what="read candidates"))
    compared = list(executor.run(verify, pairs, what="compare"))
    shutil.rmtree(work / "shingles", ignore_errors=True)
    counted = Counts.total(counts for _, counts in [*read, *compared])
    return [task.path("verified") for task in pairs], counted


def gather_shingles(task: ShinglesTask) -> Counts:
    """Publish the shingles of one file's candidates, where those of each place begin, and the
    characters of its text.
    """
    wanted = wanted_places(task.work, task.number)
    starts, n_chars = np.zeros((2, wanted[-1] + 2), np.int64)
    own = task.shingles.size, task.shingles.of
    values, begins, lengths = shingles_paths(task.work, task.number)
    with publish(values) as draft, draft.open("wb") as stream:
        for place, text, hashes in _texts(task, wanted):
            shingles = ascending(hashes) if len(hashes) else shingle_hashes(text, *own)
            stream.write(shingles.data)
            starts[place + 1] = len(shingles)
            n_chars[place] = n_characters(text)
    write_npy(begins, np.cumsum(starts))
    write_npy(lengths, n_chars)
    total = int(n_chars.sum())
    return Counts(extra={"documents compared": len(wanted), "characters compared": total})


def _texts(task: ShinglesTask, wanted: Numbers) -> Iterator[tuple[int, bytes, Hashes]]:
    """Places of the documents, their texts, and hashes of the shingles of those that have as many
    words as one.
    """
    for path, places in task.parts:
        only = np.isin(places, wanted)
        found = iter(np.asarray(places)[only].tolist())
        for texts in read_texts(path, [], task.privacy, only):
            each = shingles_each(*normalized_each(*texts.tokenized), task.shingles)
            for text, hashes in zip(parts(*texts.tokenized), parts(*each), strict=True):
                yield next(found), text.tobytes(), hashes


def verify(task: PairsTask) -> Counts:
    """Publish the pairs of a file with at least the floor's similarity."""
    n_candidates = n_verified = 0
    sets = functools.cache(functools.partial(_shingles, task.work))
    with (
        pq.ParquetFile(task.path("candidates")) as file,
        publish(task.path("verified")) as draft,
        pq.ParquetWriter(draft, VERIFIED, compression="zstd") as writer,
    ):
        for batch in file.iter_batches(BLOCK_PAIRS):
            left, right = (np.asarray(batch[name], np.int64) for name in ("a", "b"))
            found = np.empty(len(left), np.float64)
            order = np.argsort(right, kind="stable")
            others, starts = np.unique(right[order] >> PLACE_BITS, return_index=True)
            for other, group in zip(others.tolist(), np.split(order, starts[1:]), strict=True):
                ours, theirs = left[group] & PLACES, right[group] & PLACES
                found[group] = similarities(
                    sets(task.number), ours, sets(other), theirs, task.floor, task.measure
                )
            verified = batch.append_column("similarity", pa.array(found))
            kept = verified.filter(pa.array(found >= task.floor))
            writer.write_batch(kept.cast(VERIFIED))
            n_candidates += len(found)
            n_verified += kept.num_rows
    return Counts(extra={"candidates": n_candidates, "verified": n_verified})


def _shingles(work: Path, number: int) -> ShingleSets:
    """The shingles of a file's candidates, mapped, by place."""
    values, *arrays = shingles_paths(work, number)
    starts, n_chars = (np.asarray(read_npy(path)) for path in arrays)
    is_empty = not starts[-1]
    hashes = np.empty(0, np.uint64) if is_empty else np.asarray(np.memmap(values, np.uint64, "r"))
    return ShingleSets(hashes, starts, n_chars)


def wanted_places(work: Path, number: int) -> Numbers:
    """Ascending places of the documents of one file that are in a candidate."""
    low, high = number << PLACE_BITS, (number + 1) << PLACE_BITS
    numbers = (read_npy(path) for path in finished((work / "candidates").glob("*.npy")))
    ours = (found[slice(*np.searchsorted(found, [low, high]))] for found in numbers)
    return np.unique(np.concatenate(list(ours))) & PLACES


def shingles_paths(work: Path, number: int) -> tuple[Path, Path, Path]:
    """The shingles of one file's candidates, where those of each place begin, and the characters of
    its text.
    """
    at = work / "shingles" / f"{number:05d}.values"
    return at, at.with_suffix(".starts.npy"), at.with_suffix(".lengths.npy")
