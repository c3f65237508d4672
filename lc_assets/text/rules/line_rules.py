r"""Line editing: which lines of a document C4 and RefinedWeb remove, by which rule, and what is
left.

Every removed line and piece of a line is a span of the *original* text with the rule's name, so an
edit can be shown, counted and reverted. White space at the ends of lines has no span. A rule file
names a way of editing (`EDITS`) and may change its settings (`SETTINGS`).

Sources: C4: Raffel et al. 2020, section 2.2, as datatrove 0.10.1 (``c4_filters.py``) and TensorFlow
Datasets (``text/c4_utils.py``) do it; words of a line are counted before citations are removed, as
datatrove does. RefinedWeb: Penedo et al. 2023, appendix G.2, which gives examples only: phrases and
counters are those of DCLM (Li et al. 2024).
"""

import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import takewhile
from types import MappingProxyType
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from lc_assets.errors import BadInput, known_names
from lc_assets.records import frozen
from lc_assets.text.rules.rules import LineEdit

_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
_COUNTER = re.compile(
    r"\W*\d[\d,.]*[kmb]?\s+(?:likes|shares|comments|retweets|reposts|quotes|bookmarks|upvotes|downvotes|downloads|views|followers)\W*"
)
_BOILERPLATE = re.compile(
    r"^\s*sign[- ]?(?:in|out)\b|\bread more(?:\.\.\.|\u2026)?\s*$|\bitems in cart\b", re.IGNORECASE
)
_UPPER = string.ascii_uppercase.encode()
_POLICIES = (
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)


class LineRules(msgspec.Struct, frozen=True, kw_only=True):
    r"""Rules on a line; they are applied in the order of the fields, and the first that fails gives
    the reason.

    Attributes:
        name: name of the way of editing.
        broken: lines are those of ``str.splitlines``; otherwise they end at ``"\n"`` alone.
        most_uppercase: largest share of upper case characters (reason ``uppercase``).
        numeric: drop lines of only numeric characters and whitespace (``numeric``).
        counters: drop lines such as ``3 likes`` (``counter``).
        longest_word: characters of the longest word (``long_word``).
        citations: remove marks such as ``[3]`` and ``[edit]`` from a line (``citation``).
        end_marks: what a line must end with, though not with ``...`` (``no_end_mark``); empty for
            anything.
        fewest_words: minimum words of a line (``few_words``).
        blank_lines: keep blank lines if only ``fewest_words`` drops them.
        condemned: strings that drop the whole document when a line that passed so far contains one,
            by reason.
        phrases: drop lines that contain one of these, by reason; ignoring case.
        boilerplate: short lines lose "sign in" at their start, "read more" at their end, "items in
            cart" anywhere (``boilerplate``); a line that becomes empty is dropped.
    """

    name: str
    broken: bool = True
    most_uppercase: Annotated[float, Meta(ge=0)] | None = None
    numeric: bool = False
    counters: bool = False
    longest_word: Annotated[int, Meta(ge=0)] | None = None
    citations: bool = False
    end_marks: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    fewest_words: Annotated[int, Meta(ge=0)] = 0
    blank_lines: bool = True
    condemned: tuple[tuple[str, str], ...] = ()
    phrases: tuple[tuple[str, str], ...] = ()
    boilerplate: bool = False


SHORT_LINE_WORDS = 10
"""Words of the longest line that RefinedWeb looks for boilerplate in."""

C4 = LineRules(
    name="c4",
    longest_word=1000,
    citations=True,
    end_marks=(".", "?", "!", '"', "'"),
    fewest_words=3,
    condemned=(("lorem ipsum", "lorem_ipsum"), ("{", "curly_bracket")),
    phrases=(("javascript", "javascript"), *((phrase, "policy") for phrase in _POLICIES)),
)
"""As in datatrove: ``'`` ends a line too, which neither the paper nor TensorFlow Datasets
allow.
"""

FINEWEB = msgspec.structs.replace(C4, name="fineweb", end_marks=(), blank_lines=False)
"""C4's rules without the one on ends of lines, as in datatrove's example of FineWeb."""

