"""Files outside any lake: GPT indices, blends, and data sets in the formats of other loaders:
nanoGPT's ``.bin``, Parquet for Hugging Face ``datasets``, MosaicML's MDS.

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

GPT indices and blends are written with plain names; the names that Megatron looks for are a cache's
(`lc_assets.stages.megatron.caching`).

A file or a folder is published whole or not at all. Memory is bounded by a block of ids, and the
longest document.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.formats.arrays.npy import write_npy
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.mixing.blending import blend, blend_all, counts, for_uint8, normalise
from lc_assets.mixing.cache_names import BLEND_FILES, GPT_FILES, SPLITS, documents_of, split_bounds
from lc_assets.mixing.gpt_index import build_gpt_index, n_whole, plan_epochs
from lc_assets.plugins import plugin
from lc_assets.publishing import publish, publish_folder, writing_in
from lc_assets.stages.megatron.megatron_merging import cut, whole_of
from lc_assets.tokens.dtypes import UINT16, as_dtype

EPOCHS_SUGGESTED = 4


KINDS = ("nanogpt", "datasets", "mds")
COLUMN = "input_ids"
BLOCK_IDS = 1 << 21
FILE_BYTES = 500_000_000
"""Ids of one Parquet file, in bytes before compression; the size that Hugging Face's own files
have.
"""


def export_nanogpt(prefix: Path, path: Path, *, over_last: int | None = None) -> int:
    """Write nanoGPT's ``.bin``; return the number of ids.

    Args:
        prefix: of the data set.
        path: of the file.
        over_last: an id that replaces the last one of every document; None changes nothing.

    Raises:
        BadInput: if ``over_last`` is not a uint16.
        Mismatch: if an id is not a uint16, the only dtype that nanoGPT reads.
        CorruptFile: if the data set is damaged.
        NotWritable, StorageFull: if the place cannot be written to.
    """
    if over_last is not None and not 0 <= over_last <= np.iinfo(UINT16).max:
        raise BadInput(f"nanoGPT's ids are uint16, 0 to 65,535; {over_last:,} is none")
    reader = MegatronReader(prefix)
    with writing_in(path.parent), publish(path) as draft, draft.open("wb") as out:
        for start, stop in reader.index.blocks(BLOCK_IDS):
            first, end = reader.places(start, stop)
            ids = as_dtype(reader.between(first, end), UINT16)
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
        BadInput: if the folder is not empty, or the split's name is invalid.
        CorruptFile: if the data set is damaged.
        NotWritable, StorageFull: if the place cannot be written to.
    """
    if not split.isidentifier():
        raise BadInput(f"{split!r} cannot be a split's name: letters, digits and _")
    reader = MegatronReader(prefix)
    files = cut([whole_of(prefix)], file_bytes)
    # Other commands do not need Arrow.
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(COLUMN, pa.list_(pa.from_numpy_dtype(reader.dtype)))])
    with publish_folder(folder) as draft:
        for number, ((_, *documents),) in enumerate(files):
            path = draft / f"{split}-{number:05}-of-{len(files):05}.parquet"
            with pq.ParquetWriter(path, schema, compression="zstd") as out:
                for start, stop in reader.index.blocks(
                    BLOCK_IDS, *reader.document_indices[documents]
                ):
                    lengths = reader.lengths[start:stop]
                    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
                    begin, end = reader.places(start, stop)
                    lists = pa.ListArray.from_arrays(
                        pa.array(as_dtype(ends, np.dtype(np.int32))),
                        pa.array(reader.between(begin, end)),
                    )
                    out.write_table(pa.table([lists], schema=schema))
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
            f"MDS is written by the package streaming, and {error.name} is not installed: pip "
            "install mosaicml-streaming"
        ) from error
    reader = MegatronReader(prefix)
    with (
        publish_folder(folder) as draft,
        MDSWriter(
            out=str(draft), columns={COLUMN: f"ndarray:{reader.dtype.name}"}, hashes=["sha1"]
        ) as out,
    ):
        for ids in reader:
            out.write({COLUMN: np.array(ids)})
    return len(reader)


