"""Rules in TOML: the presets say what their sources say, and nothing slips through."""

import msgspec
import pytest

from lc_assets.errors import BadInput
from lc_assets.formats.lists.rule_files import (
    parse_rules,
    parse_threshold,
    preset_names,
    read_rules,
    rule_on,
    with_thresholds,
)
from lc_assets.text.rules.line_rules import C4, line_rules_of
from lc_assets.text.rules.rules import LineEdit

GOPHER_NGRAMS = {"top_2gram": 0.20, "top_3gram": 0.18, "top_4gram": 0.16} | {
    f"dupe_{n}grams": bound
    for n, bound in zip(range(5, 11), (0.15, 0.14, 0.13, 0.12, 0.11, 0.10), strict=True)
}


def file_with(rule: str) -> str:
    return f'name = "mine"\n[[rule]]\n{rule}\n'


def lines(table: str) -> str:
    return f'name = "mine"\n[lines]\n{table}\n[[rule]]\n{SOUND}\n'


MEASURE = 'name = "letters"\nsignal = "frac_words_with_letter"\nat_least = 0.8'
SOUND = 'name = "words"\nsignal = "rps_doc_word_count"\nat_least = 50'


@pytest.mark.parametrize("name", ["redpajama-lucie", "longcrawl64"])
def test_presets_hold_gophers_table(name):
    """Table A1's thresholds, the quality rules', and a source beside each."""
    rules = {rule.name: rule for rule in read_rules(name).rules}
    assert {key: rules[key].at_most for key in GOPHER_NGRAMS} == GOPHER_NGRAMS
    assert all(rules[key].at_least is None for key in GOPHER_NGRAMS)
    assert (rules["mean_word_length"].at_least, rules["mean_word_length"].at_most) == (3, 10)
    bounds = {
        key: rules[key].at_most
        for key in ("symbols", "bullets", "ellipsis_lines", "no_alphabetic_words")
    }
    assert bounds == {
        "symbols": 0.1,
        "bullets": 0.9,
        "ellipsis_lines": 0.3,
        "no_alphabetic_words": 0.3,
    }
    assert len(rules) == 15
    assert all(rule.source for rule in rules.values())


@pytest.mark.parametrize("name", ["redpajama-lucie", "longcrawl64"])
def test_every_preset_rule_judges_the_signal_it_is_named_for(name):
    """A bound of table A1 on the wrong n-gram would go unseen otherwise."""
    for rule in read_rules(name).rules:
        if rule.name.startswith(("top_", "dupe_")):
            assert rule.signal == f"rps_doc_frac_chars_{rule.name}"


def test_the_presets_differ_in_words_alone():
    """LongCrawl64 wants long documents and has no cap."""
    lucie, longcrawl = read_rules("redpajama-lucie"), read_rules("longcrawl64")
    assert (lucie.rules[0].at_least, lucie.rules[0].at_most) == (50, 100_000)
    assert (longcrawl.rules[0].at_least, longcrawl.rules[0].at_most) == (16_000, None)
    assert lucie.rules[1:] == longcrawl.rules[1:]


