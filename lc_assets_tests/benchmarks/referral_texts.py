"""Texts to measure referrals in, made of novels and manuals that lie beside the checkout: natural,
and put together in other ways.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import numpy as np
from numpy.typing import NDArray

from lc_assets.formats.tokenizers.named import text_of, tokenizer_of
from lc_assets.text.referrals.concepts import Concepts, Part
from lc_assets.text.referrals.referrals import DISTANCES, count_referrals
from lc_assets_tests.named_draws import rng_for
from lc_assets_tests.reference.referral_pairs import Sums

SEGMENT_CHARACTERS = 16_000
"""About 4,000 tokens."""

HUB_SHARE = 0.05


@dataclass(frozen=True)
class Text:
    """A text, how many tokens it has, and its parts where they are told apart."""

    text: str
    n_tokens: int
    parts: tuple[Part, ...] = ()


def tokens_of(text: str) -> NDArray[np.integer]:
    """GPT-2's ids."""
    return tokenizer_of("gpt2").encode(text)


@lru_cache(maxsize=4096)
def n_tokens_of(text: str) -> int:
    """How many they are."""
    return len(tokens_of(text))


def whole(text: str) -> Text:
    """A text as one."""
    return Text(text, n_tokens_of(text))


def read_novels(shared_data: Path) -> list[str]:
    """English novels."""
    return [path.read_text("utf-8") for path in sorted(shared_data.glob("books_en/*.txt"))]


def windows(ids: Sequence[NDArray[np.integer]], n_tokens: int, n_texts: int) -> list[Text]:
    """Natural stretches of so many tokens, of different novels while there are enough."""
    rng = rng_for("windows", seed=0, key=str(n_tokens))
    long_enough = [own for own in ids if len(own) > n_tokens]
    chosen = [long_enough[number % len(long_enough)] for number in rng.permutation(n_texts)]
    starts = [int(rng.integers(len(own) - n_tokens)) for own in chosen]
    return [
        Text(text_of("gpt2", own[start : start + n_tokens]), n_tokens)
        for own, start in zip(chosen, starts, strict=True)
    ]


