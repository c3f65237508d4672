"""Our signals are those of RedPajama-V2: against its own program's output, a slow reference, and by
hand.
"""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given

from lc_assets.formats.lists.word_lists import read_word_lists
from lc_assets.text.signals.names import (
    LINE_SIGNALS,
    LIST_SIGNALS,
    RULE_SIGNALS,
    SCALARS,
    TEXT_DOC_SIGNALS,
    WordLists,
)
from lc_assets.text.signals.signals import bullet_fraction, signals_of
from lc_assets_tests.reference.redpajama_signals import slow_signals
from lc_assets_tests.reference.signals import read_document, scalar_values, signals_of_document
from lc_assets_tests.strategies import hostile_text


def as_json(signals) -> str:
    return json.dumps({name: [list(span) for span in spans] for name, spans in signals.items()})


@pytest.fixture(scope="session")
def lists(shared_data: Path) -> WordLists:
    """The lists that the published code was run with; no domain was listed."""
    folder = shared_data / "rpv2_lists"
    if not folder.is_dir():
        pytest.skip("no lists in shared/data")
    return replace(
        read_word_lists(stop_words=folder / "stopwords_rpv2.json", bad_words=folder), domains={}
    )


@given(hostile_text())
@example("")
@example("\n")
@example("ha " * 30)
def test_plain_signals_are_the_slow_ones(text):
    """Same names, same spans, same digits, and int stays int: the JSON is the same, key order
    aside.
    """
    plain, slow = signals_of_document(read_document(text)), slow_signals(text)
    assert as_json(plain) == as_json({name: slow[name] for name in plain})
    assert plain.keys() == slow.keys()


def test_every_edge_case_of_the_published_code(shared_data: Path, lists: WordLists):
    """Twenty texts that its program was run on; the order of the keys is its order.

    The raw words are taken as its program had them: its NLTK was newer than the data set's and
    keeps joiners with the next word, which shows in one of the texts.
    """
    cases = edge_cases(shared_data)
    assert len(cases) == 20
    for case in cases:
        document = replace(read_document(case["raw_content"]), raw_words=case["raw_words"])
        assert as_json(signals_of_document(document, lists, language=case["lang"])) == json.dumps(
            case["signals"]
        ), case["name"]


def test_the_fast_way_has_every_edge_case_but_the_one_with_joiners(
    shared_data: Path, lists: WordLists
):
    unequal = {
        case["name"]: name
        for case in edge_cases(shared_data)
        for name, spans in json.loads(
            as_json(signals_of(case["raw_content"], lists, language=case["lang"]))
        ).items()
        if spans != case["signals"][name]
    }
    assert unequal.keys() == {"zero_width"}


def edge_cases(shared_data: Path) -> list[dict]:
    return [
        json.loads(line)
        for line in (shared_data / "golden/edge_cases.jsonl").read_text("utf-8").splitlines()
    ]


def test_raw_words_differ_from_the_newer_nltk_only_at_joiners(shared_data: Path):
    cases = edge_cases(shared_data)
    assert [
        case["name"]
        for case in cases
        if read_document(case["raw_content"]).raw_words != case["raw_words"]
    ] == ["zero_width"]


@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "it"])
def test_books_have_the_published_codes_signals(shared_data: Path, lists: WordLists, language):
    """The two shortest of each language: document signals in full, line signals by their number,
    sum, ends and digest.
    """
    check_books(shared_data, lists, language, 2)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "it"])
def test_all_books_have_the_published_codes_signals(shared_data: Path, lists: WordLists, language):
    check_books(shared_data, lists, language, 100)


def check_books(shared_data: Path, lists: WordLists, language: str, most: int) -> None:
    books = (shared_data / "golden" / f"books_{language}.jsonl").read_text("utf-8").splitlines()
    for line in sorted(books, key=lambda line: json.loads(line)["bytes"])[:most]:
        wanted = json.loads(line)
        with (shared_data / wanted["file"]).open(encoding="utf-8", newline="") as file:
            found = json.loads(as_json(signals_of(file.read(), lists, language=language)))
        assert found.keys() == wanted["signals"].keys() == set(RULE_SIGNALS)
        for name in (*TEXT_DOC_SIGNALS, *LIST_SIGNALS):
            assert found[name] == wanted["signals"][name], (wanted["file"], name)
        for name in LINE_SIGNALS:
            told = wanted["signals"][name]
            assert summary(found[name]) == told | {"sum": pytest.approx(told["sum"], rel=1e-12)}, (
                wanted["file"],
                name,
            )


