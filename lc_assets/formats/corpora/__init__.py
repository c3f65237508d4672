"""Plain corpora: files of documents in any common container.

=====================================  =============================================================
container, by the end of its name      a document is
=====================================  =============================================================
``.jsonl`` ``.json`` (``.gz .zst``)    a line: an object with its text under ``raw_content``,
                                       ``text`` or ``content``, or a field that the caller names
``.parquet``                           a row, with the same columns
``.wet`` (``.gz``)                     a conversion record: text that Common Crawl took out of a
                                       page
``.warc`` (``.gz``)                    a response record with HTML; its text is extracted here
``.txt``                               the file, where it is named; those in a folder are skipped
=====================================  =============================================================

A document that cannot be read is an `Unread` in its place, so that the caller can count it; damage
to the container is a `lc_assets.errors.CorruptFile`. `lc_assets.formats.redpajama` reads
RedPajama-V2's own files.

===============  ===================================================================================
module           contents
===============  ===================================================================================
``batches``      documents by columns
``containers``   `CorpusDocument` and `Unread`; which names are which kind; bytes out of gzip and
                 zstd; writing JSON lines
``parquet``      rows
``crawls``       WET and WARC records
``json_lines``   records
``reading``      `corpus_files` and `read_corpus`, for all of them
===============  ===================================================================================
"""
