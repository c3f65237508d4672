"""Releases: a name means the same bytes, whatever is published later; what is gone or changed of
one is told.
"""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from lc_assets.errors import BadInput, CorruptFile, Mismatch, NotPublished
from lc_assets.lake.releases import (
    Gone,
    gone_of,
    lake_of_release,
    publish_gone,
    read_release,
    release_names,
)
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.lineage import tracing, whereabouts
from lc_assets.stages.releases.releasing import release, release_damage
from lc_assets.vocabulary import SPLITS
from lc_assets_tests.faults import flipped
from lc_assets_tests.loaders.range_server import served
from lc_assets_tests.withdrawing import ALONE_OLD, OLD, id_of


@pytest.fixture
def lake(lake_with_copies, tmp_path):
    return lake_with_copies.copy(tmp_path)


def all_rows(root, **named):
    return {split: open_rows(root, split, **named).read() for split in SPLITS}


def change(lake):
    """Publish other versions: without one document, then with another seed."""
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    lake.build()
    gridding = msgspec.structs.replace(lake.context.recipe.token_grid, seed=5)
    other = replace(
        lake.context, recipe=msgspec.structs.replace(lake.context.recipe, token_grid=gridding)
    )
    return replace(lake, context=other).build()


def test_a_release_is_the_same_rows_for_ever(lake):
    """Other rows, another order, other mixes are published: opened by the release, every token is
    what it was.
    """
    before = all_rows(lake.lake.root)
    release(lake.lake, "v1")
    change(lake)
    now, then = all_rows(lake.lake.root), all_rows(lake.lake.root, release="v1")
    assert any(
        now[split].shape != before[split].shape or (now[split] != before[split]).any()
        for split in SPLITS
    )
    for split in SPLITS:
        np.testing.assert_array_equal(then[split], before[split])
    assert release_damage(lake.lake, "v1") == []


def test_a_release_holds_order_grids_megatron_mixes_and_indices(lake):
    found = release(lake.lake, "v1")
    stages = {
        "longcrawl_flat",
        "token_grid",
        "row_lineage",
        "longcrawl",
        "megatron_rows",
        "blended_mix",
        "packed_rows",
    }
    assert {name.partition("/")[0] for name in found.pins} == stages
    for name, pin in found.pins.items():
        published = lake.published(name)
        assert (pin.version, pin.digest) == (published.version, published.digest)
    assert found.counts["documents"] == len(lake.served())
    assert {
        "raw_snapshot/2023-06",
        "filtered_documents/2023-06",
        "token_documents/2023-14",
        "snapshot_withdrawals/2023-06",
    } <= found.made.keys()
    assert found.settings[found.made["token_grid/2023-06"].settings]["seed"] == 64
    assert read_release(lake.lake, "v1") == found


def test_a_name_is_given_once(lake):
    """The same versions again are the same release; others are refused, and the first stands."""
    first = release(lake.lake, "v1")
    assert release(lake.lake, "v1") == first
    change(lake)
    with pytest.raises(BadInput, match="releases/v1.json: exists already"):
        release(lake.lake, "v1")
    assert read_release(lake.lake, "v1") == first
    release(lake.lake, "v2")
    assert release_names(lake.lake) == ["v1", "v2"]


def test_a_version_that_lost_a_file_is_not_released(lake):
    """Nothing takes the name; after a repair it is free."""
    grid = lake.published(f"token_grid/{OLD}")
    chunk = grid.home / "train.zarr/c/0/0"
    content = chunk.read_bytes()
    chunk.unlink()
    with pytest.raises(CorruptFile, match="1 files are missing or truncated, such as train.zarr"):
        release(lake.lake, "v1")
    assert release_names(lake.lake) == []
    stage_named("token_grid").build(lake.context, OLD)
    assert chunk.read_bytes() == content
    release(lake.lake, "v1")


@pytest.mark.parametrize("name", ["../v1", "v 1", "", "v1.gone"])
def test_a_name_is_a_files_name(lake, name):
    with pytest.raises(BadInput):
        release(lake.lake, name)


def test_a_lake_that_is_out_of_date_is_not_released(lake):
    """A mix of an older grid than the order's: one name cannot mean both."""
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    for stage, key in (
        ("withdrawn_documents", "all"),
        ("snapshot_withdrawals", OLD),
        ("removed_documents", OLD),
        ("token_documents", OLD),
        ("token_grid", OLD),
        ("longcrawl", "all"),
    ):
        stage_named(stage).build(lake.context, key)
    with pytest.raises(
        Mismatch, match="blended_mix/by-tokens is made of another version of megatron_rows/2023-06"
    ):
        release(lake.lake, "v1")
    assert release_names(lake.lake) == []


