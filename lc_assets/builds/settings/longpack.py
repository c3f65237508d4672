"""Settings of the second branch: pages of a crawl, LongPack, packed rows, and reports on lengths
and referrals.

All of it is off by default: a recipe without these sections builds only the chain of whole
documents.
"""

from itertools import pairwise
from typing import Annotated, Literal

from msgspec import Meta

from lc_assets.builds.settings.common import Fraction, Positive, Seed, Settings, Share, Tokens
from lc_assets.errors import BadInput
from lc_assets.text.referrals.referrals import require_edges
from lc_assets.vocabulary import KIBI

KEEP_ORDER = ("bestfit", "concat")
"""Methods of packing that keep a group of documents together and in order."""
NO_SOURCE = "nothing"


class HtmlIndexSettings(Settings):
    """How a snapshot's pages are found in archives: those listed, the WARC files of the partition's
    source, or the crawl's (``LC_CRAWL``).

    Attributes:
        archives: WARC or WAT files with the pages, or folders of them.
        index: ``scan`` reads the archives once; ``cdxj`` and ``columnar`` look pages up in the
            crawl's index.
        links_from: ``warc``, the pages as fetched; or ``wat``, the crawl's own lists of links,
            without any HTML.
    """

    archives: tuple[str, ...] = ()
    index: Literal["scan", "cdxj", "columnar"] = "scan"
    links_from: Literal["warc", "wat"] = "warc"

    def __post_init__(self) -> None:
        if self.archives and self.index != "scan":
            raise BadInput(
                f"html_index.archives with html_index.index = {self.index}: files that are named "
                "are scanned; set index = scan"
            )
        if self.links_from == "wat" and self.index != "scan":
            raise BadInput(
                f"html_index.links_from = wat with html_index.index = {self.index}: an index names "
                "records of pages, not lists of links; set index = scan"
            )


class PageLinkSettings(Settings):
    """How links are read from pages.

    Attributes:
        extractor: ``html5``, as browsers read pages; or ``paper``, exactly the expressions of the
            LongPack paper.
        lists: also write the links of each page as a line of JSON: ``links`` as they are written,
            address and text, or the ``targets`` that they lead to.
    """

    extractor: Literal["html5", "paper"] = "html5"
    lists: Literal["", "links", "targets"] = ""


class LongPackSettings(Settings):
    """How pages are packed along their links.

    Attributes:
        wanted: whether to build LongPack.
        roots: share of a snapshot's documents that are roots, by a keyed hash of the page; 0.005 in
            the paper.
        seed: of that hash; the root with the smaller hash comes first when several link to one
            page.
        mode: ``allow``: a root may be another root's child, as in the paper; ``consume``: a child
            is no longer a root, so each page occurs once.
        repetitions: how many roots may contain the same content; 1 in the paper, which considers 4
            harmless.
        max_tokens: maximum length of a packed document. Children are included whole or not at all;
            the root is never cut.
        depth: 1 packs the pages that the root links to; 2 also the pages that these link to, and so
            on.
        paper_exact: whether to follow the paper's pseudo-code byte for byte: no separators between
            parts.
        portals: whether to skip links to portals (home pages, menus, pages that a whole site links
            to).
        hub_share: a page that more than this share of its host's pages link to is a portal; the
            links of all pages are read for it, whatever the share of roots.
        nofollow: whether to skip links with rel of nofollow, sponsored or ugc.
        anchors: ``any``; or ``in_text``: only links whose anchor text occurs in the page's cleaned
            text.
        redirects: whether links to an address that redirected to a page, by the archives or index
            that was read, lead to the page.
        canonical: whether links to an address that a page of the same host names as its own
            (``rel=canonical``) lead to the page.
        older_snapshots: whether links to an address of which this snapshot has no document lead to
            the newest of the older snapshots' documents, which stays in its own snapshot too.
        same_language: whether a child must have its root's language.
        untitled: if anchor texts are uninformative and the page has no title: ``drop`` the link, or
            use the page's ``first_line``.
        rest: whether to write the documents that are in no packed document as well.
    """

    wanted: bool = False
    roots: Share = 1.0
    seed: Seed = 64
    mode: Literal["allow", "consume"] = "consume"
    repetitions: Annotated[int, Meta(ge=1, le=1000)] = 1
    max_tokens: Tokens = 128 * KIBI
    depth: Annotated[int, Meta(ge=1, le=16)] = 1
    paper_exact: bool = False
    portals: Literal["drop", "keep"] = "drop"
    hub_share: Share = 0.05
    nofollow: Literal["drop", "keep"] = "keep"
    anchors: Literal["any", "in_text"] = "any"
    redirects: bool = True
    canonical: bool = True
    older_snapshots: bool = False
    same_language: bool = True
    untitled: Literal["drop", "first_line"] = "drop"
    rest: bool = False

    def __post_init__(self) -> None:
        if self.older_snapshots and self.mode == "consume":
            raise BadInput(
                "longpack_documents.older_snapshots with mode = consume: a page of an older "
                "snapshot stays there, so it would occur twice; set mode = allow"
            )


