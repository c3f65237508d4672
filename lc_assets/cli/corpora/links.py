"""``lc links``: which pages the pages in WARC files link to."""

from typing import Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, say, table

SHOWN_PAGES = 10
SHOWN_CHARS = 40


def links(
    sources: options.Sources,
    extractor: Annotated[
        str,
        typer.Option(
            "--extractor", help="html5, as browsers read pages; or paper, LongPack's expressions."
        ),
    ] = "html5",
    lists: Annotated[
        str,
        typer.Option(
            "--json",
            metavar="WHAT",
            help="Also write a line of JSON per page: its links as they are written, or the "
            "targets that they lead to.",
        ),
    ] = "",
    workers: options.Workers = None,
) -> None:
    """Find the pages that every page links to, and with which words.

    OUT is a lake: `page_links` holds the targets of each page. Prints what became of records and
    links, and the pages that most pages of their own host link to: portals.

    Example: lc links crawl/2023-06 out --json links
    """
    from lc_assets.build.settings.longpack import PageLinkSettings
    from lc_assets.execution.local import executor_of
    from lc_assets.stages.file_lakes import build_for, context_over_files
    from lc_assets.stages.links.html_index import records_by_kind
    from lc_assets.stages.links.page_linking import LINKS, TARGETS
    from lc_assets.stages.links.page_links import links_by_fate, most_pointed_at

    inputs, out = options.inputs_and_out(sources, "links")
    settings = {
        "page_links": PageLinkSettings(
            extractor=options.one_of("--extractor", extractor, ("html5", "paper")),
            lists=options.one_of("--json", lists, ("", "links", "targets")),
            all_pages=True,
        )
    }
    context = context_over_files(
        inputs, out, executor=executor_of(workers), settings=settings, together=True
    )
    built = {
        stage: next(iter(found.values()))
        for stage, found in build_for(context, "page_links").items()
    }
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
    say(f"{out}: tables in page_links")