def test_a_file_is_read_by_its_path(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(file_with(SOUND), "utf-8")
    rules = read_rules(str(path))
    assert (rules.name, [rule.at_least for rule in rules.rules]) == ("mine", [50])


def test_lucies_rules_with_a_band_are_lucies_rules_and_a_band():
    """Word for word, so that a change of one is a change of both."""
    lucie, banded = read_rules("redpajama-lucie"), read_rules("redpajama-lucie-gzip")
    assert banded.rules[:-1] == lucie.rules
    assert banded.rules[-1].column == "gzip_ratio"


@pytest.mark.parametrize("name", ["no-such-preset", "../presets/longcrawl64", "/"])
def test_what_is_neither_preset_nor_file_is_refused_with_the_presets_names(
    name, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        BadInput, match="longcrawl64, redpajama-lucie, redpajama-lucie-gzip, refinedweb"
    ):
        read_rules(name)
    assert {"longcrawl64", "redpajama-lucie"} <= set(preset_names())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (file_with(SOUND + "\nat_mots = 5"), "rule words: .* unknown field `at_mots`"),
        (file_with(SOUND) + "extra = 1", "rule words: .* unknown field `extra`"),
        ("color = 1\n" + file_with(SOUND), "here: .* unknown field `color`"),
        (
            file_with(SOUND.replace("word_count", "word_cuont")),
            "rule words: there is no signal 'rps_doc_word_cuont'",
        ),
        (
            file_with(SOUND.replace("rps_doc_word_count", "rps_lines_num_words")),
            "there is no signal 'rps_lines_num_words'",
        ),
        (
            file_with(SOUND.replace("50", "nan")),
            "rule words: bounds must be finite numbers, got nan",
        ),
        (file_with(SOUND.replace("50", "-inf")), "bounds must be finite numbers, got -inf"),
        (
            file_with(SOUND.replace("50", "true")),
            r"Expected `float . null`, got `bool` - at `\$.at_least`",
        ),
        (
            file_with(SOUND.replace("50", '"50"')),
            r"Expected `float . null`, got `str` - at `\$.at_least`",
        ),
        (file_with(SOUND.replace("50", "1" + "0" * 400)), "out of range - at .*at_least"),
        (file_with(SOUND.replace("50", "1" + "0" * 5000)), "not TOML"),
        (
            file_with(SOUND.replace("at_least = 50", "")),
            "rule words: .*neither at_least nor at_most",
        ),
        (file_with(SOUND + "\nat_most = 5"), "rule words: .*nothing can pass"),
        (file_with(SOUND) + "[[rule]]\n" + SOUND, "here: .*more than one is called words"),
        (
            file_with('signal = "rps_doc_word_count"\nat_most = 1'),
            "rule 1: .*missing required field `name`",
        ),
        (
            file_with(SOUND + '\nwords = "raw"'),
            "rule words: words is not allowed with rps_doc_word_count",
        ),
        (
            file_with(MEASURE),
            'rule letters: words is \'\'; .*expected "normalized" or "raw" or "spacy" or "whitespace"',
        ),
        (file_with(MEASURE + '\nwords = "spacey"'), "rule letters: words is 'spacey'"),
        (
            file_with(MEASURE + "\nwords = 5"),
            r"rule letters: Expected `str`, got `int` - at `\$.words`",
        ),
        (
            file_with('name = "a"\nsignal = "gzip_ratio"\nwords = "raw"\nat_most = 1'),
            "words is not allowed with gzip_ratio",
        ),
        (
            lines('edit = "c5"'),
            "here: lines: there is no line editing 'c5'; there are c4, fineweb, refinedweb",
        ),
        (lines('edit = ""'), "here: lines: there is no line editing ''"),
        (lines(""), "here: lines: there is no line editing ''"),
        (
            lines('edit = "c4"\nend_mark = []'),
            "c4 has no setting 'end_mark'; there are most_uppercase",
        ),
        (lines('edit = "c4"\nend_marks = [1]'), "Expected `str`, got `int` - at `..end_marks"),
        (lines('edit = "c4"\nend_marks = "."'), "Expected `array`, got `str` - at `..end_marks`"),
        (lines('edit = "c4"\ncitations = 1'), "Expected `bool`, got `int` - at `..citations`"),
        (
            lines('edit = "c4"\nfewest_words = true'),
            "Expected `int`, got `bool` - at `..fewest_words`",
        ),
        (
            lines('edit = "c4"\nfewest_words = 2.5'),
            "Expected `int`, got `float` - at `..fewest_words`",
        ),
        (lines('edit = "c4"\nlongest_word = -1'), "Expected `int` >= 0 - at `..longest_word`"),
        (
            lines('edit = "c4"\nmost_uppercase = nan'),
            "Expected `float` >= 0.0 - at `..most_uppercase`",
        ),
        (
            f"lines = 5\n{file_with(SOUND)}",
            r"here: Expected `object . null`, got `int` - at `\$.lines`",
        ),
        (SOUND, "unknown field `signal`"),
        ('name = "mine"', "here: .*missing required field `rule`"),
        ('name = "mine"\nrule = [1]', r"Expected `object`, got `int` - at `\$.rule\[0\]`"),
        ("[[rule]]\n" + SOUND, "here: .*missing required field `name`"),
        ("name = ", "here: not TOML"),
    ],
)
def test_a_broken_file_is_refused_by_file_and_rule(text, message):
    with pytest.raises(BadInput, match=f"^here.*{message}" if "here" not in message else message):
        parse_rules(text, where="here")


