"""A lake of any size to be traced in: row tables, their indices, the global order and a mix; no
token of any row.

Made-up documents with addresses, digests and segments as long as a crawl's. What look-ups read is
written by the package's own functions, what they do not read is left out.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.builds.lookups import write_in_groups
from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.builds.table_writer import COMPRESSION
from lc_assets.builds.tables import (
    IDENTITY,
    PACKED_SPANS,
    SPANS_FILE,
    TOKENIZED,
    read_table,
    write_table,
)
from lc_assets.counts import Counts
from lc_assets.formats.arrays.npy import write_npy
from lc_assets.formats.arrays.order import OrderSource, write_order, write_sources
from lc_assets.formats.megatron.gpt_index import write_gpt_index
from lc_assets.formats.packed_spans import PackedSpans
from lc_assets.lake.lake import Lake
from lc_assets.lake.receipts import Fingerprint, encode_json, receipt_of
from lc_assets.lake.versions import Published, write_receipt
from lc_assets.mixing.blending import blend_all
from lc_assets.mixing.gpt_index import build_gpt_index
from lc_assets.publishing import publish as publish_file, publish_bytes
from lc_assets.stages.deduplication import near_duplicate_pairs as near_pairs
from lc_assets.stages.deduplication.removals import DECISIONS, TABLE
from lc_assets.stages.documents.document_keys import write_keys
from lc_assets.stages.lineage.row_lineage import write_index
from lc_assets.stages.mixes.blended_mix import MIX_FILE, Mix, MixSource
from lc_assets.stages.packing.packing_writing import MOST_PIECES
from lc_assets.stages.rows.row_plans import plan_rows
from lc_assets.stages.rows.token_grid import ROWS_FILE, of_split
from lc_assets.tokens.orders import interleave
from lc_assets.vocabulary import ROW_TOKENS, SPLITS

SAMPLE_TOKENS = 8192
PAGES_PER_HOST = 9
MIX = "everything"


@dataclass(frozen=True, slots=True)
class TracedLake:
    """The lake, and how many rows each of its snapshots has."""

    lake: Lake
    snapshots: list[str]
    n_rows: int


def traced_lake(folder: Path, *, n_snapshots: int, n_rows: int) -> TracedLake:
    """Write the lake of so many snapshots of so many rows each."""
    lake = Lake(folder)
    snapshots = [f"{2014 + number // 12}-{number % 12 + 1:02d}" for number in range(n_snapshots)]
    grids = [write_snapshot(lake, snapshot, n_rows) for snapshot in snapshots]
    write_global_order(lake, grids)
    write_mix(lake, grids)
    return TracedLake(lake, snapshots, n_rows)


def publish(
    lake: Lake, stage: str, key: str, write, *, params=None, inputs=None, extra=None
) -> Published:
    """Publish a version without its stage: its files, a receipt, the pointer."""
    partition = lake.partition(stage, key)
    fingerprint = Fingerprint(
        stage=stage, key=key, code_version="1", params=params or {}, inputs=inputs or {}
    )
    home = partition.folder / fingerprint.version
    found = write(home)
    counts = found if isinstance(found, Counts) else Counts(extra=extra or {})
    published = write_receipt(home, receipt_of(home, fingerprint, counts))
    partition.point_at(published)
    return published


def write_snapshot(lake: Lake, snapshot: str, n_rows: int) -> Published:
    """One snapshot: filtered documents (without texts), tokens and removals by name, the grid's row
    table, and the indices.
    """
    documents = documents_table(snapshot, n_rows)
    filtered = publish(
        lake,
        "filtered_documents",
        snapshot,
        lambda home: home.mkdir(parents=True),
        params={"of": snapshot},
    )
    tokens = publish(
        lake,
        "token_documents",
        snapshot,
        lambda home: home.mkdir(parents=True),
        inputs={filtered.name: filtered.digest},
    )
    rows = plan_rows(documents, GriddingSettings())
    grid = publish(
        lake,
        "token_grid",
        snapshot,
        lambda home: write_table(home / ROWS_FILE, rows),
        params={"row_tokens": ROW_TOKENS},
        inputs={tokens.name: tokens.digest},
        extra={f"{split} rows": of_split(rows, split).num_rows for split in SPLITS},
    )
    publish(
        lake,
        "near_duplicate_pairs",
        snapshot,
        lambda home: write_table(home / near_pairs.TABLE, pairs_table(snapshot, n_rows)),
    )
    removed = removals_table(snapshot, n_rows)
    removals = publish(
        lake, "removed_documents", snapshot, lambda home: write_in_groups(home / TABLE, removed)
    )
    publish(
        lake,
        "megatron_rows",
        snapshot,
        lambda home: home.mkdir(parents=True),
        inputs={grid.name: grid.digest},
    )
    publish(
        lake,
        "document_keys",
        snapshot,
        lambda home: write_keys(home, [keyed_table(documents)], keyed_table(documents).schema),
        inputs={filtered.name: filtered.digest},
    )
    inputs = {published.name: published.digest for published in (grid, removals)}
    publish(
        lake, "row_lineage", snapshot, lambda home: write_index(home, rows, removed), inputs=inputs
    )
    return grid


def documents_table(snapshot: str, n_rows: int) -> pa.Table:
    """Documents of one shard, each as long as a row."""
    numbers = range(n_rows)
    hosts = [f"www.{word(snapshot, number // PAGES_PER_HOST)[:12]}.com" for number in numbers]
    columns = {
        "id": [f"{snapshot}/0000/en_head.json.gz/{number}" for number in numbers],
        "url": [
            f"https://{host}/{word(snapshot, -number)[:20]}/page-{number}.html"
            for number, host in zip(numbers, hosts, strict=True)
        ],
        "digest": [f"sha1:{word(snapshot, number)[:32].upper()}" for number in numbers],
        "source_domain": hosts,
        "cc_segment": [
            f"crawl-data/CC-MAIN-{snapshot}/segments/{word(snapshot, number % 90)}/wet/{number % 5000:05d}.gz"
            for number in numbers
        ],
        "language": pa.repeat("en", n_rows),
        "bucket": pa.repeat("head", n_rows),
        "tokenized_digest": [f"sha256:{word(snapshot, number)}" for number in numbers],
        "document": np.arange(n_rows),
        "n_tokens": np.arange(n_rows) % 300_000 + ROW_TOKENS,
        "n_chars": np.zeros(n_rows, np.int64),
        "n_bytes": np.zeros(n_rows, np.int64),
    }
    table = pa.table(columns).select(TOKENIZED.names).cast(TOKENIZED)
    return table.append_column("token_shard", pa.repeat("0000-en_head", n_rows))


def word(snapshot: str, number: int) -> str:
    """Forty letters and digits that are the same each time."""
    return hashlib.sha1(f"{snapshot}{number}".encode(), usedforsecurity=False).hexdigest()


def keyed_table(documents: pa.Table) -> pa.Table:
    """The same documents as they stand in the index of filtered ones, with two judged values;
    digests of texts are made up.
    """
    digests = pa.array(
        [
            f"sha256:{word(digest, 0)}{word(digest, 1)[:24]}"
            for digest in documents["digest"].to_pylist()
        ]
    )
    judged = {
        name: pa.array(np.arange(documents.num_rows) / 7)
        for name in ("rps_doc_word_count", "rps_doc_mean_word_length")
    }
    columns = (
        {name: documents[name] for name in IDENTITY}
        | dict.fromkeys(("text_digest", "tokenized_digest"), digests)
        | {"date_download": pa.repeat("", documents.num_rows)}
        | judged
    )
    return pa.table(columns)


def pairs_table(snapshot: str, n_rows: int) -> pa.Table:
    """Every tenth document is like the one before it."""
    lines = range(1, n_rows, 10)
    ids = [
        [f"{snapshot}/0000/en_head.json.gz/{number - before}" for number in lines]
        for before in (1, 0)
    ]
    columns = {
        "a": ids[0],
        "b": ids[1],
        "bands": np.full(len(lines), 3, np.uint64),
        "similarity": np.full(len(lines), 0.7),
    }
    return pa.table(columns, schema=near_pairs.NEAR_PAIRS)


def removals_table(snapshot: str, n_rows: int) -> pa.Table:
    """As many documents went as there are rows, each instead of one that has a row."""
    lines = {
        "id": [f"{snapshot}/0001/en_head.json.gz/{number}" for number in range(n_rows)],
        "reason": ["near duplicate"] * n_rows,
        "for_id": [f"{snapshot}/0000/en_head.json.gz/{number}" for number in range(n_rows)],
        "kept_id": [f"{snapshot}/0000/en_head.json.gz/{number}" for number in range(n_rows)],
        "similarity": [0.9] * n_rows,
        "why": ["older"] * n_rows,
        "reasons": [["near duplicate"]] * n_rows,
    }
    others = {name: [""] * n_rows for name in DECISIONS.names if name not in lines}
    table = pa.table(lines | others)
    return table.select(DECISIONS.names).cast(DECISIONS)


def write_global_order(lake: Lake, grids: list[Published]) -> None:
    """The riffle of all grids' rows."""

    def write(home: Path) -> None:
        sources = [
            OrderSource(
                snapshot=grid.receipt.fingerprint.key,
                version=grid.version,
                digest=grid.digest,
                train_rows=grid.receipt.counts.extra["train rows"],
                heldout_rows=grid.receipt.counts.extra["heldout rows"],
            )
            for grid in grids
        ]
        write_sources(home, sources, row_tokens=ROW_TOKENS, vocab_size=50_257)
        for split in SPLITS:
            write_order(home, split, *interleave([priorities_of(grid, split) for grid in grids]))

    publish(lake, "longcrawl", "all", write)


