"""What `document_keys` computes from each text: digests, as it is and as tokenized; a sketch; and
the order of its lines.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.arrays import Booleans, Bytes, Int64s, UInt64s
from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.checks import files_holding
from lc_assets.builds.lookups import LINES_AT_ONCE, parts_of, regrouped
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.stage import CheckInput
from lc_assets.builds.tables import KEYED, read_table
from lc_assets.stages.tokens.tokenized_text import (
    SomeTexts,
    are_held_out,
    privacy_of,
    read_texts,
    text_digest,
)
from lc_assets.text.duplicates.grams import Hashes
from lc_assets.text.duplicates.keys import Shingles, shingles_each
from lc_assets.text.duplicates.sketches import SKETCH_HASHES, sketches_each
from lc_assets.text.folding import normalized_each
from lc_assets.text.texts import parts

SKETCH = pa.field("sketch", pa.binary(8 * SKETCH_HASHES))
"""A column of sketches."""
OF_TEXT = pa.schema([*(KEYED.field(name) for name in ("text_digest", "tokenized_digest")), SKETCH])
"""Columns that are computed from texts; `document_signatures` publishes them, where it sketches."""
_OF_LINES = (
    r"^[A-Za-z0-9_-]+/(?:\d{4}/[a-z]{2}_[a-z]+\.json\.gz/(?:0|[1-9]\d{0,9})"
    r"|[A-Za-z0-9_-]+/line-(?:0|[1-9]\d{0,11}))$"
)
"""Pattern of valid document ids that name lines."""


def are_sketched(recipe: Recipe) -> bool:
    """Whether sketches are needed: to compare across the split, or with withdrawn documents."""
    return are_held_out(recipe) or bool(recipe.withdrawn_documents.lists)


def with_digests(
    path: Path,
    schema: pa.Schema,
    privacy: PrivacySettings,
    shingles: Shingles | None,
    only: Booleans | None = None,
) -> Iterator[pa.RecordBatch]:
    """The columns of a table of filtered documents that a schema names; digests, and sketches
    of some shingles, are made from the texts.

    Args:
        path: the table.
        schema: of what is yielded.
        privacy: what is replaced in a text before it is tokenized.
        shingles: of the sketches, where the schema names them.
        only: ``(lines,)``, which of the documents are wanted; by default all.
    """
    columns = [name for name in schema.names if name not in OF_TEXT.names]
    for texts in read_texts(path, columns, privacy, only):
        arrays = {name: texts.lines[name] for name in columns} | digests_of(texts)
        if shingles and SKETCH.name in schema.names:
            hashes = shingles_each(*normalized_each(*texts.tokenized), shingles)
            arrays[SKETCH.name] = sketched(*hashes)
        yield pa.record_batch([arrays[name] for name in schema.names], schema=schema)
        del texts


def differing(
    check_input: CheckInput,
    files: Sequence[Path],
    stated: Mapping[str, Mapping[str, Any]],
    schema: pa.Schema,
) -> list[str]:
    """Ids of those documents whose texts, read again, give other values of a schema's columns than
    those stated.
    """
    params, found = check_input.params, dict[str, dict[str, Any]]()
    again = partial(_read_again, chosen=set(stated), schema=schema, params=params)
    for of in by_workers(check_input, again, files_holding(stated, files)):
        found |= of
    return [name for name, values in stated.items() if found.get(name) != values]


def _read_again(
    documents: Path, chosen: set[str], schema: pa.Schema, params: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """What `with_digests` makes of some documents of a shard, by id, with the settings of a
    fingerprint; texts behind the last of them are not read.
    """
    found, shingles = dict[str, dict[str, Any]](), Shingles(**params.get("shingles", {}))
    ids = read_table(documents, ["id"])["id"]
    only = np.asarray(pc.is_in(ids, pa.array(chosen, pa.string())))
    for batch in with_digests(documents, schema, privacy_of(params), shingles, only=only):
        found |= {line.pop("id"): line for line in batch.to_pylist()}
        if len(found) == only.sum():
            break
    return found


def digests_of(texts: SomeTexts) -> dict[str, pa.Array]:
    """Digests of documents' texts, as they are and as they are tokenized."""
    own = _digests(*texts.raw)
    tokenized = own if texts.tokenized is texts.raw else _digests(*texts.tokenized)
    return {"text_digest": own, "tokenized_digest": tokenized}


