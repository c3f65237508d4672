"""The programs of the benchmark of scale run, at a fraction of the scale that takes seconds."""

import json

import pytest

from lc_assets.lake.versions import VersionFiles
from lc_assets.sources.opening import known_snapshots
from lc_assets_tests.benchmarks import (
    millions_of_links,
    millions_of_signatures,
    scaled_lake,
    scaled_versions,
)
from lc_assets_tests.benchmarks.scale_parts import PARTS
from lc_assets_tests.benchmarks.scaled_lake import Bench, Scale


@pytest.mark.timeout(120)
def test_every_part_can_be_measured(tmp_path, monkeypatch):
    """Each builds on those before it; a lake of three snapshots is current."""
    for module in (scaled_lake, scaled_versions):
        monkeypatch.setattr(module, "known_snapshots", lambda: known_snapshots()[:3])
    monkeypatch.setattr(scaled_lake, "DOCUMENTS", 1_000_000)
    monkeypatch.setattr(scaled_lake, "ROWS", 240_000)
    monkeypatch.setattr(VersionFiles, "lost", lambda _self, _home: [])
    for name, part in PARTS.items():
        assert part(Bench(Scale(0.0002), tmp_path))() > 0, name


def test_claims_along_made_up_links_can_be_measured(tmp_path, capsys):
    """Every link is seen, and some are claimed."""
    millions_of_links.main("write", str(tmp_path), "2000")
    millions_of_links.main("claim", str(tmp_path), "allow", "1")
    written, claimed = map(json.loads, capsys.readouterr().out.splitlines())
    assert claimed["seen"] == written["links"]
    assert claimed["kept"] > 0


def test_made_up_near_duplicates_are_found(tmp_path, capsys, monkeypatch):
    """Most of the planted pairs, and no other."""
    for name in ("gather_shingles", "BANDS"):  # the program puts its own in their place
        monkeypatch.setattr(millions_of_signatures.verification, name, None)
    millions_of_signatures.main(str(tmp_path), "2000", str(1 << 28))
    found = json.loads(capsys.readouterr().out)
    assert found["pair_recall"] > 0.9
    assert found["pair_precision"] == 1
