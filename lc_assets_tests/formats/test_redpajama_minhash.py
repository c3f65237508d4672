"""Files of MinHash signatures: what is written is read, published files are read as they are,
others are named.
"""

import contextlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import CorruptFile
from lc_assets.formats.redpajama import minhash
from lc_assets.formats.redpajama.documents import id_int
from lc_assets.formats.redpajama.minhash import (
    SCHEMA,
    SignaturesWriter,
    read_signatures,
    scheme_label_of,
)
from lc_assets.text.duplicates.minhash import FAST, RPV2, signature
from lc_assets_tests.reference.minhash import bands_of, signatures_of

SHARD = "2023-06/0000/en_head.json.gz"
PROSE = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"


def write(path, signatures, label=RPV2.label):
    with contextlib.closing(SignaturesWriter(path, label)) as writer:
        for start in range(0, len(signatures), 3):
            some = signatures[start : start + 3]
            ids = [f"{SHARD}/{start + number}" for number in range(len(some))]
            writer.add(signatures_of(ids, some), SHARD)


def as_published(signatures, *, item="item", binary=None) -> pa.Table:
    """What the reference's own writer makes: rows of lists, no metadata, the list's item by another
    name.
    """
    kind = pa.list_(pa.field(item, binary or pa.binary()))
    schema = pa.schema(
        [
            field if field.name in ("shard_id", "id", "id_int") else pa.field(field.name, kind)
            for field in SCHEMA
        ]
    )
    rows = []
    for number, numbers in enumerate(signatures):
        bands = dict.fromkeys(schema.names[3:]) if numbers is None else bands_of(numbers)
        rows.append(
            {
                "shard_id": SHARD,
                "id": f"{SHARD}/{number}",
                "id_int": id_int(f"{SHARD}/{number}"),
                **bands,
            }
        )
    return pa.Table.from_pylist(rows, schema=schema)


@given(st.lists(st.none() | st.integers(0, 2**32 - 1), max_size=12), st.integers(1, 5))
def test_what_is_written_is_read_and_is_what_the_reference_writes(tmp_path_factory, seeds, group):
    """For any mixture of signed and short documents, over the borders of row groups."""
    path = tmp_path_factory.mktemp("minhash") / "a.parquet"
    signatures = [
        None
        if seed is None
        else np.random.default_rng(seed).integers(2**32, size=128, dtype=np.uint32)
        for seed in seeds
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(minhash, "GROUP_DOCUMENTS", group)
        write(path, signatures)
        parts = list(read_signatures(path, where="a"))
    assert [name for part in parts for name in part.ids] == [
        f"{SHARD}/{number}" for number in range(len(seeds))
    ]
    found = [
        row if signed else None
        for part in parts
        for row, signed in zip(part.numbers, part.is_signed, strict=True)
    ]
    assert all(
        (left is None and right is None) or np.array_equal(left, right)
        for left, right in zip(found, signatures, strict=True)
    )
    assert max((len(part.ids) for part in parts), default=0) <= group
    assert pq.read_table(path).to_pylist() == as_published(signatures).to_pylist()


def test_golden_bands_are_read_from_a_published_file(shared_data, tmp_path):
    """The reference's bands, put into the reference's schema, come out as the signatures that we
    compute.
    """
    cases = [
        json.loads(line)
        for line in (shared_data / "golden" / "edge_cases.jsonl").read_text("utf-8").splitlines()
    ]
    rows = [
        {"shard_id": SHARD, "id": case["name"], "id_int": id_int(case["name"])}
        | {
            name: bands and [bytes.fromhex(band) for band in bands]
            for name, bands in case["minhash"].items()
        }
        for case in cases
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), tmp_path / "published.parquet")
    (part,) = read_signatures(tmp_path / "published.parquet", where="published")
    for case, numbers, signed in zip(cases, part.numbers, part.is_signed, strict=True):
        computed = signature(case["raw_content"], RPV2)
        assert signed == (computed is not None)
        assert not signed or np.array_equal(numbers, computed), case["name"]


