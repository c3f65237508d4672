"""A crawl's archives: pages and lists of links as they were fetched, and the indexes that locate
them.

==============  ====================================================================================
module          contents
==============  ====================================================================================
``paths``       which files there are, lists of them, which paths stay inside the crawl; the index
                as Parquet
``members``     bytes out of gzip, and where its members begin
``records``     the records of an archive, each with its place
``responses``   HTML out of what a server sent, without chunks and compression
``fetching``    the page in a record, and single records by range requests: `pages_at`
``wat``         the crawl's own lists of links
``captures``    facts about a page that was fetched, and the sorted index of text lines (CDXJ)
``writing``     writing archives of pages, with their index
==============  ====================================================================================

docs/formats/archives.md describes the formats.
"""
