"""``lc withdraw``, ``release``, ``diff`` and ``prune``: what the stages say, printed; what a person
may not mean is refused.
"""

import json

import pytest

from lc_assets.formats.lists.withdrawal_lists import read_withdrawals
from lc_assets.lake.releases import release_names
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.deduplication.removals import removals_in
from lc_assets_tests.builders import recipe_file
from lc_assets_tests.withdrawing import ALONE_OLD, NEW, OLD, id_of


@pytest.fixture
def lake(lake_with_copies, tmp_path):
    return lake_with_copies.copy(tmp_path)


@pytest.fixture
def recipe(lake, tmp_path):
    return recipe_file(tmp_path / "recipe.toml", lake.context.recipe)


@pytest.mark.parametrize(
    "command",
    [
        ("audit", "nowhere"),
        ("release", "nowhere"),
        ("prune", "nowhere"),
        ("diff", "v1", "now", "--lake", "nowhere"),
        ("withdraw", "nowhere", "--report"),
    ],
)
def test_no_lake_is_not_an_empty_one(lc, command, tmp_path, monkeypatch):
    """A misspelled path must not pass an audit."""
    monkeypatch.chdir(tmp_path)
    said = lc(*command)
    assert said.code == 2
    assert said.err.startswith("nowhere: no lake is there; expected a folder")


def words_of(said):
    return " ".join(said.out.split())


def test_a_withdrawal_says_what_it_touches_and_stands_in_the_list(lc, lake, recipe):
    """Documents, rows, tokens, samples and partitions, before anything is built; then the entry is
    appended, and built it is as told.
    """
    newer = lake.published(f"removed_documents/{NEW}").folder
    copied = {line["kept_id"] for line in removals_in(newer)}
    trained_on = {row["id"] for row in lake.rows(OLD) if row["split"] == "train"}
    name = min(trained_on - copied)
    line = lake.document(name)
    before = {found: lake.published(found).version for found in lake.built}
    said = lc(
        "withdraw",
        lake.lake.root,
        "--url",
        line["url"],
        "--reason",
        "asked for",
        "--list",
        lake.list_file,
        "--recipe",
        recipe,
    )
    assert said.code == 0
    for words in (
        f"{name} listed",
        "rows 1",
        "tokens 64",
        "samples of by-tokens",
        f"token_grid/{OLD}",
        "blended_mix/one-sided",
    ):
        assert words in words_of(said)
    assert f"token_grid/{NEW}" not in said.out
    (entry,) = read_withdrawals(lake.list_file)
    assert (entry.kind, entry.value, entry.reason) == ("url", line["url"], "asked for")
    assert {found: lake.published(found).version for found in lake.built} == before
    told = {word for word in said.out.split() if "/" in word and word in lake.built}
    looked_up = {
        "withdrawn_documents/all",
        f"snapshot_withdrawals/{OLD}",
        f"snapshot_withdrawals/{NEW}",
        f"removed_documents/{NEW}",  # decided again, with the bytes it had
    }
    assert lake.rebuilt() - looked_up == told


def test_a_dry_run_appends_nothing(lc, lake, recipe):
    before = lake.list_file.read_bytes()
    words = ("--domain", "site5.example.org", "--reason", "asked for", "--recipe", recipe)
    said = lc("withdraw", lake.lake.root, *words, "--dry-run")
    assert said.code == 0
    assert "appended" not in said.out
    assert (
        lc("withdraw", lake.lake.root, *words, "--list", lake.list_file, "--dry-run").out
        == said.out
    )
    assert lake.list_file.read_bytes() == before


def test_what_is_found_nowhere_is_listed_all_the_same(lc, lake, tmp_path):
    """For documents that come later, in a list that need not exist yet; but no entry is written where
    no build would read it.
    """
    path = tmp_path / "new.csv"
    words = ("withdraw", lake.lake.root, "--domain", "nowhere.example", "--reason", "asked for")
    words = (*words, "--list", path, "--date", "2026-03-01")
    refused = lc(*words)
    assert refused.code == 2
    assert f"{path}: the recipe does not name this list" in refused.err
    assert not path.exists()
    said = lc(*words, "--withdrawn", path)
    assert said.code == 0
    assert "no filtered document matches domain nowhere.example" in said.out
    assert (
        path.read_text() == "kind,value,reason,date\ndomain,nowhere.example,asked for,2026-03-01\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            (),
            (
                "expected one of --document, --url, --domain, --digest, with --reason and --list; "
                "or "
                "--report"
            ),
        ),
        (("--url", "https://example.org/x", "--list", "x.csv"), "with --reason and --list"),
        (("--url", "https://example.org/x", "--reason", "why"), "with --reason and --list"),
        (
            (
                "--url",
                "https://example.org/x",
                "--domain",
                "example.org",
                "--reason",
                "why",
                "--list",
                "x.csv",
            ),
            "expected one of",
        ),
        (("--domain", "co.uk", "--reason", "why", "--list", "x.csv"), "is a public suffix"),
        (
            (
                "--domain",
                "example.org",
                "--reason",
                "why",
                "--date",
                "yesterday",
                "--list",
                "x.csv",
            ),
            "is not a date",
        ),
        (("--report", "--domain", "example.org"), "--report lists all withdrawals"),
    ],
)
def test_a_withdrawal_that_cannot_be_meant_is_refused(lc, lake, words, sentence):
    said = lc("withdraw", lake.lake.root, *words)
    assert said.code == 2
    assert sentence in said.err


