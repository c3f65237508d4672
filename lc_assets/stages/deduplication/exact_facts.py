"""Facts about documents that share more than a likeness: keys of digest, text and address.

`lc_assets.stages.deduplication.signature_index` writes them, where the recipe removes exact
duplicates; `lc_assets.stages.deduplication.removed_documents` gathers those of all partitions.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path is quoted

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lc_assets.build.tables import TableWriter, read_lines, read_schema, read_table, write_table
from lc_assets.lake.versions import Published
from lc_assets.publishing import publish
from lc_assets.stages.deduplication.banded_documents import bands_of, read_bands_manifest
from lc_assets.stages.deduplication.deciding import PAIRS_FILE
from lc_assets.stages.deduplication.index import PLACE_BITS, facts_path
from lc_assets.stages.deduplication.queries import Queries, parquet
from lc_assets.stages.deduplication.settings import DIGEST, FACTS, PAIRS, TEXT, URL
from lc_assets.stages.documents.shard_filtering import PERPLEXITY
from lc_assets.text.duplicates.keys import digest_key, text_key, url_key

_DOCUMENT_FACTS: Final = pa.schema([*FACTS, ("digest", pa.string())])
_COLUMNS: Final = ("id", "url", "digest", "date_download", "raw_content")
_LINE_BYTES: Final = 200
_NO_PAIRS: Final = "SELECT '' AS a, '' AS b, 0 AS bands, 0.0 AS similarity WHERE false"


def write_facts(path: Path, shards: Sequence[Path]) -> None:
    """Publish the facts about the documents of some shards, numbered from 0 in their order."""
    with (
        publish(path) as staging,
        contextlib.closing(TableWriter(staging, _DOCUMENT_FACTS)) as table,
    ):
        lines = (line for shard in shards for line in _lines_of(shard))
        for number, line in enumerate(lines):
            table.add(_facts(number, line), n_bytes=_LINE_BYTES)


def gather_facts(
    asked: Queries, inputs: Mapping[str, Published], pairs: Sequence[Path], work: Path
) -> list[Path]:
    """Number the documents of all partitions that are read, and give pairs these numbers.

    Args:
        asked: an open connection; it gets the view ``documents`` (number, id, digest).
        inputs: `filtered_documents` and `signature_index` of the partitions.
        pairs: their `near_duplicate_pairs`.
        work: where ``facts/`` and the pairs go.

    Returns:
        Tables of `FACTS`, in the order of the documents' numbers; a partition is the source.
    """
    paths = list[Path]()
    for key in sorted(
        name.partition("/")[2] for name in inputs if name.startswith("filtered_documents/")
    ):
        folder = bands_of(inputs, key).only("bands.json", "facts/*")
        for number in range(len(read_bands_manifest(folder).documents)):
            table = read_table(facts_path(folder, number), _DOCUMENT_FACTS.names)
            numbers = np.asarray(table["number"]) | len(paths) << PLACE_BITS
            columns = {name: table[name] for name in _DOCUMENT_FACTS.names}
            columns |= {"number": numbers, "source": pa.repeat(key, table.num_rows)}
            paths.append(facts_path(work, len(paths)))
            write_table(paths[-1], pa.table(columns, schema=_DOCUMENT_FACTS))
    if paths:
        asked.do(
            "CREATE OR REPLACE VIEW documents AS SELECT number, id, digest FROM "
            f"{parquet(paths)} ORDER BY number"
        )
        near = f"SELECT * FROM {parquet(list(pairs))}" if pairs else _NO_PAIRS
        asked.publish(
            f"""SELECT a, b, least(l.number, r.number) AS a_number, greatest(l.number, r.number) AS b_number,
                   bands, similarity, true AS verified
                FROM ({near}) JOIN documents l ON l.id = a JOIN documents r ON r.id = b ORDER BY a_number, b_number""",
            work / PAIRS_FILE,
            PAIRS,
        )
    return paths


def _lines_of(shard: Path) -> Iterator[dict[str, Any]]:
    known = [PERPLEXITY] if PERPLEXITY in read_schema(shard).names else []
    return read_lines(shard, [*_COLUMNS, *known], batch_lines=16)


def _facts(number: int, line: dict[str, Any]) -> dict[str, Any]:
    keys = {
        DIGEST: digest_key(line["digest"] or ""),
        TEXT: text_key(line["raw_content"]),
        URL: url_key(line["url"]) if line["url"] else None,
    }
    perplexity = line.get(PERPLEXITY)
    return {
        "number": number,
        "id": line["id"],
        "source": "",
        "date": line["date_download"] or "",
        "n_chars": len(line["raw_content"]),
        "perplexity": None if perplexity is None or math.isnan(perplexity) else perplexity,
        "digest": line["digest"],
        **{
            f"{kind}_{half}": value
            for kind, key in keys.items()
            for half, value in zip(("high", "low"), key or (None, None), strict=True)
        },
    }
