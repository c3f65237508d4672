"""Judging one document by a set of rules: cheap columns first, and nothing costlier once a rule has
spoken.

Here: a document of a plain corpus, or what is stored of one. Not here: files and counts
    (`judging`), computing columns and
what they cost (`lc_assets.text.rules.columns`).
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from lc_assets.formats.corpora.records import CorpusDocument
from lc_assets.stages.documents.measuring import record_offers
from lc_assets.stages.documents.stored_values import StoredValues
from lc_assets.text.rules.columns import Offered, by_cost, values_of
from lc_assets.text.rules.models import NO_MODELS, Models
from lc_assets.text.rules.rules import Complaint, RuleSet, judge
from lc_assets.text.signals.names import NO_LISTS, WordLists

Values = dict[str, float | None]

NOT_COMPUTED: Final = "not computed"
"""Reason against a document whose stored values do not reach as far as the rules now do."""


class Judged(NamedTuple):
    """What was found of one document.

    Attributes:
        values: those that were computed.
        complaints: in the order in which the rules are asked.
        asked: names of the rules that were asked, a tuple for each group of like cost.
    """

    values: Values
    complaints: tuple[Complaint, ...]
    asked: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """Rules whose columns cost about the same."""

    columns: tuple[str, ...]
    rules: RuleSet
    names: tuple[str, ...]
    bounds: tuple[tuple[str, float, float], ...]

    @classmethod
    def of(cls, rules: RuleSet, columns: Collection[str]) -> "_Group":
        group = rules.on(columns)
        bounds = tuple((rule.column, rule.lowest, rule.highest) for rule in group.rules)
        return cls(tuple(sorted(columns)), group, tuple(rule.name for rule in group.rules), bounds)

    def passes(self, values: Values) -> bool:
        """Whether every rule has a value and none complains; spares most documents the words."""
        return all(
            (value := values.get(column)) is not None and low <= value <= high
            for column, low, high in self.bounds
        )


class Judge:
    """Asks a set of rules of one document after the other.

    Attributes:
        rules: in the order in which they are asked.
    """

    def __init__(
        self,
        rules: RuleSet,
        *,
        all_signals: bool = False,
        language: str = "",
        lists: WordLists = NO_LISTS,
        models: Models = NO_MODELS,
    ) -> None:
        """Plan in which order to ask.

        Args:
            rules: to judge by.
            all_signals: whether to go on when a rule has spoken.
            language: of documents that do not say theirs.
            lists: for signals that need one.
            models: for columns that need one.
        """
        self.rules = in_order_of_cost(rules)
        self._groups = [_Group.of(self.rules, columns) for columns in by_cost(rules.columns)]
        self._all, self._language, self._lists, self._models = all_signals, language, lists, models

    def offered(self, document: CorpusDocument) -> Offered:
        """What a document offers to be judged: its text, with its lines edited where the rules say
        so.
        """
        return record_offers(
            document
            if document.language
            else msgspec.structs.replace(document, language=self._language),
            self.rules,
            copies=self._all,
        )

    def document(self, document: CorpusDocument) -> tuple[Offered, Judged]:
        """Judge a document by its text; what it offered comes with it, for its text may have been
        edited.
        """
        offered = self.offered(document)
        return offered, self._judged(
            lambda columns: values_of(offered, columns, self._lists, self._models)
        )

    def stored(self, stored: StoredValues) -> Judged:
        """Judge a document by what is stored of it.

        A rule whose column was not computed for it is a reason against it, where nothing else is.
        """
        known = stored.values
        return self._judged(
            lambda columns: {name: known[name] for name in columns if name in known}
        )

    def _judged(self, compute: Callable[[tuple[str, ...]], Values]) -> Judged:
        values: Values = {}
        complaints: list[Complaint] = []
        asked: list[tuple[str, ...]] = []
        for group in self._groups:
            if complaints and not self._all:
                break
            found = compute(group.columns)
            values.update(found)
            if group.passes(found):
                asked.append(group.names)
                continue
            known, lost = group.rules.on(found), group.rules.but_on(found)
            asked.append(tuple(rule.name for rule in known.rules))
            complaints.extend(judge(found, known))
            if lost.rules and not complaints:
                complaints.append(
                    Complaint(
                        NOT_COMPUTED,
                        None,
                        f"{lost.rules[0].column} was not computed when its values were stored",
                    )
                )
        return Judged(values, tuple(complaints), tuple(asked))


def in_order_of_cost(rules: RuleSet) -> RuleSet:
    """The same rules in the order in which they are asked: by what their columns cost, then as they
    stood.
    """
    return RuleSet(
        rules.name,
        tuple(rule for group in by_cost(rules.columns) for rule in rules.on(group).rules),
        rules.edit,
    )
