"""From a recipe's mixes to their arrays: weights, tokens, epochs, temperature, and going on from
another mix.
"""

import msgspec
import numpy as np
import pytest

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.recipe_files import parse_recipe
from lc_assets.builds.settings.rows import MixSettings
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.megatron.gpt_index import read_gpt_index
from lc_assets.mixing.blending import blend, normalise
from lc_assets.mixing.schedules import Stretch
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.mixes.blended_mix import read_mix, table_of
from lc_assets.stages.mixes.mix_plans import params_of, plan_mix, reads

AVAILABLE = {"a": 900, "b": 100, "c": 50}


def planned(content, mix="m", available=AVAILABLE):
    """The plan of a mix of a recipe."""
    return plan_mix(parse_recipe(content, where="here"), mix, available)


def test_weights_and_samples():
    plan = planned("[blended_mix.m]\nweights = {a = 3, c = 1}\nsamples = 40")
    assert (plan.names, plan.used, plan.kept, plan.after) == (("a", "c"), (30, 10), (0, 0), 0)
    assert plan.requested == ((31,), (11,))


def test_tokens_give_that_many_samples():
    """To the nearest sample, whatever a float would make of the shares."""
    plan = planned(
        "[megatron_rows]\nsequence_length = 1000\n[blended_mix.m]\ntokens = {a = 300_400, b = "
        "99_600, c = 7}"
    )
    assert plan.used == (300, 100, 1)


def test_epochs_give_that_many_epochs():
    plan = planned("[blended_mix.m]\nepochs = {a = 0.5, b = 2, c = 3}")
    assert plan.used == (450, 200, 150)


def test_a_temperature_favours_small_sources():
    """Square roots of the sizes, for two."""
    plan = planned("[blended_mix.m]\ntemperature = 2\nsamples = 470")
    assert plan.used == (300, 100, 70) or np.allclose(
        np.array(plan.used) / 470,
        np.sqrt([900, 100, 50]) / np.sqrt([900, 100, 50]).sum(),
        atol=3e-3,
    )
    assert planned("[blended_mix.m]").used == (900, 100, 50)


CONTINUED = """
[blended_mix.old]
weights = {a = 1, b = 1}
samples = 100
[blended_mix.m]
weights = {b = 1, c = 3}
samples = 200
continues = {mix = "old", after = 61}
"""


def test_a_mix_that_continues_another_keeps_what_was_consumed():
    old, new = planned(CONTINUED, "old"), planned(CONTINUED)
    assert new.names == ("a", "b", "c")
    assert (new.after, new.kept, new.used) == (61, (31, 30, 0), (31, 30 + 35, 104))
    for before, now in zip(old.drawn, new.drawn, strict=True):
        np.testing.assert_array_equal(now[:61], before[:61])
    rest, _ = blend(normalise([1, 3]), 139)
    np.testing.assert_array_equal(new.drawn[0][61:], rest + 1)
    assert new.drawn[1][61:][new.drawn[0][61:] == 1].tolist() == list(range(30, 65))
    assert new.requested == ((51, 31), (51, 65), (104,))
    assert new.weights == (0.0, 0.25, 0.75)


MOVING = """
[blended_mix.old]
schedule = [
    { samples = 100, weights = {a = 3, b = 1} },
    { samples = 60, weights = {a = 3, b = 1}, to = {b = 1} },
]
[blended_mix.m]
schedule = [{ samples = 50, weights = {c = 1}, to = {a = 1} }]
continues = {mix = "old", after = 130}
"""


