"""Stages that find and exclude exact and near duplicates.

*Pairs* (`near_duplicate_pairs`) state which texts are similar, independent of later decisions; more
documents only add pairs. *Decisions* (`removed_documents`) follow from pairs, facts, a threshold
and a preference.
"""
