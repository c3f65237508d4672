"""Removing duplicates from files: against comparing everything with everything, in any order, in
parts, and again.
"""

import pytest

from lc_assets.builds.settings.documents import SignatureSettings
from lc_assets.errors import BadInput, Mismatch
from lc_assets.stages.deduplication import removed_documents, verification
from lc_assets.stages.deduplication.deciding import REASONS
from lc_assets.stages.deduplication.removals import removals_in
from lc_assets.text.duplicates.keys import jaccard, shingle_hashes
from lc_assets_tests.reference.preferences import Candidate, ranked, why
from lc_assets_tests.stages.deduplication.corpora import (
    all_pairs_that_meet,
    contained,
    deduplicate,
    drawing,
    lines,
    own,
    planted,
    sprinkled,
    words,
    write,
)

SEEDS = (1, 2, 3)


def expected_removed(documents, pairs, *, threshold, prefer, by=tuple(REASONS)):
    """What must be removed and why, by looking at everything; by id."""
    from lc_assets.text.duplicates.keys import digest_key, text_key, url_key

    keys = {
        "digest": lambda d: digest_key(d["digest"]),
        "text": lambda d: text_key(d["text"]),
        "url": lambda d: url_key(d["url"]),
    }
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

    order = [candidate.id for candidate in ranked(prefer, known.values())]

    def drop(names, kept, reason):
        for name in names:
            removed[name] = (reason, kept, why(prefer, known[kept], known[name]))
            del standing[name]

    for kind, reason in (("digest", "same digest"), ("text", "same text"), ("url", "same url")):
        if kind in by:
            groups = {}
            for name in order:
                if name in standing:
                    groups.setdefault(keys[kind](standing[name]), []).append(name)
            for kept, *others in groups.values():
                drop(others, kept, reason)
    alike, kept = {frozenset(pair) for pair, found in pairs.items() if found >= threshold}, []
    for name in order:
        if name in standing:
            if near := [other for other in kept if frozenset((other, name)) in alike]:
                drop([name], near[0], "near duplicate")
            else:
                kept.append(name)
    return removed


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("prefer", [("newest",), ("longest", "oldest"), ("best_perplexity",)])
def test_everything_is_as_by_comparing_all_with_all(tmp_path, seed, prefer):
    documents = planted(seed)
    found = deduplicate(
        [write(tmp_path / "in.jsonl", documents)], tmp_path / "out", threshold=0.7, prefer=prefer
    )
    pairs = all_pairs_that_meet(documents, 0.5)
    assert {frozenset(pair): alike for pair, alike in found.pairs.items()} == {
        frozenset(pair): alike for pair, alike in pairs.items()
    }
    expected = expected_removed(documents, pairs, threshold=0.7, prefer=prefer)
    assert found.removed == expected
    assert {d["id"] for d in found.documents} == {d["id"] for d in documents} - expected.keys()
    assert found.counts.seen == len(documents)


@pytest.mark.parametrize("prefer", [("oldest",), ("newest",), ("longest",)])
@pytest.mark.parametrize("exact", [(), ("url",)])
def test_of_many_similar_ones_one_is_kept(tmp_path, exact, prefer):
    """Whichever is preferred, not only one that all were compared with."""
    draw, text = drawing(1), words(drawing(2), 1000)
    documents = [
        {"id": f"d{number}", "date_download": f"20{draw.randrange(10, 30)}"}
        | {"text": " ".join([*text[:number], f"x{number}" * (1 + number % 7), *text[number + 1 :]])}
        for number in range(80)
    ]
    source = write(tmp_path / "in.jsonl", documents)
    found = deduplicate([source], tmp_path / "out", exact=exact, prefer=prefer)
    assert len(found.pairs) < 80 * 79 / 2
    assert [document["id"] for document in found.documents] == found_first(prefer, documents)


def found_first(prefer, documents):
    known = [
        Candidate(id=d["id"], number=0, date=d["date_download"], n_chars=len(d["text"]))
        for d in documents
    ]
    return [ranked(prefer, known)[0].id]


