"""RedPajama-Data-V2 as published: documents, quality signals and duplicates of one shard, and the
listings of shards.

::

    listings/{language}-{snapshot}-{head_middle|tail}.txt  one tag per line: 2023-06/0000/en_head
    documents/{tag}.json.gz                                one record per line
    quality_signals/{tag}.signals.json.gz                  one record per line; head and middle only
    duplicates/{tag}.duplicates.parquet                    head and middle only
    minhash/{tag}.minhash.parquet                          head and middle only

A **document** has no id of its own: it is ``{tag}.json.gz/{line}``, the 0-based line of its
documents file. Fields (UTF-8, not ASCII-escaped): ``url``, ``date_download``, ``digest`` (``sha1:``
and 32 base32 digits, of the whole WET record), ``length`` (characters of ``raw_content``),
``nlines``, ``source_domain``, ``title``, ``raw_content``, ``cc_segment``, ``original_nlines``,
``original_length`` (*bytes*, title included), ``line_ids``, ``language``, ``language_score``,
``perplexity``, ``bucket``.

A **signals** record::

    {"id": "2023-06/0000/en_head.json.gz/0",
     "id_int": 2952…,                     first 8 bytes of SHA-1 of the id, little-endian, unsigned
     "metadata": {"cc_segment", "cc_net_source", "url", "source_domain", "language", "snapshot_id"},
     "quality_signals": {name: [[start, end, score or null], …]}}

A **duplicates** file has three columns of strings: ``shard_id`` (``{tag}.json.gz``), ``doc_id``
(``{shard_id}/{line}``) and ``digest`` (without ``sha1:``). It names every occurrence but the first.

A **minhash** file holds four sets of bands of MinHash signatures
(`lc_assets.formats.redpajama.minhash`).

Pitfalls:

* Signals are joined by the line number inside ``id``, never by position: the program that made them
  skipped lines it could not decode, so everything after such a line is offset.
* Signals and duplicates of single shards are missing upstream, and a few hundred documents files
  are truncated.
* A duplicate is a repeated WET digest, not a repeated text, and one unique document in a hundred is
  listed by mistake (the list comes from a Bloom filter).

One module per kind of file.

Source: ``app/src`` of togethercomputer/RedPajama-Data (commit 6d2cee9), the data set's card, arXiv
2411.12372.
"""
