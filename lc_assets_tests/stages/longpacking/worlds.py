"""Small made-up worlds of pages that point at each other: documents, links, decisions; and the table
of claims over them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.builds.settings.longpack import LongPackSettings
from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.builds.tables import FILTERED
from lc_assets.counts import Counts
from lc_assets.execution.local import LocalExecutor
from lc_assets.stages.deduplication.heldout_pairs import held_out
from lc_assets.stages.links.link_tables import ALIASES, PAGE_LINKS
from lc_assets.stages.longpack.claiming import Claims, claim_links
from lc_assets.stages.tokens.tokenized_text import text_digest
from lc_assets.text.links.page_keys import page_key
from lc_assets_tests.builders import WORDS
from lc_assets_tests.reference.link_claims import SNAPSHOT, World

OLDER = ("2022-40", "2022-49")
SPLIT = GriddingSettings(heldout_fraction=0.3)


def made_up_world(
    seed: int,
    *,
    n_pages: int = 40,
    hosts: Sequence[str] = ("one.org", "two.org"),
    with_aliases: bool = False,
    with_older: bool = False,
) -> World:
    """Pages of a few hosts; some have the same words, some the same address, some are removed; some
    links lead nowhere, or to an address that leads on to a page; some pages are of older snapshots,
    one of which has the address of a page of this one, and two that of each other.
    """
    rng = np.random.default_rng(seed)
    texts = [
        " ".join(WORDS[n] for n in rng.integers(len(WORDS), size=int(rng.integers(5, 60))))
        for _ in range(n_pages * 4 // 5)
    ]
    documents = []
    for number in range(n_pages):
        host = hosts[number % len(hosts)]
        path = ("", "index.php", f"p/{number}", f"p/{number}?a=b")[
            min(number, 3) if number < 2 else 2 + number % 2
        ]
        url = documents[-2]["url"] if number in (17, 29, 36) else f"http://{host}/{path}"
        snapshot = OLDER[number % 2] if with_older and number > n_pages * 2 // 3 else SNAPSHOT
        url = documents[-1]["url"] if with_older and number in (34, 37) else url
        text = (
            texts[number] if number < len(texts) else texts[int(rng.integers(len(texts)))].upper()
        )
        documents.append(
            document(
                f"{snapshot}/0000/en_head.json.gz/{number}",
                url,
                text,
                digest=f"sha1:{seed}-{number}",
                rng=rng,
            )
        )
    removed = frozenset(documents[int(n)]["id"] for n in rng.integers(2, n_pages, size=3))
    keys = [page_key(one["url"]) for one in documents]
    steps = [("nowhere.org/x", "nowhere.org/y"), ("nowhere.org/y", "nowhere.org/z")]
    steps += [("nowhere.org/z", keys[5]), ("nowhere.org/loop", "nowhere.org/loop2")]
    steps += [("nowhere.org/loop2", "nowhere.org/loop"), (keys[7], keys[8])]
    return World(
        documents=documents,
        links=[
            line for one in documents for line in links_from(one, documents, rng) if is_own(one)
        ],
        removed=removed,
        aliases=steps if with_aliases else (),
    )


def is_own(line: dict[str, Any]) -> bool:
    """Whether a document is of the snapshot that is packed."""
    return line["id"].startswith(f"{SNAPSHOT}/")


def document(
    name: str,
    url: str,
    text: str,
    *,
    digest: str = "",
    rng: np.random.Generator | None = None,
    language: str = "",
) -> dict[str, Any]:
    """A line of `FILTERED`."""
    drawn = rng.random(2) if rng is not None else (1.0, 1.0)
    return dict.fromkeys(FILTERED.names, "") | {
        "id": name,
        "url": url,
        "digest": digest,
        "language": language or ("de" if drawn[0] < 0.15 else "en"),
        "bucket": "head",
        "title": "" if drawn[1] < 0.3 else f"Title of {name.rpartition('/')[2]}",
        "raw_content": text,
    }


def links_from(
    source: dict[str, Any], documents: Sequence[dict[str, Any]], rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Lines of `PAGE_LINKS` of one document: pages that everybody points at, others, some that are
    not there.
    """
    key = page_key(source["url"])
    numbers = np.unique((len(documents) ** rng.random(9)).astype(int) - 1).tolist()
    rng.shuffle(numbers)
    urls = [*(documents[n]["url"] for n in numbers), "http://nowhere.org/x", source["url"]]
    found: dict[str, dict[str, Any]] = {}
    for position, url in enumerate(urls):
        target = page_key(url)
        flags = rng.random(4)
        found.setdefault(
            target,
            link(
                source["id"],
                key,
                2 * position,
                target,
                url,
                keys="" if flags[0] < 0.1 else f"words {position}",
            ),
        )
        found[target] |= {
            "generic": bool(flags[1] < 0.2),
            "navigation": bool(flags[2] < 0.1),
            "nofollow": bool(flags[3] < 0.2),
        }
        found[target] |= {"in_text": bool(flags[0] > 0.4)}
    return list(found.values())


