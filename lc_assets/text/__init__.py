"""Judging documents: signals, rules, duplicates. Pure: values in, values out, no files."""
