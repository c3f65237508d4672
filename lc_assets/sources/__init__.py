"""Sources: where documents come from. A source has partitions, and a partition shards with files.

================  ============================================================================
module            content
================  ============================================================================
``settings``      a source as a recipe names it, and the source of a partition
``redpajama_v2``  RedPajama-V2 as published: listings, and four files per shard
``files``         JSON lines, Parquet, text, WET and WARC files, in a folder, on a server, in
                  a bucket
``opening``       opens a recipe's sources, and lists their partitions
================  ============================================================================

**Partition keys** of RedPajama-V2 are its snapshots, such as ``2023-06``. Those of files are the
names of the folders, the matches of the pattern's group ``snapshot``, or the source's name for a
single partition; characters other than letters, digits, ``-`` and ``_`` become ``-``. When a recipe
names several sources, keys of files begin with the source's name and ``-``, so the part before the
first ``-`` is the source: ``fineweb-CC-MAIN-2024-10``.

**Shards** of files are one file each, named after its path within the partition without the suffix
of its kind; a digest of the path is appended where two files would have the same name.
"""