def link(
    name: str, key: str | None, position: int, target: str | None, url: str, *, keys: str
) -> dict[str, Any]:
    """A line of `PAGE_LINKS`."""
    line = {
        "page_key": key,
        "id": name,
        "position": position,
        "target_key": target,
        "target_url": url,
        "keys": keys,
        "n_links": 1,
    }
    return line | {"nofollow": False, "navigation": False, "generic": False, "in_text": True}


def write(
    world: World, folder: Path, *, n_files: int = 2, seed: int | None = None
) -> tuple[list[Path], list[Path], list[Path]]:
    """Write a world's tables, spread over files, shuffled on request: documents, links,
    decisions.
    """
    documents, links = list(world.documents), list(world.links)
    if seed is not None:
        rng = np.random.default_rng(seed)
        documents, links = (
            [lines[n] for n in rng.permutation(len(lines))] for lines in (documents, links)
        )
    folder.mkdir(parents=True, exist_ok=True)
    made: tuple[list[Path], list[Path]] = ([], [])
    for kind, lines, schema, paths in (
        ("documents", [line for line in documents if is_own(line)], FILTERED, made[0]),
        ("older", [line for line in documents if not is_own(line)], FILTERED, made[0]),
        ("links", links, PAGE_LINKS, made[1]),
    ):
        for number in range(n_files if lines or kind != "older" else 0):
            paths.append(folder / f"000{number}-en_head.{kind}.parquet")
            pq.write_table(pa.Table.from_pylist(lines[number::n_files], schema=schema), paths[-1])
    sides = sides_of(world)
    decided = {
        "id": list(sides),
        "reason": ["near duplicate" if name in world.removed else "" for name in sides],
        "side": list(sides.values()),
    }
    pq.write_table(pa.table(decided), folder / "decisions.parquet")
    aliases = pa.Table.from_pylist(
        [dict(zip(ALIASES.names, step, strict=True)) for step in world.aliases], schema=ALIASES
    )
    pq.write_table(aliases, folder / "aliases.parquet")
    return *made, [folder / "decisions.parquet"]


def sides_of(world: World) -> dict[str, str]:
    """The side of the split that each document is on, by id."""
    digests = [text_digest(line["raw_content"].encode()) for line in world.documents]
    ids, held = (line["id"] for line in world.documents), held_out(digests, SPLIT).tolist()
    return {name: "heldout" if out else "train" for name, out in zip(ids, held, strict=True)}


def claimed(
    folder: Path,
    tables: tuple[list[Path], list[Path], list[Path]],
    settings: LongPackSettings,
    workers: int = 1,
) -> tuple[Path, Counts]:
    """The table of claims over written tables, and what was counted."""
    executor = LocalExecutor(workers=workers, preload=("lc_assets.stages.longpack.pages",))

    def run(function: Any, tasks: Any, *, what: str) -> Counts:
        return Counts.total(counts for _, counts in executor.run(function, tasks, what=what))

    documents, links, decisions = tables
    claims = Claims(
        documents=[path for path in documents if ".older." not in path.name],
        older=[path for path in documents if ".older." in path.name],
        links=links,
        decisions=decisions,
        aliases=[path.with_name("aliases.parquet") for path in decisions],
        folder=folder,
        out=folder / "claims.parquet",
        settings=settings,
        tokenizer="gpt2",
        text_encoding="plain",
        run=run,
    )
    return claims.out, claim_links(claims)