def extending(*, edits=False, **keys) -> str:
    table = "".join(f"{key} = {value}\n" for key, value in keys.items())
    edited = '[lines]\nedit = "c4"\n' if edits else ""
    return f'name = "mine"\n{edited}[[rule]]\n{SOUND.replace("words", "mine")}\n[[rule]]\n{table}'


def test_the_rules_of_a_preset_take_a_rules_place():
    """In their order, some of them, or all but some."""
    lucie = read_rules("redpajama-lucie").rules
    preset = '"redpajama-lucie"'
    for keys, expected in (
        ({}, lucie),
        ({"only": '["words", "top_4gram"]'}, (lucie[0], lucie[8])),
        ({"without": '["words"]'}, lucie[1:]),
    ):
        rules = parse_rules(extending(extends=preset, **keys), where="here").rules
        assert (rules[0].name, rules[1:]) == ("mine", expected)
    both = extending(extends=preset, only='["words"]') + "[[rule]]\n" + SOUND
    with pytest.raises(BadInput, match="more than one is called words"):
        parse_rules(both, where="here")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"extends": '"gopher"'}, "here: rule 2: there is no preset 'gopher': c4, fineweb"),
        ({"extends": '"c4"', "only": '["words"]'}, "rule 2: c4 has no rule words: lorem_ipsum"),
        ({"extends": '"c4"', "without": '["x"]'}, "c4 has no rule x"),
        ({"extends": '"c4"', "at_most": 1}, "unknown field `at_most`"),
        ({"extends": 5}, "Expected `str`, got `int`"),
    ],
)
def test_an_extension_that_means_nothing_is_refused(keys, message):
    with pytest.raises(BadInput, match=message):
        parse_rules(extending(**keys), where="here")


def test_rules_on_the_unedited_text_have_columns_of_their_own():
    """Where nothing is edited there is but one text."""
    keys = {"extends": '"gopher-datatrove"', "only": '["stop_words"]', "unedited": "true"}
    edited = parse_rules(extending(edits=True, **keys), where="here")
    assert [rule.column for rule in edited.rules] == [
        "rps_doc_word_count",
        "stop_words_distinct:spacy@unedited",
    ]
    plain = parse_rules(extending(**keys), where="here")
    assert plain.rules[1].column == "stop_words_distinct:spacy"
    assert with_thresholds(edited, {"stop_words": {"at_least": 1}}).rules[1].unedited
    assert (
        rule_on("stop_words_distinct:spacy@unedited", at_least=2).column == edited.rules[1].column
    )


def test_fineweb_and_refinedweb_are_in_the_order_of_their_papers():
    """Language, Gopher's repetition, its quality, then what is tested of edited lines."""
    for name in ("fineweb", "refinedweb"):
        rules = read_rules(name).rules
        assert [rule.signal for rule in rules[:2]] == ["language_is", "language_probability"]
        assert {rule.unedited for rule in rules[2:23]} == {True}
        assert not any(rule.unedited for rule in (*rules[:2], *rules[23:]))
        assert [rule.name for rule in rules[15:23]] == [
            rule.name for rule in read_rules("gopher-paper").rules[:8]
        ]


