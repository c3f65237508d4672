"""``lc explain``: every value and rule of one document, and why it is kept or dropped."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from lc_assets.builds.settings.common import ModelSettings, QualityModelSettings
from lc_assets.builds.settings.documents import ListSettings
from lc_assets.cli import options
from lc_assets.cli.corpora.filtering import (
    LISTS,
    MODELS,
    QUALITY_MODELS,
    Thresholds,
    show_digests,
    thresholds_of,
)
from lc_assets.cli.printing import facts, heading, say, shortened, table, visible
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from lc_assets.stages.documents.explaining import Explained, Values
    from lc_assets.text.rules.rules import Rule, RuleSet

EXCERPT = 240
"""Characters of a text's head and of its tail that are shown."""
MOST_REMOVED = 20
LINE = 120


def explain(
    source: Annotated[str, Argument()],
    identity: Annotated[str, Argument(metavar="ID")],
    rules: str | None = None,
    threshold: Thresholds = None,
    lang: options.Lang = "en",
    text_field: options.TextField = None,
    lists: ListSettings = LISTS,
    models: ModelSettings = MODELS,
    quality_models: QualityModelSettings = QUALITY_MODELS,
    upstream: str | None = None,
) -> None:
    """Print every signal and measure of one document, every rule with its bounds, and the decision.

    Args:
        source: a file or folder of documents, or a lake.
        identity: the document's id.
        rules: a preset's name, or a file of rules; in a lake, those it was filtered by.
        upstream: with a lake: where its published signals are.

    Example: lc explain lake 2023-06/0000/en_head.json.gz/17 --upstream sample
    """
    from msgspec import structs

    from lc_assets.lake.bucket import is_in_bucket
    from lc_assets.lake.bucket_lake import open_lake
    from lc_assets.lake.upstream import Upstream
    from lc_assets.stages.documents import explaining
    from lc_assets.stages.documents.measuring import lists_of, models_of
    from lc_assets.stages.file_lakes import is_lake
    from lc_assets.text.rules.models import MODELLED

    in_lake = is_in_bucket(source) or is_lake(Path(source))
    if in_lake and threshold and rules is None:
        raise BadInput("--threshold needs --rules too: a lake's rules are those of its filtering")
    if in_lake:
        found = explaining.explain_in_lake(
            open_lake(source),
            identity,
            None if rules is None else _rules(rules, threshold),
            upstream=None if upstream is None else Upstream(upstream),
        )
    else:
        found = explaining.explain_in_files(
            [Path(source)],
            identity,
            _rules(rules or "redpajama-lucie", threshold),
            text_field=text_field,
            language=lang,
            lists=lists_of(lists),
            models=models_of(structs.replace(models, quality=quality_models), MODELLED),
        )
    show_explained(found)


def _rules(name: str, threshold: Thresholds) -> "RuleSet":
    from lc_assets.formats.lists.rule_files import read_rules, with_thresholds

    return with_thresholds(read_rules(name), thresholds_of(threshold))


def show_explained(found: "Explained") -> None:
    """Print all of it, the decision last."""
    facts(
        [
            ("document", found.id),
            ("url", shortened(found.url, 200)),
            ("found in", found.where),
            ("rules", found.rules.name),
        ]
    )
    heading("What is known of it")
    table(("column", "value"), [(name, _digits(value)) for name, value in found.values.items()])
    show_digests(found.digests)
    heading("Rules")
    table(
        ("rule", "tests", "value", "expected", "result", "source"),
        [_line(rule, found.values) for rule in found.rules.rules],
    )
    if found.removed:
        heading(f"Edited out before rules were applied: {len(found.removed):,}")
        table(
            ("reason", "text"),
            [(reason, shortened(text, LINE)) for text, reason in found.removed[:MOST_REMOVED]],
        )
    if found.text is not None:
        heading(f"Its text, {len(found.text):,} characters")
        say(excerpt(found.text))
    say()
    say(found.decision, style="bold")


def excerpt(text: str) -> str:
    r"""Head and tail of a text, escaped, on one line each.

    >>> excerpt("a\n\x1b[31mb")
    'a\\n\\x1b[31mb'
    """
    if len(text) <= 2 * EXCERPT:
        return visible(text)
    return (
        f"{visible(text[:EXCERPT])}\n… {len(text) - 2 * EXCERPT:,} characters "
        f"…\n{visible(text[-EXCERPT:])}"
    )


def _line(rule: "Rule", values: "Values") -> tuple[str, ...]:
    known, value = rule.column in values, values.get(rule.column)
    result = "not known" if not known else "passes" if rule.failure(value) is None else "fails"
    shown = _digits(value) if known else ""
    return (rule.name, rule.column, shown, rule.expected, result, rule.source)


def _digits(value: float | None) -> str:
    return "missing" if value is None else f"{value:,.10g}"
