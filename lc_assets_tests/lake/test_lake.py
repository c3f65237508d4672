"""The lake: versions, receipts, the one step that readers notice."""

import errno
import fcntl
import os
import subprocess
import sys

import msgspec
import pytest

from lc_assets.counts import Counts
from lc_assets.errors import BadInput, Busy, CorruptFile, NotPublished
from lc_assets.lake import staging
from lc_assets.lake.digests import digest_of
from lc_assets.lake.lake import Lake
from lc_assets.lake.partition import CURRENT
from lc_assets.lake.receipts import (
    RECEIPT,
    Fingerprint,
    decode_bytes,
    encode_json,
    has_valid_checksum,
    receipt_of,
)
from lc_assets.lake.versions import Published, write_receipt
from lc_assets.publishing import publish_bytes

FINGERPRINT = Fingerprint(
    stage="filtered_documents",
    key="2023-06",
    code_version="1",
    params={"min": 3, "deep": {"a": 1}},
    inputs={"raw_snapshot/2023-06": "abc"},
)


def a_version(tmp_path, content=b"hello", fingerprint=FINGERPRINT):
    partition = Lake(tmp_path).partition(fingerprint.stage, fingerprint.key)
    folder = partition.folder / fingerprint.version
    publish_bytes(folder / "data" / "a.txt", content)
    return partition, write_receipt(folder, receipt_of(folder, fingerprint, Counts(seen=1, kept=1)))


def test_a_version_is_not_read_before_it_is_pointed_at(tmp_path):
    """A finished folder alone is not published."""
    partition, version = a_version(tmp_path)
    assert partition.current() is None
    with pytest.raises(NotPublished, match="filtered_documents/2023-06 is not published"):
        partition.require()
    partition.point_at(version)
    assert partition.require() == version


def test_a_folder_without_receipt_is_no_version(tmp_path):
    """A killed build's folder cannot be opened."""
    with pytest.raises(NotPublished, match="not a finished version"):
        Published.at(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"code_version": "1"', b'"code_version": "1" '), (b'"extra": {}', b'"extra": {"a": 1}')],
)
def test_a_changed_receipt_is_damage(tmp_path, old, new):
    """White space, or a count that no file's digest covers: every reader refuses it, also its
    summary.
    """
    partition, version = a_version(tmp_path)
    partition.point_at(version)
    path = version.home / RECEIPT
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))
    for read in (partition.current, partition.current_summary, lambda: Published.at(version.home)):
        with pytest.raises(CorruptFile, match=r"receipt\.json: its content .* checksum: build it"):
            read()
    assert partition.finished(version.version) is None


def test_a_receipt_of_an_older_release_is_read(tmp_path):
    """Its checksum is the digest of its other fields; a changed count is found by it too."""
    _, version = a_version(tmp_path)
    bare = msgspec.structs.replace(version.receipt, checksum="")
    older = msgspec.structs.replace(bare, checksum=digest_of(bare))
    path = version.home / RECEIPT
    path.write_bytes(encode_json(older))
    assert Published.at(version.home).receipt == older
    assert not has_valid_checksum(encode_json(bare))
    path.write_bytes(path.read_bytes().replace(b'"extra": {}', b'"extra": {"a": 1}'))
    with pytest.raises(CorruptFile, match="does not match its checksum"):
        Published.at(version.home)


def test_the_digest_depends_on_the_files_alone(tmp_path):
    """Two versions made differently, with the same bytes, have one data version; other bytes have
    another.
    """
    other = Fingerprint(
        stage="filtered_documents", key="2022-49", code_version="2", params={}, inputs={}
    )
    (_, one), (_, two) = a_version(tmp_path), a_version(tmp_path, fingerprint=other)
    assert one.digest == two.digest
    assert a_version(tmp_path / "elsewhere", b"hullo")[1].digest != one.digest


def test_an_older_version_is_found_by_its_bytes(tmp_path):
    """A reader that was made from an older version can still find it."""
    partition, old = a_version(tmp_path)
    newer = Fingerprint(
        stage="filtered_documents", key="2023-06", code_version="2", params={}, inputs={}
    )
    _, new = a_version(tmp_path, b"other", newer)
    partition.point_at(new)
    assert partition.with_digest(old.digest) == old
    assert partition.with_digest(new.digest) == new
    assert partition.with_digest("no such digest") is None


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.write_bytes(b"hellO"), "digest .*, receipt says"),
        (lambda path: path.write_bytes(b"hell"), "4 bytes, receipt says 5"),
        (lambda path: path.unlink(), "data/a.txt: missing"),
        (lambda path: path.with_name("b.txt").write_bytes(b""), "data/b.txt: not in the receipt"),
    ],
)
def test_damage_is_found_and_named(tmp_path, spoil, words):
    """A flipped letter, a cut, a lost or a foreign file: one sentence each."""
    _, version = a_version(tmp_path)
    assert version.damage() == []
    spoil(version.folder / "data" / "a.txt")
    (said,) = version.damage()
    assert __import__("re").search(words, said)


