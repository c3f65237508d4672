"""``lc judge``: a plain corpus, or values that were stored, by a set of rules; and what each
threshold would keep.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import heading, say, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lc_assets.stages.documents.judging_runs import Summary
    from lc_assets.text.rules.rules import RuleSet

Rules = Annotated[str, typer.Option("--rules", help="A preset's name, or a file of rules.")]
Thresholds = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold",
        help="Another bound, such as symbols.at_most=0.2; may be given several times.",
    ),
]


def judge(
    source: Annotated[
        Path, typer.Argument(help="Documents (a file, or a folder of them), or stored signals.")
    ],
    out: Annotated[
        Path, typer.Argument(help="Folder for kept, dropped, signals and summary.json.")
    ],
    rules: Rules,
    threshold: Thresholds = None,
    lang: Annotated[
        str, typer.Option("--lang", help="Language of documents that do not say theirs.")
    ] = "en",
    text_field: Annotated[
        str | None, typer.Option("--text-field", help="Where a record's text is.")
    ] = None,
    all_signals: Annotated[
        bool, typer.Option("--all-signals", help="Ask every rule of every document.")
    ] = False,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep", help="Count what each threshold would keep; includes --all-signals."
        ),
    ] = False,
    stop_words: options.StopWords = None,
    bad_words: options.BadWords = None,
    domains: options.Domains = None,
    language_model: options.LanguageModel = None,
    blocklist: options.Blocklist = None,
    perplexity_model: options.PerplexityModel = None,
    quality_model: options.QualityModels = None,
    workers: options.Workers = None,
) -> None:
    """Keep the documents that a set of rules speaks for; say why each other was dropped.

    Rules are asked by their cost. A document that one speaks against is asked nothing costlier,
    unless --all-signals is given. The values are stored: with other thresholds, judge OUT/signals,
    and no text is read again.

    Example: lc judge pages.jsonl.gz judged --rules gopher-paper
    """
    from lc_assets.execution.local import executor_of
    from lc_assets.stages.documents.judging_runs import judge_corpus

    summary = judge_corpus(
        [source],
        out,
        rules_from(rules, threshold),
        executor=executor_of(workers),
        text_field=text_field,
        language=lang,
        all_signals=all_signals,
        sweep=sweep,
        lists=options.list_settings(stop_words, bad_words, domains),
        models=options.model_settings(language_model, blocklist, perplexity_model, quality_model),
    )
    show_summary(summary)
    show_sweep(summary)
    say(f"written to {out}")


def rules_from(name_or_path: str, thresholds: list[str] | None) -> "RuleSet":
    """Read rules, with other bounds where some are given.

    Raises:
        BadInput: when the file, a rule's name or a bound cannot be meant.
    """
    from lc_assets.formats.lists.rule_files import parse_threshold, read_rules, with_thresholds

    overrides: dict[str, dict[str, float | None]] = {}
    for rule, bound, value in map(parse_threshold, thresholds or ()):
        overrides.setdefault(rule, {})[bound] = value
    return with_thresholds(read_rules(name_or_path), overrides)


def show_summary(summary: "Summary") -> None:
    """Print the balance and a table by rule."""
    say(
        f"{summary.seen:,} documents = {summary.kept:,} kept + {summary.dropped:,} dropped, by "
        f"{summary.rules}"
    )
    lines = [
        (line.rule, line.column, line.wanted, line.asked, line.first, line.any)
        for line in summary.by_rule
    ]
    table(("rule", "judges", "wanted", "asked of", "first", "any"), lines)
    show_digests({**summary.lists, **summary.models})
    if not summary.all_signals:
        say(
            "a document that one rule spoke against was asked nothing costlier; --all-signals "
            "asks everything"
        )


def show_digests(digests: "Mapping[str, str]") -> None:
    """Print what lists and models values were computed by, when there are any."""
    if digests:
        table(("computed by", "SHA-256"), list(digests.items()))


def show_sweep(summary: "Summary") -> None:
    """Print how many documents each threshold would keep, when that was counted."""
    if not summary.sweep:
        return
    heading("What each threshold would keep")
    lines = [
        (
            line["rule"],
            line["bound"],
            f"{line['threshold']:,.12g}{' *' if line['in_force'] else ''}",
            line["kept_alone"],
            line["kept_with_the_others"],
        )
        for line in summary.sweep
    ]
    table(("rule", "bound", "threshold", "kept, alone", "kept, with the others"), lines)
    say("* in force")
