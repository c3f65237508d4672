"""The texts of packed rows, as a corpus that other commands read: a record per row, with the spans
of its pieces in characters.

Pieces are decoded each for itself and parted by a blank line, which belongs to none of them; end of
text and padding are no text. A piece that begins or ends within a character of several bytes shows
U+FFFD there, and is counted.

Here: ids to texts. Not here: rows of ids (`stages.packing_writing`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow.parquet as pq

from lc_assets.build.tables import opened_table
from lc_assets.counts import Counts
from lc_assets.execution.executor import Executor
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.formats.arrays.grid_layout import grid_dtype
from lc_assets.formats.corpora.containers import write_corpus
from lc_assets.formats.corpora.records import CorpusDocument
from lc_assets.formats.tokenizers.named import text_of
from lc_assets.publishing import publish
from lc_assets.stages.packing.packing_gathering import gather_pieces
from lc_assets.stages.packing.packing_tables import PACKED_SPANS, SPANS_FILE
from lc_assets.stages.packing.packing_writing import Vocabulary

FOLDER: Final = "texts"
PARTED_BY: Final = "\n\n"
TORN: Final = "pieces torn within a character"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextsTask:
    """One group of rows, to become a file of texts in ``folder``."""

    tokens: Path
    folder: Path
    group: int
    tokenizer: str
    vocabulary: Vocabulary

    @property
    def file(self) -> Path:
        """The file."""
        return self.folder / FOLDER / f"{self.group:05d}.jsonl.gz"

    def __str__(self) -> str:
        return str(self.file)


def write_texts(
    folder: Path, tokens: Path, tokenizer: str, vocabulary: Vocabulary, *, executor: Executor
) -> Counts:
    """Write the texts of all rows whose spans lie in ``folder``: ``texts/00000.jsonl.gz`` and on, a
    file per group of rows.
    """
    with library_errors_as_corrupt_file(folder / SPANS_FILE, system_errors_too=True):
        n_groups = pq.read_metadata(folder / SPANS_FILE).num_row_groups
    tasks = [
        TextsTask(
            tokens=tokens, folder=folder, group=group, tokenizer=tokenizer, vocabulary=vocabulary
        )
        for group in range(n_groups)
    ]
    return Counts.total(found for _, found in executor.run(write_group, tasks, what="write texts"))


def write_group(task: TextsTask) -> Counts:
    """Write the texts of one group of rows."""
    torn = [0]
    with publish(task.file) as draft:
        n_rows = write_corpus(draft, _rows(task, torn))
    return Counts(seen=n_rows, kept=n_rows, extra={TORN: torn[0]})


def _rows(task: TextsTask, torn: list[int]) -> Iterator[CorpusDocument]:
    path = task.folder / SPANS_FILE
    with opened_table(path) as file:
        plan = file.read_row_group(
            task.group, columns=[name for name in PACKED_SPANS.names if name != "digest"]
        )
    lengths = np.asarray(plan["document_stop"]) - np.asarray(plan["document_start"])
    ends = np.cumsum(lengths)
    ids = np.empty(int(ends[-1]), grid_dtype(task.vocabulary.n_ids))
    gather_pieces(plan, task.tokens, ids, ends - lengths, eot=task.vocabulary.eot)
    pieces: list[tuple[dict[str, Any], str]] = []
    for line, end, length in zip(plan.to_pylist(), ends.tolist(), lengths.tolist(), strict=True):
        if pieces and line["row"] != pieces[0][0]["row"]:
            yield _record(pieces)
            pieces = []
        n_own = min(line["document_stop"], line["n_tokens"]) - line["document_start"]
        text = text_of(task.tokenizer, ids[end - length : end - length + n_own])
        torn[0] += int(text[:1] == "\ufffd" and line["document_start"] > 0)
        torn[0] += int(text[-1:] == "\ufffd" and line["document_stop"] < line["n_tokens"])
        pieces.append((line, text))
    yield _record(pieces)


def _record(pieces: list[tuple[dict[str, Any], str]]) -> CorpusDocument:
    """A row's record: its text, and where in it which piece of which document stands."""
    spans, start = [], 0
    for line, text in pieces:
        own = {"document": line["id"], "url": line["url"]}
        tokens = {"first_token": line["document_start"], "last_token": line["document_stop"]}
        spans.append({"start": start, "stop": start + len(text), **own, **tokens})
        start += len(text) + len(PARTED_BY)
    first = pieces[0][0]
    identity, n_tokens = f"{first['split']}/{first['row']}", pieces[-1][0]["row_stop"]
    rest = msgspec.Raw(msgspec.json.encode({"id": identity, "n_tokens": n_tokens, "spans": spans}))
    return CorpusDocument(id=identity, text=PARTED_BY.join(text for _, text in pieces), rest=rest)
