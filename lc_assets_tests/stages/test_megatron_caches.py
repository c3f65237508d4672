"""A cache that is built before the start: the very files of the real program, and nothing stale,
cut short or half-written.
"""

import hashlib
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from lc_assets import publishing
from lc_assets.errors import BadInput, CorruptFile
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.megatron.gpt_index import MANIFEST, SEQUENCES
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.formats.megatron.launch_arguments import parse_launch, read_identities, read_launch
from lc_assets.formats.megatron.launch_files import write_data_arguments
from lc_assets.mixing.cache_names import (
    Sources,
    documents_of,
    hugging_face_identities,
    sources_of,
    split_bounds,
)
from lc_assets.publishing import STAGING_PREFIX
from lc_assets.stages.megatron import caching
from lc_assets.stages.megatron.caching import (
    build_cache,
    look_at_cache,
    with_versions,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "megatron" / "caches.json").read_text())
IDENTITY = {"this": GOLDEN["identity"]}
EXECUTOR = LocalExecutor()


def write_data(prefix, lengths):
    """A data set of documents of such lengths."""
    with MegatronWriter.publishing(prefix, np.dtype("<u2")) as writer:
        for length in lengths:
            writer.add(np.arange(length, dtype=np.uint16))


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The golden data sets, in the folder where a launch is made."""
    monkeypatch.chdir(tmp_path)
    for name, lengths in GOLDEN["data"].items():
        write_data(Path("data") / name, lengths)
    return tmp_path


def launched(words):
    """A launch of words."""
    return parse_launch(shlex.split(words), folder=Path())[0]


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["words"][:40])
def test_a_cache_is_megatrons_file_by_file(data, case):
    """The same names, and the same bytes: descriptions and arrays, of splits, blends, several sets;
    nothing more, nothing less.
    """
    build_cache(launched(case["words"]), IDENTITY, Path("cache"), executor=EXECUTOR)
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in Path("cache").iterdir()
    }
    ours = {MANIFEST, SEQUENCES}
    assert {name: digest for name, digest in found.items() if name not in ours} == case["files"]
    assert ours <= set(found)


WORDS = (
    "--data-path 0.3 data/a 0.7 data/b --split 90,10,0 --seq-length 8 --train-samples 200 "
    "--global-batch-size 4 --eval-iters 1"
)


def test_what_is_built_is_found_and_not_built_again(data):
    launch, cache = launched(WORDS), Path("cache")
    before = build_cache(launch, IDENTITY, cache, executor=EXECUTOR)
    assert {entry.status for entry in before} == {"missing"}
    assert {entry.status for entry in look_at_cache(launch, IDENTITY, cache)} == {"found"}
    stamps = {path.name: path.stat().st_mtime_ns for path in cache.glob("*Dataset*")}
    assert {entry.status for entry in build_cache(launch, IDENTITY, cache, executor=EXECUTOR)} == {
        "found"
    }
    assert {path.name: path.stat().st_mtime_ns for path in cache.glob("*Dataset*")} == stamps


def test_the_folders_names_are_flushed_once_for_all_files(data, monkeypatch):
    """Each file's bytes are, before it has its name; the names, after the last index and with each
    of the two lists of data sets.
    """
    flushed, flush = [], publishing.flush

    def counted(path):
        flushed.append(path.name)
        flush(path)

    monkeypatch.setattr(publishing, "flush", counted)
    cache = Path("cache")
    build_cache(launched(WORDS), IDENTITY, cache, executor=EXECUTOR)
    files = [path.name for path in cache.iterdir()]
    of_files = [name.split("-", 2)[2] for name in flushed if name.startswith(STAGING_PREFIX)]
    assert sorted(of_files) == sorted(files)
    names = [number for number, name in enumerate(flushed) if name == cache.name]
    assert len(names) == 2
    assert names[0] > max(number for number, name in enumerate(flushed) if "Dataset" in name)


def test_several_versions_share_the_arrays(data):
    """Another name for the same bytes costs no room."""
    launch, cache = launched(WORDS), Path("cache")
    build_cache(launch, hugging_face_identities("gpt2"), cache, executor=EXECUTOR)
    arrays = list(cache.glob("*.npy"))
    assert len({path.stat().st_ino for path in arrays}) * 3 == len(arrays)
    assert {
        entry.status for entry in look_at_cache(launch, hugging_face_identities("gpt2"), cache)
    } == {"found"}
    assert {entry.status for entry in look_at_cache(launch, IDENTITY, cache)} == {"missing"}


def test_looking_writes_nothing_and_names_what_is_missing(data):
    launch, cache = launched(WORDS), Path("cache")
    entries = look_at_cache(launch, IDENTITY, cache)
    assert not cache.exists()
    assert entries[0].problem == ", ".join(
        f"{entries[0].stem}-{name}"
        for name in (
            "description.txt",
            "document_index.npy",
            "sample_index.npy",
            "shuffle_index.npy",
        )
    )


def test_an_array_cut_short_is_damaged_and_built_again(data):
    """Megatron would take it for a hit."""
    launch, cache = launched(WORDS), Path("cache")
    build_cache(launch, IDENTITY, cache, executor=EXECUTOR)
    victim = next(cache.glob("*GPTDataset-train-shuffle_index.npy"))
    victim.write_bytes(victim.read_bytes()[:-4])
    (wrong,) = (
        entry for entry in look_at_cache(launch, IDENTITY, cache) if entry.status != "found"
    )
    assert (wrong.status, victim.name.startswith(wrong.stem)) == ("damaged", True)
    build_cache(launch, IDENTITY, cache, executor=EXECUTOR)
    assert {entry.status for entry in look_at_cache(launch, IDENTITY, cache)} == {"found"}


def test_an_index_of_more_samples_is_no_launchs_own(data):
    """Megatron would take it for a hit, and serve another order than it builds."""
    launch, cache = launched(WORDS), Path("cache")
    build_cache(launch, IDENTITY, cache, executor=EXECUTOR)
    victim = next(cache.glob("*GPTDataset-train-shuffle_index.npy"))
    np.save(victim, np.append(np.load(victim), np.uint32(0)))
    (wrong,) = (
        entry for entry in look_at_cache(launch, IDENTITY, cache) if entry.status != "found"
    )
    assert (wrong.status, victim.name.startswith(wrong.stem)) == ("damaged", True)


def test_arrays_that_are_given_replace_those_of_the_same_name(data):
    """Two mixes may request the same of a source, and have different orders of it."""
    launch, cache = launched(WORDS), Path("cache")
    build_cache(launch, IDENTITY, cache, executor=EXECUTOR)
    own = {path.name: np.load(path) for path in cache.glob("*.npy")}
    (identity,) = IDENTITY.values()

    def reversed_arrays(request):
        stem = request.stem(launch, identity)
        return [own[f"{stem}-{name}.npy"][::-1] for name in request.files]

    build_cache(launch, IDENTITY, cache, executor=EXECUTOR, made=reversed_arrays)
    for name, array in own.items():
        np.testing.assert_array_equal(np.load(cache / name), array[::-1])


def test_a_data_set_that_changed_makes_its_indices_stale(data):
    """Megatron would say HIT and read beyond the end; only what depends on it is built again."""
    launch, cache = launched(WORDS), Path("cache")
    build_cache(launch, IDENTITY, cache, executor=EXECUTOR)
    write_data(Path("data/b"), [7] * 60)
    stale = [entry for entry in look_at_cache(launch, IDENTITY, cache) if entry.status == "stale"]
    assert {entry.problem for entry in stale} == {"data/b has changed since the cache was built"}
    assert len(stale) == 4  # the index and the blend of train and valid
    build_cache(launch, IDENTITY, cache, executor=EXECUTOR)
    assert {entry.status for entry in look_at_cache(launch, IDENTITY, cache)} == {"found"}
    assert json.loads((cache / SEQUENCES).read_text()) == {"data/a": [120, 121], "data/b": [60, 61]}


def test_prefixes_that_name_their_content_cannot_be_stale(data):
    """A data set that changes has another path, so Megatron looks for other names."""
    launch = launched(WORDS)
    first = with_versions(launch, Path("versions"))
    assert with_versions(launch, Path("versions")) == first
    write_data(Path("data/b"), [7] * 60)
    second = with_versions(launch, Path("versions"))
    assert (first.sources[0].prefixes[0], first.sources[0].weights) == (
        second.sources[0].prefixes[0],
        second.sources[0].weights,
    )
    assert first.sources[0].prefixes[1] != second.sources[0].prefixes[1]
    assert [
        len(MegatronReader(Path(prefix)))
        for prefix in (first.sources[0].prefixes[1], second.sources[0].prefixes[1])
    ] == [45, 60]
    stated = write_data_arguments(second, Path("versions")).split()
    again, _ = parse_launch([*stated, *shlex.split(WORDS)[5:]], folder=Path())
    assert again == second


def test_splits_by_themselves_are_written_for_megatron_too(data):
    words = (
        "--train-data-path 2 data/a 1 data/b --test-data-path data/c --seq-length 8 "
        "--train-samples 9 --global-batch-size 3 --eval-iters 1"
    )
    launch = with_versions(launched(words), Path("versions"))
    stated = write_data_arguments(launch, Path("versions")).split()
    assert parse_launch([*stated, *shlex.split(words)[7:]], folder=Path())[0] == launch


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            (
                "--data-path data/a --split 999,1,0 --seq-length 8 --train-samples 9 "
                "--global-batch-size 3"
            ),
            r"data/a: the valid split .* no token",
        ),
        (
            "--data-path 1 data/a 1 data/a --seq-length 8 --train-samples 9 --global-batch-size 3",
            "data/a occurs twice in one blend",
        ),
        (
            "--data-path 0 data/a 1 data/b --seq-length 8 --train-samples 9 --global-batch-size 3",
            "weight 0 is 0.0",
        ),
        (
            "--data-path nan data/a 1 data/b --seq-length 8 --train-samples 9 --global-batch-size 3",
            "weight 0 is nan",
        ),
        (
            (
                "--data-path 0.5 data/a much data/b --seq-length 8 --train-samples 9 "
                "--global-batch-size 3"
            ),
            "expected a weight, got 'much'",
        ),
        ("--data-path data/a --train-samples 9 --global-batch-size 3", "--seq-length is missing"),
        (
            "--data-path data/a --seq-length 8 --global-batch-size 3",
            "neither --train-samples nor --train-iters",
        ),
        ("--data-path data/a --seq-length 8 --train-samples 9", "--global-batch-size is missing"),
        ("--data-path data/a --seq-length many", "invalid int value: 'many'"),
        ("--seq-length 8 --train-samples 9 --global-batch-size 3", "no data is named"),
        ("--data-path data/a --train-data-path data/b --seq-length 8", "named in several ways"),
        ("--data-path data/a --fim-data --seq-length 8", "with --fim-data Megatron builds other"),
        (
            (
                "--data-path data/a --split 0,0,0 --seq-length 8 --train-samples 9 "
                "--global-batch-size 3"
            ),
            "at least one above 0",
        ),
        (
            (
                "--data-path data/a --split 1.2.3 --seq-length 8 --train-samples 9 "
                "--global-batch-size 3"
            ),
            "not a list of shares",
        ),
        (f"{WORDS} --full-validation", "valid: sources with weights need a number of samples"),
        (
            (
                "--train-data-path data/a data/b --seq-length 800 --train-samples 9 "
                "--global-batch-size 3"
            ),
            "data/a: its train split has less",
        ),
    ],
)
def test_a_launch_that_cannot_be_meant_is_refused_before_anything_is_written(
    data, words, complaint
):
    with pytest.raises(BadInput, match=complaint):
        build_cache(launched(words), IDENTITY, Path("cache"), executor=EXECUTOR)
    assert not Path("cache").exists()


@pytest.mark.parametrize(
    ("more", "n_valid_and_test"),
    [
        ("", (48, 8)),
        ("--skip-train", (8, 8)),
        ("--start-eval-at-iter 20", (32, 8)),
        ("--start-eval-at-iter 900", (0, 8)),
        ("--eval-global-batch-size 4", (24, 4)),
        ("--full-validation", (None, 8)),
    ],
)
def test_evaluation_has_the_samples_that_megatron_requests(more, n_valid_and_test):
    """By `get_train_valid_test_num_samples` of Megatron-LM's main of 2026-08."""
    launch = launched(
        "--data-path a --split 90,10,0 --seq-length 64 --global-batch-size 8 --train-iters 50 "
        f"--eval-interval 10 --eval-iters 1 {more}"
    )
    assert launch.n_samples == (400, *n_valid_and_test)


