"""MinHash signatures of one shard: ``minhash/{tag}.minhash.parquet``.

================  ==============  ==================================================================
column            type            content
================  ==============  ==================================================================
shard_id          string          ``2023-06/0000/en_head.json.gz``
id                string          ``2023-06/0000/en_head.json.gz/17``
id_int            uint64          first 8 bytes of SHA-1 of the id, little-endian
signature_sim1.0  list of binary  1 band of 128 numbers; null when the text has fewer than 13 words
signature_sim0.9  list of binary  5 bands of 25 numbers; null together with the first
signature_sim0.8  list of binary  9 bands of 13 numbers
signature_sim0.7  list of binary  14 bands of 9 numbers
================  ==============  ==================================================================

A number is four bytes, big-endian. The first band holds the whole signature, so the others follow
from it. Files written here state in their schema's metadata, under ``minhash_scheme``, which scheme
of `lc_assets.text.duplicates.minhash` made the signatures; published ones state none and are
RedPajama-V2's. Of another scheme, only the first band is stored.

Files are read and written a bounded number of documents at a time.

Source: ``app/src/quality_signals.py`` and ``app/src/dedupe`` of togethercomputer/RedPajama-Data.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.arrays import Array, Booleans, UInt32s
from lc_assets.errors import CorruptFile
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.formats.parquet.opening import guarded
from lc_assets.formats.redpajama.documents import id_int
from lc_assets.text.duplicates.minhash import BANDS, N_PERMUTATIONS, RPV2, Bands

SCHEME_KEY = b"minhash_scheme"
GROUP_DOCUMENTS = 4096
"""Documents of a row group written, or of a batch read: about 10 MB of memory."""

SCHEMA = pa.schema(
    [
        ("shard_id", pa.string()),
        ("id", pa.string()),
        ("id_int", pa.uint64()),
        *((bands.column, pa.list_(pa.binary())) for bands in BANDS),
    ]
)

_STRINGS = (pa.string(), pa.large_string())
_BANDS = tuple(
    make_list(binary)
    for make_list in (pa.list_, pa.large_list)
    for binary in (pa.binary(), pa.large_binary())
)
_COLUMNS = frozenset(bands.column for bands in BANDS)
_NUMBER = np.dtype(">u4")


def bands_stored(scheme_label: str) -> tuple[Bands, ...]:
    """The bands in a file of a scheme."""
    return BANDS if scheme_label == RPV2.label else BANDS[:1]


class Signatures(msgspec.Struct, frozen=True, kw_only=True):
    """Some documents with their signatures.

    Attributes:
        ids: of the documents.
        numbers: ``(documents, 128)`` uint32; zeros where there is none, if read.
        is_signed: ``(documents,)`` bool; False where the text has fewer than 13 words.
    """

    ids: list[str]
    numbers: UInt32s
    is_signed: Booleans


class SignaturesWriter:
    """Writes a file in row groups of `GROUP_DOCUMENTS`; the file must be published by its caller.
    Columns may follow that the published files do not have: readers look for theirs by name.

    >>> import contextlib, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.minhash.parquet"
    >>> some = Signatures(
    ...     ids=["a.json.gz/0", "a.json.gz/1"],
    ...     numbers=np.arange(256, dtype=np.uint32).reshape(2, 128),
    ...     is_signed=np.array([True, False]),
    ... )
    >>> with contextlib.closing(SignaturesWriter(path, RPV2.label)) as writer:
    ...     writer.add(some, "a.json.gz")
    >>> [(part.ids, part.is_signed.tolist()) for part in read_signatures(path, where="a")]
    [(['a.json.gz/0', 'a.json.gz/1'], [True, False])]
    """

    def __init__(self, path: Path, scheme_label: str, beside: Sequence[pa.Field] = ()) -> None:
        self._bands = bands_stored(scheme_label)
        stored = [*SCHEMA][: len(SCHEMA) - len(BANDS) + len(self._bands)]
        self._schema = pa.schema([*stored, *beside], {SCHEME_KEY: scheme_label.encode()})
        self._writer = pq.ParquetWriter(
            path,
            self._schema,
            # Not the bands, which are as good as random: it would take twice as long.
            compression={name: "snappy" for name in self._schema.names if name not in _COLUMNS},
            use_dictionary=["shard_id"],
            write_statistics=False,
        )
        self._waiting = list[tuple[Signatures, str, Sequence[pa.Array]]]()
        self._rest, self._n_waiting = self._schema.empty_table(), 0

    def add(self, some: Signatures, shard_id: str, beside: Sequence[pa.Array] = ()) -> None:
        """Add documents of a shard; ``beside`` are the columns that follow. Numbers of a document
        that is not signed are ignored.
        """
        self._waiting.append((some, shard_id, beside))
        self._n_waiting += len(some.ids)
        if self._n_waiting >= GROUP_DOCUMENTS:
            self._write(GROUP_DOCUMENTS)

    def close(self) -> None:
        """Write the remaining documents and the file's footer."""
        self._write(1)
        self._writer.close()

    def _write(self, least: int) -> None:
        """Write row groups while at least so many documents wait."""
        if self._waiting:
            self._rest = pa.concat_tables([self._rest, self._made()])
            self._waiting = []
        while self._rest.num_rows >= least:
            group = self._rest.slice(0, GROUP_DOCUMENTS)
            self._writer.write_table(group.combine_chunks())
            self._rest = self._rest.slice(GROUP_DOCUMENTS)
        self._n_waiting = self._rest.num_rows

    def _made(self) -> pa.Table:
        """What waits, as a table; made at once, since many calls for few documents cost more."""
        parts, shard_ids, beside = zip(*self._waiting, strict=True)
        ids = [name for some in parts for name in some.ids]
        files = [it for it, some in zip(shard_ids, parts, strict=True) for _ in some.ids]
        is_signed = np.concatenate([some.is_signed for some in parts])
        matrix = np.concatenate([some.numbers for some in parts])[is_signed].astype(_NUMBER)
        columns = [
            pa.array(files, pa.string()),
            pa.array(ids, pa.string()),
            pa.array(list(map(id_int, ids)), pa.uint64()),
            *(_column(matrix, is_signed, bands) for bands in self._bands),
            *map(pa.chunked_array, zip(*beside, strict=True)),
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)