def concatenated(
    ids: Sequence[NDArray[np.integer]], n_tokens: int, piece_tokens: int, n_texts: int
) -> list[Text]:
    """As many tokens of pieces of different novels, end to end."""
    rng = rng_for("concatenated", seed=0, key=f"{n_tokens}/{piece_tokens}")
    made = []
    for _ in range(n_texts):
        owners = [
            int(number) % len(ids)
            for number in rng.permutation(max(n_tokens // piece_tokens, len(ids)))
        ][: n_tokens // piece_tokens]
        starts = [int(rng.integers(len(ids[owner]) - piece_tokens)) for owner in owners]
        pieces = [
            text_of("gpt2", ids[owner][start : start + piece_tokens])
            for owner, start in zip(owners, starts, strict=True)
        ]
        made.append(joined(pieces, owners, n_tokens))
    return made


def joined(
    pieces: Sequence[str], documents: Sequence[int], n_tokens: int = 0, between: str = "\n\n"
) -> Text:
    """Pieces as one text with a part each."""
    starts = np.cumsum([0, *(len(piece) + len(between) for piece in pieces)]).tolist()
    text = between.join(pieces)
    parts = tuple(Part(start, document) for start, document in zip(starts, documents, strict=False))
    return Text(text, n_tokens or n_tokens_of(text), parts)


def segments_of(text: str) -> list[str]:
    """A text in segments of whole lines, `SEGMENT_CHARACTERS` long or a little more; joined they
    are the text.
    """
    segments, n_characters = [""], 0
    for line in text.splitlines(keepends=True):
        if n_characters >= SEGMENT_CHARACTERS:
            segments.append("")
            n_characters = 0
        segments[-1] += line
        n_characters += len(line)
    return segments


def chunks(documents: Sequence[Sequence[str]], how: str, in_chunk: int) -> list[Text]:
    """Documents in segments, as chunks.

    Args:
        documents: the segments of each.
        how: ``in order``, one document after the other; ``in turns``, the first segments of a
            chunk's documents, then the second; ``dealt out``, one segment of each document in a
            chunk.
        in_chunk: documents of a chunk in the first two ways.
    """
    groups = [
        range(start, min(start + in_chunk, len(documents)))
        for start in range(0, len(documents), in_chunk)
    ]
    keyed = [
        [(owner, place) for owner in group for place in range(len(documents[owner]))]
        for group in groups
    ]
    if how == "in turns":
        keyed = [sorted(chunk, key=lambda key: (key[1], key[0])) for chunk in keyed]
    if how == "dealt out":
        longest = max(map(len, documents))
        keyed = [
            [(owner, place) for owner in range(len(documents)) if place < len(documents[owner])]
            for place in range(longest)
        ]
    return [
        joined(
            [documents[owner][place] for owner, place in chunk],
            [owner for owner, _ in chunk],
            between="\n",
        )
        for chunk in keyed
    ]


def read_pages(shared_data: Path) -> dict[str, dict[str, str]]:
    """Cleaned pages by manual and address."""
    found = {}
    for path in sorted(shared_data.glob("hyperlinked/pages_*.jsonl.gz")):
        pages = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
        found[path.name] = {
            page["url"]: page["text"] for page in pages if len(page["text"].split()) >= 50
        }
    return found


def read_targets(shared_data: Path, pages: dict[str, str]) -> dict[str, list[tuple[str, str]]]:
    """What the pages of the one manual whose links are listed point at: address and anchor text,
    portals left out.
    """
    found: dict[str, dict[str, str]] = {}
    for line in gzip.decompress(
        (shared_data / "hyperlinked" / "links_sqlitedoc.jsonl.gz").read_bytes()
    ).splitlines():
        page = json.loads(line)
        urls = [(urldefrag(urljoin(page["url"], href)).url, text) for href, text in page["html5"]]
        own = {
            url: text
            for url, text in reversed(urls)
            if url in pages and url != page["url"] and text
        }
        found[page["url"]] = {
            url: own[url] for url in dict.fromkeys(url for url, _ in urls) if url in own
        }
    in_degrees = Counter(url for own in found.values() for url in own)
    hubs = {url for url, n_pages in in_degrees.items() if n_pages > HUB_SHARE * len(pages)}
    return {
        root: [(url, text) for url, text in own.items() if url not in hubs]
        for root, own in found.items()
        if root in pages
    }


def packed(
    pages: dict[str, str], root: str, targets: Iterable[tuple[str, str]], most_tokens: int
) -> Text:
    """A page behind the pages that it points at, whole ones, as LongPack does."""
    room = most_tokens - n_tokens_of(pages[root])
    pieces, seen = [], {pages[root]}
    for url, text in targets:
        piece = f"{text}\n{pages[url]}"
        n_tokens = n_tokens_of(piece)
        if pages[url] not in seen and n_tokens <= room:
            seen.add(pages[url])
            pieces.append(piece)
            room -= n_tokens
    pieces.append(f"root : \n{pages[root]}")
    return joined(pieces, range(len(pieces)), most_tokens - room)


def at_random(pages: dict[str, str], n_tokens: int, key: str) -> Text:
    """Pages in any order, until there are about as many tokens; the last one is cut."""
    rng = rng_for("pages at random", seed=0, key=key)
    texts, pieces, room = list(pages.values()), [], n_tokens
    for number in rng.permutation(len(texts)):
        text, of_page = texts[number], n_tokens_of(texts[number])
        pieces.append(text[: len(text) * room // of_page] if of_page > room else text)
        room -= of_page
        if room <= 0:
            break
    return joined(pieces, range(len(pieces)), n_tokens)


def means(
    texts: Iterable[Text],
    finder: Concepts,
    *,
    apart: bool = False,
    edges: Sequence[int] = DISTANCES,
) -> Sums:
    """Sums of the texts' figures; ``apart``: concepts of different documents are told apart."""
    sums = Sums()
    for text in texts:
        sums.add(
            count_referrals(finder.mentions(text.text, text.parts if apart else ()), edges),
            text.n_tokens,
        )
    return sums
