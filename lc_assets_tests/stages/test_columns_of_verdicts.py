"""Verdicts in columns are the verdicts that one gets by asking document by document."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_assets.build.tables import DROPPED
from lc_assets.formats.redpajama.signals import SignalsTable
from lc_assets.stages.documents import verdicts as module
from lc_assets.stages.documents.verdicts import NO_SIGNALS, TOO_LONG, UNREADABLE, Verdicts
from lc_assets.text.rules.rules import Rule, RuleSet
from lc_assets.vocabulary import Shard
from lc_assets_tests.reference.dropped_documents import (
    OTHERS,
    slow_counts,
    slow_lines,
    slow_reasons,
)

SHARD = Shard.parse("2023-06/0003/de_middle")
RULES = RuleSet(
    "three",
    (
        Rule(name="few", signal="rps_doc_word_count", at_least=3),
        Rule(name="many", signal="rps_doc_word_count", at_most=5),
        Rule(name="symbols", signal="rps_doc_symbol_to_word_ratio", at_most=0),
    ),
)
SCORES = st.sampled_from([0.0, 2.0, 3.0, 5.0, 6.0, float("nan")])


@st.composite
def tables(draw) -> SignalsTable:
    """Signals of a few documents, some of them missing."""
    lines = sorted(draw(st.sets(st.integers(0, 30), max_size=12)))
    columns = {
        name: np.array([draw(SCORES) for _ in lines], np.float64) for name in sorted(RULES.columns)
    }
    return SignalsTable(np.array(lines, np.int64), [f"u{line}" for line in lines], columns, 0, 0)


@given(tables(), st.sets(st.integers(0, 30)), st.data(), st.sampled_from([1, 3, 100]))
def test_dropped_documents_are_the_slow_twins(table, duplicates, data, at_once):
    """The same lines, counts and survivors, however many documents are written at once and whatever
    befalls the others.
    """
    verdicts = Verdicts.of(table, duplicates, RULES, max_line_bytes=1000)
    reasons = {line: slow_reasons(table, duplicates, RULES, line) for line in table.lines.tolist()}
    assert {line for line, fate in verdicts.fate_of.items() if fate in verdicts.passing} == {
        line for line in reasons if not reasons[line]
    }

    dropped, fates = [], []
    for line in range(31):
        judged = reasons.get(line)
        others = st.sampled_from(
            [UNREADABLE, TOO_LONG] if judged is not None else [UNREADABLE, TOO_LONG, NO_SIGNALS]
        )
        fate = verdicts.fate_of[line] if judged else data.draw(others)
        dropped.append((line, judged or [OTHERS[fate]]))
        fates.append(fate)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DROPPED_AT_ONCE", at_once)
        found = list(verdicts.dropped(SHARD.document_id, np.arange(31), np.array(fates)))
    assert [piece.num_rows for piece in found[:-1]] == [at_once] * (len(found) - 1)
    expected = pa.Table.from_pylist(slow_lines(SHARD, table, dropped), DROPPED)
    assert str(pa.concat_tables(found).to_pylist()) == str(
        expected.to_pylist()
    )  # str: NaN is not itself
    assert verdicts.counted(np.array(fates)) == slow_counts(dropped)


def test_no_document_is_no_table():
    """A shard of which everything is kept, or that is empty, drops nothing and counts nothing."""
    empty = SignalsTable(
        np.zeros(0, np.int64), [], {name: np.zeros(0) for name in RULES.columns}, 0, 0
    )
    verdicts = Verdicts.of(empty, [], RULES, max_line_bytes=1000)
    nothing = np.zeros(0, np.int64)
    assert list(verdicts.dropped(SHARD.document_id, nothing, nothing)) == []
    assert verdicts.counted(nothing) == ({}, {})


@given(tables(), st.sets(st.integers(0, 30)), st.integers(0, 31), st.sets(st.integers(0, 30)))
def test_documents_that_were_not_looked_at_take_their_place(table, duplicates, n_lines, too_long):
    """Every line that the file has once: kept, looked at and dropped, or dropped by its signals
    alone.
    """
    verdicts = Verdicts.of(table, duplicates, RULES, max_line_bytes=1000)
    fates = {line: verdicts.fate_of.get(line, NO_SIGNALS) for line in range(n_lines)}
    fates |= {line: TOO_LONG for line in too_long if line < n_lines}
    dropped = {line: fate for line, fate in fates.items() if fate not in verdicts.passing}
    failing = set(table.lines[verdicts.failing].tolist())
    looked_at = {
        line: fate for line, fate in dropped.items() if fate == TOO_LONG or line not in failing
    }
    lines, found = verdicts.with_failing(n_lines, list(looked_at), list(looked_at.values()))
    assert dict(zip(lines.tolist(), found.tolist(), strict=True)) == dropped
    assert lines.tolist() == sorted(dropped)
