"""Files of rules, in TOML.

::

    name = "redpajama-lucie"

    [lines] # optional: lines are edited before the rules are applied
    edit = "c4"

    [[rule]]
    name = "mean_word_length"              # unique in the file
    signal = "mean_word_length"            # one of lc_assets.text.rules.columns.known_signals
    words = "whitespace"                   # where the signal depends on words, and only there
    at_least = 3                           # one bound or both; a value equal to a bound passes
    at_most = 10
    source = "Rae et al. 2021, A.1.1"

In the place of a rule there may be those of a preset::

    [[rule]]
    extends = "gopher-datatrove"
    without = ["words"]                    # or only = [...], by name
    unedited = true                        # they test the text before its lines are edited

========  ======  ==========================================================
key       type    must be there
========  ======  ==========================================================
name      string  yes, in the file and in each rule
signal    string  yes
words     string  yes for measures that depend on it; not allowed elsewhere
at_least  number  one of the two; finite
at_most   number
source    string  no
unedited  bool    no; true tests the text before its lines are edited
lines     table   no; ``edit`` names the editing, other keys are its settings
========  ======  ==========================================================

Other keys are errors, so that a misspelt bound cannot silently switch a rule off. The presets are
files of the same kind, in ``lc_assets/presets``.
"""

import contextlib
import itertools
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import structs

from lc_assets.errors import BadInput, known_names
from lc_assets.plugins import plugins
from lc_assets.text.rules.columns import known_signals, words_allowed
from lc_assets.text.rules.line_rules import line_rules_of
from lc_assets.text.rules.rules import UNEDITED, LineEdit, Rule, RuleSet
from lc_assets.vocabulary import NO_RULES

_PRESETS = resources.files("lc_assets") / "presets"
_PRESET_NAME = re.compile(r"[a-z0-9][a-z0-9-]*", re.ASCII)
_ENDLESS = re.compile(r"0[xob][0-9A-Fa-f_]{3000}")
_BOUNDS = ("at_least", "at_most")

Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Text
    signal: Text
    words: str = ""
    at_least: float | None = None
    at_most: float | None = None
    source: str = ""
    unedited: bool = False


class _Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    extends: Text
    only: list[str] | None = None
    without: list[str] = []
    unedited: bool = False


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Text
    rule: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)]
    lines: dict[str, Any] | None = None


def preset_names() -> list[str]:
    """Names of the rule sets that come with this package and others.

    >>> {"longcrawl64", "redpajama-lucie"} <= set(preset_names())
    True
    """
    own = (file.name for file in _PRESETS.iterdir() if file.name.endswith(".toml"))
    return sorted({*(name.removesuffix(".toml") for name in own), *plugins("rules")})


def read_rules(name_or_path: str) -> RuleSet:
    """Read a preset by its name, any file by its path, or ``none``: rules that every document
    passes.

    >>> read_rules("redpajama-lucie").rules[0].expected
    '50 to 100,000'
    >>> read_rules("none").rules
    ()

    Raises:
        BadInput: when there is no such file or it violates the format; names the file and the rule.
    """
    if name_or_path == NO_RULES:
        return RuleSet(NO_RULES, ())
    return parse_rules(_text_of(name_or_path), where=name_or_path)


def parse_rules(text: str, *, where: str) -> RuleSet:
    """Read rules from TOML text.

    Raises:
        BadInput: when it violates the format; names ``where`` and the rule.
    """
    if _ENDLESS.search(text):  # Python parses such a number, but refuses to print it
        raise BadInput(f"{where}: holds a number of thousands of digits")
    try:
        table = tomllib.loads(text)
    except (
        ValueError,
        RecursionError,
    ) as error:  # TOMLDecodeError is a ValueError; so is the error for a number of 5,000 digits
        raise BadInput(f"{where}: not TOML: {error}") from error
    with _naming(where):
        file = msgspec.convert(table, _File)
        found = (_rules(table, f"rule {number}") for number, table in enumerate(file.rule, 1))
        rules = tuple(itertools.chain.from_iterable(found))
        if file.lines is None:
            rules = tuple(replace(rule, unedited=False) for rule in rules)
        edit = None if file.lines is None else _edit(file.lines)
        return RuleSet(file.name, rules, edit)


