"""``lc links``: the links of the pages in WARC files, as JSON lines."""

from pathlib import Path
from typing import Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, say, table
from lc_assets.errors import BadInput


def links(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="WARC... OUT",
            help="WARC files, or folders of them; and a folder for the lists.",
        ),
    ],
    extractor: Annotated[
        str,
        typer.Option(
            "--extractor", help="html5, as browsers read pages; or paper, LongPack's expressions."
        ),
    ] = "html5",
    targets: Annotated[
        bool,
        typer.Option(
            "--targets", help="Write the pages that links lead to, each once, not the links."
        ),
    ] = False,
    workers: options.Workers = None,
) -> None:
    """List the links of every page: address and text of each, as they are written.

    Writes NAME.links.jsonl.gz for each archive, a page a line; prints what became of records and
    links, and what most pages of a host point at: its portals.

    Example: lc links crawl/2023-06 links --extractor html5
    """
    from lc_assets.execution.local import executor_of
    from lc_assets.stages.links.link_listing import FIELDS, list_links
    from lc_assets.stages.links.page_linking import LINKS, TARGETS
    from lc_assets.stages.links.page_links import links_by_fate

    *sources, out = places
    if not sources or extractor not in FIELDS:
        wanted = (
            "wanted WARC files and, last, a folder for the lists"
            if not sources
            else f"no extractor {extractor!r}; there are html5, paper"
        )
        raise BadInput(wanted)
    chosen = next(name for name in FIELDS if name == extractor)
    listed = list_links(
        sources, out, executor=executor_of(workers), extractor=chosen, targets=targets
    )
    counts = listed.counts
    say(f"{counts.seen:,} records = {counts.kept:,} pages + {counts.seen - counts.kept:,} others")
    if counts.dropped:
        table(
            ("records that are no page", "records"),
            sorted(counts.dropped.items(), key=lambda item: -item[1]),
        )
    n_links = counts.extra.get(LINKS, 0)
    table(("links", "links"), sorted(links_by_fate(counts).items(), key=lambda item: -item[1]))
    if listed.most:
        columns = (
            "pages that most pages of their host point at",
            "pages",
            "of the host's",
            "by the words",
        )
        table(
            columns,
            [
                (line["page"], line["pages"], f"{line['share']:.0%}", line["keys"][:40])
                for line in listed.most
            ],
        )
    facts(
        [
            ("links", f"{n_links:,}, {n_links / max(counts.kept, 1):,.1f} a page"),
            (
                "targets",
                (
                    f"{counts.extra.get(TARGETS, 0):,}, "
                    f"{counts.extra.get(TARGETS, 0) / max(counts.kept, 1):,.1f} a page"
                ),
            ),
            ("written to", str(out)),
        ]
    )
