"""Paragraphs shared by several documents: kept in the preferred one, removed from the others.

A paragraph is a line of a minimum length, stripped of white space; shorter lines such as menus and
headings are kept. Two paragraphs are the same if they are equal character by character (128-bit
keys, grouped out of core). Repeats within one document are kept. Documents of one partition are
compared, after excluding duplicates.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.builds.lookups import lines_where
from lc_assets.builds.tables import read_lines, writing_table
from lc_assets.execution.executor import Executor
from lc_assets.records import record
from lc_assets.stages.deduplication.facts import FACTS, fact_columns, preferred_by
from lc_assets.stages.deduplication.index import PLACE_BITS
from lc_assets.stages.deduplication.preferences import in_order
from lc_assets.stages.deduplication.queries import parquet, queries
from lc_assets.text.duplicates.keys import content_key
from lc_assets.text.words import split_lines

PARAGRAPHS_FILE = "paragraphs.parquet"
NOTHING_LEFT = "nothing left"

_FOUND = pa.schema(
    {
        "high": "uint64",
        "low": "uint64",
        "number": "int64",
        "start": "int64",
        "end": "int64",
    }
)
PARAGRAPHS = pa.schema(
    {
        "id": "string",
        "number": "int64",
        "start": "int64",
        "end": "int64",
        "first_id": "string",
        "first_number": "int64",
        "first_start": "int64",
    }
)
"""Removed spans, in characters of the filtered text, newline included, and the location of the kept
copy. ``number`` is the shard's number × 2³² + the document's index in the shard.
"""


@record
class ParagraphsTask:
    """One shard of filtered documents.

    Attributes:
        documents: the filtered documents.
        number: of the shard.
        removed: ids of excluded documents.
        least_chars: shorter paragraphs are kept.
        work: scratch folder of the tables.
    """

    documents: Path
    number: int
    removed: Collection[str]
    least_chars: int
    work: Path

    @property
    def found(self) -> Path:
        """Table of the shard's paragraphs."""
        return self.work / f"found-{self.number:05d}.parquet"

    @property
    def facts(self) -> Path:
        """Table of the values that the preference compares."""
        return self.work / f"facts-{self.number:05d}.parquet"

    def __str__(self) -> str:
        return str(self.documents)


def publish_repeated(
    tasks: Sequence[ParagraphsTask], path: Path, prefer: tuple[str, ...], *, executor: Executor
) -> None:
    """Publish the paragraphs that are to be removed as ``path``.

    Args:
        tasks: all shards, at least one.
        path: of the table `PARAGRAPHS`.
        prefer: which document keeps a paragraph, as in `RemovalSettings.prefer`.
        executor: runs the tasks.
    """
    list(executor.run(find_paragraphs, tasks, what="read paragraphs"))
    found, facts = [task.found for task in tasks], [task.facts for task in tasks]
    with queries(tasks[0].work / "duckdb") as database:
        database.do(f"CREATE OR REPLACE VIEW found AS SELECT * FROM {parquet(found)}")
        database.do(
            f"CREATE OR REPLACE VIEW facts AS SELECT *, '' AS snapshot FROM {parquet(facts)}"
        )
        database.do("""CREATE OR REPLACE TABLE shared AS
            SELECT high, low, number, min(start) AS start FROM found JOIN
                (SELECT high, low FROM found GROUP BY high, low HAVING min(number) <> max(number))
                USING (high, low)
            GROUP BY high, low, number""")
        database.do(f"""CREATE OR REPLACE TABLE firsts AS
            SELECT high, low, number, start, id FROM shared JOIN facts USING (number)
            QUALIFY row_number() OVER (PARTITION BY high, low ORDER BY {in_order(prefer)}) = 1""")
        query = """
            SELECT facts.id, found.number, found.start, found."end",
                   firsts.id AS first_id, firsts.number AS first_number, firsts.start AS first_start
            FROM found JOIN firsts USING (high, low) JOIN facts ON facts.number = found.number
            WHERE found.number <> firsts.number ORDER BY found.number, found.start"""
        database.publish(query, path, PARAGRAPHS)


def find_paragraphs(task: ParagraphsTask) -> None:
    """Publish keys and spans of the paragraphs of one shard's documents."""
    columns = fact_columns(task.documents)
    with writing_table(task.found, _FOUND) as found, writing_table(task.facts, FACTS) as facts:
        for place, line in enumerate(read_lines(task.documents, columns, batch_lines=16)):
            if line["id"] in task.removed:
                continue
            number = task.number << PLACE_BITS | place
            facts.add(preferred_by(number, line) | {"source": line["id"].partition("/")[0]})
            for high, low, start, end in paragraphs(line["raw_content"], task.least_chars):
                found.add(dict(zip(_FOUND.names, (high, low, number, start, end), strict=True)))


def paragraphs(text: str, least_chars: int) -> list[tuple[int, int, int, int]]:
    r"""Key (two halves), start and end of each paragraph of enough characters.

    >>> [(start, end) for _, _, start, end in paragraphs("short\n  a longer line \nlast", 10)]
    [(6, 23)]
    """
    found, start = [], 0
    for line in split_lines(text):
        bare = line.strip()
        if len(bare) >= least_chars:
            key = content_key(bare.encode("utf-8", "surrogatepass"))
            found.append((*key, start, start + len(line)))
        start += len(line)
    return found


def spans_by_id(path: Path, number: int) -> dict[str, list[tuple[int, int]]]:
    """Spans to remove from the documents of shard ``number``, ascending, by id."""
    low, high = number << PLACE_BITS, (number + 1) << PLACE_BITS
    ours = (pc.field("number") >= low) & (pc.field("number") < high)
    spans: dict[str, list[tuple[int, int]]] = {}
    for line in lines_where(path, ours):
        spans.setdefault(line["id"], []).append((line["start"], line["end"]))
    return spans
