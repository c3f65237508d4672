"""The loader that LongCrawl64's article gives to its readers, retold: what a user of the published
data runs.

Kept as slow as it is there: every step slices the Zarr array anew, without a cache. The article's
listing lacks the brace that closes the dictionary.

Source: LongCrawl64, "How to use the dataset" (Buckman, 2024).
"""

import numpy as np
import zarr


class ArticleLoader:
    """Steps go down all row blocks of the first context column, then of the second, and so on."""

    def __init__(self, path, docs_per_batch, context_size):
        self.array = zarr.open(path, mode="r")
        self.docs_per_batch, self.context_size = docs_per_batch, context_size
        n_docs, n_tokens = self.array.shape
        self.blocks = n_docs // docs_per_batch
        self.columns = n_tokens // context_size

    def __len__(self):
        return self.blocks * self.columns

    def __getitem__(self, index):
        top = index % self.blocks * self.docs_per_batch
        left = index // self.blocks * self.context_size
        targets = self.array[top : top + self.docs_per_batch, left : left + self.context_size]
        text = np.roll(targets, 1, axis=-1)
        text[..., 0] = 50256
        return {"text": np.array(text), "targets": np.array(targets)}
