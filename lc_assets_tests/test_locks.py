"""The two files that pin dependencies name the same versions, each with a hash, and no place to
fetch them from.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def lines_of(name: str) -> list[str]:
    return [
        line
        for line in (ROOT / name).read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    ]


def test_the_lock_has_the_versions_of_the_constraints_and_hashes_of_each():
    """Of each one at least; of most there are many files, one for each Python, system and
    processor.
    """
    text = (ROOT / "docs/requirements.lock").read_text("utf-8")
    locked = re.findall(
        r"^(\S+==\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", text, re.MULTILINE
    )
    assert sorted(pin(line) for line, _ in locked) == sorted(
        pin(line) for line in lines_of("constraints.txt")
    )
    comments = len([line for line in text.splitlines() if line.startswith("#")])
    assert sum(1 + hashes.count("--hash=") for _, hashes in locked) + comments == len(
        text.splitlines()
    )


def test_dependencies_that_are_declared_are_pinned():
    """By their names as the index spells them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = {
        spelled(line) for line in [*project["dependencies"], *extras["chain"], *extras["test"]]
    } - {"lc-assets"}
    assert declared <= {spelled(line) for line in lines_of("constraints.txt")}


def pin(line: str) -> tuple[str, str]:
    return spelled(line), line.partition("==")[2]


def spelled(line: str) -> str:
    found = re.match(r"[\w.-]+", line)
    assert found
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def test_neither_says_where_to_fetch_from():
    """That is for each machine to say; a host in a lock is one that everybody has to trust."""
    for name in ("docs/requirements.lock", "constraints.txt"):
        assert not re.search(r"://|--index|--find-links|@ ", "\n".join(lines_of(name)))
