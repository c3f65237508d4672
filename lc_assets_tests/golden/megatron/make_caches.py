"""Writes ``caches.json`` beside this file: what the real megatron-core writes into its cache; README.md says how it was run.

Each case is a launch in words, and what Megatron's own start makes of these words (the wheel does not hold that part, so it
is written out by hand): config and samples per split. Written down are the names of all files with the SHA-256 of their bytes.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

DATA = {"a": [5, 3, 9, 1, 12, 7] * 20, "b": [40, 8, 21] * 15, "c": [100] * 9}
"""Lengths of the documents of each data set."""

IDENTITY = {"class": "DefaultTokenizerText", "tokenizer_path": "gpt2", "use_fast": "True"}

CASES: list[dict[str, Any]] = [
    {
        "words": "--data-path data/a --split 98,2,0 --seq-length 8 --train-samples 300 --global-batch-size 4 --eval-iters 2",
        "config": {"blend": [["data/a"], None], "split": "98,2,0"},
        "sizes": [300, 8, 8],
    },
    {
        "words": "--data-path 0.3 data/a 0.7 data/b --split 90,5,5 --seq-length 8 --train-iters 50 --global-batch-size 4 --eval-interval 20"
        " --eval-iters 1 --seed 7",
        "config": {
            "blend": [["data/a", "data/b"], [0.3, 0.7]],
            "split": "90,5,5",
            "random_seed": 7,
        },
        "sizes": [200, 12, 4],
    },
    {
        "words": "--data-path 1 data/c --split 1 --seq-length 16 --train-samples 100 --global-batch-size 2 --eval-iters 0",
        "config": {"blend": [["data/c"], [1.0]], "split": "1", "sequence_length": 16},
        "sizes": [100, 0, 0],
    },
    {
        "words": "--data-path data/a data/b data/c --split 80,20,0 --seq-length 8 --train-samples 120 --global-batch-size 4 --eval-iters 1",
        "config": {"blend": [["data/a", "data/b", "data/c"], None], "split": "80,20,0"},
        "sizes": [120, 4, 4],
    },
    {
        "words": "--train-data-path 2 data/a 1 data/b --valid-data-path data/b data/c --test-data-path data/c --seq-length 8"
        " --full-validation --train-samples 150 --global-batch-size 4 --eval-iters 1",
        "config": {
            "blend_per_split": [
                [["data/a", "data/b"], [2.0, 1.0]],
                [["data/b", "data/c"], None],
                [["data/c"], None],
            ],
            "full_validation": True,
        },
        "sizes": [150, None, 4],
    },
    {
        "words": "--train-data-path data/a --valid-data-path data/b data/c data/a --multiple-validation-sets --seq-length 8"
        " --train-samples 50 --global-batch-size 2 --eval-iters 3 --mid-level-dataset-surplus 0.05",
        "config": {
            "blend_per_split": [[["data/a"], None], [["data/b", "data/c", "data/a"], None], None],
            "multiple_validation_sets": True,
            "mid_level_dataset_surplus": 0.05,
        },
        "sizes": [50, 6, 6],
    },
]


def main() -> None:
    """Write the file."""
    import numpy as np
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
    from peer import file_digest, started

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1
        )
        Path("data").mkdir()
        for name, lengths in DATA.items():
            builder = IndexedDatasetBuilder(f"data/{name}.bin", dtype=np.uint16)
            for length in lengths:
                builder.add_document(torch.arange(length), [length])
            builder.finalize(f"data/{name}.idx")
        written = []
        for number, case in enumerate(CASES):
            cache = f"cache{number}"
            config = (
                {"random_seed": 1234, "sequence_length": 8}
                | case["config"]
                | {"path_to_cache": cache}
            )
            started(config, IDENTITY, case["sizes"])
            files = {name: file_digest(cache, name) for name in sorted(os.listdir(cache))}  # noqa: PTH208
            written.append({"words": case["words"], "files": files})
    content = {"identity": IDENTITY, "data": DATA, "cases": written}
    (HERE / "caches.json").write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