@pytest.mark.parametrize("exact", [(), ("url",), ("digest", "url")])
def test_short_texts_have_exact_rules_only_and_no_date_comes_last(tmp_path, exact):
    texts = ["a few words", "a few words", *[" ".join(words(drawing(3), 40))] * 2]
    documents = [{"id": f"d{number}", "text": text} for number, text in enumerate(texts)]
    documents[3]["date_download"] = "2023"
    source = write(tmp_path / "in.jsonl", documents)
    found = deduplicate([source], tmp_path / "out", exact=exact, prefer=("oldest",))
    assert found.removed == {"d2": ("near duplicate", "d3", "older: 2023 rather than no date")}


def test_documents_are_written_with_all_their_fields(tmp_path):
    documents = planted(1)
    found = deduplicate([write(tmp_path / "in.jsonl", documents)], tmp_path / "out")
    originals = {d["id"]: d for d in documents}
    assert all(document == originals[document["id"]] for document in found.documents)


def test_every_removed_document_leads_to_one_that_is_kept(tmp_path):
    found = deduplicate(
        [write(tmp_path / "in.jsonl", planted(5, n=200))], tmp_path / "out", threshold=0.6
    )
    kept = {d["id"] for d in found.documents}
    removed = removals_in(found.folder("removed_documents"))
    assert {line["reason"] for line in removed} == {
        "same digest",
        "same text",
        "same url",
        "near duplicate",
    }
    assert {own(line["kept_id"]) for line in removed} <= kept
    assert not {own(line["for_id"]) for line in removed} <= kept, (
        "some were removed for one that was then removed itself"
    )
    clusters = lines(found.folder("removed_documents") / "clusters.parquet")
    for name in {line["cluster"] for line in clusters}:
        members = [line for line in clusters if line["cluster"] == name]
        assert [line["size"] for line in members] == [len(members)] * len(members)
        assert min(line["id"] for line in members) == name
        assert [line["id"] for line in members if line["stays"]] == [members[0]["kept_id"]]


def test_the_same_from_one_worker_or_two_and_from_little_memory(tmp_path, monkeypatch):
    for part in range(4):
        write(
            tmp_path / f"in/{part}.jsonl",
            [d | {"id": f"{part}-{d['id']}"} for d in planted(part % 3)],
        )
    one = deduplicate([tmp_path / "in"], tmp_path / "one")
    monkeypatch.setattr(verification, "TASK_KEYS", 1)
    two = deduplicate([tmp_path / "in"], tmp_path / "two", workers=2)
    for stage in ("near_duplicate_pairs", "removed_documents", "clean_documents"):
        digests = {found.built[stage]["in"].published.receipt.digest for found in (one, two)}
        assert len(digests) == 1, stage


def test_the_order_of_documents_makes_no_difference(tmp_path):
    documents = planted(4)
    exact = ("digest", "url")
    first = deduplicate(
        [write(tmp_path / "in.jsonl", documents)], tmp_path / "out", exact=exact, threshold=0.6
    )
    drawing(0).shuffle(documents)
    second = deduplicate(
        [write(tmp_path / "again/in.jsonl", documents)],
        tmp_path / "again_out",
        exact=exact,
        threshold=0.6,
    )
    assert first.removed == second.removed


@pytest.mark.parametrize("threshold", [0.5, 0.6, 0.9, 1.0])
def test_another_threshold_reuses_the_pairs(tmp_path, threshold):
    source = write(tmp_path / "in.jsonl", planted(2))
    deduplicate([source], tmp_path / "out")
    changed = {"threshold": threshold, "prefer": ("oldest",), "exact": ("text",)}
    again = deduplicate([source], tmp_path / "out", **changed)
    fresh = deduplicate([source], tmp_path / "fresh", **changed)
    assert again.built["near_duplicate_pairs"]["in"].reused
    assert again.removed == fresh.removed
    assert again.documents == fresh.documents


