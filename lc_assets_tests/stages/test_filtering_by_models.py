"""Rules on languages, addresses, perplexity and quality: both sides of every bound, what was not
given, and what is opened.
"""

import gzip
import json
import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.recipe_files import parse_recipe
from lc_assets.builds.settings.common import ModelSettings, QualityModelSettings
from lc_assets.builds.settings.documents import FilteringSettings
from lc_assets.errors import BadInput
from lc_assets.formats.corpora.containers import CorpusDocument
from lc_assets.formats.lists import models as language_model
from lc_assets.formats.lists.models import open_language_model, open_models
from lc_assets.formats.lists.rule_files import parse_rules, read_rules
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.documents.explaining import explain_in_files
from lc_assets.stages.documents.filtered_documents import STAGE
from lc_assets.stages.documents.measuring import languages_of, models_of, rules_of
from lc_assets.text.links.addresses import Blocklist, host_of
from lc_assets.text.rules.columns import values_of
from lc_assets.text.rules.models import (
    LANGUAGE,
    MODELLED,
    NO_MODELS,
    Models,
    Offered,
    stated_languages,
)
from lc_assets_tests.builders import (
    LENIENT_RULES,
    SNAPSHOTS,
    TINY_MIN_WORDS,
    tiny_context,
    tiny_upstream,
)
from lc_assets_tests.filtering import filter_files, values_and_failures

ENGLISH = (
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was "
    "the age of foolishness."
)
GERMAN = (
    "Als Gregor Samsa eines Morgens aus unruhigen Träumen erwachte, fand er sich in seinem "
    "Bett verwandelt."
)
BLOCKED = Models(blocklist=Blocklist({"bad.example"}, {"mixed.example/bad"}))


def rules(**bounds: dict[str, float]):
    """A rule per signal."""
    return parse_rules(toml(**bounds), where="here")


def toml(**bounds: dict[str, float]) -> str:
    """The same as a file."""
    said = "".join(
        f'\n[[rule]]\nname = "{name}"\nsignal = "{name}"\n'
        + "".join(f"{bound} = {value}\n" for bound, value in of.items())
        for name, of in bounds.items()
    )
    return 'name = "mine"\n' + said


def reasons(rule_set, models: Models, *, language: str = "", **document) -> list[str]:
    document = CorpusDocument(id="x", **document)
    return values_and_failures(document, rule_set, models, language=language)[1]


@pytest.mark.parametrize("preset", ["fineweb", "refinedweb"])
@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (("en", 0.65), []),
        (("en", math.nextafter(0.65, 0)), ["language_probability"]),
        (("de", 0.65), ["language"]),
        (("de", 0.1), ["language", "language_probability"]),
    ],
)
def test_presets_take_a_language_at_its_bound_and_not_below(preset, answer, wanted):
    models = Models(language=lambda line: answer)
    found = reasons(read_rules(preset), models, language="en", text=ENGLISH)
    assert [name for name in found if name.startswith("language")] == wanted


@pytest.mark.parametrize(
    ("text", "said", "by_default", "kept"),
    [
        (ENGLISH, "", "en", True),
        (GERMAN, "", "en", False),
        (GERMAN, "de", "en", True),  # what the record says comes before what is said of all
        (GERMAN, "eng,deu", "", True),
        (GERMAN, "de-AT", "", True),
        (ENGLISH, "deu", "en", False),
        (ENGLISH, "", "", False),  # nobody says what it should be in
        ("", "en", "en", False),
    ],
)
def test_c4_asks_for_the_language_that_a_document_is_said_to_be_in(text, said, by_default, kept):
    document = CorpusDocument(id="x", text=text, language=said)
    models = open_models([LANGUAGE])
    values, failed = values_and_failures(document, read_rules("c4"), models, language=by_default)
    assert ("language" not in failed) is kept
    assert (values["language_is"] is None) == (not said and not by_default)