def priorities_of(grid: Published, split: str) -> np.ndarray:
    table = read_table(grid.home / ROWS_FILE, ["split", "priority"])
    return np.asarray(table["priority"])[np.asarray(table["split"]) == split]


def write_mix(lake: Lake, grids: list[Published]) -> None:
    """Everything once, in samples of an eighth of a row."""

    def write(home: Path) -> None:
        sources = []
        for grid in grids:
            key = grid.receipt.fingerprint.key
            lengths = np.full(grid.receipt.counts.extra["train rows"], ROW_TOKENS, np.int32)
            index = build_gpt_index(lengths, sequence_length=SAMPLE_TOKENS, seed=1234)
            home.mkdir(parents=True, exist_ok=True)
            write_gpt_index(home / key, index)
            prefix = f"megatron_rows/{key}/{lake.partition('megatron_rows', key).require().version}/train"
            sources.append(
                MixSource(
                    snapshot=key,
                    prefix=prefix,
                    weight=1 / len(grids),
                    available=index.n_samples,
                    used=index.n_samples,
                )
            )
        for name, array in zip(
            ("dataset_index", "dataset_sample_index"),
            blend_all([source.used for source in sources]),
            strict=True,
        ):
            write_npy(home / f"{name}.npy", array)
        publish_bytes(
            home / MIX_FILE,
            encode_json(Mix(sequence_length=SAMPLE_TOKENS, seed=1234, sources=sources)),
        )

    publish(lake, "blended_mix", MIX, write)


