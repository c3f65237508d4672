"""``lc show``: what lies at a path, and whether it is whole."""

import shutil
from types import SimpleNamespace

import pytest

from lc_assets.cli.inspect.files import Artefact
from lc_assets.cli.inspect.in_lake import _as_in_bucket
from lc_assets.lake.digests import FileFact
from lc_assets_tests.builders import N_LONG


def version(lake, stage, key="all"):
    return lake.context.lake.partition(stage, key).require().folder


@pytest.fixture
def copied(published_lake, tmp_path):
    """Copy one version to where it may be damaged."""

    def copy(stage, key="2023-06"):
        found = version(published_lake, stage, key)
        return shutil.copytree(found, tmp_path / found.name)

    return copy


def test_a_lake_shows_every_partition_in_the_chains_order(lc, published_lake):
    said = lc("show", published_lake.root)
    names = [
        line.split()[0] for line in said.out.splitlines() if "/" in line and line.startswith(" ")
    ]
    assert names == list(published_lake.built)
    assert said.code == 0
    assert "whole" in said.out
    assert lc("show", published_lake.root, "--verify").code == 0


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("token_grid", ["stage token_grid", "2 published partitions", "token_grid/2023-14"]),
        (
            "token_grid/2023-06",
            [
                "published version",
                "24 in = 24 kept + 0 dropped",
                "setting seed",
                "blake2b",
                "from token_documents/2023-06",
            ],
        ),
        (
            "filtered_documents/2023-06",
            [
                "36 in = 27 kept + 9 dropped",
                "symbols rps_doc_symbol_to_word_ratio 0.5 for tests",
                "long_enough 3 6",
                "duplicate 3 3",
            ],
        ),
        ("blended_mix/one-sided", ["60 in = 60 kept", "setting weights"]),
    ],
)
def test_a_folder_of_the_lake_is_known(lc, published_lake, path, words):
    said = lc("show", published_lake.root / path)
    assert said.code == 0
    assert [word for word in words if word not in " ".join(said.out.split())] == []


@pytest.mark.parametrize(
    ("stage", "key", "file", "words"),
    [
        (
            "raw_snapshot",
            "2023-06",
            "manifest.parquet",
            ["Parquet table", "identity", "relative to the upstream's root"],
        ),
        (
            "filtered_documents",
            "2023-06",
            "0000-en_head.documents.parquet",
            ["raw_content string the text"],
        ),
        (
            "filtered_documents",
            "2023-06",
            "0000-en_head.dropped.parquet",
            ["reasons", "what the rule measured"],
        ),
        (
            "token_documents",
            "2023-06",
            "0000-en_head.documents.parquet",
            ["n_tokens int64 tokens of the document"],
        ),
        (
            "token_documents",
            "2023-06",
            "0000-en_head.bin",
            ["Megatron data set", f"documents {N_LONG}"],
        ),
        ("token_documents", "2023-06", "0000-en_head.idx", ["Megatron data set", "uint16"]),
        ("token_documents", "2023-06", "0000-en_head", ["Megatron data set", "lengths"]),
        ("token_grid", "2023-06", "rows.parquet", ["shift", "rotated to the right"]),
        (
            "token_grid",
            "2023-06",
            "train.zarr",
            ["token grid (Zarr v3)", "rows × 64 tokens, uint16", "gpt2"],
        ),
        ("longcrawl_flat", "all", "heldout.zarr", ["LongCrawl64's layout", "chunks"]),
        ("longcrawl", "all", "train_source.npy", ["NumPy array", "uint16", "0 to 1"]),
        ("megatron_rows", "2023-06", "train_sample_index.npy", ["NumPy array", "× 2"]),
    ],
)
def test_a_file_of_a_version_is_known_and_whole(lc, published_lake, *, stage, key, file, words):
    """Also when every byte is read again."""
    path = version(published_lake, stage, key) / file
    for options in ([], ["--verify"]):
        said = lc("show", path, *options)
        assert (said.code, said.err) == (0, "")
        assert [word for word in words if word not in " ".join(said.out.split())] == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", ["RedPajama-V2 upstream", "en-2023-06-head_middle.txt"]),
        (
            "duplicates/2023-06/0000/en_head.duplicates.parquet",
            ["Parquet table", "doc_id"],
        ),
    ],
)
def test_an_upstream_and_its_tables_are_known(lc, published_lake, path, words):
    root = published_lake.root.parent / "upstream"
    for options in ([], ["--verify"]):
        said = lc("show", root / path, *options)
        assert (said.code, said.err) == (0, "")
        assert [word for word in words if word not in " ".join(said.out.split())] == []


