"""The list of snapshots: RedPajama-V2's, and a user's own."""

import pytest

from lc_assets.errors import BadInput
from lc_assets.sources.opening import MOST, known_snapshots


def test_the_published_list_is_whole():
    """84 snapshots, oldest first, each once."""
    names = known_snapshots()
    assert (len(names), names[0], names[-1]) == (84, "2014-15", "2023-14")
    assert list(names) == sorted(set(names))


def test_own_snapshots_come_after(tmp_path):
    """Comments and blank lines do not count."""
    (tmp_path / "mine.txt").write_text("# mine\nbooks-1   # the first\n\nbooks-2\n")
    assert known_snapshots(tmp_path / "mine.txt")[-2:] == ("books-1", "books-2")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("books/1", "mine.txt: not a snapshot: 'books/1'"),
        ("..", "not a snapshot"),
        ("2023-06", "names a snapshot twice"),
        (
            "\n".join(f"s{number}" for number in range(MOST - 83)),
            "100 snapshots in all; Dagster follows at most 99",
        ),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(tmp_path, content, words):
    """A path, a name that is there already, or more than Dagster can follow."""
    (tmp_path / "mine.txt").write_text(content)
    with pytest.raises(BadInput, match=words):
        known_snapshots(tmp_path / "mine.txt")


def test_a_missing_list_is_named(tmp_path):
    """A misspelt path says so."""
    with pytest.raises(BadInput, match="none.txt: no such file of snapshots"):
        known_snapshots(tmp_path / "none.txt")
