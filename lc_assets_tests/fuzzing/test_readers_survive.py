"""Whatever is done to a file, its reader returns a value or one of our errors, in bounded time and
memory.

The plain run strikes each reader a few dozen times; ``-m slow -s`` thousands of times, and prints
how often.
"""

import os
import random
import secrets
import shutil
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from lc_assets_tests.fuzzing.damage import Blow, flip, struck
from lc_assets_tests.fuzzing.readers import READERS
from lc_assets_tests.fuzzing.table import Reader, files_of, outcome

CAMPAIGN = int(os.environ.get("LC_FUZZ_EXAMPLES", "3000"))
"""Of each reader."""

NUMBER = st.integers(0, 2**32 - 1)
BLOWS = st.lists(st.builds(Blow, NUMBER, NUMBER, NUMBER), min_size=1, max_size=3)


@cache
def sound(reader: Reader, at: str) -> dict[str, bytes]:
    """The files that a reader's maker makes."""
    folder = Path(at)
    folder.mkdir(parents=True, exist_ok=True)
    reader.make(folder)
    files = files_of(folder)
    reader.read(folder)  # so that nothing is left to be imported or compiled within bounds
    return files


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A folder for each reader's sound files, and one to strike them in."""
    return {reader.name: tmp_path_factory.mktemp("fuzz") for reader in READERS}


def restored(reader: Reader, place: Path, changed: dict[str, bytes]) -> Path:
    """The sound files in a folder, but for those that are changed."""
    files = sound(reader, str(place / "sound"))
    folder = place / "struck"
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in (files | changed).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def strike(reader: Reader, place: Path, file: int, blows: list[Blow]) -> object:
    """What a reader says after some blows to one of its files."""
    files = sound(reader, str(place / "sound"))
    folder = place / "struck"
    if not folder.exists():
        restored(reader, place, {})
    name = sorted(files)[file % len(files)]
    try:
        written_anew(folder / name, struck(files[name], reader.layers_of(name), blows))
        return outcome(reader, folder)
    finally:
        written_anew(folder / name, files[name])


def written_anew(path: Path, content: bytes) -> None:
    """As a new file: an array that is mapped somewhere still has the old one."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def test_names_are_unique():
    assert len({reader.name for reader in READERS}) == len(READERS)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_sound_files_are_read(reader, places):
    """Twice, and the same; so that what the fuzzer strikes is more than an error to begin with."""
    folder = restored(reader, places[reader.name], {})
    found = outcome(reader, folder)
    assert not isinstance(found, type), found
    assert repr(outcome(reader, folder)) == repr(found)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_struck_file_is_a_value_or_an_error_of_ours(reader, places):
    """Bytes and meaning are damaged: cut, flipped, spliced, huge, odd, deep."""

    @given(file=NUMBER, blows=BLOWS)
    def survives(file, blows):
        strike(reader, places[reader.name], file, blows)

    survives()


@pytest.mark.parametrize(
    "reader", [reader for reader in READERS if reader.guarded], ids=lambda reader: reader.name
)
def test_a_flipped_bit_changes_no_value(reader, places):
    """Where bytes carry checksums."""
    whole = repr(outcome(reader, restored(reader, places[reader.name], {})))

    @given(file=NUMBER, where=NUMBER, how=NUMBER)
    def unchanged(file, where, how):
        folder = restored(reader, places[reader.name], {})
        name = sorted(name for name in files_of(folder) if not name.endswith(".json"))[file % 2]
        (folder / name).write_bytes(flip((folder / name).read_bytes(), where, how))
        found = outcome(reader, folder)
        assert isinstance(found, type) or repr(found) == whole

    unchanged()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_campaign(reader, places):
    """Thousands of blows, drawn anew each time, by a plain generator: half of an execution was
    hypothesis's. Prints what came of them.
    """
    said: Counter[str] = Counter()
    seed = secrets.randbits(64)
    drawn = random.Random(seed)  # noqa: S311 - no secret is made of it
    for number in range(CAMPAIGN):
        file, blows = (
            drawn.getrandbits(32),
            [Blow(*(drawn.getrandbits(32) for _ in range(3))) for _ in range(drawn.randint(1, 3))],
        )
        try:
            found = strike(reader, places[reader.name], file, blows)
        except BaseException as error:
            error.add_note(f"execution {number} of seed {seed}: strike(file={file}, blows={blows})")
            raise
        said[found.__name__ if isinstance(found, type) else "a value"] += 1
    print(
        f"{reader.name}: {said.total():,} executions; "
        f"{', '.join(f'{count:,} {what}' for what, count in said.most_common())}"
    )
