"""Fixtures that several rooms share. What is built once per session must not be written to."""

from pathlib import Path

import pytest

from lc_assets_tests.builders import TinyLake, tiny_lake


@pytest.fixture(scope="session")
def standing_lake(tmp_path_factory) -> TinyLake:
    """A tiny lake with the whole chain built; read only: copy what a test is to change."""
    return tiny_lake(tmp_path_factory.mktemp("standing"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real data beside the checkout; what needs it is skipped where there is none."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "shared" / "data" / "MANIFEST.md").is_file():
            return folder / "shared" / "data"
    pytest.skip("no folder shared/data beside the checkout")
