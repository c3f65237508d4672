"""A crawl's archives: pages and lists of links as they were fetched, the indexes that say where
they are, and their places.

==============  ======================================================================================
module          holds
==============  ======================================================================================
``paths``       which files there are, lists of them, and which paths stay inside the crawl
``members``     bytes out of gzip, with the places where members begin
``records``     the records of an archive, each with its place
``bodies``      what a server sent, without chunks and compression
``responses``   HTML out of what a server sent
``pages``       the door to pages: `html_pages` over one archive
``fetching``    the door to single records: `page_at` and `pages_at`, by range requests
``wat``         the crawl's own lists of links
``captures``    what an index says of a page that was fetched
``cdxj``        the sorted index of text lines
``columnar``    the index as Parquet
``writing``     writing archives of pages, with their index
==============  ======================================================================================

Not here: texts as documents (`lc_assets.formats.corpora`), transport and its errors
(`lc_assets.lake.upstream`). docs/formats/archives.md has the formats.
"""
