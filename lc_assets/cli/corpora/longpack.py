"""``lc longpack``: long documents from hyperlinks, and how much they grew."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, lasted, say, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lc_assets.build.stage import Built


DROP_OR_KEEP: Final = ("drop", "keep")


def longpack(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN... OUT",
            help="Pages: files and folders of documents with their url, or lakes; and a folder for "
            "the lake to write.",
        ),
    ],
    warc: Annotated[
        list[Path] | None,
        typer.Option(
            "--warc",
            help="WARC file, or folder of them, with the pages' HTML; by default the IN's; "
            "repeatable.",
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
        typer.Option("--rest", help="Write the pages that are in no packed document too."),
    ] = False,
    workers: options.Workers = None,
) -> None:
    """Pack pages along their links: what a page points at stands before it, each below its anchor
    text, the page itself last.

    OUT is a lake: `longpack_documents` holds the packed documents, with a span for every part, and
    `link_claims` which page is where.

    Example: lc longpack pages.jsonl.gz packed --warc crawl.warc.gz --roots 0.05 --mode allow
    """
    import time

    from lc_assets.build.settings.documents import FilteringSettings, RemovalSettings
    from lc_assets.build.settings.longpack import (
        HtmlIndexSettings,
        LongPackSettings,
        PackingSettings,
        PageLinkSettings,
    )
    from lc_assets.build.settings.rows import TokenizingSettings
    from lc_assets.execution.local import executor_of
    from lc_assets.formats.lists.rule_files import NO_RULES
    from lc_assets.stages.file_lakes import build_for, context_over_files, replaced

    begun = time.perf_counter()
    *inputs, out = sources
    if not inputs:
        raise BadInput("name what to read and where to write: lc longpack IN... OUT")
    packing = replaced(
        LongPackSettings(),
        wanted=True,
        roots=roots,
        seed=seed,
        mode=options.one_of("--mode", mode, ("allow", "consume")),
        repetitions=repetitions,
        max_tokens=max_tokens,
        depth=depth,
        paper_exact=paper_exact,
        portals=options.one_of("--portals", portals, DROP_OR_KEEP),
        hub_share=hub_share,
        nofollow=options.one_of("--nofollow", nofollow, DROP_OR_KEEP),
        same_language=not any_language,
        untitled="first_line",
        rest=rest,
    )
    settings = {
        "filtered_documents": FilteringSettings(rules=NO_RULES, min_words=1),
        "html_index": HtmlIndexSettings(archives=tuple(str(path.resolve()) for path in warc or [])),
        "page_links": PageLinkSettings(
            extractor=options.one_of("--extractor", extractor, ("html5", "paper")), all_pages=True
        ),
        "removed_documents": RemovalSettings(exact=("url",), prefer=("newest",)),
        "longpack_documents": packing,
        "token_documents": TokenizingSettings(tokenizer=tokenizer),
        "packed_rows": PackingSettings(heldout_fraction=0),
    }
    context = context_over_files(
        inputs,
        out,
        executor=executor_of(workers),
        settings=settings,
        text_field=text_field,
        together=True,
        quality=options.one_of("--quality", quality, ("fast", "high")),
    )
    _show(build_for(context, "longpack_documents"))
    say(f"{out}: packed documents in longpack_documents; {lasted(time.perf_counter() - begun)}")


def _show(built: "Mapping[str, Mapping[str, Built]]") -> None:
    """Print what was seen, what became of it, and how documents grew, beside the paper's
    figures.
    """
    from lc_assets.stages.longpack.growing import beside_the_paper, lengths_of, roots_tried
    from lc_assets.stages.longpack.longpack_documents import spans_files

    found = {stage: next(iter(partitions.values())) for stage, partitions in built.items()}
    for stage, kept in {
        "filtered_documents": "documents",
        "html_index": "documents whose page is in an archive",
        "page_links": "pages whose links are known",
        "link_claims": "links between pages that are packed",
    }.items():
        counts = found[stage].counts
        say(
            f"{stage}: {counts.seen:,} = {counts.kept:,} {kept} + {counts.seen - counts.kept:,} not"
        )
        facts(sorted(counts.dropped.items()))
    claims, packed = found["link_claims"].counts, found["longpack_documents"]
    facts([*sorted(claims.extra.items()), *sorted(packed.counts.extra.items())])
    lengths = lengths_of(spans_files(packed.published.folder), n_roots=roots_tried(claims))
    heading("Growth of roots that hold something")
    table(
        ("measure", "here", "the paper, RefinedWeb"),
        [(name, round(ours, 3), theirs) for name, ours, theirs in beside_the_paper(lengths.growth)],
    )
    heading("Tokens by length of their document")
    table(
        ("tokens", "of the pages alone", "of packed documents"),
        [
            (name, f"{before:.1%}", f"{after:.1%}")
            for name, (before, after) in lengths.shares.items()
        ],
    )
