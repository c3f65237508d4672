"""The document sets that reports measure, groups of lengths, and the columns of the reports.

===========  ===========================================  ====================================
set          a document is                                its parts
===========  ===========================================  ====================================
natural      a filtered document that is not excluded     its ``spans``, where they are read
longpack     a packed document                            its pages
packed       a span of a packed row (lengths); a whole    the spans of the row, those of one
             row (referrals)                              document together
===========  ===========================================  ====================================
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from lc_assets.builds.checks import DOCUMENTS_SUFFIX, SPANS_SUFFIX, documents_files
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.tables import SPANS_FILE, Line, read_lines, read_schema
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.tokenizers.named import text_of
from lc_assets.lake.versions import Published
from lc_assets.packing.lengths import EDGES, bucket_names
from lc_assets.records import record
from lc_assets.stages.documents.kept_lines import SPANS_FIELD
from lc_assets.text.referrals.concepts import Part

NATURAL = "natural"
LONGPACK = "longpack"
PACKED = "packed"

STAGE_OF_SET = {
    NATURAL: "filtered_documents",
    LONGPACK: "longpack_documents",
    PACKED: "packed_rows",
}
SETS = tuple(STAGE_OF_SET)

GROUPS = bucket_names()
"""Groups of lengths in tokens."""

NAMES_OF_DOCUMENTS = ("document", "child_id", "url", "id")
"""Fields of a span that identify its document; the first that is present and not empty counts;
without any, each span is a document.
"""


LENGTHS = pa.schema(
    {
        "id": "string",
        "length_group": "string",
        "n_tokens": "int64",
        "n_chars": "int64",
    }
)
"""`length_report`: one line per document of a set; ``n_chars`` is null where only ids are known."""

LENGTH_SHARES = pa.schema(
    {
        "document_set": "string",
        "length_group": "string",
        "lower": "int64",
        "documents": "int64",
        "tokens": "int64",
        "document_share": "float64",
        "token_share": "float64",
        "documents_from": "int64",
        "document_share_from": "float64",
        "token_share_from": "float64",
    }
)
"""`length_report`: each set by length groups, and what is at least as long."""

GROWTH = pa.schema(
    {
        "n_roots": "int64",
        "n_packed": "int64",
        "hit_rate": "float64",
        "mean_of_ratios": "float64",
        "ratio_of_sums": "float64",
        "median_ratio": "float64",
    }
)
"""`length_report`: how roots grew by packing; see `lc_assets.packing`."""

REFERRALS = pa.schema(
    {
        "id": "string",
        "length_group": "string",
        "n_tokens": "int64",
        "n_chars": "int64",
        "n_parts": "int64",
        "n_sentences": "int64",
        "n_concepts": "int64",
        "n_mentions": "int64",
        "pairs": pa.list_(pa.int64()),
        "neighbours": pa.list_(pa.int64()),
        "concepts": pa.list_(pa.int64()),
    }
)
"""Referrals, one document per row. Lists hold the counts within one sentence, then of each bucket;
``n_parts`` is 0 if a document's parts are not distinguished.
"""

DENSITIES = pa.schema(
    {
        "document_set": "string",
        "length_group": "string",
        "documents": "int64",
        "tokens": "int64",
        "counted": "string",
        "distance": "string",
        "figure": "float64",
        "paper": "float64",
    }
)
"""`referral_report`: means over the measured documents of a set and a group; ``paper`` is what the
LongPack paper prints there, or null.
"""

COMMON_WORDS = pa.schema(
    {
        "word": "string",
        "n_pieces": "int64",
        "n_documents": "int64",
    }
)
"""`referral_report`: words that are not concepts because many pieces of the natural documents
contain them.
"""


def group_of(n_tokens: int) -> str:
    """The group of a document of so many tokens.

    >>> group_of(4095), group_of(4096), group_of(10**9)
    ('0-4K', '4K-8K', '128K-')
    """
    return GROUPS[bisect_right(EDGES, n_tokens)]


@record
class SetShard:
    """Documents of one set in one file, or the rows of one split.

    Attributes:
        document_set: one of `SETS`.
        path: of the documents, or of the folder of packed rows.
        shard: name of the shard, or of the split.
        tokenizer: of packed rows' ids.
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
    for document_set, stage in STAGE_OF_SET.items():
        if (published := inputs.get(f"{stage}/{key}")) is None:
            continue
        paths = {
            path.name.removesuffix(DOCUMENTS_SUFFIX): path
            for path in documents_files(published.folder)
        }
        if document_set == PACKED:
            splits = sorted(path.stem for path in published.folder.glob("*.zarr"))
            paths = dict.fromkeys(splits, published.folder)
        found += [
            SetShard(
                document_set=document_set,
                path=path,
                shard=shard,
                tokenizer=recipe.token_documents.tokenizer,
            )
            for shard, path in paths.items()
        ]
    return found


