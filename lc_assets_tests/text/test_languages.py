"""The language of a document: right for books, bounded in time, and quiet."""

import gzip
import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.lists.fasttext_files import require_whole
from lc_assets.formats.lists.models import (
    open_language_model,
    open_line_model,
    open_models,
)
from lc_assets.formats.lists.perplexity_models import open_perplexity_model
from lc_assets.text.rules.models import ccnet_normalized, language_of, quality_score
from lc_assets_tests.tokens.hostile_text import PIECES

SENTENCES = {
    "en": "It was the best of times, it was the worst of times, it was the age of wisdom.",
    "de": "Als Gregor Samsa eines Morgens aus unruhigen Träumen erwachte, fand er sich verwandelt.",
    "fr": "Longtemps, je me suis couché de bonne heure, et mes yeux se fermaient si vite.",
    "es": "En un lugar de la Mancha, de cuyo nombre no quiero acordarme, vivía un hidalgo.",
    "it": "Nel mezzo del cammin di nostra vita mi ritrovai per una selva oscura.",
}


@pytest.fixture(scope="module")
def predict():
    return open_language_model().predict


def books(language):
    folder = next(
        (
            path / "shared" / "data"
            for path in Path(__file__).parents
            if (path / "shared" / "data").is_dir()
        ),
        None,
    )
    return [] if folder is None else sorted((folder / f"books_{language}").glob("*.txt"))


