"""Tables of pages: the identity of each, without its text; and the content key and tokens of those
that are needed.

One table of each kind per shard of documents, in a scratch folder. Page numbers are assigned later,
over all shards (`lc_assets.stages.longpack.dealing`).
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path is quoted

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from lc_assets.builds.checks import FileTask
from lc_assets.builds.settings.longpack import LongPackSettings
from lc_assets.builds.tables import read_lines, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.packing.longpack import one_line, root_ranks
from lc_assets.randomness import within
from lc_assets.records import record
from lc_assets.stages.deduplication.queries import Queries, quoted
from lc_assets.text.duplicates.keys import content_key, grams_of
from lc_assets.text.links.page_keys import is_home, key_host, page_key
from lc_assets.tokens.tokenizers import TextEncoding, Tokenizer, escape

PAGES = pa.schema(
    {
        "file": "int32",
        "line": "int32",
        "id": "string",
        "page_key": "string",
        "host": "string",
        "is_home": "bool",
        "rank": "uint64",
        "is_root": "bool",
        "is_older": "bool",
        "language": "string",
        "title": "string",
    }
)
"""A document as a page. ``page_key``, ``host``: null without a web address; ``rank`` is then that
of the id. ``is_older``: it is of another snapshot, and no root.
"""

FACTS = pa.schema(
    {
        "number": "int32",
        "content": "string",
        "n_tokens": "int64",
    }
)
"""A text: ``content`` is a key of its words; ``n_tokens`` is null if it cannot be tokenized or is
blank.
"""

NEEDED = pa.schema({"line": "int64", "number": "int64"})
"""A text that is needed: its line in the file of documents, and its page's number."""

TITLE_CHARS = 200
"""Maximum length of a title that replaces anchor texts."""

UNTOKENIZABLE = "tokenizer gave up"

_INDEX = re.compile(r"[^/?]+/index\.[A-Za-z0-9]{1,5}")


Run = Callable[..., Counts]
"""Runs a shard function over tasks and adds up what it counted; ``what`` describes the tasks for
the progress bar.
"""


@record
class PagesTask(FileTask):
    """Documents to be listed as pages."""

    step = "pages"

    settings: LongPackSettings
    is_older: bool = False


@record
class FactsTask(FileTask):
    """Documents of which some texts must be known: those in the table ``needed`` (`NEEDED`)."""

    step = "facts"

    needed: Path
    tokenizer: str
    text_encoding: TextEncoding


def list_pages(task: PagesTask) -> Counts:
    """Write the page table of one shard."""
    found = read_table(task.documents, ["id", "url", "language", "title"])
    columns = {
        name: [value or "" for value in found[name].to_pylist()] for name in found.column_names
    }
    titles = columns["title"]
    if task.settings.untitled == "first_line" and not all(titles):
        lines = read_lines(task.documents, ["raw_content"], batch_lines=16)
        titles = [
            title or line["raw_content"].lstrip()[: 4 * TITLE_CHARS].partition("\n")[0]
            for title, line in zip(titles, lines, strict=True)
        ]
    ids, keys = columns["id"], [page_key(url) for url in columns["url"]]
    ranks = root_ranks(
        [key or name for key, name in zip(keys, ids, strict=True)], task.settings.seed
    )
    table = {
        "file": np.full(len(ids), task.file, np.int32),
        "line": np.arange(len(ids), dtype=np.int32),
        "id": ids,
        "page_key": keys,
        "host": [key and key_host(key) for key in keys],
        "is_home": [key is not None and is_portal(key) for key in keys],
        "rank": ranks,
        "is_root": within(ranks, task.settings.roots) & (not task.is_older),
        "is_older": np.full(len(ids), task.is_older),
        "language": columns["language"],
        "title": [one_line(title)[:TITLE_CHARS] for title in titles],
    }
    write_table(task.path, pa.table(table, schema=PAGES))
    return Counts(extra={"pages without an address": keys.count(None)})


def is_portal(key: str) -> bool:
    """Whether a page is its host's first one, by its address.

    >>> (
    ...     is_portal("example.org"),
    ...     is_portal("example.org/index.php"),
    ...     is_portal("example.org/a/index.php"),
    ...     is_portal("example.org?p=1"),
    ... )
    (True, True, False, False)
    """
    return is_home(key) or _INDEX.fullmatch(key) is not None


def know_texts(task: FactsTask) -> Counts:
    """Write content and tokens of the texts of one shard that are needed."""
    number_of = {line["line"]: line["number"] for line in read_lines(task.needed)}
    found, n_chars = [], 0
    documents = (
        read_lines(task.documents, ["id", "raw_content"], batch_lines=16) if number_of else ()
    )
    for line, document in enumerate(documents):
        if line in number_of:
            text = document["raw_content"]
            n_chars += len(text)
            n_tokens = None
            if text.strip():
                n_tokens = n_tokens_of(text, task.tokenizer, task.text_encoding)
            found.append(
                {
                    "number": number_of[line],
                    "content": content_of(text, document["id"]),
                    "n_tokens": n_tokens,
                }
            )
    write_table(task.path, pa.Table.from_pylist(found, schema=FACTS))
    counted = [line["n_tokens"] for line in found if line["n_tokens"] is not None]
    extra = {
        "texts counted": len(found),
        "tokens counted": sum(counted),
        "characters counted": n_chars,
    }
    return Counts(extra=extra | {UNTOKENIZABLE: len(found) - len(counted)})


def content_of(text: str, document_id: str) -> str:
    """Name of a text's words; a text without words is like no other.

    >>> (
    ...     content_of("Don't  STOP!", "x/0") == content_of("dont stop", "x/1"),
    ...     content_of("?!", "x/0"),
    ... )
    (True, '=x/0')
    """
    words, _ = grams_of(text, 1)
    high, low = content_key(words.data)
    return f"{high:016x}{low:016x}" if len(words) else f"={document_id}"


def n_tokens_of(text: str, tokenizer: str, text_encoding: TextEncoding) -> int | None:
    """Tokens of a text; None if the tokenizer fails."""
    try:
        return len(_fastest(tokenizer).encode(escape(text, text_encoding)))
    except BadInput:
        return None


@cache
def _fastest(setting: str) -> Tokenizer:
    try:
        return tokenizer_of(setting)
    except BadInput:  # gigatoken does not know every kind of tokenizer.json
        return tokenizer_of(setting, fast=False)


def numbered_rows(database: Queries, paths: Sequence[Path]) -> str:
    """Tables' lines with column ``row_of_all``, which names file and line; as a table of a
    query.
    """
    files = ", ".join(f"({quoted(str(path))}, {number})" for number, path in enumerate(paths))
    database.do(
        f"CREATE OR REPLACE TABLE files AS SELECT * FROM (VALUES {files}) AS v(filename, file)"
    )
    listed = ", ".join(quoted(str(path)) for path in paths)
    return f"""(SELECT lines.*, file::BIGINT << 32 | file_row_number AS row_of_all
        FROM read_parquet([{listed}], filename = true, file_row_number = true) AS lines
        JOIN files USING (filename))"""
