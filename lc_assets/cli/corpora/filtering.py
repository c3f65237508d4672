"""``lc filter``: keep the documents that pass a set of rules."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from lc_assets.build.settings.common import ModelSettings, QualityModelSettings
from lc_assets.build.settings.documents import DocumentSignalSettings, ListSettings
from lc_assets.cli import options
from lc_assets.cli.printing import heading, say, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lc_assets.build.stage import BuildContext, Built
    from lc_assets.text.rules.rules import RuleSet

Thresholds = Annotated[
    list[str] | None,
    Option(
        "--threshold",
        help="Another bound, such as symbols.at_most=0.2; may be given several times.",
    ),
]
LISTS = options.settings_options(ListSettings(), "stop_words", "bad_words", "domains")
MODELS = options.settings_options(
    ModelSettings(), "blocklist", language="--language-model", perplexity="--perplexity-model"
)
QUALITY_MODELS = options.settings_options(
    QualityModelSettings(),
    palm="--palm-model",
    wikiref="--wikiref-model",
    wikipedia="--wikipedia-model",
)


@dataclass(frozen=True, kw_only=True)
class Values:
    """Which values are stored, and how they are used."""

    quantiles: Annotated[
        list[str] | None,
        Option(
            "--quantiles",
            metavar="COLUMN=LOW:HIGH",
            help="Keep the documents between two quantiles of these very documents, such as "
            "gzip_ratio=0.2:0.8 or mean_word_length:raw=0:0.99; may be given several times.",
        ),
    ] = None
    all_signals: Annotated[
        bool,
        Option(
            "--all-signals",
            help="Apply every rule to every document, and store all values: then other thresholds "
            "compute nothing again.",
        ),
    ] = False
    sweep: Annotated[
        bool,
        Option("--sweep", help="Print what each threshold would keep; includes --all-signals."),
    ] = False


@options.with_options
def filter_(
    corpus: options.Corpus,
    values: Values,
    rules: Annotated[str, Option("--rules", help="A preset's name, or a file of rules.")] = "",
    threshold: Thresholds = None,
    lang: options.Lang = "en",
    lists: ListSettings = LISTS,
    models: ModelSettings = MODELS,
    quality_models: QualityModelSettings = QUALITY_MODELS,
) -> None:
    """Keep the documents that pass a set of rules; record why each other one was dropped.

    OUT is a lake: `filtered_documents` holds the documents that are kept, and those that are
    dropped with every reason and value; `document_signals` the stored values. Run it again into the
    same OUT with other thresholds; with stored values, no text is measured again.

    Example: lc filter pages.jsonl.gz filtered --rules gopher-paper
    """
    from msgspec import structs

    from lc_assets.sources.opening import file_partitions
    from lc_assets.stages.documents.document_signals import columns_of_key
    from lc_assets.stages.documents.measuring import rules_of_key
    from lc_assets.stages.file_lakes import ALL_DOCUMENTS, build_for, replaced
    from lc_assets.vocabulary import NO_RULES

    if not rules and not values.quantiles:
        raise BadInput("name what to keep: --rules gopher-paper, or --quantiles gzip_ratio=0.2:0.8")
    shares = dict(map(_shares, values.quantiles or ()))
    filtering = structs.replace(
        replaced(
            ALL_DOCUMENTS["filtered_documents"],
            rules=rules or NO_RULES,
            thresholds=thresholds_of(threshold),
        ),
        lists=lists,
        models=structs.replace(models, quality=quality_models),
    )
    stored = values.all_signals or values.sweep or bool(shares)
    signals = DocumentSignalSettings(values=stored, columns=tuple(shares))
    sections = {"filtered_documents": filtering, "document_signals": signals}
    context = corpus.context(sections, language=lang)
    key = file_partitions(context.recipe.sources)[0]
    rules_of_key(context.recipe, key), columns_of_key(context.recipe, key)
    if shares:
        context = _within_quantiles(context, shares)
    built = build_for(context, "filtered_documents")
    _show(built, rules_of_key(context.recipe, key)[0], stored, values.sweep)
    say(f"{corpus.out}: kept documents, and why the others were dropped, in filtered_documents")


def thresholds_of(given: list[str] | None) -> dict[str, dict[str, float | None]]:
    """The bounds that ``--threshold`` gives, by rule.

    Raises:
        BadInput: when one is not a threshold.
    """
    from lc_assets.formats.lists.rule_files import parse_threshold

    found: dict[str, dict[str, float | None]] = {}
    for rule, bound, value in map(parse_threshold, given or ()):
        found.setdefault(rule, {})[bound] = value
    return found


def _shares(given: str) -> tuple[str, tuple[Fraction, Fraction]]:
    """A column, and the shares of documents to drop below and above."""
    column, _, shares = given.rpartition("=")
    low, _, high = shares.partition(":")
    try:
        below, above = Fraction(low), 1 - Fraction(high)
    except (ValueError, ZeroDivisionError):
        below = above = Fraction(-1)
    if not column or min(below, above) < 0 or not 0 < below + above < 1:
        raise BadInput(
            f"--quantiles {given}: expected a column and two quantiles from 0 to 1 that drop some "
            "documents and not all, such as gzip_ratio=0.2:0.8"
        )
    return column, (below, above)


def _within_quantiles(
    context: "BuildContext", shares: "Mapping[str, tuple[Fraction, Fraction]]"
) -> "BuildContext":
    """Store the columns' values, and bound them by their quantiles."""
    import numpy as np
    from msgspec import structs

    from lc_assets.build.settings.documents import Bounds
    from lc_assets.build.tables import read_table
    from lc_assets.stages.documents.shard_inputs import VALUES_SUFFIX
    from lc_assets.stages.file_lakes import build_for
    from lc_assets.text.rules.rules import quantile_bounds

    built = build_for(context, "document_signals")["document_signals"].values()
    paths = [
        path for found in built for path in sorted(found.published.folder.glob(f"*{VALUES_SUFFIX}"))
    ]
    bounds = {}
    for column, (below, above) in shares.items():
        values = np.concatenate([read_table(path, [column])[column].to_numpy() for path in paths])
        try:
            lowest, highest = quantile_bounds(values, below, above)
        except BadInput as error:
            raise BadInput(f"{column}: {error}") from error
        bounds[column] = Bounds(at_least=lowest, at_most=highest)
    filtering = structs.replace(context.recipe.filtered_documents, bounds=bounds)
    return replace(context, recipe=structs.replace(context.recipe, filtered_documents=filtering))


