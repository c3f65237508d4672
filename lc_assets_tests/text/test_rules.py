"""Rules: bounds, failures in words, and columns tested like single values."""

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.text.rules.rules import Rule, RuleSet, failures, long_enough

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


@given(rule_sets(), st.lists(st.just(float("nan")) | NUMBERS, max_size=6))
def test_columns_are_tested_as_single_values_are(rules, values):
    """Missing values and equal bounds included."""
    for rule in rules.rules:
        found = rule.fails(np.array(values, np.float64))
        assert found.tolist() == [rule.failure(value) is not None for value in values]
    failing = rules.failing({name: np.array(values, np.float64) for name in SIGNALS}, len(values))
    alone = [failures(dict.fromkeys(SIGNALS, value), rules) for value in values]
    assert failing.tolist() == list(map(bool, alone))


def test_a_value_equal_to_a_bound_passes_and_zero_is_a_bound():
    """The card compares with < and >; a bound of zero is not "no bound"."""
    none_at_all = Rule(name="none", signal="rps_doc_lorem_ipsum", at_most=0)
    assert none_at_all.failure(0) is None
    assert none_at_all.failure(0.00000001) == "rps_doc_lorem_ipsum = 1e-08, expected at most 0"
    assert (
        Rule(name="any", signal="rps_doc_lorem_ipsum", at_least=0).failure(-0.5)
        == "rps_doc_lorem_ipsum = -0.5, expected at least 0"
    )


def test_words_show_every_digit_that_matters():
    """A value just above its bound never reads as the bound; large counts have separators."""
    assert Rule(
        name="alpha", signal="rps_doc_frac_no_alph_words", at_most=0.3, source="Lucie"
    ).failure(0.30000001) == (
        "rps_doc_frac_no_alph_words = 0.30000001, expected at most 0.3 (Lucie)"
    )
    assert Rule(name="cap", signal="rps_doc_word_count", at_most=100_000).failure(1_234_567.0) == (
        "rps_doc_word_count = 1,234,567, expected at most 100,000"
    )


@pytest.mark.parametrize("value", [None, float("nan")])
def test_a_missing_value_fails(value):
    """Nobody measured it, so nothing is known in its favour; an upper bound is no exception."""
    assert (
        Rule(name="cap", signal="rps_doc_word_count", at_most=5).failure(value)
        == "rps_doc_word_count is missing, expected at most 5"
    )


def test_all_failures_come_in_the_order_of_the_rules():
    """Not the first alone, and the value as it was found."""
    rules = RuleSet(
        "two",
        (
            long_enough(16_000),
            Rule(name="bullets", signal="frac_lines_start_with_bulletpoint", at_most=0.9),
        ),
    )
    found = failures({"rps_doc_word_count": 3}, rules)
    assert str(found) == "[('long_enough', 3), ('bullets', nan)]"


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


def test_rule_sets_survive_json():
    """Receipts hold them."""
    rules = RuleSet("all", (long_enough(16_000),))
    text = msgspec.json.encode(rules)
    assert msgspec.json.decode(text, type=RuleSet) == rules
    assert json.loads(text)["rules"][0]["at_least"] == 16_000


def test_settings_hold_what_defines_a_set_of_rules_and_nothing_else():
    """A set of names would come in the order of the process's hash seed, and so would versions."""
    rules = RuleSet("length", (long_enough(16_000),))
    assert rules.columns == {"rps_doc_word_count"}
    assert set(msgspec.to_builtins(rules)) == {"name", "rules", "edit"}