@pytest.mark.parametrize("language", SENTENCES)
def test_languages_are_known(language, predict):
    """Sentences, and of each book that lies beside the checkout its beginning and its middle."""
    found, probability = language_of(SENTENCES[language], predict)
    assert found == language
    assert 0.5 < probability <= 1
    for book in books(language):
        text = book.read_text("utf-8")
        assert {language_of(text[start:], predict)[0] for start in (0, len(text) // 2)} == {
            language
        }


@given(st.one_of(st.text(), st.text(alphabet=st.characters(codec=None), max_size=50)))
def test_any_text_has_a_probability(text):
    language, probability = language_of(text, open_language_model().predict)
    assert 0 <= probability <= 1
    assert bool(language) == bool(text.strip())


@pytest.mark.parametrize(
    "text", [*PIECES, "", "\0", "\ud800\n\udfff", "א" * 3000, "e\u0301" * 3000, "x" * 1_000_000]
)
def test_hostile_text_is_answered_the_same_twice(text, predict):
    assert language_of(text, predict) == language_of(text, predict)


def test_only_the_beginning_of_a_text_is_given_to_the_model(predict):
    """Ten megabytes cost no more than their first few thousand characters."""
    given = []

    def recorded(text, *more, **named):
        given.append(len(text))
        return predict(text, *more, **named)

    text = SENTENCES["de"] * 130_000
    assert language_of(text, recorded) == language_of(text[:2000], predict)
    assert max(given) < 10_000


def test_nothing_is_printed(capfd, tmp_path):
    """FastText's own package warns whenever a model is loaded."""
    path = tmp_path / "copy.ftz"
    shutil.copy(packaged(), path)
    assert open_language_model(path).predict("Guten Tag, wie geht es Ihnen?")[0] == "de"
    assert open_language_model(path).digest == open_language_model().digest
    assert capfd.readouterr() == ("", "")


def packaged():
    from lc_assets.formats.lists import models as language_model

    return language_model._packaged()


def test_models_that_are_none_are_told(tmp_path, monkeypatch):
    with pytest.raises(BadInput, match="does not exist"):
        open_language_model(tmp_path / "nowhere.ftz")
    (tmp_path / "page.html").write_bytes(b"<html>404</html>")
    with pytest.raises(CorruptFile, match="has wrong file format"):
        open_language_model(tmp_path / "page.html")
    (tmp_path / "changed.ftz").write_bytes(packaged().read_bytes()[:-1] + b"x")
    with pytest.raises(CorruptFile, match="has SHA-256"):
        open_line_model(tmp_path / "changed.ftz", must_be=open_language_model().digest)
    monkeypatch.setattr("lc_assets.formats.lists.models.PACKAGE", "no-such-package")
    with pytest.raises(BadInput, match="no-such-package is not installed"):
        packaged()


def cut_in_many_places(whole, path):
    """The first bytes of a file, in 100 lengths: the first ones dense, the others evenly spaced."""
    for size in (*range(0, 200, 8), *range(200, len(whole), len(whole) // 75)):
        path.write_bytes(whole[:size])
        yield path


def test_a_fasttext_model_that_is_cut_short_is_refused_before_it_is_loaded(tmp_path, monkeypatch):
    """Loading one hangs, takes all memory or ends the process, so it must not even begin."""
    import fasttext

    monkeypatch.setattr(fasttext, "load_model", lambda path: pytest.fail(f"{path} was loaded"))
    n_refused = 0
    for path in cut_in_many_places(packaged().read_bytes(), tmp_path / "cut.ftz"):
        with pytest.raises(CorruptFile, match="cut short or damaged|is empty"):
            open_line_model(path)
        n_refused += 1
    assert n_refused >= 100


def test_a_model_with_a_damaged_head_is_refused(tmp_path):
    """A loss that fastText does not know: its error is of another type than for a wrong kind."""
    damaged = bytearray(packaged().read_bytes())
    damaged[32:36] = struct.pack("<i", 99)
    (tmp_path / "damaged.ftz").write_bytes(damaged)
    with pytest.raises(CorruptFile, match="no supervised fastText model"):
        open_line_model(tmp_path / "damaged.ftz")


def test_a_model_that_is_not_quantized_is_walked_through_too(tmp_path):
    """Two words, a label and a bucket, in two dimensions; every cut, and impossible sizes."""
    head = struct.pack("<ii12id", 793712314, 12, 2, *([1] * 11), 0.1)
    entries = [(b"a", 0), (b"b", 0), (b"__label__x", 1)]
    words = b"".join(name + b"\0" + struct.pack("<qb", 1, kind) for name, kind in entries)
    dictionary = struct.pack("<iiiqq", 3, 2, 1, 9, -1) + words
    matrices = b"\0" + struct.pack("<qq6f", 3, 2, *([0.5] * 6))
    matrices += b"\0" + struct.pack("<qq2f", 1, 2, 0.5, 0.5)
    whole, path = head + dictionary + matrices, tmp_path / "model.bin"
    path.write_bytes(whole)
    require_whole(path)
    for size in range(1, len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptFile, match="fetch it again"):
            require_whole(path)
    for place in (len(head), len(head + dictionary) + 1):
        for size in (-1, 1 << 30):
            path.write_bytes(whole[:place] + struct.pack("<i", size) + whole[place + 4 :])
            with pytest.raises(CorruptFile, match="cut short or damaged"):
                require_whole(path)


def test_an_arpa_model_that_is_cut_short_is_refused_without_reading_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "kenlm", None)
    path = tmp_path / "en.arpa"
    path.write_bytes(b"\\data\\\nngram 1=6\n" + b"-1.0\tword\n" * 1000)
    with pytest.raises(CorruptFile, match="is cut short"):
        open_perplexity_model(path)
    path.write_bytes(path.read_bytes() + b"\n\\end\\\n")
    with pytest.raises(BadInput, match="pip install kenlm"):
        open_perplexity_model(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat SAT", "the cat sat"),
        (" ÉTÉ à Łódź ", "ete a łodz"),
        ("1984, ٣ and ４２", "0000, 0 and 00"),
        ("„So“, «said» she—and left…", '"so", "said" she - and left...'),
        ("one\ntwo\tthree\x7f\x85", "onetwothree"),
        (" \n ", ""),
    ],
)
def test_texts_are_normalized_as_ccnet_does(text, expected):
    """The expected values are those of its own function."""
    assert ccnet_normalized(text) == expected


def test_quality_models_score_only_what_they_were_given_for(tmp_path):
    """Any model will do: a label that is not the crawl's counts as the better text's."""
    given = {"palm": packaged(), "wikiref": packaged()}
    models = open_models(["palm"], quality=given).quality
    assert list(models) == ["rps_doc_ml_palm_score"]
    score = quality_score("Guten Tag, wie geht\nes Ihnen?", models["rps_doc_ml_palm_score"])
    assert score == round(open_language_model().predict("Guten Tag, wie geht es Ihnen?")[1], 8)


def test_perplexity_needs_a_model_and_its_library(tmp_path, monkeypatch):
    with pytest.raises(BadInput, match="use the published perplexity"):
        open_perplexity_model(tmp_path / "en.arpa.bin")
    (tmp_path / "en.arpa.bin").touch()
    monkeypatch.setitem(__import__("sys").modules, "kenlm", None)
    with pytest.raises(BadInput, match="pip install kenlm"):
        open_perplexity_model(tmp_path / "en.arpa.bin")


@pytest.mark.network
@pytest.mark.parametrize(
    "content",
    [
        packaged().read_bytes(),
        b"some text\n" * 10_000,
        gzip.compress(bytes(100_000)),
        b"PAR1\xff\xfe" + bytes(1000) + b"PAR1",
        b"mmap lm http://kheafield.com/code format version 5\n\0" + bytes(5000),
        b"",
    ],
    ids=["fastText", "text", "gzip", "Parquet", "cut off", "empty"],
)
def test_kenlm_refuses_files_of_other_kinds(tmp_path, content):
    """The installed library itself."""
    pytest.importorskip("kenlm")
    path = tmp_path / "en.arpa.bin"
    path.write_bytes(content)
    with pytest.raises(CorruptFile, match="kenlm does not take it"):
        open_perplexity_model(path)


def test_perplexity_asks_the_library_line_by_line(tmp_path, monkeypatch):
    """A library that gives each word a hundredth."""

    class Kenlm:
        class Model:
            def __init__(self, path):
                if not (content := Path(path).read_bytes()):
                    raise OSError("Cannot read model")
                content.decode()  # the library's error has the file's first bytes

            def score(self, words):
                return -2.0 * (len(words.split()) + 1)

    monkeypatch.setitem(__import__("sys").modules, "kenlm", Kenlm)
    (tmp_path / "en.arpa.bin").touch()
    with pytest.raises(CorruptFile, match="Cannot read model"):
        open_perplexity_model(tmp_path / "en.arpa.bin")
    (tmp_path / "en.arpa.bin").write_bytes(b"\xa2")
    with pytest.raises(CorruptFile, match="does not take it"):
        open_perplexity_model(tmp_path / "en.arpa.bin")
    (tmp_path / "en.arpa.bin").write_bytes(b"model")
    assert open_perplexity_model(tmp_path / "en.arpa.bin")("three words \ud800") == (-8.0, 4)
