"""``lc links``: which pages the pages in WARC files link to; ``lc longpack``: long documents from
hyperlinks, and how much they grew; ``lc referrals``: how densely documents refer to earlier
mentions, beside the paper's tables.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Context, Option

from lc_assets.builds.settings.documents import RemovalSettings
from lc_assets.builds.settings.longpack import (
    PAPER_LINKS,
    PAPER_LONGPACK,
    HtmlIndexSettings,
    LongPackSettings,
    PageLinkSettings,
    ReferralReportSettings,
)
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.stage import Built
from lc_assets.builds.tables import read_lines, read_table
from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, lasted, say, show_counts, table
from lc_assets.cli.setting_options import settings_options
from lc_assets.counts import Counts
from lc_assets.formats.tokenizers.named import located, vocabulary_of
from lc_assets.stages.file_lakes import replaced
from lc_assets.stages.links.html_index import records_by_kind
from lc_assets.stages.links.page_linking import LINKS, TARGETS
from lc_assets.stages.links.page_links import links_by_outcome, most_pointed_at
from lc_assets.stages.longpack.longpack_documents import example_of, spans_files
from lc_assets.stages.longpack.page_index import beside_the_paper, lengths_of, roots_tried
from lc_assets.stages.reports.document_sets import NATURAL
from lc_assets.stages.reports.measuring import COMMON_FILE, referral_lines
from lc_assets.stages.reports.referral_report import DENSITIES_FILE, paper_figures, paper_tables
from lc_assets.text.referrals.referrals import bucket_names

SHOWN_PAGES = 10
SHOWN_CHARS = 40


def links(
    corpus: options.Corpus,
    reading: PageLinkSettings = settings_options(PageLinkSettings(), "extractor", lists="--jsonl"),
) -> None:
    """Find the pages that every page links to, and with which words.

    OUT is a lake: `page_links` holds the targets of each page. Prints counts of records and links
    by outcome, and the pages that most pages of their own host link to: portals.

    Example: lc links crawl/2023-06 out --jsonl links
    """
    built = corpus.build("page_links", {"page_links": reading}, together=True)
    _show_links(built.stages)
    say(f"{corpus.out}: tables in page_links")


def _show_links(all_built: "Mapping[str, Mapping[str, Built]]") -> None:
    """Print counts of records and links, and the pages that are linked to most."""
    built = {stage: next(iter(found.values())) for stage, found in all_built.items()}
    index, found = built["html_index"], built["page_links"]
    counts = found.counts
    say(f"{counts.seen:,} pages = {counts.kept:,} read + {counts.seen - counts.kept:,} not")
    for what, numbers in {
        "records": records_by_kind(index.counts),
        "pages not read": counts.dropped,
        "links": links_by_outcome(counts),
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


Preset = Annotated[
    Literal["longpack", "paper"],
    Option(help="paper sets every value that the LongPack paper states; options go before it."),
]


def longpack(
    context: Context,
    corpus: options.Corpus,
    warc: list[Path] | None = None,
    quality: Literal["fast", "high"] = "fast",
    tokenizer: options.Tokenizer = "gpt2",
    preset: Preset = "longpack",
    reading: PageLinkSettings = settings_options(PageLinkSettings(), "extractor"),
    packing: LongPackSettings = settings_options(
        LongPackSettings(wanted=True, untitled="first_line"),
        "roots",
        "seed",
        "mode",
        "repetitions",
        "max_tokens",
        "depth",
        "paper_exact",
        "portals",
        "hub_share",
        "nofollow",
        "anchors",
        "untitled",
        "rest",
        redirects="--redirects/--no-redirects",
        canonical="--canonical/--no-canonical",
        same_language="--same-language/--any-language",
    ),
) -> None:
    """Pack pages along their links: what a page links to comes before it, each below its anchor
    text, the page itself last.

    OUT is a lake: `longpack_documents` holds the packed documents, with a span for every part, and
    `link_claims` which page is where.

    Args:
        warc: WARC file, or folder of them, with the pages' HTML; by default the IN's; repeatable.
        quality: of texts from the WARC: high uses trafilatura.

    Example: lc longpack pages.jsonl.gz packed --warc crawl.warc.gz --roots 0.05 --mode allow
    """
    begun = time.perf_counter()
    if preset == "paper":
        reading, packing = (_with_given(context, one) for one in (PAPER_LINKS, PAPER_LONGPACK))
    settings = {
        "html_index": HtmlIndexSettings(archives=tuple(str(path.resolve()) for path in warc or [])),
        "page_links": reading,
        "removed_documents": RemovalSettings(exact=("url",), prefer=("newest",)),
        "longpack_documents": packing,
        "token_documents": TokenizingSettings(tokenizer=tokenizer),
    }
    output = corpus.build("longpack_documents", settings, together=True, quality=quality)
    _show_packed(output.stages)
    took = lasted(time.perf_counter() - begun)
    say(f"{corpus.out}: packed documents in longpack_documents; {took}")


def _with_given(context: Context, settings: Any) -> Any:
    """Settings with the values of options on the command line."""
    given = {
        name: value
        for name, value in context.params.items()
        if hasattr(settings, name)
        and (source := context.get_parameter_source(name)) is not None
        and source.name == "COMMANDLINE"
    }
    return replaced(settings, **given)


def _show_packed(built: "Mapping[str, Mapping[str, Built]]") -> None:
    """Print the counts of inputs and outcomes, and the growth of documents, beside the paper's
    figures.
    """
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
    growth = lengths.growth
    heading("Growth of roots that hold something")
    table(
        ("measure", "here", "the paper, RefinedWeb"),
        [(name, round(ours, 3), paper) for name, ours, paper in beside_the_paper(growth, claims)],
    )
    heading("A packed document")
    parts = example_of(packed.published.folder)
    table(list(parts[0]) if parts else [], [tuple(part.values()) for part in parts])
    heading("Tokens by length of their document")
    table(
        ("tokens", "of the pages alone", "of packed documents"),
        [
            (name, f"{before:.1%}", f"{after:.1%}")
            for name, (before, after) in lengths.shares.items()
        ],
    )


EVERY = 1 << 62
"""Documents of a sample that is all of them."""

TITLES = {
    "pairs": "Pairs of mentions of one concept, per token (the paper's table 4)",
    "neighbours": "Neighbouring mentions, per token (table 5)",
    "concepts": "Concepts with a pair in the bucket, per document (table 6)",
}


def referrals(
    corpus: options.Corpus,
    buckets: str = "32,128,512",
    settings: ReferralReportSettings = settings_options(
        ReferralReportSettings(wanted=True, sample=EVERY), "scope", "max_df", "words", "spacy"
    ),
    tokens: TokenizingSettings = settings_options(TokenizingSettings(), "tokenizer"),
) -> None:
    """Measure long-distance referrals: pairs of mentions of a concept by the number of sentences
    between them.

    Printed by length groups, beside RefinedWeb's and LongPack's documents in the LongPack paper.
    OUT is a lake: `referral_report` holds a line per document.

    Args:
        buckets: lower ends of the distances in sentences, after the first bucket.

    Example: lc referrals packed out --scope document --max-df 0.05 --workers 2
    """
    settings = replaced(settings, buckets=options.numbers_of("--buckets", buckets))
    tokens = replaced(tokens, tokenizer=located(tokens.tokenizer))
    vocabulary_of(tokens.tokenizer)  # raises before any work is done
    sections = {"referral_report": settings, "token_documents": tokens}
    output = corpus.build("referral_report", sections, together=True)
    (folder,) = output.versions
    _show_referrals(output.counts, folder, settings)
    say(f"{corpus.out}: a line per document in referral_report")


def _show_referrals(counts: Counts, folder: Path, settings: ReferralReportSettings) -> None:

    show_counts(counts, "measured", "that could not be read")
    if settings.scope == "document":
        n_whole = sum(not line["n_parts"] for line in referral_lines(folder, NATURAL))
        facts([("documents without spans", n_whole)])
    if settings.max_df < 1 and not settings.spacy:
        n_common = read_table(folder / COMMON_FILE, ["word"]).num_rows
        say(f"{n_common:,} words in more than {settings.max_df:.0%} of the pieces are not concepts")
    figures: dict[tuple[str, str], list[Any]] = {}
    for line in read_lines(folder / DENSITIES_FILE):
        row = figures.setdefault((line["counted"], line["length_group"]), [line["documents"]])
        row.append(line["figure"])
    columns = ["tokens", "set", "documents", *bucket_names(settings.buckets)]
    for kind, title in TITLES.items():
        heading(title)
        lines: list[list[Any]] = []
        for group, row in [(group, row) for (of, group), row in figures.items() if of == kind]:
            lines.append([group, "here", *row])
            for paper_set in paper_tables()[kind]:
                printed = paper_figures(kind, paper_set, group, settings.buckets)
                if any(printed):
                    lines.append([group, paper_set, None, *printed])
        table(columns, lines)