def test_thresholds_are_changed_by_name_and_the_rest_stays():
    """None takes a bound away; a bound that is not named stays."""
    before = read_rules("redpajama-lucie")
    after = with_thresholds(before, {"words": {"at_most": None}, "symbols": {"at_most": 0}})
    assert (after.rules[0].at_least, after.rules[0].at_most, after.rules[2].at_most) == (
        50,
        None,
        0,
    )
    assert [rule for place, rule in enumerate(after.rules) if place not in (0, 2)] == [
        rule for place, rule in enumerate(before.rules) if place not in (0, 2)
    ]
    assert with_thresholds(before, {}) == before


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"wrods": {"at_most": 1}},
            "no rule is called wrods; there are words, mean_word_length.* did you mean words",
        ),
        ({"words": {"most": 1}}, "rule words: .* unknown field `most`"),
        (
            {"words": {"at_most": float("nan")}},
            "rule words: bounds must be finite numbers, got 50.0 and nan",
        ),
        ({"symbols": {"at_most": None}}, "rule symbols: has neither"),
        ({"words": {"at_most": 10}}, "rule words: .*nothing can pass"),
    ],
)
def test_overrides_that_mean_nothing_are_refused(overrides, message):
    with pytest.raises(BadInput, match=message):
        with_thresholds(read_rules("redpajama-lucie"), overrides)


def test_a_rule_says_of_which_words_and_a_file_how_lines_are_edited():
    """The column's name tells two kinds of words apart; settings are those of the editing."""
    rules = parse_rules(
        lines('edit = "c4"\nend_marks = ["."]\nlongest_word = 50').replace(
            SOUND, MEASURE + '\nwords = "raw"'
        ),
        where="here",
    )
    assert rules.rules[0].column == "frac_words_with_letter:raw"
    assert rules.edit == LineEdit("c4", {"end_marks": (".",), "longest_word": 50})
    assert with_thresholds(rules, {"letters": {"at_least": 0.5}}).edit == rules.edit


def test_every_preset_is_named_after_its_file_and_gives_a_source_for_every_rule():
    assert preset_names() == [
        "c4", "fineweb", "gopher-datatrove", "gopher-dolma", "gopher-paper", "longcrawl64", "redpajama-lucie",
        "redpajama-lucie-gzip", "refinedweb",
    ]  # fmt: skip
    for name in preset_names():
        rules = read_rules(name)
        assert rules.name == name
        assert all(rule.source for rule in rules.rules)


@pytest.mark.parametrize(
    "name", ["gopher-paper", "gopher-datatrove", "gopher-dolma", "refinedweb", "fineweb"]
)
def test_the_variants_of_gopher_hold_the_papers_numbers(name):
    """They differ in how things are counted; in numbers Dolma alone differs, once."""
    rules = {rule.name: rule for rule in read_rules(name).rules}
    assert {key: rules[key].at_most for key in GOPHER_NGRAMS} == GOPHER_NGRAMS
    assert all(
        key.removeprefix("top_").removeprefix("dupe_") in rules[key].signal for key in GOPHER_NGRAMS
    )
    assert (rules["words"].at_least, rules["words"].at_most) == (50, 100_000)
    assert (rules["words_with_letter"].at_least, rules["stop_words"].at_least) == (0.8, 2)
    assert rules["duplicate_lines"].at_most == 0.30
    assert rules["duplicate_line_chars"].at_most == (0.30 if name == "gopher-dolma" else 0.20)


def test_fineweb_edits_as_c4_but_for_the_ends_of_lines():
    assert read_rules("c4").edit == LineEdit("c4", {})
    assert read_rules("fineweb").edit == LineEdit("fineweb", {})
    assert line_rules_of(LineEdit("fineweb", {})) == msgspec.structs.replace(
        C4, name="fineweb", end_marks=(), blank_lines=False
    )
    assert read_rules("refinedweb").edit == LineEdit("refinedweb", {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "words",
        "words.at_most",
        "words.at_most=",
        "words.most=1",
        "at_most=1",
        "words.at_most=nan",
        ".at_most=1",
    ],
)
def test_what_is_no_threshold_is_refused(text):
    with pytest.raises(BadInput, match="not a threshold: .*such as symbols.at_most=0.2"):
        parse_threshold(text)