@pytest.mark.parametrize(("said", "found"), [("", "en"), ("deu", "de"), ("fr", "fr")])
def test_a_document_is_in_the_language_that_its_record_or_else_its_source_names(said, found):
    columns = {"text": ["A long one."], "language": [said]}
    assert languages_of(columns, [0], "en", NO_MODELS) == [found]


@given(st.text(max_size=30))
def test_whatever_a_document_is_said_to_be_in_is_some_names(said):
    assert all(name and name == name.strip() for name in stated_languages(said))


@pytest.mark.parametrize(
    ("url", "domain", "page"),
    [
        ("http://bad.example/x", 1.0, 1.0),
        ("https://user@WWW.Bad.Example:8080/", 1.0, 1.0),
        ("http://good.example@bad.example/", 1.0, 1.0),
        ("http://bad.example@good.example/", 0.0, 0.0),
        ("http://mixed.example/a/../bad/page", 0.0, 1.0),
        ("http://mixed.example/badly", 0.0, 0.0),
        ("http://notbad.example", 0.0, 0.0),
        ("http://bad\u3002example/", 1.0, 1.0),  # an ideographic full stop is a dot
        ("http://b%61d.example/", 1.0, 1.0),
        ("", None, None),
        ("http://", None, None),
        ("http://a\0b\ud800/", None, None),
        ("x" * 100_000, 0.0, 0.0),
        ("mailto:x@bad.example", None, None),
    ],
)
def test_pages_of_a_list_are_dropped_and_addresses_without_a_host_are_missing(url, domain, page):
    """An address that hides its host is not kept for that."""
    values = values_of(Offered(text="", url=url), ["domain_blocked", "url_blocked"], models=BLOCKED)
    assert values == {"domain_blocked": domain, "url_blocked": page}
    found = reasons(
        rules(domain_blocked={"at_most": 0}, url_blocked={"at_most": 0}), BLOCKED, text="x", url=url
    )
    assert found == [name for name, value in values.items() if value != 0]


@given(st.text(alphabet=st.characters(codec=None), max_size=60))
def test_any_address_is_blocked_or_not_or_none(url):
    values = values_of(Offered(text="", url=url), ["domain_blocked", "url_blocked"], models=BLOCKED)
    assert set(values.values()) <= ({0.0, 1.0} if host_of(url) else {None})


def test_perplexity_is_the_models_where_there_is_one_and_else_the_published():
    """Two words of a hundredth each, and the line's end: a perplexity of 100."""
    scorer = Models(perplexity=lambda text: (-2.0 * (n := len(text.split()) + 1), n))
    bound = rules(perplexity={"at_most": 100})
    assert reasons(bound, scorer, text="two words", perplexity=1.0) == []
    assert reasons(
        rules(perplexity={"at_most": 99.9}), scorer, text="two words", perplexity=1.0
    ) == ["perplexity"]
    assert reasons(bound, NO_MODELS, text="two words", perplexity=100.0) == []
    assert reasons(bound, NO_MODELS, text="two words", perplexity=100.5) == ["perplexity"]
    assert (
        reasons(bound, NO_MODELS, text="two words", rest=msgspec.Raw(b'{"perplexity": 7.5}')) == []
    )
    assert reasons(bound, NO_MODELS, text="two words") == ["perplexity"]


def test_quality_is_by_the_model_that_was_given():
    models = Models(quality={"rps_doc_ml_palm_score": lambda line: ("cc", 0.75)})
    assert reasons(rules(rps_doc_ml_palm_score={"at_least": 0.25}), models, text="a\nb") == []
    assert reasons(rules(rps_doc_ml_palm_score={"at_least": 0.26}), models, text="a\nb") == [
        "rps_doc_ml_palm_score"
    ]


def test_models_see_the_text_before_its_lines_were_edited():
    seen = []
    models = Models(language=lambda line: seen.append(line) or ("en", 0.9))
    reasons(read_rules("c4"), models, language="en", text="Menu\nIt was late.")
    assert seen == ["Menu It was late."]