REFINEDWEB = LineRules(
    name="refinedweb",
    broken=False,
    most_uppercase=0.5,
    numeric=True,
    counters=True,
    fewest_words=2,
    boilerplate=True,
)


@frozen
class Taken:
    """A piece of the original text that an edit removes.

    Attributes:
        start: its first character.
        end: after its last one; a line's newline is not part of it.
        reason: the rule.
    """

    start: int
    end: int
    reason: str


@frozen
class Edited:
    """A text after line editing.

    Attributes:
        text: what is left.
        taken: the removed pieces, in the order of the text.
        n_lines: lines seen; n_lines_removed: by reason; the others are left.
        n_words: whitespace words seen; n_words_flagged: those of lines that were removed or lost
            boilerplate, by reason.
        condemned: why the whole document should be dropped (`LineRules.condemned`); None when it
            should not. The text is then still edited.
        lines: the lines that are left, whole, with the place of their first characters.
    """

    text: str
    taken: tuple[Taken, ...]
    n_lines: int
    n_lines_removed: Mapping[str, int]
    n_words: int
    n_words_flagged: Mapping[str, int]
    condemned: str | None
    lines: tuple[tuple[int, str], ...]

    @property
    def n_lines_kept(self) -> int:
        """Lines that are left."""
        return self.n_lines - sum(self.n_lines_removed.values())

    def places(self, original: str) -> list[int]:
        """Which characters of the original are left: from, to, from, to and so on."""
        is_left = np.zeros(len(original) + 2, np.bool_)
        for start, line in self.lines:
            stop = start + len(line)
            is_left[start + len(line) - len(line.lstrip()) : start + len(line.rstrip())] = True
            is_left[stop + original.startswith("\r\n", stop)] = True
        for piece in self.taken:
            is_left[piece.start : piece.end] = False
        left = np.flatnonzero(is_left)[:-1]
        n_blank = sum(1 for _ in takewhile(lambda at: original[at].isspace(), left.tolist()))
        left = left[n_blank : n_blank + len(self.text)]
        ends = np.flatnonzero(np.diff(left, prepend=-2, append=len(original) + 2) > 1)
        return np.stack([left[ends[:-1]], left[ends[1:] - 1] + 1], axis=1).ravel().tolist()


def edit(text: str, rules: LineRules) -> Edited:
    r"""Apply the rules to every line; takes time in proportion to the text.

    >>> edited = edit("Menu\nIt was late.[3]\nWe use cookies, of course.", C4)
    >>> edited.text, [(taken.start, taken.end, taken.reason) for taken in edited.taken]
    ('It was late.', [(0, 4, 'no_end_mark'), (17, 20, 'citation'), (21, 47, 'policy')])
    """
    kept: list[str] = []
    lines: list[tuple[int, str]] = []
    taken: list[Taken] = []
    n_removed: Counter[str] = Counter()
    n_flagged: Counter[str] = Counter()
    n_lines = n_words = 0
    condemned = None
    for start, line in _lines(text, broken=rules.broken):
        n_lines += 1
        words = line.split()
        n_words += len(words)
        left, pieces = _without_pieces(line, start, words, rules)
        reason, sentence = _objection(line, left, words, rules)
        condemned = condemned or sentence
        if reason:
            n_removed[reason] += 1
            taken.append(Taken(start, start + len(line), reason))
        else:
            taken.extend(pieces)
            kept.append(left)
            lines.append((start, line))
        if reason or (pieces and rules.boilerplate):
            n_flagged[reason or pieces[0].reason] += len(words)
    text, counts = "\n".join(kept).strip(), (n_lines, n_removed, n_words, n_flagged)
    return Edited(text, tuple(taken), *counts, condemned, tuple(lines))


def _lines(text: str, *, broken: bool) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.splitlines(keepends=True) if broken else text.split("\n"):
        bare = line.splitlines()[0] if broken else line
        yield start, bare
        start += len(line) + (not broken)


