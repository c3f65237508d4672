"""Made-up corpora with duplicates in them, and a plain way to find all of them."""

import gzip
import json
import random
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

import pyarrow.parquet as pq

from lc_assets.builds.settings.documents import (
    CleanDocumentsSettings,
    NearDuplicateSettings,
    RemovalSettings,
    SignatureSettings,
)
from lc_assets.execution.local import LocalExecutor
from lc_assets.stages.deduplication.index import BANDS, ROWS
from lc_assets.stages.deduplication.removals import removals_in
from lc_assets.stages.file_lakes import build_for, context_over_files, counts_of
from lc_assets.text.duplicates.keys import jaccard, shingle_hashes
from lc_assets.text.duplicates.minhash import FAST, signature


def sign(text):
    """``(18, 7)`` uint32: the bands of a text's signature; None when it has fewer than 13 words."""
    numbers = signature(text, FAST)
    return None if numbers is None else numbers[: BANDS * ROWS].reshape(BANDS, ROWS)


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


def sprinkled(draw: random.Random, text: str, share: float) -> str:
    """The text with each word replaced with this probability."""
    return " ".join(words(draw, 1)[0] if draw.random() < share else word for word in text.split())


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


class Deduplicated:
    """What the stages published over some files.

    Attributes:
        counts: documents read, left, and why the others are not.
        built: by stage, then by partition.
    """

    def __init__(self, built):
        self.built, self.counts = built, counts_of(built)

    def folder(self, stage):
        (found,) = self.built[stage].values()
        return found.published.folder

    @property
    def pairs(self):
        """Similarity of each pair, by the records' own ids."""
        found = lines(self.folder("near_duplicate_pairs") / "near_pairs.parquet")
        return {(own(line["a"]), own(line["b"])): line["similarity"] for line in found}

    @property
    def removed(self):
        """Reason, the document that it is removed for, and why that one is kept, by own id."""
        return {
            own(line["id"]): (line["reason"], own(line["for_id"]), line["why"])
            for published in self.built["removed_documents"].values()
            for line in removals_in(published.published.folder)
        }

    @property
    def documents(self):
        """The documents that are left."""
        return [
            json.loads(line)
            for published in self.built["clean_documents"].values()
            for path in sorted(published.published.folder.glob("*.jsonl.gz"))
            for line in gzip.decompress(path.read_bytes()).splitlines()
        ]


def own(name: str) -> str:
    """The record's own id in a document id."""
    return name.split("/", 2)[2]


def deduplicate(
    sources: Sequence[Path],
    out: Path,
    *,
    workers: int = 1,
    near: bool = True,
    floor: float = 0.5,
    measure: str = "jaccard",
    paragraphs: int | None = None,
    signatures: SignatureSettings = SignatureSettings(signatures="fast"),  # noqa: B008
    **removal,
) -> Deduplicated:
    """Run the stages of `lc dedup`."""
    removal = {"exact": ("digest", "text", "url"), "prefer": ("newest",), **removal}
    context = context_over_files(
        sources,
        out,
        executor=LocalExecutor(workers=workers),
        settings={
            "document_signatures": signatures,
            "near_duplicate_pairs": NearDuplicateSettings(
                near=near, evidence_floor=floor, measure=measure
            ),
            "removed_documents": RemovalSettings(**removal),
            "clean_documents": CleanDocumentsSettings(wanted=True, paragraphs=paragraphs),
        },
    )
    return Deduplicated(build_for(context, "clean_documents"))


def contained(one: str, other: str) -> float:
    """The share of the shorter text's 13-grams that the longer one has, by Python's sets."""
    one, other = sorted((one, other), key=len)
    ours, theirs = (
        {tuple(split[n : n + 13]) for n in range(len(split) - 12)}
        for split in (one.split(), other.split())
    )
    return len(ours & theirs) / len(ours)


def all_pairs_that_meet(
    documents: Sequence[dict], floor: float, alike_by=None
) -> dict[tuple[str, str], float]:
    """By comparing everything with everything: pairs that share a band, alike to the floor, by the
    Jaccard index or by a function of two texts.
    """
    signed = [
        (document, sign(document["text"]), shingle_hashes(document["text"]))
        for document in documents
    ]
    found = {}
    for (one, mine, ours), (other, yours, theirs) in combinations(signed, 2):
        if mine is not None and yours is not None and (mine == yours).all(axis=1).any():
            texts = one["text"], other["text"]
            alike = alike_by(*texts) if alike_by else jaccard(ours, theirs)
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