def test_more_input_is_compared_with_what_is_there(tmp_path):
    documents = [
        d | {"id": f"{part}-{d['id']}"}
        for part, seed in enumerate((1, 1, 2))
        for d in planted(seed)
    ]
    drawing(1).shuffle(documents)
    parts = [write(tmp_path / f"part{number}.jsonl", documents[number::3]) for number in range(3)]
    deduplicate(parts[:2], tmp_path / "grown")
    grown = deduplicate(parts, tmp_path / "grown")
    at_once = deduplicate(parts, tmp_path / "at_once")
    assert grown.built["document_signatures"]["part0"].reused
    assert not grown.built["document_signatures"]["part2"].reused
    assert grown.removed == at_once.removed
    named = [
        d | {"id": f"part{part}/part{part}/{d['id']}"}
        for part in range(3)
        for d in documents[part::3]
    ]
    expected = expected_removed(
        named, all_pairs_that_meet(named, 0.5), threshold=0.8, prefer=("newest",)
    )
    assert {name: reason for name, (reason, *_) in at_once.removed.items()} == {
        own(name): reason for name, (reason, *_) in expected.items()
    }


def test_a_source_can_be_preferred(tmp_path):
    documents = [d | {"date_download": "2020-01-01"} for d in planted(1)]
    copies = [d | {"id": f"copy-{d['id']}"} for d in documents]
    sources = [
        write(tmp_path / "books.jsonl", documents),
        write(tmp_path / "web.jsonl", copies),
    ]
    found = deduplicate(sources, tmp_path / "out", prefer=("source=web",))
    assert all(d["id"].startswith("copy-") for d in found.documents)


def test_what_only_shares_bands_stays(tmp_path):
    """Two texts with a common opening meet in a band; compared, they have little in common, so
    neither is removed.
    """
    draw = drawing(3)
    shared = words(draw, 390)
    documents = [
        {"id": str(number), "text": " ".join([*shared, *words(draw, 210)])} for number in range(40)
    ]
    found = deduplicate([write(tmp_path / "in.jsonl", documents)], tmp_path / "out")
    counts = found.built["near_duplicate_pairs"]["in"].counts
    assert counts.seen > 20
    assert counts.kept == 0
    assert found.counts.kept == 40


def test_texts_of_few_or_no_words_are_equal_only_when_they_are(tmp_path):
    documents = [
        {"id": f"d{n}", "text": text}
        for n, text in enumerate(["", "", "...", "!!", "one two", "One, two", "one three"])
    ]
    found = deduplicate([write(tmp_path / "in.jsonl", documents)], tmp_path / "out")
    assert found.removed.keys() == {"d5"}


def test_unreadable_lines_are_counted(tmp_path):
    path = write(tmp_path / "in.jsonl", planted(1, n=3))
    path.write_text(path.read_text() + "{not json\n" + '{"id": "x"}\n')
    found = deduplicate([path], tmp_path / "out")
    assert found.counts.seen == 5
    assert found.counts.dropped["not JSON"] == found.counts.dropped["no text"] == 1


def test_a_killed_search_is_run_again(tmp_path, monkeypatch):
    source = write(tmp_path / "in.jsonl", planted(1))
    expected = deduplicate([source], tmp_path / "expected").removed

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(removed_documents, "decide_all", killed)
        deduplicate([source], tmp_path / "out")
    assert not list((tmp_path / "out" / "removed_documents").glob("*/current.json"))
    assert deduplicate([source], tmp_path / "out").removed == expected


def test_a_file_that_changed_while_it_was_read_is_noticed(tmp_path, monkeypatch):
    source = write(tmp_path / "in.jsonl", planted(1))

    def changed(*arguments, **more):
        write(source, planted(1)[:-1])
        return sound(*arguments, **more)

    sound = removed_documents.decide_all
    monkeypatch.setattr(removed_documents, "decide_all", changed)
    with pytest.raises(Mismatch, match="has changed since the manifest was made"):
        deduplicate([source], tmp_path / "out")


