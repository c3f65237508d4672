"""Tables of contamination: matches, their summary per document and item, and reports.

All tables are Parquet and contain no document text. They are written by
`lc_assets.stages.decontamination.contaminated_documents`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from lc_assets.arrays import Int64s
from lc_assets.builds.settings.common import DecontaminationSettings
from lc_assets.builds.tables import Line, read_lines, write_table
from lc_assets.errors import BadInput
from lc_assets.formats.lists.evaluations import FIELDS, evaluation_files, read_items
from lc_assets.text.contamination.grams import GramIndex, GramSettings, build_index, postings
from lc_assets.text.contamination.overlaps import OF_STRETCHES, Weigher
from lc_assets.text.contamination.scanning import Finds

CONTAMINATED = "contaminated"
MOST_COMMON = 1000
"""Common n-grams that are listed."""

FIND_COLUMNS = ("grams", "starts", "ends", "lasts")
FINDS = pa.schema(
    {
        "place": "int64",
        "id": "string",
        "n_words": "int64",
        **dict.fromkeys(FIND_COLUMNS, pa.list_(pa.int64())),
    }
)
"""A document that holds any n-gram: its number in its file from 0, and every occurrence, as in
`lc_assets.text.contamination.scanning.Finds`.
"""

EVIDENCE = pa.schema(
    {
        "id": "string",
        "item": "int64",
        "item_id": "string",
        "grams": "int64",
        "item_grams": "int64",
        "coverage": "float64",
        "longest_words": "int64",
        "document_share": "float64",
        "start": "int64",
        "end": "int64",
        "condemned": "bool",
    }
)
"""A document and an item that share n-grams; ``condemned`` if this item alone satisfies the rule.
"""

ITEMS = pa.schema(
    {
        "item": "int64",
        "item_id": "string",
        "verdict": "string",
        "words": "int64",
        "grams": "int64",
        "documents": "int64",
        "condemned_documents": "int64",
        "best_coverage": "float64",
        "longest_words": "int64",
        "best_document": "string",
        "start": "int64",
        "end": "int64",
    }
)
"""An evaluation item: how many documents share n-grams with it, and which holds most of it."""

COMMON = pa.schema(
    {
        "gram": "int64",
        "words": "string",
        "items": "int64",
        "documents": "int64",
        "ignored": "bool",
    }
)
"""N-grams of many items or many documents, by descending number of documents."""


def index_of(settings: DecontaminationSettings) -> GramIndex:
    """The n-grams of the evaluation sets that ``settings`` names.

    Raises:
        BadInput: when a set cannot be read, or no item of any has enough words.
    """
    files = evaluation_files(Path(source) for source in settings.against)
    items = (item for file in files for item in read_items(file, settings.fields))
    most = settings.min_words if settings.mode in OF_STRETCHES else settings.ngram
    grams = GramSettings(
        ngram=settings.ngram,
        min_words=min(settings.min_words, most),
        sample=settings.sample,
    )
    index = build_index(items, grams)
    if not index.n_grams:
        n_empty = int((index.item_words == 0).sum())
        raise BadInput(
            f"{', '.join(map(str, settings.against))}: {len(index.item_ids):,} items, {n_empty:,} "
            f"of them without text, none with {grams.min_words} words; fields looked for: "
            f"{', '.join(settings.fields or FIELDS)}; name others with --field"
        )
    return index


def read_finds(path: Path) -> Iterator[tuple[str, Finds]]:
    """Yield id and finds of each document that holds any n-gram, in order."""
    for line in read_lines(path, FINDS.names):
        columns = {name: np.array(line[name], np.int64) for name in FIND_COLUMNS}
        yield line["id"], Finds(**columns, n_words=line["n_words"])


def document_counts(paths: Iterable[Path], n_grams: int) -> Int64s:
    """Number of documents that hold each n-gram: int64, ``(grams,)``."""
    counts = np.zeros(n_grams, np.int64)
    for path in paths:
        for _, finds in read_finds(path):
            counts[np.unique(finds.grams)] += 1
    return counts


def write_common(path: Path, index: GramIndex, documents: Int64s, ignored: Int64s) -> None:
    """Publish the most common n-grams, and the most common of those that were ignored."""
    most = np.argsort(-documents, kind="stable")[:MOST_COMMON]
    listed = np.union1d(
        ignored[np.argsort(-documents[ignored], kind="stable")][:MOST_COMMON],
        most[documents[most] > 1],
    )
    lines = [
        {
            "gram": int(gram),
            "words": " ".join(index.words_of(gram)),
            "items": len(np.unique(postings(index, np.array([gram]))[0])),
            "documents": int(documents[gram]),
            "ignored": bool(np.isin(gram, ignored)),
        }
        for gram in listed[np.argsort(-documents[listed], kind="stable")].tolist()
    ]
    write_table(path, pa.Table.from_pylist(lines, schema=COMMON))


def write_items(path: Path, index: GramIndex, ignored: Int64s, evidence: Iterable[Path]) -> None:
    """Publish the report: a line per item, the most covered first."""
    item_grams = Weigher(index, ignored.tolist()).item_grams.tolist()
    lines: list[Line] = [
        dict.fromkeys(("best_document", "start", "end"))
        | dict.fromkeys(("documents", "condemned_documents", "longest_words"), 0)
        | {"item": item, "item_id": name, "words": words, "grams": grams, "best_coverage": 0.0}
        for item, (name, words, grams) in enumerate(
            zip(index.item_ids, index.item_words.tolist(), item_grams, strict=True)
        )
    ]
    for found in (found for file in evidence for found in read_lines(file, EVIDENCE.names)):
        line = lines[found["item"]]
        line["documents"] += 1
        line["condemned_documents"] += int(found["condemned"])
        line["longest_words"] = max(line["longest_words"], found["longest_words"])
        if found["coverage"] > line["best_coverage"]:
            place = {"start": found["start"], "end": found["end"]}
            line |= {"best_coverage": found["coverage"], "best_document": found["id"], **place}
    for line in lines:
        line["verdict"] = _verdict(line, index.settings.min_words)
    lines.sort(key=lambda line: (-line["best_coverage"], -line["longest_words"], line["item"]))
    write_table(path, pa.Table.from_pylist(lines, schema=ITEMS))


def _verdict(line: Line, min_words: int) -> str:
    if line["grams"] == 0:
        return "too short" if line["words"] < min_words else "no n-gram left"
    if line["condemned_documents"]:
        return "contaminated"
    return "touched" if line["documents"] else "clean"
