"""Makers of links between the documents of a tiny lake, published as `page_links` publishes them,
without any crawl.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.builds.checks import documents_files
from lc_assets.builds.tables import FILTERED, read_all
from lc_assets.counts import Counts
from lc_assets.lake.lake import Lake
from lc_assets.lake.receipts import Fingerprint, receipt_of
from lc_assets.lake.versions import write_receipt
from lc_assets.stages.links.link_tables import PAGE_LINKS
from lc_assets.stages.links.page_linking import LINKS_SUFFIX
from lc_assets.text.links.page_keys import page_key

OLD = "2023-06"


def documents_of(lake: Lake) -> list[dict[str, Any]]:
    """The filtered documents."""
    return read_all(
        documents_files(lake.partition("filtered_documents", OLD).require().folder), FILTERED
    ).to_pylist()


def publish_links(lake: Lake, *, seed: int = 0) -> list[dict[str, Any]]:
    """Links among the filtered documents, in the format of `page_links`."""
    rng = np.random.default_rng(seed)
    documents = documents_of(lake)
    partition = lake.partition("page_links", OLD)
    folder = partition.folder / f"{seed:012d}"
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for document in documents:
        for position, number in enumerate(rng.permutation(len(documents))[:4].tolist()):
            target = documents[number]
            if target is not document:
                flags = {
                    "nofollow": False,
                    "navigation": bool(rng.random() < 0.1),
                    "generic": bool(rng.random() < 0.2),
                    "in_text": True,
                }
                target_key = page_key(target["url"])
                names = {
                    "page_key": page_key(document["url"]),
                    "id": document["id"],
                    "target_key": target_key,
                    "target_url": target["url"],
                }
                lines.append(
                    names | {"position": position, "keys": f"page {number}", "n_links": 1} | flags
                )
    shards = sorted({line["id"].rpartition("/")[0] for line in lines})
    for number, shard in enumerate(shards):
        own = [line for line in lines if line["id"].startswith(f"{shard}/")]
        pq.write_table(
            pa.Table.from_pylist(own, PAGE_LINKS), folder / f"{number:04d}-en_head{LINKS_SUFFIX}"
        )
    _publish(lake, "page_links", folder, len(lines))
    empty = lake.partition("html_index", OLD).folder / f"{seed:012d}"
    empty.mkdir(parents=True, exist_ok=True)
    _publish(lake, "html_index", empty, 0)
    return lines


def _publish(lake: Lake, stage: str, folder: Path, n_lines: int) -> None:
    """Publish a version without inputs."""
    fingerprint = Fingerprint(stage=stage, key=OLD, code_version="1", params={}, inputs={})
    counts = Counts(seen=n_lines, kept=n_lines)
    published = write_receipt(folder, receipt_of(folder, fingerprint, counts))
    lake.partition(stage, OLD).point_at(published)
