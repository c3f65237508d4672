"""Rules in TOML: the presets say what their sources say, and nothing slips through."""

import pytest

from lc_assets.errors import BadInput
from lc_assets.formats.rule_files import parse_rules, preset_names, read_rules, with_thresholds

GOPHER_NGRAMS = {"top_2gram": 0.20, "top_3gram": 0.18, "top_4gram": 0.16} | {
    f"dupe_{n}grams": bound for n, bound in zip(range(5, 11), (0.15, 0.14, 0.13, 0.12, 0.11, 0.10), strict=True)
}


def file_with(rule: str) -> str:
    return f'name = "mine"\n[[rule]]\n{rule}\n'


SOUND = 'name = "words"\nsignal = "rps_doc_word_count"\nat_least = 50'


@pytest.mark.parametrize("name", ["redpajama-lucie", "longcrawl64"])
def test_presets_hold_gophers_table(name):
    """Table A1's thresholds, the quality rules', and a source beside each."""
    rules = {rule.name: rule for rule in read_rules(name).rules}
    assert {key: rules[key].at_most for key in GOPHER_NGRAMS} == GOPHER_NGRAMS
    assert all(rules[key].at_least is None for key in GOPHER_NGRAMS)
    assert (rules["mean_word_length"].at_least, rules["mean_word_length"].at_most) == (3, 10)
    bounds = {key: rules[key].at_most for key in ("symbols", "bullets", "ellipsis_lines", "no_alphabetic_words")}
    assert bounds == {"symbols": 0.1, "bullets": 0.9, "ellipsis_lines": 0.3, "no_alphabetic_words": 0.3}
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


@pytest.mark.parametrize("name", ["no-such-preset", "../presets/longcrawl64", "/"])
def test_what_is_neither_preset_nor_file_is_refused_with_the_presets_names(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="longcrawl64, redpajama-lucie"):
        read_rules(name)
    assert {"longcrawl64", "redpajama-lucie"} <= set(preset_names())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (file_with(SOUND + "\nat_mots = 5"), "rule words: unknown key 'at_mots'"),
        (file_with(SOUND) + "extra = 1", "rule words: unknown key 'extra'"),
        ("color = 1\n" + file_with(SOUND), "here: unknown key 'color'"),
        (file_with(SOUND.replace("word_count", "word_cuont")), "rule words: there is no signal 'rps_doc_word_cuont'"),
        (file_with(SOUND.replace("rps_doc_word_count", "rps_lines_num_words")), "there is no signal 'rps_lines_num_words'"),
        (file_with(SOUND.replace("50", "nan")), "rule words: at_least is nan, wanted a finite number"),
        (file_with(SOUND.replace("50", "-inf")), "wanted a finite number"),
        (file_with(SOUND.replace("50", "true")), "at_least is True, wanted a finite number"),
        (file_with(SOUND.replace("50", '"50"')), "at_least is 50, wanted a finite number"),
        (file_with(SOUND.replace("50", "1" + "0" * 400)), "wanted a finite number"),
        (file_with(SOUND.replace("50", "1" + "0" * 5000)), "not TOML"),
        (file_with(SOUND.replace("at_least = 50", "")), "rule words: .*neither at_least nor at_most"),
        (file_with(SOUND + "\nat_most = 5"), "rule words: .*nothing can pass"),
        (file_with(SOUND) + "[[rule]]\n" + SOUND, "here: .*more than one is called words"),
        (file_with('signal = "rps_doc_word_count"\nat_most = 1'), "rule 1: name is None"),
        (SOUND, "unknown key"),
        ('name = "mine"', "here: holds no rules"),
        ('name = "mine"\nrule = [1]', "rule 1: wanted a table"),
        ("[[rule]]\n" + SOUND, "here: name is None"),
        ("name = ", "here: not TOML"),
    ],
)
def test_a_broken_file_is_refused_by_file_and_rule(text, message):
    with pytest.raises(BadInput, match=f"^here.*{message}" if "here" not in message else message):
        parse_rules(text, where="here")


def test_thresholds_are_changed_by_name_and_the_rest_stays():
    """None takes a bound away; a bound that is not named stays."""
    before = read_rules("redpajama-lucie")
    after = with_thresholds(before, {"words": {"at_most": None}, "symbols": {"at_most": 0}})
    assert (after.rules[0].at_least, after.rules[0].at_most, after.rules[2].at_most) == (50, None, 0)
    assert [rule for place, rule in enumerate(after.rules) if place not in (0, 2)] == [
        rule for place, rule in enumerate(before.rules) if place not in (0, 2)
    ]
    assert with_thresholds(before, {}) == before


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"wrods": {"at_most": 1}}, "no rule is called wrods; there are words, mean_word_length"),
        ({"words": {"most": 1}}, "rule words: unknown key 'most'"),
        ({"words": {"at_most": float("nan")}}, "rule words: at_most is nan"),
        ({"symbols": {"at_most": None}}, "rule symbols: has neither"),
        ({"words": {"at_most": 10}}, "rule words: .*nothing can pass"),
    ],
)
def test_overrides_that_mean_nothing_are_refused(overrides, message):
    with pytest.raises(BadInput, match=message):
        with_thresholds(read_rules("redpajama-lucie"), overrides)
