"""Decisions by arrays against a plain reference, one document after the other."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from lc_assets.stages.deduplication.deciding import (
    NEAR_HELDOUT,
    NO_SIDE,
    REASONS,
    Standing,
    decide,
    involved,
)
from lc_assets.stages.deduplication.facts import FACTS
from lc_assets.stages.deduplication.queries import queries
from lc_assets.stages.deduplication.removal_lines import removed_lines
from lc_assets_tests.named_draws import rng_for


def plainly(documents, alike, by, threshold, floor):
    """Reason, document and similarity of all that go, by place."""
    order = sorted(documents, key=lambda d: (d["ineligible"], d["late"], d["place"]))
    gone = {}
    for kind in ("digest", "text", "url"):
        first = {}
        for document in [d for d in order if d["place"] not in gone and kind in by]:
            best = first.setdefault(document[kind] or document["id"], document)
            if best is not document and not best["ineligible"]:
                found = 1.0 if kind == "text" else None
                gone[document["place"]] = (REASONS[kind], best["place"], found)
    remaining = [document for document in order if document["place"] not in gone]
    return gone | similarly(documents, remaining, alike, by, threshold, floor)


def similarly(documents, remaining, alike, by, threshold, floor):
    """The same, of those that go for their texts out of the remaining ones."""
    texts, gone, standing = {}, {}, []
    for document in remaining:
        texts.setdefault(_text(document, by), []).append(document)
    for text, (best, *others) in texts.items():
        near, across = [], []
        for other in standing:
            found = max(_between(documents, alike, by, text, _text(other, by)), default=0.0)
            if "near" in by and found >= threshold:
                near += [(other, found)] * (not other["ineligible"])
            elif found >= floor and {best["held"], other["held"]} == {0, 1}:
                across += [(other, found)]
        if near or across:
            kept, found = (near or across)[0]
            reason = REASONS["near"] if near else NEAR_HELDOUT
            if not kept["ineligible"]:
                gone[best["place"]] = (reason, kept["place"], found)
        else:
            standing.append(best)
        for other in others:
            kept, found = near[0] if near else (best, 1.0)
            if not kept["ineligible"]:
                gone[other["place"]] = (REASONS["near"], kept["place"], found)
    return gone


def _text(document, by):
    return (document["text"] if "near" in by else None) or document["id"]


def _between(documents, alike, by, *texts):
    for pair in combinations(documents, 2):
        if {_text(document, by) for document in pair} == {*texts}:
            yield alike.get(frozenset(document["id"] for document in pair), 0.0)


def drawn(seed, n):
    """Documents, and how alike pairs of them are."""
    rng = rng_for("deciding", seed=seed)

    def is_rare():
        return bool(rng.integers(4) == 0)

    documents = [
        {
            "id": f"d{place:02d}",
            "place": place,
            **{kind: int(rng.integers(n // 3)) or None for kind in ("digest", "text", "url")},
            "ineligible": is_rare(),
            "late": is_rare(),
            "held": int(rng.choice([0, 1, NO_SIDE])),
        }
        for place in range(n)
    ]
    names = [frozenset(document["id"] for document in pair) for pair in combinations(documents, 2)]
    values = rng.choice([0.0, 0.5, 0.6, 0.7, 0.8, 1.0], p=[0.9, *[0.02] * 5], size=len(names))
    return documents, {
        name: float(value) for name, value in zip(names, values, strict=True) if value
    }


@pytest.mark.parametrize("by", [(), ("near",), ("text",), ("digest", "url"), tuple(REASONS)])
@pytest.mark.parametrize(("threshold", "floor"), [(0.8, 0.6), (0.6, 0.8)])
@pytest.mark.parametrize("seed", range(3))
def test_decisions_are_those_made_one_by_one(tmp_path, seed, threshold, floor, by):
    documents, alike = drawn(seed, 40)
    known, standing, found = decided(tmp_path, documents, alike, by, threshold, floor)
    lines = removed_lines(known, standing, found, np.flatnonzero(found.kept >= 0), ()).to_pylist()
    assert {line["id"]: (line["reason"], line["for_id"], line["similarity"]) for line in lines} == {
        f"d{place:02d}": (reason, f"d{kept:02d}", similarity)
        for place, (reason, kept, similarity) in plainly(
            documents, alike, by, threshold, floor
        ).items()
    }


def decided(folder, documents, alike, by, threshold=0.8, floor=0.6):
    """What is decided, and the documents that may be concerned."""
    facts = [
        {"id": d["id"], "number": d["place"], "source": "", "date": "", "n_chars": 0}
        | {f"{kind}_high": d[kind] for kind in ("digest", "text", "url")}
        | {f"{kind}_low": d[kind] for kind in ("digest", "text", "url")}
        for d in documents
    ]
    pairs = [
        dict(zip("ab", sorted(pair), strict=True)) | {"similarity": s} for pair, s in alike.items()
    ]
    schema = pa.schema({"a": "string", "b": "string", "similarity": "float64"})
    with queries(folder / "duckdb") as database:
        database.connection.register("facts", pa.Table.from_pylist(facts, schema=FACTS))
        database.connection.register("pairs", pa.Table.from_pylist(pairs, schema=schema))
        known = involved(database, by, (), min(threshold, floor))
    by_id = {d["id"]: d for d in documents}
    ours = [by_id[name] for name in known.facts["id"].to_pylist()]
    standing = Standing(
        *(np.array([d[flag] for d in ours], np.bool_) for flag in ("ineligible", "late")),
        np.array([d["held"] for d in ours], np.uint8),
    )
    return known, standing, decide(known, standing, by, threshold, floor)


def test_who_comes_last_goes_for_that(tmp_path):
    """Whatever is preferred, even where nothing is known of the one that is kept."""
    documents = [
        {"id": name, "place": place, "digest": 1, "text": None, "url": None}
        | {"ineligible": False, "late": name == "a", "held": NO_SIDE}
        for place, name in enumerate("ab")
    ]
    known, standing, found = decided(tmp_path, documents, {}, {"digest"})
    (line,) = removed_lines(
        known, standing, found, np.flatnonzero(found.kept >= 0), ("best_perplexity",)
    ).to_pylist()
    assert known.facts["id"].type == pa.large_string()  # ids may be more than 2 GiB
    assert (line["id"], line["why"]) == ("a", "the other is too similar to one across the split")
