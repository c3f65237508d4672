"""A lake built over one upstream and then over another, so that each partition has an old and a new
version.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lc_assets.builds.checks import documents_files
from lc_assets.builds.settings.documents import CleanDocumentsSettings, DocumentSignalSettings
from lc_assets.builds.settings.longpack import (
    LengthBucketSettings,
    LongPackSettings,
    ReferralReportSettings,
)
from lc_assets.builds.stage import BuildContext
from lc_assets.builds.tables import read_table
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.megatron.gpt_index import read_gpt_index
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.lake.lake import GLOBAL, Published
from lc_assets.lake.partition import CURRENT, Partition
from lc_assets.lake.upstream import Upstream
from lc_assets.loaders.packed import PackedLoader, open_packed
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.catalogue import STAGES, stage_named
from lc_assets.stages.documents.raw_snapshot import read_manifest
from lc_assets.stages.mixes.blended_mix import read_mix
from lc_assets.vocabulary import SPLITS
from lc_assets_tests.builders import CRAWL, SNAPSHOTS, build_all, tiny_context, tiny_upstream

OLD = SNAPSHOTS[0]
SAMPLE = ("raw_snapshot", "filtered_documents", "token_grid", "longcrawl", "blended_mix")
"""Stages that the default test run samples: one file, shards, arrays, all snapshots, a mix."""
MIX = "one-sided"


def sampled(stages: Iterable[str]) -> list[Any]:
    """Return stages as parameters of a test; those beyond `SAMPLE` are marked slow."""
    return [
        pytest.param(stage, marks=[] if stage in SAMPLE else pytest.mark.slow) for stage in stages
    ]


def key_of(stage: str) -> str:
    """The partition of a stage that tests build again and again."""
    return {"snapshot": OLD, "mix": MIX, "nothing": GLOBAL}[stage_named(stage).partitioned_by]


@dataclass(frozen=True, slots=True)
class TwoVersions:
    """The build context over the newer upstream, and both versions of every partition by name."""

    context: BuildContext
    old: dict[str, Published]
    new: dict[str, Published]

    def partition(self, stage: str) -> Partition:
        """Return the partition of a stage that tests rebuild."""
        return self.context.lake.partition(stage, key_of(stage))

    def newer(self, stage: str) -> Published:
        """Return the version that a build must publish."""
        return self.new[f"{stage}/{key_of(stage)}"]

    def as_before(self, stage: str, *, published: bool) -> Published | None:
        """Reset a partition to its state before the new version: the old one published, or none.

        A stage that does not depend on the upstream, such as an empty list of withdrawals, has the
        same version twice; then none is published.
        """
        partition, name = self.partition(stage), f"{stage}/{key_of(stage)}"
        shutil.rmtree(self.new[name].home, ignore_errors=True)
        if published and self.old[name].home != self.new[name].home:
            partition.point_at(self.old[name])
        else:
            (partition.folder / CURRENT).unlink(missing_ok=True)
        return partition.current()

    def build(self, stage: str) -> Published:
        """Build the partition in this process."""
        return stage_named(stage).build(self.context, key_of(stage)).published


def all_wanted(folder: Path, upstream: Path) -> BuildContext:
    """Return a build context whose recipe enables every stage."""
    settings = {
        "longpack_documents": LongPackSettings(wanted=True, max_tokens=600, portals="keep"),
        "referral_report": ReferralReportSettings(wanted=True),
        "clean_documents": CleanDocumentsSettings(wanted=True),
        "document_signals": DocumentSignalSettings(lines=True),
        "length_buckets": LengthBucketSettings(wanted=True, edges=(50, 400)),
    }
    context = tiny_context(folder, upstream=upstream, **settings)
    assert all(found.wanted(context.recipe) for found in STAGES)
    return context


def build_two_versions(folder: Path) -> TwoVersions:
    """Build everything over an old and a new upstream."""
    context = all_wanted(folder, tiny_upstream(folder / "old", seed=1))
    old = build_all(context)
    root = tiny_upstream(folder / "new")
    context = replace(context, upstream=Upstream(str(root)), crawl=Upstream(f"{root}/{CRAWL}"))
    new = build_all(context)
    return TwoVersions(
        context,
        {name: found.published for name, found in old.items()},
        {name: found.published for name, found in new.items()},
    )


def read_all_of(published: Published) -> None:
    """Open and read a version's files through the public readers."""
    match published.receipt.fingerprint.stage:
        case "raw_snapshot":
            assert len(read_manifest(published)) == 3
        case "filtered_documents":
            assert (
                sum(read_table(path).num_rows for path in documents_files(published.folder)) == 27
            )
        case "token_documents":
            readers = [
                MegatronReader(path.with_suffix("")) for path in published.folder.glob("*.idx")
            ]
            assert sum(len(ids) > 0 for reader in readers for ids in reader) == 24
        case "token_grid":
            assert (
                sum(len(GridReader(published.folder / f"{split}.zarr").read()) for split in SPLITS)
                == 24
            )
        case "longcrawl" | "longcrawl_flat":
            assert sum(len(open_rows(published.folder, split).read()) for split in SPLITS) == 48
        case "megatron_rows":
            assert (
                len(list(MegatronReader(published.folder / "train")))
                == published.receipt.counts.extra["train rows"]
            )
            assert read_gpt_index(published.folder / "train").n_samples > 0
        case "packing_tokens":
            readers = [
                MegatronReader(path.with_suffix("")) for path in published.folder.glob("*.idx")
            ]
            assert sum(len(reader) for reader in readers) == 24
        case "packed_rows":
            for split in SPLITS:
                assert PackedLoader(open_packed(published.folder, split), batch_rows=1)[
                    0
                ].mask.any()
        case "blended_mix":
            assert (
                read_mix(published.folder).n_samples
                == len(read_npy(published.folder / "dataset_index.npy"))
                == 60
            )
        case _:
            tables = list(published.folder.glob("*.parquet"))
            assert sum(read_table(path).num_columns for path in tables) > 0 or not tables


def left_behind(partition: Partition) -> list[Path]:
    """Return the staging and scratch folders that a partition still holds."""
    return [*partition.folder.rglob(".staging-*"), *partition.folder.rglob(".scratch")]
