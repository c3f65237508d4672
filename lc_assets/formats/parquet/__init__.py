"""Parquet from outside, held against bounds before Arrow sees it.

Arrow takes what a file states: a page is allocated at the size that its header promises, a string
that stands once in a dictionary is copied for every row that names it, a list may have as many
items as a run of levels says, and a schema may be nested deeper than the stack. Here: the footer
(`footer`), the headers of pages (`pages`), and files that are read through both (`opening`). Not
here: what the columns mean.

Source: the ``parquet.thrift`` of apache/parquet-format; Thrift's compact protocol.
"""
