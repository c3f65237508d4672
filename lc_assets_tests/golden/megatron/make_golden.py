"""Writes the golden files beside this one with the real megatron-core; README.md says how it was
run.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

DOCUMENTS = [[12, 5, 7], [4, 21, 65_499, 0, 1], [3]]
"""Three documents of three, five and one token."""

GPT_CASES: list[dict[str, Any]] = [
    {"name": "one epoch", "lengths": [5, 3, 9, 1, 12, 7], "sequence_length": 4},
    {
        "name": "one epoch, as many as fit",
        "lengths": [5, 3, 9, 1, 12, 7],
        "sequence_length": 4,
        "n_samples": 9,
    },
    {
        "name": "three epochs, last one whole",
        "lengths": [5, 3, 9, 1, 12, 7],
        "sequence_length": 4,
        "n_samples": 27,
    },
    {
        "name": "three epochs, last one apart",
        "lengths": [5, 3, 9, 1, 12, 7],
        "sequence_length": 4,
        "n_samples": 20,
    },
    {
        "name": "many epochs of little text",
        "lengths": [3, 2],
        "sequence_length": 7,
        "n_samples": 11,
    },
    {
        "name": "empty documents",
        "lengths": [0, 5, 0, 0, 8, 0, 2],
        "sequence_length": 3,
        "n_samples": 6,
    },
    {
        "name": "documents of a split",
        "lengths": [5, 3, 9, 1, 12, 7],
        "sequence_length": 4,
        "n_samples": 8,
        "documents": [1, 2, 3],
    },
    {"name": "too little text for a sample", "lengths": [2, 1], "sequence_length": 4},
    {
        "name": "rows of equal length",
        "lengths": [64] * 12,
        "sequence_length": 16,
        "n_samples": 70,
        "seed": 7,
    },
]

BLENDS: list[dict[str, Any]] = [
    {"weights": [0.6, 0.4], "size": 200},
    {"weights": [0.3, 0.2, 0.5], "size": 120},
    {"weights": [1.0] * 10, "size": 150},
    {"weights": [7, 1, 0.001], "size": 90},
    {"weights": [3], "size": 5},
    {"weights": [0.1, 0.7, 0.2, 0.15], "size": 0},
]
EXHAUSTIVE = [[2, 1], [5, 5, 5], [1, 30, 7], [40], [3, 1, 4, 1, 5, 9, 2, 6]]
SIZES: list[dict[str, Any]] = [
    {"weights": [0.5, 0.25, 0.25], "n_samples": 10, "surplus": 0.005},
    {"weights": [0.1] * 3, "n_samples": 1_000, "surplus": 0.005},
    {"weights": [7, 1, 0.001], "n_samples": 12_345, "surplus": 0.05},
]


def main() -> None:
    """Write all of them."""
    write_data_sets()
    _write_json("gpt_index.json", [case | gpt_index(case) for case in GPT_CASES])
    _write_json("blends.json", [case | blend(case) for case in BLENDS])
    _write_json("exhaustive.json", [{"sizes": sizes} | exhaustive(sizes) for sizes in EXHAUSTIVE])
    _write_json("sizes.json", [case | sizes(case) for case in SIZES])


def write_data_sets() -> None:
    """uint16 and int32 one sequence per document, an empty document, and documents of several
    sequences.
    """
    import numpy as np
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    def written(name: str, dtype: type, documents: list[tuple[list[int], list[int]]]) -> None:
        builder = IndexedDatasetBuilder(str(HERE / f"{name}.bin"), dtype=dtype)
        for ids, lengths in documents:
            builder.add_document(torch.tensor(ids, dtype=torch.int64), lengths)
        builder.finalize(str(HERE / f"{name}.idx"))

    whole = [(ids, [len(ids)]) for ids in DOCUMENTS]
    written("uint16", np.uint16, whole)
    written("int32", np.int32, whole)
    written("empty_document", np.uint16, [whole[0], ([], []), whole[1]])
    written("sentences", np.uint16, [(DOCUMENTS[1], [2, 2, 1]), (DOCUMENTS[0], [3])])


def gpt_index(case: dict[str, Any]) -> dict[str, Any]:
    """Arrays of the real GPTDataset over a data set of the case's lengths."""
    import numpy as np
    import torch
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder
    from megatron.core.datasets.utils import Split

    with tempfile.TemporaryDirectory() as folder:
        prefix = str(Path(folder) / "data")
        builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=np.uint16)
        for length in case["lengths"]:
            builder.add_document(torch.zeros(length, dtype=torch.int64), [length])
        builder.finalize(f"{prefix}.idx")
        config = GPTDatasetConfig(
            random_seed=case.get("seed", 1234),
            sequence_length=case["sequence_length"],
            blend=([prefix], None),
            split="1,0,0",
            path_to_cache=str(Path(folder) / "cache"),
            tokenizer=_Tokenizer(),
            reset_position_ids=False,
            reset_attention_mask=False,
            eod_mask_loss=False,
        )
        documents = np.array(case.get("documents", range(len(case["lengths"]))), np.int32)
        data = GPTDataset(
            IndexedDataset(prefix), prefix, documents, case.get("n_samples"), Split.train, config
        )
        names = ("document_index", "sample_index", "shuffle_index")
        return {name: _array(getattr(data, name)) for name in names}


class _Tokenizer:
    unique_identifiers: dict[str, str] = {}  # noqa: RUF012
    vocab_size, eod, pad = 50_257, 50_256, 0


def blend(case: dict[str, Any]) -> dict[str, Any]:
    """What ``build_blending_indices`` fills in for weights that went through ``normalize`` once."""
    import numpy as np
    from megatron.core.datasets import helpers
    from megatron.core.datasets.utils import normalize

    weights, size = normalize(case["weights"]), case["size"]
    datasets, samples = np.zeros(size, np.int16), np.zeros(size, np.int64)
    helpers.build_blending_indices(datasets, samples, weights, len(weights), size, False)
    return {
        "normalised": weights,
        "dataset_index": _array(datasets),
        "dataset_sample_index": _array(samples),
    }


def exhaustive(sizes: list[int]) -> dict[str, Any]:
    """What ``build_exhaustive_blending_indices`` fills in."""
    import numpy as np
    from megatron.core.datasets import helpers

    datasets, samples = np.zeros(sum(sizes), np.int16), np.zeros(sum(sizes), np.int64)
    helpers.build_exhaustive_blending_indices(datasets, samples, sizes, len(sizes))
    return {"dataset_index": _array(datasets), "dataset_sample_index": _array(samples)}


def sizes(case: dict[str, Any]) -> dict[str, Any]:
    """Samples per data set, without and with surplus."""
    from megatron.core.datasets import blended_megatron_dataset_builder as builder
    from megatron.core.datasets.utils import normalize

    def per_dataset(surplus: float) -> list[int]:
        found = builder._get_size_per_split_per_dataset(
            normalize(case["weights"]), [case["n_samples"]], surplus=surplus
        )
        return [one for (one,) in found]

    return {"targets": per_dataset(0.0), "requests": per_dataset(case["surplus"])}


def _array(values: Any) -> dict[str, Any]:
    return {"dtype": str(values.dtype), "values": values.tolist()}


def _write_json(name: str, cases: list[dict[str, Any]]) -> None:
    (HERE / name).write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
