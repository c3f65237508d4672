"""Calling the command line as a person would, in this process."""

from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

from lc_assets.cli.app import app


@dataclass(frozen=True)
class Said:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def lc(monkeypatch):
    """Run ``lc`` with words as arguments; no variable of this machine is seen, and no error but a
    deliberate one passes.
    """
    for name in (
        "LC_ROOT",
        "LC_UPSTREAM",
        "LC_CRAWL",
        "LC_RECIPE",
        "LC_WITHDRAWN",
        "LC_SNAPSHOTS",
        "LC_WORKERS",
        "DAGSTER_HOME",
    ):
        monkeypatch.delenv(name, raising=False)

    def run(*words: object) -> Said:
        ended = CliRunner().invoke(app, [str(word) for word in words])
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return Said(ended.exit_code, ended.stdout, ended.stderr)

    return run
