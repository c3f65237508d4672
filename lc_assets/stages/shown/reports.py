"""What stages of links, LongPack documents and reports show, and the data-set card."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import nan
from pathlib import Path
from typing import Any

from lc_assets.builds.showing import Markdown, Passages, Plot, Shown, Table, inline, plot_of
from lc_assets.builds.stage import BuildContext, Built
from lc_assets.builds.tables import Line, read_lines, read_table
from lc_assets.stages.links import html_index as indexing, page_links as linking
from lc_assets.stages.longpack import link_claims as claiming, longpack_documents as longpack
from lc_assets.stages.longpack.page_index import beside_the_paper, lengths_of, roots_tried
from lc_assets.stages.reports import data_set_card as card
from lc_assets.stages.reports.document_sets import (
    DENSITIES,
    GROWTH,
    LENGTH_SHARES,
    LONGPACK,
    NATURAL,
)
from lc_assets.stages.reports.length_report import GROWTH_FILE, SHARES_FILE
from lc_assets.stages.reports.referral_report import DENSITIES_FILE
from lc_assets.stages.shown.documents import SHOWN_LINES, passage

SHOWN_DOCUMENTS = 4


def _first_lines(paths: Iterable[Path]) -> list[Line]:
    return list(islice((line for path in paths for line in read_lines(path)), SHOWN_LINES))


def html_index(_context: BuildContext, built: Built) -> Shown:
    """Records read, and the first pages."""
    kinds = indexing.records_by_kind(built.counts)
    return Shown(
        values={
            "records": plot_of(
                "bars", "Records of the crawl that were read", kinds, unit="records"
            ),
            "pages": Table(_first_lines(indexing.index_files(built.published.folder))),
        },
    )


def page_links(context: BuildContext, built: Built) -> Shown:
    """Where links lead, and the pages that most pages of their own host link to."""
    snapshot = built.published.key
    index = context.lake.partition("html_index", snapshot).require()
    targets = linking.links_by_outcome(built.counts)
    return Shown(
        values={
            "fates": plot_of("bars", "Where links lead", targets, unit="links"),
            "most_linked": Table(linking.most_pointed_at(built.published, index, SHOWN_LINES)),
        },
    )


def link_claims(_context: BuildContext, built: Built) -> Shown:
    """The first claims."""
    lines = _first_lines([built.published.folder / claiming.TABLE])
    return Shown(values={"first_claims": Table(lines)})


def longpack_documents(context: BuildContext, built: Built) -> Shown:
    """Growth beside the paper's, lengths before and after, and examples."""
    folder = built.published.folder
    snapshot = built.published.key
    claims = context.lake.partition("link_claims", snapshot).require()
    lengths = lengths_of(longpack.spans_files(folder), n_roots=roots_tried(claims.counts))
    growth = [
        {"measure": name, "here": ours, "paper": theirs}
        for name, ours, theirs in beside_the_paper(lengths.growth, claims.counts)
    ]
    before, after = (
        {name: 100 * pair[side] for name, pair in lengths.shares.items()} for side in (0, 1)
    )
    examples = [
        {
            "id": document["id"],
            "parts": len(spans),
            "tokens": sum(span["n_tokens"] for span in spans),
            "first_words": spans[0]["keys"],
        }
        | passage(document)
        for document, spans in longpack.first_documents(folder, SHOWN_DOCUMENTS)
    ]
    return Shown(
        values={
            "growth": Table(growth),
            "tokens_by_length": plot_of(
                "bars",
                "Tokens by length of their document",
                before,
                unit="per cent",
                beside=after,
                names=("pages alone", "packed"),
            ),
            "packed_lengths": plot_of(
                "histogram",
                "Length of packed documents",
                lengths.packed,
                unit="tokens",
                mark=context.recipe.longpack_documents.max_tokens,
                mark_name="the limit",
            ),
            "example": Table(longpack.example_of(folder)),
            "examples": Passages(examples),
        },
    )


def length_report(_context: BuildContext, built: Built) -> Shown:
    """Shares of documents and tokens by length, and growth."""
    folder = built.published.folder
    lines = read_table(folder / SHARES_FILE, LENGTH_SHARES.names).to_pylist()
    shares = {
        f"{line['document_set']}, {line['length_group']}": 100 * line["token_share"]
        for line in lines
    }
    return Shown(
        values={
            "shares": Table(lines),
            "growth": Table(read_table(folder / GROWTH_FILE, GROWTH.names).to_pylist()),
            "where_tokens_are": plot_of(
                "bars",
                "Where the tokens are, by length of documents",
                shares,
                unit="per cent of the set's tokens",
            ),
        },
    )


def referral_report(_context: BuildContext, built: Built) -> Shown:
    """Pairs of mentions by distance and length: a table beside the paper's, and its figure 1."""
    lines = read_table(built.published.folder / DENSITIES_FILE, DENSITIES.names).to_pylist()
    pairs = [line for line in lines if line["counted"] == "pairs"]
    return Shown(values={"densities": Table(pairs), "by_distance": _by_distance(pairs)})


def _by_distance(pairs: Sequence[Mapping[str, Any]]) -> Plot:
    """The paper's figure 1: pairs of natural and of packed documents, by distance and length."""
    own: dict[str, dict[str, float]] = {NATURAL: {}, LONGPACK: {}}
    for distance in list(dict.fromkeys(line["distance"] for line in pairs))[1:]:
        for line in pairs:
            if line["distance"] == distance and line["document_set"] in own:
                name = f"{distance}, {line['length_group']}"
                own[NATURAL].setdefault(name, nan)
                own[line["document_set"]][name] = line["figure"]
    return plot_of(
        "bars",
        "Pairs of mentions by distance and length",
        own[NATURAL],
        unit="pairs per token, by sentences between them and tokens of the document",
        beside=own[LONGPACK] or None,
        names=("natural", "packed along links"),
    )


def data_set_card(_context: BuildContext, built: Built) -> Shown:
    """The card with its plots, and the path of the page."""
    folder = built.published.folder
    text = (folder / card.README).read_text("utf-8").split("\n---\n", 1)[1]
    for name in card.PLOTS:
        text = text.replace(f"({name})", f"({inline((folder / name).read_bytes())})")
    return Shown(values={"card": Markdown(text), "page": (folder / card.PAGE).absolute()})
