"""``lc links``: which pages the pages in WARC files link to; and ``lc longpack``: long documents
from hyperlinks, and how much they grew.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from typer import Option

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, lasted, say, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lc_assets.build.stage import Built

SHOWN_PAGES = 10
SHOWN_CHARS = 40


def links(
    sources: options.Sources,
    extractor: Annotated[
        str,
        Option(
            "--extractor", help="html5, as browsers read pages; or paper, LongPack's expressions."
        ),
    ] = "html5",
    lists: Annotated[
        str,
        Option(
            "--json",
            metavar="WHAT",
            help="Also write a line of JSON per page: its links as they are written, or the "
            "targets that they lead to.",
        ),
    ] = "",
    workers: options.Workers = None,
) -> None:
    """Find the pages that every page links to, and with which words.

    OUT is a lake: `page_links` holds the targets of each page. Prints counts of records and links
    by outcome, and the pages that most pages of their own host link to: portals.

    Example: lc links crawl/2023-06 out --json links
    """
    from lc_assets.build.settings.longpack import PageLinkSettings

    settings = {
        "page_links": PageLinkSettings(
            extractor=options.one_of("--extractor", extractor, ("html5", "paper")),
            lists=options.one_of("--json", lists, ("", "links", "targets")),
            all_pages=True,
        )
    }
    built, out = options.built_over_files(
        "links", sources, "page_links", settings, workers=workers, together=True
    )
    _show_links(built)
    say(f"{out}: tables in page_links")


def _show_links(all_built: "Mapping[str, Mapping[str, Built]]") -> None:
    """Print counts of records and links, and the pages that are linked to most."""
    from lc_assets.stages.links.html_index import records_by_kind
    from lc_assets.stages.links.page_linking import LINKS, TARGETS
    from lc_assets.stages.links.page_links import links_by_fate, most_pointed_at

    built = {stage: next(iter(found.values())) for stage, found in all_built.items()}
    index, found = built["html_index"], built["page_links"]
    counts = found.counts
    say(f"{counts.seen:,} pages = {counts.kept:,} read + {counts.seen - counts.kept:,} not")
    for what, numbers in {
        "records": records_by_kind(index.counts),
        "pages not read": counts.dropped,
        "links": links_by_fate(counts),
    }.items():
        table((what, "number"), sorted(numbers.items(), key=lambda item: -item[1]))
    most = most_pointed_at(found.published, index.published, SHOWN_PAGES)
    table(
        ("pages that most pages of their host link to", "pages", "of the host's", "by the words"),
        [
            (line["page"], line["pages"], f"{line['share']:.0%}", line["keys"][:SHOWN_CHARS])
            for line in most
        ],
    )
    facts([(name, counts.extra.get(name, 0)) for name in (LINKS, TARGETS)])


CHOICES: Final = {
    "mode": ("allow", "consume"),
    "portals": ("drop", "keep"),
    "nofollow": ("drop", "keep"),
}


@dataclass(kw_only=True)
class PackingOptions:
    """Settings of `longpack_documents`, under their names there."""

    roots: Annotated[
        float, Option("--roots", help="Share of pages that are roots; the paper took 0.005.")
    ] = 1.0
    seed: Annotated[int, Option("--seed", help="Of the hash that draws and orders roots.")] = 64
    mode: Annotated[
        str,
        Option(
            "--mode",
            help="consume: each page once; allow: a root may be a child too, as in the paper.",
        ),
    ] = "consume"
    repetitions: Annotated[
        int, Option("--repetitions", min=1, help="Roots that may hold the same text.")
    ] = 1
    max_tokens: Annotated[
        int,
        Option(
            "--max-tokens", min=1, help="Of a document; children are taken whole, roots never cut."
        ),
    ] = 131_072
    depth: Annotated[
        int,
        Option("--depth", min=1, max=16, help="Rounds: 2 packs what children link to as well."),
    ] = 1
    paper_exact: Annotated[
        bool,
        Option("--paper-exact", help="Parts as in the paper's pseudo-code, byte for byte."),
    ] = False
    portals: Annotated[
        str,
        Option("--portals", help="drop home pages, menus and hubs; or keep them, as the paper."),
    ] = "drop"
    hub_share: Annotated[
        float,
        Option("--hub-share", help="A page that more of its host's pages link to is a hub."),
    ] = 0.05
    nofollow: Annotated[
        str,
        Option("--nofollow", help="keep or drop links that their authors do not vouch for."),
    ] = "keep"
    rest: Annotated[
        bool,
        Option("--rest", help="Also write the documents that are in no packed one."),
    ] = False


@dataclass(kw_only=True)
class PageOptions:
    """How pages and their links are read."""

    warc: Annotated[
        list[Path] | None,
        Option(
            "--warc",
            help="WARC file, or folder of them, with the pages' HTML; by default the IN's; "
            "repeatable.",
        ),
    ] = None
    any_language: Annotated[
        bool,
        Option("--any-language", help="Children may be in another language than their root."),
    ] = False
    extractor: Annotated[
        str,
        Option(
            "--extractor", help="html5, or paper: its expressions, relative addresses left out."
        ),
    ] = "html5"
    quality: Annotated[
        str, Option("--quality", help="Of texts of the WARC: fast, or high (trafilatura).")
    ] = "fast"
    tokenizer: Annotated[
        str,
        Option("--tokenizer", help="That counts tokens: gpt2, cl100k_base, ..., or a file."),
    ] = "gpt2"


@options.with_options
def longpack(
    sources: options.Sources,
    packing: PackingOptions,
    pages: PageOptions,
    text_field: options.TextField = None,
    workers: options.Workers = None,
) -> None:
    """Pack pages along their links: what a page links to comes before it, each below its anchor
    text, the page itself last.

    OUT is a lake: `longpack_documents` holds the packed documents, with a span for every part, and
    `link_claims` which page is where.

    Example: lc longpack pages.jsonl.gz packed --warc crawl.warc.gz --roots 0.05 --mode allow
    """
    import time

    from lc_assets.build.settings.documents import RemovalSettings
    from lc_assets.build.settings.longpack import (
        HtmlIndexSettings,
        LongPackSettings,
        PackingSettings,
        PageLinkSettings,
    )
    from lc_assets.build.settings.rows import TokenizingSettings
    from lc_assets.stages.file_lakes import replaced

    begun = time.perf_counter()
    given = asdict(packing) | {"same_language": not pages.any_language, "untitled": "first_line"}
    for name, known in CHOICES.items():
        options.one_of(f"--{name}", given[name], known)
    settings = {
        "html_index": HtmlIndexSettings(
            archives=tuple(str(path.resolve()) for path in pages.warc or [])
        ),
        "page_links": PageLinkSettings(
            extractor=options.one_of("--extractor", pages.extractor, ("html5", "paper")),
            all_pages=True,
        ),
        "removed_documents": RemovalSettings(exact=("url",), prefer=("newest",)),
        "longpack_documents": replaced(LongPackSettings(), wanted=True, **given),
        "token_documents": TokenizingSettings(tokenizer=pages.tokenizer),
        "packed_rows": PackingSettings(heldout_fraction=0),
    }
    built, out = options.built_over_files(
        "longpack",
        sources,
        "longpack_documents",
        settings,
        workers=workers,
        text_field=text_field,
        together=True,
        quality=options.one_of("--quality", pages.quality, ("fast", "high")),
    )
    _show(built)
    say(f"{out}: packed documents in longpack_documents; {lasted(time.perf_counter() - begun)}")


def _show(built: "Mapping[str, Mapping[str, Built]]") -> None:
    """Print the counts of inputs and outcomes, and the growth of documents, beside the paper's
    figures.
    """
    from lc_assets.stages.longpack.longpack_documents import spans_files
    from lc_assets.stages.longpack.page_index import beside_the_paper, lengths_of, roots_tried

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
