"""Every command that writes, killed at any call that changes a file and at any moment, and stopped
by signals: the rerun leaves the folder of an undisturbed run, and what is foreign in it stays.

``LC_KILLS`` is how many kills of each command the campaign tries (``pytest -m slow -s``); the plain
run takes a few of each.
"""

import errno
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lc_assets.cli import app as main
from lc_assets.formats.archives.writing import FetchedPage, write_pages
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.lake.receipts import RECEIPT
from lc_assets_tests.builders import LENIENT_RULES, made_up_text
from lc_assets_tests.kill_points import Ended, KillableRunner
from lc_assets_tests.named_draws import rng_for

KILLS = int(os.environ.get("LC_KILLS", "150"))
N_FULL = min(KILLS, 12)
STOPPED = "stopped; run the command again to finish\n"
VARIABLES = dict.fromkeys(
    ("LC_ROOT", "LC_UPSTREAM", "LC_CRAWL", "LC_RECIPE", "LC_WITHDRAWN", "DAGSTER_HOME"), ""
)
MEASURED = ("measured", "checksum")
"""What differs between the receipts of two builds: times, memory, and the digest of the rest."""

FOREIGN = {
    "notes.txt": "mine",
    ".staging-mine.txt": "no name of this package's",
    "out/.keep": "hidden",
    "out/.staging-mine": "nor is this",
    "out/filtered_documents/notes.txt": "beside partitions",
    "lake/.keep": "hidden",
}
"""Files that no command wrote; those in a folder only where the command takes such a folder."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command over the tiny inputs.

    Attributes:
        words: its arguments; ``IN`` is the folder of inputs, ``HERE`` that of everything it writes.
        start: the state of ``HERE`` before, by its name in `STARTS`.
        ends: its exit status.
        again: its exit status when it is run once more after it has ended.
        foreign: which of `FOREIGN` it must leave alone.
        ignored: folders whose content differs from run to run, as documented.
        workers: whether it takes ``--workers``.
        counted: the folder below which calls are counted; by default all of ``HERE``.
    """

    words: str
    start: str = ""
    ends: int = 0
    again: int = 0
    foreign: tuple[str, ...] = ("notes.txt", ".staging-mine.txt")
    ignored: tuple[str, ...] = ()
    workers: bool = True
    counted: str = ""

    def given(self, base: Path, *, workers: int = 1) -> list[str]:
        """The arguments with their folders."""
        words = [word.replace("IN/", f"{base}/in/") for word in shlex.split(self.words)]
        words = [word.replace("HERE", f"{base}/here") for word in words]
        return [*words, *(("--workers", str(workers)) if self.workers else ())]


def over_files(words: str) -> Command:
    """A command that writes a lake of its own."""
    return Command(words=words, foreign=tuple(name for name in FOREIGN if name[:4] != "lake"))


def in_lake(words: str, start: str, **more: Any) -> Command:
    """A command that changes a lake."""
    foreign = ("notes.txt", ".staging-mine.txt", "lake/.keep")
    return Command(words=words, start=start, foreign=foreign, **more)


def of_megatron(words: str, **more: Any) -> Command:
    """A command whose files lie outside any lake."""
    foreign = ("notes.txt", ".staging-mine.txt", "out/.keep", "out/.staging-mine")
    return Command(words=f"megatron {words}", **{"workers": False, "foreign": foreign, **more})


