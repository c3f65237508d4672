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

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from lc_assets.arrays import Int64s
from lc_assets.errors import BadInput
from lc_assets.text.referrals.concepts import TOP, LexicalConcepts, Part
from lc_assets.text.referrals.phrases import NEAR_SENTENCES
from lc_assets.text.referrals.referrals import Mentions
from lc_assets.text.referrals.words import SpecialWords

STRETCH = 50_000
"""Characters given to the pipeline at once; each takes about a kilobyte of memory."""


def spacy_concepts(pipeline: str, special: SpecialWords) -> "SpacyConcepts":
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
    return SpacyConcepts(loaded, special)


class SpacyConcepts:
    """Finds concepts by a pipeline that is loaded; see
    `lc_assets.text.referrals.concepts.Concepts`.
    """

    def __init__(self, pipeline: Any, special: SpecialWords) -> None:
        self._pipeline, self._special = pipeline, special
        self._lexical = LexicalConcepts(special)
        self._dull = special.stop | special.pronouns
        if not {"ner", "entity_ruler", "parser", "coreferee"} & set(pipeline.pipe_names):
            raise BadInput(
                "the pipeline finds neither noun chunks nor entities; expected a parser or an "
                "entity recognizer, such as en_core_web_sm has"
            )
        if not {"parser", "senter", "sentencizer"} & set(pipeline.pipe_names):
            pipeline.add_pipe("sentencizer", first=True)

    def mentions(self, text: str, parts: Sequence[Part] = ()) -> Mentions:
        """See `lc_assets.text.referrals.concepts.Concepts.mentions`."""
        sentences_of: dict[str, list[int]] = defaultdict(list)
        names: set[str] = set()
        documents: list[int] = []
        for start, stop, document in stretches(text, parts):
            read = self._pipeline(text[start:stop])
            sentences = list(read.sents)
            sentence_of = np.repeat(np.arange(len(sentences)), list(map(len, sentences)))
            sentence_of += len(documents)
            documents += [document] * len(sentences)
            of_names = {self._phrase(entity) for entity in read.ents} - {("", -1)}
            names |= {phrase for phrase, _ in of_names}
            chunks = read.noun_chunks if read.has_annotation("DEP") else ()
            phrases = of_names | {self._phrase(chunk) for chunk in chunks} - {("", -1)}
            for phrase, place in (*phrases, *self._referring(read, of_names, sentence_of)):
                sentences_of[phrase].append(int(sentence_of[place]))
        found = Mentions.of(len(documents), self._best(sentences_of, names, text))
        return found.within(np.array(documents, np.int32)) if parts else found

    def _best(
        self, sentences_of: dict[str, list[int]], names: set[str], text: str
    ) -> dict[str, list[int]]:
        """Sentences of names, and of the best of the other phrases."""
        ranks = self._lexical.word_ranks(text)
        scores = {
            phrase: sum(ranks.get(word, 0) for word in phrase.split()) / len(phrase.split())
            for phrase in sentences_of.keys() - names
        }
        least = sorted(scores.values(), reverse=True)[TOP - 1] if len(scores) > TOP else 0
        return {
            phrase: found
            for phrase, found in sentences_of.items()
            if phrase in names or scores[phrase] >= least
        }

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
        dull = self._dull | self._special.common
        if all(word in dull or not any(map(str.isalpha, word)) for word, _ in words):
            return "", -1
        return " ".join(word for word, _ in words), words[0][1]

    def _referring(
        self, read: Any, names: set[tuple[str, int]], sentence_of: Int64s
    ) -> Iterator[tuple[str, int]]:
        """Places that refer to a phrase without containing it, each with the phrase."""
        if read.has_extension("coref_chains"):
            for chain in read._.coref_chains:
                mentions = [
                    self._phrase([read[place] for place in mention.token_indexes])[0]
                    for mention in chain
                ]
                best = mentions[chain.most_specific_mention_index]
                for phrase, mention in zip(mentions, chain, strict=True):
                    if best and phrase != best:
                        yield best, mention.token_indexes[0]
            return
        at_place = {place: phrase for phrase, place in sorted(names)}
        latest = -1
        for token in read:
            is_near = sentence_of[token.i] - sentence_of[latest] <= NEAR_SENTENCES
            if token.lower_ in self._special.pronouns and latest >= 0 and is_near:
                yield at_place[latest], token.i
            if token.i in at_place:
                latest = token.i


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
