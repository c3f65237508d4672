"""The commands of the tutorials, as they stand there, one page after the other in a folder."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lc_assets_tests.sources.own_documents import write_corpus
from lc_assets_tests.test_papers import ROOT

PAGES = ROOT / "docs" / "tutorials"
BLOCK = re.compile(r"^<!-- tutorial: ([\w-]+) -->\n```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMES = sorted(path.stem for path in PAGES.glob("*.md") if BLOCK.search(path.read_text("utf-8")))


def run(script: str, folder: Path) -> None:
    """Run a script as a person would, in a shell that stops at the first error."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LC_")}
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**environment, "PATH": path, "PYTHONPATH": str(ROOT)},
        check=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_tutorials_commands_run(name, tmp_path):
    """Over a corpus of 400 documents, and a crawl of linked pages; prints the seconds."""
    write_corpus(tmp_path / "corpus", 1_000_000)
    run("lc sample rpv2 --quiet && mv rpv2/crawl/2023-06 crawl", tmp_path)
    text, begin = (PAGES / f"{name}.md").read_text("utf-8"), time.monotonic()
    run("\n".join(script for of, script in BLOCK.findall(text) if of == name), tmp_path)
    print(f"{name}: {time.monotonic() - begin:.0f} s")


def test_four_pages_have_commands():
    """The fifth needs a bucket or a cluster."""
    assert NAMES == ["longcrawl64", "longpack", "megatron", "own-documents"]