BUILD = "build --source IN/docs.jsonl --lake HERE/lake --row-tokens 16 --rules IN/lenient.toml"
COMMANDS = {
    "demo": Command(
        words="demo --dir HERE/out --from IN/texts --row-tokens 16",
        foreign=("notes.txt", ".staging-mine.txt", "out/.keep"),
        ignored=("out/dagster_home",),
        counted="out/lake",
    ),
    "init": Command(
        words="init HERE/out --source IN/docs.jsonl",
        foreign=("notes.txt", ".staging-mine.txt", "out/.keep"),
        workers=False,
    ),
    "sample": Command(words="sample HERE/out --from IN/texts --snapshot 2023-06"),
    "build": in_lake(BUILD, ""),
    "rebuild": in_lake("rebuild --lake HERE/lake", "changed"),
    "rebuild --repair": in_lake("rebuild --lake HERE/lake --repair --verify", "damaged"),
    "signals": over_files("signals IN/docs.jsonl HERE/out --lang en"),
    "filter": over_files("filter IN/docs.jsonl HERE/out --rules gopher-paper"),
    "filter --sweep": over_files(
        "filter IN/docs.jsonl HERE/out --rules IN/lenient.toml --sweep "
        "--quantiles gzip_ratio=0.1:0.9"
    ),
    "minhash": over_files("minhash IN/docs.jsonl IN/more.jsonl HERE/out --fast"),
    "dedup": over_files("dedup IN/docs.jsonl IN/more.jsonl HERE/out --paragraphs 20"),
    "decontaminate": over_files("decontaminate IN/docs.jsonl HERE/out --against IN/evals.jsonl"),
    "links": over_files("links IN/crawl.warc.gz HERE/out --jsonl links"),
    "longpack": over_files(
        "longpack IN/pages.jsonl HERE/out --warc IN/crawl.warc.gz --any-language --rest"
    ),
    "tokenize": over_files("tokenize IN/docs.jsonl IN/more.jsonl HERE/out --append-eod"),
    "pack": over_files("pack IN/docs.jsonl HERE/out --length 64 --texts --megatron rows"),
    "pack --similar": over_files(
        "pack IN/docs.jsonl HERE/out --length 64 --similar --max-similarity 1"
    ),
    "pack --group-by": over_files(
        "pack IN/docs.jsonl HERE/out --length 64 --group-by repo --order-by place"
    ),
    "pack --method upsample": over_files(
        "pack IN/docs.jsonl HERE/out --length 64 --method upsample --threshold 32 --keep-short 0.5"
    ),
    "buckets": over_files("buckets IN/docs.jsonl HERE/out --edges 32,64"),
    "referrals": over_files("referrals IN/docs.jsonl HERE/out --max-df 1"),
    "withdraw": in_lake(
        "withdraw HERE/lake --domain example.org --reason asked --date 2026-03-01 "
        "--list HERE/withdrawn.csv --withdrawn HERE/withdrawn.csv",
        "built",
        again=2,
        workers=False,
    ),
    "release": in_lake("release HERE/lake v1", "built", workers=False),
    "prune": in_lake("prune HERE/lake", "two versions", workers=False),
    "prune --purge": in_lake(
        "prune HERE/lake --purge --give-up v1", "withdrawn", again=2, workers=False
    ),
    "megatron index": of_megatron("index IN/data/a --seq-length 8 --out HERE/out"),
    "megatron blend": of_megatron("blend --weights 0.7 0.3 --size 100 --out HERE/out"),
    "megatron cache": of_megatron(
        "cache --launch IN/launch.args --tokenizer-identity IN/identities.json "
        "--cache HERE/out --versioned HERE/versions",
        workers=True,
    ),
    "megatron cache --mix": of_megatron(
        "cache --mix HERE/lake/blended_mix/equal --tokenizer-identity IN/identities.json "
        "--cache HERE/out",
        start="mixed",
        workers=True,
    ),
    "megatron merge": of_megatron("merge IN/data --output HERE/out/all"),
    "megatron merge --max-size": of_megatron("merge IN/data --output HERE/out/all --max-size 300"),
    "megatron export --to nanogpt": of_megatron(
        "export IN/data/a --to nanogpt --output HERE/out/train.bin"
    ),
    "megatron export --to datasets": of_megatron(
        "export IN/data/a --to datasets --output HERE/out/parquet", again=2
    ),
    "megatron decompose": of_megatron(
        "decompose IN/data/a --output HERE/out/pieces --shortest 4 --longest 32", again=2
    ),
}


