"""``lc referrals``: how densely documents refer to earlier mentions, beside the paper's tables."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, say, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from lc_assets.stages.reports.measuring import Measured, Measuring

TITLES = {
    "pairs": "Pairs of mentions of one concept, per token (the paper's table 4)",
    "neighbours": "Neighbouring mentions, per token (table 5)",
    "concepts": "Concepts with a pair in the bucket, per document (table 6)",
}


@dataclass(kw_only=True)
class ConceptOptions:
    """What a concept is."""

    scope: Annotated[
        Literal["text", "document"],
        Option(
            "--scope",
            help="Where equal concepts match: in the whole text, or per document by each record's "
            "spans.",
        ),
    ] = "text"
    max_df: Annotated[
        float,
        Option(
            "--max-df",
            help="Words in more than this share of the corpus's pieces are no concepts; 1 excludes "
            "none.",
        ),
    ] = 0.05
    words: Annotated[
        Path | None,
        Option("--words", help="Stop words, pronouns, abbreviations; by default English ones."),
    ] = None
    spacy: Annotated[
        str,
        Option(
            "--spacy",
            metavar="PIPELINE",
            help="Find concepts by this spaCy pipeline, a thousand times slower.",
        ),
    ] = ""


@dataclass(kw_only=True)
class ReportOptions:
    """How distances are grouped, and where figures are written."""

    buckets: Annotated[
        str,
        Option(
            "--buckets", help="Lower ends of the distances in sentences, after the first bucket."
        ),
    ] = "32,128,512"
    out: Annotated[
        Path | None,
        Option("--table", help="Write a line per document: .parquet, .jsonl or .jsonl.gz."),
    ] = None
    json: Annotated[Path | None, Option("--json", help="Write the printed figures as JSON.")] = None


@options.with_options
def referrals(
    sources: Annotated[
        list[Path],
        Argument(
            metavar="IN...", help="Files of documents, folders, or lakes; also plain .txt files."
        ),
    ],
    concepts: ConceptOptions,
    report: ReportOptions,
    tokenizer: Annotated[
        str, Option("--tokenizer", help="Tokenizer for counting: a name or a file.")
    ] = "gpt2",
    text_field: Annotated[
        str | None,
        Option(
            "--text-field",
            help="Text field of a record; by default raw_content, text or content.",
        ),
    ] = None,
    workers: options.Workers = None,
) -> None:
    """Measure long-distance referrals: pairs of mentions of a concept by the number of sentences
    between them.

    Printed by length groups, beside RefinedWeb's and LongPack's documents in the LongPack paper.

    Example: lc referrals packed --scope document --max-df 0.05 --workers 2
    """
    from lc_assets.execution.local import executor_of
    from lc_assets.lake.partition import CURRENT
    from lc_assets.stages.reports.measuring import Measuring, measure_corpus

    settings = Measuring(
        buckets=_edges(report.buckets),
        scope=concepts.scope,
        max_df=concepts.max_df,
        tokenizer=tokenizer,
        words=concepts.words,
        pipeline=concepts.spacy,
        text_field=text_field,
    )
    if any(next(path.glob(f"*/*/{CURRENT}"), None) for path in sources if path.is_dir()):
        from lc_assets.stages.file_lakes import document_files

        sources = document_files(sources)
    found = measure_corpus(sources, settings, executor=executor_of(workers), table=report.out)
    _show(found, settings)
    if report.out is not None:
        say(f"A line per document: {report.out}")
    if report.json is not None:
        from lc_assets.publishing import publish_bytes

        publish_bytes(report.json, summary(found, settings))


def _edges(buckets: str) -> tuple[int, ...]:
    try:
        return tuple(int(edge) for edge in buckets.split(",") if edge.strip())
    except ValueError as error:
        raise BadInput(
            f"--buckets {buckets}: wanted whole numbers with commas between, such as 32,128,512"
        ) from error


def summary(found: "Measured", settings: "Measuring") -> bytes:
    """What is printed, as JSON."""
    import msgspec

    from lc_assets.text.referrals.referrals import bucket_names

    names, background = bucket_names(settings.buckets), found.background
    groups = {
        group: {"documents": sums.n_documents, "tokens": sums.n_tokens}
        | {kind: dict(zip(names, means, strict=True)) for kind, means in sums.means().items()}
        for group, sums in found.groups.items()
    }
    values = {
        "settings": settings,
        "documents": found.counts,
        "background": {
            "documents": background.n_documents,
            "pieces": background.n_pieces,
            "common_words": len(found.common),
        },
        "groups": groups,
    }
    return msgspec.json.format(msgspec.json.encode(values, enc_hook=str)) + b"\n"


def _show(found: "Measured", settings: "Measuring") -> None:
    from lc_assets.text.referrals.concepts import LEAST_DOCUMENTS
    from lc_assets.text.referrals.referrals import PAPER, bucket_names, paper_figures

    counts, background = found.counts, found.background
    say(
        f"{counts.seen:,} documents = {counts.kept:,} measured + {sum(counts.dropped.values()):,} "
        "that could not be read"
    )
    n_tokens = sum(sums.n_tokens for sums in found.groups.values())
    facts([*counts.dropped.items(), *counts.extra.items(), ("tokens", n_tokens)])
    if settings.max_df < 1 and not settings.pipeline:
        few = (
            f"; common are words of {LEAST_DOCUMENTS} documents at least, and there are "
            f"{background.n_documents:,}"
        )
        say(
            f"{len(found.common):,} words in more than {settings.max_df:.0%} of "
            f"{background.n_pieces:,} pieces are no concepts"
            + (few if background.n_documents < LEAST_DOCUMENTS else "")
        )
    columns = ["tokens", "set", "documents", *bucket_names(settings.buckets)]
    for kind, title in TITLES.items():
        heading(title)
        lines: list[list[Any]] = []
        for group, sums in found.groups.items():
            if not sums.n_documents:
                continue
            lines.append([group, "here", sums.n_documents, *sums.means()[kind]])
            for paper_set in PAPER[kind]:
                printed = paper_figures(kind, paper_set, group, edges=settings.buckets)
                if printed is not None:
                    lines.append([group, paper_set, None, None, *map(float, printed)])
        table(columns, lines)
