"""What the columns of tables hold, in words for people: the Dagster UI shows them beside each
column.

One sentence per name; a name that two tables use for different things says both. Types and nulls:
docs/formats/tables.md.
"""

from typing import Final

MEANINGS: Final = {
    "id": "snapshot/shard/file/line of the document, as in RedPajama-V2",
    "url": "address of the page",
    "digest": "of the page, as crawled: sha1 in base32",
    "source_domain": "host of the page",
    "cc_segment": "the crawl's file that holds the page",
    "language": "as CCNet found it",
    "bucket": "of perplexity: head or middle",
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
    "identity": "what changes when the file does: a digest or a server's tag",
    "document": "number of the document in its shard's .bin and .idx",
    "n_tokens": "tokens of the document, as many as were kept",
    "n_chars": "characters of the text",
    "split": "train or heldout",
    "row": "row of the split's array",
    "stretch": "which stretch of the document the row is, counted from 0, each as long as a row",
    "shift": "how far the row is rolled to the right, as numpy.roll does",
    "priority": "keyed hash of the id, and of the stretch from the second on; rows are sorted by it",
    "rule": "name of a rule",
    "bound": "at_least or at_most",
    "threshold": "what the bound would be",
    "in_force": "whether it is the bound that documents were judged by",
    "kept_alone": "documents that this bound alone would keep",
    "kept_with_the_others": "documents that it would keep while everything else stays in force",
    "token_shard": "which .bin the row was cut from",
    "root_id": "document that stands last in a packed one, which bears its id",
    "place": "number of the child among its root's, in the order they are written",
    "depth": "links between root and child; 0 for the root",
    "parent_id": "document that points at the child: the root, or a child of the round before",
    "child_id": "document whose text stands in a packed one; of the root's part, the root itself",
    "keys": (
        "anchor texts that lead to the child, or its title where they say nothing: the line "
        "above its text"
    ),
    "target_url": "address of the link, as resolved",
    "cluster": "names the words of a text; pages of one cluster hold the same",
    "root_tokens": "tokens of the root's text alone",
    "role": "child or root",
    "start": (
        "first character: of the part, with its anchor line; of an item's longest find, of that"
    ),
    "stop": "the character behind the part and the blank line after it",
    "piece": "number of the piece within its row, from 0",
    "document_start": "first token of the piece, counted in its document",
    "document_stop": (
        "the token behind its last, counted in its document; n_tokens + 1 where end "
        "of text is the last"
    ),
    "row_start": "where in its row the piece begins, in tokens",
    "row_stop": "where in its row it ends",
    "length_group": "which group of lengths in tokens, such as 4K-8K",
    "document_set": (
        "natural, longpack or packed; packed documents are pieces of rows, in referrals whole rows"
    ),
    "lower": "tokens that the group of lengths begins at",
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
    "n_packed": "roots that hold something",
    "hit_rate": "their share",
    "mean_of_ratios": "mean over packed documents of their tokens by their root's",
    "ratio_of_sums": "tokens of packed documents by tokens of their roots",
    "median_ratio": "median over packed documents of their tokens by their root's",
    "counted": "pairs, neighbours or concepts",
    "distance": "same sentence, or sentences between such as 32-128",
    "figure": "mean over documents: per token; of concepts per document",
    "paper": "what the LongPack paper prints there",
    "word": "in lower case",
    "n_pieces": "pieces of 4,000 characters that hold it",
    "n_documents": "documents that hold it",
    "n_parts": "parts of the document that concepts are told apart by; 0 for none",
    "n_sentences": "sentences with a word",
    "n_concepts": "concepts that are mentioned",
    "n_mentions": "mentions of all concepts",
    "pairs": "pairs of mentions of one concept: within one sentence, then by bucket",
    "neighbours": "of these, pairs without a third mention between",
    "concepts": "concepts with a pair within one sentence, then with one in each bucket",
    "page_key": "name of the page, however it is linked to",
    "captured_url": "address of the page, as the crawler fetched it",
    "filename": "the crawl's archive that holds the page, relative to the crawl's root",
    "offset": "byte of the archive where the page's record begins",
    "length": "bytes of the archive that the page's record takes",
    "timestamp": "when the page was fetched: year to second, UTC",
    "kind": (
        "of an archive: warc, wat, cdxj or columnar; of an entry: document, url, domain or digest"
    ),
    "text_digest": "of the text's UTF-8: sha256 in hexadecimal digits",
    "how": "listed, same digest or near duplicate",
    "for_id": "the document that this one is withdrawn or removed for",
    "similarity": "Jaccard index of the two texts' 13-grams",
    "entry": "number of the entry that says so, counted from 0 over all lists",
    "reason": "why",
    "date": "of the entry",
    "end": "the character behind the find",
    "shard_id": "file of RedPajama-V2 that holds the document",
    "id_int": "first eight bytes of the SHA-1 of the id, as a number",
    "signature_sim1.0": (
        "one band of 128 numbers, all that there is; null of a text of fewer than 13 words"
    ),
    "signature_sim0.9": "5 bands of 25 numbers: texts that are 90% alike share one of them",
    "signature_sim0.8": "9 bands of 13 numbers: texts that are 80% alike share one of them",
    "signature_sim0.7": "14 bands of 9 numbers: texts that are 70% alike share one of them",
    "a": "one document of the pair",
    "b": "the other one",
    "bands": "which bands of their signatures are the same, a bit each",
    "item": "number of the evaluation item",
    "item_id": "file and name of the evaluation item",
    "grams": "different n-grams of the item that stand in the document",
    "item_grams": "n-grams of the item",
    "coverage": "share of the item's n-grams that stand in the document",
    "longest_words": "words of the item's longest stretch that is covered without a gap",
    "condemned": "whether this item alone is enough to take the document out",
    "value": "of an entry: what it names; of a dropped document: what was judged",
    "kept_id": "the document that was kept instead",
    "why": "what decided between them, in words",
    "position": "number of the target among the page's, by first appearance",
    "target_key": "name of the page that is pointed at",
    "n_links": "links from the page to it",
    "nofollow": "whether its author vouches for none of them (rel of nofollow, sponsored or ugc)",
    "navigation": "whether all of them stand in menus, headers or footers",
    "generic": "whether all their anchor texts say nothing, such as 'here'",
    "in_text": "whether an anchor text stands in the page's cleaned text",
}
"""Column → what it holds."""

JUDGED: Final = "as judged by a rule"


def meaning(column: str) -> str:
    """What a column holds; a column that is no name of ours is what a rule judged."""
    return MEANINGS.get(column, JUDGED)
