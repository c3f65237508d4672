"""Rules on a document's columns: which one, the bounds, and the source.

A rule consists of a signal's name and one or two bounds. A value equal to a bound passes, and zero
is a bound. A missing value fails. A measure of words names their kind; its column is then
``signal:words``. A set of rules may state that a text's lines are edited first; its rules then
apply to the edited text. Thresholds are in ``lc_assets/presets``, which
`lc_assets.formats.lists.rule_files` reads.

`quantile_bounds` gives bounds that keep the middle of a corpus. Olmo 3 (2025) drops the fifth of
long documents that gzip compresses best, and the fifth that it compresses worst.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from lc_assets.arrays import Booleans, Floats
from lc_assets.errors import BadInput
from lc_assets.records import frozen, record

UNEDITED = "@unedited"
"""End of the name of a column of the text before its lines were edited."""


@record
class Rule:
    """One bound, or two, on one signal.

    Attributes:
        name: short, unique in its set, such as ``mean_word_length``; counts of dropped documents
            are kept by it.
        signal: one of `lc_assets.text.signals.names.SCALARS`, or of
            `lc_assets.text.measures.measures.MEASURES`.
        at_least: lowest value that passes; None for no such bound.
        at_most: highest value that passes; None for no such bound.
        source: source of the bounds, such as ``Rae et al. 2021``.
        words: what a word is, for a measure that depends on it, such as ``whitespace``; empty
            otherwise.
        unedited: whether the text before its lines were edited is tested.

    Raises:
        BadInput: when it has no bound, a bound that is not a finite number, or a lower bound above
            the upper one.
    """

    name: str
    signal: str
    at_least: float | None = None
    at_most: float | None = None
    source: str = ""
    words: str = ""
    unedited: bool = False

    def __post_init__(self) -> None:
        bounds = [bound for bound in (self.at_least, self.at_most) if bound is not None]
        if not bounds:
            raise BadInput(f"rule {self.name}: has neither at_least nor at_most; give one of them")
        if not all(map(math.isfinite, bounds)):
            raise BadInput(
                f"rule {self.name}: bounds must be finite numbers, got "
                f"{' and '.join(map(str, bounds))}"
            )
        if bounds != sorted(bounds):
            raise BadInput(
                f"rule {self.name}: at_least = {self.at_least} is above at_most = {self.at_most}, "
                "so nothing can pass"
            )

    def failure(self, value: float | None) -> str | None:
        """Why ``value`` fails, as None and NaN do; None when it passes.

        >>> bounds = {"at_least": 3, "at_most": 10, "source": "Rae et al. 2021"}
        >>> rule = Rule(name="length", signal="rps_doc_mean_word_length", **bounds)
        >>> rule.failure(50)
        'rps_doc_mean_word_length = 50, expected 3 to 10 (Rae et al. 2021)'
        >>> rule.failure(10) is None, rule.failure(None)
        (True, 'rps_doc_mean_word_length is missing, expected 3 to 10 (Rae et al. 2021)')
        """
        if value is not None and self.lowest <= value <= self.highest:
            return None
        found = "is missing" if value is None or math.isnan(value) else f"= {_shown(value)}"
        return (
            f"{self.column} {found}, expected "
            f"{self.expected}{f' ({self.source})' if self.source else ''}"
        )

    def fails(self, values: Floats) -> Booleans:
        """Which values fail; NaN, which stands for a missing one, is within no bounds."""
        return ~((values >= self.lowest) & (values <= self.highest))

    @property
    def column(self) -> str:
        """Name of the column that is tested: ``signal``, or ``signal:words``; then `UNEDITED`."""
        return _column(self.signal, self.words, self.unedited)

    @property
    def lowest(self) -> float:
        """The lower bound; minus infinity when there is none."""
        return -math.inf if self.at_least is None else self.at_least

    @property
    def highest(self) -> float:
        """The upper bound; infinity when there is none."""
        return math.inf if self.at_most is None else self.at_most

    @property
    def expected(self) -> str:
        """The bounds in words: ``3 to 10``, ``at least 3`` or ``at most 10``."""
        if self.at_most is None:
            return f"at least {_shown(self.lowest)}"
        return (
            f"at most {_shown(self.at_most)}"
            if self.at_least is None
            else f"{_shown(self.at_least)} to {_shown(self.at_most)}"
        )


@frozen
class LineEdit:
    """A way of removing lines of a text before it is filtered.

    Attributes:
        name: one of those that `lc_assets.text.rules.line_rules` knows, such as ``c4``.
        parameters: settings that differ from its defaults, see `lc_assets.text.rules.line_rules`.
    """

    name: str
    parameters: Mapping[str, bool | float | tuple[str, ...]]


@dataclass(frozen=True)
class RuleSet:
    """A named set of rules, in the order in which they are applied.

    Attributes:
        name: of the set.
        rules: at least one, where the set comes from a file.
        edit: how lines are edited before the rules are applied; None for no editing.

    Raises:
        BadInput: when two rules have the same name.
    """

    name: str
    rules: tuple[Rule, ...]
    edit: LineEdit | None = None

    def __post_init__(self) -> None:
        twice = [
            name for name, count in Counter(rule.name for rule in self.rules).items() if count > 1
        ]
        if twice:
            raise BadInput(
                f"rules {self.name}: more than one is called {', '.join(twice)}; rule names must "
                "differ"
            )

    # Made once for all documents. They are not fields, which would be part of fingerprints.
    @cached_property
    def columns(self) -> frozenset[str]:
        """Names of the columns that the rules test."""
        return frozenset(rule.column for rule in self.rules)

    @cached_property
    def signals(self) -> frozenset[str]:
        """The signals of these columns."""
        return frozenset(rule.signal for rule in self.rules)

    @cached_property
    def bounds(self) -> tuple[tuple[str, str, float, float], ...]:
        """Name, column, lowest and highest value of each rule."""
        return tuple((rule.name, rule.column, rule.lowest, rule.highest) for rule in self.rules)

    def failing(self, values: Mapping[str, Floats], n_documents: int) -> Booleans:
        """Which documents fail any rule: bool[documents], by the values of each column."""
        fails = np.zeros(n_documents, np.bool_)
        for rule in self.rules:
            fails |= rule.fails(values[rule.column])
        return fails

    def and_also(self, *extra: Rule) -> "RuleSet":
        """The same set with more rules at its end.

        >>> RuleSet("all", ()).and_also(long_enough(16_000)).rules[0].expected
        'at least 16,000'
        """
        return replace(self, rules=(*self.rules, *extra))

    def on(self, columns: Collection[str]) -> "RuleSet":
        """The rules that test one of ``columns``, in their order."""
        return replace(self, rules=tuple(rule for rule in self.rules if rule.column in columns))

    def but_on(self, columns: Collection[str]) -> "RuleSet":
        """The rules that test none of ``columns``, in their order."""
        return replace(self, rules=tuple(rule for rule in self.rules if rule.column not in columns))


def long_enough(min_words: int) -> Rule:
    """The rule that a document has at least ``min_words`` normalized words."""
    return Rule(
        name="long_enough", signal="rps_doc_word_count", at_least=float(min_words), source="setting"
    )


def failures(values: Mapping[str, float | None], rules: RuleSet) -> list[tuple[str, float]]:
    """Names of the rules that a document fails, in their order, with the values that were tested;
    NaN for a missing one.

    >>> failures({"rps_doc_word_count": 20_000.0}, RuleSet("length", (long_enough(16_000),)))
    []
    """
    found = list[tuple[str, float]]()
    for name, column, lowest, highest in rules.bounds:
        value = values.get(column)
        if value is None or not lowest <= value <= highest:
            found.append((name, math.nan if value is None else value))
    return found


@lru_cache(maxsize=1 << 10)
def _column(signal: str, words: str, unedited: bool) -> str:
    """See `Rule.column`; cached, because every document asks for the same few."""
    return signal + (f":{words}" if words else "") + (UNEDITED if unedited else "")


def _shown(number: float) -> str:
    """Every digit, so that 0.10000001 is not shown as equal to the bound 0.1; whole numbers
    without a point.
    """
    return f"{int(number) if float(number).is_integer() else number:,}"


def quantile_bounds(
    values: Floats, below: Fraction, above: Fraction
) -> tuple[float | None, float | None]:
    """The bounds that keep the middle of some documents: `Rule.at_least` and `Rule.at_most`.

    Bounds are values that occur, and documents that share a bound's value are all kept: so never
    more is dropped than the share, and the order of the documents makes no difference.

    Args:
        values: of every document; NaN where there is none.
        below: share of the documents with the lowest values that is dropped.
        above: of those with the highest.

    >>> quantile_bounds(np.array([0.1, 0.4, 0.3, 0.2, 0.5]), Fraction("0.2"), Fraction("0.2"))
    (0.2, 0.4)

    Raises:
        BadInput: when no document has a value.
    """
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        raise BadInput("no document has a value, so there are no quantiles")
    return (
        float(known[int(len(known) * below)]) if below else None,
        float(known[len(known) - 1 - int(len(known) * above)]) if above else None,
    )
