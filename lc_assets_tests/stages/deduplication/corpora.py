"""Made-up corpora with duplicates in them, and a plain way to find all of them."""

import json
import random
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from lc_assets.execution.local import LocalExecutor
from lc_assets.stages.deduplication.asking import Search, Signing
from lc_assets.text.duplicates.shingles import jaccard, shingle_hashes
from lc_assets.text.words import normalize

BANDS, ROWS = 16, 4
_RNG = np.random.RandomState(7)
_A, _B = (_RNG.randint(1, 2**62, BANDS * ROWS).astype(np.uint64) | np.uint64(1) for _ in range(2))


def sign(text):
    """A plain MinHash of 16 bands of 4 rows: nearly every pair that is alike by half or more
    meets.
    """
    shingles = shingle_hashes(text)
    if len(text.split()) < 13:
        return None
    mixed = shingles[:, None] * _A + _B
    mixed ^= mixed >> np.uint64(29)
    return ((mixed * _A) >> np.uint64(32)).min(axis=0).astype(np.uint32).reshape(BANDS, ROWS)


SIGNING = Signing(name="tests 16 × 4", bands=BANDS, sign=sign)


def drawing(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311  made-up texts are no secret


def words(draw: random.Random, n: int) -> list[str]:
    return [f"w{draw.randrange(5000)}" for _ in range(n)]


def edited(draw: random.Random, text: str, share: float) -> str:
    """The text with a share of its words replaced, one run of them at a time."""
    found = text.split()
    n = int(len(found) * share)
    at = draw.randrange(len(found) - n) if n else 0
    return " ".join([*found[:at], *words(draw, n), *found[at + n :]])


def planted(seed: int, n: int = 60, n_words: int = 300) -> list[dict]:
    """Documents of which some are copies, copies with other punctuation, edited, or share a url or
    digest.
    """
    draw = drawing(seed)
    documents: list[dict] = []
    for number in range(n):
        kind = draw.random()
        other = draw.choice(documents) if documents else None
        text = " ".join(words(draw, n_words))
        if other and kind < 0.1:
            text = other["text"]
        elif other and kind < 0.2:
            text = other["text"].upper().replace(" ", ",  ")
        elif other and kind < 0.6 and len(other["text"].split()) > 20:
            text = edited(draw, other["text"], draw.choice([0.02, 0.05, 0.1, 0.3]))
        elif kind < 0.65:
            text = " ".join(words(draw, 5))
        documents.append(
            {
                "id": f"d{number:04d}",
                "text": text,
                "url": draw.choice(documents)["url"] + "#part"
                if documents and draw.random() < 0.05
                else f"https://example.org/{number}",
                "digest": draw.choice(documents)["digest"]
                if documents and draw.random() < 0.05
                else f"sha1:{number}",
                "date_download": f"20{draw.randrange(14, 24)}-01-01T00:00:00Z",
                "perplexity": draw.choice([100.0, 200.0, 300.0]),
            }
        )
    return documents


def write(path: Path, documents: Iterable[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return path


def search(sources: Sequence[Path], out: Path, *, workers: int = 1, **changes) -> Search:
    return Search(
        **{
            "sources": sources,
            "out": out,
            "signing": SIGNING,
            "executor": LocalExecutor(workers=workers),
            "workers": workers,
            **changes,
        }
    )


def all_pairs_that_meet(documents: Sequence[dict], floor: float) -> dict[tuple[str, str], float]:
    """By comparing everything with everything: pairs that share a band, neither repeating an
    earlier text, alike to the floor.
    """
    first: dict[str, dict] = {}
    for document in documents:
        first.setdefault(normalize(document["text"]), document)
    signed = [
        (document, sign(document["text"]), shingle_hashes(document["text"]))
        for document in first.values()
    ]
    found = {}
    for (one, mine, ours), (other, yours, theirs) in combinations(signed, 2):
        if mine is not None and yours is not None and (mine == yours).all(axis=1).any():
            alike = jaccard(ours, theirs)
            if alike >= floor:
                found[one["id"], other["id"]] = alike
    return found


def lines(path: Path) -> list[dict]:
    return pq.read_table(path).to_pylist()


def connected(pairs: Iterable[tuple[str, str]]) -> set[frozenset[str]]:
    """Connected components by merging sets, the obvious way."""
    groups: list[set[str]] = []
    for one, other in pairs:
        touching = [group for group in groups if one in group or other in group]
        groups = [group for group in groups if group not in touching] + [
            set().union(*touching, {one, other})
        ]
    return {frozenset(group) for group in groups}
