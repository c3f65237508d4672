"""A small upstream in RedPajama-V2's layout, made of real text, to try the whole chain on.

Pages come from a folder (`pages`) or are those of the novels that come with the package (`prose`);
`writing` assigns them to shards and writes them; `web` writes the crawl that they would be of.
docs/sample.md describes what is real and what is drawn.
"""
