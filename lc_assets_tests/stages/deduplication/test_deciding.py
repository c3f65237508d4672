"""Decisions by arrays against a plain reference, one document after the other."""

from itertools import combinations

import numpy as np
import pyarrow as pa
from hypothesis import given, strategies as st

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

THRESHOLD, FLOOR = 0.8, 0.6


def plainly(documents, alike, by):
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
    return gone | similarly(documents, remaining, alike, by)


def similarly(documents, remaining, alike, by):
    """The same, of those that go for their texts out of the remaining ones."""
    texts, gone, standing = {}, {}, []
    for document in remaining:
        texts.setdefault(_text(document, by), []).append(document)
    for text, (best, *others) in texts.items():
        near, across = [], []
        for other in standing:
            found = max(_between(documents, alike, by, text, _text(other, by)), default=0.0)
            if "near" in by and found >= THRESHOLD:
                near += [(other, found)] * (not other["ineligible"])
            elif found >= FLOOR and {best["held"], other["held"]} == {0, 1}:
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


@st.composite
def corpora(draw):
    """Documents, how alike pairs of them are, and the kinds."""
    flag, key = st.integers(0, 7).map(lambda n: n == 0), st.sampled_from([None, 1, 2, 3])
    documents = [
        {
            "id": f"d{place}",
            "place": place,
            **{kind: draw(key) for kind in ("digest", "text", "url")},
            "ineligible": draw(flag),
            "late": draw(flag),
            "held": draw(st.sampled_from([0, 1, NO_SIDE])),
        }
        for place in range(draw(st.integers(0, 9)))
    ]
    alike = {
        frozenset(document["id"] for document in pair): found
        for pair in combinations(documents, 2)
        if (found := draw(st.sampled_from([0.0, 0.5, 0.6, 0.7, 0.8, 1.0])))
    }
    return documents, alike, draw(st.sets(st.sampled_from(list(REASONS))))


@given(corpora())
def test_decisions_are_those_made_one_by_one(tmp_path_factory, corpus):
    documents, alike, by = corpus
    known, standing, found = decided(tmp_path_factory.mktemp("decided"), documents, alike, by)
    lines = removed_lines(known, standing, found, np.flatnonzero(found.kept >= 0), ()).to_pylist()
    assert {line["id"]: (line["reason"], line["for_id"], line["similarity"]) for line in lines} == {
        f"d{place}": (reason, f"d{kept}", similarity)
        for place, (reason, kept, similarity) in plainly(documents, alike, by).items()
    }


def decided(folder, documents, alike, by):
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
        known = involved(database, by, (), min(THRESHOLD, FLOOR))
    by_id = {d["id"]: d for d in documents}
    ours = [by_id[name] for name in known.facts["id"].to_pylist()]
    standing = Standing(
        *(np.array([d[flag] for d in ours], np.bool_) for flag in ("ineligible", "late")),
        np.array([d["held"] for d in ours], np.uint8),
    )
    return known, standing, decide(known, standing, by, THRESHOLD, FLOOR)


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
