"""The bytes that the chain publishes over a tiny upstream are those of version 0.1.0, except for a
mix's index of as many samples as Megatron requests.
"""

import hashlib
import json
from pathlib import Path

from lc_assets.builds.settings.longpack import (
    LongPackSettings,
    PackingSettings,
    ReferralReportSettings,
)
from lc_assets_tests.builders import build_all, tiny_context

GOLDEN = Path(__file__).parents[1] / "golden" / "lake" / "digests.json"
"""SHA-256 by ``stage/partition/file``, written by version 0.1.0 from the same recipe; tables of
texts have been written without a dictionary since.
"""


def test_rows_tokens_indices_and_mixes_keep_their_bytes(tmp_path):
    """Token files, rows, orders, indices, mixes and the decisions before them equal those of
    0.1.0.
    """
    context = tiny_context(
        tmp_path,
        longpack_documents=LongPackSettings(
            wanted=True, max_tokens=600, depth=2, hub_share=1.0, portals="keep"
        ),
        packed_rows=PackingSettings(wanted=True, documents="both", row_tokens=1000),
        referral_report=ReferralReportSettings(wanted=True, sample=3),
    )
    folders = {name: built.published.folder for name, built in build_all(context).items()}
    golden = json.loads(GOLDEN.read_text("utf-8"))
    found = {name: digest_of(folders, name) for name in golden}
    assert found == golden


def digest_of(folders: dict[str, Path], name: str) -> str:
    """SHA-256 of one published file; empty when it is missing."""
    stage, key, file = name.split("/", 2)
    path = folders[f"{stage}/{key}"] / file
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
