"""The tables between a crawl's pages and LongPack's documents: their columns and what these hold.

A page is named by its **page key** (`lc_assets.text.page_keys`), a document by its id. One table
per shard of filtered documents, named like it, but for `LINK_CLAIMS`, which is one per snapshot.
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
"""`html_index`: filtered document → the record of the crawl that holds its page; ``filename`` is
relative to the crawl's root.
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
"""`page_links`: one line per page and page that it points at, by first appearance.

``keys`` are the different anchor texts in order of appearance, joined by ``", "``; ``n_links`` how
many links there are; ``nofollow``, ``navigation`` and ``generic`` hold when they do of every one of
them (rel of nofollow, sponsored or ugc; below nav, header, footer, aside or role=navigation; anchor
texts such as "here" only); ``in_text`` when an anchor text stands in the page's cleaned text.
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
"""`link_claims`: which root holds which page's content; ``place`` counts a root's children in the
order they are written.

``keys`` are the words above the page: those of `page_links`, or the page's title where these say
nothing; ``cluster`` names the content (`lc_assets.text.duplicate_keys.text_key`); ``n_tokens`` and
``root_tokens`` are of the texts alone. Roots come in the order of their turns, children by place.
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
"""`longpack_documents`: the parts of each packed document, in their order; ``start`` and ``stop`` in
characters, of the part with its anchor line; ``role`` is ``child`` or ``root``."""
