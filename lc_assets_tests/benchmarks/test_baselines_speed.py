"""How fast the baselines are, each against what one would write first, with the same result; run
with ``-s`` to see the figures.
"""

import gzip
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from lc_assets.execution.local import LocalExecutor
from lc_assets.packing.cutting import decomposed
from lc_assets.packing.similarity import Similarity, _placed
from lc_assets.packing.term_vectors import UNIT, PageTerms, term_vectors
from lc_assets.packing.upsampling import upsampled
from lc_assets.randomness import keyed_u64
from lc_assets.text.duplicates.keys import term_counts
from lc_assets_tests.benchmarks.crawl import crawl_texts
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.reference import packing as reference

N_DOCS = 200_000
N_CHARS = 4_000_000
ONE = LocalExecutor(workers=1)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The manuals beside the checkout, or made-up pages: a file, the texts, and what they are."""
    folder = next(
        (
            path / "shared/data/hyperlinked"
            for path in Path(__file__).resolve().parents
            if (path / "shared/data").is_dir()
        ),
        None,
    )
    files = sorted(folder.glob("pages_*.jsonl.gz")) if folder else []
    texts = [
        json.loads(line)["text"]
        for file in files
        for line in gzip.decompress(file.read_bytes()).splitlines()
    ]
    kind = "pages of manuals" if texts else "made-up pages"
    texts = [text for text in (texts or list(crawl_texts(N_CHARS))) if text.strip()]
    path = tmp_path_factory.mktemp("pages") / "pages.jsonl.gz"
    path.write_bytes(
        gzip.compress(
            "".join(
                f"{json.dumps({'id': str(n), 'text': text})}\n" for n, text in enumerate(texts)
            ).encode(),
            1,
        )
    )
    return path, texts, kind


def test_upsampling_by_source():
    drawn = np.random.default_rng(0)
    lengths = drawn.lognormal(7, 1.5, N_DOCS).astype(np.int64) + 1
    sources, keys = [f"s{n}" for n in drawn.integers(0, 5, N_DOCS)], [str(n) for n in range(N_DOCS)]
    settings = {
        "threshold": 8192,
        "keep_short": 0.1,
        "budget_tokens": int(lengths.sum()),
        "seed": 1,
    }
    ours, taken = cpu_seconds(lambda _: upsampled(lengths, sources, keys, **settings), rounds=2)
    plain, other = cpu_seconds(
        lambda _: walked(lengths.tolist(), sources, keys, **settings), rounds=1
    )
    assert taken.tolist() == other
    say("upsampling", N_DOCS / 1e6, "M documents", ours, walk_along_each_line=plain)
    assert plain > ours


def walked(lengths, sources, keys, *, threshold, keep_short, budget_tokens, seed):
    """One document at a time, from the front of each source's line."""
    rank, chance = (
        dict(zip(keys, keyed_u64(what, seed=seed, keys=keys).tolist(), strict=True))
        for what in ("upsampling order", "keep short")
    )
    taken, total = [0] * len(keys), sum(lengths)
    for source in sorted(set(sources)):
        line = sorted(
            (doc for doc in range(len(keys)) if sources[doc] == source),
            key=lambda doc: rank[keys[doc]],
        )
        is_long = [doc for doc in line if lengths[doc] >= threshold]
        going = iter(
            [
                doc
                for doc in line
                if lengths[doc] >= threshold or chance[keys[doc]] < keep_short * 2**64
            ]
        )
        left = budget_tokens * sum(lengths[doc] for doc in line) // total
        while True:
            doc = next(going, None)
            if doc is None:
                going = iter(is_long)
                continue
            if lengths[doc] > left:
                break
            taken[doc] += 1
            left -= lengths[doc]
    return taken


def test_pieces_of_two_to_the_k():
    lengths = np.random.default_rng(1).lognormal(7, 1.5, N_DOCS).astype(np.int64)
    ours, pieces = cpu_seconds(lambda _: decomposed(lengths, shortest=8, longest=13))
    plain, other = cpu_seconds(lambda _: cut_by_hand(lengths.tolist()), rounds=1)
    assert (
        list(
            zip(
                pieces.document.tolist(),
                pieces.start.tolist(),
                np.log2(pieces.lengths).astype(int).tolist(),
                strict=True,
            )
        )
        == other
    )
    say("pieces of 256 to 8,192 tokens", N_DOCS / 1e6, "M documents", ours, loop=plain)
    assert plain > 2 * ours


