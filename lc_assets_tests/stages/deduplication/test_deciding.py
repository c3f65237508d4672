"""Decisions by arrays against a plain reference, one document after the other."""

import math
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from lc_assets.stages.deduplication import deciding
from lc_assets.stages.deduplication.deciding import (
    NEAR_HELDOUT,
    NO_SIDE,
    REASONS,
    Standing,
    decide,
    decide_all,
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
    near = threshold if "near" in by else math.inf
    return gone | similarly(remaining, alike, near, floor)


def similarly(remaining, alike, threshold, floor):
    """The same, of those that go for their texts out of the remaining ones."""
    gone, standing = {}, []
    for document in remaining:
        near, across = [], []
        for other in standing:
            found = alike.get(frozenset((document["id"], other["id"])), 0.0)
            if floor <= found < threshold and {document["held"], other["held"]} == {0, 1}:
                across.append((other, found))
            if found < threshold:
                found = at_least(document["id"], other["id"], alike, threshold)
            if found >= threshold:
                near.append((other, found))
        if near or across:
            kept, found = (near or across)[0]
            reason = REASONS["near"] if near else NEAR_HELDOUT
            gone[document["place"]] = (reason, kept["place"], found)
        elif not document["ineligible"]:
            standing.append(document)
    return gone


def at_least(one, other, alike, threshold):
    """How similar two documents must be, since both are like a third."""
    thirds = [
        [alike.get(frozenset((name, third)), 0.0) for name in (one, other)]
        for third in {name for pair in alike for name in pair}
    ]
    return max((a - (1 - b) for a, b in thirds if min(a, b) >= threshold), default=0.0)


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
    values = rng.choice([0.0, 0.5, 0.6, 0.75, 0.9, 1.0], p=[0.9, *[0.02] * 5], size=len(names))
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
    expected = {
        f"d{place:02d}": (reason, f"d{kept:02d}", similarity)
        for place, (reason, kept, similarity) in plainly(
            documents, alike, by, threshold, floor
        ).items()
    }
    assert {line["id"]: (line["reason"], line["for_id"]) for line in lines} == {
        name: found[:2] for name, found in expected.items()
    }
    for line in lines:
        similarity, most = line["similarity"], expected[line["id"]][2]
        is_bound = (
            line["reason"] == REASONS["near"]
            and frozenset((line["id"], line["for_id"])) not in alike
        )
        assert threshold <= similarity <= most if is_bound else similarity == most


def facts_of(lines):
    """`FACTS` as `gather_facts` gives them."""
    snapshots = pa.array([line.get("snapshot", "") for line in lines])
    return pa.Table.from_pylist(lines, schema=FACTS).append_column("snapshot", snapshots)


def decided(folder, documents, alike, by, threshold=0.8, floor=0.6, *, is_metric=True):
    """What is decided, and the documents that may be concerned."""
    facts = [
        {"id": d["id"], "number": d["place"], "source": "", "date": "", "n_chars": 0}
        | {"snapshot": d.get("snapshot", "")}
        | {f"{kind}_high": d[kind] for kind in ("digest", "text", "url")}
        | {f"{kind}_low": d[kind] for kind in ("digest", "text", "url")}
        for d in documents
    ]
    pairs = [
        dict(zip("ab", sorted(pair), strict=True)) | {"similarity": s} for pair, s in alike.items()
    ]
    schema = pa.schema({"a": "string", "b": "string", "similarity": "float64"})
    with queries(folder / "duckdb") as database:
        database.connection.register("facts", facts_of(facts))
        database.connection.register("pairs", pa.Table.from_pylist(pairs, schema=schema))
        known = involved(database, by, ("oldest",), min(threshold, floor))
    by_id = {d["id"]: d for d in documents}
    ours = [by_id[name] for name in known.facts["id"].to_pylist()]
    standing = Standing(
        *(np.array([d[flag] for d in ours], np.bool_) for flag in ("ineligible", "late")),
        np.array([d["held"] for d in ours], np.uint8),
    )
    return known, standing, decide(known, standing, by, threshold, floor, is_metric=is_metric)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_not_known_is_compared_until_nothing_is_left(tmp_path, seed):
    """Of documents that are all like one, who goes is as if all had been compared with all."""
    documents, _ = drawn(seed, 60)
    rng, names = rng_for("comparing", seed=seed), [document["id"] for document in documents]
    alike = {
        frozenset(pair): 0.8 if names[-1] in pair else float(rng.choice([0.5, 0.85]))
        for pair in combinations(names, 2)
    }
    some = {pair: found for pair, found in alike.items() if names[-1] in pair}
    known, standing, _ = decided(tmp_path, documents, some, ("near",), floor=1.0)
    ids, compared = known.facts["id"].to_pylist(), set[frozenset[str]]()

    def compare(pairs):
        pairs = [frozenset((ids[a], ids[b])) for a, b in pairs.tolist()]
        assert len({*pairs}) == len(pairs)
        assert compared.isdisjoint(pairs)
        compared.update(pairs)
        return np.array([alike[pair] for pair in pairs])

    gone, how = np.zeros(len(ids), np.bool_), {"bounds": (0.8, 1.0), "is_metric": True}
    _, found, counted = decide_all(known, standing, ("near",), gone, **how, compare=compare)
    expected = plainly(documents, alike, ("near",), 0.8, 1.0)
    assert {ids[n] for n in np.flatnonzero(found.kept >= 0)} == {
        f"d{place:02d}" for place in expected
    }
    assert counted == {"pairs compared again": len(compared)}
    assert len(compared) < 60 * 59 / 2


def test_what_stays_unknown_is_counted(tmp_path, monkeypatch):
    """After the last round: 20 documents that are like one, and like no other."""
    monkeypatch.setattr(deciding, "FIRST", 1)
    documents = [document | {"held": NO_SIDE, "ineligible": False} for document in drawn(0, 20)[0]]
    alike = {frozenset((documents[-1]["id"], other["id"])): 0.8 for other in documents[:-1]}
    known, standing, _ = decided(tmp_path, documents, alike, ("near",))
    gone, how = np.zeros(len(known.facts), np.bool_), {"bounds": (0.8, 0.6), "is_metric": True}
    nothing = lambda pairs: np.zeros(len(pairs))  # noqa: E731
    *_, counted = decide_all(known, standing, ("near",), gone, **how, compare=nothing)
    assert counted == {"pairs compared again": sum(range(11, 19)), "pairs not compared": 10}


@pytest.mark.parametrize(("third", "is_metric"), [("2023-06", True), ("2022-05", False)])
def test_a_third_document_proves_nothing(tmp_path, third, is_metric):
    """Neither one of a snapshot that the two know nothing of, nor if similarity is no metric."""
    documents = [
        {"id": name, "place": place, "digest": None, "text": None, "url": None}
        | {"ineligible": False, "late": False, "held": NO_SIDE, "snapshot": snapshot}
        for place, (name, snapshot) in enumerate([("a", "2022-05"), ("b", "2022-05"), ("c", third)])
    ]
    alike = {frozenset(pair): 0.95 for pair in ("ac", "bc")}
    *_, found = decided(tmp_path, documents, alike, ("near",), is_metric=is_metric)
    assert found.kept.tolist() == [-1, -1, 0]


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
