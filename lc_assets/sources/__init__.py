"""Sources: where documents come from. A source gives partitions, and per partition shards with
their files.

=================  ===============================================================================
module             holds
=================  ===============================================================================
``settings``       a source as a recipe names it, and which source a partition belongs to
``redpajama_v2``   RedPajama-V2 as published: listings, and four files a shard
``files``          JSON lines, Parquet, text, WET and WARC files, in a folder, on a server, in a bucket
``opening``        a recipe's sources, opened; the partitions they have
=================  ===============================================================================

**Partition keys.** RedPajama-V2's are its snapshots, such as ``2023-06``. Those of a source of
files are the names of its folders, what its pattern's group ``snapshot`` matched, or the source's
own name when it is one partition; characters other than letters, digits, ``-`` and ``_`` become
``-``. When a recipe names more than one source, keys of a source of files begin with its name and
``-``, so that no two sources share one: ``fineweb-CC-MAIN-2024-10``. The part of a key before its
first ``-`` therefore tells the source.

**Shards.** A shard of a source of files is one file. Its name is its path within the partition,
without the ending that tells the kind; a digest of the path follows where two files would have the
same name.
"""
