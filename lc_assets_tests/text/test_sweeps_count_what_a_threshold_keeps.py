"""Sweeps: every count is what testing all documents again with that threshold would give, and
shards add up.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.stages.documents.sweeping import added, sweep
from lc_assets.text.rules.rules import Rule, RuleSet, failures

COLUMNS = ["ccnet_nlines", "rps_doc_word_count", "letters:whitespace"]
BOUNDS = st.sampled_from([-2.0, 0.0, 0.1, 0.3, 1.0, 50.0])
# Multiples of the bounds, so that values often equal a threshold of the grid.
VALUES = st.one_of(
    st.builds(lambda bound, by: bound * by, BOUNDS, st.sampled_from([0.5, 0.7, 1.0, 1.1, 2.0])),
    st.floats(-5, 100),
)


@st.composite
def rule_sets(draw) -> RuleSet:
    rules = []
    for place in range(draw(st.integers(0, 4))):
        column = draw(st.sampled_from(COLUMNS))
        signal, _, words = column.partition(":")
        low, high = sorted(draw(st.tuples(BOUNDS, BOUNDS)))
        low, high = draw(st.sampled_from([(low, None), (None, high), (low, high)]))
        rules.append(
            Rule(name=f"rule {place}", signal=signal, words=words, at_least=low, at_most=high)
        )
    return RuleSet("drawn", tuple(rules))


DOCUMENTS = st.lists(
    st.fixed_dictionaries({name: st.none() | VALUES for name in COLUMNS}), max_size=12
)


def columns_of(docs):
    return {
        name: np.array([np.nan if doc[name] is None else doc[name] for doc in docs], np.float64)
        for name in COLUMNS
    }


def brute_force(docs, allowed, rules, at):
    """Test every document again: by a rule that has this bound alone, and by all rules with this
    bound changed.
    """
    (rule,) = [rule for rule in rules.rules if rule.name == at["rule"]]
    bound = at["bound"]
    bare = replace(rule, **({"at_least": None, "at_most": None} | {bound: at["threshold"]}))
    alone = sum(not failures(doc, RuleSet("alone", (bare,))) for doc in docs)
    # A threshold may cross the rule's other bound, and then nothing passes: two rules say so, one
    # could not be made.
    other_half = (
        [replace(rule, name="other", **{bound: None})]
        if None not in (rule.at_least, rule.at_most)
        else []
    )
    changed = RuleSet(
        "changed", (*(rule for rule in rules.rules if rule.name != at["rule"]), bare, *other_half)
    )
    return alone, sum(
        not failures(doc, changed) for doc, may in zip(docs, allowed, strict=True) if may
    )


@given(rule_sets(), DOCUMENTS, st.data())
def test_each_count_is_what_testing_again_would_give(rules, docs, data):
    """Missing values, equal bounds, a bound of zero, negative bounds, and documents that something
    else drops.
    """
    allowed = data.draw(st.lists(st.booleans(), min_size=len(docs), max_size=len(docs)))
    found = sweep(columns_of(docs), rules, allowed=np.array(allowed, np.bool_))
    for at in found.to_pylist():
        counts = at["kept_alone"], at["kept_with_the_others"]
        assert counts == brute_force(docs, allowed, rules, at), at


@given(rule_sets(), DOCUMENTS, st.integers(0, 12))
def test_shards_add_up(rules, docs, cut):
    one, two, whole = (
        sweep(columns_of(some), rules, allowed=np.ones(len(some), np.bool_))
        for some in (docs[:cut], docs[cut:], docs)
    )
    assert added([one, two]) == whole


@pytest.mark.parametrize("bound", [0.0, 0.3, 16_000.0, -2.0, 1e-300])
def test_a_rules_own_bound_is_on_its_grid_and_the_grid_rises(bound):
    """Otherwise nobody could compare a neighbour with what is in force."""
    rules = RuleSet("one", (Rule(name="one", signal="ccnet_length", at_most=bound),))
    found = sweep({"ccnet_length": np.zeros(0)}, rules, allowed=np.ones(0, np.bool_)).to_pylist()
    thresholds = [at["threshold"] for at in found]
    assert thresholds == sorted(set(thresholds))
    assert [at["threshold"] for at in found if at["in_force"]] == [bound]
