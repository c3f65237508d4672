"""Signals are written byte for byte as msgspec writes them."""

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from lc_assets.compiling import interpreted
from lc_assets.text.signals import as_json
from lc_assets.text.signals.as_json import spans_as_json
from lc_assets.text.signals.names import NO_LISTS, WordLists
from lc_assets.text.signals.signals import signals_of_each
from lc_assets.text.texts import Texts
from lc_assets_tests.strategies import hostile_text

LISTS = WordLists(
    stop_words={"en": frozenset({"the"})},
    bad_words={"en": frozenset({"the end"})},
    domains={"example.org": 7},
)


def measured(texts, lists):
    domains = ["example.org", *[""] * (len(texts) - 1)]
    return signals_of_each(Texts(texts), domains, lists, language="en")


def expected(found):
    spans = found.spans()
    return [
        msgspec.json.encode(dict(zip(spans, own, strict=True)))
        for own in zip(*spans.values(), strict=True)
    ]


@given(
    st.lists(hostile_text() | st.text("the end.\n•1A ", max_size=90), min_size=1, max_size=4),
    st.sampled_from([LISTS, NO_LISTS]),
)
@example(["", "\n", "• 1\n\nEND", "", "the end"], LISTS)
def test_signals_of_texts_are_written_as_by_msgspec(texts, lists):
    found = measured(texts, lists)
    assert [b"{%b}" % text for text in as_json._written(found)] == expected(found)


@given(st.integers(0, 2**50) | st.integers(0, 10**5), st.sampled_from([0, 3, 5, 8]))
@example(10**15 - 1, 8)
@example(999, 8)
@example(1000, 8)
@example(1, 8)
def test_any_score_is_written_as_by_msgspec(number, digits):
    """Numbers of up to eight decimal digits; `round8` makes no others."""
    out, score = np.zeros(40, np.uint8), number / 10**digits
    end = as_json._write_score(out, 0, score, False)
    if end < 0:
        assert score >= 1e7
        assert digits
    else:
        assert out[:end].tobytes() == msgspec.json.encode(score)


@pytest.mark.parametrize("score", [12345678.125, -1.0, -0.0, 2.0**53, 1 / 3])
def test_scores_that_the_kernel_cannot_write_are_written(score):
    found = measured(["The end.", "x"], NO_LISTS)
    found.scores[1, 0] = score
    assert as_json._written(found) is None
    assert [b"{%b}" % text for text in spans_as_json(found)] == expected(found)


def test_few_texts_are_written_without_a_compiler():
    with interpreted(True):
        found = measured(["The end."], LISTS)
        assert [b"{%b}" % text for text in spans_as_json(found)] == expected(found)