@record
class SetDocument:
    """A document of a set.

    Attributes:
        id: of the document; of a packed row ``split/row``.
        text: its text.
        parts: see the module; none for a natural document.
    """

    id: str
    text: str
    parts: tuple[Part, ...] = ()


def texts_of(shard: SetShard, wanted: Collection[str] | None = None) -> Iterator[SetDocument]:
    """The documents of a shard of a snapshot's set in order, or only the wanted ones.

    Raises:
        CorruptFile: if a table or the rows are damaged.
        BadInput: if spans are not ranges of their text.
    """
    if shard.document_set == PACKED:
        yield from _rows(shard, wanted)
        return
    parts: dict[str, tuple[Part, ...]] = {}
    if shard.document_set == LONGPACK:
        spans = shard.path.with_name(shard.path.name.replace(DOCUMENTS_SUFFIX, SPANS_SUFFIX))
        lines = read_lines(spans, ["id", "child_id", "start"])
        for name, own in groupby(lines, key=lambda line: line["id"]):
            parts[name] = numbered((line["start"], line["child_id"]) for line in own)
    spans_column = {SPANS_FIELD} & set(read_schema(shard.path).names)
    for line in read_lines(shard.path, ["id", "raw_content", *spans_column], batch_lines=16):
        name, text = line["id"], line["raw_content"]
        if wanted is None or name in wanted:
            own_parts = parts.get(name) or parts_of(name, text, line.get(SPANS_FIELD) or "null")
            yield SetDocument(id=name, text=text, parts=own_parts)


def numbered(starts: Iterable[tuple[int, object]]) -> tuple[Part, ...]:
    """Parts from their starts and the names of their documents."""
    numbers: dict[object, int] = {}
    return tuple(Part(start, numbers.setdefault(name, len(numbers))) for start, name in starts)


def parts_of(name: str, text: str, spans: str) -> tuple[Part, ...]:
    """The parts of a document's text by its spans, which are JSON; none where it has none.

    Raises:
        BadInput: when they overlap, or are not ranges of the text.
    """
    end, starts = 0, list[tuple[int, object]]()
    try:
        for place, span in enumerate(msgspec.json.decode(spans) or ()):
            if not end <= span["start"] <= span["stop"] <= len(text):
                raise BadInput(
                    f"{name}: span {place} from {span['start']:,} to {span['stop']:,} is "
                    f"not a range of {len(text):,} characters after {end:,}"
                )
            end = span["stop"]
            known = (span.get(field) for field in NAMES_OF_DOCUMENTS)
            of_document = (str(value) for value in known if value not in (None, ""))
            starts.append((span["start"], next(of_document, ("span", place))))
    except (TypeError, KeyError, AttributeError) as error:
        raise BadInput(f"{name}: spans are not a list of objects with start and stop") from error
    return numbered(starts)


def pieces_of_rows(shard: SetShard) -> Iterator[tuple[str, int, list[Line]]]:
    """Each packed row of a split: its id ``split/row``, its tokens, the lines of its pieces."""
    columns = ["split", "row", "id", "row_start", "row_stop"]
    lines = read_lines(shard.path / SPANS_FILE, columns)
    ours = (line for line in lines if line["split"] == shard.shard)
    for row, own in groupby(ours, key=lambda line: line["row"]):
        pieces = list(own)
        n_tokens = sum(piece["row_stop"] - piece["row_start"] for piece in pieces)
        yield f"{shard.shard}/{row}", n_tokens, pieces


def _rows(shard: SetShard, wanted: Collection[str] | None) -> Iterator[SetDocument]:
    """Packed rows as texts: their pieces' texts without end-of-text tokens, a line each."""
    reader = GridReader(shard.path / f"{shard.shard}.zarr")
    for name, _, pieces in pieces_of_rows(shard):
        if wanted is not None and name not in wanted:
            continue
        row = pieces[0]["row"]
        ids = reader.read(slice(row, row + 1))[0]
        texts = []
        for piece in pieces:
            own = ids[piece["row_start"] : piece["row_stop"]]
            texts.append(
                text_of(shard.tokenizer, own if reader.eot is None else own[own != reader.eot])
            )
        starts = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])]).tolist()
        owners = (piece["id"] for piece in pieces)
        parts = numbered(zip(starts, owners, strict=True))
        yield SetDocument(id=name, text="\n".join(texts), parts=parts)