def read_signatures(
    source: BinaryIO | Path, *, where: str, repeats: bool = True
) -> Iterator[Signatures]:
    """Yield a file's documents in order, at most `GROUP_DOCUMENTS` at a time.

    Args:
        source: the file, written here or as published.
        where: its name, for errors.
        repeats: whether the bands that repeat the first one's numbers are read, to compare them.

    Raises:
        CorruptFile: when it is not Parquet, is damaged, lacks a column or has it in another type,
            or when bands are of another number or width, or contradict each other; names ``where``.
    """
    with (
        library_errors_as_corrupt_file(where, system_errors_too=True),
        guarded(source, where=where, rows_at_once=GROUP_DOCUMENTS) as file,
    ):
        stored = bands_stored(_label_of(file.file.schema_arrow, where))
        read = stored if repeats else stored[:1]
        for batch in file.batches(GROUP_DOCUMENTS, ["id", *(bands.column for bands in read)]):
            yield _signatures(batch, read, where)


def scheme_label_of(source: BinaryIO | Path, *, where: str) -> str:
    """The scheme of a file's signatures: the one it states, or else RedPajama-V2's.

    Raises:
        CorruptFile: when it is not such a file.
    """
    with (
        library_errors_as_corrupt_file(where, system_errors_too=True),
        guarded(source, where=where, rows_at_once=GROUP_DOCUMENTS) as file,
    ):
        return _label_of(file.file.schema_arrow, where)


def _column(matrix: Array, is_signed: Booleans, bands: Bands) -> pa.Array:
    """A column of bands from ``(signed documents, 128)`` big-endian numbers."""
    content = matrix[:, : bands.n_numbers].tobytes()
    ends = np.arange(len(matrix) * bands.n_bands + 1, dtype=np.int32) * np.int32(bands.n_bytes)
    values = pa.Array.from_buffers(
        pa.binary(), len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(content)]
    )
    begins = np.concatenate([[0], np.cumsum(is_signed)]).astype(np.int32) * np.int32(bands.n_bands)
    return pa.ListArray.from_arrays(pa.array(begins), values, mask=pa.array(~is_signed))


def _signatures(batch: pa.RecordBatch, read: Sequence[Bands], where: str) -> Signatures:
    batch.validate(full=True)  # a damaged page may decompress to offsets that lead astray
    ids = batch["id"].to_pylist()
    if None in ids:
        raise CorruptFile(f"{where}: a document has no id")
    is_signed = np.asarray(batch[BANDS[0].column].is_valid())
    signed = _numbers(batch[BANDS[0].column], BANDS[0])
    for bands in read:
        found, expected = _numbers(batch[bands.column], bands), signed[:, : bands.n_numbers]
        same = np.array_equal(batch[bands.column].is_valid(), is_signed)
        if not same or len(found) != is_signed.sum() or not np.array_equal(found, expected):
            raise CorruptFile(
                f"{where}: {bands.column} does not hold {bands.n_bands} bands of {bands.n_bytes} "
                f"bytes of the signature in {BANDS[0].column} for each signed document; fetch it "
                "again, or have it computed"
            )
    numbers = np.zeros((len(ids), N_PERMUTATIONS), dtype=np.uint32)
    numbers[is_signed] = signed
    return Signatures(ids=ids, numbers=numbers, is_signed=is_signed)


def _numbers(column: pa.Array, bands: Bands) -> Array:
    """The numbers of a column of bands, a line for each signed document, big-endian; no lines where
    one has another number of bands, or a band of another width.
    """
    column = column.cast(pa.list_(pa.binary()))
    counts, values = column.drop_null().value_lengths(), column.flatten()
    _, places, content = values.buffers()
    ends = np.frombuffer(places or bytes(4), np.int32)[values.offset :][: len(values) + 1]
    are_whole = (np.diff(ends) == bands.n_bytes).all() and not values.null_count
    if not are_whole or not (np.asarray(counts) == bands.n_bands).all():
        return np.empty((0, bands.n_numbers), _NUMBER)
    numbers = np.frombuffer(content or b"", np.uint8)[ends[0] : ends[-1]].view(_NUMBER)
    return numbers.reshape(-1, bands.n_numbers)


def _label_of(schema: pa.Schema, where: str) -> str:
    """The scheme of a file, whose columns are checked."""
    stated = (schema.metadata or {}).get(SCHEME_KEY, RPV2.label.encode())
    label: str = stated.decode("utf-8", "replace")
    columns = [("id", _STRINGS), *((bands.column, _BANDS) for bands in bands_stored(label))]
    for name, types in columns:
        if schema.names.count(name) != 1 or schema.field(name).type not in types:
            found = ", ".join(f"{field.name}: {field.type}" for field in schema)
            raise CorruptFile(
                f"{where}: not a file of MinHash signatures: column {name} is missing or of "
                f"another type; found {found[:300]}"
            )
    return label
