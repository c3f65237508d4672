"""The sample: small crawl snapshots of real text in RedPajama-V2's own layout, to try the whole
chain on.

Pages come from a folder (`folder_texts`) or from the documentation that every installation carries
(`prose`); `plan` deals them out, `records` makes them look crawled, `writing` writes them.
docs/sample.md says what is real.
"""
