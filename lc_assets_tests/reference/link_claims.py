"""Who holds what, by dictionaries and loops: the slow reference of
`lc_assets.stages.longpack.claiming`.

Nothing here is shared with it but the hash of roots and of the held-out split, the key of a text,
and the count of tokens.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lc_assets.builds.settings.longpack import LongPackSettings
from lc_assets.packing.longpack import root_ranks
from lc_assets.text.duplicates.keys import text_key
from lc_assets.text.links.page_keys import page_key

SNAPSHOT = "2023-06"
"""The snapshot that is packed; documents of others are older."""


@dataclass(frozen=True)
class World:
    """Documents (as lines of `FILTERED`), links (as lines of `PAGE_LINKS`), ids of removed
    documents.
    """

    documents: Sequence[dict[str, Any]]
    links: Sequence[dict[str, Any]]
    removed: frozenset[str] = frozenset()
    aliases: Sequence[tuple[str, str]] = ()


@dataclass
class Page:
    id: str
    key: str | None
    language: str
    title: str
    content: Any
    n_tokens: int
    rank: int
    is_root: bool
    side: Any


def slow_claims(
    world: World,
    settings: LongPackSettings,
    *,
    sides: Mapping[str, str],
    count: Callable[[str], int],
) -> tuple[list[dict[str, Any]], Counter[str]]:
    """The lines of the table of claims, and how many links are not kept, by why."""
    pages = {
        line["id"]: page_of(line, settings, sides[line["id"]], count)
        for line in world.documents
        if line["id"] not in world.removed
    }
    removed_keys = {
        page_key(line["url"]) for line in world.documents if line["id"] in world.removed
    } - {None}
    by_key: dict[str, Page] = {}
    in_order = sorted(pages.values(), key=lambda page: page.id)
    in_order.sort(key=lambda page: page.id.partition("/")[0], reverse=True)
    for page in in_order:
        by_key.setdefault(page.key, page) if page.key else None
    leads_to, known = dict(world.aliases), dict(by_key)
    for start in leads_to:
        key = start
        for _ in range(5):
            if key in known or key in removed_keys:
                break
            key = leads_to.get(key, "")
        if key in known:
            by_key.setdefault(start, known[key])
    hubs = hubs_of(world, pages, by_key, settings)
    why = {
        id(link): why_not(
            link,
            pages.get(link["id"]),
            by_key.get(link["target_key"]),
            removed_keys,
            hubs,
            settings,
        )
        for link in world.links
    }
    refused: Counter[str] = Counter()
    links_of: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for link in sorted(world.links, key=lambda link: link["position"]):
        source = pages.get(link["id"])
        if why[id(link)] == "":
            links_of[link["id"]].append(link)
        if source is not None and not source.is_root:
            refused["its page is no root"] += 1
        elif why[id(link)]:
            refused[why[id(link)]] += 1
    return take(pages, by_key, links_of, settings, refused), +refused


def page_of(
    line: dict[str, Any],
    settings: LongPackSettings,
    side: str,
    count: Callable[[str], int],
) -> Page:
    key = page_key(line["url"])
    rank = int(root_ranks([key or line["id"]], settings.seed)[0])
    return Page(
        id=line["id"],
        key=key,
        language=line["language"],
        title=line["title"],
        content=text_key(line["raw_content"]) or line["id"],
        n_tokens=count(line["raw_content"]),
        rank=rank,
        is_root=line["id"].startswith(f"{SNAPSHOT}/")
        and (settings.roots == 1 or rank < int(settings.roots * 2**64)),
        side=side,
    )


def host_of(key: str) -> str:
    return key.partition("?")[0].partition("/")[0]


def hubs_of(
    world: World, pages: dict[str, Page], by_key: dict[str, Page], settings: LongPackSettings
) -> set[str]:
    """Ids of pages that more than a share of their host's pages point at, and more than ten."""
    pointing: dict[str, set[str]] = defaultdict(set)
    known: dict[str, set[str]] = defaultdict(set)
    for link in world.links:
        source, target = pages.get(link["id"]), by_key.get(link["target_key"])
        if source is None or source.key is None:
            continue
        known[host_of(source.key)].add(source.id)
        if target is not None and host_of(source.key) == host_of(target.key):
            pointing[target.id].add(source.id)
    return {
        name
        for name, found in pointing.items()
        if len(found) > max(10, settings.hub_share * len(known[host_of(pages[name].key)]))
    }


