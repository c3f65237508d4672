"""``lc filter``: keep the documents that pass a set of rules; and ``lc signals``: RedPajama-V2's
signals of any corpus, in its own lines.
"""

import gzip
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import structs
from typer import Option

from lc_assets.api import corpora as api
from lc_assets.api.files import Output
from lc_assets.builds.settings.common import ModelSettings, QualityModelSettings
from lc_assets.builds.settings.documents import (
    DocumentSignalSettings,
    FilteringSettings,
    ListSettings,
)
from lc_assets.cli import options
from lc_assets.cli.printing import heading, print_error, say, table
from lc_assets.cli.reports import report
from lc_assets.cli.setting_options import settings_options
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.lists.rule_files import parse_threshold
from lc_assets.stages.documents.document_signals import (
    BYTES,
    LINES_SUFFIX,
    WITHOUT_BAD_WORDS,
    WITHOUT_STOP_WORDS,
)
from lc_assets.stages.documents.measuring import lists_of, rules_of_key
from lc_assets.stages.documents.sweeping import total_sweep
from lc_assets.text.signals.names import WordLists
from lc_assets.vocabulary import NO_RULES

Thresholds = Annotated[
    list[str] | None,
    Option(
        "--threshold",
        help="Another bound, such as symbols.at_most=0.2; may be given several times.",
    ),
]
LISTS = settings_options(ListSettings(), "stop_words", "bad_words", "domains")
MODELS = settings_options(
    ModelSettings(), "blocklist", language="--language-model", perplexity="--perplexity-model"
)
QUALITY_MODELS = settings_options(
    QualityModelSettings(),
    palm="--palm-model",
    wikiref="--wikiref-model",
    wikipedia="--wikipedia-model",
)


def filter_(
    corpus: options.Corpus,
    quantiles: Annotated[list[str] | None, Option(metavar="COLUMN=LOW:HIGH")] = None,
    all_signals: bool = False,
    sweep: bool = False,
    rules: str = "",
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

    Args:
        quantiles: keep the documents between two quantiles of these very documents, such as
            gzip_ratio=0.2:0.8 or mean_word_length:raw=0:0.99; may be given several times.
        all_signals: apply every rule to every document, and store all values: then other thresholds
            compute nothing again.
        sweep: print what each threshold would keep; includes --all-signals.
        rules: a preset's name, or a file of rules.

    Example: lc filter pages.jsonl.gz filtered --rules gopher-paper
    """
    output = corpus.run(
        api.filter,
        rules=rules,
        thresholds=thresholds_of(threshold),
        quantiles=dict(map(_quantiles, quantiles or ())),
        all_signals=all_signals or sweep,
        language=lang,
        lists=lists,
        models=structs.replace(models, quality=quality_models),
    )
    _show(output)
    if sweep:
        _show_sweep(output)
    say(f"{corpus.out}: kept documents, and why the others were dropped, in filtered_documents")


def thresholds_of(given: list[str] | None) -> dict[str, dict[str, float | None]]:
    """The bounds that ``--threshold`` gives, by rule.

    Raises:
        BadInput: when one is not a threshold.
    """
    found: dict[str, dict[str, float | None]] = {}
    for rule, bound, value in map(parse_threshold, given or ()):
        found.setdefault(rule, {})[bound] = value
    return found


def _quantiles(given: str) -> tuple[str, tuple[Fraction, Fraction]]:
    """A column, and the two quantiles to keep between."""
    column, _, bounds = given.rpartition("=")
    low, _, high = bounds.partition(":")
    try:
        return column, (Fraction(low), Fraction(high))
    except (ValueError, ZeroDivisionError) as error:
        raise BadInput(
            f"--quantiles {given}: expected a column and two quantiles, such as gzip_ratio=0.2:0.8"
        ) from error


def _show(output: Output) -> None:
    """Print the balance, a table by rule, and the lists and models used."""
    filtered = output["filtered_documents"]
    rules, _ = rules_of_key(output.recipe, next(iter(output.stages["filtered_documents"])))
    counts = Counts.total(found.counts for found in filtered)
    say(
        f"{counts.seen:,} documents = {counts.kept:,} kept + {counts.seen - counts.kept:,} "
        f"dropped, by {rules.name}"
    )
    first, every = counts.dropped, counts.failed_rules
    lines: list[tuple[Any, ...]] = [
        (rule.name, rule.column, rule.expected, first.get(rule.name, 0), every.get(rule.name, 0))
        for rule in rules.rules
    ]
    others = first.keys() - {rule.name for rule in rules.rules}
    lines += [(name, "", "", first[name], every[name]) for name in sorted(others)]
    table(("rule", "tests", "expected", "failed first", "failed"), lines)
    params = filtered[0].published.params
    show_digests({**params["lists"], **params["models"]})


def show_digests(digests: "Mapping[str, str]") -> None:
    """Print the lists and models that values were computed with, if any."""
    if digests:
        table(("computed by", "SHA-256"), list(digests.items()))


def _show_sweep(output: Output) -> None:
    """Print how many documents each threshold would keep."""
    folders = [found.published.folder for found in output["filtered_documents"]]
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


STDOUT = Path("-")


def signals(corpus: options.Corpus, lang: options.Lang = "", lists: ListSettings = LISTS) -> None:
    """Compute RedPajama-V2's 29 rule signals from text and write its own signals lines.

    OUT is a lake, with NAME.signals.json.gz for each file in `document_signals`; or - for standard
    output. A signal whose list is not given is left out, and so are those that need a model.

    Example: lc signals corpus signals --lang en --stop-words stop_words.json
    """
    known, out = lists_of(lists), corpus.out
    if out == STDOUT and report():
        raise BadInput("OUT - is for signals alone: leave out --json and --quiet")
    settings = {
        "filtered_documents": FilteringSettings(rules=NO_RULES, min_words=0, lists=lists),
        "document_signals": DocumentSignalSettings(lines=True),
    }
    with ExitStack() as stack:
        if out == STDOUT:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            corpus.paths[-1] = Path(folder)
        built = corpus.build("document_signals", settings, language=lang)["document_signals"]
        if out == STDOUT:
            stream = typer.get_binary_stream("stdout")
            for found in built:
                for path in sorted(found.published.folder.glob(f"*{LINES_SUFFIX}")):
                    with gzip.open(path) as content:
                        stream.writelines(content)
            stream.flush()
    for line in _signals_summary(Counts.total(found.counts for found in built), known):
        (print_error if out == STDOUT else say)(line)
    if out != STDOUT:
        table(("list", "SHA-256"), sorted(known.digests.items()))


def _signals_summary(counts: Counts, lists: WordLists) -> list[str]:
    """Sentences about what was read, written and left out."""
    unread = ", ".join(f"{n:,} {why}" for why, n in counts.dropped.items()) or "none"
    lacking = {
        "rps_doc_stop_word_fraction": WITHOUT_STOP_WORDS,
        "rps_doc_ldnoobw_words": WITHOUT_BAD_WORDS,
    }
    absent = [
        f"{signal} of {n:,} documents"
        for signal, without in lacking.items()
        if (n := counts.extra.get(without, 0))
    ]
    absent += [] if lists.domains is not None else ["rps_doc_ut1_blacklist"]
    absent.append("rps_doc_ml_* and rps_doc_*_importance*, which need models")
    size = f"{counts.extra.get(BYTES, 0):,} bytes of text"
    return [
        f"{counts.seen:,} documents seen, {counts.kept:,} measured ({size}), unread: {unread}",
        f"Left out: {'; '.join(absent)}",
    ]
