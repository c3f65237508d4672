"""Documents dropped in arrays are those dropped one at a time, for the same reasons."""

import numpy as np
import pyarrow as pa
from hypothesis import given, strategies as st

from lc_assets.builds.tables import DROPPED
from lc_assets.formats.redpajama.signals import SignalsTable
from lc_assets.stages.documents.dropping import Part, reason_counts
from lc_assets.stages.documents.shard_filtering import NO_SIGNALS
from lc_assets.stages.documents.shard_inputs import TOO_LONG, UNREADABLE
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


def part_of(table: SignalsTable, duplicates, n_lines: int) -> Part:
    digest_of = "sha1:{}".format
    return Part(table, RULES, SHARD.document_id, duplicates, n_lines, digest_of=digest_of)


@given(
    tables(),
    st.sets(st.integers(0, 30)),
    st.integers(0, 31),
    st.data(),
)
def test_dropped_documents_are_those_of_the_reference(table, duplicates, n_lines, data):
    """The same lines, counts and survivors, whatever happens to the others. Every line that the
    file has is there once.
    """
    part = part_of(table, duplicates, n_lines)
    reasons = {line: slow_reasons(table, duplicates, RULES, line) for line in table.lines.tolist()}
    assert set(table.lines[part.failing].tolist()) == {line for line in reasons if reasons[line]}

    late, dropped = {}, []
    for line in range(n_lines):
        others = [UNREADABLE, TOO_LONG] if line in reasons else [UNREADABLE, TOO_LONG, NO_SIGNALS]
        if not reasons.get(line) or data.draw(st.booleans()):
            late[line] = [OTHERS[data.draw(st.sampled_from(others))]]
        dropped.append((line, late.get(line) or reasons[line]))
    found = part.dropped_table(late)
    expected = pa.Table.from_pylist(slow_lines(SHARD, table, dropped), DROPPED)
    assert str(found.to_pylist()) == str(expected.to_pylist())  # str: NaN is not itself
    every = found["reasons"].combine_chunks().flatten()
    assert (reason_counts(found["reason"]), reason_counts(every)) == slow_counts(dropped)


def test_no_document_is_no_table():
    """A shard of which everything is kept, or that is empty, drops nothing and counts nothing."""
    empty = SignalsTable(
        np.zeros(0, np.int64), [], {name: np.zeros(0) for name in RULES.columns}, 0, 0
    )
    found = part_of(empty, [], 0).dropped_table({})
    assert len(found) == 0
    assert reason_counts(found["reason"]) == {}
