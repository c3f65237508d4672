"""Mixes that take shares of packed rows beside rows of one document; and mixes that do not, which
stay what they were.
"""

import dataclasses
import shutil

import msgspec
import numpy as np
import pytest

from lc_assets.builds.recipe_files import parse_recipe
from lc_assets.builds.settings.rows import MixSettings
from lc_assets.builds.tables import read_table
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.megatron.gpt_index import read_gpt_index
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.lineage.whereabouts import find
from lc_assets.stages.mixes.blended_mix import (
    MIX_FILE,
    STAGE,
    read_mix,
    table_of,
)
from lc_assets.stages.mixes.mix_plans import params_of, plan_mix
from lc_assets.stages.planning import plan
from lc_assets.stages.rows.token_grid import ROWS_FILE

AVAILABLE = {"a": 900, "b": 100, "packed_rows/a": 400, "packed_rows/b": 1600}


WHOLE = '[packed_rows]\nmegatron = "rows"\n'


def planned(content, available=AVAILABLE, mix="m"):
    return plan_mix(parse_recipe(WHOLE + content, where="here"), mix, available)


def test_parts_get_their_shares_and_weights_hold_within_each():
    """A third of long documents' rows by their sizes, two thirds of packed ones by theirs."""
    found = planned("[blended_mix.m]\nparts = {megatron_rows = 1, packed_rows = 2}\nsamples = 3000")
    assert found.names == ("a", "b", "packed_rows/a", "packed_rows/b")
    assert found.used == (900, 100, 400, 1600)
    equal = planned(
        "[blended_mix.m]\nparts = {megatron_rows = 0.34, packed_rows = 0.66}\nweights = "
        '"equal"\nsamples = 1000'
    )
    assert equal.used == (170, 170, 330, 330)
    named = planned(
        "[blended_mix.m]\nparts = {packed_rows = 3, megatron_rows = 1}\nweights = {b = "
        "5}\nsamples = 80"
    )
    assert dict(zip(named.names, named.used, strict=True)) == {"b": 20, "packed_rows/b": 60}


def test_without_a_size_nothing_is_repeated():
    """As long as the scarcest source allows."""
    found = planned("[blended_mix.m]\nparts = {megatron_rows = 1, packed_rows = 1}")
    assert all(used <= AVAILABLE[name] for name, used in zip(found.names, found.used, strict=True))
    assert (
        max(used / AVAILABLE[name] for name, used in zip(found.names, found.used, strict=True))
        > 0.98
    )


def test_packed_rows_alone_are_a_mix_too():
    assert planned("[blended_mix.m]\nparts = {packed_rows = 1}\nsamples = 10").names == (
        "packed_rows/a",
        "packed_rows/b",
    )


def test_a_mix_without_parts_does_not_see_packed_rows():
    """Nor do its settings say anything of them, so that it is the version that it was."""
    content = "[blended_mix.m]\nsamples = 100"
    alone = {name: n for name, n in AVAILABLE.items() if "/" not in name}
    assert [array.tolist() for array in planned(content).drawn] == [
        array.tolist() for array in planned(content, alone).drawn
    ]
    assert "parts" not in params_of(parse_recipe(content, where="here"), "m")
    recipe = parse_recipe(
        f"{WHOLE}{content}\n[blended_mix.long]\nparts = {{packed_rows = 1}}", where="here"
    )
    assert not STAGE.is_fed_by(recipe, "m", "packed_rows", "a")
    assert STAGE.is_fed_by(recipe, "long", "packed_rows", "a")
    assert not STAGE.is_fed_by(recipe, "long", "megatron_rows", "a")
    assert STAGE.is_fed_by(recipe, "m", "megatron_rows", "a")


CONTINUED = """
[blended_mix.short]
weights = {a = 1, b = 1}
samples = 100
[blended_mix.m]
weights = {b = 1}
parts = {megatron_rows = 1, packed_rows = 1}
samples = 200
continues = {mix = "short", after = 60}
"""


def test_a_run_can_turn_to_packed_rows_half_way():
    """What was consumed stays, sources keep their numbers, and new ones follow."""
    old, new = planned(CONTINUED, mix="short"), planned(CONTINUED)
    assert new.names == ("a", "b", "packed_rows/b")
    assert new.used == (30, 30 + 70, 70)
    for before, now in zip(old.drawn, new.drawn, strict=True):
        np.testing.assert_array_equal(now[:60], before[:60])
    recipe = parse_recipe(WHOLE + CONTINUED, where="here")
    assert STAGE.is_fed_by(recipe, "m", "megatron_rows", "a")
    assert not STAGE.is_fed_by(recipe, "m", "packed_rows", "c")