@pytest.mark.parametrize(
    ("signal", "how"),
    [
        (
            "domain_blocked",
            (
                "without a list of addresses; give --blocklist PATH, or blocklist in "
                ".filtered_documents.models."
            ),
        ),
        ("url_blocked", "without a list of addresses; give --blocklist PATH"),
        (
            "rps_doc_ml_wikiref_score",
            (
                "without a model; give --wikiref-model PATH, or wikiref in "
                ".filtered_documents.models.quality."
            ),
        ),
        (
            "rps_doc_books_importance",
            "without a model; use the published signals, or leave the rule out",
        ),
        (
            "rps_doc_stop_word_fraction",
            "without a list; give --stop-words PATH, or stop_words in .filtered_documents.lists.",
        ),
    ],
)
def test_what_was_not_given_is_said_before_a_document_is_read(tmp_path, signal, how):
    """The file is no corpus: reading it would say something else."""
    source, path = tmp_path / "pages.jsonl.gz", tmp_path / "rules.toml"
    source.write_bytes(b"no gzip")
    path.write_text(toml(**{signal: {"at_most": 1}}))
    settings = FilteringSettings(rules=str(path), missing_signals="compute")
    with pytest.raises(BadInput, match=f"{signal}: cannot be computed {how}"):
        rules_of(settings)
    with pytest.raises(BadInput, match=f"{signal}: cannot be computed {how}"):
        explain_in_files([source], "x", read_rules(str(path)))


def test_only_what_rules_need_is_opened(tmp_path, monkeypatch):
    """The other paths lead nowhere, and the packaged model is gone."""
    monkeypatch.setattr(language_model, "PACKAGE", "no-such-package")
    (tmp_path / "list.txt").write_text("bad.example\n")
    nowhere = str(tmp_path / "nowhere")
    settings = ModelSettings(
        language=nowhere,
        blocklist=str(tmp_path / "list.txt"),
        perplexity=nowhere,
        quality=QualityModelSettings(palm=nowhere),
    )
    assert list(models_of(settings, ["domain_blocked", "rps_doc_word_count"]).digests) == [
        "blocklist"
    ]
    assert models_of(settings, ["rps_doc_word_count"]) is NO_MODELS
    for column in ("language_is", "perplexity", "rps_doc_ml_palm_score"):
        with pytest.raises(BadInput, match="nowhere: does not exist"):
            models_of(settings, [column])


def test_a_perplexity_model_brings_the_pieces_that_lie_beside_it(tmp_path, monkeypatch):
    """CCNet's layout; both are digested."""

    class Kenlm:
        class Model:
            def __init__(self, path):
                pass

            def score(self, words):
                return -1.0 * len(words.split())

    class Pieces:
        class SentencePieceProcessor:
            def __init__(self, model_file):
                pass

            def encode(self, line, out_type):  # noqa: ARG002
                return list(line.replace(" ", ""))

    modules = __import__("sys").modules
    monkeypatch.setitem(modules, "kenlm", Kenlm)
    monkeypatch.setitem(modules, "sentencepiece", Pieces)
    model = tmp_path / "en.arpa.bin"
    model.write_bytes(b"model")
    alone = open_models(["perplexity"], perplexity=model)
    assert alone.perplexity("a bc\nD") == (-3.0, 5)
    (tmp_path / "en.sp.model").write_bytes(b"pieces")
    both = open_models(["perplexity"], perplexity=model)
    assert both.perplexity("a bc\nD") == (-4.0, 5)
    assert both.digests == {
        **alone.digests,
        "perplexity model's words": both.digests["perplexity model's words"],
    }


