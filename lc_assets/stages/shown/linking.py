"""What the UI shows of assets between a crawl's pages and LongPack's documents: where pages are,
what they link to, what is packed of them.
"""

from typing import Any

from lc_assets.build import showing
from lc_assets.build.showing import Passages, Plot, Shown, Table
from lc_assets.build.stage import (
    BuildContext,
    Built,
)
from lc_assets.build.tables import FILTERED
from lc_assets.stages.links import html_index as indexing
from lc_assets.stages.links import page_links as linking
from lc_assets.stages.links.link_tables import HTML_INDEX, LINK_CLAIMS, PAGE_LINKS
from lc_assets.stages.longpack import link_claims as claiming
from lc_assets.stages.longpack import longpack_documents as longpack
from lc_assets.stages.longpack.growing import Lengths, beside_the_paper, lengths_of, roots_tried
from lc_assets.stages.shown import origins
from lc_assets.stages.shown.documents import HEAD, TAIL

SHOWN = 10
SHOWN_DOCUMENTS = 4


def html_index(_context: BuildContext, built: Built) -> Shown:
    """Of `html_index`."""
    return Shown(
        columns=HTML_INDEX,
        origins=origins.HTML_INDEX,
        values={
            "records": showing.bars(
                "Records of the crawl that were read",
                indexing.records_by_kind(built.counts),
                unit="records",
            ),
            "pages": Table(indexing.first_lines(built.published.folder, SHOWN)),
        },
    )


def page_links(_context: BuildContext, built: Built) -> Shown:
    """Of `page_links`."""
    return Shown(
        columns=PAGE_LINKS,
        origins=origins.PAGE_LINKS,
        values={
            "fates": showing.bars(
                "Where links lead", linking.links_by_fate(built.counts), unit="links"
            ),
            "most_pointed_at": Table(linking.most_pointed_at(built.published, SHOWN)),
        },
    )


def link_claims(_context: BuildContext, built: Built) -> Shown:
    """Of `link_claims`."""
    return Shown(
        columns=LINK_CLAIMS,
        origins=origins.LINK_CLAIMS,
        values={"first_claims": Table(claiming.first_lines(built.published.folder, SHOWN))},
    )


def longpack_documents(context: BuildContext, built: Built) -> Shown:
    """Of `longpack_documents`."""
    folder = built.published.folder
    snapshot = built.published.receipt.fingerprint.key
    tried = roots_tried(context.lake.partition("link_claims", snapshot).require().receipt.counts)
    lengths = lengths_of(longpack.spans_files(folder), n_roots=tried)
    return Shown(
        columns=FILTERED,
        origins=origins.LONGPACK,
        values={
            "growth": Table(_growth(lengths)),
            "tokens_by_length": _shares(lengths),
            "packed_lengths": showing.histogram(
                "Length of packed documents",
                lengths.packed,
                unit="tokens",
                mark=context.recipe.longpack_documents.max_tokens,
                mark_name="the limit",
            ),
            "examples": Passages(
                [
                    _shown(document, spans)
                    for document, spans in longpack.first_documents(folder, SHOWN_DOCUMENTS)
                ]
            ),
        },
    )


def _growth(lengths: Lengths) -> list[dict[str, Any]]:
    return [
        {"measure": name, "here": ours, "paper": theirs}
        for name, ours, theirs in beside_the_paper(lengths.growth)
    ]


def _shares(lengths: Lengths) -> Plot:
    before, after = (
        {name: 100 * pair[side] for name, pair in lengths.shares.items()} for side in (0, 1)
    )
    return showing.bars(
        "Tokens by length of their document",
        before,
        unit="per cent",
        beside=after,
        names=("pages alone", "packed"),
    )


def _shown(document: dict[str, Any], spans: list[dict[str, Any]]) -> dict[str, Any]:
    text = document["raw_content"]
    return {
        "id": document["id"],
        "parts": len(spans),
        "tokens": sum(span["n_tokens"] for span in spans),
        "first_words": spans[0]["keys"],
        "begins": text[:HEAD],
        "ends": text[-TAIL:],
    }