def _show(
    built: "Mapping[str, Mapping[str, Built]]", rules: "RuleSet", all_values: bool, sweep: bool
) -> None:
    """Print the balance, a table by rule, and the lists and models used."""
    from lc_assets.counts import Counts
    from lc_assets.text.signals.names import SCALARS

    filtered = built["filtered_documents"].values()
    counts = Counts.total(found.counts for found in filtered)
    say(
        f"{counts.seen:,} documents = {counts.kept:,} kept + {counts.seen - counts.kept:,} "
        f"dropped, by {rules.name}"
    )
    first, every = counts.dropped, counts.failed_rules
    measured = rules.but_on(() if all_values else SCALARS)
    n_measured = counts.kept + sum(first.get(rule.name, 0) for rule in measured.rules)
    n_read = counts.kept + sum(first.get(rule.name, 0) for rule in rules.rules)
    lines: list[tuple[Any, ...]] = [
        (
            rule.name,
            rule.column,
            rule.expected,
            n_measured if rule in measured.rules else n_read,
            first.get(rule.name, 0),
            every.get(rule.name, 0),
        )
        for rule in rules.rules
    ]
    others = first.keys() - {rule.name for rule in rules.rules}
    lines += [(name, "", "", counts.seen, first[name], every[name]) for name in sorted(others)]
    table(("rule", "tests", "expected", "documents", "failed first", "failed"), lines)
    params = next(iter(filtered)).published.receipt.fingerprint.params
    show_digests({**params["lists"], **params["models"]})
    if not all_values and measured.rules != rules.rules:
        say(
            "What has to be measured was measured of documents that pass the published signals' "
            "rules; --all-signals measures all"
        )
    if sweep:
        _show_sweep(built)


def show_digests(digests: "Mapping[str, str]") -> None:
    """Print the lists and models that values were computed with, if any."""
    if digests:
        table(("computed by", "SHA-256"), list(digests.items()))


def _show_sweep(built: "Mapping[str, Mapping[str, Built]]") -> None:
    """Print how many documents each threshold would keep."""
    from lc_assets.stages.documents.sweeping import total_sweep

    folders = [found.published.folder for found in built["filtered_documents"].values()]
    heading("What each threshold would keep")
    lines = [
        (
            line["rule"],
            line["bound"],
            f"{line['threshold']:,.12g}{' *' if line['in_force'] else ''}",
            line["kept_alone"],
            line["kept_with_the_others"],
        )
        for line in total_sweep(folders).to_pylist()
    ]
    table(("rule", "bound", "threshold", "kept, alone", "kept, with the others"), lines)
    say("* in force")
