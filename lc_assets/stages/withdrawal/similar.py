"""Near copies of withdrawn documents: those in published pairs, and those that
`near_duplicate_pairs` does not compare: of documents that the filter drops, and of all where near
duplicates are not looked for.

Texts of the latter are read again from the source. Their sketches
(`lc_assets.text.duplicates.sketches`) are looked up among those of the filtered documents, and
pairs that may be as similar as the threshold are compared by their texts, by the measure of
`near_duplicate_pairs`; by containment all pairs whose sketches share a hash, which those of a
Jaccard index J do with a probability of 1 - (1 - J)³². What the source no longer has, or has with
another digest, is not compared.
"""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from lc_assets import arrow_compute as pc
from lc_assets.builds.lookups import lines_where
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.stage import BuildContext, StagingFolder
from lc_assets.builds.tables import Line, read_lines
from lc_assets.errors import CorruptFile, Mismatch
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.corpora.containers import Unread
from lc_assets.lake.versions import Published
from lc_assets.stages.deduplication.document_signatures import shingles_of
from lc_assets.stages.deduplication.heldout_pairs import candidates
from lc_assets.stages.deduplication.index import keyed_tables
from lc_assets.stages.deduplication.near_duplicate_pairs import TABLE as PAIRS_TABLE, alike
from lc_assets.stages.deduplication.verification import parts_of
from lc_assets.stages.documents.document_keys import SKETCHES_FILE
from lc_assets.stages.documents.measuring import described
from lc_assets.stages.documents.shard_inputs import ShardTask, Skip, records_of, shard_tasks
from lc_assets.stages.tokens.tokenized_text import text_columns, text_digest, tokenized_text
from lc_assets.text.duplicates.keys import shingle_hashes
from lc_assets.text.duplicates.sketches import index_sketches, sketch
from lc_assets.text.links.addresses import values_of
from lc_assets.text.rules.models import NO_MODELS
from lc_assets.vocabulary import Shard, parse_document_id


def paired_copies(
    sources: Collection[str], pairs: Iterable[Published], threshold: float
) -> dict[str, tuple[float, str]]:
    """Near duplicates of some documents that are none of them: the negative similarity to the most
    similar of these, and its id.
    """
    found: dict[str, tuple[float, str]] = {}
    ids = list(sources)
    matches = (pc.field("a").isin(ids) | pc.field("b").isin(ids)) & (
        pc.field("similarity") >= threshold
    )
    for published in pairs:
        for pair in lines_where(published.only(PAIRS_TABLE) / PAIRS_TABLE, matches):
            for name, source in ((pair["a"], pair["b"]), (pair["b"], pair["a"])):
                if source in sources and name not in sources:
                    nearest = -pair["similarity"], source
                    found[name] = min(found.get(name, nearest), nearest)
    return found


def near_copies(
    context: BuildContext, staging: StagingFolder, sources: Iterable[Line]
) -> dict[str, tuple[float, str]]:
    """Filtered documents that are at least as similar as the threshold to one of some documents
    that the source still has: the negative similarity to the most similar of these, and its id.
    """
    texts, recipe, inputs = _texts(context, staging, sources), context.recipe, staging.inputs
    found: dict[str, tuple[float, str]] = {}
    if not texts:
        return found
    names, shingles = sorted(texts), shingles_of(recipe)
    sets = [shingle_hashes(texts[name], shingles.size, shingles.of) for name in names]
    index = index_sketches(np.array([sketch(texts[name], shingles) for name in names]))
    threshold, privacy = recipe.removed_documents.threshold, recipe.token_documents.privacy
    measure = recipe.near_duplicate_pairs.measure
    floor = threshold if measure == "jaccard" else 0.0
    for key, path in keyed_tables(inputs).items():
        sketches = inputs[f"document_keys/{key}"].only(SKETCHES_FILE) / SKETCHES_FILE
        of_place: dict[int, list[int]] = {}
        for pairs in candidates(read_npy(sketches), index, floor):
            for place, other in pairs.tolist():
                of_place.setdefault(place, []).append(other)
        filtered = inputs[f"filtered_documents/{key}"]
        for place, line in _lines_at(path, filtered, of_place, ["id", *text_columns(privacy)]):
            text = tokenized_text(line, privacy).text
            ours = shingle_hashes(text, shingles.size, shingles.of)
            for other in of_place[place]:
                chars = len(texts[names[other]])
                near = -alike(ours, len(text), sets[other], chars, measure), names[other]
                if near[0] <= -threshold and names[other] != line["id"]:
                    found[line["id"]] = min(found.get(line["id"], near), near)
    return found


def _lines_at(
    keys: Path, filtered: Published, wanted: Collection[int], columns: Sequence[str]
) -> Iterator[tuple[int, Line]]:
    """Filtered documents of a snapshot at some places of its keys, with the place."""
    for table, places in parts_of(keys, filtered, np.array(sorted(wanted))) if wanted else ():
        lines = read_lines(table, columns, batch_lines=16)
        yield from (
            (place, line) for place, line in zip(places, lines, strict=True) if place in wanted
        )


def _texts(
    context: BuildContext, staging: StagingFolder, sources: Iterable[Line]
) -> dict[str, str]:
    """Texts of some documents as they are tokenized, by id, as far as the source has them."""
    wanted: dict[Shard, dict[str, set[str]]] = {}
    for line in sources:
        of_shard = wanted.setdefault(parse_document_id(line["id"])[0], {})
        of_shard.setdefault(line["id"], set()).update(values_of("digest", line))
    tasks = [
        task
        for key in sorted({shard.snapshot for shard in wanted})
        if f"raw_snapshot/{key}" in staging.inputs
        for task in shard_tasks(context, staging, key)
        if task.files.shard in wanted
    ]
    read = partial(texts_of, wanted, context.recipe.token_documents.privacy)
    found = context.executor.run(read, tasks, what="read withdrawn documents")
    return {name: text for _, texts in found for name, text in texts}


def texts_of(
    wanted: Mapping[Shard, Mapping[str, set[str]]], privacy: PrivacySettings, task: ShardTask
) -> list[tuple[str, str]]:
    """Ids of the documents of a shard that are wanted, and that it still has with one of their
    digests; and their texts as they are tokenized.
    """
    found, shard = list[tuple[str, str]](), task.files.shard
    with contextlib.suppress(Skip, CorruptFile, Mismatch):
        for _, name, document in records_of(task, NO_MODELS):
            if (digests := wanted[shard].get(name)) and not isinstance(document, Unread):
                columns = described([document], shard.language, "", task.rules)
                line = {column: value for column, (value,) in columns.items()}
                line["text_digest"] = text_digest(line["raw_content"].encode())
                if not digests.isdisjoint(values_of("digest", line)):
                    found.append((name, tokenized_text(line, privacy).text))
    return found