def test_arguments_that_may_concern_the_data_are_known_or_refused():
    words = "--data-path a --split 1 --seq-length 8 --train-samples 9 --eval-iters 0"
    for name in ("--new-data-order", "--eval-on-samples", "--phase-lengths", "--perform-rl-step"):
        with pytest.raises(BadInput, match=name):
            launched(f"{words} {name} 3")
    harmless = "--lr-warmup-samples 3 --micro-batch-size 1 --tp-comm-split-rs --num-layers 2"
    assert launched(f"{words} {harmless}") == launched(words)


def test_weights_may_be_numbers_in_a_file_of_splits(data):
    Path("splits.json").write_text(
        '{"train": [2, "data/a", 1.5, "data/b"], "valid": null, "test": "data/c"}'
    )
    rest = "--seq-length 8 --train-samples 9 --eval-iters 0"
    train, valid, test = launched(f"--per-split-data-args-path splits.json {rest}").sources
    assert train == Sources(prefixes=("data/a", "data/b"), weights=(2.0, 1.5))
    assert (valid, test) == (None, Sources(prefixes=("data/c",)))
    Path("data.txt").write_text("data/a")
    with pytest.raises(BadInput, match="--split is missing"):
        launched(f"--data-args-path data.txt {rest}")


def test_a_missing_data_set_is_named(data):
    with pytest.raises(CorruptFile, match=r"data/none\.idx: is missing"):
        look_at_cache(launched(WORDS.replace("data/b", "data/none")), IDENTITY, Path("cache"))


