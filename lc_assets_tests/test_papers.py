"""What the README and docs/ say is so: their Python runs, what they name exists, and CI runs what
they promise.
"""

import functools
import re
from pathlib import Path

import numpy as np
import pytest

import lc_assets
from lc_assets_tests import made_pages
from lc_assets_tests.grid_builders import write_lake, zipf_ids

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAPERS = [README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
FORMATS = sorted((ROOT / "docs" / "formats").glob("*.md"))
FIRST_SCREEN = 25
APPENDIX = {"decisions", "chunking", "campaigns", "figures", "names"}
MOST_WORDS, MOST_WORDS_OF_CHANGES = 30_000, 900

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)")
PATH = re.compile(r"\b(?:lc_assets(?:_tests)?|docs)/[\w./*{},-]*[\w*}]")
DOTTED = re.compile(r"\blc_assets(?:_tests)?(?:\.\w+)+")
ENTRY_POINTS = re.compile(r"entry-points\.\"[^\"]*\"")
COMMAND = re.compile(r"(?:`|^)lc ([a-z]+(?:-[a-z]+)*)", re.MULTILINE)


def named(path):
    return path.relative_to(ROOT).as_posix()


@functools.cache
def blocks(path: Path, language: str) -> tuple[str, ...]:
    """The contents of a page's fenced blocks in one language."""
    return tuple(
        content for found, content in BLOCK.findall(path.read_text("utf-8")) if found == language
    )


def links(path: Path) -> set[Path]:
    """What a page links to inside the repository."""
    found = LINK.findall(path.read_text("utf-8"))
    return {
        (path.parent / link).resolve() for link in found if not link.startswith(("http:", "https:"))
    }


def run(path: Path) -> dict:
    """Run a page's Python blocks one after another, as its reader would."""
    names: dict = {}
    for number, content in enumerate(blocks(path, "python")):
        # Our own pages.
        exec(compile(content, f"{named(path)}, block {number}", "exec"), names)  # noqa: S102
    return names


@pytest.mark.parametrize(
    "path", [path for path in PAPERS if path != README and blocks(path, "python")], ids=named
)
def test_the_pages_python_runs(path):
    """Each page's blocks, in their order, in one namespace; what they assert holds."""
    run(path)


def test_the_readmes_training_loop_runs(tmp_path, monkeypatch):
    """Word for word, in a folder where ``lake`` is a lake; the batch is as large as the comment
    says, text one behind targets.
    """
    snapshots = ("2023-06", "2023-14")
    train = {name: zipf_ids(8, 4096, seed=seed) for seed, name in enumerate(snapshots)}
    write_lake(tmp_path / "lake", train, {name: zipf_ids(1, 4096) for name in snapshots})
    monkeypatch.chdir(tmp_path)
    batch = run(README)["batch"]
    assert batch.text.shape == batch.targets.shape == (8, 4096)
    np.testing.assert_array_equal(batch.text[:, 1:], batch.targets[:, :-1])


@pytest.mark.parametrize("path", PAPERS, ids=named)
def test_what_a_page_names_exists(path):
    """Links, files, modules and what is in them, commands."""
    text = ENTRY_POINTS.sub("", path.read_text("utf-8"))
    missing = [str(link) for link in links(path) if not link.exists()]
    missing += [name for name in PATH.findall(text) if not list(ROOT.glob(name))]
    missing += [name for name in DOTTED.findall(text) if not is_ours(name)]
    missing += [f"lc {name}" for name in COMMAND.findall(text) if name not in commands()]
    assert not missing


def is_ours(dotted: str) -> bool:
    """Whether a dotted name is public or a module, or is defined at the top of one; what comes
    behind that is not looked at.
    """
    parts = dotted.split(".")
    if parts[1] in lc_assets.__all__:
        return True
    module = next((n for n in range(len(parts), 0, -1) if source_of(parts[:n]).is_file()), 0)
    if module in (0, len(parts)):
        return module > 0
    return bool(
        re.search(
            rf"^(?:def |class )?{parts[module]}\b",
            source_of(parts[:module]).read_text("utf-8"),
            re.MULTILINE,
        )
    )


def source_of(parts: list[str]) -> Path:
    """The file of a module or of a package."""
    module = ROOT.joinpath(*parts)
    return module / "__init__.py" if module.is_dir() else module.with_suffix(".py")


def commands() -> set[str]:
    """Names of the command line's commands."""
    from lc_assets.cli.app import COMMANDS

    return {"megatron", *(name.partition(":")[0] for name in COMMANDS)}


@pytest.mark.parametrize("path", FORMATS, ids=named)
def test_a_format_page_can_be_found(path):
    """Some other page links to it."""
    assert any(path in links(other) for other in PAPERS if other != path)


def test_the_first_screen_says_how_to_see_it_and_how_to_test_it():
    """Two lines, one command each, before anything else is explained."""
    first = "\n".join(README.read_text("utf-8").splitlines()[:FIRST_SCREEN])
    demo, test = (content.strip() for _, content in BLOCK.findall(first))
    assert demo.endswith(".venv/bin/lc demo")
    assert test.endswith(".venv/bin/pytest")
    assert "\n" not in demo + test


def test_ci_runs_the_readmes_lines():
    """The test line verbatim, and the blocks that CI cuts out by their marks."""
    ci, readme = (ROOT / ".ci" / "run").read_text("utf-8"), README.read_text("utf-8")
    _, test = blocks(README, "bash")[:2]
    assert test.strip() in ci.splitlines()
    for name in ("materialize", "own-data", "verbs"):
        mark = f"<!-- run: {name} -->"
        assert mark in ci
        assert readme.count(mark) == readme.count(f"{mark}\n```bash\n") == 1


def words(path: Path) -> int:
    """Words of a page outside its fenced blocks: what has a letter or a digit between spaces."""
    text = BLOCK.sub("", path.read_text("utf-8"))
    return sum(1 for word in text.split() if re.search(r"\w", word))


def test_people_can_read_it_all():
    r"""Pages that people wrote for users: not those that are made, the appendix, the changelog.

    ``python -c "from lc_assets_tests.test_papers import *; print(*counted(), sep='\\n')"`` lists
    them, the longest last.
    """
    assert sum(n for n, _name in counted()) <= MOST_WORDS
    assert words(ROOT / "CHANGELOG.md") <= MOST_WORDS_OF_CHANGES


def counted() -> list[tuple[int, str]]:
    """The number of words and the name of each page that people wrote for users."""
    others = {ROOT / "CHANGELOG.md", *made_pages.pages(ROOT)}
    pages = [path for path in PAPERS if path not in others and path.stem not in APPENDIX]
    return sorted((words(path), named(path)) for path in pages)


def test_every_benchmark_has_its_figures():
    """A benchmark that no page shows is one that nobody reads."""
    page = (ROOT / "docs" / "figures.md").read_text("utf-8")
    folder = ROOT / "lc_assets_tests" / "benchmarks"
    assert [path.name for path in sorted(folder.glob("test_*.py")) if named(path) not in page] == []
