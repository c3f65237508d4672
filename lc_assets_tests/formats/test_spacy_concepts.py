"""Concepts by a spaCy pipeline: of one made up, and, where spaCy is installed, of a real one
without any model.
"""

import importlib.util
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from lc_assets.errors import BadInput
from lc_assets.formats import spacy_concepts as plug_in
from lc_assets.formats.spacy_concepts import SpacyConcepts, spacy_concepts, stretches
from lc_assets.text.referrals.concepts import Part
from lc_assets.text.referrals.referrals import count_referrals
from lc_assets.text.referrals.words import SpecialWords

SPECIAL = SpecialWords(
    stop=frozenset({"the", "an", "of"}),
    pronouns=frozenset({"he", "her"}),
    common=frozenset({"thing"}),
)
HAS_SPACY = importlib.util.find_spec("spacy") is not None


@dataclass
class FakeSpan(list):
    """Tokens with the ends that spaCy's spans have."""

    start: int = 0
    end: int = 0


@dataclass
class FakeDocument(list):
    """What spaCy's documents have of what is asked: words are tokens, capitals entities, words
    after "the" noun chunks.
    """

    chains: list = field(default_factory=list)
    parsed: bool = True

    @property
    def sents(self):
        starts = [0, *(token.i + 1 for token in self if token.lower_.endswith("."))]
        stops = [*starts[1:], len(self)]
        return [
            self.cut(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop
        ]

    @property
    def ents(self):
        return [
            self.cut(token.i, token.i + 1)
            for token in self
            if token.capital and token.lower_ not in ("he", "the")
        ]

    @property
    def noun_chunks(self):
        return [self.cut(token.i, token.i + 2) for token in self if token.lower_ == "the"]

    @property
    def _(self):
        return SimpleNamespace(coref_chains=self.chains)

    def cut(self, start, stop):
        span = FakeSpan(start, stop)
        span.extend(self[start:stop])
        return span

    def has_annotation(self, name):
        return name == "DEP" and self.parsed

    def has_extension(self, name):
        return name == "coref_chains" and bool(self.chains)


class FakeChain(list):
    """The mentions of one thing; the first is the most specific."""

    most_specific_mention_index = 0


class FakePipeline:
    """Takes words apart at spaces."""

    def __init__(self, pipe_names=("parser", "ner"), chains=(), parsed=True):
        self.pipe_names, self.chains, self.parsed, self.seen = (
            list(pipe_names),
            list(chains),
            parsed,
            [],
        )

    def add_pipe(self, name, *, first):
        assert first
        self.pipe_names.insert(0, name)

    def __call__(self, text):
        self.seen.append(text)
        document = FakeDocument(self.chains, self.parsed)
        document.extend(
            SimpleNamespace(lower_=word.lower(), i=i, capital=word[0].isupper())
            for i, word in enumerate(text.split())
        )
        return document


def counts(pipeline, text, parts=()):
    found = SpacyConcepts(pipeline, SPECIAL).mentions(text, parts)
    return found.n_concepts, found.n_sentences, count_referrals(found, (2,)).pairs


def test_entities_chunks_and_pronouns_are_mentions():
    """Ann twice and by "he"; a chunk that is an entity too is mentioned once; what says nothing is
    no concept.
    """
    n_concepts, n_sentences, pairs = counts(
        FakePipeline(), "we saw Ann. then the dog ran. he saw the dog. the thing was Ann"
    )
    assert (n_concepts, n_sentences) == (2, 4)
    assert pairs == (0, 2, 2)  # ann: sentences 0, 2 and 3; dog: 1 and 2


def test_without_a_parser_only_entities_are_found():
    assert counts(FakePipeline(parsed=False), "saw Ann. the dog and the dog. saw Ann")[2] == (
        0,
        0,
        1,
    )


def test_chains_take_the_place_of_nearness():
    """Each mention that is not the most specific one's own words mentions it; chains decide, not
    what is near.
    """
    mention = [SimpleNamespace(token_indexes=[place]) for place in (1, 5)]
    pipeline = FakePipeline(chains=[FakeChain(mention)])
    n_concepts, _, pairs = counts(pipeline, "saw Ann. Bob went. and the girl was her")
    assert n_concepts == 3  # ann, bob, girl
    assert pairs == (0, 0, 1)


def test_the_best_chunks_are_concepts_and_all_entities(monkeypatch):
    text = "the hub the one. the hub the two. the hub the Rome. Oslo"
    assert counts(FakePipeline(), text)[0] == 5
    monkeypatch.setattr(plug_in, "TOP", 1)
    assert counts(FakePipeline(), text)[0] == 3


def test_documents_are_told_apart_and_no_sentence_is_of_two():
    text = "saw Ann. saw Ann. saw Ann"
    assert counts(FakePipeline(), text)[2] == (0, 2, 1)
    assert counts(FakePipeline(), text, [Part(0, 0), Part(9, 1)])[2] == (0, 1, 0)
    assert counts(FakePipeline(), text, [Part(0, 0), Part(9, 1), Part(18, 0)])[2] == (0, 0, 1)


def test_a_long_text_is_read_in_stretches(monkeypatch):
    """Cut at the best border that there is; joined they are the text."""
    monkeypatch.setattr(plug_in, "STRETCH", 10)
    text = "aaaa bb\n\ncccc\nddddddd eeeeeeeeeeeeeeeeeeee"
    pieces = [text[start:stop] for start, stop, _ in stretches(text, [])]
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 10
    assert pieces[:3] == ["aaaa bb\n\n", "cccc\n", "ddddddd "]
    assert list(stretches("", [])) == []
    pipeline = FakePipeline()
    assert counts(pipeline, "saw Ann. 23\n\nsaw Ann. 34\n")[2] == (0, 0, 1)
    assert len(pipeline.seen) > 1


def test_a_pipeline_that_marks_no_sentences_is_given_a_sentencizer():
    pipeline = FakePipeline(pipe_names=["ner"])
    SpacyConcepts(pipeline, SPECIAL)
    assert pipeline.pipe_names == ["sentencizer", "ner"]


def test_a_pipeline_that_finds_nothing_is_refused():
    with pytest.raises(BadInput, match="the pipeline finds neither noun chunks nor entities"):
        SpacyConcepts(FakePipeline(pipe_names=["tok2vec"]), SPECIAL)


@pytest.mark.skipif(HAS_SPACY, reason="spaCy is installed here")
def test_without_spacy_the_message_says_what_to_install():
    with pytest.raises(BadInput, match=r"pip install 'lc-assets\[spacy\]'"):
        spacy_concepts("en_core_web_sm", SPECIAL)


@pytest.mark.skipif(not HAS_SPACY, reason="spaCy is not installed")
def test_a_real_pipeline_without_a_model(tmp_path):
    """Rules for entities, sentences by marks; saved to a folder and loaded by its path."""
    import spacy

    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Ann Smith"}])
    pipeline.to_disk(tmp_path / "rules")
    found = spacy_concepts(str(tmp_path / "rules"), SPECIAL).mentions(
        "Ann Smith came. He saw her. We like Ann Smith's hat."
    )
    assert (found.n_concepts, found.n_sentences) == (1, 3)
    assert found.sentences.tolist() == [0, 1, 1, 2]
    with pytest.raises(BadInput, match="spaCy cannot load this pipeline"):
        spacy_concepts("no_such_pipeline", SPECIAL)