def test_a_changed_byte_is_found_by_verify_only(lc, copied):
    folder = copied("token_documents")
    path = folder / "0000-en_head.bin"
    content = bytearray(path.read_bytes())
    content[7] ^= 1
    path.write_bytes(content)
    assert lc("show", folder).code == 0
    said = lc("show", folder, "--verify")
    assert said.code == 1
    assert said.err.startswith("0000-en_head.bin: digest ")
    assert "damaged in 1 places" in said.out


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lambda path: path.unlink(), "rows.parquet: missing"),
        (lambda path: path.write_bytes(b"short"), "rows.parquet: 5 bytes, receipt says "),
        (lambda path: path.with_name("new.txt").write_bytes(b""), "new.txt: not in the receipt"),
    ],
)
def test_missing_short_and_foreign_files_are_found_without_reading(lc, copied, harm, sentence):
    folder = copied("token_grid")
    harm(folder / "rows.parquet")
    said = lc("show", folder)
    assert said.code == 1
    assert said.err.startswith(sentence)


def test_a_lost_shard_of_an_array_is_found(lc, copied):
    array = copied("token_grid") / "train.zarr"
    lost = next(path for path in (array / "c").rglob("*") if path.is_file())
    lost.unlink()
    said = lc("show", array)
    assert said.code == 1
    assert str(lost) in said.err


def test_a_damaged_chunk_of_an_array_is_found_by_verify(lc, copied):
    array = copied("token_grid") / "train.zarr"
    shard = next(path for path in (array / "c").rglob("*") if path.is_file())
    content = bytearray(shard.read_bytes())
    content[len(content) // 3] ^= 255
    shard.write_bytes(content)
    said = lc("show", array, "--verify")
    assert said.code == 1
    assert str(shard) in said.err


def test_an_upstream_with_missing_and_broken_files_says_which(lc, published_lake, tmp_path):
    root = shutil.copytree(published_lake.root.parent / "upstream", tmp_path / "upstream")
    (root / "quality_signals/2023-06/0000/en_head.signals.json.gz").unlink()
    documents = root / "documents/2023-14/0001/en_head.json.gz"
    documents.write_bytes(documents.read_bytes()[:-40])
    quick, thorough = lc("show", root), lc("show", root, "--verify")
    assert (quick.code, thorough.code) == (1, 1)
    assert quick.err.splitlines() == ["en-2023-06-head_middle.txt: 1 signals files are missing"]
    assert str(documents) in thorough.err


@pytest.mark.parametrize("name", ["notes.txt", "empty"])
def test_what_is_none_of_ours_is_said_to_be_so(lc, tmp_path, name):
    path = tmp_path / name
    path.mkdir() if name == "empty" else path.write_text("hello")
    said = lc("show", path)
    assert said.code == 2
    assert "no artefact that is known" in said.err


def test_a_receipt_that_cannot_be_read_is_said_for_its_partition_and_others_are_shown(
    lc, published_lake, tmp_path
):
    root = shutil.copytree(published_lake.root, tmp_path / "lake")
    current = root / "token_grid/2023-06/current.json"
    current.write_text("{}")
    said = lc("show", root / "token_grid")
    assert said.code == 1
    assert "token_grid/2023-06" in said.err
    assert "unreadable" in said.out
    assert "token_grid/2023-14" in said.out


@pytest.mark.parametrize(
    ("within", "size", "n_damaged"),
    [("train", "7 bytes", 1), ("train.bin", "3 bytes", 0), ("train2", "24 bytes", 1)],
)
def test_files_in_a_bucket_are_not_those_whose_names_only_begin_so(within, size, n_damaged):
    sizes = {"train.bin": 3, "train.idx": 4, "train2.bin": 8, "train2/c/0": 16}
    files = [FileFact(path, n_bytes, "0" * 64) for path, n_bytes in sizes.items()]
    damage = ["train.idx: missing", "train2/c/0: missing"]
    published = SimpleNamespace(receipt=SimpleNamespace(files=files), differences=lambda: damage)
    found = SimpleNamespace(published=published, within=within)
    shown = _as_in_bucket(Artefact(kind="data", facts=[("size", "")]), found)
    assert dict(shown.facts) == {"size": size}
    assert len(shown.damage) == n_damaged
