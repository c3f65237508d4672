"""Output folders that may hold anything: one run at a time, and nothing foreign is deleted."""

import pytest

from lc_assets.errors import Busy
from lc_assets.lake.staging import output_folder
from lc_assets.publishing import STAGING_PREFIX

OWN = f"{STAGING_PREFIX}0123abcd-a.jsonl"
FOREIGN = (
    f"{STAGING_PREFIX}0123abcd-b.jsonl",
    f"{STAGING_PREFIX}notes",
    f"{STAGING_PREFIX}0123abcX-a.jsonl",
    "a.jsonl",
    ".hidden",
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_only_own_leftovers_are_removed_before_and_after(tmp_path):
    for name in (OWN, *FOREIGN):
        (tmp_path / name).touch()
    with output_folder(tmp_path, [tmp_path / "a"]):
        assert names(tmp_path) == sorted(FOREIGN)
        (tmp_path / OWN).touch()
    assert names(tmp_path) == sorted(FOREIGN)


def test_leftovers_are_removed_when_the_run_fails(tmp_path):
    with pytest.raises(ValueError, match="bad"), output_folder(tmp_path / "out", [tmp_path / "a"]):
        (tmp_path / OWN).touch()
        raise ValueError("bad")
    assert names(tmp_path) == ["out"]


def test_a_second_run_is_refused_and_a_later_one_is_not(tmp_path):
    out = tmp_path / "new" / "out"
    with (
        output_folder(out, []),
        pytest.raises(Busy, match=r"another run writes into .*out"),
        output_folder(out, []),
    ):
        raise AssertionError
    with output_folder(out, []):
        assert names(out) == []
