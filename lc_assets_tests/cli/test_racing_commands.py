"""Two commands into one folder: one is stopped at a call that changes a file while the other runs,
and goes on. One result is whole, the other command says that it was refused or has waited; nothing
is a mixture of both.

``LC_RACES`` is how many stops of each command the campaign tries (``pytest -m slow -s``).
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lc_assets.lake.lake import Lake
from lc_assets.lake.partition import CURRENT
from lc_assets.lake.releases import release_names
from lc_assets.stages.releases.releasing import release_damage
from lc_assets_tests.cli.test_killed_commands import (
    BUILD,
    COMMANDS,
    STARTS,
    Command,
    Killed,
    running_in,
    status_of,
    tree_of,
)
from lc_assets_tests.named_draws import rng_for

RACES = int(os.environ.get("LC_RACES", "12"))
REFUSED = re.compile(
    "another command has|another run has been building|in the meantime|holds other settings"
    "|holds another sample|there is something already|changed while it was read|is out of date|was made of other input"
)
"""What a command says that does not work beside another one."""

OTHERS = {
    "signals": "signals IN/docs.jsonl HERE/out --lang de",
    "filter": "filter IN/docs.jsonl HERE/out --rules IN/lenient.toml",
    "minhash": "minhash IN/docs.jsonl HERE/out --fast",
    "dedup": "dedup IN/docs.jsonl IN/more.jsonl HERE/out --paragraphs 9",
    "decontaminate": "decontaminate IN/docs.jsonl HERE/out --against IN/docs.jsonl",
    "longpack": "longpack IN/pages.jsonl HERE/out --warc IN/crawl.warc.gz --any-language",
    "tokenize": "tokenize IN/docs.jsonl HERE/out",
    "pack": "pack IN/docs.jsonl HERE/out --length 32",
    "buckets": "buckets IN/docs.jsonl HERE/out --edges 16,64",
    "referrals": "referrals IN/docs.jsonl HERE/out --max-df 0.5",
    "sample": "sample HERE/out --from IN/texts --snapshot 2023-06 --seed 5",
    "build": BUILD.replace("--row-tokens 16", "--row-tokens 32"),
    "megatron index": "megatron index IN/data/a --seq-length 16 --out HERE/out",
    "megatron blend": "megatron blend --weights 0.5 0.5 --size 90 --out HERE/out",
    "megatron merge": "megatron merge IN/data/a --output HERE/out/all",
    "megatron export --to nanogpt": "megatron export IN/data/b --to nanogpt --output HERE/out/train.bin",
    "megatron export --to datasets": "megatron export IN/data/b --to datasets --output HERE/out/parquet",
    "megatron decompose": "megatron decompose IN/data/b --output HERE/out/pieces --shortest 4 --longest 32",
}
"""Each command once more, with other settings."""


def write_recipes(here: Path) -> None:
    """Two recipes that give other versions than are published."""
    text = (here / "lake" / "recipe.toml").read_text()
    for name, words in (("a", 60), ("b", 70)):
        recipe = text.replace("min_words = 0", f"min_words = {words}")
        (here / f"{name}.toml").write_text(recipe)


REBUILD = "rebuild --lake HERE/lake"
PAIRS = {
    "rebuild, rebuild": (
        "two recipes",
        f"{REBUILD} --recipe HERE/a.toml",
        f"{REBUILD} --recipe HERE/b.toml",
    ),
    "rebuild, repair": ("damaged", REBUILD, f"{REBUILD} --repair --verify"),
    "repair, repair": ("damaged", f"{REBUILD} --repair --verify", f"{REBUILD} --repair --verify"),
    "prune, release": ("two versions", "prune HERE/lake", "release HERE/lake v1"),
    "prune, rebuild": ("versions to go back to", "prune HERE/lake", REBUILD),
    "rebuild, release": ("changed", REBUILD, "release HERE/lake v1"),
    "rebuild, withdraw": (
        "list",
        REBUILD,
        COMMANDS["withdraw"].words.replace("--domain example.org", "--url http://example.org/1"),
    ),
    "withdraw, withdraw": (
        "built",
        COMMANDS["withdraw"].words,
        COMMANDS["withdraw"].words.replace(".org", ".com"),
    ),
}
"""Two commands of one lake, and the state that they begin in."""


def back_to_old_settings(here: Path) -> None:
    recipe = here / "lake" / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("min_words = 60", "min_words = 0"))


def name_a_list(here: Path) -> None:
    (here / "withdrawn.csv").write_text("kind,value,reason,date\n")
    recipe = here / "lake" / "recipe.toml"
    recipe.write_text(
        f'{recipe.read_text()}\n[withdrawn_documents]\nlists = ["{here}/withdrawn.csv"]\n'
    )


STARTS |= {
    "two recipes": ("built", write_recipes),
    "versions to go back to": ("two versions", back_to_old_settings),
    "list": ("built", name_a_list),
}


@dataclass(frozen=True)
class Racing:
    """Runs two commands into one folder."""

    killed: Killed

    def alone(self, command: Command) -> tuple[int, dict[str, Any]]:
        """Run one undisturbed; return the number of its calls, and what it published."""
        if command.words not in self.killed.warmed:
            self.killed.reset(command)
            self.killed.runner.warm(**self.killed.work(command))
            self.killed.warmed.add(command.words)
        self.killed.reset(command)
        ended = self.killed.runner.run(**self.killed.work(command))
        assert status_of(ended) in {0, 3} or REFUSED.search(self.killed.printed())
        return ended.calls, self.result()

    def race(self, first: Command, second: Command, stop_at: int, *, waits: bool) -> str:
        """Stop the first at a call until the second has ended, or ``waits`` for it; return how both
        ended.
        """
        self.killed.reset(first)
        patience, seconds = (60.0, 0.3) if waits else (0.2, 300.0)
        works = [self.killed.work(command) | {"patience": patience} for command in (first, second)]
        works[1]["printed"] += "-second"
        ended = self.killed.runner.race(*works, stop_at=stop_at, seconds=seconds)
        said = []
        for one, work in zip(ended, works, strict=False):
            words = Path(f"{work['printed']}.err").read_text()
            assert one.code == 0, words
            assert "Traceback" not in words
            assert one.said in {"0", "3"} or REFUSED.search(words), (one, words)
            said.append("done" if one.said in {"0", "3"} else "refused")
        assert "done" in said
        assert not list(self.killed.here.rglob(".staging-????????-*"))
        return ", ".join(said)

    def result(self) -> dict[str, Any]:
        """What is published: of lakes the pointers and the recipe, else all files."""
        tree = tree_of(self.killed.here)
        if any(name.endswith(CURRENT) for name in tree):
            names = (CURRENT, "recipe.toml", ".csv")
            tree = {name: of for name, of in tree.items() if name.endswith(names)}
        return {name: of for name, of in tree.items() if not name.endswith(".lock")}

    def require_intact(self) -> None:
        """Every published version has the bytes in its receipt, and each release its pins."""
        for root in self.killed.here.glob("*/"):
            lake = Lake(root)
            for partition in lake.partitions():
                published = partition.current()
                assert published is None or not published.damage()
            for name in release_names(lake):
                assert not release_damage(lake, name)


@pytest.fixture(scope="module")
def racing(tmp_path_factory) -> Iterator[Racing]:
    with running_in(tmp_path_factory.mktemp("racing-commands")) as killed:
        yield Racing(killed)


def stops(name: str, n_calls: int, n_races: int) -> Iterator[tuple[int, bool]]:
    """At which calls the first command is stopped, and whether the second waits for it."""
    draws = rng_for("races", seed=15, key=name).integers(1, n_calls + 1, size=n_races).tolist()
    yield from ((stop_at, bool(number % 2)) for number, stop_at in enumerate(draws))


def races_of(racing: Racing, name: str, n_races: int) -> Counter[str]:
    """Race a command with itself under other settings; one of both is the result."""
    first = COMMANDS[name]
    second = Command(words=OTHERS[name], start=first.start, workers=first.workers)
    first = Command(words=first.words, start=first.start, workers=first.workers)
    (n_calls, ours), (_, theirs) = racing.alone(first), racing.alone(second)
    assert ours != theirs
    said = Counter[str]()
    for stop_at, waits in stops(name, n_calls, n_races):
        said[racing.race(first, second, stop_at, waits=waits)] += 1
        found = racing.result()
        assert found in (ours, theirs), (stop_at, waits, set(found.items()) - set(ours.items()))
        racing.require_intact()
    return said


def races_in_a_lake(racing: Racing, name: str, n_races: int) -> Counter[str]:
    """Race two commands of a lake, each of which is stopped in turn."""
    start, *both = PAIRS[name]
    commands = [
        Command(words=words, start=start, workers=words.startswith("rebuild")) for words in both
    ]
    calls = [racing.alone(command)[0] for command in commands]
    said = Counter[str]()
    for number, (stop_at, waits) in enumerate(stops(name, max(calls), n_races)):
        turn = number // 2 % 2 if all(calls) else int(not calls[0])
        first, second = commands[turn], commands[1 - turn]
        said[racing.race(first, second, 1 + stop_at % calls[turn], waits=waits)] += 1
        if start == "damaged":  # what one has not repaired, because the other was at work
            ended = racing.killed.runner.run(**racing.killed.work(commands[1]))
            assert status_of(ended) == 0, racing.killed.printed()
        racing.require_intact()
    return said


@pytest.mark.parametrize("name", ["filter", "tokenize", "megatron merge"])
def test_two_commands_into_one_folder(racing, name):
    """A few stops; the campaign has all commands."""
    assert races_of(racing, name, 4).total() == 4


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", OTHERS)
def test_a_campaign_of_two_commands_into_one_folder(racing, name):
    print(f"\n| `lc {name}` | {dict(races_of(racing, name, RACES))} |")


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", PAIRS)
def test_a_campaign_of_commands_of_one_lake(racing, name):
    print(f"\n| {name} | {dict(races_in_a_lake(racing, name, RACES))} |")
