"""A Megatron data set in the formats of other loaders: nanoGPT's ``.bin``, Parquet for Hugging Face
``datasets``, MosaicML's MDS.

============  ==================================================================================
kind          what is written
============  ==================================================================================
nanogpt       one file of uint16 ids and nothing else, all documents one after another; on request
              with the end of text over the last id of each document, as LongCrawl64's own script
              does with its rows
datasets      a folder of ``{split}-00000-of-00003.parquet``, one column ``input_ids``, a list per
              document
mds           a folder of shards, one column ``input_ids``, an array per document; written by
              MosaicML's own package ``streaming``, an extra
============  ==================================================================================

A file or a folder is published whole or not at all. Memory is bounded by a block of ids, and the
longest document.
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lc_assets.errors import BadInput
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.publishing import flush, publish, staging_path
from lc_assets.stages.megatron.megatron_merging import cut, whole_of
from lc_assets.tokens.dtypes import UINT16, as_dtype

KINDS: Final = ("nanogpt", "datasets", "mds")
COLUMN: Final = "input_ids"
BLOCK_IDS: Final = 1 << 21
FILE_BYTES: Final = 500_000_000
"""Ids of one Parquet file, in bytes before compression; the size that Hugging Face's own files
have.
"""


def export_nanogpt(prefix: Path, path: Path, *, over_last: int | None = None) -> int:
    """Write nanoGPT's ``.bin``; return the number of ids.

    Args:
        prefix: of the data set.
        path: of the file.
        over_last: an id that takes the place of the last one of every document; None leaves all as
            they are.

    Raises:
        BadInput: if ``over_last`` is no uint16.
        Mismatch: if an id is: nanoGPT reads uint16 alone.
        CorruptFile: if the data set is damaged.
        NotWritable, StorageFull: if the place cannot be written to.
    """
    if over_last is not None and not 0 <= over_last <= np.iinfo(UINT16).max:
        raise BadInput(f"nanoGPT's ids are uint16, 0 to 65,535; {over_last:,} is none")
    reader = MegatronReader(prefix)
    with publish(path) as draft, draft.open("wb") as out:
        for start, stop in reader.blocks(BLOCK_IDS):
            first, end = reader.places(start, stop)
            ids = as_dtype(reader.ids[first:end], UINT16)
            if over_last is not None:
                lengths = reader.lengths[start:stop]
                ids = ids.copy()
                ids[(np.cumsum(lengths, dtype=np.int64) - 1)[lengths > 0]] = over_last
            out.write(np.ascontiguousarray(ids).data)
    return reader.n_tokens


def export_datasets(
    prefix: Path, folder: Path, *, split: str = "train", file_bytes: int = FILE_BYTES
) -> int:
    """Write Parquet files that ``datasets.load_dataset("parquet", data_dir=folder)`` reads; return
    how many.

    Raises:
        BadInput: if the folder is not empty, or the split's name is none.
        CorruptFile: if the data set is damaged.
        NotWritable, StorageFull: if the place cannot be written to.
    """
    if not split.isidentifier():
        raise BadInput(f"{split!r} cannot be a split's name: letters, digits and _")
    reader = MegatronReader(prefix)
    files = cut([whole_of(prefix)], file_bytes)
    schema = pa.schema([(COLUMN, pa.list_(pa.from_numpy_dtype(reader.dtype)))])
    with _new_folder(folder) as draft:
        for number, ((_, *documents),) in enumerate(files):
            path = draft / f"{split}-{number:05}-of-{len(files):05}.parquet"
            with pq.ParquetWriter(path, schema, compression="zstd") as out:
                for start, stop in reader.blocks(BLOCK_IDS, *reader.document_indices[documents]):
                    out.write_table(pa.table([_lists(reader, start, stop)], schema=schema))
    return len(files)


def export_mds(prefix: Path, folder: Path) -> int:
    """Write MDS shards by MosaicML's own writer; return the number of documents.

    Raises:
        BadInput: if the package is not installed, or the folder is not empty.
        CorruptFile: if the data set is damaged.
        NotWritable, StorageFull: if the place cannot be written to.
    """
    try:
        from streaming import MDSWriter
    except ImportError as error:
        raise BadInput(
            "MDS is written by the package streaming, which is not installed: pip install "
            "mosaicml-streaming"
        ) from error
    reader = MegatronReader(prefix)
    with (
        _new_folder(folder) as draft,
        MDSWriter(
            out=str(draft), columns={COLUMN: f"ndarray:{reader.dtype.name}"}, hashes=["sha1"]
        ) as out,
    ):
        for ids in reader:
            out.write({COLUMN: np.array(ids)})
    return len(reader)


def _lists(reader: MegatronReader, start: int, stop: int) -> pa.ListArray:
    lengths = reader.lengths[start:stop]
    ends: NDArray[Any] = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    begin, end = reader.places(start, stop)
    return pa.ListArray.from_arrays(
        pa.array(as_dtype(ends, np.dtype(np.int32))), pa.array(reader.ids[begin:end])
    )


@contextlib.contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder that is published when the block succeeds."""
    with os_errors_as_lc_errors(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadInput(f"{folder}: there is something already; name a new folder")
        draft = staging_path(folder)
        draft.mkdir(parents=True)
        try:
            yield draft
            for path in sorted(draft.iterdir()):
                flush(path)
            draft.replace(folder)
            flush(folder.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
