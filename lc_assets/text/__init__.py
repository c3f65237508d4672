"""Text analysis: signals, rules, duplicates, links, privacy. Pure functions without file access."""
