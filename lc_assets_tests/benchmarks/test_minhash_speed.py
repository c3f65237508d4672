"""How fast texts are signed and shingled, and how well signatures estimate; run with ``-s`` to see
the figures.

MB are of the raw text's UTF-8, and everything from the raw text on is timed. Compiling is timed
apart.
"""

import contextlib
import functools
import subprocess
import sys
import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from lc_assets.builds.checks import DOCUMENTS_SUFFIX
from lc_assets.builds.table_writer import TableWriter
from lc_assets.text.duplicates.keys import SHINGLE_WORDS, jaccard, shingle_hashes
from lc_assets.text.duplicates.minhash import FAST, RPV2, signature
from lc_assets.text.words import normalize
from lc_assets_tests.benchmarks.crawl import crawl_texts, prose
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.named_draws import rng_for
from lc_assets_tests.reference.minhash import (
    bands_of,
    estimated_similarity,
    plain_grams,
    plain_signature,
)

N_CHARS = 6_000_000
EVERY = 12
"""The slow sides do every twelfth text; rates, not seconds, are compared."""
FRACTION_REPLACED = (0, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2)


@functools.cache
def texts() -> tuple[str, ...]:
    return tuple(crawl_texts(N_CHARS))


def megabytes(some) -> float:
    return sum(len(text.encode()) for text in some) / 1e6


def rate(work, some, rounds=1):
    """MB per CPU-second of a function of one text, and what it gave."""
    seconds, found = cpu_seconds(lambda _: [work(text) for text in some], rounds)
    return megabytes(some) / seconds, found


@pytest.fixture(scope="module", autouse=True)
def compiled():
    began = time.process_time()
    for scheme in (RPV2, FAST):
        signature("a b c d e f g h i j k l m n é", scheme)
    print(
        f"\ncompiling, or reading the cache: {time.process_time() - began:.1f} CPU-seconds; text: "
        f"{prose()[0]}, {megabytes(texts()):.1f} MB"
    )


@pytest.mark.parametrize(("scheme", "floor"), [(RPV2, 3), (FAST, 15)], ids=["rpv2", "fast"])
def test_signatures_are_the_twins_and_faster(scheme, floor):
    """The reference is what `datasketch` does: hash each n-gram in Python, take the minima in
    NumPy.
    """
    sample = texts()[::EVERY]
    fast, _ = rate(
        lambda text: (numbers := signature(text, scheme)) is not None and bands_of(numbers),
        texts(),
        rounds=3,
    )
    reference, plain = rate(lambda text: plain_signature(text, scheme), sample)
    for left, right in zip((signature(text, scheme) for text in sample), plain, strict=True):
        assert (left is None) == (right is None)
        assert left is None or np.array_equal(left, right)
    print(
        f"\nMinHash {scheme.label}: {fast:.1f} MB per CPU-second, bands included; NumPy reference "
        f"{reference:.2f} ({fast / reference:.1f} ×)"
    )
    assert fast > floor * reference


def test_shingles_are_the_twins_and_faster():
    sample = texts()[::EVERY]
    fast, _ = rate(shingle_hashes, texts(), rounds=3)
    reference, plain = rate(
        lambda text: np.unique(plain_grams(normalize(text).split(), SHINGLE_WORDS)), sample
    )
    assert all(
        np.array_equal(shingle_hashes(text), other)
        for text, other in zip(sample, plain, strict=True)
    )
    sets = [shingle_hashes(text) for text in texts()]
    seconds, _ = cpu_seconds(lambda _: [jaccard(left, right) for left, right in pairwise(sets)])
    say("Jaccard of two sets", 2 * sum(map(len, sets)) / 1e6, "M shingles", seconds)
    print(
        f"\nshingles: {fast:.1f} MB per CPU-second; reference {reference:.2f} "
        f"({fast / reference:.1f} ×)"
    )
    assert fast > 10 * reference


def pairs():
    """Two hundred pairs of texts, more and more words of the one replaced in the other."""
    draw = rng_for("pairs", seed=3)
    source = prose()[1].split()
    for number in range(200):
        at = int(draw.integers(len(source) - 2000))
        left = source[at : at + 1000]
        share = FRACTION_REPLACED[number % len(FRACTION_REPLACED)]
        right = [
            source[int(draw.integers(len(source)))] if draw.random() < share else word
            for word in left
        ]
        yield " ".join(left), " ".join(right)


def errors_of(estimate):
    errors = [
        estimate(left, right) - jaccard(shingle_hashes(left), shingle_hashes(right))
        for left, right in pairs()
    ]
    return float(np.sqrt(np.mean(np.square(errors)))), float(np.mean(errors))


def test_estimates_are_as_good_as_those_of_redpajama():
    """Root of the mean squared error against the true Jaccard index, over 200 pairs from equal to
    unlike.
    """
    found = {
        scheme.label: errors_of(
            lambda *both, scheme=scheme: estimated_similarity(
                *(signature(text, scheme) for text in both)
            )
        )
        for scheme in (RPV2, FAST)
    }
    print(
        "\n"
        + "; ".join(
            f"{label}: RMSE {rmse:.4f}, mean error {bias:+.4f}"
            for label, (rmse, bias) in found.items()
        )
    )
    assert all(0.01 < rmse < 0.045 for rmse, _ in found.values())


