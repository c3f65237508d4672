"""Stages that find and remove duplicate documents, exact and near, with evidence for each.

*Pairs* (`near_duplicate_pairs`) state which texts are similar, whatever is decided later; more
documents only add to them. *Decisions* (`removed_documents`) follow from pairs, facts, a threshold
and a preference.
"""