def write_packed(lake: Lake, snapshot: str, n_rows: int, pieces: int) -> Published:
    """Packed rows of one snapshot's documents, so many pieces a row, each of a document of its own:
    spans and no token.
    """
    n_spans, tokens = n_rows * pieces, ROW_TOKENS // pieces
    numbers = np.arange(n_spans)
    begins = numbers % pieces * tokens

    def write(home: Path) -> None:
        documents = documents_table(snapshot, n_spans)
        columns = {
            "split": pa.repeat("train", n_spans),
            "row": numbers // pieces,
            "piece": numbers % pieces,
            "document_start": np.zeros(n_spans, np.int64),
            "document_stop": np.full(n_spans, tokens),
            "row_start": begins,
            "row_stop": begins + tokens,
            **{
                name: documents[name]
                for name in PACKED_SPANS.names
                if name in documents.column_names
            },
        }
        home.mkdir(parents=True, exist_ok=True)
        table = pa.table({name: columns[name] for name in PACKED_SPANS.names}, schema=PACKED_SPANS)
        with publish_file(home / SPANS_FILE) as draft:
            pq.write_table(table, draft, compression=COMPRESSION, row_group_size=MOST_PIECES)
        PackedSpans.of(numbers // pieces, begins + tokens, numbers, n_rows=n_rows).write(
            home, "train"
        )
        none = np.empty(0, np.int64)
        PackedSpans.of(none, none, none, n_rows=0).write(home, "heldout")

    return publish(
        lake, "packed_rows", snapshot, write, params={"row_tokens": ROW_TOKENS, "megatron": "rows"}
    )
