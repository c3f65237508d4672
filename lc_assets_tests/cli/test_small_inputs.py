"""Small inputs are read without numba, and give the same files."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

TEXTS = (
    "The quick brown fox jumps over the lazy dog, while the cat — ÉTÉ — sleeps.\n" * 4,
    "The quick brown fox jumps over the lazy dog, while the cat — été — sleeps.\n" * 4,
    "- a list\n- of items…\n\nStraße und ΣΊΣΥΦΟΣ, 東京 and 🙂; e-mail: nobody.\n" * 3,
    "One sentence without an end",
    "Plain letters of one byte each, more of them than a byte counts: 1, 2, 3.\n" * 12,
)
RUN = """
import sys
from pathlib import Path
from lc_assets.cli.app import app
from lc_assets.stages import file_lakes
file_lakes._INTERPRETED_BYTES = int(sys.argv[1])
for command in (
    "filter docs.jsonl {0}/filter --rules gopher-paper",
    "dedup docs.jsonl {0}/dedup --threshold 0.5",
    "decontaminate docs.jsonl {0}/clean --against items.jsonl --mode any --ngram 5",
    "signals docs.jsonl {0}/signals",
):
    app(command.format(sys.argv[2]).split(), standalone_mode=False)
print("numba" in sys.modules)
"""


def run(folder: Path, interpreted_bytes: int, out: str) -> tuple[bool, dict[str, str]]:
    """Whether numba was imported, and the digest of each table by name."""
    ended = subprocess.run(
        [sys.executable, "-c", RUN, str(interpreted_bytes), out],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
    )
    files = sorted((folder / out).rglob("*.parquet"))
    digests = {
        f"{file.relative_to(folder / out)}": hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }
    return ended.stdout.split()[-1] == "True", digests


def test_kernels_in_the_interpreter_give_the_same_files(tmp_path):
    """An integer that does not wrap in Python would change a hash."""
    lines = [json.dumps({"id": str(i), "text": text}) for i, text in enumerate(TEXTS)]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "items.jsonl").write_text(json.dumps({"text": TEXTS[0][:200]}) + "\n")

    without, interpreted = run(tmp_path, 1 << 14, "a")
    with_numba, compiled = run(tmp_path, 0, "b")

    assert (without, with_numba) == (False, True)
    assert interpreted == compiled
    assert len(compiled) > 8