def why_not(
    link: dict[str, Any],
    source: Page | None,
    target: Page | None,
    removed_keys: set[str],
    hubs: set[str],
    settings: LongPackSettings,
) -> str:
    portals = settings.portals == "drop"
    home = target is not None and (
        target.key == host_of(target.key) or target.key.startswith(f"{host_of(target.key)}/index.")
    )
    says_nothing = link["generic"] or not link["keys"]
    for why, holds in (
        ("its page was removed", source is None),
        ("nofollow", settings.nofollow == "drop" and link["nofollow"]),
        ("in menus only", portals and link["navigation"]),
        ("anchor text not in the text", settings.anchors == "in_text" and not link["in_text"]),
        (
            "to the page itself",
            source is not None and (link["target_key"] == source.key or target is source),
        ),
        ("the page was removed", target is None and link["target_key"] in removed_keys),
        ("no such page", target is None),
        ("a home page", portals and home),
        (
            "no words for it",
            not settings.paper_exact and says_nothing and target is not None and not target.title,
        ),
        ("what its whole host points at", portals and target is not None and target.id in hubs),
    ):
        if holds:
            return why
    return ""


def take(
    pages: dict[str, Page],
    by_key: dict[str, Page],
    links_of: dict[str, list[dict[str, Any]]],
    settings: LongPackSettings,
    refused: Counter[str],
) -> list[dict[str, Any]]:
    """Round after round, root after root, link after link."""
    roots = sorted(
        (page for page in pages.values() if page.is_root), key=lambda page: (page.rank, page.id)
    )
    consume = settings.mode == "consume"
    copies: Counter[Any] = Counter()
    gone: set[str] = set()
    room = {root.id: settings.max_tokens - root.n_tokens - 8 for root in roots}
    held: dict[str, list[dict[str, Any]]] = {root.id: [] for root in roots}
    layer = {root.id: [(root, [])] for root in roots}
    for depth in range(1, settings.depth + 1):
        below: dict[str, list[Any]] = {root.id: [] for root in roots}
        at_first = dict(room)
        for root in roots:
            offered, contents = [], {root.content} | {one["page"].content for one in held[root.id]}
            met = set()
            for parent, path in layer[root.id]:
                for number, link in enumerate(links_of[parent.id]):
                    target = by_key[link["target_key"]]
                    says_nothing = (
                        link["generic"] or not link["keys"]
                    ) and not settings.paper_exact
                    keys = target.title if says_nothing else link["keys"]
                    cost = target.n_tokens + len(keys.encode()) + 8
                    why = (
                        "on the other side of the held-out split"
                        if target.side != root.side
                        else "in another language"
                        if settings.same_language and target.language != root.language
                        else "its text is in the document"
                        if target.content in contents
                        else "no room"
                        if cost > at_first[root.id]
                        else "its text is in the document"
                        if target.content in met
                        else ""
                    )
                    if why:
                        refused[why] += 1
                        continue
                    met.add(target.content)
                    offered.append(
                        {
                            "page": target,
                            "parent": parent,
                            "keys": keys,
                            "cost": cost,
                            "link": link,
                            "path": [*path, number],
                        }
                    )
            if depth == 1 and consume and root.id in gone:
                refused["its root is held by another"] += len(offered)
                continue
            for one in offered:
                page = one["page"]
                if copies[page.content] >= settings.repetitions or (consume and page.id in gone):
                    refused["held already"] += 1
                elif one["cost"] > room[root.id]:
                    refused["no room"] += 1
                else:
                    copies[page.content] += 1
                    room[root.id] -= one["cost"]
                    gone.add(page.id)
                    gone.add(root.id)
                    held[root.id].append(one | {"depth": depth})
                    below[root.id].append((page, one["path"]))
        layer = below
    lines = []
    for root in roots:
        in_order = sorted(held[root.id], key=lambda one: [*one["path"], float("inf")])
        for place, one in enumerate(in_order):
            lines.append(
                {
                    "root_id": root.id,
                    "place": place,
                    "depth": one["depth"],
                    "parent_id": one["parent"].id,
                    "child_id": one["page"].id,
                    "keys": one["keys"],
                    "target_url": one["link"]["target_url"],
                    "n_tokens": one["page"].n_tokens,
                    "root_tokens": root.n_tokens,
                }
            )
    return lines