def write_inputs(folder: Path) -> None:
    """Write the inputs of all commands: some kilobytes, so that no kernel is compiled."""
    rng = rng_for("inputs of killed commands", seed=1)
    texts = [made_up_text(rng, n_words=int(rng.integers(40, 90))) for _ in range(6)]
    lines = [
        {"id": f"d{n}", "text": text, "url": f"http://example.org/{n}", "repo": n % 2, "place": n}
        for n, text in enumerate([*texts, texts[0], f"{texts[1]} and more."])
    ]
    for line in lines:
        line["repo"] = f"r{line['repo']}"
    write_lines(folder / "docs.jsonl", lines)
    write_lines(folder / "more.jsonl", [lines[4], {"id": "x", "text": "# # # ..."}])
    write_lines(folder / "evals.jsonl", [{"id": "q", "text": texts[2]}])
    (folder / "lenient.toml").write_text(LENIENT_RULES)
    (folder / "texts").mkdir()
    for number, text in enumerate(texts):
        more = made_up_text(rng, n_words=200)
        (folder / "texts" / f"{number}.txt").write_text(f"Text {number}\n{text} {more}")
    urls = [f"http://a.org/{n}/x" for n in range(6)]
    pages = [
        FetchedPage(
            url,
            "2023-02-02T00:00:00Z",
            f"<p>{text}</p>"
            + "".join(f"<a href='{urls[(n + k) % 6]}'>page {n + k}</a>" for k in (1, 2)),
        )
        for n, (url, text) in enumerate(zip(urls, texts, strict=True))
    ]
    write_pages(folder / "crawl.warc.gz", pages, filename="crawl.warc.gz")
    write_lines(
        folder / "pages.jsonl",
        [{"url": url, "text": text} for url, text in zip(urls, texts, strict=True)],
    )
    for name, lengths in (("a", [5, 3, 9, 64, 12, 7, 33]), ("b", [21, 1, 40])):
        with MegatronWriter.publishing(folder / "data" / name, np.dtype("<u2")) as writer:
            for length in lengths:
                writer.add(np.arange(length))
    (folder / "launch.args").write_text(
        f"--data-path 0.6 {folder}/data/a 0.4 {folder}/data/b --split 1 --seq-length 8 "
        "--train-samples 20 --global-batch-size 4"
    )
    identities = {version: {"class": "Mine", "of": version} for version in ("old", "new")}
    (folder / "identities.json").write_text(json.dumps(identities))


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


Tree = dict[str, str]


