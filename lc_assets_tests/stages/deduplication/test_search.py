"""Searching for duplicates: against comparing everything with everything, in any order, in parts,
and again.
"""

import pytest

from lc_assets.errors import BadInput, Mismatch, NotPublished
from lc_assets.stages.deduplication import evidence, running
from lc_assets.stages.deduplication.running import decide_again, deduplicate, read_summary
from lc_assets.stages.deduplication.settings import KINDS, Decision, Means
from lc_assets.text.duplicates.keys import Candidate, Preference
from lc_assets_tests.stages.deduplication.corpora import (
    all_pairs_that_meet,
    connected,
    drawing,
    lines,
    planted,
    search,
    words,
    write,
)

TABLES = ("clusters.parquet", "removed.parquet", "kept.parquet", "pairs.parquet")
SEEDS = (1, 2, 3)


def expected_removed(documents, pairs, decision):
    """What must be removed and why, by looking at everything; by id."""
    from lc_assets.text.duplicates.keys import digest_key, text_key, url_key

    keys = {
        "digest": lambda d: digest_key(d["digest"]),
        "text": lambda d: text_key(d["text"]),
        "url": lambda d: url_key(d["url"]),
    }
    preference = Preference(decision.prefer)
    known = {
        d["id"]: Candidate(
            id=d["id"],
            number=0,
            date=d["date_download"],
            n_chars=len(d["text"]),
            perplexity=d["perplexity"],
        )
        for d in documents
    }
    standing, removed = {d["id"]: d for d in documents}, {}

    def drop(groups, reason):
        for group in groups:
            best = preference.best(known[name] for name in group)
            for name in set(group) - {best.id}:
                removed[name] = (reason, best.id, preference.why(best, known[name]))
                del standing[name]

    for kind, reason in (("digest", "same digest"), ("text", "same text"), ("url", "same url")):
        if kind in decision.by:
            groups = {}
            for name, document in standing.items():
                groups.setdefault(keys[kind](document), []).append(name)
            drop([group for group in groups.values() if len(group) > 1], reason)
    first = {}
    for document in documents:
        first.setdefault(text_key(document["text"]), document["id"])
    texts = {}
    for name, document in standing.items():
        texts.setdefault(first[text_key(document["text"])], []).append(name)
    edges = [
        (a, b)
        for (a, b), alike in pairs.items()
        if alike >= decision.threshold and a in texts and b in texts
    ]
    groups = connected([*edges, *((name, name) for name in texts)])
    drop(
        [
            found
            for group in groups
            if len(found := [n for member in group for n in texts[member]]) > 1
        ],
        "near duplicate",
    )
    return removed


def removed_of(folder):
    return {
        line["id"]: (line["reason"], line["for_id"], line["why"])
        for line in lines(folder / "removed.parquet")
    }


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("prefer", [("newest",), ("longest", "oldest"), ("best_perplexity",)])
def test_everything_is_as_by_comparing_all_with_all(tmp_path, seed, prefer):
    documents = planted(seed)
    decision = Decision(threshold=0.7, prefer=prefer)
    summary = deduplicate(
        search([write(tmp_path / "in.jsonl", documents)], tmp_path / "out", decision=decision)
    )
    pairs = all_pairs_that_meet(documents, 0.5)
    assert {
        (line["a"], line["b"]): line["similarity"] for line in lines(tmp_path / "out/pairs.parquet")
    } == pairs
    expected = expected_removed(documents, pairs, decision)
    assert removed_of(tmp_path / "out") == expected
    assert {line["id"] for line in lines(tmp_path / "out/kept.parquet")} == {
        d["id"] for d in documents
    } - expected.keys()
    assert summary.counts.seen == len(documents)
    assert summary.work["candidates"] == summary.work["verified"] + summary.work["refuted"]
    assert summary.work["verified"] == len(pairs)
    assert not (tmp_path / "out/work").exists()


