"""Gzip that is written: the same bytes everywhere, and read back by others."""

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import lc_assets
from lc_assets.publishing import gzip_member, gzipped

DIGESTS = """
import hashlib, random
from lc_assets.publishing import gzip_member
words = random.Random(1)
texts = ["".join(words.choices("abcdefgh <>", k=words.randrange(3_000))).encode() for _ in range(50)]
print(hashlib.sha256(b"".join(map(gzip_member, texts))).hexdigest())
"""
WRITES_BY_ISAL = re.compile(r"""igzip(_lib)?\.compress|IGzipFile\([^)]*mode="[wax]""")


def test_bytes_do_not_depend_on_the_process_or_on_what_its_memory_held():
    found = {_digests_in_a_process(perturb) for perturb in range(4)}
    assert len(found) == 1


def _digests_in_a_process(perturb: int) -> str:
    """``MALLOC_PERTURB_`` fills what is allocated with a byte of its own."""
    environment = os.environ | {"MALLOC_PERTURB_": str(perturb), "PYTHONHASHSEED": str(perturb)}
    return subprocess.run(
        [sys.executable, "-c", DIGESTS], check=True, capture_output=True, text=True, env=environment
    ).stdout


def test_nothing_of_the_clock_and_of_the_name_is_in_a_file(tmp_path: Path):
    for name in ("one.gz", "another.draft"):
        with gzipped(tmp_path / name) as out:
            for _ in range(1_000):
                out.write(b"the same\n")
    written = (tmp_path / "one.gz").read_bytes()
    assert written == (tmp_path / "another.draft").read_bytes()
    assert written[3:8] == bytes(5)  # no flags, so no name; no time
    assert gzip.decompress(written) == b"the same\n" * 1_000


def test_members_follow_one_another():
    texts = [b"", b"one", os.urandom(100_000)]
    assert gzip.decompress(b"".join(map(gzip_member, texts))) == b"".join(texts)
    assert gzip_member(b"one")[3:8] == bytes(5)


def test_isal_only_reads():
    """Its bytes are not the same in all processes."""
    sources = Path(lc_assets.__file__).parent.rglob("*.py")
    assert [source.name for source in sources if WRITES_BY_ISAL.search(source.read_text())] == []