def test_weights_move_by_a_schedule():
    """The counts are the integrals of the weights, to less than a sample; the shares, too."""
    plan = planned(MOVING, "old")
    assert plan.names == ("a", "b")
    np.testing.assert_allclose(plan.used, [75 + 22.5, 25 + 37.5], atol=0.999)
    np.testing.assert_allclose(plan.weights, [97.5 / 160, 62.5 / 160])
    early, late = plan.drawn[0][100:110], plan.drawn[0][150:]
    assert (np.count_nonzero(early), np.count_nonzero(late)) == (3, 9)
    for stated, used, (requested,) in zip(plan.stated, plan.used, plan.requested, strict=True):
        assert requested >= max(stated, used)
    assert plan.samples <= len(plan.drawn[0]) == 160


def test_a_schedule_goes_on_without_touching_what_was_consumed():
    old, new = planned(MOVING, "old"), planned(MOVING)
    assert new.names == ("a", "b", "c")
    for before, now in zip(old.drawn, new.drawn, strict=True):
        np.testing.assert_array_equal(now[:130], before[:130])
    assert (sum(new.used), new.after) == (180, 130)
    np.testing.assert_allclose(np.subtract(new.used, new.kept), [25, 0, 25], atol=0.999)
    assert new.schedule == (Stretch(samples=50, first=(0, 0, 1), last=(1, 0, 0)),)


def test_a_schedule_moves_between_kinds_of_rows():
    """Its sources are named as in the mix; no other rows are read."""
    text = """
    [packed_rows]
    megatron = "rows"
    [blended_mix.m]
    schedule = [{ samples = 40, weights = {a = 1}, to = {"packed_rows/b" = 1} }]
    """
    recipe = parse_recipe(text, where="here")
    assert planned(text, available={"a": 90, "b": 9, "packed_rows/b": 99}).used == (20, 20)
    for part, snapshot, is_read in (
        ("megatron_rows", "a", True),
        ("megatron_rows", "b", False),
        ("packed_rows", "a", False),
        ("packed_rows", "b", True),
    ):
        assert reads(recipe, "m", part, snapshot) == is_read
    assert "schedule" not in params_of(Recipe(), "equal")


def test_a_mix_depends_on_the_mixes_it_continues():
    """On their settings, and on their sources."""
    recipe = parse_recipe(CONTINUED, where="here")
    assert [name for name in "abcd" if reads(recipe, "m", "megatron_rows", name)] == ["a", "b", "c"]
    changed = parse_recipe(CONTINUED.replace("samples = 100", "samples = 99"), where="here")
    assert params_of(recipe, "m") != params_of(changed, "m")
    assert reads(Recipe(), "equal", "megatron_rows", "any")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('[blended_mix.m]\ncontinues = {mix = "none", after = 3}', "no mix 'none'"),
        ("[blended_mix.m]\nschedule = [{samples = 3, weights = {}}]", "needs a weight"),
        ('[blended_mix.m]\nschedule = [{samples = 3, weights = {"x/a" = 1}}]', "is no source"),
        (
            "[blended_mix.m]\nsamples = 3\nschedule = [{samples = 3, weights = {a = 1}}]",
            "only one of them",
        ),
        ("[blended_mix.m]\nschedule = [{samples = 3, weights = {z = 1}}]", "the mix names z"),
        (
            '[blended_mix.m]\nweights = {a = 1}\ncontinues = {mix = "m", after = 3}',
            "continues itself",
        ),
        (
            '[blended_mix.all]\n[blended_mix.m]\ncontinues = {mix = "all", after = 3}',
            "takes whatever is published: name its sources",
        ),
        (CONTINUED.replace("after = 61", "after = 101"), "cannot keep 101 samples of a mix of 100"),
        (CONTINUED.replace("after = 61", "after = 201"), "samples counts both parts"),
        (CONTINUED.replace("samples = 200", "samples = 200\nseed = 7"), "another seed"),
        ("[blended_mix.m]\nweights = {a = 1}\ntemperature = 2", "a temperature belongs to"),
        ("[blended_mix.m]\ntokens = {a = 1}\nepochs = {a = 1}", "only one of them"),
        ("[blended_mix.m]\ntokens = {a = 1}\nsamples = 3", "only one of them"),
        ("[blended_mix.m]\nepochs = {a = 0}", "Expected `float` > 0.0"),
        (
            "[blended_mix.m]\nepochs = {d = 1}",
            "the mix names d, of which no `megatron_rows` is published",
        ),
        ("[blended_mix.m]\ntokens = {c = 9_000_000_000}", "more than 1,000 epochs"),
        ("[blended_mix.m]\ntemperature = 0", "Expected `float` > 0.0"),
    ],
)
def test_a_mix_that_cannot_be_meant_is_refused(content, complaint):
    with pytest.raises(BadInput, match=complaint):
        planned(content)


