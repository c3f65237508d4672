"""Sentences by the installed NLTK, with a small model; these tests run where it is installed."""

import pytest

from lc_assets.errors import BadInput
from lc_assets.formats.tokenizers import sentences
from lc_assets.formats.tokenizers.sentences import model_digest, sentences_of

pytestmark = pytest.mark.network
TEXT = "Dr. Who came. He left!\n\nThen? No."


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model of one abbreviation; its folder."""
    data = pytest.importorskip("nltk.data")
    folder = tmp_path / "tokenizers" / "punkt_tab" / "english"
    folder.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "ortho_context.tab"):
        (folder / name).touch()
    (folder / "abbrev_types.txt").write_text("dr\n")
    monkeypatch.setattr(data, "path", [str(tmp_path)])
    sentences._splitter.cache_clear()
    yield folder
    sentences._splitter.cache_clear()


def test_sentences_are_punkts(model):
    assert list(sentences_of(TEXT, "english")) == ["Dr. Who came.", "He left!", "Then?", "No."]


def test_newlines_can_be_kept(model):
    """As Megatron's own class of Punkt's variables does it on the same model."""
    kept = list(sentences_of(TEXT, "english", keep_newlines=True))
    assert "".join(kept) == TEXT
    assert "He left!\n\n" in kept


def test_a_long_text_is_split_in_parts(model, monkeypatch):
    """A sentence ends where a part does, as in preprocess_data.py."""
    monkeypatch.setattr(sentences, "CHARS_AT_ONCE", 4)
    assert list(sentences_of("Who came.", "english")) == ["Who", "came", "."]


def test_another_model_has_another_digest(model):
    digest = model_digest("english")
    (model / "abbrev_types.txt").write_text("mr\n")
    sentences._splitter.cache_clear()
    assert model_digest("english") != digest
    with pytest.raises(BadInput, match="no model of 'german'"):
        model_digest("german")