def tree_of(folder: Path, ignored: tuple[str, ...] = ()) -> Tree:
    """Every file and folder with the digest of its content; of receipts, without what is measured."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not name.startswith(tuple(f"{of}/" for of in ignored)):
            found[name] = "a folder" if path.is_dir() else digest_of_file(path)
    return found


def digest_of_file(path: Path) -> str:
    content = path.read_bytes()
    if path.name == RECEIPT:
        receipt = json.loads(content)
        content = json.dumps(
            {name: of for name, of in receipt.items() if name not in MEASURED}, sort_keys=True
        ).encode()
    return hashlib.sha256(content).hexdigest()


def difference(found: Tree, expected: Tree) -> Counter[str]:
    """How many names are left over, lost, or have other bytes; with their names."""
    said: Counter[str] = Counter()
    for name in sorted(found.keys() | expected.keys()):
        if name not in expected:
            said[f"left over: {name}"] += 1
        elif name not in found:
            said[f"lost: {name}"] += 1
        elif found[name] != expected[name]:
            said[f"other bytes: {name}"] += 1
    return said


@dataclass
class Killed:
    """The folders of a campaign, and the process whose forks are killed."""

    base: Path
    runner: KillableRunner
    trees: dict[str, Tree] = field(default_factory=dict)
    starts: dict[str, Path] = field(default_factory=dict)
    warmed: set[str] = field(default_factory=set)

    @property
    def here(self) -> Path:
        """The folder of everything that commands write."""
        return self.runner.folder

    def reset(self, command: Command) -> None:
        """Put ``here`` back to before the command."""
        start = self.start(command.start) if command.start else None
        shutil.rmtree(self.here, ignore_errors=True)
        if start is not None:
            shutil.copytree(start, self.here)
        for name in command.foreign:
            path = self.here / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(FOREIGN[name])

    def start(self, name: str) -> Path:
        """The folder of a state of `STARTS`, made once."""
        if name not in self.starts:
            shutil.rmtree(self.here, ignore_errors=True)
            self.here.mkdir()
            before, *steps = STARTS[name]
            if before:
                shutil.copytree(self.start(before), self.here, dirs_exist_ok=True)
            for step in steps:
                if isinstance(step, str):
                    words = Command(words=step, workers=step.startswith(("build", "rebuild")))
                    assert self.runner.run(**self.work(words)).said in {"0", "3"}, self.printed()
                else:
                    step(self.here)
            self.starts[name] = self.base / "starts" / name
            shutil.copytree(self.here, self.starts[name])
        return self.starts[name]

    def work(self, command: Command, *, workers: int = 1) -> dict[str, Any]:
        """What the runner is asked to do."""
        return {
            "words": command.given(self.base, workers=workers),
            "cwd": str(self.base),
            "printed": str(self.base / "printed"),
            "below": str(self.here / command.counted) if command.counted else str(self.here),
        }

    def printed(self) -> str:
        """What the last command printed on standard error."""
        return (self.base / "printed.err").read_text()

    def undisturbed(self, name: str) -> tuple[int, float]:
        """Run a command twice in a process that is then forked, and once in a fork; return the
        number of its calls and its seconds. Its tree is what all others are compared with.
        """
        command = COMMANDS[name]
        if name not in self.warmed:
            self.reset(command)
            self.runner.warm(**self.work(command))
            self.warmed.add(name)
        self.reset(command)
        began = time.monotonic()
        ended = self.runner.run(**self.work(command))
        took = time.monotonic() - began
        assert status_of(ended) == command.ends, self.printed()
        self.trees[name] = tree_of(self.here, command.ignored)
        assert not [path for path in self.trees[name] if ".scratch" in path]
        return ended.calls, took

    def left_after(self, name: str) -> Counter[str]:
        """Run a command again, to its end; return how its folder differs from an undisturbed run's."""
        command = COMMANDS[name]
        status = status_of(self.runner.run(**self.work(command)))
        assert status in {command.ends, command.again}, self.printed()
        return difference(tree_of(self.here, command.ignored), self.trees[name])


def status_of(ended: Ended) -> int:
    """The exit status, of the command or of its process."""
    return ended.code or int(ended.said or 0)


def change_settings(here: Path) -> None:
    recipe = here / "lake" / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("min_words = 0", "min_words = 60"))


def add_mix(here: Path) -> None:
    recipe = here / "lake" / "recipe.toml"
    recipe.write_text(f'{recipe.read_text()}\n[blended_mix.equal]\nweights = "equal"\n')


def damage(here: Path) -> None:
    """Remove one published file, cut one short and flip a bit of another."""
    one, two, three = (
        next((here / "lake" / stage).rglob(pattern))
        for stage, pattern in (
            ("token_documents", "*.bin"),
            ("document_keys", "documents.parquet"),
            ("megatron_rows", "*.bin"),
        )
    )
    one.unlink()
    two.write_bytes(two.read_bytes()[:-9])
    content = bytearray(three.read_bytes())
    content[5] ^= 1
    three.write_bytes(content)


def withdraw_by_recipe(here: Path) -> None:
    """Put a list with one entry into the recipe."""
    listed = here / "withdrawn.csv"
    listed.write_text("kind,value,reason,date\nurl,http://example.org/1,asked,2026-03-01\n")
    recipe = here / "lake" / "recipe.toml"
    recipe.write_text(f'{recipe.read_text()}\n[withdrawn_documents]\nlists = ["{listed}"]\n')


