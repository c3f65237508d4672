"""Every preset: on either side of each of its thresholds by value, and by pages that a person would
keep or drop.
"""

import math
from itertools import pairwise

import numpy as np
import pytest

from lc_assets.formats.corpora.containers import CorpusDocument
from lc_assets.formats.lists.models import open_models
from lc_assets.formats.lists.rule_files import preset_names, read_rules
from lc_assets.text.rules.columns import computable
from lc_assets.text.rules.models import LANGUAGE
from lc_assets.text.rules.rules import UNEDITED, failures
from lc_assets_tests.builders import WORDS
from lc_assets_tests.filtering import values_and_failures

RULES = {name: read_rules(name) for name in preset_names()}
BOUNDS = [
    (name, rule.name, bound)
    for name, rules in RULES.items()
    for rule in rules.rules
    for bound in ("at_least", "at_most")
    if getattr(rule, bound) is not None
]
MODELS = open_models([LANGUAGE])
SHORT = tuple(name for name in RULES if name not in {"longcrawl64", "redpajama-lucie-gzip"})


@pytest.mark.parametrize(("preset", "rule_name", "bound"), BOUNDS)
def test_the_bound_itself_passes_and_the_next_number_does_not(preset, rule_name, bound):
    """With every other value well inside; and it is this rule that speaks, no other of the same
    column.
    """
    rules = RULES[preset]
    values = {
        rule.column: (rule.at_least if rule.at_least is not None else rule.at_most)
        for rule in rules.rules
    }
    (rule,) = [rule for rule in rules.rules if rule.name == rule_name]
    edge = getattr(rule, bound)
    beyond = math.nextafter(edge, -math.inf if bound == "at_least" else math.inf)
    assert failures(values | {rule.column: edge}, rules) == []
    assert [name for name, _ in failures(values | {rule.column: beyond}, rules)] == [rule_name]


@pytest.mark.parametrize("preset", RULES)
def test_no_two_rules_of_a_preset_judge_one_column(preset):
    columns = [rule.column for rule in RULES[preset].rules]
    assert len(columns) == len(set(columns))
    assert {column.removesuffix(UNEDITED) for column in columns} <= set(computable(MODELS))


STOP_WORDS = {"the", "be", "to", "of", "and", "that", "have", "with"}
PLAIN_WORDS = tuple(word for word in WORDS if word not in STOP_WORDS)


def sentence(number: int, words: tuple[str, ...] = WORDS) -> str:
    """A sentence of common English words, no two of them alike."""
    chosen = [words[place] for place in np.random.default_rng(number).integers(len(words), size=14)]
    return f"{' '.join(chosen).capitalize()}."


def page(*numbers: int, words: tuple[str, ...] = WORDS) -> str:
    """A page whose lines hold the sentences from each number to the next."""
    return "\n".join(
        " ".join(sentence(number, words) for number in range(start, stop))
        for start, stop in pairwise(numbers)
    )


PROSE = page(0, 4, 9, 13, 17, 22)


def failed_rules(preset: str, text: str) -> list[str]:
    """The rules that a page fails."""
    document = CorpusDocument(id="x", text=text)
    return values_and_failures(document, RULES[preset], MODELS, language="en")[1]


@pytest.mark.parametrize("preset", SHORT)
def test_a_page_of_prose_is_kept(preset):
    assert failed_rules(preset, PROSE) == []


def test_a_page_of_prose_is_too_short_for_long_context():
    assert "words" in failed_rules("longcrawl64", PROSE)
    # A short text cannot be packed well.
    assert failed_rules("redpajama-lucie-gzip", PROSE) == ["gzip_ratio"]


def test_whole_books_are_in_the_band_of_long_documents(shared_data):
    """And neither the same sentence over and over nor noise."""
    book = next((shared_data / "books_en").glob("*.txt")).read_text("utf-8")
    rules = RULES["redpajama-lucie-gzip"].on(["gzip_ratio"])
    texts = {
        "book": book,
        "list": REPEATED * 50,
        "noise": np.random.default_rng(1).bytes(10**5).hex()[::2],
    }
    judged = {
        name: values_and_failures(CorpusDocument(id=name, text=text), rules)[1]
        for name, text in texts.items()
    }
    assert {name: bool(found) for name, found in judged.items()} == {
        "book": False,
        "list": True,
        "noise": True,
    }


@pytest.mark.parametrize("preset", RULES)
@pytest.mark.parametrize("text", ["", " ", "\n\n\n", "# # # #", "word"])
def test_next_to_nothing_is_dropped(preset, text):
    assert failed_rules(preset, text)


