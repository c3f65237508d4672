"""A password and a token in the addresses that commands are given: in nothing that they print or
leave behind.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lc_assets_tests.builders import SNAPSHOTS, recipe_file, tiny_recipe
from lc_assets_tests.processes import HANG_SECONDS

PASSWORD, TOKEN = "planted-pa55word", "planted-t0ken"
SECRETS = (PASSWORD, TOKEN)
CLOSED = f"http://me:{PASSWORD}@127.0.0.1:9/rpv2?access_token={TOKEN}"
ROOT = Path(__file__).parents[2]

COMMANDS = [
    ("plan", "--look-upstream", "--all"),
    ("rebuild", "--look-upstream"),
    ("rebuild", "--dry-run"),
    ("rebuild",),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_whose_upstream_does_not_answer_say_so_without_its_password(tmp_path, lc, words):
    recipe = recipe_file(tmp_path / "recipe.toml", tiny_recipe(tmp_path))
    given = (
        "--lake",
        tmp_path / "lake",
        "--upstream",
        CLOSED,
        "--crawl",
        CLOSED,
        "--recipe",
        recipe,
        "--snapshot",
        SNAPSHOTS[0],
    )
    said = lc(*words, *given)
    assert said.code != 0
    assert "127.0.0.1" in said.out + said.err or words == ("rebuild", "--dry-run")
    assert not [secret for secret in SECRETS if secret in said.out + said.err]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [
        path for path in files if any(secret.encode() in path.read_bytes() for secret in SECRETS)
    ]


def test_a_process_says_it_without_the_password_too(tmp_path):
    """As a person calls it, from the environment: help shows no value, and a refusal no setting."""
    environment = os.environ | {
        "LC_UPSTREAM": CLOSED,
        "LC_CRAWL": CLOSED,
        "LC_ROOT": str(tmp_path / "lake"),
        "PYTHONPATH": str(ROOT),
    }
    for words in (["plan", "--help"], ["plan", "--look-upstream", "--snapshot", "../x"]):
        command = [sys.executable, "-c", "from lc_assets.cli.app import app; app()", *words]
        ended = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=HANG_SECONDS,
        )
        assert ended.stdout + ended.stderr
        assert not [secret for secret in SECRETS if secret in ended.stdout + ended.stderr]
