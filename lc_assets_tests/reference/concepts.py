"""Plain reference of `lc_assets.text.referrals.referrals`: words, phrases, ranks and mentions."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.text.referrals.phrases import DAMPING, NEAR_SENTENCES, ONE, ROUNDS, Grams
from lc_assets.text.referrals.words import (
    ABBREVIATION,
    ADDRESS,
    CAPITAL,
    COMMON,
    DATE,
    INITIAL,
    JOINED,
    LONGEST_WORD,
    PRONOUN,
    STOP,
    WRAPPED,
    SpecialWords,
    Words,
    class_of,
    spelling,
)


class _ByCharacter(dict[int, str]):
    """A table for `str.translate` that is filled as characters come."""

    def __init__(self, function: object) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, code: int) -> str:
        self[code] = made = self._function(chr(code))  # type: ignore[operator]
        return str(made)


_CLASS: Final = _ByCharacter(class_of)
_WORD: Final = re.compile("HM*|[ULCD][ULCDM]*(?:(?:[AY]|(?<=D)[PK](?=D))[ULCD][ULCDM]*)*")
_ENDED: Final = re.compile("[PE][AQB]*[SN]")


def read_words(text: str, special: SpecialWords, part_starts: Sequence[int] = ()) -> Words:
    """Read the words of a text the plain way.

    Args:
        text: any.
        special: which words are not like others.
        part_starts: where parts of the text after the first begin, in characters, ascending.
    """
    return _Reader(text, special, part_starts).read()


class _Reader:
    """What is known of a text so far."""

    def __init__(self, text: str, special: SpecialWords, part_starts: Sequence[int]) -> None:
        self._text, self._part_starts, self._kinds = text, part_starts, special.kinds()
        self._classes = text.translate(_CLASS)
        for found in ADDRESS.finditer(text):
            hidden = "O" * len(found[0])
            self._classes = self._classes[: found.start()] + hidden + self._classes[found.end() :]
        self._numbers: dict[str, int] = {}
        self._spellings: list[tuple[int, int]] = []
        self._weights: list[int] = []
        self._found: list[tuple[int, int, int]] = []
        self._pronouns: list[tuple[int, int]] = []
        self._parts: list[int] = []
        self._line_start = self._part = 0

    def read(self) -> Words:
        end, abbreviated, joined = 0, False, False
        for match in _WORD.finditer(self._classes):
            gap = self._classes[end : match.start()]
            begins = self._begins_sentence(end, gap, match, abbreviated)
            if begins:
                self._parts.append(self._part)
            joined = joined and not begins and not gap.strip("SN")
            end = match.end()
            initial = begins or "A" in gap or "Q" in gap
            length = end - match.start()
            if length > LONGEST_WORD:
                joined = abbreviated = False
                continue
            word = spelling(self._text, match.start(), length)
            if word.endswith("'s"):
                word = word[:-2]
            kind = self._kinds.get(word, 0)
            capital = match.group()[0] == "U"
            abbreviated = bool(kind & ABBREVIATION) or (
                len(word) == 1 and match.group()[0] in "UL" and word != "i"
            )
            number = self._number(word, match.start(), kind, match.group())
            if kind & PRONOUN:
                self._pronouns.append((len(self._found), len(self._parts) - 1))
            if not kind & STOP:
                self._found.append(
                    (
                        number,
                        len(self._parts) - 1,
                        JOINED * joined | CAPITAL * capital | INITIAL * initial | kind & DATE,
                    )
                )
            joined = not kind & STOP
        return self._words()

    def _begins_sentence(self, end: int, gap: str, match: re.Match[str], abbreviated: bool) -> bool:
        lines_end = False
        for place in (end + at for at, character in enumerate(gap) if character == "N"):
            lines_end |= place - self._line_start not in WRAPPED
            self._line_start = place + 1
        part = sum(start <= match.start() for start in self._part_starts)
        is_other, self._part = part != self._part, part
        if not self._parts or is_other or lines_end or "F" in gap:
            return True
        if abbreviated and gap.startswith("P") and not gap.startswith(("PP", "PE")):
            gap = gap[1:]
        return bool(_ENDED.search(gap)) and match.group()[0] != "L"

    def _number(self, word: str, start: int, kind: int, classes: str) -> int:
        if word not in self._numbers:
            self._numbers[word] = len(self._numbers)
            self._spellings.append((start, len(word)))
            of_word = classes[: len(word)]
            tells = not kind & (STOP | COMMON) and any(letter in of_word for letter in "HULC")
            self._weights.append(
                min(2, sum(of_word.count(letter) for letter in "HULCD")) if tells else 0
            )
        return self._numbers[word]

    def _words(self) -> Words:
        words, sentences, flags = np.array(self._found, np.int64).reshape(-1, 3).T
        places, their_sentences = np.array(self._pronouns, np.int32).reshape(-1, 2).T
        return Words(
            n_sentences=len(self._parts),
            spellings=np.array(self._spellings, np.int64).reshape(-1, 2),
            weights=np.array(self._weights, np.uint8),
            words=words.astype(np.int32),
            sentences=sentences.astype(np.int32),
            flags=flags.astype(np.uint8),
            pronouns=places,
            pronoun_sentences=their_sentences,
            parts=np.array(self._parts, np.int32),
        )


WINDOW: Final = 3


def number_grams(words: Words) -> Grams:
    """Number the phrases: by size, then by the numbers of their words."""
    n_words = len(words.words)
    places: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place in range(n_words):
        for size in range(1, 4):
            last = place + size - 1
            if last >= n_words or (size > 1 and not words.flags[last] & JOINED):
                break
            places[tuple(words.words[place : last + 1].tolist())].append(place)
    found = sorted(places, key=lambda phrase: (len(phrase), phrase))
    at = np.full((3, n_words), -1, np.int32)
    uses, capitals = [], []
    for number, phrase in enumerate(found):
        at[len(phrase) - 1, places[phrase]] = number
        counted = [place for place in places[phrase] if not words.flags[place] & INITIAL]
        uses.append(len(counted))
        capitals.append(
            sum(all(words.flags[place : place + len(phrase)] & CAPITAL) for place in counted)
        )
    return Grams(
        at,
        *(
            np.array(values, np.int64)
            for values in (
                [places[phrase][0] for phrase in found],
                list(map(len, found)),
                uses,
                capitals,
            )
        ),
    )


def rank_words(words: Words) -> NDArray[np.int64]:
    """Rank the kinds of words; int64[word kind], `ONE` on average."""
    n_kinds = len(words.weights)
    joined = [
        (words.words[:-apart][same], words.words[apart:][same])
        for apart in range(1, WINDOW)
        for same in [
            (words.sentences[:-apart] == words.sentences[apart:])
            & (words.words[:-apart] != words.words[apart:])
        ]
    ]
    source = np.concatenate([part for one, other in joined for part in (one, other)])
    target = np.concatenate([part for one, other in joined for part in (other, one)])
    degrees = np.bincount(source, minlength=n_kinds)
    ranks = np.full(n_kinds, ONE, np.int64)
    for _ in range(ROUNDS):
        shares = ranks // np.maximum(degrees, 1)
        sums = np.zeros(n_kinds, np.int64)
        np.add.at(sums, target, shares[source])
        ranks = ONE * (DAMPING[1] - DAMPING[0]) // DAMPING[1] + sums * DAMPING[0] // DAMPING[1]
    return ranks


def list_mentions(
    words: Words,
    grams: Grams,
    chosen: NDArray[np.bool_],
    named: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """List where the chosen phrases are mentioned. A pronoun mentions the word of the last name
    before it, at most `NEAR_SENTENCES` back and in the same part of the text.

    Args:
        words: of the text.
        grams: its phrases.
        chosen: bool[phrase], which are concepts.
        named: bool[phrase], which are names.

    Returns:
        Sentences and ends as in `lc_assets.text.referrals.referrals.Mentions`; concepts in the
        order of their phrases' numbers.
    """
    around = longest_around(grams, chosen)
    sentences_of: dict[int, list[int]] = {
        int(gram): [] for gram in np.flatnonzero(chosen) if around[gram] == gram
    }
    behind = defaultdict[int, list[int]](list)
    for place, sentence in zip(
        words.pronouns.tolist(), words.pronoun_sentences.tolist(), strict=True
    ):
        behind[place].append(sentence)
    name, name_said = -1, 0
    for place in range(len(words.words) + 1):
        for sentence in behind[place]:
            is_near = (
                sentence - name_said <= NEAR_SENTENCES
                and words.parts[name_said] == words.parts[sentence]
            )
            if is_near and name in sentences_of:
                sentences_of[name].append(sentence)
        if place == len(words.words):
            break
        said = int(words.sentences[place])
        for gram in grams.at[:, place].tolist():
            if gram in sentences_of:
                sentences_of[gram].append(said)
        word = int(grams.at[0, place])
        if named[word] and not words.flags[place] & DATE:
            name, name_said = around[word], said
    flat = [sentence for found in sentences_of.values() for sentence in found]
    return np.array(flat, np.int32), np.cumsum(
        [0, *map(len, sentences_of.values())], dtype=np.int64
    )


def longest_around(grams: Grams, chosen: NDArray[np.bool_]) -> list[int]:
    """The longest chosen phrase that each is a part of wherever it occurs, or itself."""
    n_phrases, n_words = len(chosen), grams.at.shape[1]
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for size in (1, 2, 3):
        for place in range(n_words):
            if grams.at[size - 1, place] >= 0:
                spans[int(grams.at[size - 1, place])].append((place, place + size))
    around = list(range(n_phrases))
    for longer in range(n_phrases):
        for offset in range(3):
            for part in range(n_phrases) if chosen[longer] else ():
                size = int(grams.sizes[part])
                inside = [
                    (start + offset, start + offset + size)
                    for start, stop in spans[longer]
                    if start + offset + size <= stop
                ]
                if size < grams.sizes[longer] and inside == spans[part]:
                    around[part] = longer
    return around


@dataclass(frozen=True, slots=True)
class _PlainWays:
    """The oracle of the compiled ways, and their stand-in."""

    special: SpecialWords

    def read_words(self, text: str, starts: Sequence[int]) -> Words:
        return read_words(text, self.special, starts)

    number_grams = staticmethod(number_grams)
    rank_words = staticmethod(rank_words)
    list_mentions = staticmethod(list_mentions)
