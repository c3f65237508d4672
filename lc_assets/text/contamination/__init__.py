"""Evaluation items in documents: n-grams of loose words, their index, scans, overlaps."""
