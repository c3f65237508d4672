"""The columns of published tables: what each contains, and from which columns it was made.

A description is one phrase per name; a name that two tables use for different things has both.
Types and nulls: docs/formats/tables.md.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from lc_assets.build.tables import IDENTITY

WHO: Final = tuple(name for name, _ in IDENTITY)
TEXT: Final = "filtered_documents.raw_content"
EITHER_TEXT: Final = f"{TEXT} longpack_documents.raw_content"
SIZES: Final = ("n_tokens", "n_chars", "n_bytes")


def carried(names: Iterable[str], *stages: str) -> dict[str, str]:
    """Columns that are columns of the same names of other stages."""
    return {name: " ".join(f"{stage}.{name}" for stage in stages) for name in names}


ORIGINS: Final[Mapping[str, Mapping[str, str]]] = {
    "filtered_documents": dict.fromkeys(
        (*WHO, "date_download", "title", "raw_content"), "raw_snapshot.path"
    ),
    "document_signatures": {"id": "filtered_documents.id"}
    | dict.fromkeys((f"signature_sim{similarity}" for similarity in (1.0, 0.9, 0.8, 0.7)), TEXT),
    "contaminated_documents": {"id": "filtered_documents.id", "coverage": TEXT},
    "signature_index": carried(("id", "digest", "date_download"), "filtered_documents"),
    "near_duplicate_pairs": {
        "a": "filtered_documents.id",
        "b": "filtered_documents.id",
        "bands": "signature_index.id",
        "similarity": TEXT,
    },
    "clean_documents": carried((*WHO, "date_download"), "filtered_documents") | {"n_chars": TEXT},
    "document_keys": carried(WHO, "filtered_documents") | {"text_digest": TEXT},
    "withdrawn_documents": {
        "id": " ".join(f"document_keys.{name}" for name in ("id", "url", "digest", "text_digest")),
        "for_id": "near_duplicate_pairs.a near_duplicate_pairs.b",
        "similarity": "near_duplicate_pairs.similarity",
    },
    "snapshot_withdrawals": carried(("id", "how", "for_id", "similarity"), "withdrawn_documents"),
    "removed_documents": {
        "id": "near_duplicate_pairs.b contaminated_documents.id snapshot_withdrawals.id",
        "for_id": "near_duplicate_pairs.a contaminated_documents.item snapshot_withdrawals.for_id",
        "similarity": "near_duplicate_pairs.similarity snapshot_withdrawals.similarity",
    },
    "token_documents": carried(WHO, "filtered_documents") | dict.fromkeys(SIZES, TEXT),
    "token_grid": carried((*WHO, "n_tokens", "document"), "token_documents")
    | {"split": "token_documents.digest"}
    | dict.fromkeys(("priority", "shift"), "token_documents.id"),
    "row_lineage": carried(
        ("split", "row", "id", "url", "digest", "cc_segment", "stretch", "shift", "n_tokens"),
        "token_grid",
    ),
    "html_index": carried(("id", "url"), "filtered_documents")
    | {"page_key": "filtered_documents.url"},
    "page_links": carried(("id", "page_key"), "html_index")
    | dict.fromkeys(
        ("target_key", "target_url", "keys", "n_links", "nofollow", "navigation", "generic"),
        "html_index.filename",
    ),
    "link_claims": carried(("keys", "target_url"), "page_links")
    | dict.fromkeys(("root_id", "parent_id"), "page_links.id")
    | {"child_id": "page_links.target_key"}
    | dict.fromkeys(("cluster", "n_tokens", "root_tokens"), TEXT),
    "longpack_documents": carried((*WHO, "date_download", "title"), "filtered_documents")
    | {"raw_content": f"{TEXT} link_claims.root_id link_claims.child_id link_claims.keys"},
    "packing_tokens": carried(WHO, "filtered_documents", "longpack_documents")
    | dict.fromkeys(SIZES, EITHER_TEXT),
    "packed_rows": carried(("id", "url", "digest", "n_tokens", "document"), "packing_tokens"),
    "length_report": dict.fromkeys(
        ("documents", "tokens", "document_share", "token_share"),
        f"{EITHER_TEXT} packed_rows.row_stop",
    ),
    "referral_report": carried(("document_set", "length_group"), "length_report")
    | {"figure": f"{EITHER_TEXT} packed_rows.row_stop"},
}
"""Stage → column of its table → columns that it was made from, as ``stage.column``, separated by
spaces.
"""

MEANINGS: Final = {
    "id": "snapshot/shard/file/line of the document, as in RedPajama-V2",
    "url": "address of the page",
    "digest": "of the page, as crawled: SHA-1 in base32",
    "source_domain": "host of the page",
    "cc_segment": "file of the crawl that contains the page",
    "language": "as CCNet identified it",
    "bucket": "perplexity class: head or middle",
    "date_download": "when the page was crawled",
    "title": "first line of the page; not part of the text",
    "raw_content": "the text",
    "shard": "snapshot/shard/language_bucket",
    "part": (
        "of a manifest: documents, signals, duplicates or minhash; of a packed document: "
        "number of the part, from 0"
    ),
    "path": "relative to the upstream's root",
    "n_bytes": "size in bytes; of a document, of its UTF-8",
    "identity": "changes when the file does: a digest or a server's tag",
    "document": "number of the document in its shard's .bin and .idx",
    "n_tokens": "tokens of the document that were kept",
    "n_chars": "characters of the text",
    "split": "train or heldout",
    "row": "row of the split's array",
    "stretch": "which part of the document the row is, from 0; each is as long as a row",
    "shift": "how far the row is rotated to the right, as by numpy.roll",
    "priority": "keyed hash of the id (and the stretch, from the second on); rows are sorted by it",
    "rule": "name of a rule",
    "bound": "at_least or at_most",
    "threshold": "what the bound would be",
    "in_force": "whether it is the bound that was applied",
    "kept_alone": "documents that this bound alone would keep",
    "kept_with_the_others": "documents that it would keep with all other bounds applied",
    "token_shard": "the .bin that the row is from",
    "root_id": "document at the end of a packed one, which has its id",
    "place": "number of the child among its root's, in the order they are written",
    "depth": "links between root and child; 0 for the root",
    "parent_id": "document that links to the child: the root, or a child one level above",
    "child_id": "document whose text is in a packed one; for the root's part, the root itself",
    "keys": (
        "anchor texts of the links to the child, or its title if they are generic: the line "
        "above its text"
    ),
    "target_url": "address of the link, as resolved",
    "cluster": "identifies the words of a text; pages of one cluster have the same",
    "root_tokens": "tokens of the root's text alone",
    "role": "child or root",
    "start": ("first character: of the part with its anchor line, or of an item's longest match"),
    "stop": "end of the part with the blank line after it, exclusive",
    "piece": "number of the piece within its row, from 0",
    "document_start": "first token of the piece, counted in its document",
    "document_stop": (
        "end of the piece in its document, exclusive; n_tokens + 1 where end of text is included"
    ),
    "row_start": "where the piece begins in its row, in tokens",
    "row_stop": "where it ends in its row, exclusive",
    "length_group": "group of lengths in tokens, such as 4K-8K",
    "document_set": (
        "natural, longpack or packed; packed documents are pieces of rows, in referrals whole rows"
    ),
    "lower": "least tokens of the group",
    "documents": "how many documents",
    "tokens": "of all of them",
    "document_share": (
        "of the set's documents; of evaluation items, the share of the document's "
        "words that they cover"
    ),
    "token_share": "of the set's tokens",
    "documents_from": "documents as long as that group or longer",
    "document_share_from": "their share of the set's documents",
    "token_share_from": "their share of the set's tokens",
    "n_roots": "pages that were tried as roots",
    "n_packed": "roots with at least one child",
    "hit_rate": "their share",
    "mean_of_ratios": "mean over packed documents of their tokens by their root's",
    "ratio_of_sums": "tokens of packed documents by tokens of their roots",
    "median_ratio": "median over packed documents of their tokens by their root's",
    "counted": "pairs, neighbours or concepts",
    "distance": "same sentence, or sentences between such as 32-128",
    "figure": "mean over documents: per token; of concepts per document",
    "paper": "the figure in the LongPack paper",
    "word": "in lower case",
    "n_pieces": "pieces of 4,000 characters that contain it",
    "n_documents": "documents that contain it",
    "n_parts": "parts of the document between which concepts are distinguished; 0 for none",
    "n_sentences": "sentences with a word",
    "n_concepts": "concepts that are mentioned",
    "n_mentions": "mentions of all concepts",
    "pairs": "pairs of mentions of one concept: within one sentence, then by bucket",
    "neighbours": "of these, pairs without a third mention between",
    "concepts": "concepts with a pair within one sentence, then with one in each bucket",
    "page_key": "name of the page, the same for all ways to write its address",
    "captured_url": "address of the page, as the crawler fetched it",
    "filename": "archive of the crawl that contains the page, relative to the crawl's root",
    "offset": "byte of the archive where the page's record begins",
    "length": "bytes of the archive that the page's record takes",
    "timestamp": "when the page was fetched: year to second, UTC",
    "kind": (
        "of an archive: warc, wat, cdxj or columnar; of an entry: document, url, domain or digest"
    ),
    "text_digest": "SHA-256 of the text's UTF-8, hexadecimal",
    "how": "listed, same digest or near duplicate",
    "for_id": "the document that this one is withdrawn or removed for",
    "similarity": "Jaccard index of the two texts' 13-grams",
    "entry": "number of the entry that withdraws it, from 0 over all lists",
    "reason": "why it is withdrawn or removed",
    "date": "of the entry",
    "end": "end of the match, exclusive",
    "shard_id": "file of RedPajama-V2 that contains the document",
    "id_int": "first eight bytes of the SHA-1 of the id, as a number",
    "signature_sim1.0": ("one band of all 128 numbers; null for a text of fewer than 13 words"),
    "signature_sim0.9": "5 bands of 25 numbers; texts of similarity 0.9 share at least one",
    "signature_sim0.8": "9 bands of 13 numbers; texts of similarity 0.8 share at least one",
    "signature_sim0.7": "14 bands of 9 numbers; texts of similarity 0.7 share at least one",
    "a": "one document of the pair",
    "b": "the other one",
    "bands": "bands of their signatures that are equal, a bit each",
    "item": "number of the evaluation item",
    "item_id": "file and name of the evaluation item",
    "grams": "different n-grams of the item in the document",
    "item_grams": "n-grams of the item",
    "coverage": "share of the item's n-grams in the document",
    "longest_words": "words of the item's longest part that is covered without a gap",
    "condemned": "whether this item alone excludes the document",
    "value": "of an entry: what it names; of a dropped document: what the rule measured",
    "kept_id": "the document that was kept instead",
    "why": "why that document is kept",
    "position": "number of the target among the page's, by first appearance",
    "target_key": "name of the page that is linked to",
    "n_links": "links from the page to it",
    "nofollow": "whether all of them have rel nofollow, sponsored or ugc",
    "navigation": "whether all of them are in menus, headers or footers",
    "generic": "whether all their anchor texts are generic, such as 'here'",
    "in_text": "whether an anchor text occurs in the page's cleaned text",
}
"""Column → its description."""

JUDGED: Final = "as measured by a rule"


def meaning(column: str) -> str:
    """The description of a column; one without is what a rule measured."""
    return MEANINGS.get(column, JUDGED)