def test_receipt_and_explanation_state_by_what_values_were_computed(tmp_path):
    source, listed, path = (tmp_path / name for name in ("pages.jsonl", "list.txt", "rules.toml"))
    listed.write_text("bad.example\n")
    pages = [
        ("good", "http://good.example", ENGLISH),
        ("bad", "http://bad.example", ENGLISH),
        ("german", "http://good.example/", GERMAN),
    ]
    source.write_text(
        "".join(
            json.dumps({"id": name, "url": url, "text": text}) + "\n" for name, url, text in pages
        )
    )
    bounds = {
        "url_blocked": {"at_most": 0},
        "language_is": {"at_least": 1},
        "language_probability": {"at_least": 0.65},
    }
    path.write_text(toml(**bounds))
    asked, settings = rules(**bounds), ModelSettings(blocklist=str(listed))
    found = filter_files(source, tmp_path / "out", str(path), models=settings, all_signals=True)
    assert (found.counts.seen, found.counts.kept) == (3, 1)
    assert found.counts.dropped == {"url_blocked": 1, "language_is": 1}
    digests = models_of(settings, asked.columns).digests
    for built in (found.built["filtered_documents"], found.built["document_signals"]):
        (stage,) = built.values()
        assert stage.published.receipt.fingerprint.params["models"] == digests
    assert digests["language model"] == open_language_model().digest
    explained = explain_in_files(
        [source], "german", asked, language="en", models=models_of(settings, MODELLED)
    )
    assert explained.digests == digests
    assert explained.values["language_is"] == 0
    assert explained.reasons == ("language_is = 0, expected at least 1",)


CHAIN_RULES = f"""{LENIENT_RULES}
[[rule]]
name = "blocked"
signal = "domain_blocked"
at_most = 0

[[rule]]
name = "language"
signal = "language_is"
at_least = 1
"""
SNAPSHOT = SNAPSHOTS[0]


def test_the_chain_asks_models_of_the_survivors_and_the_receipt_says_which(tmp_path):
    """Everybody's host is listed, or nobody's; a list that changed is another version, one that no
    rule needs is none.
    """
    upstream = tiny_upstream(tmp_path / "upstream", snapshots=[SNAPSHOT], tags=("0000/en_head",))
    path = tmp_path / "rules.toml"
    path.write_text(CHAIN_RULES)
    listed = tmp_path / "list.txt"

    def filtered(entry: str, folder: Path):
        listed.write_text(f"{entry}\n")
        folder.mkdir()
        settings = FilteringSettings(
            rules=str(path), min_words=TINY_MIN_WORDS, models=ModelSettings(blocklist=str(listed))
        )
        context = tiny_context(folder, upstream=upstream, filtered_documents=settings)
        stage_named("raw_snapshot").build(context, SNAPSHOT)
        return stage_named("filtered_documents").build(context, SNAPSHOT)

    nobody, everybody = (
        filtered("nobody.example", tmp_path / "one"),
        filtered(_host(upstream), tmp_path / "two"),
    )
    assert nobody.counts.kept > everybody.counts.kept == 0
    assert everybody.counts.dropped["blocked"] == nobody.counts.kept + nobody.counts.dropped.get(
        "language", 0
    )
    models = [built.published.receipt.fingerprint.params["models"] for built in (nobody, everybody)]
    assert (
        models[0]["language model"] == models[1]["language model"] == open_language_model().digest
    )
    assert models[0]["blocklist"] != models[1]["blocklist"]
    plain = Recipe(
        filtered_documents=FilteringSettings(models=ModelSettings(blocklist=str(listed)))
    )
    assert STAGE.params(plain, SNAPSHOT)["models"] == {}
    with pytest.raises(
        BadInput,
        match="domain_blocked: cannot be computed without a list of addresses; "
        ".*filtered_documents.models",
    ):
        rules_of(FilteringSettings(rules=str(path)))


def _host(upstream: Path) -> str:
    with gzip.open(upstream / f"documents/{SNAPSHOT}/0000/en_head.json.gz") as file:
        return host_of(json.loads(file.readline())["url"])


def test_models_of_quality_in_a_recipe_have_three_names():
    recipe = parse_recipe(
        '[filtered_documents.models.quality]\npalm = "palm.bin"', where="mine.toml"
    )
    assert recipe.filtered_documents.models.quality.palm == "palm.bin"
    with pytest.raises(BadInput, match="there are palm, wikiref, wikipedia"):
        parse_recipe('[filtered_documents.models.quality]\nplam = "palm.bin"', where="mine.toml")
