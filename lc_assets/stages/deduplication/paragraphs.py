"""Paragraphs that several documents have: they stay in the preferred one and go from the others,
with evidence.

A paragraph is a line; without the whitespace around it, it must have some characters (`LEAST_CHARS`
if nobody says otherwise), or menus and headings would go. Two are the same when they are equal
character by character (128-bit keys, an exact set, grouped out of core). What one document has
twice stays twice. Characters add up: those of the documents that stay are those that are written
and those that are removed.

Only documents that a search kept (`lc_assets.stages.deduplication.running`) are looked at. Not
here: substrings that are no whole line.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.formats.corpora.records import CorpusDocument
from lc_assets.formats.gzipping import gzipped
from lc_assets.publishing import publish
from lc_assets.stages.deduplication.asking import WORK
from lc_assets.stages.deduplication.deciding import KEPT_FILE, in_order
from lc_assets.stages.deduplication.facts import documents_of
from lc_assets.stages.deduplication.index import PLACE_BITS, IndexedFile, open_index
from lc_assets.stages.deduplication.queries import Queries, parquet, queries
from lc_assets.stages.deduplication.running import INDEX, read_summary
from lc_assets.stages.deduplication.settings import Means
from lc_assets.text.duplicates.keys import Preference
from lc_assets.text.words import split_lines

LEAST_CHARS: Final = 200
PARAGRAPHS_FILE, DOCUMENTS = "paragraphs.parquet", "documents"
NOTHING_LEFT: Final = "nothing left"
_TWO: Final = struct.Struct("<QQ")
_AT_ONCE: Final = 1 << 16

FOUND = pa.schema(
    [
        ("high", pa.uint64()),
        ("low", pa.uint64()),
        ("number", pa.int64()),
        ("start", pa.int64()),
        ("end", pa.int64()),
    ]
)
PARAGRAPHS = pa.schema(
    [
        ("id", pa.string()),
        ("number", pa.int64()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("first_id", pa.string()),
        ("first_number", pa.int64()),
        ("first_start", pa.int64()),
    ]
)
"""Spans that were removed, in characters of the text, newline included; and where the same
paragraph stays.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParagraphsTask:
    """One file: its kept documents, what is a paragraph, and where keys or edited documents go.

    Attributes:
        file: the file.
        kept: the table of documents that stay.
        least_chars: a shorter paragraph stays.
        removed: spans to be removed, once they are known.
        out: what is written.
        text_field: see `read_corpus`.
    """

    file: IndexedFile
    kept: Path
    least_chars: int
    removed: Path
    out: Path
    text_field: str | None = None

    def __str__(self) -> str:
        return self.file.path


