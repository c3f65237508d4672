"""``lc dedup``: find duplicates, exact and near, with evidence; or decide anew from evidence that
lies there.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, lasted, say, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from lc_assets.stages.deduplication.running import Summary
    from lc_assets.stages.deduplication.settings import Decision, Means

SHOWN_CLUSTERS = 5
SHOWN_MEMBERS = 12
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def dedup(
    sources: Annotated[
        list[Path] | None, typer.Argument(metavar="IN...", help="Files and folders of documents.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Argument(metavar="OUT", help="Folder for clusters, evidence and kept ids."),
    ] = None,
    threshold: Annotated[
        float,
        typer.Option("--threshold", help="Share of 13-grams that near duplicates have in common."),
    ] = 0.8,
    by: Annotated[
        str, typer.Option("--by", help="Of digest, text, url and near, with commas.")
    ] = "digest,text,url,near",
    prefer: Annotated[
        str,
        typer.Option(
            "--prefer",
            help="Who stays: newest, oldest, longest, best_perplexity, source=NAME; several with "
            "commas.",
        ),
    ] = "newest",
    against: Annotated[
        Path | None,
        typer.Option("--against", help="OUT of an older search: only what is new is compared."),
    ] = None,
    from_evidence: Annotated[
        Path | None,
        typer.Option("--from-evidence", help="OUT of a search: decide anew, read no text."),
    ] = None,
    floor: Annotated[
        float, typer.Option("--floor", help="Pairs that are less alike are not written down.")
    ] = 0.5,
    paragraphs: Annotated[
        int | None,
        typer.Option(
            "--paragraphs",
            min=1,
            help="Then remove lines of so many characters that another document has.",
        ),
    ] = None,
    signatures: Annotated[
        Path | None,
        typer.Option(
            "--signatures",
            help="Folder of lc minhash, or of RedPajama-V2: taken instead of computed.",
        ),
    ] = None,
    memory: Annotated[str, typer.Option("--memory", help="For all of it, such as 2GB.")] = "2GB",
    text_field: Annotated[
        str | None, typer.Option("--text-field", help="Where a record's text is.")
    ] = None,
    workers: options.Workers = None,
) -> None:
    """Find duplicates by digest, text, address and shingles, every near one compared before it is
    removed.

    Example: lc dedup crawl out --threshold 0.8
    """
    import time

    from lc_assets.stages.deduplication.running import decide_again
    from lc_assets.stages.deduplication.settings import Decision, Means

    given, into = _places(sources or [], out)
    decision = Decision(threshold=threshold, by=_listed(by), prefer=_listed(prefer))
    means = Means(memory=bytes_of(memory))
    begun = time.perf_counter()
    if from_evidence is not None:
        if given or against or paragraphs or signatures:
            raise BadInput(
                "--from-evidence reads no documents: give OUT alone, without --against, "
                "--paragraphs and --signatures"
            )
        summary = decide_again(from_evidence, into, decision, means)
    else:
        summary = _search(
            given,
            into,
            decision,
            means,
            floor=floor,
            against=against,
            signatures=signatures,
            text_field=text_field,
            workers=workers,
        )
    _show(summary, into, time.perf_counter() - begun)
    if paragraphs is not None:
        _remove_paragraphs(into, paragraphs, means, text_field=text_field, workers=workers)


def bytes_of(words: str) -> int:
    """A size in bytes.

    >>> bytes_of("2GB"), bytes_of("500 mb")
    (2000000000, 500000000)

    Raises:
        BadInput: when it is none.
    """
    bare = words.strip().upper()
    try:
        return int(float(bare[:-2]) * _UNITS[bare[-2:]])
    except (KeyError, ValueError, OverflowError) as error:
        raise BadInput(f"{words!r} is no size: wanted such as 500MB or 2GB") from error


def _remove_paragraphs(
    into: Path, least_chars: int, means: "Means", *, text_field: str | None, workers: int | None
) -> None:
    from lc_assets.cli.sample import executor_of
    from lc_assets.stages.deduplication.paragraphs import remove_paragraphs

    counts = remove_paragraphs(
        into,
        executor=executor_of(workers),
        least_chars=least_chars,
        means=means,
        text_field=text_field,
    )
    heading(f"Paragraphs of {least_chars:,} characters or more that another document has")
    lines = [
        ("documents looked at", counts.seen),
        ("written", counts.kept),
        *counts.dropped.items(),
    ]
    names = (
        "edited",
        "paragraphs",
        "paragraphs removed",
        "characters",
        "characters removed",
        "characters written",
    )
    facts([*lines, *((name, counts.extra[name]) for name in names)])
    say(f"{into}: paragraphs.parquet, and the documents in documents/")


def _places(sources: list[Path], out: Path | None) -> tuple[list[Path], Path]:
    """What is read and where it goes; the last path is the output, however many there are."""
    every = [*sources, *([out] if out else [])]
    if not every:
        raise BadInput("say what to read and where to write: lc dedup IN... OUT")
    return every[:-1], every[-1]


def _listed(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


def _search(
    given: list[Path],
    into: Path,
    decision: "Decision",
    means: "Means",
    *,
    floor: float,
    against: Path | None,
    signatures: Path | None,
    text_field: str | None,
    workers: int | None,
) -> "Summary":
    import os

    from lc_assets.cli.sample import executor_of
    from lc_assets.stages.deduplication.asking import Search
    from lc_assets.stages.deduplication.running import deduplicate
    from lc_assets.stages.deduplication.settings import NEAR, Scheme
    from lc_assets.stages.deduplication.signing import OWN, stored_signing

    if not given:
        raise BadInput("say what to read as well as where to write: lc dedup IN... OUT")
    if signatures is not None and NEAR not in decision.by:
        raise BadInput("--signatures are for near duplicates: leave them out, or add near to --by")
    n_workers = workers or os.cpu_count() or 1
    return deduplicate(
        Search(
            sources=given,
            out=into,
            signing=OWN if signatures is None else stored_signing(signatures),
            executor=executor_of(n_workers),
            decision=decision,
            scheme=Scheme(floor=floor),
            means=means,
            against=against,
            text_field=text_field,
            workers=n_workers,
        )
    )


def _show(summary: "Summary", into: Path, seconds: float) -> None:
    counts = summary.counts
    table(
        ("documents", "number"),
        [
            ("seen", counts.seen),
            ("kept", counts.kept),
            *((f"removed: {reason}", count) for reason, count in counts.dropped.items()),
        ],
    )
    names = ("signed", "too few words to be signed", "candidates", "verified", "refuted")
    facts([(name, summary.work[name]) for name in names if name in summary.work])
    _show_clusters(into)
    say(f"{into}: clusters.parquet, removed.parquet, kept.parquet; {lasted(seconds)}")
    say(
        "Another threshold, without reading a text: lc dedup --from-evidence "
        f"{summary.evidence or into} OUT --threshold 0.9"
    )


def _show_clusters(into: Path) -> None:
    """The first few clusters, a line per document."""
    from lc_assets.stages.deduplication.deciding import CLUSTERS_FILE
    from lc_assets.stages.tables import read_lines

    seen: dict[str, int] = {}
    lines = []
    for line in read_lines(into / CLUSTERS_FILE):
        if line["cluster"] not in seen and len(seen) == SHOWN_CLUSTERS:
            break
        seen[line["cluster"]] = seen.get(line["cluster"], 0) + 1
        if seen[line["cluster"]] <= SHOWN_MEMBERS:
            lines.append((line["cluster"], line["id"], line["similarity_to_kept"], line["why"]))
    if lines:
        heading(f"The first {len(seen)} clusters of near duplicates")
        table(("cluster", "document", "like the one that stays", "why that one stays"), lines)
