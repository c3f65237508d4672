"""Plain corpora: files of documents as anybody has them, in whatever container.

=================  ===================================================================================================
container          a document is
=================  ===================================================================================================
JSON lines         a line: an object with its text under ``raw_content``, ``text`` or ``content``, or where one says;
                   plain, ``.gz`` or ``.zst``
Parquet            a row, with the same columns
=================  ===================================================================================================

Here: one kind of document out of all of them, and writing JSON lines. What cannot be read is handed out as `Unread`, in
its place, so that whoever counts can count it. Not here: RedPajama-V2's own files with their joins
(`lc_assets.formats.redpajama`).
"""
