"""Columns of the tables between a crawl's pages and LongPack's documents.

A page is identified by its **page key** (`lc_assets.text.links.page_keys`), a document by its id.
There is one table per shard of filtered documents, with the shard's name, except for `LINK_CLAIMS`:
one per snapshot.
"""

import pyarrow as pa

HTML_INDEX = pa.schema(
    [
        ("id", pa.string()),
        ("url", pa.string()),
        ("page_key", pa.string()),
        ("captured_url", pa.string()),
        ("filename", pa.string()),
        ("offset", pa.int64()),
        ("length", pa.int64()),
        ("timestamp", pa.string()),
        ("digest", pa.string()),
    ]
)
"""`html_index`: filtered document → the record of the crawl with its page; ``filename`` is relative
to the crawl's root.
"""

CRAWL_FILES = pa.schema(
    [
        ("path", pa.string()),
        ("kind", pa.string()),
        ("n_bytes", pa.int64()),
        ("identity", pa.string()),
    ]
)
"""`html_index`: the files of the crawl; ``n_bytes`` and ``identity`` are null for those that were
not read.
"""

PAGE_LINKS = pa.schema(
    [
        ("page_key", pa.string()),
        ("id", pa.string()),
        ("position", pa.int32()),
        ("target_key", pa.string()),
        ("target_url", pa.string()),
        ("keys", pa.string()),
        ("n_links", pa.int32()),
        ("nofollow", pa.bool_()),
        ("navigation", pa.bool_()),
        ("generic", pa.bool_()),
        ("in_text", pa.bool_()),
    ]
)
"""`page_links`: one row per page and page that it links to, by first appearance.

``keys`` are the distinct anchor texts in order of appearance, joined by ``", "``; ``n_links`` is
the number of links; ``nofollow``, ``navigation`` and ``generic`` are true if they are for every
link (rel of nofollow, sponsored or ugc; below nav, header, footer, aside or role=navigation;
uninformative anchor texts such as "here"); ``in_text`` if an anchor text occurs in the page's
cleaned text.
"""

LINK_CLAIMS = pa.schema(
    [
        ("root_id", pa.string()),
        ("place", pa.int32()),
        ("depth", pa.int32()),
        ("parent_id", pa.string()),
        ("child_id", pa.string()),
        ("keys", pa.string()),
        ("target_url", pa.string()),
        ("cluster", pa.string()),
        ("n_tokens", pa.int64()),
        ("root_tokens", pa.int64()),
    ]
)
"""`link_claims`: which root gets which page's content; ``place`` numbers a root's children in
output order.

``keys`` are the words above the page: those of `page_links`, or the page's title if these are
uninformative; ``cluster`` identifies the content
(`lc_assets.text.duplicates.keys.text_key`); ``n_tokens`` and ``root_tokens`` are of the texts
alone. Roots are sorted by turn, children by place.
"""

SPANS = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.int32()),
        ("role", pa.string()),
        ("depth", pa.int32()),
        ("child_id", pa.string()),
        ("url", pa.string()),
        ("keys", pa.string()),
        ("cluster", pa.string()),
        ("start", pa.int64()),
        ("stop", pa.int64()),
        ("n_tokens", pa.int64()),
    ]
)
"""`longpack_documents`: the parts of each packed document, in their order; ``start`` and ``stop``
in characters, of the part with its anchor line; ``role`` is ``child`` or ``root``."""
