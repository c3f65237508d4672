"""Verdicts of datatrove's own filters and of our presets, document by document.

::

    python -m lc_assets_tests.reference.datatrove_verdicts FILE.jsonl

prints for each preset how many documents (``text``) both judge alike, and those that they do not.
Rules on language are left out: datatrove's model has to be downloaded. Needs datatrove 0.10 and
spaCy.
"""

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from lc_assets.formats.lists.rule_files import read_rules
from lc_assets.text.rules.columns import values_of
from lc_assets.text.rules.line_rules import edited
from lc_assets.text.rules.models import Offered


def chains() -> dict[str, Callable[[], list[Any]]]:
    """Filters of datatrove by the preset that follows them, in the order of its examples."""
    from datatrove.pipeline import filters

    gopher = (filters.GopherRepetitionFilter, filters.GopherQualityFilter)
    return {
        "gopher-datatrove": lambda: [of() for of in gopher],
        "c4": lambda: [filters.C4QualityFilter()],
        "fineweb": lambda: [
            *(of() for of in gopher),
            filters.C4QualityFilter(filter_no_terminal_punct=False),
            filters.FineWebQualityFilter(),
        ],
    }


def their_reason(chain: Sequence[Any], text: str) -> str | None:
    """Why datatrove drops a text; None where it keeps it."""
    from datatrove.data import Document

    document = Document(text=text, id="0")
    with warnings.catch_warnings(action="ignore"):
        for one in chain:
            try:
                said = one.filter(document)
            except ZeroDivisionError:
                return "divides by nothing"
            if said is not True:
                return said[1]
    return None


def our_reasons(preset: str, text: str) -> list[str]:
    """The rules of a preset, but for those on language, that a text fails."""
    rules = read_rules(preset)
    judged = [rule for rule in rules.rules if not rule.name.startswith("language")]
    document = Offered(text=text)
    if rules.edit:
        document = Offered(text=edited(text, rules.edit).text, edited_from=text)
    values = values_of(document, [rule.column for rule in judged])
    return [rule.name for rule in judged if rule.failure(values[rule.column])]


def differences(preset: str, texts: Iterable[str]) -> list[tuple[int, str | None, list[str]]]:
    """Documents judged otherwise: their numbers, datatrove's reason and ours."""
    chain = chains()[preset]()
    found = [
        (at, their_reason(chain, text), our_reasons(preset, text)) for at, text in enumerate(texts)
    ]
    return [(at, theirs, ours) for at, theirs, ours in found if (theirs is None) != (not ours)]


def main() -> None:
    """Compare the documents of a file."""
    with Path(sys.argv[1]).open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    for preset in chains():
        other = differences(preset, texts)
        print(f"{preset}: {len(texts) - len(other):,} of {len(texts):,} alike")
        print(*(f"  {line}" for line in other), sep="\n")


if __name__ == "__main__":
    main()
