"""The two files that pin dependencies name the same versions, each with a hash, and no place to fetch them from."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def lines_of(name: str) -> list[str]:
    return [line for line in (ROOT / name).read_text("utf-8").splitlines() if line and not line.startswith("#")]


def test_the_lock_has_the_versions_of_the_constraints_and_a_hash_of_each():
    locked = [re.fullmatch(r"(\S+==\S+) --hash=sha256:[0-9a-f]{64}", line) for line in lines_of("docs/requirements.lock")]
    assert all(locked)
    assert [found[1] for found in locked if found] == lines_of("constraints.txt")


def test_neither_says_where_to_fetch_from():
    """That is for each machine to say; a host in a lock is one that everybody has to trust."""
    for name in ("docs/requirements.lock", "constraints.txt"):
        assert not re.search(r"://|--index|--find-links|@ ", "\n".join(lines_of(name)))