def test_every_removed_document_leads_to_one_that_is_kept(tmp_path):
    deduplicate(
        search(
            [write(tmp_path / "in.jsonl", planted(5, n=200))],
            tmp_path / "out",
            decision=Decision(threshold=0.6),
        )
    )
    kept = {line["id"] for line in lines(tmp_path / "out/kept.parquet")}
    removed = lines(tmp_path / "out/removed.parquet")
    assert {line["reason"] for line in removed} == {
        "same digest",
        "same text",
        "same url",
        "near duplicate",
    }
    assert {line["kept_id"] for line in removed} <= kept
    assert not {line["for_id"] for line in removed} <= kept, (
        "some were removed for one that was then removed itself"
    )
    clusters = lines(tmp_path / "out/clusters.parquet")
    for name in {line["cluster"] for line in clusters}:
        members = [line for line in clusters if line["cluster"] == name]
        assert [line["size"] for line in members] == [len(members)] * len(members)
        assert min(line["id"] for line in members) == name
        assert [line["id"] for line in members if line["stays"]] == [members[0]["kept_id"]]


def test_the_same_bytes_from_one_worker_or_two_and_from_little_memory(tmp_path, monkeypatch):
    for part in range(4):
        write(
            tmp_path / f"in/{part}.jsonl",
            [d | {"id": f"{part}-{d['id']}"} for d in planted(part % 3)],
        )
    deduplicate(search([tmp_path / "in"], tmp_path / "one"))
    monkeypatch.setattr(evidence, "slices_for", lambda *_: 3)
    deduplicate(
        search([tmp_path / "in"], tmp_path / "two", workers=2, means=Means(memory=200 << 20))
    )
    for name in (*TABLES, "index/index.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), (
            name
        )


def test_the_order_of_documents_makes_no_difference(tmp_path):
    documents = planted(4)
    decision = Decision(by=("digest", "url", "near"), threshold=0.6)
    deduplicate(
        search([write(tmp_path / "in.jsonl", documents)], tmp_path / "out", decision=decision)
    )
    drawing(0).shuffle(documents)
    deduplicate(
        search(
            [write(tmp_path / "shuffled.jsonl", documents)], tmp_path / "again", decision=decision
        )
    )
    assert removed_of(tmp_path / "out") == removed_of(tmp_path / "again")
    seen = [
        {
            (x["cluster"], x["id"], x["size"], x["stays"])
            for x in lines(tmp_path / part / "clusters.parquet")
        }
        for part in ("out", "again")
    ]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("threshold", [0.5, 0.6, 0.9, 1.0])
def test_another_threshold_from_the_evidence_is_a_fresh_search(tmp_path, threshold):
    source = write(tmp_path / "in.jsonl", planted(2))
    deduplicate(search([source], tmp_path / "out"))
    decision = Decision(threshold=threshold, prefer=("oldest",), by=("text", "near"))
    source.unlink()
    decide_again(tmp_path / "out", tmp_path / "again", decision, Means())
    write(source, planted(2))
    deduplicate(search([source], tmp_path / "fresh", decision=decision))
    for name in ("clusters.parquet", "removed.parquet", "kept.parquet"):
        assert lines(tmp_path / "again" / name) == lines(tmp_path / "fresh" / name)
    assert read_summary(tmp_path / "again").counts.kept == len(
        lines(tmp_path / "again/kept.parquet")
    )


def test_in_parts_is_as_at_once(tmp_path):
    documents = [
        d | {"id": f"{part}-{d['id']}"}
        for part, seed in enumerate((1, 1, 2))
        for d in planted(seed)
    ]
    drawing(1).shuffle(documents)
    parts = [write(tmp_path / f"{number}.jsonl", documents[number::3]) for number in range(3)]
    deduplicate(search(parts, tmp_path / "at_once"))
    deduplicate(search(parts[:1], tmp_path / "first"))
    second = deduplicate(search(parts[1:2], tmp_path / "second", against=tmp_path / "first"))
    third = deduplicate(search(parts[2:], tmp_path / "third", against=tmp_path / "second"))
    for name in TABLES:
        assert lines(tmp_path / "third" / name) == lines(tmp_path / "at_once" / name), name
    assert third.counts == read_summary(tmp_path / "at_once").counts
    assert second.work["places"] == third.work["places"] == len(documents) / 3, (
        "the old documents are not read for their facts"
    )


