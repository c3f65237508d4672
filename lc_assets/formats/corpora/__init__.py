"""Plain corpora: files of documents as anybody has them, in whatever container.

=====================================  ================================================================================
container, by the end of its name      a document is
=====================================  ================================================================================
``.jsonl`` ``.json`` (``.gz .zst``)    a line: an object with its text under ``raw_content``, ``text`` or ``content``,
                                       or where one says
``.parquet``                           a row, with the same columns
``.wet`` (``.gz``)                     a conversion record: text that Common Crawl took out of a page
``.warc`` (``.gz``)                    a response record that holds HTML; its text is taken out here
``.txt``                               the file, where it is named; a folder's are passed over
=====================================  ================================================================================

Here: one kind of document out of all of them, and writing JSON lines. What cannot be read is handed
    out as `Unread`, in
its place, so that whoever counts can count it; damage to the container is a
`lc_assets.errors.CorruptFile`. Not here: RedPajama-V2's own files with their joins
(`lc_assets.formats.redpajama`).

===============  ======================================================
module           holds
===============  ======================================================
``records``      `CorpusDocument` and `Unread`
``containers``   which names are which kind; bytes out of gzip and zstd
``json_lines``   lines
``parquet``      rows
``crawls``       WET and WARC records
``plain_text``   a text file
``reading``      the door: `corpus_files` and `read_corpus`
``writing``      JSON lines of documents
===============  ======================================================
"""
