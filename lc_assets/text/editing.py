"""Leaving lines out of a text before it is judged: which ways there are, by name, and their
settings in a rule file.

Here: names and settings. Not here: what a line must be like (`lc_assets.text.line_rules`), rules on
    what is left
(`lc_assets.text.rules`).
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from lc_assets.errors import BadInput
from lc_assets.text.line_rules import C4, REFINEDWEB, Edited, LineRules, edit
from lc_assets.text.rules import LineEdit

EDITS: Final[Mapping[str, LineRules]] = MappingProxyType({"c4": C4, "refinedweb": REFINEDWEB})
"""Ways of editing, as they are when nothing is said."""

SETTINGS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "most_uppercase": float,
        "numeric": bool,
        "counters": bool,
        "longest_word": int,
        "citations": bool,
        "end_marks": list,
        "fewest_words": int,
        "boilerplate": bool,
    }
)
"""What a rule file may say otherwise, see `lc_assets.text.line_rules.LineRules`."""

_WANTED: Final = {
    float: "a number from 0",
    int: "a whole number from 0",
    bool: "true or false",
    list: "a list of strings",
}


def line_rules_of(wanted: LineEdit) -> LineRules:
    """The rules on lines that a rule file's ``[lines]`` means.

    >>> line_rules_of(LineEdit("c4", {"end_marks": []})).end_marks
    ()

    Raises:
        BadInput: when there is no such way of editing or no such setting, or it is of the wrong
            kind.
    """
    if wanted.name not in EDITS:
        raise BadInput(f"there is no line editing {wanted.name!r}; there are {', '.join(EDITS)}")
    unknown = sorted(wanted.parameters.keys() - SETTINGS.keys())
    if unknown:
        raise BadInput(
            f"{wanted.name} has no setting {', '.join(map(repr, unknown))}; there are "
            f"{', '.join(SETTINGS)}"
        )
    changes: dict[str, Any] = {
        name: _checked(name, value) for name, value in wanted.parameters.items()
    }
    return replace(EDITS[wanted.name], **changes)


def edited(text: str, wanted: LineEdit) -> Edited:
    r"""Edit a text's lines.

    >>> edited("Menu\nIt was late in the day.", LineEdit("c4", {})).text
    'It was late in the day.'
    """
    return edit(text, line_rules_of(wanted))


def _checked(name: str, value: object) -> Any:
    kind = SETTINGS[name]
    if kind is list:
        if isinstance(value, list | tuple) and all(
            isinstance(mark, str) and mark for mark in value
        ):
            return tuple(value)
    elif kind is bool:
        if isinstance(value, bool):
            return value
    elif (
        isinstance(value, int if kind is int else int | float)
        and not isinstance(value, bool)
        and value >= 0
    ):
        return value
    raise BadInput(f"{name} is {str(value)[:80]}, wanted {_WANTED[kind]}")
