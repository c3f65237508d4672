"""The table of claims is what loops and dictionaries find, in any order, on any number of files and
workers.
"""

import msgspec
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.settings.longpack import LongPackSettings
from lc_assets.stages.longpack.pages import n_tokens_of
from lc_assets_tests.reference.link_claims import slow_claims
from lc_assets_tests.stages.longpacking.worlds import claimed, made_up_world, sides_of, write

WIDE = LongPackSettings(portals="keep", same_language=False, max_tokens=10**6)
SETTINGS = {
    "as shipped": LongPackSettings(max_tokens=400),
    "the paper": LongPackSettings(
        mode="allow", roots=0.5, portals="keep", same_language=False, paper_exact=True
    ),
    "wide": WIDE,
    "tight": LongPackSettings(max_tokens=120, mode="allow", repetitions=2),
    "consumed copies": LongPackSettings(max_tokens=300, repetitions=3, portals="keep"),
    "three rounds": LongPackSettings(max_tokens=500, depth=3, portals="keep", hub_share=1.0),
    "three rounds, allowed": LongPackSettings(
        max_tokens=400, depth=3, mode="allow", roots=0.4, repetitions=2, portals="keep"
    ),
    "few links": LongPackSettings(
        nofollow="drop", anchors="in_text", hub_share=0.3, mode="allow", repetitions=4
    ),
}


def count(text):
    return n_tokens_of(text, "gpt2", "plain")


def lines_of(path):
    return [
        {name: value for name, value in line.items() if name != "cluster"}
        for line in pq.read_table(path).to_pylist()
    ]


@pytest.mark.parametrize("others", ["none", "with_aliases", "with_older"])
@pytest.mark.parametrize("name", SETTINGS)
def test_claims_are_those_of_the_reference(tmp_path, name, others):
    world = made_up_world(
        seed=list(SETTINGS).index(name), **{others: True} if others != "none" else {}
    )
    wanted, refused = slow_claims(world, SETTINGS[name], sides=sides_of(world), count=count)
    path, counts = claimed(tmp_path, write(world, tmp_path / "in"), SETTINGS[name])
    assert lines_of(path) == wanted
    assert counts.dropped == dict(sorted(refused.items()))
    assert counts.kept == len(wanted)
    assert wanted


def test_every_reason_is_met_somewhere(tmp_path):
    """A reason that no world has is one that no test has seen."""
    met = set()
    for number, settings in enumerate(SETTINGS.values()):
        world = made_up_world(seed=number)
        met |= set(slow_claims(world, settings, sides=sides_of(world), count=count)[1])
    assert met == {
        "its page was removed",
        "its page is no root",
        "nofollow",
        "in menus only",
        "anchor text not in the text",
        "to the page itself",
        "no such page",
        "the page was removed",
        "a home page",
        "no words for it",
        "what its whole host points at",
        "on the other side of the held-out split",
        "in another language",
        "its text is in the document",
        "no room",
        "held already",
        "its root is held by another",
    }


@pytest.mark.parametrize(
    ("name", "workers_of"), [("as shipped", (1, 1, 2, 4)), ("three rounds, allowed", (1, 1, 1, 1))]
)
def test_order_files_and_workers_change_nothing(tmp_path, name, workers_of):
    """Documents and links shuffled, in other files, by 1, 2 and 4 workers: the same bytes."""
    world, settings = made_up_world(seed=11), SETTINGS[name]
    found = []
    for workers, n_files, seed in zip(workers_of, (2, 3, 5, 4), (None, 5, 6, 7), strict=True):
        folder = tmp_path / str(n_files)
        path, counts = claimed(
            folder,
            write(world, folder / "in", n_files=n_files, seed=seed),
            settings,
            workers=workers,
        )
        found.append((path.read_bytes(), counts))
    assert all(one == found[0] for one in found[1:])
    assert found[0][1].kept


def test_a_killed_run_goes_on_with_what_was_counted(tmp_path):
    """Pages and tokens of finished files are not read again; a second run over the same folder
    writes the same bytes.
    """
    world = made_up_world(seed=3)
    tables = write(world, tmp_path / "in")
    path, counts = claimed(tmp_path, tables, WIDE)
    first = path.read_bytes()
    path.unlink()
    assert claimed(tmp_path, tables, WIDE)[1] == counts
    assert path.read_bytes() == first


def test_hit_rate_grows_with_repetitions_and_shrinks_with_filters(tmp_path):
    """Over real shapes, with a limit: 1 ≤ 2 ≤ 4 ≤ 1,000 repetitions; portals dropped ≤ kept."""
    world = made_up_world(seed=5, n_pages=60)
    tables = write(world, tmp_path / "in")

    def hits(**changes):
        _, counts = claimed(
            tmp_path / str(len(list(tmp_path.iterdir()))),
            tables,
            msgspec.structs.replace(WIDE, mode="allow", **changes),
        )
        return counts.extra["packed documents"], counts.kept

    found = [hits(repetitions=repetitions) for repetitions in (1, 2, 4, 1000)]
    assert found == sorted(found)
    assert found[0] < found[-1]
    filtered, unfiltered = (hits(repetitions=1000, portals=portals) for portals in ("drop", "keep"))
    assert filtered < unfiltered
    assert filtered[1] < unfiltered[1]


def test_nothing_to_claim_is_an_empty_table(tmp_path):
    world = made_up_world(seed=1)
    documents, _, decisions = write(world, tmp_path / "in")
    for tables in ((documents, [], decisions), ([], [], [])):
        path, counts = claimed(tmp_path / str(len(tables[0])), tables, WIDE)
        assert (pq.read_table(path).num_rows, counts.seen) == (0, 0)