def test_the_report_says_what_was_taken_out_and_what_holds_it(lc, lake):
    lake.say(("document", id_of(OLD, ALONE_OLD)), reason="court order", date="2026-02-01")
    stage_named("withdrawn_documents").build(lake.context, "all")
    said = lc("withdraw", lake.lake.root, "--report")
    assert "2026-02-01 court order 1 1 0 0 0 1" in words_of(said)
    assert "1 contents are remembered" in said.out
    assert "1 documents are withdrawn, 1 of them are still served: see `lc plan`" in said.out
    lake.build()
    said = lc("withdraw", lake.lake.root, "--report")
    assert "2026-02-01 court order 1 1 0 0 0 0" in words_of(said)
    assert f"token_grid/{OLD}/" in said.out
    assert "0 of them are still served" in said.out


def test_a_release_is_made_told_and_verified(lc, lake, recipe):
    assert "0 releases" in lc("release", lake.lake.root).out
    said = lc("release", lake.lake.root, "v1", "--recipe", recipe)
    assert said.code == 0
    assert f"documents {len(lake.served())}" in words_of(said)
    assert 'release="v1"' in said.out
    assert release_names(lake.lake) == ["v1"]
    assert "v1" in lc("release", lake.lake.root).out
    assert (
        lc("release", lake.lake.root, "v1", "--verify").out
        == "release v1: whole, every byte read again\n"
    )
    victim = lake.published(f"token_grid/{OLD}").home / "rows.parquet"
    victim.write_bytes(victim.read_bytes()[:-1])
    said = lc("release", lake.lake.root, "v1", "--verify")
    assert said.code == 1
    assert f"token_grid/{OLD}/" in said.err
    assert lc("release", lake.lake.root, "v9", "--verify").code == 2


def test_a_release_is_traced(lc, lake, recipe):
    lc("release", lake.lake.root, "v1", "--recipe", recipe)
    before = lc("trace", lake.lake.root, "--row", 0)
    lake.say(("document", next(word for word in before.out.split() if ".json.gz/" in word)))
    lake.build()
    assert lc("trace", lake.lake.root, "--row", 0).out != before.out
    assert lc("trace", lake.lake.root, "--row", 0, "--release", "v1").out == before.out
    assert (
        lc("trace", lake.lake.root, "--row", 0, "--release", "v1", "--version", "0" * 12).code == 2
    )


def test_a_difference_is_told_and_is_json(lc, lake, recipe):
    lc("release", lake.lake.root, "v1", "--recipe", recipe)
    assert (
        "0 rows added, 0 removed, 0 moved; 2 snapshots are the same byte by byte"
        in lc("diff", "v1", "now", "--lake", lake.lake.root).out
    )
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    lake.build()
    said = lc("diff", "v1", "now", "--lake", lake.lake.root)
    assert "0 rows added, 1 removed, 0 moved; 1 snapshots are the same byte by byte" in said.out
    assert f"{OLD} 0 1 0 0 1 0 0 64" in words_of(said)
    found = json.loads(lc("diff", "v1", "now", "--lake", lake.lake.root, "--json").out)
    assert found["changes"][0]["documents_removed"] == 1
    assert lc("diff", "v1", "v9", "--lake", lake.lake.root).code == 2


def test_pruning_says_what_goes_before_it_goes(lc, lake):
    assert "0 folders" in lc("prune", lake.lake.root).out
    old = lake.published(f"token_grid/{OLD}").home
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    lake.build()
    said = lc("prune", lake.lake.root, "--dry-run")
    assert f"token_grid/{OLD}/{old.name}" in said.out
    assert "would be removed" in said.out
    assert old.exists()
    assert lc("prune", lake.lake.root, "--keep", 9).code == 0
    assert old.exists()
    assert lc("prune", lake.lake.root).code == 0
    assert not old.exists()


def test_a_purge_ends_with_3_until_nothing_holds_them(lc, lake, recipe):
    """First they are published, then pinned, then given up."""
    lc("release", lake.lake.root, "v1", "--recipe", recipe)
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    stage_named("withdrawn_documents").build(lake.context, "all")
    assert lc("prune", lake.lake.root, "--purge").code == 3
    lake.build()
    said = lc("prune", lake.lake.root, "--purge")
    assert said.code == 3
    assert "pinned by v1: give it up with --give-up v1" in said.out
    said = lc("prune", lake.lake.root, "--purge", "--give-up", "v1", "--dry-run")
    assert "release v1 is given up" in said.err
    assert lc("prune", lake.lake.root, "--purge", "--give-up", "v1").code == 0
    assert (
        "versions are gone: held some of 1 withdrawn documents" in lc("release", lake.lake.root).out
    )
    assert lc("prune", lake.lake.root, "--give-up", "v1").code == 2
