"""`heldout_pairs`: which documents of a snapshot are similar to others of it, or of an older one,
on the other side of the split; and the record of which side each of its documents is on
(`lc_assets.stages.deduplication.sides`).

Held-out documents are few, so these pairs are found exactly, whether or not near duplicates are
looked for: the sketches (`lc_assets.text.duplicates.sketches`) of documents that are trained on are
looked up among those of held-out ones, and all pairs that may be as similar as the floor are
compared by their texts. From 0.4 on a pair is missed with a probability below one in a million.
Documents shorter than a shingle have no pairs.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.arrays import Booleans, Int64s, UInt64s
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.builds.stage import (
    THIS_AND_OLDER,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import read_table, write_table
from lc_assets.counts import Counts
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.lake.receipts import SCRATCH
from lc_assets.randomness import keyed_u64, within
from lc_assets.stages.deduplication.document_signatures import shingles_of
from lc_assets.stages.deduplication.index import PLACE_BITS, keyed_tables
from lc_assets.stages.deduplication.near_duplicate_pairs import (
    NEAR_PAIRS,
    pairs_are_as_alike_as_they_say,
    publish_pairs,
    the_pairs_add_up,
)
from lc_assets.stages.deduplication.sides import SIDES, SIDES_FILE
from lc_assets.stages.deduplication.verification import compared_by_keys
from lc_assets.stages.documents.document_keys import SKETCHES_FILE
from lc_assets.stages.tokens.tokenized_text import are_held_out, privacy_params
from lc_assets.text.duplicates.sketches import SketchIndex, index_sketches, similar_sketches
from lc_assets.vocabulary import SPLITS

TABLE = "near_pairs.parquet"
"""Of `lc_assets.stages.deduplication.near_duplicate_pairs.NEAR_PAIRS`, which share no band."""
SKETCHES_AT_ONCE = 1 << 14


def write_heldout_pairs(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the pairs across the split of one snapshot, among itself and the older ones.

    Raises:
        NotPublished: when the keys of a snapshot's filtered documents are missing.
        Mismatch: when keys are of other documents than the current filtered ones.
    """
    recipe, inputs = context.recipe, staging.inputs
    keys = keyed_tables(inputs)
    floor, work = recipe.near_duplicate_pairs.evidence_floor, staging.folder / SCRATCH / "search"
    shutil.rmtree(work, ignore_errors=True)
    read = [inputs[f"document_keys/{key}"].only(SKETCHES_FILE) for key in keys]
    sketches = [read_npy(folder / SKETCHES_FILE) for folder in read]
    tables = [_sides_of(path, recipe) for path in keys.values()]
    write_table(staging.folder / SIDES_FILE, tables[-1])
    sides = [np.asarray(pc.equal(table["side"], "heldout")) for table in tables]
    pairs = [np.empty((0, 2), np.int64), *_across(sketches, sides, floor)]
    verified, counted = compared_by_keys(context, inputs, work, np.concatenate(pairs), floor=floor)
    return publish_pairs(staging.folder / TABLE, verified, list(keys.values()), counted)


def _sides_of(keys: Path, recipe: Recipe) -> pa.Table:
    """`SIDES` of the documents of a snapshot."""
    digests = read_table(keys, ["tokenized_digest"])["tokenized_digest"]
    held = held_out(digests.to_pylist(), recipe.token_grid)
    return pa.table([digests, pc.if_else(pa.array(held), "heldout", "train")], schema=SIDES)


def held_out(digests: Sequence[str], split: GriddingSettings) -> Booleans:
    """Whether each text is held out: its keyed hash, as a fraction of 2⁶⁴, is below the share.

    >>> held_out(["a", "b", "c", "d"], GriddingSettings(seed=7, heldout_fraction=0.5))
    array([ True,  True, False,  True])
    """
    return within(keyed_u64("heldout", seed=split.seed, keys=digests), split.heldout_fraction)


def _across(
    sketches: Sequence[UInt64s], sides: Sequence[Booleans], floor: float
) -> Iterator[Int64s]:
    """Pairs across the split that may be similar, ``(n, 2)`` numbers of documents, the lesser one
    first; one of them is in the last snapshot.

    Args:
        sketches: of every snapshot, ``(documents, 32)``.
        sides: which of its documents are held out.
        floor: least similarity.
    """
    last, every = len(sketches) - 1, list(enumerate(zip(sketches, sides, strict=True)))
    held = [part[side] for part, side in zip(sketches, sides, strict=True)]
    names = [np.flatnonzero(side) | number << PLACE_BITS for number, side in enumerate(sides)]
    of_all = index_sketches(np.concatenate(held)), np.concatenate(names)
    of_last = index_sketches(held[last]), names[last]
    for number, (part, side) in every:
        index, whose = of_all if number == last else of_last
        for ours in candidates(part, index, floor, np.flatnonzero(~side)):
            pairs = [ours[:, 0] | number << PLACE_BITS, whose[ours[:, 1]]]
            yield np.sort(np.stack(pairs, axis=1), axis=1)


def candidates(
    sketches: UInt64s, index: SketchIndex, floor: float, places: Int64s | None = None
) -> Iterator[Int64s]:
    """Pairs of a sketch, by its place, and one of an index that may be similar, ``(n, 2)``; by
    default of all places.
    """
    places = np.arange(len(sketches)) if places is None else places
    for start in range(0, len(places), SKETCHES_AT_ONCE):
        part = places[start : start + SKETCHES_AT_ONCE]
        for ours, others in similar_sketches(sketches[part], index, floor):
            yield np.stack([part[ours], others], axis=1)


def every_text_is_on_one_side(check_input: CheckInput) -> CheckResult:
    """Each filtered document has its side, in the order of the keys, and no text has two."""
    sides = read_table(check_input.folder / SIDES_FILE, SIDES.names)
    path = keyed_tables(check_input.inputs)[check_input.fingerprint.key]
    are_in_order = read_table(path, SIDES.names[:1]).equals(sides.select([0]))
    n_texts = len(sides["tokenized_digest"].unique())
    n_twice = sides.group_by(SIDES.names).aggregate([]).num_rows - n_texts
    is_known = pc.is_in(sides["side"], value_set=pa.array(SPLITS))
    n_unknown = len(sides) - len(sides.filter(is_known))
    return CheckResult(
        passed=are_in_order and not n_twice and not n_unknown,
        message=f"{len(sides):,} documents, {n_texts:,} texts; {n_twice:,} on both sides, "
        f"{n_unknown:,} on none; {'' if are_in_order else 'not '}in the order of the keys",
        values={"texts": n_texts},
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    return {
        "evidence_floor": recipe.near_duplicate_pairs.evidence_floor,
        "heldout_fraction": recipe.token_grid.heldout_fraction,
        "seed": recipe.token_grid.seed,
        "shingles": asdict(shingles_of(recipe)),
    } | privacy_params(recipe)


STAGE = Stage(
    name="heldout_pairs",
    description=(
        "Held-out documents and similar ones that are trained on, within one snapshot and with "
        "older ones; every pair is verified by its texts."
    ),
    code_version="2",
    reads={"filtered_documents": THIS_AND_OLDER.summarized(), "document_keys": THIS_AND_OLDER},
    params=_params,
    checks=(the_pairs_add_up, pairs_are_as_alike_as_they_say, every_text_is_on_one_side),
    columns=NEAR_PAIRS,
    wanted=are_held_out,
    job="snapshot_documents",
    kinds=("parquet",),
    counted="pairs",
    write=write_heldout_pairs,
)
"""Similar documents on both sides of the split."""