def of_shingles(size: int, of: str) -> SignatureSettings:
    return SignatureSettings(signatures="fast", shingle_size=size, shingle_of=of)


@pytest.mark.parametrize(
    ("size", "of", "threshold", "finds"),
    [
        (13, "words", 0.8, False),
        (5, "words", 0.65, True),
        (3, "words", 0.75, True),
        (13, "characters", 0.65, True),
    ],
)
def test_smaller_shingles_find_copies_with_two_words_of_a_hundred_changed(
    tmp_path, size, of, threshold, finds
):
    """At least nine of ten, where 13 words find hardly any; similarities are those of all texts,
    and nothing else is removed.
    """
    draw = drawing(1)
    texts = [" ".join(words(draw, 400)) for _ in range(50)]
    copies = [sprinkled(draw, text, 0.02) for text in texts]
    source = write(
        tmp_path / "in.jsonl",
        [{"id": f"{n % 50}-{n}", "text": text} for n, text in enumerate([*texts, *copies])],
    )
    signatures = of_shingles(size, of)
    found = deduplicate([source], tmp_path / "out", threshold=threshold, signatures=signatures)
    named = {f"{n % 50}-{n}": text for n, text in enumerate([*texts, *copies])}
    for (a, b), similarity in found.pairs.items():
        sets = (shingle_hashes(named[name], size, of) for name in (a, b))
        assert similarity == jaccard(*sets)
    pairs = {
        (name.split("-")[0], kept.split("-")[0]) for name, (_, kept, _) in found.removed.items()
    }
    assert all(name == kept for name, kept in pairs)
    assert (len(pairs) >= 45) if finds else (len(pairs) <= 10)


@pytest.mark.parametrize("seed", SEEDS)
def test_documents_within_longer_ones_are_found_by_containment(tmp_path, seed):
    """Pairs, similarities and removals are those by comparing all with all; of every removed
    document nine tenths are in the one that is kept, of which it may be little more than a half.
    """
    draw, documents = drawing(seed), []
    for n in range(40):
        text = " ".join(words(draw, 300))
        grown = f"{sprinkled(draw, text, 0.002)} {' '.join(words(draw, draw.randrange(5, 200)))}"
        documents += [{"id": f"{n}-{k}", "text": t} for k, t in enumerate((text, grown))]
    source = write(tmp_path / "in.jsonl", documents)
    how = {"threshold": 0.9, "measure": "containment", "prefer": ("longest",), "exact": ()}
    found = deduplicate([source], tmp_path / "out", **how)
    pairs = all_pairs_that_meet(documents, 0.5, contained)
    assert {frozenset(pair): alike for pair, alike in found.pairs.items()} == {
        frozenset(pair): alike for pair, alike in pairs.items()
    }
    alike = {pair for pair, share in pairs.items() if share >= 0.9}
    assert len(alike) > 20
    assert {(name, kept) for name, (_, kept, _) in found.removed.items()} == alike
    by_index = all_pairs_that_meet(documents, 0.9)
    assert len(by_index) < len(alike) / 2


def test_containment_needs_the_longest_to_be_kept(tmp_path):
    source = write(tmp_path / "in.jsonl", planted(1))
    for prefer in (("newest",), ("newest", "longest"), ()):
        with pytest.raises(BadInput, match="begin with longest"):
            deduplicate([source], tmp_path / "out", measure="containment", prefer=prefer)


def test_other_shingles_need_signatures_of_our_own(tmp_path):
    source = write(tmp_path / "in.jsonl", planted(1))
    settings = SignatureSettings(signatures="computed", shingle_size=5)
    with pytest.raises(BadInput, match="RedPajama-V2's signatures are of 13 words"):
        deduplicate([source], tmp_path / "out", signatures=settings)


def test_unusable_settings_are_refused(tmp_path):
    source = write(tmp_path / "in.jsonl", planted(1))
    with pytest.raises(BadInput, match="is below near_duplicate_pairs.evidence_floor"):
        deduplicate([source], tmp_path / "out", threshold=0.4)
