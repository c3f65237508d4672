"""How fast near duplicates are found and compared, and how much memory twenty million take; run
with ``-s`` to see the figures.
"""

import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lc_assets.builds.settings.documents import (
    NearDuplicateSettings,
    RemovalSettings,
    SignatureSettings,
)
from lc_assets.builds.tables import read_lines
from lc_assets.execution.local import LocalExecutor
from lc_assets.stages.deduplication.index import BANDS, ROWS
from lc_assets.stages.deduplication.removals import TABLE
from lc_assets.stages.file_lakes import build_for, context_over_files
from lc_assets.text.duplicates.keys import SHINGLE_WORDS, shingle_hashes
from lc_assets_tests.benchmarks.crawl import prose
from lc_assets_tests.benchmarks.timing import say
from lc_assets_tests.stages.deduplication.corpora import sign

N_DOCUMENTS = 2000
N_CHARACTERS = 20_000
SIGNED = {}


def corpus(path):
    """Passages of books; a third are edited copies of others, some of them twice."""
    draw = random.Random(3)  # noqa: S311  text for timing is no secret
    source = prose()[1]
    texts = []
    for number in range(N_DOCUMENTS):
        if number % 3 == 2:
            words = draw.choice(texts).split(" ")
            at = draw.randrange(len(words))
            begin = draw.randrange(len(source) // 2)
            other = source[begin : begin + draw.choice([10, 100, 1000, N_CHARACTERS])]
            texts.append(" ".join([*words[:at], other, *words[at:]]))
        else:
            at = (number * N_CHARACTERS // 3 * 2) % (len(source) - N_CHARACTERS)
            texts.append(source[at : at + N_CHARACTERS])
    path.write_text(
        "".join(
            json.dumps({"id": f"d{n:05d}", "text": text}) + "\n" for n, text in enumerate(texts)
        )
    )
    return texts


def plainly(path, threshold):
    """The obvious way: all in memory, a dictionary of bands, a set of pairs, sets of shingles,
    joined by renaming.
    """
    documents = [json.loads(line) for line in path.read_bytes().splitlines()]
    buckets, pairs = {}, set()
    for number, document in enumerate(documents):
        for band, rows in enumerate(SIGNED[document["text"]].tolist()):
            bucket = buckets.setdefault((band, *rows), [])
            pairs.update((other, number) for other in bucket)
            bucket.append(number)
    sets = {
        number: set(shingle_hashes(documents[number]["text"]).tolist())
        for pair in pairs
        for number in pair
    }
    cluster = list(range(len(documents)))
    for one, other in sorted(pairs):
        a, b = sets[one], sets[other]
        if len(a & b) / len(a | b) >= threshold:
            least, most = sorted((cluster[one], cluster[other]))
            cluster = [least if at == most else at for at in cluster]
    return {documents[number]["id"] for number, root in enumerate(cluster) if root != number}


STAGES = ("near_duplicate_pairs", "removed_documents")


def looked_up(path, folder):
    """CPU-seconds of pairs and removals, once documents are signed, and what these stages built."""
    context = context_over_files(
        [path],
        folder,
        executor=LocalExecutor(),
        settings={
            "document_signatures": SignatureSettings(signatures="fast"),
            "near_duplicate_pairs": NearDuplicateSettings(),
            "removed_documents": RemovalSettings(prefer=("oldest",)),
        },
    )
    for stage in ("signature_index", "contaminated_documents", "snapshot_withdrawals"):
        build_for(context, stage)
    begun = time.process_time()
    built = build_for(context, "removed_documents")
    seconds = time.process_time() - begun
    (pairs,), (removed,) = (built[stage].values() for stage in STAGES)
    return seconds, pairs, removed


def test_from_signatures_to_verified_removals(tmp_path):
    path = tmp_path / "in.jsonl"
    texts = corpus(path)
    SIGNED.update((text, sign(text)) for text in texts)
    n_megabytes = path.stat().st_size / 1e6
    looked_up(path, tmp_path / "compiled")
    seconds, pairs, removed = looked_up(path, tmp_path / "out")
    begun = time.process_time()
    plain = plainly(path, 0.8)
    plain_seconds = time.process_time() - begun
    found = read_lines(removed.published.folder / TABLE)
    assert {line["id"].split("/", 2)[2] for line in found if line["reason"]} == plain
    say(
        "signatures → verified removals",
        n_megabytes,
        "MB of text",
        seconds,
        a_dictionary_and_sets=plain_seconds,
    )
    print(
        f"{pairs.counts.seen:,} candidates, {pairs.counts.seen - pairs.counts.kept:,} refuted, "
        f"{len(plain):,} removed of {len(texts):,}"
    )
    assert plain_seconds > 4 * seconds
    assert n_megabytes / seconds > 20


def by_datatrove(path, folder):
    """CPU-seconds of stages 2 to 4 of datatrove's MinHash with bands as ours, and the ids that it
    keeps; stage 1 is not timed.

    Its words are what spaces separate: spaCy's models are not here, and stages 2 to 4 see no words.
    """
    from datatrove.data import Document
    from datatrove.pipeline.dedup.minhash import (
        MinhashConfig,
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.utils.hashing import HashConfig
    from datatrove.utils.word_tokenizers import WordTokenizer

    class Words(WordTokenizer):
        def word_tokenize(self, text):
            return text.split()

        def sent_tokenize(self, text):
            return [text]

        def span_tokenize(self, text):
            return [(0, len(text))]

    config = MinhashConfig(
        n_grams=SHINGLE_WORDS,
        num_buckets=BANDS,
        hashes_per_bucket=ROWS,
        hash_config=HashConfig(hash_fc="sha1"),
    )
    signatures, buckets, removed = (
        str(folder / name) for name in ("signatures", "buckets", "removed")
    )

    def documents():
        for line in path.read_bytes().splitlines():
            yield Document(**json.loads(line))

    MinhashDedupSignature(signatures, config=config, language=Words()).run(documents(), 0, 1)
    begun = time.process_time()
    for bucket in range(BANDS):
        MinhashDedupBuckets(signatures, buckets, config=config).run(None, bucket, BANDS)
    MinhashDedupCluster(buckets, removed, config=config).run(None, 0, 1)
    kept = {document.id for document in MinhashDedupFilter(removed).run(documents(), 0, 1)}
    return time.process_time() - begun, kept


@pytest.mark.network
@pytest.mark.filterwarnings("ignore")
def test_against_datatrove(tmp_path):
    """It never compares candidates, and sees a text only to hand it on: what comparing costs, and
    what it changes.

    Both run within this process, so neither its start, nor readers and writers of compressed files,
    are in the figure.
    """
    pytest.importorskip("datatrove")
    path = tmp_path / "in.jsonl"
    texts = corpus(path)
    SIGNED.update((text, sign(text)) for text in texts)
    n_megabytes = path.stat().st_size / 1e6
    looked_up(path, tmp_path / "compiled")
    seconds, _, removed = looked_up(path, tmp_path / "out")
    theirs, kept = by_datatrove(path, tmp_path / "datatrove")
    say("signatures → removals", n_megabytes, "MB of text", seconds, datatrove_stages_2_to_4=theirs)
    n_removed = removed.counts.dropped["near duplicate"]
    print(
        f"removed of {len(texts):,}: {n_removed:,} compared, {len(texts) - len(kept):,} by "
        "datatrove, not compared"
    )
    assert abs(len(texts) - len(kept) - n_removed) < 0.3 * n_removed
    assert theirs > seconds / 40


MILLIONS = 20
MOST_MEMORY_MB, MOST_DISK = 4_000, 6 << 30


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_twenty_million_documents_in_bounded_memory(tmp_path):
    """Bands, candidates, true Jaccard indices and clusters of twenty million made-up documents with
    planted families.
    """
    assert shutil.disk_usage(tmp_path).free > 2 * MOST_DISK, "needs some disk"
    folder = tmp_path / "millions"
    module = "lc_assets_tests.benchmarks.millions_of_signatures"
    command = [sys.executable, "-m", module, str(folder), str(MILLIONS * 1_000_000), str(2 << 30)]
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = json.loads(done.stdout)
    print(f"\n{MILLIONS} million documents: {found}")
    assert found["peak_rss_mb"] < MOST_MEMORY_MB
    assert found["pair_precision"] == found["removal_precision"] == 1
    assert found["removal_recall"] > 0.96
    assert found["candidates"] == found["verified"] + found["refuted"]
