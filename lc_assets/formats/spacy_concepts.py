"""Concepts of a text as a spaCy pipeline finds them: a plug-in in place of
`lc_assets.text.referrals.concepts.LexicalConcepts`.

==================  ================================================================================
from the pipeline   becomes
==================  ================================================================================
noun chunks         phrases, if it parses; the best `lc_assets.text.referrals.concepts.TOP` by the
                    mean rank of their words are concepts
entities            names; all are concepts
coreference chains  mentions of their most specific phrase, if `coreferee` is part of it; otherwise
                    "he", "she", "him", "her" and "his" mention the nearest entity before them, as
                    without a pipeline
sentences           sentences; if the pipeline marks none, they end after full stops
==================  ================================================================================

A phrase is compared in lower case, without stop words and punctuation at its ends. Pipelines are
given by name, as an installed package, or as a folder. spaCy is about a thousand times slower than
the lexical extractor. The extra ``spacy`` installs it, but no trained pipeline.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.text.referrals.concepts import TOP, LexicalConcepts, Part
from lc_assets.text.referrals.phrases import NEAR_SENTENCES
from lc_assets.text.referrals.referrals import Mentions
from lc_assets.text.referrals.words import SpecialWords

STRETCH: Final = 50_000
"""Characters given to the pipeline at once; each takes about a kilobyte of memory."""


def spacy_concepts(pipeline: str, special: SpecialWords, *, top: int = TOP) -> "SpacyConcepts":
    """Load a pipeline by the name of its package, or its folder.

    Raises:
        BadInput: when spaCy or the pipeline is not installed, or it finds neither noun chunks nor
            entities.
    """
    try:
        import spacy
    except ImportError as error:
        raise BadInput(
            "concepts by spaCy need spaCy, which is not installed: pip install 'lc-assets[spacy]'"
        ) from error
    try:
        loaded = spacy.load(pipeline)
    except (OSError, ValueError, ImportError) as error:
        raise BadInput(
            f"{pipeline}: spaCy cannot load this pipeline: {error}; install its package or name "
            "its folder"
        ) from error
    return SpacyConcepts(loaded, special, name=pipeline, top=top)


class SpacyConcepts:
    """Finds concepts by a pipeline that is loaded; see
    `lc_assets.text.referrals.concepts.Concepts`.
    """

    def __init__(
        self, pipeline: Any, special: SpecialWords, *, name: str = "the pipeline", top: int = TOP
    ) -> None:
        self._pipeline, self._special, self._top = pipeline, special, top
        self._lexical = LexicalConcepts(special)
        if not {"ner", "entity_ruler", "parser", "coreferee"} & set(pipeline.pipe_names):
            raise BadInput(
                f"{name}: finds neither noun chunks nor entities; wanted a parser or an entity "
                "recognizer, such as en_core_web_sm has"
            )
        if not {"parser", "senter", "sentencizer"} & set(pipeline.pipe_names):
            pipeline.add_pipe("sentencizer", first=True)

    def mentions(self, text: str, parts: Sequence[Part] = ()) -> Mentions:
        """See `lc_assets.text.referrals.concepts.Concepts.mentions`."""
        reading = _Reading(self._special)
        documents: list[int] = []
        for start, stop, document in stretches(text, parts):
            before = reading.n_sentences
            reading.read(self._pipeline(text[start:stop]))
            documents += [document] * (reading.n_sentences - before)
        found = Mentions.of(
            reading.n_sentences, reading.concepts(self._lexical.word_ranks(text), self._top)
        )
        return found.within(np.array(documents, np.int32)) if parts else found


def stretches(text: str, parts: Sequence[Part]) -> Iterator[tuple[int, int, int]]:
    """Cut a text where its parts begin, and into at most `STRETCH` characters, after a blank line,
    a line or a space.

    Yields:
        Start, stop and document of each.
    """
    cuts = [0, *(part.start for part in parts[1:]), len(text)]
    for number in range(len(cuts) - 1):
        start, end = cuts[number], cuts[number + 1]
        while start < end:
            stop = end if end - start <= STRETCH else _cut(text, start, start + STRETCH)
            yield start, stop, parts[number].document if parts else 0
            start = stop


def _cut(text: str, start: int, stop: int) -> int:
    for border in ("\n\n", "\n", " "):
        if (found := text.rfind(border, start + 1, stop)) > start:
            return found + len(border)
    return stop


class _Reading:
    """Phrases found so far, with their sentences."""

    def __init__(self, special: SpecialWords) -> None:
        self.n_sentences = 0
        self._special = special
        self._dull = special.stop | special.pronouns
        self._phrases: dict[str, list[int]] = {}
        self._names: set[str] = set()

    def read(self, document: Any) -> None:
        """Add the phrases that a pipeline found in a stretch."""
        sentence_of: dict[int, int] = {}
        for number, sentence in enumerate(document.sents, self.n_sentences):
            sentence_of |= dict.fromkeys(range(sentence.start, sentence.end), number)
        seen: set[tuple[str, int]] = set()
        names: list[tuple[int, str]] = []
        for span, is_name in self._spans(document):
            phrase, first = self._phrase(span)
            if not phrase:
                continue
            if is_name:
                self._names.add(phrase)
                names.append((first, phrase))
            if (phrase, first) not in seen:
                seen.add((phrase, first))
                self._phrases.setdefault(phrase, []).append(sentence_of[first])
        for place, phrase in self._referring(document, names, sentence_of):
            self._phrases.setdefault(phrase, []).append(sentence_of[place])
        self.n_sentences = max(sentence_of.values(), default=self.n_sentences - 1) + 1

    def concepts(self, ranks: dict[str, int], top: int) -> dict[str, list[int]]:
        """Names and the best of the other phrases."""
        others = [phrase for phrase in self._phrases if phrase not in self._names]
        scores = {
            phrase: sum(ranks.get(word, 0) for word in phrase.split()) / len(phrase.split())
            for phrase in others
        }
        least = sorted(scores.values(), reverse=True)[top - 1] if len(others) > top else 0
        return {
            phrase: found
            for phrase, found in self._phrases.items()
            if phrase in self._names or scores[phrase] >= least
        }

    @staticmethod
    def _spans(document: Any) -> Iterator[tuple[Any, bool]]:
        yield from ((entity, True) for entity in document.ents)
        if document.has_annotation("DEP"):
            yield from ((chunk, False) for chunk in document.noun_chunks)

    def _phrase(self, span: Iterable[Any]) -> tuple[str, int]:
        """A span in the form that is compared, and its first word's place; empty when only dull
        words are left.
        """
        words = [
            (token.lower_.strip(".,;:!?\"'()[]"), token.i)
            for token in span
            if token.lower_ not in ("'s", "\u2019s")
        ]
        words = [(word, place) for word, place in words if word]
        while words and words[0][0] in self._dull:
            words.pop(0)
        while words and words[-1][0] in self._dull:
            words.pop()
        if all(
            word in self._special.common or word in self._dull or not any(map(str.isalpha, word))
            for word, _ in words
        ):
            return "", -1
        return " ".join(word for word, _ in words), words[0][1]

    def _referring(
        self, document: Any, names: list[tuple[int, str]], sentence_of: dict[int, int]
    ) -> Iterator[tuple[int, str]]:
        """Places that refer to a phrase without containing it."""
        if document.has_extension("coref_chains"):
            yield from self._of_chains(document)
            return
        latest = sorted(names)
        at = -1
        for token in document:
            while at + 1 < len(latest) and latest[at + 1][0] < token.i:
                at += 1
            if token.lower_ in self._special.pronouns and at >= 0:
                place, phrase = latest[at]
                if sentence_of[token.i] - sentence_of[place] <= NEAR_SENTENCES:
                    yield token.i, phrase

    def _of_chains(self, document: Any) -> Iterator[tuple[int, str]]:
        for chain in document._.coref_chains:
            best = chain[chain.most_specific_mention_index]
            phrase, _ = self._phrase([document[place] for place in best.token_indexes])
            for mention in chain if phrase else ():
                other, _ = self._phrase([document[place] for place in mention.token_indexes])
                if other != phrase:
                    yield mention.token_indexes[0], phrase