STARTS = {
    "built": ("", BUILD),
    "changed": ("built", change_settings),
    "two versions": ("changed", "rebuild --lake HERE/lake"),
    "damaged": ("built", damage),
    "mixed": ("built", add_mix, "rebuild --lake HERE/lake"),
    "withdrawn": (
        "built",
        "release HERE/lake v1",
        withdraw_by_recipe,
        "rebuild --lake HERE/lake",
    ),
}
"""States of ``HERE`` in which commands begin: another state, then commands and changes."""


@contextmanager
def running_in(base: Path) -> Iterator[Killed]:
    """The inputs of all commands, and a process that runs them."""
    (base / "in").mkdir()
    write_inputs(base / "in")
    with KillableRunner(base / "here", {}, VARIABLES) as runner:
        yield Killed(base, runner)


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> Iterator[Killed]:
    with running_in(tmp_path_factory.mktemp("killed-commands")) as killed:
        yield killed


Way = dict[str, Any]
"""How a run is killed: at which call (``kill_at``), or ``after`` how many seconds, and by which
signal (``number``); with ``workers``, the process or its whole ``group``.
"""


def survive(killed: Killed, name: str, *ways: Way) -> tuple[int, Counter[str]]:
    """Kill a command and its reruns, one way each, then run it to its end; return how many were
    killed before they ended, and what differs.
    """
    command = COMMANDS[name]
    killed.reset(command)
    n_killed = sum(is_killed(killed, command, **way) for way in ways)
    return n_killed, killed.left_after(name)


def is_killed(
    killed: Killed,
    command: Command,
    *,
    number: int = signal.SIGKILL,
    workers: int = 1,
    group: bool = False,
    **when: Any,
) -> bool:
    """Run a command and send it a signal; return whether it ended by it. One that it can catch
    is one line, and the usual exit status.
    """
    work = killed.work(command, workers=workers)
    if "kill_at" in when:
        ended = killed.runner.run(**work, number=number, **when)
    else:
        pid = killed.runner.begin(**work)
        time.sleep(when["after"])
        with suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(pid, number)
        ended = killed.runner.wait()
        with suppress(ProcessLookupError):  # the workers of a parent that was killed
            os.killpg(pid, signal.SIGKILL)
    if ended.code in {
        -signal.SIGKILL,
        -number,
    }:  # or before and after the program, which catches it
        return True
    status = status_of(ended)
    assert status in {128 + number, command.ends, command.again}, killed.printed()
    if status == 128 + number:
        assert killed.printed().endswith(STOPPED), killed.printed()
        assert "Traceback" not in killed.printed()
    return status == 128 + number


def test_every_command_that_writes_is_here():
    """All others only read."""
    known = {key.partition(":")[0] for key in main.COMMANDS}
    known |= {f"megatron {key.partition(':')[0]}" for key in main.MEGATRON_COMMANDS}
    only_read = {"show", "trace", "batch", "plan", "explain", "verify", "diff", "audit"}
    assert {name.partition(" --")[0] for name in COMMANDS} == known - only_read


QUICK = ("sample", "filter", "tokenize")
SAMPLED = [
    pytest.param(
        name,
        marks=[]
        if name in QUICK or (name.startswith("megatron ") and not command.start)
        else pytest.mark.slow,
    )
    for name, command in COMMANDS.items()
]


@pytest.mark.parametrize("name", SAMPLED)
def test_a_few_kills(killed, name):
    """A sample: a kill at any call, a kill of it and of its rerun, a signal."""
    n_calls, _ = killed.undisturbed(name)
    calls = rng_for("a few kills", seed=15, key=name).integers(1, n_calls + 1, size=4).tolist()
    ways = [[{"kill_at": calls[0]}], [{"kill_at": calls[1]}, {"kill_at": calls[2]}]]
    ways.append([{"kill_at": calls[3], "number": SIGNALS[1 + calls[0] % 2]}])
    for way in ways:
        n_killed, differs = survive(killed, name, *way)
        assert n_killed
        assert not differs