def test_tracing_follows_the_release(lake):
    """Positions, samples and documents of the release, also when the published lake has others."""
    release(lake.lake, "v1")
    before = [tracing.row_of_order(lake.lake, "train", position) for position in range(5)]
    samples = [tracing.sample_of_mix(lake.lake, "by-tokens", number) for number in range(5)]
    found = whereabouts.find(lake.lake, "document", id_of(OLD, ALONE_OLD))
    change(lake)
    pinned = lake_of_release(lake.lake, "v1")
    assert [tracing.row_of_order(pinned, "train", position) for position in range(5)] == before
    assert [tracing.sample_of_mix(pinned, "by-tokens", number) for number in range(5)] == samples
    assert whereabouts.find(pinned, "document", id_of(OLD, ALONE_OLD)) == found != []
    assert whereabouts.find(lake.lake, "document", id_of(OLD, ALONE_OLD)) == []
    assert pinned.keys("token_grid") == lake.lake.keys("token_grid")
    assert pinned.keys("filtered_documents") == lake.lake.keys("filtered_documents")


def test_a_partition_that_was_not_released_is_none_of_it(lake):
    """A mix that came later is not in the release, although the stage is pinned."""
    release(lake.lake, "v1")
    pinned = lake_of_release(lake.lake, "v1")
    assert pinned.partition("blended_mix", "another").current() is None
    assert pinned.keys("blended_mix") == ["by-tokens", "one-sided"]


def test_damage_to_a_release_is_told(lake):
    release(lake.lake, "v1")
    grid = lake.published(f"token_grid/{OLD}")
    flipped(grid.home / "train.zarr/c/0/0")
    (said,) = release_damage(lake.lake, "v1")
    assert said.startswith(f"token_grid/{OLD}/{grid.version}/train.zarr/c/0/0: digest")
    (grid.home / "receipt.json").unlink()
    (said,) = release_damage(lake.lake, "v1")
    assert said == f"release v1 pins token_grid/{OLD}/{grid.version}, which is gone"
    with pytest.raises(NotPublished):
        open_rows(lake.lake.root, release="v1").read()


def test_what_is_gone_says_why(lake):
    release(lake.lake, "v1")
    order = lake.published("longcrawl/all")
    publish_gone(
        lake.lake, "v1", Gone(versions=[f"longcrawl/all/{order.version}"], reason="a court said so")
    )
    (order.home / "receipt.json").unlink()
    with pytest.raises(
        NotPublished,
        match=f"release v1 pins longcrawl/all/{order.version}, which is gone: a court said so",
    ):
        open_rows(lake.lake.root, release="v1")
    assert [note.reason for note in gone_of(lake.lake, "v1")] == ["a court said so"]
    assert release_names(lake.lake) == ["v1"]


def test_another_content_under_a_pinned_version_is_refused(lake):
    release(lake.lake, "v1")
    order = lake.published("longcrawl/all")
    receipt = order.home / "receipt.json"
    receipt.write_text(receipt.read_text().replace(order.digest, "0" * 64))
    with pytest.raises(Mismatch, match="pins longcrawl/all/.* it has 000000000000"):
        open_rows(lake.lake.root, release="v1")


def test_what_is_no_release_is_told(lake):
    with pytest.raises(NotPublished, match="no release 'v9' .*: there are none"):
        open_rows(lake.lake.root, release="v9")
    release(lake.lake, "v1")
    with pytest.raises(NotPublished, match="no release 'v9' .*: there are v1"):
        open_rows(lake.lake.root, release="v9")
    (lake.lake.root / "releases" / "v1.json").write_text(
        '{"pins": {"longcrawl/all": {"version": "../../etc", "digest": ""}}}'
    )
    with pytest.raises((CorruptFile, BadInput)):
        open_rows(lake.lake.root, release="v1")


def test_a_release_is_opened_from_a_server(lake):
    """By range requests, after other versions were published; a release that is none is told."""
    before = all_rows(lake.lake.root)
    release(lake.lake, "v1")
    change(lake)
    with served(lake.lake.root) as (url, _, _):
        for split in SPLITS:
            np.testing.assert_array_equal(open_rows(url, split, release="v1").read(), before[split])
        with pytest.raises(NotPublished, match="there is no such release"):
            open_rows(url, release="v9")