def test_a_damaged_receipt_is_named(tmp_path):
    """A receipt that is not one gives its path, not a decoder's traceback."""
    _, version = a_version(tmp_path)
    (version.folder / RECEIPT).write_text('{"digest": 3}')
    with pytest.raises(CorruptFile, match=rf"{RECEIPT}: not a readable receipt"):
        Published.at(version.folder)


def test_the_pointer_cannot_leave_its_place(tmp_path):
    """A version's name with a path in it is refused."""
    partition, _ = a_version(tmp_path)
    (partition.folder / CURRENT).write_text('{"version": "../../etc", "digest": "x"}')
    with pytest.raises(BadInput, match="is not a version's name"):
        partition.current()


def test_differences_are_words():
    """Code, settings and inputs that changed are named with old and new value."""
    newer = Fingerprint(
        stage="filtered_documents",
        key="2023-06",
        code_version="2",
        params={"min": 4, "deep": {"a": 1}},
        inputs={"raw_snapshot/2023-06": "abd", "x": "y"},
    )
    assert FINGERPRINT.differences(newer) == [
        "code version 1 → 2",
        "min 3 → 4",
        "input raw_snapshot/2023-06 changed abc → abd",
        "input x is new",
    ]
    assert FINGERPRINT.differences(FINGERPRINT) == []


def test_every_part_of_a_fingerprint_names_another_version():
    """Whatever determines the bytes changes the version's name."""
    changes = [
        {"stage": "token_documents"},
        {"key": "x"},
        {"code_version": "2"},
        {"params": {}},
        {"inputs": {}},
    ]
    fields = {name: getattr(FINGERPRINT, name) for name in FINGERPRINT.__struct_fields__}
    names = {Fingerprint(**(fields | change)).version for change in changes} | {FINGERPRINT.version}
    assert len(names) == len(changes) + 1


@pytest.mark.parametrize(
    "publish", ['replace_note("recipe.toml", b"1")', 'publish_note("releases/v1.json", b"1")']
)
def test_a_killed_note_leaves_nothing_after_a_rerun(tmp_path, publish):
    """Killed at each flush in turn; the rerun publishes the note and removes the unfinished one."""
    program = (
        "import os, signal, sys; from pathlib import Path; from lc_assets.lake.lake import Lake\n"
        "left, really = [int(sys.argv[1])], os.fsync\n"
        "def flush(descriptor):\n"
        "    left[0] -= 1\n"
        "    if not left[0]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    really(descriptor)\n"
        f"os.fsync = flush; Lake(Path(sys.argv[2])).{publish}\n"
    )
    n_left = 0
    for kill_at in range(1, 9):
        root = tmp_path / f"lake{kill_at}"
        command = [sys.executable, "-c", program, str(kill_at), str(root)]
        if subprocess.run(command, check=False).returncode == 0:
            break
        n_left += len(list(root.rglob(".staging-*")))
        assert subprocess.run([*command[:3], "0", str(root)], check=False).returncode == 0
        assert list(root.rglob(".staging-*")) == []
    assert kill_at > 2
    assert n_left


def test_commands_that_rely_on_one_note_exclude_those_that_rely_on_another(tmp_path, monkeypatch):
    """With the same content they run side by side; another one waits, and gives up in words."""
    monkeypatch.setattr(staging, "BUSY_SECONDS", 0.05)
    ours, theirs = Lake(tmp_path), Lake(tmp_path)
    with ours.holding_note("recipe.toml", b"1"):
        with theirs.holding_note("recipe.toml", b"1"):
            pass
        for attempt in (
            lambda: theirs.replace_note("recipe.toml", b"2"),
            lambda: theirs.holding_note("recipe.toml", b"2").__enter__(),
            lambda: theirs.holding_note("recipe.toml", None).__enter__(),
        ):
            with pytest.raises(Busy, match="another command"):
                attempt()
        assert ours.note("recipe.toml") == b"1"
    with theirs.holding_note("recipe.toml", b"2"):
        assert ours.note("recipe.toml") == b"2"


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_nobody_waits_and_only_own_files_are_removed(tmp_path, monkeypatch, number):
    """What another command is writing into the lake's folder stays, with and without locks."""
    monkeypatch.setattr(staging, "BUSY_SECONDS", 0.05)
    theirs, own = tmp_path / ".staging-0123abcd-x.bin", tmp_path / ".staging-0123abcd-recipe.toml"
    for content in (b"1", b"2"):
        theirs.touch()
        own.touch()
        with staging.locked(tmp_path):
            Lake(tmp_path).replace_note("recipe.toml", content)
        assert (theirs.exists(), own.exists()) == (True, False)
        monkeypatch.setattr(fcntl, "flock", refused(number))
    with staging.locked(tmp_path), staging.locked(tmp_path, shared=True):
        assert Lake(tmp_path).note("recipe.toml") == b"2"


def refused(number: int):
    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return flock


def test_counts_that_do_not_add_up_are_damage():
    """A changed byte may turn the name of a field with a default into another."""
    content = b'{"seen": 2, "kept": 1, "dropped": {"short": 1}}'
    assert decode_bytes(content, Counts, "here").kept == 1
    with pytest.raises(CorruptFile, match="here"):
        decode_bytes(content.replace(b"dropped", b"bropped"), Counts, "here")