def test_a_blend_that_asks_a_source_for_too_much_is_refused(data, monkeypatch):
    """Megatron would stop with an IndexError, in the middle of its start."""
    launch = launched(WORDS)
    monkeypatch.setattr(caching._DataSets, "n_samples", lambda self, split, part: 50)
    with pytest.raises(
        BadInput,
        match=r"data/a: the train blend takes 60 samples, its index holds 50: .*--mid-level-dataset-surplus to 0.212",
    ):
        build_cache(launch, IDENTITY, Path("cache"), executor=EXECUTOR)


def test_a_file_of_arguments_may_have_lines_and_comments(data):
    Path("launch.args").write_text(
        f"# the run\n--num-layers 2 --swiglu\n{WORDS} \\\n  --data-cache-path '/a cache' # where\n"
    )
    launch, cache = read_launch(Path("launch.args"))
    assert (launch, cache) == (launched(WORDS), "/a cache")
    Path("data.txt").write_text("0.3 data/a 0.7 data/b\n")
    assert launched("--data-args-path data.txt " + " ".join(shlex.split(WORDS)[5:])) == launch


@pytest.mark.parametrize("content", ["[]", "{", "{}", '{"tokenizer_path": "gpt2"}'])
def test_what_is_no_identity_is_refused(tmp_path, content):
    (tmp_path / "identity.json").write_text(content)
    with pytest.raises(BadInput, match="identity"):
        read_identities(tmp_path / "identity.json")


def test_an_unreadable_manifest_is_named(data):
    Path("cache").mkdir()
    (Path("cache") / MANIFEST).write_text("[")
    with pytest.raises(CorruptFile, match="remove it"):
        look_at_cache(launched(WORDS), IDENTITY, Path("cache"))


def test_documents_are_split_as_megatron_rounds():
    """Halves go to the even number."""
    assert [documents_of(bounds, 5) for bounds in split_bounds("5,5,0")] == [
        range(2),
        range(2, 5),
        range(0),
    ]
    assert documents_of((0, 0.3), 5) == range(2)
    assert split_bounds("969, 30, 1")[1] == (0.969, 0.999)
    assert split_bounds("1") == ((0, 1.0), None, None)


def test_numbers_that_are_names_are_weights_as_megatron_has_it():
    """A folder called 2024 in front of a prefix is taken for a weight."""
    assert sources_of(["2024", "web"]) == Sources(prefixes=("web",), weights=(2024.0,))
    assert sources_of(["web"]) == Sources(prefixes=("web",))
