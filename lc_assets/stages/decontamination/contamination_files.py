"""The files of a decontamination: what was found where, what it says of each item, and documents
that go their ways.

All tables are Parquet and hold no text of documents; what left the corpus lies beside them in full,
so that every removal can be explained and undone. Not here: the order of things
(`lc_assets.stages.decontamination.decontaminating`).
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.errors import Mismatch
from lc_assets.formats.corpora.records import CorpusDocument
from lc_assets.formats.corpora.writing import json_line
from lc_assets.formats.gzipping import gzipped
from lc_assets.publishing import publish
from lc_assets.stages.tables import TableWriter, read_lines
from lc_assets.text.contamination import Overlap
from lc_assets.text.gram_scan import Finds
from lc_assets.text.grams import GramIndex

FINDS = pa.schema(
    [
        ("place", pa.int64()),
        ("id", pa.string()),
        ("n_words", pa.int64()),
        ("grams", pa.list_(pa.int64())),
        ("starts", pa.list_(pa.int64())),
        ("ends", pa.list_(pa.int64())),
        ("lasts", pa.list_(pa.int64())),
    ]
)
"""A document that holds any n-gram: its place in its file, and every occurrence as
`lc_assets.text.gram_scan.Finds` has it.
"""

EVIDENCE = pa.schema(
    [
        ("id", pa.string()),
        ("item", pa.int64()),
        ("item_id", pa.string()),
        ("grams", pa.int64()),
        ("item_grams", pa.int64()),
        ("coverage", pa.float64()),
        ("longest_words", pa.int64()),
        ("document_share", pa.float64()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("condemned", pa.bool_()),
    ]
)
"""A document and an item of which it holds something; ``condemned`` when this item alone is enough
for the rule.
"""

ITEMS = pa.schema(
    [
        ("item", pa.int64()),
        ("item_id", pa.string()),
        ("verdict", pa.string()),
        ("words", pa.int64()),
        ("grams", pa.int64()),
        ("documents", pa.int64()),
        ("condemned_documents", pa.int64()),
        ("best_coverage", pa.float64()),
        ("longest_words", pa.int64()),
        ("best_document", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
    ]
)
"""An evaluation item: in how many documents something of it stands, and the document that holds
most of it.
"""

COMMON = pa.schema(
    [
        ("gram", pa.int64()),
        ("words", pa.string()),
        ("items", pa.int64()),
        ("documents", pa.int64()),
        ("ignored", pa.bool_()),
    ]
)
"""N-grams that many items or many documents hold, those of most documents first."""


def write_finds(path: Path, found: Iterable[tuple[int, str, Finds]]) -> None:
    """Publish what was found in the documents of one file."""
    with publish(path) as draft, contextlib.closing(TableWriter(draft, FINDS)) as table:
        for place, name, finds in found:
            columns = {
                "grams": finds.grams,
                "starts": finds.starts,
                "ends": finds.ends,
                "lasts": finds.lasts,
            }
            line = {"place": place, "id": name, "n_words": finds.n_words} | {
                key: column.tolist() for key, column in columns.items()
            }
            table.add(line, n_bytes=256 + 128 * len(finds))


def read_finds(path: Path) -> Iterator[tuple[int, str, Finds]]:
    """Yield place, id and finds of each document that holds any n-gram, in their order."""
    for line in read_lines(path, FINDS.names):
        columns = {
            name: np.array(line[name], np.int64) for name in ("grams", "starts", "ends", "lasts")
        }
        yield line["place"], line["id"], Finds(**columns, n_words=line["n_words"])


def document_counts(paths: Iterable[Path], n_grams: int) -> NDArray[np.int64]:
    """In how many documents each n-gram stands: ``(grams,)``."""
    counts = np.zeros(n_grams, np.int64)
    for path in paths:
        for _, _, finds in read_finds(path):
            counts[np.unique(finds.grams)] += 1
    return counts


def lines_of(
    document_id: str,
    overlaps: Iterable[Overlap],
    index: GramIndex,
    condemns: Callable[[Overlap], bool],
) -> Iterator[dict[str, Any]]:
    """Yield the lines of one document's evidence."""
    for overlap in overlaps:
        of_item = {
            "id": document_id,
            "item_id": index.item_ids[overlap.item],
            "condemned": condemns(overlap),
        }
        yield of_item | msgspec.structs.asdict(overlap)


def item_lines(
    index: GramIndex, item_grams: NDArray[np.int64], paths: Iterable[Path]
) -> list[dict[str, Any]]:
    """The report: a line per item, the worst first, from the evidence of all files."""
    lines: list[dict[str, Any]] = [
        {"item": item, "item_id": name, "verdict": "", "words": int(words), "grams": int(grams)}
        | {"documents": 0, "condemned_documents": 0, "best_coverage": 0.0, "longest_words": 0}
        | {"best_document": None, "start": None, "end": None}
        for item, (name, words, grams) in enumerate(
            zip(index.item_ids, index.item_words, item_grams, strict=True)
        )
    ]
    for path in paths:
        for found in read_lines(path, EVIDENCE.names):
            _take_up(lines[found["item"]], found)
    for line in lines:
        line["verdict"] = _verdict(
            line, too_short=int(index.item_words[line["item"]]) < index.settings.min_words
        )
    return sorted(
        lines, key=lambda line: (-line["best_coverage"], -line["longest_words"], line["item"])
    )


def _take_up(line: dict[str, Any], found: dict[str, Any]) -> None:
    line["documents"] += 1
    line["condemned_documents"] += int(found["condemned"])
    line["longest_words"] = max(line["longest_words"], found["longest_words"])
    if found["coverage"] > line["best_coverage"]:
        line |= {
            "best_coverage": found["coverage"],
            "best_document": found["id"],
            "start": found["start"],
            "end": found["end"],
        }


def _verdict(line: dict[str, Any], *, too_short: bool) -> str:
    if line["grams"] == 0:
        return "too short" if too_short else "no n-gram left"
    if line["condemned_documents"]:
        return "contaminated"
    return "touched" if line["documents"] else "clean"


class DocumentFile:
    """A ``.jsonl.gz`` of documents being written; the same documents give the same bytes."""

    def __init__(self, stack: contextlib.ExitStack, path: Path) -> None:
        self._out = stack.enter_context(gzipped(stack.enter_context(publish(path))))

    def add(self, document: CorpusDocument) -> None:
        """Write one document."""
        self._out.write(json_line(document))


def same_document(place: int, document_id: str, found_id: str, path: Path) -> None:
    """Hold a document against what was found in it.

    Raises:
        Mismatch: when it is another one.
    """
    if document_id != found_id:
        raise Mismatch(
            f"{path}: document {place} was {found_id} when it was scanned and is {document_id} "
            "now; run it again"
        )