def export_by(exporter: str, prefix: Path, folder: Path) -> int:
    """Write a data set by the exporter of another package, docs/plugins.md; return the number of
    documents.

    Raises:
        BadInput: if no package adds it.
        CorruptFile: if the data set is damaged.
        NotWritable, StorageFull: if the place cannot be written to.
    """
    write, reader = plugin("exporters", exporter).load(), MegatronReader(prefix)
    with publish_folder(folder) as draft:
        write(reader, draft)
    return len(reader)


def index_prefix(
    prefix: Path,
    out: Path,
    *,
    sequence_length: int,
    seed: int,
    n_samples: int | None,
    split: str | None = None,
    part: str = "train",
) -> list[tuple[str, object]]:
    """Write the GPT index of a data set, or of one part of a split of it; return its facts.

    Raises:
        BadInput: if the part has no token, or an argument is out of range.
        CorruptFile: if the data set is missing or damaged.
    """
    lengths = MegatronReader(prefix).lengths
    chosen = _part(len(lengths), split, part)
    epoch_tokens = int(lengths[chosen.start : chosen.stop].sum(dtype=np.int64))
    try:
        n_epochs, n_before_last = plan_epochs(epoch_tokens, sequence_length, n_samples)
    except BadInput as error:
        raise BadInput(
            f"{prefix}: {len(chosen):,} of {len(lengths):,} documents: {error}"
        ) from error
    index = build_gpt_index(
        lengths,
        sequence_length=sequence_length,
        seed=seed,
        n_samples=n_samples,
        documents=chosen,
    )
    with writing_in(out):
        for name in GPT_FILES:
            write_npy(out / f"{name}.npy", getattr(index, name))
    whole = (n_whole(n * epoch_tokens, sequence_length) for n in range(1, EPOCHS_SUGGESTED + 1))
    return [
        ("documents", len(chosen)),
        ("tokens of one epoch", epoch_tokens),
        ("epochs", n_epochs),
        ("last epoch apart", n_before_last is not None),
        ("samples", index.n_samples),
        ("--train-samples for whole epochs", ", ".join(f"{n:,}" for n in whole)),
        ("written to", str(out)),
    ]


def write_blend(
    out: Path,
    *,
    weights: Sequence[str] | None,
    sizes: Sequence[str] | None,
    size: int | None,
    uint8: bool = False,
) -> list[tuple[float, int]]:
    """Write a blend by weights, or of everything; return each source's weight or size, and the
    samples taken of it.

    Raises:
        BadInput: if a weight or size is no number or out of range.
    """
    if (weights is None) == (sizes is None):
        raise BadInput("expected either --weights with --size, or --sizes")
    if (sizes is None) == (size is None):
        raise BadInput(
            "--size says how long a blend by --weights is; one by --sizes takes everything"
        )
    stated = _numbers(weights or sizes or ())
    if size is not None:
        numbers, samples = blend(normalise(normalise(stated).tolist()), size)
    elif fractions := [number for number in stated if not number.is_integer()]:
        raise BadInput(f"a size is a whole number of samples, got {fractions[0]}")
    else:
        numbers, samples = blend_all([int(number) for number in stated])
    taken = counts(numbers, len(stated))
    arrays = for_uint8(numbers, len(stated)) if uint8 else numbers, samples
    with writing_in(out):
        for name, array in zip(BLEND_FILES, arrays, strict=True):
            write_npy(out / f"{name}.npy", array)
    return list(zip(stated, taken, strict=True))


def _part(n_documents: int, split: str | None, part: str) -> range:
    if part not in SPLITS:
        raise BadInput(f"--part {part!r}: there are {', '.join(SPLITS)}")
    if split is None:
        return range(n_documents)
    bounds = split_bounds(split)[SPLITS.index(part)]
    if bounds is None:
        raise BadInput(f"--split {split!r} gives {part} no share")
    return documents_of(bounds, n_documents)


def _numbers(words: Sequence[str]) -> list[float]:
    found = []
    for word in ",".join(words).split(","):
        try:
            found.append(float(word))
        except ValueError as error:
            raise BadInput(
                f"{word!r} is not a number; expected weights such as 0.7 0.2 0.1, or sizes such "
                "as 700 200"
            ) from error
    return found