def test_an_index_of_many_epochs_makes_no_mix_longer(published_lake, tmp_path):
    """A mix counts the samples of one epoch, though `megatron_rows.samples` asks for more."""
    recipe = published_lake.context.recipe
    mixes = {"once": MixSettings()}
    usual = copied(
        published_lake, tmp_path / "usual", msgspec.structs.replace(recipe, blended_mix=mixes)
    )
    rows = msgspec.structs.replace(recipe.megatron_rows, samples=300)
    repeated = copied(
        published_lake,
        tmp_path / "repeated",
        msgspec.structs.replace(recipe, blended_mix=mixes, megatron_rows=rows),
    )
    for snapshot in published_lake.context.lake.published("megatron_rows"):
        stage_named("megatron_rows").build(repeated, snapshot)
    found = [
        stage_named("blended_mix").build(context, "once").published.folder
        for context in (usual, repeated)
    ]
    once, again = map(read_mix, found)
    assert again.n_samples == once.n_samples
    assert [source.available for source in again.sources] == [
        source.available for source in once.sources
    ]


def test_a_continued_mix_is_published_and_holds_its_claims(published_lake, tmp_path):
    """Its indices serve the old mix's samples first, and its audit passes."""
    recipe = published_lake.context.recipe
    snapshots = sorted(published_lake.context.lake.published("megatron_rows"))
    old = MixSettings(weights=dict.fromkeys(snapshots, 1.0), samples=6)
    both = {
        "old": old,
        "new": MixSettings(
            weights={snapshots[0]: 1.0},
            samples=200,
            continues={"mix": "old", "after": 4},
            seed=None,
        ),
    }
    mixes = {
        name: msgspec.convert(msgspec.to_builtins(mix), MixSettings) for name, mix in both.items()
    }
    context = copied(published_lake, tmp_path, msgspec.structs.replace(recipe, blended_mix=mixes))
    built = {name: stage_named("blended_mix").build(context, name) for name in ("old", "new")}
    assert all(finding.passed for one in built.values() for finding in one.findings)
    old_folder, new_folder = (built[name].published.folder for name in ("old", "new"))
    mix = read_mix(new_folder)
    assert (mix.after, mix.n_samples, [source.kept for source in mix.sources]) == (4, 200, [2, 2])
    assert [line["snapshot"] for line in table_of(mix)] == snapshots
    for name in ("dataset_index", "dataset_sample_index"):
        np.testing.assert_array_equal(
            read_npy(new_folder / f"{name}.npy")[:4], read_npy(old_folder / f"{name}.npy")[:4]
        )
    before, now = (read_gpt_index(folder / snapshots[0]) for folder in (old_folder, new_folder))
    assert now.n_samples >= 198 > before.n_samples
    np.testing.assert_array_equal(now.shuffle_index[: before.n_samples], before.shuffle_index)
    np.testing.assert_array_equal(now.sample_index[: before.n_samples + 1], before.sample_index)


def copied(tiny, folder, recipe):
    """The lake, copied so that it may be written to, with another recipe."""
    import dataclasses
    import shutil

    root = folder / "lake"
    shutil.copytree(tiny.context.lake.root, root, symlinks=True)
    return dataclasses.replace(tiny.context, lake=type(tiny.context.lake)(root), recipe=recipe)