PAPER_LINKS = PageLinkSettings(extractor="paper")
PAPER_LONGPACK = LongPackSettings(
    wanted=True,
    roots=0.005,
    mode="allow",
    max_tokens=10**9,
    paper_exact=True,
    portals="keep",
    redirects=False,
    canonical=False,
    same_language=False,
)
"""All that the paper states: how it reads links, which share of pages are roots, that these may be
children too, how parts are joined; no limit of length, and no other rule.
"""


class UpsamplingSettings(Settings):
    """How long documents are upsampled; see `lc_assets.packing.upsampling`.

    Attributes:
        threshold: least length of a long document, in tokens; LongPack's paper took 8,192, Fu et
            al. 4,096.
        keep_short: share of the shorter documents that are kept, by a keyed hash.
        by: column or field of a record that names a document's source, such as ``language`` or
            ``source_domain``: each source keeps its share of the tokens. ``nothing``: all documents
            are of one.
        budget: number of tokens to take, as a multiple of the input's.
    """

    threshold: Tokens = 8 * KIBI
    keep_short: Fraction = 0.1
    by: Annotated[str, Meta(min_length=1)] = "language"
    budget: Annotated[float, Meta(gt=0, le=1000)] = 1.0


class SimilarSettings(Settings):
    """How similar documents are grouped; see `lc_assets.packing.similarity`.

    Attributes:
        neighbours: documents to find for each document.
        path: whether a group follows one path of nearest neighbours, as in in-context pretraining.
        min_similarity: cosine below which a document is no neighbour.
        max_similarity: cosine above which it is a copy, not a neighbour.
    """

    neighbours: Annotated[int, Meta(ge=1, le=1000)] = 3
    path: bool = False
    min_similarity: Fraction = 0.0
    max_similarity: Fraction = 0.95

    def __post_init__(self) -> None:
        if self.min_similarity > self.max_similarity:
            raise BadInput(
                f"packed_rows.similar: min_similarity ({self.min_similarity}) is above "
                f"max_similarity ({self.max_similarity})"
            )


