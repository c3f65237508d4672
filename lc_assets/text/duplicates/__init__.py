"""What makes documents equal or similar: normalized words, shingles, MinHash, clusters, keys."""
