"""What it costs to verify the inputs of each stage: ``pytest -s -m "benchmark and slow"
lc_assets_tests/benchmarks/test_verified_reads_speed.py``.

Every stage is built with and without verification in turn, in one process, over a sample of
`CHARS` characters of books. The cost is what the verifier itself took, as the difference of two
builds of several seconds is mostly noise; both are printed.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from lc_assets.builds import building, stage as stages
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import DecontaminationSettings
from lc_assets.builds.settings.documents import (
    CleanDocumentsSettings,
    DocumentSignalSettings,
    FilteringSettings,
    RawSettings,
)
from lc_assets.builds.settings.longpack import (
    LengthBucketSettings,
    LongPackSettings,
    PackingSettings,
    ReferralReportSettings,
)
from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.builds.stage import BuildContext
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake import versions
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.lake.versions import VERIFIER
from lc_assets.sample.pages import Page, Texts
from lc_assets.sample.writing import CRAWL, DEFAULT_SNAPSHOTS, write_sample
from lc_assets.stages.catalogue import STAGES
from lc_assets_tests.benchmarks.crawl import crawl_texts, prose
from lc_assets_tests.builders import build_all

CHARS = int(os.environ.get("LC_CHARS", "60_000_000"))
ROUNDS, SECONDS = 3, 1.0
"""A stage is built so often, or so long."""
LONG_CHARS = 400_000
"""A document of so many characters fills a row."""
N_ITEMS = 200
"""Evaluation items, of words in an order that no document has."""
MOST_SHARE = 0.03
FEW_SECONDS = 0.002
"""Allowed to every stage: the smallest only copy a few tables."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@dataclass(slots=True)
class Took:
    """CPU seconds of builds with and without verification, those of the verifier, and the bytes
    that it read; by round.
    """

    with_it: list[float] = field(default_factory=list)
    without: list[float] = field(default_factory=list)
    verifying: list[float] = field(default_factory=list)
    n_bytes: int = 0

    @property
    def share(self) -> float:
        """What verification adds to a build."""
        return min(self.verifying) / min(self.without)


@pytest.fixture(scope="module")
def context(tmp_path_factory) -> BuildContext:
    """Every stage, built over two snapshots; half of the text in documents as long as a row."""
    folder = tmp_path_factory.mktemp("speed")
    source, texts = prose()[1], list(crawl_texts(CHARS // 2))
    n_long = CHARS // 2 // LONG_CHARS
    step = (len(source) - LONG_CHARS) // max(n_long, 1)
    texts += [source[number * step :][:LONG_CHARS] for number in range(n_long)]
    pages = tuple(
        Page(
            url=f"https://site{number % 97}.invalid/{number}",
            title=f"Page {number}",
            lines=tuple(text.split("\n")),
        )
        for number, text in enumerate(texts)
    )
    write_sample(
        folder / "upstream",
        texts=Texts(pages, {}, {}),
        executor=LocalExecutor(workers=2),
    )
    items = folder / "items.jsonl"
    items.write_bytes(
        b"".join(
            msgspec.json.encode({"question": " ".join(reversed(text.split()[:30]))}) + b"\n"
            for text in texts[:N_ITEMS]
        )
    )
    made = BuildContext(
        lake=Lake(folder / "lake"),
        upstream=Upstream(str(folder / "upstream")),
        recipe=Recipe(
            raw_snapshot=RawSettings(languages=("en",)),
            filtered_documents=FilteringSettings(rules="none", min_words=0),
            contaminated_documents=DecontaminationSettings(against=(str(items),)),
            token_grid=GriddingSettings(heldout_fraction=0.05),
            longpack_documents=LongPackSettings(wanted=True),
            packed_rows=PackingSettings(wanted=True),
            referral_report=ReferralReportSettings(wanted=True),
            clean_documents=CleanDocumentsSettings(wanted=True),
            document_signals=DocumentSignalSettings(lines=True),
            length_buckets=LengthBucketSettings(wanted=True),
        ),
        executor=LocalExecutor(),
        crawl=Upstream(str(folder / "upstream" / CRAWL)),
    )
    build_all(made, DEFAULT_SNAPSHOTS)
    return made


@contextlib.contextmanager
def removed(partition, aside: Path) -> Iterator[None]:
    """A partition as if it had never been built; as before when the block ends."""
    partition.folder.rename(aside)
    try:
        yield
    finally:
        shutil.rmtree(partition.folder, ignore_errors=True)
        aside.rename(partition.folder)


@contextlib.contextmanager
def metered(took: Took) -> Iterator[None]:
    """Within the block of `verified_reads`: measure the verifier, and the checksums of receipts."""
    verify, check = VERIFIER.get(), versions.has_valid_checksum
    seconds, read = list[float](), dict[Path, int]()

    def timed(home, files):
        read.update({home / fact.path: fact.n_bytes for fact in files})
        with taking(seconds):
            return verify(home, files)

    def receipt(content):
        with taking(seconds):
            return check(content)

    token, versions.has_valid_checksum = VERIFIER.set(timed), receipt
    try:
        yield
    finally:
        VERIFIER.reset(token)
        versions.has_valid_checksum = check
        took.verifying.append(sum(seconds))
        took.n_bytes = sum(read.values())


@contextlib.contextmanager
def nothing_verified(*_) -> Iterator[None]:
    """In place of `verified_reads`: build as if nothing could be damaged."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(versions, "has_valid_checksum", lambda _: True)
        yield


@contextlib.contextmanager
def taking(seconds: list[float]) -> Iterator[None]:
    """Note the CPU seconds of a block."""
    begun = time.process_time()
    yield
    seconds.append(time.process_time() - begun)


def test_verification_costs_little_in_every_stage(context, tmp_path, monkeypatch):
    """A line per stage; at most `MOST_SHARE` of its time, and `FEW_SECONDS`. All work is done in
    this process, whose time is measured.
    """
    monkeypatch.setattr(building, "for_inputs_of", lambda executor, _: executor)
    verified, found = stages.verified_reads, {}
    key = {"snapshot": max(DEFAULT_SNAPSHOTS), "mix": "by-tokens", "nothing": GLOBAL}
    for stage in STAGES:
        partition = context.lake.partition(stage.name, key[stage.partitioned_by])
        took = found[stage.name] = Took()

        @contextlib.contextmanager
        def metering(executor, own, took=took):
            with verified(executor, own), metered(took):
                yield

        while len(took.without) < ROUNDS or sum(took.without) < SECONDS:
            for block, seconds in (
                (metering, took.with_it),
                (nothing_verified, took.without),
            ):
                monkeypatch.setattr(stages, "verified_reads", block)
                with removed(partition, tmp_path / "aside"), taking(seconds):
                    stage.build(context, partition.folder.name)
        print(
            f"{stage.name:22s} {min(took.with_it):8.3f} s, {min(took.without):8.3f} s without; "
            f"verifying {took.n_bytes / 1e6:7.2f} MB in {min(took.verifying):7.4f} s: "
            f"{100 * took.share:5.2f} %"
        )
    assert {
        name: took.share
        for name, took in found.items()
        if min(took.verifying) > MOST_SHARE * min(took.without) + FEW_SECONDS
    } == {}