def _without_pieces(
    line: str, start: int, words: list[str], rules: LineRules
) -> tuple[str, list[Taken]]:
    """The line, stripped, without its citations or boilerplate, and what was taken."""
    if rules.citations and "[" in line:
        pattern, reason = _CITATION, "citation"
    elif rules.boilerplate and len(words) <= SHORT_LINE_WORDS:
        pattern, reason = _BOILERPLATE, "boilerplate"
    else:
        return line.strip(), []
    # Citations do not make room for another end of the line: what follows them was stripped before
    # they went.
    return pattern.sub("", line.strip()), [
        Taken(start + m.start(), start + m.end(), reason) for m in pattern.finditer(line)
    ]


def _objection(
    line: str, left: str, words: list[str], rules: LineRules
) -> tuple[str | None, str | None]:
    """Why the line, and why the whole document, should be dropped; None for neither."""
    if reason := _wrong_as_it_was(line, words, rules):
        return reason, None
    if rules.end_marks and (not left.endswith(rules.end_marks) or left.endswith("...")):
        return "no_end_mark", None
    if words and not left.strip():
        return "boilerplate", None
    if len(words) < rules.fewest_words and (words or not rules.blank_lines):
        return "few_words", None
    lowered = left.lower() if rules.phrases or rules.condemned else ""
    sentence = next((reason for phrase, reason in rules.condemned if phrase in lowered), None)
    reason = next((reason for phrase, reason in rules.phrases if phrase in lowered), None)
    # The rule on JavaScript comes before that on brackets, so its line is dropped first.
    spared = sentence == "curly_bracket" and reason == "javascript"
    return reason, None if spared else sentence


def _wrong_as_it_was(line: str, words: list[str], rules: LineRules) -> str | None:
    if not words:
        return None
    if rules.most_uppercase is not None and _n_upper(line) > rules.most_uppercase * len(line):
        return "uppercase"
    if rules.numeric and all(map(str.isnumeric, words)):
        return "numeric"
    if rules.counters and len(words) <= SHORT_LINE_WORDS and _COUNTER.fullmatch(line.lower()):
        return "counter"
    longest = rules.longest_word
    too_long = longest is not None and len(line) > longest and max(map(len, words)) > longest
    return "long_word" if too_long else None


def _n_upper(line: str) -> int:
    """Number of upper case characters; counted by deleting them where that is faster."""
    if line.isascii():
        return len(line) - len(line.encode().translate(None, _UPPER))
    return sum(map(str.isupper, line))


EDITS: Mapping[str, LineRules] = MappingProxyType(
    {"c4": C4, "fineweb": FINEWEB, "refinedweb": REFINEDWEB}
)
"""Ways of editing, with their default settings."""

SETTINGS = tuple(
    name
    for name in LineRules.__struct_fields__
    if name not in ("name", "broken", "condemned", "phrases")
)
"""Settings that a rule file may change, see `lc_assets.text.rules.line_rules.LineRules`."""


def line_rules_of(wanted: LineEdit) -> LineRules:
    """The rules on lines for a rule file's ``[lines]``.

    >>> line_rules_of(LineEdit("c4", {"end_marks": []})).end_marks
    ()

    Raises:
        BadInput: when there is no such way of editing or no such setting, or it is of the wrong
            kind.
    """
    if wanted.name not in EDITS:
        known = known_names(EDITS, wanted.name)
        raise BadInput(f"there is no line editing {wanted.name!r}; there are {known}")
    unknown = sorted(wanted.parameters.keys() - set(SETTINGS))
    if unknown:
        raise BadInput(
            f"{wanted.name} has no setting {', '.join(map(repr, unknown))}; there are "
            f"{known_names(SETTINGS, *unknown)}"
        )
    settings = msgspec.structs.asdict(EDITS[wanted.name]) | dict(wanted.parameters)
    try:
        return msgspec.convert(settings, LineRules)
    except msgspec.ValidationError as error:
        raise BadInput(f"{wanted.name}: {error}") from error


def edited(text: str, wanted: LineEdit) -> Edited:
    r"""Edit a text's lines.

    >>> edited("Menu\nIt was late in the day.", LineEdit("c4", {})).text
    'It was late in the day.'
    """
    return edit(text, line_rules_of(wanted))