def test_what_only_shares_bands_stays(tmp_path):
    """Two texts with a common opening meet in a band; compared, they have little in common, so
    neither goes.
    """
    draw = drawing(3)
    shared = words(draw, 260)
    documents = [
        {"id": str(number), "text": " ".join([*shared, *words(draw, 300)])} for number in range(40)
    ]
    summary = deduplicate(
        search(
            [write(tmp_path / "in.jsonl", documents)],
            tmp_path / "out",
            decision=Decision(threshold=0.8),
        )
    )
    assert summary.work["candidates"] > 20
    assert summary.work["refuted"] == summary.work["candidates"]
    assert summary.counts.kept == 40


def test_texts_of_few_or_no_words_are_equal_only_when_they_are(tmp_path):
    documents = [
        {"id": str(n), "text": text}
        for n, text in enumerate(["", "", "...", "!!", "one two", "One, two", "one three"])
    ]
    summary = deduplicate(search([write(tmp_path / "in.jsonl", documents)], tmp_path / "out"))
    assert removed_of(tmp_path / "out").keys() == {"5"}
    assert summary.work["too few words to be signed"] == 7


def test_unreadable_lines_are_counted(tmp_path):
    path = write(tmp_path / "in.jsonl", planted(1, n=3))
    path.write_text(path.read_text() + "{not json\n" + '{"id": "x"}\n')
    summary = deduplicate(search([path], tmp_path / "out"))
    assert summary.counts.seen == 5
    assert summary.counts.dropped["not JSON"] == summary.counts.dropped["no text"] == 1
    assert (
        decide_again(tmp_path / "out", tmp_path / "again", Decision(), Means()).counts
        == summary.counts
    )


def test_a_killed_search_leaves_no_summary_and_can_be_run_again(tmp_path, monkeypatch):
    source = write(tmp_path / "in.jsonl", planted(1))
    deduplicate(search([source], tmp_path / "out"))
    before = {name: (tmp_path / "out" / name).read_bytes() for name in TABLES}

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(running, "decide", killed)
        deduplicate(search([source], tmp_path / "out"))
    with pytest.raises(NotPublished, match="no search for duplicates was finished"):
        decide_again(tmp_path / "out", tmp_path / "again", Decision(), Means())
    deduplicate(search([source], tmp_path / "out"))
    assert {name: (tmp_path / "out" / name).read_bytes() for name in TABLES} == before


def test_a_changed_old_corpus_is_noticed(tmp_path):
    old = write(tmp_path / "old.jsonl", planted(1))
    deduplicate(search([old], tmp_path / "out"))
    write(old, planted(1)[:-1])
    new = write(tmp_path / "new.jsonl", [d | {"text": d["text"] + " more"} for d in planted(1)])
    with pytest.raises(Mismatch, match=r"old\.jsonl: is gone or changed since it was indexed"):
        deduplicate(
            search(
                [new], tmp_path / "more", against=tmp_path / "out", decision=Decision(by=("near",))
            )
        )


def test_what_cannot_be_meant_is_said(tmp_path):
    source = write(tmp_path / "in.jsonl", planted(1))
    deduplicate(search([source], tmp_path / "out", decision=Decision(by=("text", "near"))))
    with pytest.raises(BadInput, match="below the evidence's floor of 0.5"):
        decide_again(
            tmp_path / "out", tmp_path / "again", Decision(by=("near",), threshold=0.4), Means()
        )
    with pytest.raises(BadInput, match="was not searched by url"):
        decide_again(tmp_path / "out", tmp_path / "again", Decision(by=("url",)), Means())
    with pytest.raises(BadInput, match="is given twice"):
        deduplicate(search([source, source], tmp_path / "again"))
    with pytest.raises(BadInput, match="wanted some of digest, text, url, near"):
        Decision(by=("nearly",))
    with pytest.raises(BadInput, match="wanted more than 0 and at most 1"):
        Decision(threshold=1.2)
    with pytest.raises(BadInput, match="write into another folder"):
        deduplicate(
            search(
                [source],
                tmp_path / "out",
                against=tmp_path / "out",
                decision=Decision(by=("text",)),
            )
        )
    with pytest.raises(NotPublished, match="holds no index"):
        deduplicate(search([source], tmp_path / "again", against=tmp_path / "nowhere"))
    assert set(KINDS) == {"digest", "text", "url", "near"}
