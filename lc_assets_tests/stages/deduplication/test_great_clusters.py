"""Many near duplicates of one text: who goes, against every text compared with every other."""

import numpy as np
import pytest

from lc_assets.text.duplicates.keys import shingle_hashes
from lc_assets_tests.stages.deduplication.corpora import deduplicate, drawing, edited, words, write

N_WORDS, SHARES = 300, (0.01, 0.03, 0.05, 0.08, 0.12)
FIRST = {
    "oldest": lambda d: d["date_download"],
    "longest": lambda d: -len(d["text"]),
    "source=part1": lambda d: d["source"] != "part1",
}


def clusters_in(sizes, n_sources):
    """Shuffled documents of clusters of these sizes for each share of words that is replaced."""
    draw = drawing(1)
    bases = [(" ".join(words(draw, N_WORDS)), size, share) for size in sizes for share in SHARES]
    texts = [
        (number, edited(draw, base, share))
        for number, (base, size, share) in enumerate(bases)
        for _ in range(size)
    ]
    draw.shuffle(texts)
    return [
        {"id": f"d{place:05d}", "text": text, "cluster": number}
        | {"date_download": f"20{draw.randrange(10, 24)}", "source": f"part{place % n_sources}"}
        for place, (number, text) in enumerate(texts)
    ]


def alike(texts):
    """The Jaccard index of any two texts, ``(n, n)``."""
    sets = [shingle_hashes(text) for text in texts]
    known, columns = np.unique(np.concatenate(sets), return_inverse=True)
    sizes = np.array([len(found) for found in sets])
    has = np.zeros((len(sets), len(known)), np.float32)
    has[np.repeat(np.arange(len(sets)), sizes), columns] = 1
    shared = (has @ has.T).astype(np.float64)
    return shared / (sizes[:, None] + sizes - shared)


def those_that_go(documents, similarities, threshold):
    """Ids of the documents, the preferred first, that are like one before that stays."""
    stay = []
    for place in range(len(documents)):
        if not (similarities[place, stay] >= threshold).any():
            stay.append(place)
    return {document["id"] for document in documents} - {documents[place]["id"] for place in stay}


SOME = [("oldest", 0.5), ("longest", 0.7), ("source=part1", 0.8), ("oldest", 0.9)]
EVERY = [(prefer, threshold) for prefer in FIRST for threshold in (0.5, 0.7, 0.8, 0.9)]


@pytest.mark.parametrize(
    ("sizes", "settings"),
    [
        ((20, 50, 100), SOME),
        pytest.param(
            (20, 50, 200, 1000), EVERY, marks=[pytest.mark.slow, pytest.mark.timeout(900)]
        ),
    ],
)
def test_of_great_clusters_those_go_that_exact_comparison_removes(tmp_path, sizes, settings):
    """Whichever is preferred, at any threshold; what goes is like the one that it is removed for."""
    documents = clusters_in(sizes, 2)
    sources = [
        write(tmp_path / f"part{n}.jsonl", [d for d in documents if d["source"] == f"part{n}"])
        for n in range(2)
    ]
    clusters = [
        [document for document in documents if document["cluster"] == number]
        for number in range(len(sizes) * len(SHARES))
    ]
    exact = [alike([document["text"] for document in cluster]) for cluster in clusters]
    for prefer, threshold in settings:
        found = deduplicate(
            sources, tmp_path / "out", threshold=threshold, prefer=(prefer,), exact=("url",)
        ).removed
        expected = set()
        for cluster, of_cluster in zip(clusters, exact, strict=True):
            order = {n: (FIRST[prefer](d), d["source"], d["id"]) for n, d in enumerate(cluster)}
            places = sorted(order, key=order.__getitem__)
            ordered = [cluster[n] for n in places]
            expected |= those_that_go(ordered, of_cluster[np.ix_(places, places)], threshold)
            at = {document["id"]: n for n, document in enumerate(cluster)}
            for name in at.keys() & found.keys():
                assert of_cluster[at[name], at[found[name][1]]] >= threshold
        recall = len(expected & found.keys()) / len(expected)
        print(f"{prefer}, {threshold}: {len(expected)} of {len(documents)} go, {recall:.4f}")
        assert recall > (0.985 if threshold < 0.9 else 0.96)
        assert len(found.keys() - expected) < 0.01 * len(expected)