def _digests(data: Bytes, ends: Int64s) -> pa.Array:
    return pa.array([text_digest(text.data) for text in parts(data, ends)], pa.string())


def sketched(hashes: Hashes, ends: Int64s) -> pa.Array:
    """Sketches of texts, by their shingles, as `SKETCH` holds them."""
    return _column(sketches_each(hashes, ends))


def _column(sketches: UInt64s) -> pa.Array:
    return pa.Array.from_buffers(SKETCH.type, len(sketches), [None, pa.py_buffer(sketches)])


def with_published(documents: Path, known: Path, schema: pa.Schema) -> Iterator[pa.Table]:
    """The columns of a table of filtered documents that a schema names; those of `OF_TEXT` are read
    from another table, of the same documents in the same order.
    """
    of_texts, begin = read_table(known, [it for it in schema.names if it in OF_TEXT.names]), 0
    columns = [name for name in schema.names if name not in OF_TEXT.names]
    for table in regrouped(parts_of(documents, columns), LINES_AT_ONCE):
        found = of_texts.slice(begin, table.num_rows)
        begin += table.num_rows
        arrays = [(found if name in OF_TEXT.names else table)[name] for name in schema.names]
        yield pa.Table.from_arrays(arrays, schema=schema)


def without_sketches(parts: Iterable[pa.Table], sketches: list[UInt64s]) -> Iterator[pa.Table]:
    """The parts of a table of documents; their sketches, if any, are appended to a list."""
    for part in parts:
        if SKETCH.name in part.column_names:
            found = b"".join(part[SKETCH.name].to_pylist())
            sketches.append(np.frombuffer(found, np.uint64).reshape(-1, SKETCH_HASHES))
        yield part.select([name for name in part.column_names if name != SKETCH.name])


def with_sketches(parts: Iterable[pa.Table], sketches: UInt64s) -> Iterator[pa.Table]:
    """The parts of a table of documents, each with its documents' sketches."""
    begin = 0
    for part in parts:
        yield part.append_column(SKETCH, _column(sketches[begin : begin + part.num_rows]))
        begin += part.num_rows


def by_line(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables of shards, each by its lines; documents with ids of their own stay in the order of
    their file.
    """
    for table in tables:
        lines = lines_of_ids(table["id"])
        if lines is None or (lines[1:] >= lines[:-1]).all():
            yield table
        else:
            yield table.take(pa.array(np.argsort(lines, kind="stable")))


def identity_of(schema: pa.Schema, shard: tuple[Path, Path | None]) -> tuple[int, str]:
    """Of a shard of filtered documents, by its lines: how many, and a digest of what a schema names
    of them, read as by `with_published` where a table of their texts' columns is given.
    """
    documents, known = shard
    read = with_published(documents, known, schema) if known else parts_of(documents, schema.names)
    (table,) = by_line([pa.concat_tables([schema.empty_table(), *read])])
    return table.num_rows, _digest_of(table)


def are_listed(
    parts: Iterator[pa.Table], shards: Iterable[tuple[int, str]], schema: pa.Schema
) -> bool:
    """Whether a table of a schema, given in parts, begins with the documents of `identity_of`, a
    shard behind the other.
    """
    waiting = schema.empty_table()
    for n_lines, digest in shards:
        while waiting.num_rows < n_lines and (part := next(parts, None)) is not None:
            waiting = pa.concat_tables([waiting, part])
        if _digest_of(waiting.slice(0, n_lines)) != digest:
            return False
        waiting = waiting.slice(n_lines)
    return True


def _digest_of(table: pa.Table) -> str:
    """A digest of a table's content, however it is cut."""
    whole = pa.concat_tables([table, table.schema.empty_table()]).combine_chunks()
    written = pa.BufferOutputStream()
    with pa.ipc.new_stream(written, whole.schema) as stream:
        stream.write_table(whole)
    return hashlib.sha256(written.getvalue()).hexdigest()


def lines_of_ids(ids: pa.ChunkedArray) -> Int64s | None:
    """The lines that some document ids name, as `lc_assets.vocabulary.parse_document_id` reads
    them; int64, one per id. None if any is an id of a record's own.
    """
    if not pc.all(pc.match_substring_regex(ids, _OF_LINES), min_count=0).as_py():
        return None
    return np.asarray(pc.cast(pc.replace_substring_regex(ids, r"^.*[-/]", ""), pa.int64()))
