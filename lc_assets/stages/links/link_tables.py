"""Columns of the tables between a crawl's pages and LongPack's documents.

A page is identified by its **page key** (`lc_assets.text.links.page_keys`), a document by its id.
There is one table per shard of filtered documents, with the shard's name, except for `LINK_CLAIMS`:
one per snapshot.
"""

import pyarrow as pa

PAGE_DOCUMENTS = pa.schema(
    {
        "shard": "int32",
        "position": "int64",
        "id": "string",
        "url": "string",
        "page_key": "string",
        "surt": "string",
        "archive": "string",
        "digest": "string",
        "date": "string",
    }
)
"""A document whose page is searched: its shard and position, its keys, and what is known of its
capture.
"""

CAPTURES = pa.schema(
    {
        "page_key": "string",
        "captured_url": "string",
        "filename": "string",
        "offset": "int64",
        "length": "int64",
        "timestamp": "string",
        "digest": "string",
        "archive": "string",
        "is_page": "bool",
    }
)
"""A capture that may be of a document's page."""

HTML_INDEX = pa.schema(
    {
        "id": "string",
        "url": "string",
        "page_key": "string",
        "captured_url": "string",
        "filename": "string",
        "offset": "int64",
        "length": "int64",
        "timestamp": "string",
        "digest": "string",
    }
)
"""`html_index`: filtered document → the record of the crawl with its page; ``filename`` is relative
to the crawl's root.
"""

ALIASES = pa.schema(
    {
        "page_key": "string",
        "target_key": "string",
    }
)
"""Other addresses of pages: `html_index` has those that redirect, `page_links` those that pages of
the same host name as their own (``rel=canonical``), once per page.
"""

CRAWL_FILES = pa.schema(
    {
        "path": "string",
        "kind": "string",
        "n_bytes": "int64",
        "identity": "string",
    }
)
"""`html_index`: the files of the crawl; ``n_bytes`` and ``identity`` are null for those that were
not read.
"""

PAGE_LINKS = pa.schema(
    {
        "page_key": "string",
        "id": "string",
        "position": "int32",
        "target_key": "string",
        "target_url": "string",
        "keys": "string",
        "n_links": "int32",
        "nofollow": "bool",
        "navigation": "bool",
        "generic": "bool",
        "in_text": "bool",
    }
)
"""`page_links`: one row per page and page that it links to, by first appearance.

``keys`` are the distinct anchor texts in order of appearance, joined by ``", "``; ``n_links`` is
the number of links; ``nofollow``, ``navigation`` and ``generic`` are true if they are for every
link (rel of nofollow, sponsored or ugc; below nav, header, footer, aside or role=navigation;
uninformative anchor texts such as "here"); ``in_text`` if an anchor text occurs in the page's
cleaned text.
"""

LINK_CLAIMS = pa.schema(
    {
        "root_id": "string",
        "place": "int32",
        "depth": "int32",
        "parent_id": "string",
        "child_id": "string",
        "keys": "string",
        "target_url": "string",
        "cluster": "string",
        "n_tokens": "int64",
        "root_tokens": "int64",
    }
)
"""`link_claims`: which root gets which page's content; ``place`` numbers a root's children in
output order.

``keys`` are the words above the page: those of `page_links`, or the page's title if these are
uninformative; ``cluster`` identifies the content
(`lc_assets.stages.longpack.pages.content_of`); ``n_tokens`` and ``root_tokens`` are of the texts
alone. Roots are sorted by turn, children by place.
"""

SPANS = pa.schema(
    {
        "id": "string",
        "part": "int32",
        "role": "string",
        "depth": "int32",
        "child_id": "string",
        "url": "string",
        "keys": "string",
        "cluster": "string",
        "start": "int64",
        "stop": "int64",
        "n_tokens": "int64",
    }
)
"""`longpack_documents`: the parts of each packed document, in their order; ``start`` and ``stop``
in characters, of the part with its anchor line; ``role`` is ``child`` or ``root``."""