def with_thresholds(rules: RuleSet, overrides: Mapping[str, Mapping[str, float | None]]) -> RuleSet:
    """The same rules with other bounds: ``{rule name: {"at_least": number or None, "at_most":
    ...}}``.

    Other bounds are unchanged; None removes a bound.

    >>> relaxed = with_thresholds(read_rules("redpajama-lucie"), {"words": {"at_most": None}})
    >>> relaxed.rules[0].expected
    'at least 50'

    Raises:
        BadInput: when there is no such rule or bound, or a rule is left without a bound.
    """
    known = [rule.name for rule in rules.rules]
    unknown = sorted(overrides.keys() - set(known))
    if unknown:
        raise BadInput(
            f"rules {rules.name}: no rule is called {', '.join(unknown)}; there are "
            f"{known_names(known, *unknown)}"
        )
    with _naming(f"rules {rules.name}"):
        changed = tuple(
            _rule(asdict(rule) | dict(overrides[rule.name]), "") if rule.name in overrides else rule
            for rule in rules.rules
        )
    return replace(rules, rules=changed)


def parse_threshold(text: str) -> tuple[str, str, float]:
    """Parse ``rule.bound=number``, as on a command line.

    >>> parse_threshold("symbols.at_most=0.2")
    ('symbols', 'at_most', 0.2)

    Raises:
        BadInput: when it does not have this form.
    """
    partition, _, number = text.partition("=")
    rule, _, bound = partition.rpartition(".")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not rule or bound not in _BOUNDS or not math.isfinite(value):
        raise BadInput(
            f"not a threshold: {text!r}; expected rule.at_least=number or rule.at_most=number, "
            "such as symbols.at_most=0.2"
        )
    return rule, bound, value


def rule_on(column: str, **bounds: float | None) -> Rule:
    """A rule on a column, with the column's name: ``signal``, or ``signal:words``.

    >>> rule_on("mean_word_length:raw", at_most=9).expected
    'at most 9'

    Raises:
        BadInput: when there is no such column, or it has no bound.
    """
    signal, colon, words = column.removesuffix(UNEDITED).partition(":")
    of_whole = column.endswith(UNEDITED)
    table = {"name": column, "signal": signal, "source": "setting", "unedited": of_whole, **bounds}
    return _rule(table | ({"words": words} if colon else {}), "")


def _text_of(where: str) -> str:
    """The TOML text of a preset, or of another package's or any file."""
    file: Traversable | Path = Path(where)
    if _PRESET_NAME.fullmatch(where):
        if (preset := _PRESETS / f"{where}.toml").is_file():
            file = preset
        elif where in plugins("rules"):
            return str(plugins("rules")[where].load())
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{where}: not TOML: {error}") from error
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        presets = known_names(preset_names(), where)
        raise BadInput(f"{where}: no readable file of rules; the presets are {presets}") from error


def _rules(table: Mapping[str, Any], place: str) -> tuple[Rule, ...]:
    """A table's rule, or those of the preset that it names."""
    if "extends" not in table:
        return (_rule(table, place),)
    with _naming(place):
        stated = msgspec.convert(table, _Preset)
        if stated.extends not in preset_names():
            presets = known_names(preset_names(), stated.extends)
            raise BadInput(f"there is no preset {stated.extends!r}: {presets}")
        rules = read_rules(stated.extends).rules
        known = [rule.name for rule in rules]
        if unknown := sorted({*(stated.only or ()), *stated.without} - set(known)):
            rest = known_names(known, *unknown)
            raise BadInput(f"{stated.extends} has no rule {', '.join(unknown)}: {rest}")
    wanted = set(known if stated.only is None else stated.only) - set(stated.without)
    return tuple(
        replace(rule, unedited=rule.unedited or stated.unedited)
        for rule in rules
        if rule.name in wanted
    )


def _rule(table: Mapping[str, Any], place: str) -> Rule:
    """A rule from its table; errors name the rule, or its ``place`` if it has no name."""
    name = table.get("name")
    with _naming(f"rule {name}" if isinstance(name, str) else place):
        stated = msgspec.convert(table, _Rule)
        if stated.signal not in known_signals():
            known = known_names(known_signals(), stated.signal)
            raise BadInput(f"there is no signal {stated.signal!r}; there are {known}")
        allowed = words_allowed(stated.signal)
        if stated.words and not allowed:
            raise BadInput(
                f"words is not allowed with {stated.signal}, which defines words itself or does "
                "not depend on them"
            )
        if allowed and stated.words not in allowed:
            expected = " or ".join(f'"{kind}"' for kind in allowed)
            raise BadInput(
                f"words is {stated.words!r}; {stated.signal} depends on what a word is: expected "
                f"{expected}"
            )
    return Rule(**structs.asdict(stated))


def _edit(table: Mapping[str, Any]) -> LineEdit:
    with _naming("lines"):
        settings = {
            key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
        }
        edit = LineEdit(str(settings.pop("edit", "")), settings)
        line_rules_of(edit)
    return edit


@contextlib.contextmanager
def _naming(where: str) -> Iterator[None]:
    try:
        yield
    except (BadInput, msgspec.ValidationError) as error:
        raise BadInput(f"{where}: {error}") from error
