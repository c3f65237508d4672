"""Fixtures that several rooms share. What is built once per session must not be written to."""

import pytest

from lc_assets_tests.builders import TinyLake, tiny_lake


@pytest.fixture(scope="session")
def standing_lake(tmp_path_factory) -> TinyLake:
    """A tiny lake with the whole chain built; read only: copy what a test is to change."""
    return tiny_lake(tmp_path_factory.mktemp("standing"))
