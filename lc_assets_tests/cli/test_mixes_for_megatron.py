"""``lc megatron cache --mix``: the launch of a published mix."""

import shutil
from pathlib import Path

import pytest

from lc_assets.formats.megatron.launch_arguments import read_launch
from lc_assets.mixing.cache_names import hugging_face_identities
from lc_assets.stages.megatron.caching import look_at_cache
from lc_assets.stages.mixes.blended_mix import MIX_FILE


def test_a_mix_becomes_a_launch_that_finds_everything(published_lake, lc, tmp_path, monkeypatch):
    """Absolute paths, linked arrays; `lc show` names the command; a second run builds nothing."""
    monkeypatch.chdir(tmp_path)
    lake = published_lake.context.lake
    name = min(lake.keys("blended_mix"))
    mix = lake.root / "blended_mix" / name
    words = ("megatron", "cache", "--mix", mix, "--hf-tokenizer", "gpt2", "--cache", "cache")
    said = lc(*words, "--workers", 1)
    assert said.code == 0
    folder = tmp_path / "cache"
    assert f"launch with {(folder / 'launch.args').read_text().split()[0]}" in said.out
    launch, cache = read_launch(folder / "launch.args")
    assert cache == str(folder)
    assert all(Path(prefix).is_absolute() for prefix in launch.sources[0].prefixes)
    entries = look_at_cache(launch, hugging_face_identities("gpt2"), folder)
    assert {entry.status for entry in entries} == {"found"}
    published = lake.partition("blended_mix", name).require()
    assert (published.folder / "dataset_index.npy").stat().st_ino in {
        path.stat().st_ino for path in folder.glob("*-dataset_index.npy")
    }
    assert " 0 built" in lc(*words, "--workers", 1, "--pieces").out
    shown = lc("show", mix).out
    assert "lc megatron cache --mix" in shown
    assert "--train-samples" in shown


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "either --launch or --mix"),
        (("--mix", "x", "--launch", "y"), "either --launch or --mix"),
        (("--mix", ".", "--cache", "c"), "is not a published mix"),
        (("--launch", "y", "--pieces"), "--pieces belongs to --mix"),
        (("--mix", "x", "--check"), "--check and --versioned to --launch"),
        (("--mix", "x", "--versioned", "y"), "--check and --versioned to --launch"),
        (("--mix", "LAKE/token_grid/2023-06", "--cache", "c"), "is not a published mix"),
        (("--mix", "LAKE/blended_mix/MIX"), "pass --cache"),
    ],
)
def test_what_is_no_mix_is_refused(published_lake, lc, tmp_path, monkeypatch, words, complaint):
    monkeypatch.chdir(tmp_path)
    lake = published_lake.context.lake
    name = min(lake.keys("blended_mix"))
    words = [word.replace("LAKE", str(lake.root)).replace("MIX", name) for word in words]
    said = lc("megatron", "cache", "--hf-tokenizer", "gpt2", *words)
    assert said.code == 2
    assert complaint in said.err


def test_a_mix_of_an_earlier_version_is_refused(published_lake, lc, tmp_path):
    """It states no samples for Megatron; what it holds differs from what Megatron would build."""
    lake = published_lake.context.lake
    name = min(lake.keys("blended_mix"))
    root = tmp_path / "lake"
    shutil.copytree(lake.root, root, symlinks=True)
    (file,) = (root / "blended_mix" / name).glob(f"*/{MIX_FILE}")
    file.write_bytes(file.read_bytes().replace(b'"samples"', b'"earlier"'))
    said = lc(
        "megatron",
        "cache",
        "--mix",
        root / "blended_mix" / name,
        "--cache",
        tmp_path / "c",
        "--hf-tokenizer",
        "gpt2",
    )
    assert (said.code, "no launch of Megatron gives this mix" in said.err) == (2, True)