BULLETS = "\n".join(f"- {sentence(number)}" for number in range(20))
TRAILING = "\n".join(f"{sentence(number)[:-1]}\u2026" for number in range(20))
NUMBERS = f"{PROSE}\n" + " ".join(f"{number}.{number + 1}" for number in range(400)) + " the end."
REPEATED = "\n".join([sentence(1)] * 20)
SHOUTED = f"{PROSE}\n" + "\n".join(sentence(number).upper() for number in range(40, 44))


@pytest.mark.parametrize(
    ("preset", "text", "reason"),
    [
        ("gopher-paper", BULLETS, "bullets"),
        ("gopher-datatrove", BULLETS, "bullets"),
        ("gopher-dolma", BULLETS, "bullets"),
        # RedPajama-V2's bullets are ten symbols, and - is none
        ("redpajama-lucie", BULLETS, "kept"),
        ("gopher-paper", TRAILING, "ellipsis_lines"),
        ("gopher-datatrove", TRAILING, "ellipsis_lines"),
        ("gopher-dolma", TRAILING, "ellipsis_lines"),
        ("redpajama-lucie", TRAILING, "ellipsis_lines"),
        # three dots are no ellipsis there
        ("gopher-dolma", TRAILING.replace("\u2026", "..."), "kept"),
        ("gopher-paper", NUMBERS, "words_with_letter"),
        ("gopher-dolma", NUMBERS, "words_with_letter"),
        ("gopher-paper", REPEATED, "duplicate_lines"),
        ("gopher-datatrove", REPEATED, "duplicate_lines"),
        ("gopher-dolma", REPEATED, "duplicate_lines"),
        ("refinedweb", REPEATED, "duplicate_lines"),
        ("fineweb", REPEATED, "duplicate_lines"),
        ("gopher-paper", page(0, 4, 9, 13, 17, 22, words=PLAIN_WORDS), "stop_words"),
        ("c4", f"{PROSE}\nfunction of it {{ is this.", "curly_bracket"),
        # the line goes before anybody sees the bracket
        ("c4", f"{PROSE}\nfunction of it {{ is this", "kept"),
        ("c4", f"{PROSE}\nHere is lorem ipsum for you.", "lorem_ipsum"),
        ("c4", " ".join(map(sentence, range(4))), "sentences"),
        ("c4", PROSE.replace(".", ""), "sentences"),
        ("fineweb", PROSE.replace(".", ""), "terminal_punctuation"),
        ("fineweb", page(0, 2, 4), "sentences"),
        ("fineweb", f"{PROSE}\n" + "\n".join(f"{word} and more of it." for word in WORDS[40:60]), "short_lines"),
        ("refinedweb", SHOUTED, "words_removed"),
    ],
)  # fmt: skip
def test_a_page_is_dropped_for_what_is_wrong_with_it(preset, text, reason):
    """By the rule that is there for it."""
    reasons = failed_rules(preset, text)
    assert reasons == [] if reason == "kept" else reason in reasons


def test_on_books_the_variants_of_gopher_disagree_as_their_definitions_say(shared_data):
    """The share of words with a letter, where punctuation counts as words and where it does not:
    whole books differ in it.
    """
    books = [
        path.read_text("utf-8")[:200_000]
        for path in sorted((shared_data / "books_en").glob("*.txt"))[:12]
    ]
    found = {
        name: [
            values_and_failures(CorpusDocument(id="x", text=text), RULES[name]) for text in books
        ]
        for name in ("gopher-paper", "gopher-dolma", "gopher-datatrove")
    }
    paper, dolma, datatrove = ([values for values, _ in found[name]] for name in found)
    for ours, theirs, others in zip(paper, dolma, datatrove, strict=True):
        # Punctuation counts as words, so fewer words have a letter: the rule that datatrove drops
        # ten times as much by.
        assert (
            ours["frac_words_with_letter:whitespace"]
            == theirs["frac_words_with_letter:whitespace"]
            > 0.95
        )
        assert (
            others["frac_words_with_letter:spacy"]
            < ours["frac_words_with_letter:whitespace"] - 0.05
        )
        # All copies of a line against all but the first.
        assert theirs["frac_duplicate_lines.dolma"] >= ours["frac_duplicate_lines.datatrove"]
        # A median takes no notice of how long the long words are.
        assert theirs["median_word_length:whitespace"] <= ours["mean_word_length:whitespace"]
    assert not any(failed for _, failed in found["gopher-paper"])
