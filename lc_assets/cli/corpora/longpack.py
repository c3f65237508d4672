"""``lc longpack``: long documents from hyperlinks, out of archives and cleaned pages, and how much
they grew.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, lasted, say, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from lc_assets.build.settings.longpack import LongPackSettings
    from lc_assets.counts import Counts
    from lc_assets.stages.longpack.outside import Outcome


def longpack(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for packed documents, spans and claims.")
    ],
    warc: Annotated[
        list[Path] | None,
        typer.Option(
            "--warc", help="WARC file, or folder of them: links are read there; repeatable."
        ),
    ] = None,
    pages: Annotated[
        list[Path] | None,
        typer.Option("--pages", help="Cleaned pages with their url; by default texts of the WARC."),
    ] = None,
    more: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...",
            help="Further WARC files and files of pages, as a shell's * gives them.",
        ),
    ] = None,
    roots: Annotated[
        float, typer.Option("--roots", help="Share of pages that are roots; the paper took 0.005.")
    ] = 1.0,
    seed: Annotated[
        int, typer.Option("--seed", help="Of the hash that draws and orders roots.")
    ] = 64,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            help="consume: each page once; allow: a root may be a child too, as in the paper.",
        ),
    ] = "consume",
    repetitions: Annotated[
        int, typer.Option("--repetitions", min=1, help="Roots that may hold the same text.")
    ] = 1,
    max_tokens: Annotated[
        int,
        typer.Option(
            "--max-tokens", min=1, help="Of a document; children are taken whole, roots never cut."
        ),
    ] = 131_072,
    depth: Annotated[
        int,
        typer.Option(
            "--depth", min=1, max=16, help="Rounds: 2 packs what children point at as well."
        ),
    ] = 1,
    paper_exact: Annotated[
        bool,
        typer.Option("--paper-exact", help="Parts as in the paper's pseudo-code, byte for byte."),
    ] = False,
    portals: Annotated[
        str,
        typer.Option(
            "--portals", help="drop home pages, menus and hubs; or keep them, as the paper."
        ),
    ] = "drop",
    hub_share: Annotated[
        float,
        typer.Option("--hub-share", help="A page that more of its host's pages point at is a hub."),
    ] = 0.05,
    nofollow: Annotated[
        str,
        typer.Option("--nofollow", help="keep or drop links that their authors do not vouch for."),
    ] = "keep",
    any_language: Annotated[
        bool,
        typer.Option("--any-language", help="Children may be in another language than their root."),
    ] = False,
    extractor: Annotated[
        str,
        typer.Option(
            "--extractor", help="html5, or paper: its expressions, relative addresses left out."
        ),
    ] = "html5",
    quality: Annotated[
        str, typer.Option("--quality", help="Of texts of the WARC: fast, or high (trafilatura).")
    ] = "fast",
    tokenizer: Annotated[
        str,
        typer.Option("--tokenizer", help="That counts tokens: gpt2, cl100k_base, ..., or a file."),
    ] = "gpt2",
    text_field: Annotated[
        str | None, typer.Option("--text-field", help="Where a page's text is.")
    ] = None,
    rest: Annotated[
        bool,
        typer.Option(
            "--rest", help="Write the pages that are in no packed document too, to OUT/rest."
        ),
    ] = False,
    workers: options.Workers = None,
) -> None:
    """Pack pages along their links: what a page points at stands before it, each below its anchor
    text, the page itself last.

    Writes OUT/documents/*.jsonl.gz (text, with a span for every part), OUT/spans.parquet,
    OUT/claims.parquet and OUT/summary.json.

    Example: lc longpack --warc crawl.warc.gz --pages pages.jsonl.gz --out packed --roots 0.05
        --mode allow
    """
    import time

    from lc_assets.execution.local import executor_of
    from lc_assets.stages.longpack.outside import Crawl, pack_crawl

    begun = time.perf_counter()
    archives, cleaned = _sorted_out(warc or [], pages or [], more or [])
    given = {
        "roots": roots,
        "seed": seed,
        "mode": mode,
        "repetitions": repetitions,
        "max_tokens": max_tokens,
        "depth": depth,
        "paper_exact": paper_exact,
        "portals": portals,
        "hub_share": hub_share,
        "nofollow": nofollow,
        "same_language": not any_language,
    }
    crawl = Crawl(
        archives=archives,
        pages=cleaned,
        out=out,
        settings=_settings(given),
        executor=executor_of(workers),
        extractor=options.one_of("--extractor", extractor, ("html5", "paper")),
        quality=options.one_of("--quality", quality, ("fast", "high")),
        tokenizer=tokenizer,
        text_field=text_field,
        rest=rest,
    )
    show(pack_crawl(crawl))
    say(
        f"{out}: documents, spans.parquet, claims.parquet, summary.json; "
        f"{lasted(time.perf_counter() - begun)}"
    )


def show(outcome: "Outcome") -> None:
    """Print what was seen, what became of it, and how documents grew, beside the paper's
    figures.
    """
    from lc_assets.stages.longpack.growing import beside_the_paper

    _balance(outcome.pages, "documents", "pages")
    _balance(outcome.archives, "records", "pages with links known")
    facts(sorted(outcome.archives.extra.items()))
    _balance(outcome.links, "links between pages", "held")
    names = (
        "roots",
        "roots that another one holds",
        "packed documents",
        "tokens of their roots",
        "tokens of children",
    )
    facts([(name, outcome.links.extra.get(name, 0)) for name in names])
    heading("Growth of roots that hold something")
    table(
        ("measure", "here", "the paper, RefinedWeb"),
        [(name, _rounded(ours), theirs) for name, ours, theirs in beside_the_paper(outcome.growth)],
    )
    heading("Lengths in tokens")
    lines = [
        (
            one.name,
            one.n_docs,
            _share(one.share),
            packed.n_docs,
            _share(packed.share),
            both.n_docs,
            _share(both.share),
        )
        for one, packed, both in zip(outcome.before, outcome.after, outcome.together, strict=True)
    ]
    table(
        (
            "tokens",
            "pages",
            "of tokens",
            "packed",
            "of tokens of these",
            "packed, and pages in none",
            "of tokens of all",
        ),
        lines,
    )


def _sorted_out(
    warc: list[Path], pages: list[Path], more: list[Path]
) -> tuple[list[Path], list[Path]]:
    """Archives and files of pages; what was named without an option goes by its name."""
    from lc_assets.formats.corpora.containers import WARC

    archives = [path for path in more if path.name.endswith(WARC)]
    return [*warc, *archives], [*pages, *(path for path in more if path not in archives)]


def _settings(given: dict[str, Any]) -> "LongPackSettings":
    import msgspec

    from lc_assets.build.settings.longpack import LongPackSettings

    try:
        return msgspec.convert(given | {"wanted": True}, LongPackSettings)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"not a way to pack: {error}; --mode is allow or consume, --portals and --nofollow "
            "are drop or keep"
        ) from error


def _balance(counts: "Counts", what: str, kept: str) -> None:
    say(f"{counts.seen:,} {what} = {counts.kept:,} {kept} + {counts.seen - counts.kept:,} not")
    facts(sorted(counts.dropped.items()))


def _rounded(value: float) -> float:
    return round(value, 3)


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"