def summary(spans: list) -> dict:
    digest = hashlib.sha256(json.dumps(spans, separators=(",", ":")).encode()).hexdigest()
    scores = [score for *_, score in spans]
    return {
        "n": len(spans),
        "sum": sum(scores),
        "first": spans[:3],
        "last": spans[-3:],
        "sha256_of_json": digest,
    }


def test_one_text_by_hand():
    """Thirteen raw words, seven of them with a letter; eight normalized words, the bullet among
    them, é counting as two.
    """
    text = "• Café, café!\nTHE café ends...\n\nNo {x}"
    signals = {name: spans[0][2] for name, spans in signals_of(text).items()}
    assert signals["rps_doc_word_count"] == 8
    assert signals["rps_doc_mean_word_length"] == round((1 + 5 + 5 + 3 + 5 + 4 + 2 + 1) / 8, 8)
    assert signals["rps_doc_symbol_to_word_ratio"] == round(1 / 13, 8)
    assert signals["rps_doc_frac_all_caps_words"] == round(1 / 13, 8)
    assert signals["rps_doc_frac_no_alph_words"] == round(1 - 7 / 13, 8)
    assert signals["rps_doc_frac_lines_end_with_ellipsis"] == 0.25
    assert signals["rps_doc_curly_bracket"] == round(2 / len(text), 8)


def test_line_signals_by_hand():
    """Spans hold the newline; an empty line is a line; what follows the last newline needs
    something in it.
    """
    signals = signals_of("• One 12.\n\n- TWO javascript\n")
    assert signals["rps_lines_num_words"] == [(0, 10, 3), (10, 11, 0), (11, 28, 2)]
    assert signals["rps_lines_start_with_bulletpoint"] == [
        (0, 10, 1.0),
        (10, 11, 0.0),
        (11, 28, 0.0),
    ]
    assert signals["rps_lines_ending_with_terminal_punctution_mark"] == [
        (0, 10, 1.0),
        (10, 11, 0.0),
        (11, 28, 0.0),
    ]
    assert signals["rps_lines_numerical_chars_fraction"] == [
        (0, 10, 0.25),
        (10, 11, 0.0),
        (11, 28, 0.0),
    ]
    assert signals["rps_lines_uppercase_letter_fraction"] == [
        (0, 10, 0.1),
        (10, 11, 0.0),
        (11, 28, round(3 / 17, 8)),
    ]
    assert signals["rps_lines_javascript_counts"] == [(0, 10, 0.0), (10, 11, 0.0), (11, 28, 1.0)]


def test_ten_characters_are_bullets_and_dash_and_star_are_not():
    """Indented or not; a bullet later in the line does not count."""
    starts = [*"•‣▶◀◦■□▪▫–", "  •", *"-*—·", "a •"]
    bullets = signals_of("\n".join(starts))["rps_lines_start_with_bulletpoint"]
    assert [score for *_, score in bullets] == [1.0] * 11 + [0.0] * 5


def test_scalar_values_take_the_published_scores_and_derive_the_bullets():
    """Two of CCNet's four lines are bulleted; line signals have no single value; a null score stays
    None.
    """
    signals = signals_of("• a\n• b\nc\n") | {
        "ccnet_nlines": [(0, 10, 4.0)],
        "rps_doc_ut1_blacklist": [(0, 10, None)],
    }
    values = scalar_values(signals)
    assert values["frac_lines_start_with_bulletpoint"] == 0.5
    assert values["rps_doc_word_count"] == 5
    assert values["rps_doc_ut1_blacklist"] is None
    assert values.keys() <= set(SCALARS)


@pytest.mark.parametrize(
    ("bullets", "n_lines"),
    [([(0, 3, 1.0)], None), ([(0, 3, 1.0)], 0.0), ([], 3.0), ([(0, 0, None)], 1.0)],
)
def test_the_share_of_bullets_is_missing_when_it_has_no_meaning(bullets, n_lines):
    """No count, no lines, no line signals: each is missing, never zero, which would pass the
    rule.
    """
    assert bullet_fraction(bullets, n_lines) is None
