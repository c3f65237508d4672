"""Which document is kept and why: the queries against the plain reference."""

from dataclasses import asdict

import numpy as np
import pytest

from lc_assets.builds.settings.documents import RemovalSettings
from lc_assets.errors import BadInput
from lc_assets.stages.deduplication.deciding import NO_SIDE, Standing, decide, involved
from lc_assets.stages.deduplication.facts import NO_PAIRS
from lc_assets.stages.deduplication.queries import queries
from lc_assets.stages.deduplication.removal_lines import removed_lines
from lc_assets_tests.reference.preferences import Candidate, ranked, why
from lc_assets_tests.stages.deduplication.test_deciding import facts_of

OLD = Candidate(id="b", number=0, source="crawl", date="2014-05-01", n_chars=500, perplexity=None)
NEW = Candidate(id="c", number=1, source="books", date="2023-05-01", n_chars=400, perplexity=250.0)
UNDATED = Candidate(id="a", number=2, source="crawl", n_chars=400, perplexity=300.0)


@pytest.mark.parametrize(
    ("words", "stays", "why_rather_than_old"),
    [
        ("newest", NEW, "newer: 2023-05-01 rather than 2014-05-01"),
        ("oldest", OLD, None),
        ("longest,newest", OLD, None),
        ("best_perplexity", NEW, "better perplexity: 250.0 rather than none"),
        ("source=books", NEW, "from books"),
        ("source=crawl", UNDATED, "first by id"),
        ("source=crawl,oldest", OLD, None),
        ("", UNDATED, "first by id"),
    ],
)
def test_who_stays_and_why(tmp_path, words, stays, why_rather_than_old):
    """By the reference, and by the queries over three documents of one text."""
    prefer = tuple(word for word in words.split(",") if word)
    for order in ([OLD, NEW, UNDATED], [UNDATED, NEW, OLD]):
        assert ranked(prefer, order)[0] == stays
    if why_rather_than_old:
        assert why(prefer, stays, OLD) == why_rather_than_old
    lines = [asdict(found) | {"text_high": 1, "text_low": 2} for found in (OLD, NEW, UNDATED)]
    with queries(tmp_path / "duckdb") as database:
        database.connection.register("facts", facts_of(lines))
        database.do(f"CREATE VIEW pairs AS {NO_PAIRS}")
        known = involved(database, ("text",), prefer, 0.8)
    standing = Standing(*np.zeros((2, 3), np.bool_), np.full(3, NO_SIDE, np.uint8))
    decided = decide(known, standing, ("text",), 0.8)
    removed = removed_lines(known, standing, decided, np.flatnonzero(decided.kept >= 0), prefer)
    assert {line["id"]: (line["kept_id"], line["why"]) for line in removed.to_pylist()} == {
        found.id: (stays.id, why(prefer, stays, found))
        for found in (OLD, NEW, UNDATED)
        if found != stays
    }


@pytest.mark.parametrize("words", ["best", "source=", "newest;oldest"])
def test_an_unknown_preference_names_those_there_are(words):
    with pytest.raises(BadInput, match="source=NAME, newest, oldest, longest, best_perplexity"):
        RemovalSettings(prefer=(words,))
