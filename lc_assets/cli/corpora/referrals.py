"""``lc referrals``: how densely documents refer to earlier mentions, beside the paper's tables."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, say, table

if TYPE_CHECKING:
    from lc_assets.stages.reports.referring import Measured, Measuring

TITLES = {
    "pairs": "Pairs of mentions of one concept, per token (the paper's table 4)",
    "neighbours": "Neighbouring mentions, per token (table 5)",
    "concepts": "Concepts with a pair in the bucket, per document (table 6)",
}


def referrals(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN...", help="Files of documents or folders; also plain .txt files."
        ),
    ],
    buckets: Annotated[
        str,
        typer.Option(
            "--buckets", help="Lower ends of the distances in sentences, after the first bucket."
        ),
    ] = "32,128,512",
    scope: Annotated[
        str,
        typer.Option(
            "--scope",
            help="Where equal concepts match: in the whole text, or per document by each record's "
            "spans.",
        ),
    ] = "text",
    max_df: Annotated[
        float,
        typer.Option(
            "--max-df",
            help="Words in more than this share of the corpus's pieces are no concepts; 1: all "
            "may be.",
        ),
    ] = 0.05,
    tokenizer: Annotated[
        str, typer.Option("--tokenizer", help="Tokenizer for counting: a name or a file.")
    ] = "gpt2",
    words: Annotated[
        Path | None,
        typer.Option(
            "--words", help="Stop words, pronouns, abbreviations; by default English ones."
        ),
    ] = None,
    spacy: Annotated[
        str,
        typer.Option(
            "--spacy",
            metavar="PIPELINE",
            help="Find concepts by this spaCy pipeline, a thousand times slower.",
        ),
    ] = "",
    text_field: Annotated[
        str | None,
        typer.Option(
            "--text-field",
            help="Text field of a record; by default raw_content, text or content.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--table", help="Write a line per document: .parquet, .jsonl or .jsonl.gz."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", help="Write the printed figures as JSON.")
    ] = None,
    workers: options.Workers = None,
) -> None:
    """Measure long-distance referrals: pairs of mentions of a concept by the number of sentences
    between them.

    Printed by length groups, beside RefinedWeb's and LongPack's documents in the LongPack paper.

    Example: lc referrals longpack/documents --scope document --max-df 0.05 --workers 2
    """
    from lc_assets.execution.local import executor_of
    from lc_assets.stages.reports.referring import Measuring, measure_corpus

    settings = Measuring(
        buckets=edges_of(buckets),
        scope=scope_of(scope),
        max_df=max_df,
        tokenizer=tokenizer,
        words=words,
        pipeline=spacy,
        text_field=text_field,
    )
    found = measure_corpus(sources, settings, executor=executor_of(workers), table=out)
    _show(found, settings)
    if out is not None:
        say(f"A line per document: {out}")
    if json is not None:
        import msgspec

        from lc_assets.publishing import publish_bytes

        publish_bytes(
            json, msgspec.json.format(msgspec.json.encode(summary(found, settings))) + b"\n"
        )


def edges_of(buckets: str) -> tuple[int, ...]:
    """The numbers of ``32,128,512``.

    Raises:
        BadInput: when they are none.
    """
    from lc_assets.errors import BadInput

    try:
        return tuple(int(edge) for edge in buckets.split(",") if edge.strip())
    except ValueError as error:
        raise BadInput(
            f"--buckets {buckets}: wanted whole numbers with commas between, such as 32,128,512"
        ) from error


def scope_of(scope: str) -> Any:
    """The value of ``--scope``.

    Raises:
        BadInput: if it is unknown.
    """
    from lc_assets.errors import BadInput

    if scope not in ("text", "document"):
        raise BadInput(f"--scope {scope}: wanted text or document")
    return scope


def summary(found: "Measured", settings: "Measuring") -> dict[str, Any]:
    """What is printed, as plain values."""
    from lc_assets.text.referrals.referrals import bucket_names
    from lc_assets.text.referrals.tables import group_names

    names = bucket_names(settings.buckets)
    groups = {
        name: {"documents": sums.n_documents, "tokens": sums.n_tokens}
        | {kind: dict(zip(names, means, strict=True)) for kind, means in sums.means().items()}
        for name, sums in zip(group_names(), found.groups, strict=True)
    }
    counts = found.counts
    return {
        "settings": {
            "buckets": list(settings.buckets), "scope": settings.scope, "max_df": settings.max_df, "tokenizer": settings.tokenizer,
            "words": str(settings.words or ""), "spacy": settings.pipeline,
        },
        "documents": {"seen": counts.seen, "measured": counts.kept, "unread": counts.dropped, **counts.extra},
        "background": {"documents": found.background.n_documents, "pieces": found.background.n_pieces, "common_words": len(found.common)},
        "groups": groups,
    }  # fmt: skip


def _show(found: "Measured", settings: "Measuring") -> None:
    from lc_assets.text.referrals.concepts import LEAST_DOCUMENTS

    counts, background = found.counts, found.background
    say(
        f"{counts.seen:,} documents = {counts.kept:,} measured + {sum(counts.dropped.values()):,} "
        "that could not be read"
    )
    facts(
        [
            *counts.dropped.items(),
            *counts.extra.items(),
            ("tokens", sum(sums.n_tokens for sums in found.groups)),
        ]
    )
    if settings.max_df < 1 and not settings.pipeline:
        said = (
            f"{len(found.common):,} words in more than {settings.max_df:.0%} of "
            f"{background.n_pieces:,} pieces are no concepts"
        )
        few = (
            f"; common are words of {LEAST_DOCUMENTS} documents at least, and there are "
            f"{background.n_documents:,}"
        )
        say(said + (few if background.n_documents < LEAST_DOCUMENTS else ""))
    for kind, title in TITLES.items():
        heading(title)
        table(*_beside_the_paper(found, settings, kind))


def _beside_the_paper(
    found: "Measured", settings: "Measuring", kind: str
) -> tuple[list[str], list[list[Any]]]:
    """Columns and lines of one table: each group here, then as the paper has it."""
    from lc_assets.text.referrals.referrals import bucket_names
    from lc_assets.text.referrals.tables import PAPER, group_names, paper_figures

    lines: list[list[Any]] = []
    for name, sums in zip(group_names(), found.groups, strict=True):
        if not sums.n_documents:
            continue
        printed = {
            paper_set: paper_figures(kind, paper_set, name, edges=settings.buckets)
            for paper_set in PAPER[kind]
        }
        lines += [
            [name, "here", sums.n_documents, *sums.means()[kind]],
            *(
                [name, paper_set, None, None, *map(float, figures)]
                for paper_set, figures in printed.items()
                if figures is not None
            ),
        ]
    return ["tokens", "set", "documents", *bucket_names(settings.buckets)], lines
