"""Near copies of withdrawn documents that `near_duplicate_pairs` does not compare: of those that
the filter drops, and of all where near duplicates are not looked for.

Texts of such documents are read again from the source. Their sketches
(`lc_assets.text.duplicates.sketches`) are looked up among those of the filtered documents, and
pairs that may be as similar as the threshold are compared by their texts. What the source no longer
has, or has with another digest, is not compared.
"""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from lc_assets.arrays import Int64s, UInt64s
from lc_assets.build.recipe import Recipe
from lc_assets.build.stage import BuildContext, StagingFolder
from lc_assets.build.tables import read_lines
from lc_assets.errors import CorruptFile, Mismatch
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.corpora.containers import Unread
from lc_assets.records import record
from lc_assets.stages.deduplication.document_signatures import shingles_of
from lc_assets.stages.deduplication.heldout_pairs import SKETCHES_AT_ONCE, parts_of
from lc_assets.stages.deduplication.index import keyed_tables
from lc_assets.stages.documents.document_keys import SKETCHES_FILE
from lc_assets.stages.documents.measuring import described
from lc_assets.stages.documents.shard_inputs import ShardTask, Skip, records_of, shard_tasks
from lc_assets.stages.tokens.tokenized_text import text_columns, text_digest, tokenized_text
from lc_assets.text.duplicates.keys import jaccard, shingle_hashes
from lc_assets.text.duplicates.sketches import (
    SketchIndex,
    index_sketches,
    similar_sketches,
    sketch,
)
from lc_assets.text.links.addresses import values_of
from lc_assets.text.rules.models import NO_MODELS
from lc_assets.vocabulary import Shard, parse_document_id

Line = dict[str, Any]


@record
class TextsTask:
    """Documents of a shard whose texts are read from the source.

    Attributes:
        shard: the shard.
        wanted: digests of the documents' pages or texts, by id.
        recipe: what a text is compared by.
    """

    shard: ShardTask
    wanted: Mapping[str, set[str]]
    recipe: Recipe

    def __str__(self) -> str:
        return str(self.shard)


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
    names, shingles = sorted(texts), shingles_of(recipe.document_signatures)
    sets = [shingle_hashes(texts[name], shingles.size, shingles.of) for name in names]
    index = index_sketches(np.array([sketch(texts[name], shingles) for name in names]))
    threshold, privacy = recipe.removed_documents.threshold, recipe.token_documents.privacy
    for key, path in keyed_tables(inputs).items():
        sketches = inputs[f"document_keys/{key}"].only(SKETCHES_FILE) / SKETCHES_FILE
        pairs = _candidates(read_npy(sketches), index, threshold)
        filtered, wanted = inputs[f"filtered_documents/{key}"], np.unique(pairs[:, 0])
        for table, places in parts_of(path, filtered, wanted) if len(wanted) else ():
            columns = ["id", *text_columns(privacy)]
            for place, line in zip(places, read_lines(table, columns, batch_lines=16), strict=True):
                others = pairs[pairs[:, 0] == place, 1].tolist()
                text = tokenized_text(line, privacy).text if others else ""
                ours = shingle_hashes(text, shingles.size, shingles.of)
                for other in others:
                    near = -jaccard(ours, sets[other]), names[other]
                    if near[0] <= -threshold and names[other] != line["id"]:
                        found[line["id"]] = min(found.get(line["id"], near), near)
    return found


def _candidates(sketches: UInt64s, index: SketchIndex, floor: float) -> Int64s:
    """Pairs of a sketch and one of an index that may be similar, ``(n, 2)`` numbers."""
    pairs = [np.empty((0, 2), np.int64)]
    for start in range(0, len(sketches), SKETCHES_AT_ONCE):
        part = sketches[start : start + SKETCHES_AT_ONCE]
        for ours, others in similar_sketches(part, index, floor):
            pairs.append(np.stack([ours + start, others], axis=1))
    return np.concatenate(pairs)


def _texts(
    context: BuildContext, staging: StagingFolder, sources: Iterable[Line]
) -> dict[str, str]:
    """Texts of some documents as they are tokenized, by id, as far as the source has them."""
    wanted: dict[Shard, dict[str, set[str]]] = {}
    for line in sources:
        of_shard = wanted.setdefault(parse_document_id(line["id"])[0], {})
        of_shard.setdefault(line["id"], set()).update(values_of("digest", line))
    tasks = [
        TextsTask(shard=task, wanted=of_task, recipe=context.recipe)
        for key in sorted({shard.snapshot for shard in wanted})
        if f"raw_snapshot/{key}" in staging.inputs
        for task in shard_tasks(context, staging, key)
        if (of_task := wanted.get(task.files.shard))
    ]
    found = context.executor.run(texts_of, tasks, what="read withdrawn documents")
    return {name: text for _, texts in found for name, text in texts}


def texts_of(task: TextsTask) -> list[tuple[str, str]]:
    """Ids of the wanted documents of a shard that it still has, and their texts."""
    found, privacy = list[tuple[str, str]](), task.recipe.token_documents.privacy
    language = task.shard.files.shard.language
    with contextlib.suppress(Skip, CorruptFile, Mismatch):
        for _, name, document in records_of(task.shard, NO_MODELS):
            if (digests := task.wanted.get(name)) and not isinstance(document, Unread):
                line = described(document, language, "", task.shard.rules)
                line["text_digest"] = text_digest(line["raw_content"].encode())
                if not digests.isdisjoint(values_of("digest", line)):
                    found.append((name, tokenized_text(line, privacy).text))
    return found