def remove_paragraphs(
    out: Path,
    *,
    executor: Executor,
    least_chars: int = LEAST_CHARS,
    means: Means | None = None,
    text_field: str | None = None,
) -> Counts:
    """Remove repeated paragraphs from the documents that a finished search in ``out`` kept, and
    write these documents.

    They go to ``out/documents``, one ``.jsonl.gz`` a file of the corpus, and the evidence to
    ``out/paragraphs.parquet``.

    Raises:
        NotPublished: when no search was finished in ``out``.
        BadInput: when the search went on from an older one: then documents are spread over two
            outputs.
    """
    decision = read_summary(out).decision
    index = open_index(out / INDEX)
    if len(index.parts) > 1:
        raise BadInput(
            f"{out}: was searched against an older corpus; paragraphs are compared within one "
            "search only"
        )
    if least_chars < 1:
        raise BadInput(f"paragraphs of at least {least_chars} characters: wanted at least one")
    work = out / WORK
    with os_errors_as_lc_errors(out), queries(work, (means or Means()).memory // 2) as asked:
        tasks = [
            ParagraphsTask(
                file=file,
                kept=out / KEPT_FILE,
                least_chars=least_chars,
                removed=out / PARAGRAPHS_FILE,
                out=work / f"{number:05d}.parquet",
                text_field=text_field,
            )
            for number, file in sorted(index.files.items())
        ]
        counted = Counts.total(
            counts for _, counts in executor.run(find_paragraphs, tasks, what="read paragraphs")
        )
        n_removed = _publish_repeats(
            asked, [task.out for task in tasks], index.fact_paths, Preference(decision.prefer), out
        )
        edits = [
            replace(task, out=out / DOCUMENTS / f"{task.file.number:05d}.jsonl.gz")
            for task in tasks
        ]
        edited = Counts.total(
            counts for _, counts in executor.run(edit_documents, edits, what="write documents")
        )
    return edited + counted + Counts(extra={"paragraphs removed": n_removed})


def find_paragraphs(task: ParagraphsTask) -> Counts:
    """Publish keys and spans of the paragraphs of one file's documents."""
    n_found = 0
    columns: list[list[int]] = [[], [], [], [], []]
    with publish(task.out) as draft, pq.ParquetWriter(draft, FOUND, compression="zstd") as writer:
        for number, document in _kept(task):
            for high, low, start, end in paragraphs(document.text, task.least_chars):
                for column, value in zip(columns, (high, low, number, start, end), strict=True):
                    column.append(value)
            if len(columns[0]) >= _AT_ONCE:
                n_found += _write(writer, columns)
        n_found += _write(writer, columns)
    return Counts(extra={"paragraphs": n_found})


def paragraphs(text: str, least_chars: int) -> list[tuple[int, int, int, int]]:
    r"""Key (two halves), start and end of each paragraph of enough characters.

    >>> [(start, end) for _, _, start, end in paragraphs("short\n  a longer line \nlast", 10)]
    [(6, 23)]
    """
    found, start = [], 0
    for line in split_lines(text):
        bare = line.strip()
        if len(bare) >= least_chars:
            digest = hashlib.blake2b(
                bare.encode("utf-8", "surrogatepass"), digest_size=_TWO.size
            ).digest()
            found.append((*_TWO.unpack(digest), start, start + len(line)))
        start += len(line)
    return found


def edit_documents(task: ParagraphsTask) -> Counts:
    """Publish one file's documents without the spans that are to be removed; one that has nothing
    left is dropped.
    """
    removed = pq.read_table(
        task.removed, columns=["number", "start", "end"], filters=_of_file(task.file.number)
    )
    spans: dict[int, list[tuple[int, int]]] = {}
    for number, start, end in zip(
        *(removed[name].to_pylist() for name in ("number", "start", "end")), strict=True
    ):
        spans.setdefault(number, []).append((start, end))
    n_seen = n_kept = n_chars = n_written = 0
    with publish(task.out) as draft, gzipped(draft) as stream:
        for number, document in _kept(task):
            text = without(document.text, spans.get(number, []))
            n_seen, n_chars, n_written = (
                n_seen + 1,
                n_chars + len(document.text),
                n_written + len(text),
            )
            if text.strip() or not document.text.strip():
                n_kept += 1
                stream.write(_line(document, text) + b"\n")
            else:
                n_written -= len(text)
    dropped = {NOTHING_LEFT: n_seen - n_kept} if n_seen > n_kept else {}
    extra = {
        "characters": n_chars,
        "characters removed": n_chars - n_written,
        "characters written": n_written,
        "edited": len(spans),
    }
    return Counts(seen=n_seen, kept=n_kept, dropped=dropped, failed_rules=dropped, extra=extra)


def without(text: str, spans: list[tuple[int, int]]) -> str:
    """Text without some spans, which ascend and do not overlap.

    >>> without("abcdef", [(1, 2), (3, 5)])
    'acf'
    """
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    return "".join(text[begin:end] for begin, end in zip(ends, starts, strict=True))


def _publish_repeats(
    asked: Queries, found: list[Path], facts: list[Path], preference: Preference, out: Path
) -> int:
    asked.do(f"CREATE OR REPLACE VIEW found AS SELECT * FROM {parquet(found)}")
    asked.do(f"CREATE OR REPLACE VIEW facts AS SELECT * FROM {parquet(facts)}")
    asked.do("""CREATE OR REPLACE TABLE shared AS
        SELECT high, low, number, min(start) AS start FROM found JOIN
            (SELECT high, low FROM found GROUP BY high, low HAVING min(number) <> max(number)) USING (high, low)
        GROUP BY high, low, number""")
    asked.do(f"""CREATE OR REPLACE TABLE firsts AS
        SELECT high, low, number, start, id FROM shared JOIN facts USING (number)
        QUALIFY row_number() OVER (PARTITION BY high, low ORDER BY {in_order(preference)}) = 1""")
    query = """
        SELECT facts.id, found.number, found.start, found."end",
               firsts.id AS first_id, firsts.number AS first_number, firsts.start AS first_start
        FROM found JOIN firsts USING (high, low) JOIN facts ON facts.number = found.number
        WHERE found.number <> firsts.number ORDER BY found.number, found.start"""
    return asked.publish(query, out / PARAGRAPHS_FILE, PARAGRAPHS)


def _kept(task: ParagraphsTask) -> Iterator[tuple[int, CorpusDocument]]:
    """The file's documents that stay, with their numbers."""
    kept = set(
        pq.read_table(task.kept, columns=["number"], filters=_of_file(task.file.number))[
            "number"
        ].to_pylist()
    )
    for place, document in documents_of(Path(task.file.path), task.text_field):
        number = task.file.number << PLACE_BITS | place
        if number in kept:
            yield number, document


def _of_file(number: int) -> list[tuple[str, str, int]]:
    return [("number", ">=", number << PLACE_BITS), ("number", "<", (number + 1) << PLACE_BITS)]


def _write(writer: pq.ParquetWriter, columns: list[list[int]]) -> int:
    table = pa.table(columns, schema=FOUND)
    writer.write_table(table)
    for column in columns:
        column.clear()
    return int(table.num_rows)


def _line(document: CorpusDocument, text: str) -> bytes:
    rest = msgspec.json.decode(document.rest, type=dict[str, msgspec.Raw])
    return msgspec.json.encode(rest | {"id": document.id, "text": text})