@pytest.mark.parametrize(
    ("content", "available", "said"),
    [
        (
            "parts = {packed_rows = 1, megatron_rows = 1}\nsamples = 5",
            {"a": 4},
            "a share of packed_rows, and no published `packed_rows` has samples",
        ),
        (
            "parts = {packed_rows = 1}\nweights = {a = 1}",
            {"a": 4},
            "names packed_rows/a, of which no `packed_rows` is published",
        ),
        (
            "parts = {packed_rows = 1}\nweights = {a = 1}",
            {"packed_rows/a": 0},
            "names packed_rows/a, without training samples",
        ),
        (
            "parts = {packed_rows = 1}\nsamples = 5000",
            {"packed_rows/a": 4},
            "more than 1,000 epochs",
        ),
        ("parts = {packed_rows = 0}", AVAILABLE, "Expected `float` > 0.0"),
        ("parts = {long = 1}", AVAILABLE, "long"),
        (
            "parts = {packed_rows = 1}\ntokens = {a = 5}",
            AVAILABLE,
            "shares of parts go with weights",
        ),
        (
            "parts = {packed_rows = 1}\nepochs = {a = 5}",
            AVAILABLE,
            "shares of parts go with weights",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(content, available, said):
    with pytest.raises(BadInput, match=said):
        planned(f"[blended_mix.m]\n{content}", available)


def mixed(tiny, folder, mixes, **packing):
    """A copy of the lake with another recipe's mixes, and rows packed otherwise."""
    root = folder / "lake"
    shutil.copytree(tiny.context.lake.root, root, symlinks=True)
    settings = tiny.context.recipe.packed_rows
    settings = msgspec.structs.replace(settings, megatron="rows", **packing)
    recipe = msgspec.structs.replace(tiny.context.recipe, blended_mix=mixes, packed_rows=settings)
    context = dataclasses.replace(tiny.context, lake=type(tiny.context.lake)(root), recipe=recipe)
    for snapshot in context.lake.keys("packed_rows"):
        stage_named("packed_rows").build(context, snapshot)
    return context


def test_a_long_short_mix_is_published_and_holds_its_claims(published_lake, tmp_path):
    """With an index per source, over Megatron's documents of each kind; another mix beside it is
    not touched.
    """
    mixes = {
        **published_lake.context.recipe.blended_mix,
        "long": MixSettings(parts={"megatron_rows": 0.34, "packed_rows": 0.66}, samples=50),
    }
    context = mixed(published_lake, tmp_path, mixes)
    snapshots = sorted(context.lake.published("packed_rows"))
    built = stage_named("blended_mix").build(context, "long")
    assert all(finding.passed for finding in built.findings)
    assert {
        f"packed_rows/{snapshot}" for snapshot in snapshots
    } <= built.published.receipt.fingerprint.inputs.keys()
    folder = built.published.folder
    mix = read_mix(folder)
    packed = [source for source in mix.sources if source.part is not msgspec.UNSET]
    assert [source.name for source in packed] == [
        f"packed_rows/{snapshot}" for snapshot in snapshots
    ]
    assert abs(sum(source.used for source in packed) - 33) <= 1
    for source in packed:
        lengths = MegatronReader(context.lake.root / source.prefix).lengths
        index = read_gpt_index(folder / source.name)
        assert index.n_samples >= source.used
        assert sorted(set(index.document_index.tolist())) == list(range(len(lengths)))
    assert [line["snapshot"] for line in table_of(mix)][-1] == packed[-1].name
    assert b'"part": "packed_rows"' in (folder / MIX_FILE).read_bytes()
    current = {
        one.name: one.status
        for one in plan(
            context.lake,
            context.recipe,
            list(published_lake.context.lake.published("megatron_rows")),
        )
    }
    assert current["blended_mix/long"] == "current"
    for name in published_lake.context.recipe.blended_mix:
        before = published_lake.context.lake.partition("blended_mix", name).require()
        again = stage_named("blended_mix").build(context, name)
        assert again.reused
        assert again.published.folder.name == before.folder.name
        assert b"part" not in (before.folder / MIX_FILE).read_bytes()


def test_a_mix_over_packed_rows_wants_whole_rows(published_lake, tmp_path):
    """By its recipe, and by the rows that are published: those of an older recipe are of spans."""
    with pytest.raises(
        BadInput, match="the mix 'm' takes packed rows, whose Megatron files hold spans"
    ):
        parse_recipe("[blended_mix.m]\nparts = {packed_rows = 1}", where="here")
    context = mixed(
        published_lake, tmp_path, {"long": MixSettings(parts={"packed_rows": 1}, samples=40)}
    )
    older = dataclasses.replace(
        context, recipe=msgspec.structs.replace(published_lake.context.recipe, blended_mix={})
    )
    for snapshot in context.lake.keys("packed_rows"):
        stage_named("packed_rows").build(older, snapshot)
    with pytest.raises(BadInput, match='set packed_rows.megatron = "rows" and make the rows again'):
        stage_named("blended_mix").build(context, "long")
    assert "long" not in context.lake.keys("blended_mix")


def test_a_document_is_found_in_the_samples_of_its_own_rows(published_lake, tmp_path):
    """Not in those of packed rows of its snapshot, which have a numbering of their own."""
    context = mixed(
        published_lake,
        tmp_path,
        {"long": MixSettings(parts={"megatron_rows": 1, "packed_rows": 1}, samples=40)},
    )
    shutil.rmtree(context.lake.root / "blended_mix")
    snapshot = min(context.lake.published("megatron_rows"))
    mix = read_mix(stage_named("blended_mix").build(context, "long").published.folder)
    own = [
        number
        for number, source in enumerate(mix.sources)
        if source.part is msgspec.UNSET and source.snapshot == snapshot
    ]
    datasets = read_npy(
        context.lake.partition("blended_mix", "long").require().folder / "dataset_index.npy"
    )
    rows = read_table(
        context.lake.partition("token_grid", snapshot).require().folder / ROWS_FILE
    ).to_pylist()
    (row,) = [line for line in rows if line["split"] == "train" and line["row"] == 0]
    (found,) = find(context.lake, "document", row["id"])
    assert found.samples["long"]
    assert {int(datasets[sample]) for sample in found.samples["long"]} == set(own)
