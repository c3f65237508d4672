"""Groups of lengths, means of densities, and the numbers that the paper prints."""

import math

import pytest

from lc_assets.packing.lengths import EDGES
from lc_assets.stages.reports.document_sets import GROUPS, group_of
from lc_assets.stages.reports.referral_report import paper_figures, paper_tables
from lc_assets.text.referrals.referrals import (
    DISTANCES,
    KINDS,
    Mentions,
    bucket_names,
    count_referrals,
)
from lc_assets_tests.reference.referral_pairs import Sums


def test_a_length_is_in_the_group_that_it_begins():
    for number, lower in enumerate((0, *EDGES)):
        assert group_of(lower) == GROUPS[number]
        assert group_of(lower - 1) == GROUPS[number - 1] if lower else True
    assert len(GROUPS) == len(EDGES) + 1


def test_means_are_of_the_documents_figures():
    """Not of their sums: a long document counts as much as a short one."""
    one, other = (
        count_referrals(Mentions.of(50, {"a": [0, 40]})),
        count_referrals(Mentions.of(50, {"a": [0, 1, 1]})),
    )
    sums = Sums()
    sums.add(one, 10)
    sums.add(other, 1000)
    assert (sums.n_documents, sums.n_tokens) == (2, 1010)
    assert sums.means() == {
        "pairs": [pytest.approx(0.0005), pytest.approx(0.001), pytest.approx(0.05), 0, 0],
        "neighbours": [pytest.approx(0.0005), pytest.approx(0.0005), pytest.approx(0.05), 0, 0],
        "concepts": [0.5, 0.5, 0.5, 0, 0],
    }
    assert Sums().means() == {}


def test_the_papers_tables_are_whole():
    """Five groups by two sets by three tables of four buckets; the printed relations between them
    hold.
    """
    assert set(paper_tables()) == set(KINDS)
    for table in paper_tables().values():
        assert list(table) == ["RefinedWeb", "Packed"]
        for groups in table.values():
            assert list(groups) == GROUPS[:5]
            assert all(len(row) == len(bucket_names()) - 1 for row in groups.values())
            assert [row[3] for row in groups.values()] == sorted(row[3] for row in groups.values())
    ours, theirs = (paper_tables()["pairs"][name]["32K-64K"] for name in ("Packed", "RefinedWeb"))
    assert ours[3] > 2 * theirs[3]
    assert all(mine < his for mine, his in zip(ours[:3], theirs[:3], strict=True))
    assert math.isclose(paper_tables()["neighbours"]["RefinedWeb"]["32K-64K"][3], 6.16e-3)


def test_the_paper_has_no_figures_for_other_buckets():
    figures = paper_figures("pairs", "RefinedWeb", "0-4K", DISTANCES)
    assert figures == [None, 0.57, 0.41, 0.02, 0]
    assert set(paper_figures("pairs", "RefinedWeb", "0-4K", (32, 128))) == {None}
