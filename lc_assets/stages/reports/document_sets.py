"""The document sets of a snapshot that reports read: which exist, and their texts with parts.

===========  ===========================================  ====================================
set          a document is                                its parts
===========  ===========================================  ====================================
natural      a filtered document that is not excluded     itself
longpack     a packed document                            its pages
packed       a span of a packed row (lengths); a whole    the spans of the row, those of one
             row (referrals)                              document together
===========  ===========================================  ====================================

Not here: what is measured (`lc_assets.stages.reports.length_report`,
`lc_assets.stages.reports.referral_report`).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import numpy as np

from lc_assets.build.checks import DOCUMENTS_SUFFIX, documents_files
from lc_assets.build.recipe import Recipe
from lc_assets.build.tables import read_lines, read_table
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.tokenizers.named import text_of
from lc_assets.lake.versions import Published
from lc_assets.stages.longpack.gathering import SPANS_SUFFIX
from lc_assets.stages.packing.packing_tables import SPANS_FILE
from lc_assets.text.referrals.concepts import Part

NATURAL: Final = "natural"
LONGPACK: Final = "longpack"
PACKED: Final = "packed"
SETS: Final = (NATURAL, LONGPACK, PACKED)

STAGE_OF_SET: Final = {
    NATURAL: "filtered_documents",
    LONGPACK: "longpack_documents",
    PACKED: "packed_rows",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetShard:
    """Documents of one set in one file, or the rows of one split.

    Attributes:
        document_set: one of `SETS`.
        path: table of documents, or the folder of packed rows.
        shard: name of the shard, or of the split.
        tokenizer: setting of the tokenizer that made packed rows' ids.
    """

    document_set: str
    path: Path
    shard: str
    tokenizer: str = "gpt2"

    @property
    def name(self) -> str:
        """A name that is unique among the shards of all sets."""
        return f"{self.document_set}-{self.shard}"


def shards_of_sets(inputs: Mapping[str, Published], key: str, recipe: Recipe) -> list[SetShard]:
    """The shards of the sets in a report's inputs."""
    found: list[SetShard] = []
    for document_set in (NATURAL, LONGPACK):
        published = inputs.get(f"{STAGE_OF_SET[document_set]}/{key}")
        files = documents_files(published.folder) if published else []
        found += [
            SetShard(
                document_set=document_set, path=path, shard=path.name.removesuffix(DOCUMENTS_SUFFIX)
            )
            for path in files
        ]
    if (packed := inputs.get(f"{STAGE_OF_SET[PACKED]}/{key}")) is not None:
        splits = sorted(path.stem for path in packed.folder.glob("*.zarr"))
        found += [
            SetShard(
                document_set=PACKED,
                path=packed.folder,
                shard=split,
                tokenizer=recipe.token_documents.tokenizer,
            )
            for split in splits
        ]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDocument:
    """A document of a set.

    Attributes:
        id: of the document; of a packed row ``split/row``.
        text: its text.
        n_tokens: of a packed row, without padding; None for others, whose texts must be counted.
        parts: see the module; none for a natural document.
    """

    id: str
    text: str
    n_tokens: int | None = None
    parts: tuple[Part, ...] = ()


def texts_of(shard: SetShard, wanted: Collection[str] | None = None) -> Iterator[SetDocument]:
    """The documents of a shard in order, or only the wanted ones.

    Raises:
        CorruptFile: if a table or the rows are damaged.
    """
    if shard.document_set == PACKED:
        yield from _rows(shard, wanted)
        return
    parts = _parts(shard, wanted) if shard.document_set == LONGPACK else {}
    for line in read_lines(shard.path, ["id", "raw_content"], batch_lines=16):
        if wanted is None or line["id"] in wanted:
            yield SetDocument(
                id=line["id"], text=line["raw_content"], parts=parts.get(line["id"], ())
            )


def _parts(shard: SetShard, wanted: Collection[str] | None) -> dict[str, tuple[Part, ...]]:
    spans = shard.path.with_name(shard.path.name.replace(DOCUMENTS_SUFFIX, SPANS_SUFFIX))
    lines = (
        line
        for line in read_lines(spans, ["id", "child_id", "start"])
        if wanted is None or line["id"] in wanted
    )
    found: dict[str, tuple[Part, ...]] = {}
    for name, own in groupby(lines, key=lambda line: line["id"]):
        numbers: dict[str, int] = {}
        found[name] = tuple(
            Part(line["start"], numbers.setdefault(line["child_id"], len(numbers))) for line in own
        )
    return found


def pieces_of_rows(shard: SetShard) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each packed row of a split with the lines of its pieces; a row's id is ``split/row``."""
    columns = ["split", "row", "id", "row_start", "row_stop"]
    lines = (
        line
        for line in read_lines(shard.path / SPANS_FILE, columns)
        if line["split"] == shard.shard
    )
    for row, own in groupby(lines, key=lambda line: line["row"]):
        yield f"{shard.shard}/{row}", list(own)


def _rows(shard: SetShard, wanted: Collection[str] | None) -> Iterator[SetDocument]:
    reader = GridReader(shard.path / f"{shard.shard}.zarr")
    for name, pieces in pieces_of_rows(shard):
        if wanted is not None and name not in wanted:
            continue
        row = pieces[0]["row"]
        ids = reader.read(slice(row, row + 1))[0]
        texts = [
            _text(ids[piece["row_start"] : piece["row_stop"]], reader.eot, shard.tokenizer)
            for piece in pieces
        ]
        starts = np.cumsum([0, *(len(text) + 1 for text in texts)]).tolist()
        numbers: dict[str, int] = {}
        parts = (
            Part(start, numbers.setdefault(piece["id"], len(numbers)))
            for start, piece in zip(starts, pieces, strict=False)
        )
        n_tokens = sum(piece["row_stop"] - piece["row_start"] for piece in pieces)
        yield SetDocument(id=name, text="\n".join(texts), n_tokens=n_tokens, parts=tuple(parts))


def _text(ids: Any, eot: int | None, tokenizer: str) -> str:
    """A span's text, without the end-of-text token that may follow."""
    return text_of(tokenizer, ids if eot is None else ids[ids != eot])


def piece_lengths(folder: Path, split: str) -> tuple[list[str], list[int]]:
    """Ids of the documents that the pieces of a split's packed rows are of, and the pieces'
    tokens.
    """
    table = read_table(folder / SPANS_FILE, ["split", "id", "row_start", "row_stop"])
    own = np.asarray(table["split"].to_numpy(zero_copy_only=False) == split)
    chosen = table.filter(own)
    lengths = np.asarray(chosen["row_stop"]) - np.asarray(chosen["row_start"])
    return chosen["id"].to_pylist(), lengths.tolist()
