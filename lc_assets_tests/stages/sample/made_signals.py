"""The signals of the default sample's documents, which come with the package.

``python -m lc_assets_tests.stages.sample.made_signals`` in the repository's root writes them anew, after a change of the pages, the plan or the signals; a test compares them.
"""

from pathlib import Path

import msgspec
import zstandard

from lc_assets.sample import prose
from lc_assets.sample.pages import plan_sample
from lc_assets.sample.writing import DEFAULT_SEED, DEFAULT_SNAPSHOTS
from lc_assets.text.signals.signals import signals_of

HIGHEST_LEVEL = 22


def measured() -> bytes:
    """A line of JSON per distinct document, in the order of digests."""
    plan = plan_sample(prose.novels().pages, snapshots=sorted(DEFAULT_SNAPSHOTS), seed=DEFAULT_SEED)
    pages = {page.digest: page for shard in plan.values() for page in shard}
    return msgspec.json.Encoder().encode_lines(
        [digest, signals_of(page.content)] for digest, page in sorted(pages.items())
    )


if __name__ == "__main__":
    packed = zstandard.ZstdCompressor(level=HIGHEST_LEVEL).compress(measured())
    Path(prose.__file__).with_name(prose.SIGNALS).write_bytes(packed)
