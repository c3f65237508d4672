"""Records of a sample: a page as a document of RedPajama-V2.

Fields say what CCNet's would, but for these, which nobody measured: ``bucket`` comes from the plan;
``perplexity`` is drawn between the percentiles of cc_net's ``cutoff.csv`` that bound the bucket (no
language model was asked); ``language`` is what the source of the text says and ``language_score``
is drawn from 0.90 to 0.99; ``date_download`` is drawn from the ten days that begin with the
snapshot's week; ``cc_segment`` begins with ``crawl-data/LC-SAMPLE-``.

Pure: values in, values out; draws are keyed by the document's address.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from lc_assets.formats.redpajama.documents import DocumentRecord
from lc_assets.sample.page import Page
from lc_assets.sample.plan import fraction
from lc_assets.vocabulary import Shard, SnapshotId

PERPLEXITIES: Mapping[str, tuple[float, float, float]] = {
    "en": (160.0, 340.0, 520.0),
    "de": (150.0, 370.0, 590.0),
    "fr": (70.0, 180.0, 330.0),
    "es": (70.0, 180.0, 290.0),
    "it": (100.0, 220.0, 360.0),
}
"""Percentiles 1, 30 and 60 of perplexity by language, as in cc_net's ``cutoff.csv``: head ends at
the 30th, middle at the 60th.
"""

_DATED = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
_UNDATED = datetime(2000, 1, 1, tzinfo=UTC)


def record_of(page: Page, shard: Shard, *, seed: int) -> DocumentRecord:
    """The record of a page in a shard."""
    return DocumentRecord(
        url=page.url,
        date_download=date_of(page.url, shard.snapshot, seed=seed),
        digest=page.digest,
        length=page.n_chars,
        nlines=len(page.kept),
        source_domain=page.domain,
        title=page.title,
        raw_content=page.content,
        cc_segment=f"crawl-data/LC-SAMPLE-{shard.snapshot}/segments/{shard.number:04d}/wet/LC-SAMPLE-{shard.number:05d}.warc.wet.gz",
        original_nlines=len(page.lines),
        original_length=len(page.record),
        line_ids=list(page.kept),
        language=page.language,
        language_score=(90 + int(10 * fraction("language score", seed=seed, key=page.url))) / 100,
        perplexity=_perplexity(shard, fraction("perplexity", seed=seed, key=page.url)),
        bucket=shard.bucket,
    )


def date_of(url: str, snapshot: SnapshotId, *, seed: int) -> str:
    """When the page at an address was crawled."""
    return _date(snapshot, fraction("date", seed=seed, key=url))


def _perplexity(shard: Shard, drawn: float) -> float:
    first, head, middle = PERPLEXITIES[shard.language]
    low, high = (first, head) if shard.bucket == "head" else (head, middle)
    return int(10 * (low + (high - low) * drawn)) / 10


def _date(snapshot: SnapshotId, drawn: float) -> str:
    dated = _DATED.fullmatch(snapshot)
    begin = _UNDATED
    if dated and dated[1] != "0000":
        begin = datetime(int(dated[1]), 1, 1, tzinfo=UTC) + timedelta(
            weeks=(int(dated[2]) - 1) % 53
        )
    return (begin + timedelta(seconds=int(10 * 86_400 * drawn))).strftime("%Y-%m-%dT%H:%M:%SZ")