@pytest.mark.parametrize(
    ("item", "binary"), [("element", pa.binary()), ("item", pa.large_binary())]
)
def test_published_files_say_nothing_of_their_scheme(tmp_path, item, binary):
    """Writers of other libraries call a list's item differently; without a label it is
    RedPajama-V2's scheme.
    """
    path = tmp_path / "published.parquet"
    numbers = signature(PROSE, RPV2)
    pq.write_table(as_published([numbers, None], item=item, binary=binary), path)
    (part,) = read_signatures(path, where="published")
    assert np.array_equal(part.numbers[0], numbers)
    assert part.is_signed.tolist() == [True, False]
    assert scheme_label_of(path, where="published") == RPV2.label


def test_the_scheme_is_stored_with_the_signatures(tmp_path):
    """Of a scheme that is not RedPajama-V2's, bands that repeat the first one's numbers are not."""
    path, numbers = tmp_path / "fast.parquet", signature(PROSE, FAST)
    write(path, [None, numbers], FAST.label)
    assert scheme_label_of(path, where="fast") == "lc-fast/1"
    assert pq.read_schema(path).names == SCHEMA.names[:4]
    (part,) = read_signatures(path, where="fast")
    assert part.is_signed.tolist() == [False, True]
    assert np.array_equal(part.numbers[1], numbers)


def test_files_that_are_none_are_named(tmp_path):
    """Not Parquet, other columns, another type, bands of another width or number, columns that
    disagree, a cut file.
    """
    numbers = signature(PROSE, RPV2)
    good = as_published([numbers])

    def with_column(name, value, kind=None):
        return good.set_column(
            good.schema.names.index(name), name, pa.array([value], kind or pa.list_(pa.binary()))
        )

    nine = bands_of(numbers)["signature_sim0.8"]
    broken = {
        "no column signature_sim0.7": (
            good.drop_columns(["signature_sim0.7"]),
            "column signature_sim0.7 is missing",
        ),
        "strings": (
            with_column("signature_sim0.8", ["a"], pa.list_(pa.string())),
            "column signature_sim0.8",
        ),
        "no list": (with_column("signature_sim0.8", b"a", pa.binary()), "column signature_sim0.8"),
        "narrow": (
            with_column("signature_sim0.8", [band[:-1] for band in nine]),
            "9 bands of 52 bytes",
        ),
        "few": (with_column("signature_sim0.8", nine[:-1]), "9 bands of 52 bytes"),
        "null band": (with_column("signature_sim0.8", [None, *nine[1:]]), "9 bands of 52 bytes"),
        "null column": (with_column("signature_sim0.8", None), "9 bands of 52 bytes"),
        "other": (
            with_column("signature_sim0.8", nine[::-1]),
            "of the signature in signature_sim1.0",
        ),
        "no id": (with_column("id", None, pa.string()), "has no id"),
    }
    path = tmp_path / "bad.parquet"
    for name, (table, problem) in broken.items():
        pq.write_table(table, path)
        with pytest.raises(CorruptFile, match=f"shard 7: .*{problem}"):
            list(read_signatures(path, where="shard 7"))
            pytest.fail(name)
    for content in (b"", b"PAR1 but not really", path.read_bytes()[:-20]):
        path.write_bytes(content)
        with pytest.raises(CorruptFile, match="shard 7: not a readable Parquet file"):
            list(read_signatures(path, where="shard 7"))


def test_bands_that_repeat_others_are_not_read_where_they_are_not_wanted(tmp_path):
    """The signatures are the same; nobody looks whether they contradict each other."""
    table = as_published([None, signature(PROSE, RPV2)])
    path, name = tmp_path / "a.parquet", "signature_sim0.7"
    pq.write_table(table, path)
    (whole,), (part,) = (
        read_signatures(path, where="a", repeats=repeats) for repeats in (True, False)
    )
    assert part.ids == whole.ids
    assert np.array_equal(part.numbers, whole.numbers)
    other = pa.array([None, [b"x"]], pa.list_(pa.binary()))
    pq.write_table(table.set_column(table.schema.names.index(name), name, other), path)
    (part,) = read_signatures(path, where="a", repeats=False)
    assert np.array_equal(part.is_signed, whole.is_signed)
