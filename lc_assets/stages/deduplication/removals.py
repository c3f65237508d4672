"""The tables of decisions on documents, and what other stages read of them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.builds.checks import DOCUMENTS_SUFFIX
from lc_assets.builds.lookups import parts_of
from lc_assets.builds.sharding import Read, Reads, documents_read
from lc_assets.builds.tables import read_lines
from lc_assets.lake.digests import digest_of
from lc_assets.lake.versions import Published
from lc_assets.vocabulary import parse_document_id

DECISIONS = pa.schema(
    {
        "id": "string",
        "reason": "string",
        "for_id": "string",
        "kept_id": "string",
        "similarity": "float64",
        "why": "string",
        "reasons": pa.list_(pa.string()),
        "side": "string",
        "digest": "string",
        "text_digest": "string",
        "tokenized_digest": "string",
        "first_seen": "string",
        "last_seen": "string",
    }
)
"""What was decided on a filtered document.

``reason``: why it is excluded, the first of ``reasons``; empty if it stays. ``for_id``: the
document or item that it is a duplicate of or contains; ``kept_id``: the document finally kept;
``similarity`` to the first, a lower bound if the two were not compared; ``why`` that one was
chosen. ``side``: of the split, by ``tokenized_digest``. ``first_seen``, ``last_seen``: the first
and the last of the snapshots read that hold this text as it is tokenized.
"""
STAYS = dict.fromkeys(("reason", "for_id", "kept_id", "why"), "") | {
    "similarity": None,
    "reasons": (),
}
"""What was decided on a document that is not excluded."""
CLUSTERS = pa.schema(
    {
        "id": "string",
        "cluster": "string",
        "size": "int64",
        "stays": "bool",
        "kept_id": "string",
        "similarity_to_kept": "float64",
        "why": "string",
    }
)
"""Members of the clusters of near duplicates that a document of the partition belongs to;
``cluster`` is the least id in it. Similarities are those of `DECISIONS`.
"""
TABLE = "decisions.parquet"
CLUSTERS_FILE = "clusters.parquet"


def removed_ids(folder: Path) -> dict[str, str]:
    """Reason of every excluded document, by id."""
    return {line["id"]: line["reason"] for line in _excluded(folder, ["id", "reason"])}


def removals_in(folder: Path) -> list[dict[str, Any]]:
    """Lines of all excluded documents."""
    return list(_excluded(folder, DECISIONS.names))


def _excluded(folder: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    for part in parts_of(folder / TABLE, columns):
        yield from part.filter(pc.not_equal(part["reason"], "")).to_pylist()


def digests_in(inputs: Mapping[str, Published], key: str) -> dict[str, dict[str, str]]:
    """Digests of a partition's texts as tokenized, out of a stage's inputs, by shard and id."""
    folder, found = inputs[f"removed_documents/{key}"].only(TABLE), dict[str, dict[str, str]]()
    for line in read_lines(folder / TABLE, ["id", "tokenized_digest"]):
        shard, _ = parse_document_id(line["id"])
        found.setdefault(shard.name, {})[line["id"]] = line["tokenized_digest"]
    return found


def removed_in(inputs: Mapping[str, Published], key: str) -> dict[str, dict[str, str]]:
    """The same of a partition, out of a stage's inputs, by the name of the shard that a document is
    in; empty where the recipe excludes nothing.
    """
    published, found = inputs.get(f"removed_documents/{key}"), dict[str, dict[str, str]]()
    for name, reason in removed_ids(published.only(TABLE)).items() if published else ():
        found.setdefault(parse_document_id(name)[0].name, {})[name] = reason
    return found


def remaining_read(
    inputs: Mapping[str, Published],
    key: str,
    removed: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Reads]:
    """Inputs per shard of a stage that skips excluded documents: the shard's filtered documents,
    and the exclusions (by default those of `removed_in`); for `Sharding.reads`.
    """
    left_out = removed_in(inputs, key) if removed is None else removed
    documents = documents_read(inputs[f"filtered_documents/{key}"], DOCUMENTS_SUFFIX)
    return {
        name: (read, Read("removed", digest_of(left_out.get(name, {}))))
        for name, read in documents.items()
    }
