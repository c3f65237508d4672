"""Releases: a name means the same bytes, whatever is published later; what is gone or changed of
one is told.
"""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from lc_assets.builds.stage import CheckResult
from lc_assets.errors import BadInput, Busy, CorruptFile, Mismatch, NotPublished
from lc_assets.lake.receipts import with_checksum
from lc_assets.lake.releases import (
    Gone,
    gone_of,
    lake_of_release,
    publish_gone,
    read_release,
    release_names,
)
from lc_assets.lake.versions import write_receipt
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.lineage import tracing, whereabouts
from lc_assets.stages.releases import releasing
from lc_assets.stages.releases.auditing import Audit, Comparison
from lc_assets.stages.releases.releasing import release, release_damage
from lc_assets.vocabulary import SPLITS
from lc_assets_tests.faults import flipped
from lc_assets_tests.loaders.range_server import served
from lc_assets_tests.withdrawing import ALONE_OLD, NEW, OLD, id_of


@pytest.fixture
def lake(lake_with_copies, tmp_path):
    return lake_with_copies.copy(tmp_path)


@pytest.fixture(scope="module")
def once_released(lake_with_copies, tmp_path_factory):
    """A lake that is released as v1; read only."""
    found = lake_with_copies.copy(tmp_path_factory.mktemp("released"))
    release(found.lake, "v1", found.context.recipe)
    return found


@pytest.fixture
def released(once_released, tmp_path):
    """A copy of it, to be changed."""
    return once_released.copy(tmp_path)


@pytest.fixture(scope="module")
def moved_on(once_released, tmp_path_factory):
    """The same, in which other versions were published since; only releases are added to it."""
    return change(once_released.copy(tmp_path_factory.mktemp("moved-on")))


def all_rows(root, **named):
    return {split: open_rows(root, split, **named).read() for split in SPLITS}


def change(lake):
    """Publish other versions: without one document, then with another seed."""
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    lake.build()
    recipe = lake.context.recipe
    seeds = {
        name: msgspec.structs.replace(getattr(recipe, name), seed=5)
        for name in ("token_grid", "packed_rows")
    }
    other = replace(lake.context, recipe=msgspec.structs.replace(recipe, **seeds))
    found = replace(lake, context=other)
    found.build()
    return found


def test_a_release_is_the_same_rows_for_ever(once_released, moved_on):
    """Other rows, another order, other mixes are published: opened by the release, every token is
    what it was.
    """
    before, root = all_rows(once_released.lake.root), moved_on.lake.root
    now, then = all_rows(root), all_rows(root, release="v1")
    assert any(
        now[split].shape != before[split].shape or (now[split] != before[split]).any()
        for split in SPLITS
    )
    for split in SPLITS:
        np.testing.assert_array_equal(then[split], before[split])
    assert release_damage(moved_on.lake, "v1") == []


def test_a_release_holds_order_grids_megatron_mixes_and_indices(lake):
    found = release(lake.lake, "v1", lake.context.recipe)
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


def test_a_name_is_given_once(once_released, moved_on):
    """The same versions again are the same release; others are refused, and the first stands."""
    first, recipe = read_release(once_released.lake, "v1"), moved_on.context.recipe
    assert release(once_released.lake, "v1", once_released.context.recipe) == first
    with pytest.raises(BadInput, match="releases/v1.json: exists already"):
        release(moved_on.lake, "v1", recipe)
    assert read_release(moved_on.lake, "v1") == first
    release(moved_on.lake, "v2", recipe)
    assert release_names(moved_on.lake) == ["v1", "v2"]


def refused(lake, match):
    """Releasing is refused, and nothing takes the name."""
    with pytest.raises(Mismatch, match=match):
        release(lake.lake, "v1", lake.context.recipe)
    assert release_names(lake.lake) == []


def test_a_version_that_lost_a_file_is_not_released(lake):
    """After a repair it is."""
    grid = lake.published(f"token_grid/{OLD}")
    chunk = grid.home / "train.zarr/c/0/0"
    content = chunk.read_bytes()
    chunk.unlink()
    refused(lake, f"out of date .*, such as token_grid/{OLD} .missing or truncated")
    stage_named("token_grid").build(lake.context, OLD)
    assert chunk.read_bytes() == content
    release(lake.lake, "v1", lake.context.recipe)


def test_a_damaged_version_is_not_released(lake):
    flipped(lake.published(f"packed_rows/{NEW}").home / "train.zarr/c/0/0")
    refused(lake, f"1 faults, such as packed_rows/{NEW}: train.zarr/c/0/0: digest")


@pytest.mark.parametrize("name", ["../v1", "v 1", "", "v1.gone"])
def test_a_name_is_a_files_name(lake, name):
    with pytest.raises(BadInput):
        release(lake.lake, name, lake.context.recipe)


@pytest.mark.parametrize(
    "built",
    [
        (),
        ("withdrawn_documents", "snapshot_withdrawals", "removed_documents"),
        (
            "withdrawn_documents",
            "snapshot_withdrawals",
            "removed_documents",
            "token_documents",
            "token_grid",
            "longcrawl",
        ),
    ],
    ids=["nothing", "removals", "order"],
)
def test_a_lake_that_is_out_of_date_is_not_released(lake, built):
    """An entry was added and nothing built, or some stages: the withdrawn document is still pinned
    by what was not built.
    """
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    for stage in built:
        key = "all" if stage in ("withdrawn_documents", "longcrawl") else OLD
        stage_named(stage).build(lake.context, key)
    refused(lake, "out of date under its recipe in .* run `lc rebuild`, then release it")
    lake.build()
    release(lake.lake, "v1", lake.context.recipe)