FULL = re.compile(r"the disk is full while writing (\S+?): nothing was published; free some space ")


@pytest.mark.parametrize("name", SAMPLED)
def test_a_full_disk_is_named(killed, name):
    """Full from some call on: 1, lines that name the folder, and room lets the command go on."""
    n_calls, _ = killed.undisturbed(name)
    command, rng = COMMANDS[name], rng_for("full disks", seed=15, key=name)
    for kill_at in (1, *rng.integers(1, n_calls + 1, size=N_FULL).tolist()):
        killed.reset(command)
        ended = killed.runner.run(**killed.work(command), kill_at=kill_at, number=-errno.ENOSPC)
        assert status_of(ended) in {1, command.ends}, killed.printed()
        if status_of(ended):
            for line in killed.printed().splitlines():
                named = FULL.search(line)
                assert named, line
                assert Path(named[1]).is_relative_to(killed.here)
        assert not killed.left_after(name)


@pytest.mark.parametrize("name", SAMPLED)
def test_output_that_cannot_be_written_is_one_line(killed, name):
    """Full, or a pipe that nobody reads: what a rerun leaves is the same."""
    killed.undisturbed(name)
    command = COMMANDS[name]
    for output, why in (
        ("/dev/full", "No space left on device"),
        ("| true", "Broken pipe"),
    ):
        killed.reset(command)
        ended = killed.runner.run(**killed.work(command), output=output)
        assert status_of(ended) == 1
        assert killed.printed() == f"standard output: {why}\n"
        assert not killed.left_after(name)


SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
WAYS = ("at a call", "in reruns", "by a signal", "at a moment")


def ways_of(n_calls: int, seconds: float, rng: np.random.Generator) -> Iterator[tuple[str, Way]]:
    """Half of ``LC_KILLS`` in chains of ten, in which each rerun is killed where it goes on; a
    quarter at calls in turn, a tenth by signals that can be caught, the rest at moments.
    """
    for kill_at in np.linspace(1, n_calls, KILLS // 4):
        yield "at a call", [{"kill_at": int(kill_at)}]
    for _ in range(KILLS // 20):
        calls = rng.integers(1, max(2, n_calls // 6), size=10).tolist()
        yield (
            "in reruns",
            [
                {"kill_at": kill_at, "number": SIGNALS[number % 3]}
                for number, kill_at in enumerate(calls)
            ],
        )
    for number, kill_at in enumerate(rng.integers(1, n_calls + 1, size=KILLS // 10).tolist()):
        yield "by a signal", [{"kill_at": kill_at, "number": SIGNALS[1 + number % 2]}]
    for number in range(3 * KILLS // 20):
        yield (
            "at a moment",
            [
                {
                    "after": float(rng.random() * seconds),
                    "number": SIGNALS[number % 3],
                    "group": bool(number % 2),
                    "workers": 1 + (number % 5 == 0),
                }
            ],
        )


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_campaign_of_kills(killed, name):
    """Prints what was killed, and what the reruns left over or lost, as a row of a table."""
    n_calls, seconds = killed.undisturbed(name)
    rng = rng_for("kills of commands", seed=15, key=name)
    tried, differs = Counter[str](), Counter[str]()
    for what, ways in ways_of(n_calls, seconds, rng):
        n_killed, differing = survive(killed, name, *ways)
        tried[what] += n_killed
        differs += differing
    while sum(tried.values()) < KILLS:  # moments may fall behind the end
        n_killed, differing = survive(killed, name, {"kill_at": int(rng.integers(1, n_calls + 1))})
        tried["at a call"] += n_killed
        differs += differing
    found = {
        kind: sum(n for words, n in differs.items() if words.startswith(kind))
        for kind in ("left over", "lost", "other bytes")
    }
    row = [f"`lc {name}`", n_calls, *(tried[what] for what in WAYS), sum(tried.values())]
    print(f"\n| {' | '.join(map(str, [*row, *found.values()]))} |")
    assert not differs, differs.most_common(20)
