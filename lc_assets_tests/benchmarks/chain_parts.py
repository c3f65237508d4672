"""The parts of a snapshot's chain that nothing spares: each by itself, over what a built lake holds,
without tables and checks around it. And what one pass per shard would spare.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from isal import igzip
from numcodecs.zstd import Zstd
from zlib_ng import zlib_ng

from lc_assets.arrays import Array, Bytes, Int64s
from lc_assets.builds.checks import documents_files
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.table_writer import COMPRESSION
from lc_assets.builds.tables import IDENTITY, read_lines
from lc_assets.builds.verified_reads import verify_file
from lc_assets.formats.arrays.chunks import padded, plan_rows
from lc_assets.formats.arrays.flat import BLOSC, CHUNK, FILL
from lc_assets.formats.arrays.grid import GridReader, encode_shard, plan_bands
from lc_assets.formats.arrays.grid_layout import GridLayout
from lc_assets.formats.megatron.idx import read_index
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.lake.digests import crc32_of_file, fact_of
from lc_assets.lake.lake import Lake
from lc_assets.stages.rows.token_grid import ROWS_FILE
from lc_assets.stages.tokens.tokenized_text import read_texts
from lc_assets.text.duplicates.minhash import FAST, MinHashScheme, signatures_each
from lc_assets.text.folding import normalized_each
from lc_assets.text.texts import parts
from lc_assets.vocabulary import SPLITS, SnapshotId
from lc_assets_tests.benchmarks.timing import by_turns

PAGE_BYTES = 1 << 20
GUNZIP, JSON, ZSTD, MINHASH, BPE, ROWS, GRID, FLAT, DIGESTS, AGAIN = (
    *("gunzip", "JSON", "zstd of kept texts", "MinHash", "BPE", "coding of rows", "bare grid"),
    *("coding of the flat copy", "SHA-256 and CRC-32 of files", "reading kept texts again"),
)
CODED = (GUNZIP, ZSTD, MINHASH, BPE, ROWS, FLAT)
TO_FILTERED = ("raw_snapshot", "filtered_documents")
TO_ROWS = (*TO_FILTERED, "token_documents", "token_grid")
DIGESTS_TO = {"the same to filtered": TO_FILTERED, "the same to rows": TO_ROWS}
"""Digests of the files that some stages read and write."""
FILTERED_DIGESTS, ROWS_DIGESTS = DIGESTS_TO
PREFIXES = {
    "filtered": (TO_FILTERED, (GUNZIP, ZSTD)),
    "filtered, and what is promised": (TO_FILTERED, (GUNZIP, ZSTD, JSON, FILTERED_DIGESTS)),
    "json.gz to rows, without deduplication": (TO_ROWS, (GUNZIP, ZSTD, BPE, ROWS)),
    "to rows, and what is promised": (
        TO_ROWS,
        (GUNZIP, ZSTD, BPE, ROWS, JSON, ROWS_DIGESTS),
    ),
    "the whole chain": ((), CODED),
    "the same, and what is promised": ((), (*CODED, JSON, DIGESTS)),
    "the same, and one stage after the other": ((), (*CODED, JSON, DIGESTS, AGAIN)),
}
"""Stages of the chain, by default all, and the parts that they cannot do without: codecs and kernels;
that every record is parsed and every file verified; that each stage reads what the last one wrote.
"""


class Line(msgspec.Struct):
    """What is read of a record, of which the whole must be JSON."""

    raw_content: str = ""


def bare_parts(
    lake: Lake, recipe: Recipe, snapshot: SnapshotId, gz: list[Path]
) -> dict[str, float]:
    """CPU seconds of each part, by name.

    Args:
        lake: holds the snapshot's stages.
        recipe: by which they were built.
        snapshot: of RedPajama-V2.
        gz: the snapshot's gzipped files.
    """
    lines = msgspec.json.Decoder(Line)
    contents = [igzip.decompress(path.read_bytes()) for path in gz]
    filtered = lake.partition("filtered_documents", snapshot).require()
    kept = documents_files(filtered.folder)
    facts = {fact.path: fact for fact in filtered.receipt.files}
    read = (read_texts(path, ["raw_content"], PrivacySettings()) for path in kept)
    texts = [some.tokenized for table in read for some in table]
    grid, tokens = (
        lake.partition(name, snapshot).require().folder
        for name in ("token_grid", "token_documents")
    )
    readers = [GridReader(grid / f"{split}.zarr") for split in SPLITS]
    rows = [(reader.layout, reader.read()) for reader in readers]

    def code() -> None:
        for layout, ids in rows:
            for block in plan_bands(layout):
                list(encode_shard(ids[block.start : block.stop], layout))

    def code_flat() -> None:
        for _, ids in rows:
            for block in plan_rows(len(ids), CHUNK[0]):
                for tokens in plan_rows(ids.shape[1], CHUNK[1]):
                    chunk = ids[block.start : block.stop, tokens.start : tokens.stop]
                    BLOSC.encode(padded(np.asarray(chunk, "<u2"), CHUNK, FILL))

    def read_again() -> None:
        """As `document_signatures` and `token_documents` do, which verify the files, too."""
        for path in kept:
            assert all(verify_file((path, facts[path.name])) for _ in range(2))
            for some in read_texts(path, ["id", "raw_content"], PrivacySettings()):
                del some
            for line in read_lines(path, [*IDENTITY, "raw_content"], utf8="raw_content"):
                del line

    def digest(folders: Sequence[Path]) -> None:
        """Of all files, and once more the CRC-32 of those that a stage reads."""
        found = (path for folder in folders for path in folder.rglob("*") if path.is_file())
        for path in (*gz, *found):
            fact_of(path.parent, path.name)
            crc32_of_file(path)

    works: dict[str, Callable[[], object]] = {GUNZIP: lambda: sum(map(unpacked, gz))}
    works |= {BPE: lambda: encode_texts(texts, recipe.token_documents)}
    works |= {ZSTD: lambda: compress_texts(texts), MINHASH: lambda: sign_texts(texts)}
    works |= {GRID: lambda: write_bare_grid(tokens, grid)}
    works |= {ROWS: code, FLAT: code_flat, AGAIN: read_again}
    works |= {DIGESTS: lambda: digest([lake.root])}
    for name, stages in DIGESTS_TO.items():
        folders = [lake.partition(stage, snapshot).require().folder for stage in stages]
        works[name] = partial(digest, folders)
    works |= {JSON: lambda: [lines.decode_lines(content) for content in contents]}
    return by_turns(1, works)


def write_bare_grid(tokens: Path, grid: Path) -> None:
    """What `token_grid` writes by the libraries alone, without tables, tasks and checks: token files
    compared with their CRC-32, rows read to where rolling puts them, each chunk encoded, digested
    and written.

    Args:
        tokens: folder of the token files.
        grid: folder of the grid, whose plan is followed.
    """
    needed = ["token_shard", "document", "stretch", "shift"]
    plan = pq.read_table(grid / ROWS_FILE, columns=["split", *needed])
    with contextlib.ExitStack() as stack:
        files = {}
        for path in tokens.glob("*.bin"):
            crc32_of_file(path)
            stream = stack.enter_context(path.open("rb", buffering=0))
            files[path.stem] = stream.fileno(), read_index(path.with_suffix("")).byte_offsets
        for split in SPLITS:
            layout = GridReader(grid / f"{split}.zarr").layout
            lines = [line for line in plan.to_pylist() if line.pop("split") == split]
            for block in plan_bands(layout):
                rows = np.empty((len(block), layout.row_tokens), layout.dtype)
                for row, line in zip(rows, lines[block.start : block.stop], strict=True):
                    shard, document, stretch, shift = (line[name] for name in needed)
                    begin = int(files[shard][1][document]) + stretch * row.nbytes
                    os.preadv(files[shard][0], [row[shift:].data, row[:shift].data], begin)
                write_bare_chunks(rows, layout, grid)


def write_bare_chunks(rows: Array, layout: GridLayout, folder: Path) -> None:
    """Write the chunks of a block of rows, without their index, to a nameless file in a folder."""
    codec, hasher, crc32 = Zstd(level=layout.zstd_level, checksum=True), hashlib.sha256(), 0
    (down, across), (n_rows, n_tokens) = layout.inner, rows.shape
    with tempfile.TemporaryFile(buffering=0, dir=folder) as out:
        for top, left in product(range(0, n_rows, down), range(0, n_tokens, across)):
            part = rows[top : top + down, left : left + across]
            frame = codec.encode(padded(part, layout.inner, layout.fill))
            hasher.update(frame)
            crc32 = zlib_ng.crc32(frame, crc32)
            out.write(frame)


def print_bounds(took: dict[str, float], bare: dict[str, float]) -> None:
    """Print what reading texts again takes of a chain, given by CPU seconds of its stages, and the
    rate of `token_grid` against that of its parts.
    """
    print(f"{AGAIN}: {bare[AGAIN]:.2f} CPU-s, {bare[AGAIN] / sum(took.values()):.1%} of the chain")
    coding, parts = (bare[name] / took["token_grid"] for name in (ROWS, GRID))
    bound = f"the bare grid's is {bare[ROWS] / bare[GRID]:.2f}"
    print(
        f"token_grid: {coding:.2f} of the rate of coding, {bound}; {parts:.2f} of the bare grid's"
    )


def compress_texts(texts: Sequence[tuple[Bytes, Int64s]]) -> None:
    """Compress texts as tables of documents do."""
    codec = pa.Codec(COMPRESSION)
    for data, _ in texts:
        for page in plan_rows(len(data), PAGE_BYTES):
            codec.compress(data[page.start : page.stop], asbytes=True)


def sign_texts(texts: Sequence[tuple[Bytes, Int64s]], scheme: MinHashScheme = FAST) -> None:
    """Make the signatures of texts."""
    for some in texts:
        signatures_each(*normalized_each(*some), scheme)


def encode_texts(texts: Sequence[tuple[Bytes, Int64s]], settings: TokenizingSettings) -> None:
    """Encode texts, one by one, by the fast tokenizer."""
    tokenizer = tokenizer_of(settings.tokenizer)
    for text in (text for some in texts for text in parts(*some)):
        if len(text) >= settings.min_tokens:
            tokenizer.encode(text.tobytes())


def unpacked(path: Path) -> int:
    """Bytes of a gzipped file's content, read without keeping it."""
    with igzip.open(path) as stream:
        return sum(map(len, iter(lambda: stream.read(1 << 18), b"")))
