"""Untrusted Parquet files, checked against limits before Arrow decodes them.

Arrow trusts a file: it allocates a page at the size that the page's header states, copies a string
of a dictionary for every row that names it, lets a list have as many items as a run of levels
states, and follows a schema nested deeper than the stack. `footer` reads the footer, `pages` the
headers of pages, and `opening` opens files that are checked against both.

Source: the ``parquet.thrift`` of apache/parquet-format; Thrift's compact protocol.
"""
