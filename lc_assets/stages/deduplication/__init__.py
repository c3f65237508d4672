"""Duplicates of any corpus, exact and near, out of core, with evidence for everything that is
removed.

=====================  ===============================================================================================
module                 what it does
=====================  ===============================================================================================
``settings``           what is a duplicate, who stays, how much memory
``asking``             one search: what is read, where it goes
``signing``            how documents are signed when nobody says otherwise
``stored_signatures``  signatures that lie in files already, by id
``queries``            DuckDB within a memory limit and a scratch folder of its own
``index``              where a run's facts and bands lie, and how a later run finds them
``facts``              a pass over a file: keys, date, length and bands of every document
``candidates``         documents that share a band, a slice of a band at a time
``verification``       true Jaccard index of the candidates
``evidence``           candidates and verification in order: the pairs
``deciding``           evidence → who stays, and why; can be done again with another threshold
``running``            all of it in order
=====================  ===============================================================================================

Two things are kept apart. *Evidence* (``index/``, ``pairs.parquet``) says what is alike, whatever
is then thought of it: it depends on texts alone, and a new corpus only adds to it. A *decision*
(``clusters``, ``removed``, ``kept``) follows from evidence, threshold and preference.
"""