def cut_by_hand(lengths):
    pieces = []
    for document, n_tokens in enumerate(lengths):
        start, left = 0, n_tokens
        for exponent in range(13, 7, -1):
            while left >= 1 << exponent:
                pieces.append((document, start, exponent))
                start, left = start + (1 << exponent), left - (1 << exponent)
    return pieces


def test_similar_pages_against_a_matrix_of_all_pairs(pages):
    """The same packs, from the same vectors; the matrix is of all pages by all terms, and then all
    pages by all pages.
    """
    _, texts, kind = pages
    counted = [term_counts(text) for text in texts]
    counting, _ = cpu_seconds(lambda _: [term_counts(text) for text in texts], rounds=1)
    counts = reference.page_terms(counted)
    weighing, vectors = cpu_seconds(lambda _: term_vectors(counts), rounds=2)
    lengths = np.array([len(text) // 4 for text in texts], np.int64)
    _placed(vectors, lengths, 49_152, Similarity())
    ours, packs = cpu_seconds(lambda _: _placed(vectors, lengths, 49_152, Similarity()))
    matrix, other = cpu_seconds(lambda _: packed_by_matrix(vectors, lengths, 49_152), rounds=1)
    assert packs.order.tolist() == other
    say(
        f"similar {kind}, placing",
        len(texts) / 1e3,
        "thousand pages",
        ours,
        matrix_of_all_pairs=matrix,
    )
    n_mb = sum(map(len, texts)) / 1e6
    print(
        f"counting words: {n_mb / counting:.0f} MB, weighing: {len(texts) / weighing / 1e3:.0f} "
        "thousand pages per CPU-second"
    )
    assert matrix > ours


def packed_by_matrix(vectors: PageTerms, lengths, max_tokens):
    """SPLiCe over a dense matrix of cosines: exact, because weights are whole numbers."""
    terms, number = np.unique(vectors.terms, return_inverse=True)
    dense = np.zeros((len(vectors), len(terms)))
    dense[np.repeat(np.arange(len(vectors)), np.diff(vectors.begins)), number] = vectors.weights
    cosines = dense @ dense.T
    cosines[cosines > round(0.95 * UNIT**2)] = 0
    used, order = np.zeros(len(vectors), bool), []
    for root in range(len(vectors)):
        if used[root]:
            continue
        at, room = len(order), max_tokens - int(lengths[root])
        order.append(root)
        used[root] = True
        while at < len(order):
            scores = np.where(used | (lengths > room), 0, cosines[order[at]])
            for page in np.argsort(-scores, kind="stable")[:3].tolist():
                if scores[page] > 0 and lengths[page] <= room:
                    order.append(page)
                    used[page] = True
                    room -= int(lengths[page])
            at += 1
    return order


def copied(path, out):
    with gzip.open(path) as source, gzip.open(out, "wb", 6) as target:
        lines = [json.loads(line) for line in source]
        target.writelines(json.dumps(line).encode() + b"\n" for line in lines)
    return len(lines)


@pytest.mark.slow
def test_a_hundred_thousand_pages(pages):
    """Memory and time of placing grow with the pages: words drawn anew, so that no page is a
    copy.
    """
    _, texts, _ = pages
    counts = reference.page_terms(term_counts(text) for text in texts)
    vectors = term_vectors(counts)
    n_copies = 100_000 // len(texts) + 1
    drawn = np.random.default_rng(0)
    parts = []
    for _ in range(n_copies):
        begins = vectors.begins.tolist()
        kept = [
            np.sort(drawn.choice(np.arange(a, b), (b - a) // 2, replace=False))
            for a, b in pairwise(begins)
        ]
        parts += [(vectors.terms[own], vectors.weights[own]) for own in kept]
    many = reference.page_terms(parts, np.int16)
    lengths = np.tile(np.array([len(text) // 4 for text in texts], np.int64), n_copies)
    ours, packs = cpu_seconds(lambda _: _placed(many, lengths, 49_152, Similarity()), rounds=1)
    assert len(packs.order) == len(many) >= 100_000
    print(f"\nplacing {len(many):,} pages: {ours:.1f} CPU-seconds, {len(packs):,} packs")