@pytest.mark.network
def test_faster_than_rensa_and_as_good():
    """Rensa is given n-grams; making them from raw text is Python's, as in every program that uses
    it.
    """
    rensa = pytest.importorskip("rensa")

    def peer(text):
        words = normalize(text).split()
        made = rensa.RMinHash(num_perm=128, seed=42)
        made.update(
            [
                " ".join(words[at : at + SHINGLE_WORDS])
                for at in range(len(words) - SHINGLE_WORDS + 1)
            ]
        )
        return made

    theirs, _ = rate(peer, texts())
    ours, _ = rate(lambda text: signature(text, FAST), texts(), rounds=3)
    exact, _ = rate(lambda text: signature(text, RPV2), texts(), rounds=3)
    their_error, _ = errors_of(lambda left, right: peer(left).jaccard(peer(right)))
    our_error, _ = errors_of(
        lambda left, right: estimated_similarity(signature(left, FAST), signature(right, FAST))
    )
    print(
        f"\nfast {ours:.1f}, exact {exact:.1f}, rensa {theirs:.1f} MB per CPU-second "
        f"({ours / theirs:.1f} × and {exact / theirs:.1f} ×)"
    )
    print(f"RMSE: fast {our_error:.4f}, rensa {their_error:.4f}")
    assert ours > 3 * theirs
    assert our_error < 0.045


@pytest.mark.network
def test_faster_than_datatrove(monkeypatch):
    """Its n-grams, its permutations, SHA-1; its words at white space, which costs it less than
    spaCy. Nothing read or written.
    """
    minhash = pytest.importorskip("datatrove.pipeline.dedup.minhash")
    from datatrove.utils.hashing import HashConfig

    monkeypatch.setattr(
        minhash, "load_word_tokenizer", lambda _: SimpleNamespace(word_tokenize=str.split)
    )
    hashing = HashConfig(precision=64, hash_fc="sha1")
    config = minhash.MinhashConfig(
        n_grams=SHINGLE_WORDS, num_buckets=14, hashes_per_bucket=9, hash_config=hashing
    )
    step = minhash.MinhashDedupSignature(output_folder="memory://signatures", config=config)
    theirs, _ = rate(
        lambda text: step.get_signature(step.get_shingles(text)),
        [text for text in texts()[::EVERY] if len(text) < 100_000],
    )
    ours, _ = rate(lambda text: signature(text, RPV2), texts())
    print(
        f"\nexact {ours:.1f} MB per CPU-second, datatrove's signatures {theirs:.2f} "
        f"({ours / theirs:.0f} ×)"
    )
    assert ours > 3 * theirs


SIGN_ONE_SHARD = """
import sys
from pathlib import Path
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.lake.upstream import Upstream
from lc_assets.stages.deduplication.signing import SignTask, sign_shard
from lc_assets_tests.memory import peak_bytes
from lc_assets.text.duplicates.keys import Shingles
documents, folder = Path(sys.argv[1]), Path(sys.argv[2])
shingles = Shingles() if sys.argv[3] == "lc-fast/1" else None
upstream = Upstream(str(folder))
task = SignTask(
    documents=documents, folder=folder, upstream=upstream, published=None, shingles=shingles,
    sketched=None, keyed=False, privacy=PrivacySettings(),
)
counts = sign_shard(task)
print(counts.seen, peak_bytes() >> 20)
"""


def write_shard(path: Path, some: Iterable[str]) -> None:
    """Write texts as `filtered_documents` does."""
    schema = pa.schema([("id", pa.string()), ("raw_content", pa.string())])
    with contextlib.closing(TableWriter(path, schema)) as table:
        for line, text in enumerate(some):
            name = f"2023-06/0000/en_head.json.gz/{line}"
            table.add({"id": name, "raw_content": text}, n_bytes=len(text))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [RPV2, FAST], ids=["rpv2", "fast"])
def test_memory_does_not_grow_with_the_shard(tmp_path, scheme):
    """A worker's peak in MiB for 10,000 and for 20,000 documents; and for one text of 50 million
    characters.
    """
    sample = [text[:5000] for text in texts()]

    def peak(name, some):
        documents = tmp_path / f"{name}{DOCUMENTS_SUFFIX}"
        write_shard(documents, some)
        words = [sys.executable, "-c", SIGN_ONE_SHARD, documents, tmp_path, scheme.label]
        n_seen, mebibytes = map(
            int, subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
        )
        return n_seen, mebibytes

    some, many = (
        peak(f"{n}", (sample[at % len(sample)] for at in range(n))) for n in (10_000, 20_000)
    )
    long = peak("long", [" ".join(texts() * 10)[:50_000_000]])
    print(
        f"\n{scheme.label}: {some[0]:,} documents {some[1]} MiB, {many[0]:,} {many[1]} MiB; one "
        f"of 50 million characters {long[1]} MiB"
    )
    assert many[1] < some[1] + 50
    assert max(many[1], long[1]) < 1000
