"""Parquet files from outside, checked against limits before Arrow decodes them.

Arrow trusts a file: it allocates a page at the size that the page's header states, copies a string
of a dictionary for every row that names it, lets a list have as many items as a run of levels
states, and follows a schema nested deeper than the stack. Here: the footer (`footer`), the headers
of pages (`pages`), and opening files that are checked against both (`opening`). Not here: what the
columns mean.

Source: the ``parquet.thrift`` of apache/parquet-format; Thrift's compact protocol.
"""