def test_what_fails_the_audit_is_not_released(lake, monkeypatch):
    """Everything is current and undamaged, and the audit has the last word."""
    wrong = Comparison(what="texts", where="token_grid/2023-06", compared=9, wrong=2, fault="x")
    monkeypatch.setattr(Audit, "run", lambda _: [wrong])
    refused(lake, "1 faults, such as token_grid/2023-06: texts: 2 wrong, such as x: run `lc audit`")


def test_what_is_served_although_withdrawn_is_not_released(lake, monkeypatch):
    failed = CheckResult(check="nothing_withdrawn_is_served", passed=False, message="one is")
    monkeypatch.setattr(releasing, "nothing_withdrawn_is_served", lambda *_: failed)
    refused(lake, "such as nothing_withdrawn_is_served: one is")


def test_what_was_built_while_it_was_audited_is_not_released(lake, monkeypatch):
    def run(_):
        change(lake)
        return []

    monkeypatch.setattr(Audit, "run", run)
    with pytest.raises(Busy, match="was built in the meantime"):
        release(lake.lake, "v1", lake.context.recipe)
    assert release_names(lake.lake) == []


def test_tracing_follows_the_release(released):
    """Positions, samples and documents of the release, also when the published lake has others."""
    lake = released.lake
    before = [tracing.row_of_order(lake, "train", position) for position in range(5)]
    samples = [tracing.sample_of_mix(lake, "by-tokens", number) for number in range(5)]
    found = whereabouts.find(lake, "document", id_of(OLD, ALONE_OLD))
    change(released)
    pinned = lake_of_release(lake, "v1")
    assert [tracing.row_of_order(pinned, "train", position) for position in range(5)] == before
    assert [tracing.sample_of_mix(pinned, "by-tokens", number) for number in range(5)] == samples
    assert whereabouts.find(pinned, "document", id_of(OLD, ALONE_OLD)) == found != []
    assert whereabouts.find(lake, "document", id_of(OLD, ALONE_OLD)) == []
    assert pinned.keys("token_grid") == lake.keys("token_grid")
    assert pinned.keys("filtered_documents") == lake.keys("filtered_documents")


def test_a_partition_that_was_not_released_is_none_of_it(released):
    """A mix that came later is not in the release, although the stage is pinned."""
    pinned = lake_of_release(released.lake, "v1")
    assert pinned.partition("blended_mix", "another").current() is None
    assert pinned.keys("blended_mix") == ["by-tokens", "one-sided"]


def test_damage_to_a_release_is_told(released):
    grid = released.published(f"token_grid/{OLD}")
    flipped(grid.home / "train.zarr/c/0/0")
    (said,) = release_damage(released.lake, "v1")
    assert said.startswith(f"token_grid/{OLD}/{grid.version}/train.zarr/c/0/0: digest")
    order = released.published("longcrawl/all").home / "receipt.json"
    content = order.read_bytes()
    order.write_bytes(content.replace(b'"measured": ', b'"measured":  '))
    words = sorted(release_damage(released.lake, "v1"))
    assert len(words) == 2
    assert words[0].startswith(f"{order}: its content does not match its checksum: build it again")
    order.write_bytes(content)
    (grid.home / "receipt.json").unlink()
    (said,) = release_damage(released.lake, "v1")
    assert said == f"release v1 pins token_grid/{OLD}/{grid.version}, which is gone"
    with pytest.raises(NotPublished):
        open_rows(released.lake.root, release="v1").read()


def test_what_is_gone_says_why(released):
    order = released.published("longcrawl/all")
    publish_gone(
        released.lake,
        "v1",
        Gone(versions=[f"longcrawl/all/{order.version}"], reason="a court said so"),
    )
    (order.home / "receipt.json").unlink()
    with pytest.raises(
        NotPublished,
        match=f"release v1 pins longcrawl/all/{order.version}, which is gone: a court said so",
    ):
        open_rows(released.lake.root, release="v1")
    assert [note.reason for note in gone_of(released.lake, "v1")] == ["a court said so"]
    assert release_names(released.lake) == ["v1"]


def test_another_content_under_a_pinned_version_is_refused(released):
    order = released.published("longcrawl/all")
    other = msgspec.structs.replace(order.receipt, digest="0" * 64)
    write_receipt(order.home, with_checksum(other))
    with pytest.raises(Mismatch, match="pins longcrawl/all/.* it has 000000000000"):
        open_rows(released.lake.root, release="v1")


def test_what_is_no_release_is_told(lake):
    with pytest.raises(NotPublished, match="no release 'v9' .*: there are none"):
        open_rows(lake.lake.root, release="v9")
    release(lake.lake, "v1", lake.context.recipe)
    with pytest.raises(NotPublished, match="no release 'v9' .*: there are v1"):
        open_rows(lake.lake.root, release="v9")
    (lake.lake.root / "releases" / "v1.json").write_text(
        '{"pins": {"longcrawl/all": {"version": "../../etc", "digest": ""}}}'
    )
    with pytest.raises((CorruptFile, BadInput)):
        open_rows(lake.lake.root, release="v1")


def test_a_release_is_opened_from_a_server(once_released, moved_on):
    """By range requests, after other versions were published; a release that is none is told."""
    before = all_rows(once_released.lake.root)
    with served(moved_on.lake.root) as (url, _, _):
        for split in SPLITS:
            np.testing.assert_array_equal(open_rows(url, split, release="v1").read(), before[split])
        with pytest.raises(NotPublished, match="there is no such release"):
            open_rows(url, release="v9")
