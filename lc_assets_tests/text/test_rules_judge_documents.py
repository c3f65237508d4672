"""Rules: bounds, complaints in words, and columns judged like single documents."""

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_assets.errors import BadInput
from lc_assets.text.rules.rules import Complaint, Rule, RuleSet, judge, judge_columns, long_enough

SIGNALS = ["ccnet_nlines", "rps_doc_word_count", "rps_doc_curly_bracket"]
# Few distinct numbers, so that values often equal a bound.
NUMBERS = st.sampled_from([-1.0, 0.0, 0.1, 0.5, 1.0, 50.0])


@st.composite
def rule_sets(draw) -> RuleSet:
    pairs = draw(
        st.lists(st.tuples(st.none() | NUMBERS, st.none() | NUMBERS).filter(any_sound), max_size=4)
    )
    return RuleSet(
        "drawn",
        tuple(
            Rule(
                name=f"rule {place}",
                signal=draw(st.sampled_from(SIGNALS)),
                at_least=at_least,
                at_most=at_most,
            )
            for place, (at_least, at_most) in enumerate(pairs)
        ),
    )


def any_sound(bounds: tuple[float | None, float | None]) -> bool:
    at_least, at_most = bounds
    return bounds != (None, None) and (at_least is None or at_most is None or at_least <= at_most)


DOCUMENTS = st.lists(
    st.fixed_dictionaries({}, optional={name: st.none() | NUMBERS for name in SIGNALS}), max_size=6
)


@given(rule_sets(), DOCUMENTS, st.booleans())
def test_columns_are_judged_as_single_documents_are(rules, docs, drop_last_column):
    """Missing values, equal bounds and whole missing columns included."""
    if drop_last_column:
        docs = [{name: value for name, value in doc.items() if name != SIGNALS[-1]} for doc in docs]
    names = SIGNALS[:-1] if drop_last_column else SIGNALS
    columns = {
        name: np.array([np.nan if doc.get(name) is None else doc[name] for doc in docs], np.float64)
        for name in names
    }
    found = judge_columns(columns, rules)
    assert found.shape == (len(rules.rules), len(docs))
    for place, doc in enumerate(docs):
        complaining = {complaint.rule for complaint in judge(doc, rules)}
        assert [bool(complains) for complains in found[:, place]] == [
            rule.name in complaining for rule in rules.rules
        ]


def test_a_value_equal_to_a_bound_passes_and_zero_is_a_bound():
    """The card compares with < and >; a bound of zero is not "no bound"."""
    none_at_all = Rule(name="none", signal="rps_doc_lorem_ipsum", at_most=0)
    assert none_at_all.complaint(0) is None
    assert none_at_all.complaint(0.00000001) == "rps_doc_lorem_ipsum = 1e-08, wanted at most 0"
    assert (
        Rule(name="any", signal="rps_doc_lorem_ipsum", at_least=0).complaint(-0.5)
        == "rps_doc_lorem_ipsum = -0.5, wanted at least 0"
    )


def test_words_show_every_digit_that_matters():
    """A value just above its bound never reads as the bound; large counts have separators."""
    assert Rule(
        name="alpha", signal="rps_doc_frac_no_alph_words", at_most=0.3, source="Lucie"
    ).complaint(0.30000001) == (
        "rps_doc_frac_no_alph_words = 0.30000001, wanted at most 0.3 (Lucie)"
    )
    assert Rule(name="cap", signal="rps_doc_word_count", at_most=100_000).complaint(
        1_234_567.0
    ) == ("rps_doc_word_count = 1,234,567, wanted at most 100,000")


@pytest.mark.parametrize("value", [None, float("nan")])
def test_a_missing_value_is_a_complaint(value):
    """Nobody measured it, so nothing is known in its favour; an upper bound is no exception."""
    assert (
        Rule(name="cap", signal="rps_doc_word_count", at_most=5).complaint(value)
        == "rps_doc_word_count is missing, wanted at most 5"
    )


def test_all_complaints_come_in_the_order_of_the_rules():
    """Not the first alone, and the value as it was found."""
    rules = RuleSet(
        "two",
        (
            long_enough(16_000),
            Rule(name="bullets", signal="frac_lines_start_with_bulletpoint", at_most=0.9),
        ),
    )
    assert judge({"rps_doc_word_count": 3}, rules) == (
        Complaint("long_enough", 3, "rps_doc_word_count = 3, wanted at least 16,000 (setting)"),
        Complaint(
            "bullets", None, "frac_lines_start_with_bulletpoint is missing, wanted at most 0.9"
        ),
    )


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({}, "neither at_least nor at_most"),
        ({"at_most": float("nan")}, "finite"),
        ({"at_least": float("inf")}, "finite"),
        ({"at_least": 2, "at_most": 1}, "nothing can pass"),
    ],
)
def test_a_rule_that_means_nothing_cannot_be_made(bounds, message):
    with pytest.raises(BadInput, match=f"rule strange: .*{message}"):
        Rule(name="strange", signal="rps_doc_word_count", **bounds)


def test_rules_of_one_name_cannot_be_in_one_set():
    """Counts of dropped documents are kept by name; two rules would share one."""
    with pytest.raises(BadInput, match="called long_enough"):
        RuleSet("all", ()).and_also(long_enough(1), long_enough(2))


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(BadInput, match=r"\[1, 2\]"):
        judge_columns(
            {"ccnet_nlines": np.zeros(1), "rps_doc_word_count": np.zeros(2)}, RuleSet("all", ())
        )


def test_rule_sets_survive_json():
    """Receipts hold them."""
    rules = RuleSet("all", (long_enough(16_000),))
    text = msgspec.json.encode(rules)
    assert msgspec.json.decode(text, type=RuleSet) == rules
    assert json.loads(text)["rules"][0]["at_least"] == 16_000
