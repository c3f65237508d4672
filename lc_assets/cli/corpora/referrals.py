"""``lc referrals``: how densely documents refer to earlier mentions, beside the paper's tables."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from lc_assets.build.settings.longpack import ReferralReportSettings
from lc_assets.build.settings.rows import TokenizingSettings
from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, say, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from lc_assets.counts import Counts

EVERY = 1 << 62
"""Documents of a sample that is all of them."""

TITLES = {
    "pairs": "Pairs of mentions of one concept, per token (the paper's table 4)",
    "neighbours": "Neighbouring mentions, per token (table 5)",
    "concepts": "Concepts with a pair in the bucket, per document (table 6)",
}


@options.with_options
def referrals(
    corpus: options.Corpus,
    buckets: Annotated[
        str,
        Option(
            "--buckets", help="Lower ends of the distances in sentences, after the first bucket."
        ),
    ] = "32,128,512",
    settings: ReferralReportSettings = options.settings_options(
        ReferralReportSettings(wanted=True, sample=EVERY), "scope", "max_df", "words", "spacy"
    ),
    tokens: TokenizingSettings = options.settings_options(TokenizingSettings(), "tokenizer"),
) -> None:
    """Measure long-distance referrals: pairs of mentions of a concept by the number of sentences
    between them.

    Printed by length groups, beside RefinedWeb's and LongPack's documents in the LongPack paper.
    OUT is a lake: `referral_report` holds a line per document.

    Example: lc referrals packed out --scope document --max-df 0.05 --workers 2
    """
    from lc_assets.formats.tokenizers.named import located, vocabulary_of
    from lc_assets.stages.file_lakes import counts_of, replaced

    settings = replaced(settings, buckets=_edges(buckets))
    tokens = replaced(tokens, tokenizer=located(tokens.tokenizer))
    vocabulary_of(tokens.tokenizer)  # raises before any work is done
    sections = {"referral_report": settings, "token_documents": tokens}
    built = corpus.build("referral_report", sections, together=True)
    (report,) = built["referral_report"].values()
    _show(counts_of(built), report.published.folder, settings)
    say(f"{corpus.out}: a line per document in referral_report")


def _edges(buckets: str) -> tuple[int, ...]:
    try:
        return tuple(int(edge) for edge in buckets.split(",") if edge.strip())
    except ValueError as error:
        raise BadInput(
            f"--buckets {buckets}: expected whole numbers with commas between, such as 32,128,512"
        ) from error


def _show(counts: "Counts", folder: Path, settings: ReferralReportSettings) -> None:
    from lc_assets.build.tables import read_lines, read_table
    from lc_assets.stages.reports.document_sets import NATURAL
    from lc_assets.stages.reports.measuring import COMMON_FILE, referral_lines
    from lc_assets.stages.reports.referral_report import (
        DENSITIES_FILE,
        paper_figures,
        paper_tables,
    )
    from lc_assets.text.referrals.referrals import bucket_names

    say(
        f"{counts.seen:,} documents = {counts.kept:,} measured + "
        f"{counts.seen - counts.kept:,} that could not be read"
    )
    facts(counts.dropped.items())
    if settings.scope == "document":
        n_whole = sum(not line["n_parts"] for line in referral_lines(folder, NATURAL))
        facts([("documents without spans", n_whole)])
    if settings.max_df < 1 and not settings.spacy:
        n_common = read_table(folder / COMMON_FILE, ["word"]).num_rows
        say(f"{n_common:,} words in more than {settings.max_df:.0%} of the pieces are no concepts")
    figures: dict[tuple[str, str], list[Any]] = {}
    for line in read_lines(folder / DENSITIES_FILE):
        row = figures.setdefault((line["counted"], line["length_group"]), [line["documents"]])
        row.append(line["figure"])
    columns = ["tokens", "set", "documents", *bucket_names(settings.buckets)]
    for kind, title in TITLES.items():
        heading(title)
        lines: list[list[Any]] = []
        for group, row in [(group, row) for (of, group), row in figures.items() if of == kind]:
            lines.append([group, "here", *row])
            for paper_set in paper_tables()[kind]:
                printed = paper_figures(kind, paper_set, group, settings.buckets)
                if any(printed):
                    lines.append([group, paper_set, None, *printed])
        table(columns, lines)
