"""Precision and recall of near duplicates among 10,000 documents with planted edits, by the size of
shingles; run with ``-m slow -s`` to see the table.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from lc_assets.builds.settings.documents import SignatureSettings
from lc_assets_tests.benchmarks.referral_texts import read_novels
from lc_assets_tests.stages.deduplication.corpora import deduplicate, drawing, sprinkled

N_DOCUMENTS, N_WORDS, EVERY = 10_000, 400, 10
SHARES = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05)
SETTINGS = (
    (13, "words", "jaccard", 0.8),
    (5, "words", "jaccard", 0.65),
    (3, "words", "jaccard", 0.65),
    (13, "characters", "jaccard", 0.5),
    (13, "words", "containment", 0.8),
    (5, "words", "containment", 0.8),
)


def passages(novels: list[str]) -> list[list[str]]:
    """Stretches of novels that do not overlap."""
    found = []
    for novel in novels:
        words = novel.split()
        found += [words[at : at + N_WORDS] for at in range(0, len(words) - N_WORDS, N_WORDS)]
    return found


@pytest.mark.slow
def test_recall_by_share_of_changed_words(tmp_path: Path, shared_data: Path):
    """A tenth of the documents are copies; an edit changes each word with the same probability."""
    draw, texts = drawing(0), [" ".join(words) for words in passages(read_novels(shared_data))]
    n_copies = N_DOCUMENTS // EVERY
    texts = draw.sample(texts, N_DOCUMENTS - n_copies)
    records = [{"id": f"{n}", "text": text} for n, text in enumerate(texts)]
    for n in range(n_copies):
        share = SHARES[n % len(SHARES)]
        records.append({"id": f"{n}~{share}", "text": sprinkled(draw, texts[n], share)})
    planted = Counter(record["id"].partition("~")[2] for record in records if "~" in record["id"])
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in records))
    recalls = {}
    for size, of, measure, threshold in SETTINGS:
        signatures = SignatureSettings(signatures="fast", shingle_size=size, shingle_of=of)
        how = {"measure": measure, "prefer": ("longest",), "threshold": threshold}
        out = tmp_path / f"{size}-{of}-{measure}"
        removed = deduplicate([source], out, signatures=signatures, **how).removed
        pairs = {frozenset((name, kept)) for name, (_, kept, _) in removed.items()}
        true = Counter(
            share
            for pair in pairs
            for share in [max(name.partition("~")[2] for name in pair)]
            if len({name.partition("~")[0] for name in pair}) == 1
        )
        recall = {share: true[str(share)] / planted[str(share)] for share in SHARES}
        recalls[size, of, measure] = recall
        shown = ", ".join(f"{share:.1%} {found:.3f}" for share, found in recall.items())
        print(
            f"\n{size} {of}, {measure} {threshold}: {shown}; precision {true.total()}/{len(pairs)}"
        )
        assert true.total() == len(pairs)
    for size, measure, most in (
        (5, "jaccard", 0.02),
        (3, "jaccard", 0.03),
        (5, "containment", 0.02),
    ):
        found = recalls[size, "words", measure]
        assert all(found[share] >= 0.9 for share in SHARES if share <= most)