class PackingSettings(Settings):
    """How documents of any length are packed into rows.

    Attributes:
        wanted: whether to build packed rows.
        documents: ``natural``: filtered documents that are not excluded; ``longpack``: packed
            documents; ``both``: packed documents, and the natural ones that none of them contains.
        method: how a row is filled; see docs/packing.md.
        row_tokens: length of a row.
        min_tokens: shorter documents are skipped.
        append_eod: whether every document ends with an end-of-text token.
        segment_tokens: maximum length of the segments of ``segment`` and ``reorder``.
        cut_at: where segments are cut: at ``ends`` of sentences or lines, if one falls in the
            segment's second half; or ``anywhere``.
        upsampling: how often ``upsample`` repeats documents by length before concatenating as
            ``concat`` does; held-out documents are not repeated.
        megatron: what a Megatron document is: ``spans``, a piece; or ``rows``, a whole row
            including padding, which its GPT data set and mixes keep intact if their samples are as
            long (docs/packing.md).
        seed: of the order; `token_grid` has the seed and share of held-out documents, for all rows.
        order_by: numeric record field: documents are packed in its order, instead of that of their
            hashes.
        group_by: record field that names a group, such as a repository: documents of a group are
            packed together, in the order of ``order_by``.
        similar: whether to group similar documents instead, each group at most as long as a row.
        texts: whether to write the texts of the rows too, for reading and measuring.
        equal_steps: rows of a step, of all ranks together, that cost about the same: each so many
            consecutive rows have similar sums of their pieces' squared lengths. 0: any order.
        align_tokens: every piece begins at a multiple of it in its row, with padding before: twice
            the context-parallel size of Megatron. 0: without.
    """

    wanted: bool = False
    documents: Literal["natural", "longpack", "both"] = "natural"
    method: Literal["bestfit", "concat", "segment", "reorder", "upsample"] = "bestfit"
    row_tokens: Tokens = 64 * KIBI
    min_tokens: Tokens = 1
    append_eod: bool = True
    segment_tokens: Tokens = 4 * KIBI
    cut_at: Literal["ends", "anywhere"] = "ends"
    upsampling: UpsamplingSettings = UpsamplingSettings()
    megatron: Literal["spans", "rows"] = "spans"
    seed: Seed = 64
    order_by: str = ""
    group_by: str = ""
    similar: SimilarSettings | None = None
    texts: bool = False
    equal_steps: Annotated[int, Meta(ge=0, le=2**20)] = 0
    align_tokens: Annotated[int, Meta(ge=0, le=2**16)] = 0

    def __post_init__(self) -> None:
        if self.align_tokens and self.row_tokens % self.align_tokens:
            raise BadInput(
                f"packed_rows.align_tokens ({self.align_tokens:,}) must divide row_tokens "
                f"({self.row_tokens:,})"
            )
        if self.align_tokens and self.method in ("segment", "reorder"):
            raise BadInput(
                f"packed_rows.align_tokens: method {self.method} cuts documents anywhere: take "
                "another method"
            )
        if self.equal_steps and self.order_by and not self.group_by:
            raise BadInput(
                "packed_rows.equal_steps puts rows in another order than order_by: leave one out"
            )
        if self.group_by and not self.order_by:
            raise BadInput(
                "packed_rows.group_by needs order_by, the order of a group's documents: give "
                "--order-by with --group-by"
            )
        if self.order_by and (self.similar is not None or self.documents != "natural"):
            raise BadInput(
                "packed_rows.order_by orders documents = natural by a field of their records: "
                "leave out similar, or order_by"
            )
        if (self.order_by or self.similar is not None) and self.method not in KEEP_ORDER:
            raise BadInput(
                f"method {self.method} does not keep the order of documents: with order_by or "
                f"similar take {' or '.join(KEEP_ORDER)}"
            )

    @property
    def fields(self) -> set[str]:
        """Columns, or fields of records, that packing reads of a document."""
        source = self.upsampling.by if self.method == "upsample" else NO_SOURCE
        return {self.order_by, self.group_by, source} - {"", NO_SOURCE} if self.wanted else set()


class LengthBucketSettings(Settings):
    """Documents by their length.

    Attributes:
        wanted: whether they are written.
        edges: tokens at which a bucket ends, ascending.
    """

    wanted: bool = False
    edges: Annotated[tuple[Tokens, ...], Meta(min_length=1)] = tuple(
        KIBI << power for power in range(2, 8)
    )

    def __post_init__(self) -> None:
        if any(low >= high for low, high in pairwise(self.edges)):
            raise BadInput(
                "length_buckets.edges must be ascending numbers of tokens, got "
                f"{', '.join(map(str, self.edges))}"
            )


class LengthReportSettings(Settings):
    """The report of document lengths.

    Attributes:
        wanted: whether to report lengths; implied by a report of referrals.
    """

    wanted: bool = False


class ReferralReportSettings(Settings):
    """The report of referrals.

    Attributes:
        wanted: whether to report referrals.
        buckets: lower ends of the distances, in sentences, after the first, which begins at 1.
        scope: what a concept is the same in: a whole ``text``, or one ``document`` within it, where
            its spans are known.
        sample: number of documents to measure per set and length group, chosen by a keyed hash.
        max_df: words in more than this share of the pieces of natural documents are common and no
            concepts; with 1, no word is common.
        words: file of words that are never part of concepts; by default the package's English list.
        spacy: name or folder of a spaCy pipeline that finds concepts; by default they are found by
            spelling.
    """

    wanted: bool = False
    buckets: tuple[Annotated[int, Meta(gt=1)], ...] = (32, 128, 512)
    scope: Literal["document", "text"] = "text"
    sample: Positive = 200
    max_df: Share = 0.05
    words: str = ""
    spacy: str = ""

    def __post_init__(self) -> None:
        require_edges(self.buckets)
