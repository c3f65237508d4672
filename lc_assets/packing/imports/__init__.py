"""A repository's files in the order in which they build on one another: what is imported comes
before what imports it.

Imports are read off the text, without a parser: comments are taken out, strings are not looked
into, and statements of a known form are what is left. So a file with a syntax error, of another
version of its language, or made up to do harm, costs time in proportion to its length and nothing
else. What cannot be found among the files is another package's, and nothing is done about it.

============================  =====================================================================================
module                        holds
============================  =====================================================================================
``scanned``                   `Import` and `Scanned`: what one file says; which name means which language
``tree``                      the files of a repository by path; a path is a name, and nothing is ever opened by it
``python`` ``c_family``       a language each: what a file imports, and which files that is
``javascript`` ``go``
``rust`` ``java``
``ordering``                  edges, the order, and packs of whole files
============================  =====================================================================================
"""
