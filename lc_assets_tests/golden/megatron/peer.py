"""Answers questions with the real megatron-core: one JSON object a line in, one a line out. Runs in
an environment of its own.

Arrays are answered as digests of dtype, shape and bytes, so that thousands of them can be compared.
"""

import hashlib
import json
import os
import sys
import time
import warnings
from typing import Any

warnings.simplefilter("ignore")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120


class Tokenizer:
    """Stands for a tokenizer: only its identity matters."""

    vocab_size, eod, pad = 50_257, 50_256, 0

    def __init__(self, identity: dict[str, Any]) -> None:
        self.unique_identifiers = identity


def digest(array: Any) -> str:
    """Of an array's dtype, shape and bytes."""
    import numpy as np

    found = np.ascontiguousarray(array)
    return hashlib.sha256(f"{found.dtype.str}{found.shape}".encode() + found.tobytes()).hexdigest()


def gpt(question: dict[str, Any]) -> dict[str, Any]:
    """The three arrays that GPTDataset builds over documents of given lengths."""
    import numpy as np
    from make_golden import gpt_index

    found = gpt_index(question["case"])
    return {
        name: digest(
            np.array(array["values"], array["dtype"]).reshape(
                (-1, 2) if name == "sample_index" else -1
            )
        )
        for name, array in found.items()
    }


def blend(question: dict[str, Any]) -> dict[str, Any]:
    """Both arrays of a weighted blend; the weights are normalised twice, as the builder and the
    blend do.
    """
    import numpy as np
    from megatron.core.datasets import helpers
    from megatron.core.datasets.utils import normalize

    weights, size = normalize(normalize(question["weights"])), question["size"]
    datasets, samples = np.zeros(size, np.int16), np.zeros(size, np.int64)
    begun = time.process_time()
    helpers.build_blending_indices(datasets, samples, weights, len(weights), size, False)
    return {
        "seconds": time.process_time() - begun,
        "dataset_index": digest(datasets),
        "dataset_sample_index": digest(samples),
    }


def exhaustive(question: dict[str, Any]) -> dict[str, Any]:
    """Both arrays of a blend of everything."""
    import numpy as np
    from megatron.core.datasets import helpers

    sizes = question["sizes"]
    datasets, samples = np.zeros(sum(sizes), np.int16), np.zeros(sum(sizes), np.int64)
    begun = time.process_time()
    helpers.build_exhaustive_blending_indices(datasets, samples, sizes, len(sizes))
    return {
        "seconds": time.process_time() - begun,
        "dataset_index": digest(datasets),
        "dataset_sample_index": digest(samples),
    }


def index_speed(question: dict[str, Any]) -> dict[str, Any]:
    """CPU seconds of the three arrays over documents drawn by a seed, and their digests; reading
    nothing, writing them.
    """
    import tempfile

    import numpy as np
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.utils import Split

    lengths = (
        np.random.default_rng(question["seed"])
        .integers(100, 1500, question["n_documents"])
        .astype(np.int32)
    )

    class Lengths:
        sequence_lengths = lengths
        path_prefix = "none"

    with tempfile.TemporaryDirectory() as folder:
        config = GPTDatasetConfig(
            random_seed=1234,
            sequence_length=question["sequence_length"],
            blend=(["none"], None),
            split="1,0,0",
            path_to_cache=folder,
            tokenizer=Tokenizer({}),
            reset_position_ids=False,
            reset_attention_mask=False,
            eod_mask_loss=False,
        )
        documents = np.arange(len(lengths), dtype=np.int32)
        begun = time.process_time()
        data = GPTDataset(Lengths(), "none", documents, question["n_samples"], Split.train, config)
        seconds = time.process_time() - begun
    return {"seconds": seconds} | {
        name: digest(getattr(data, name))
        for name in ("document_index", "sample_index", "shuffle_index")
    }


def started(config: dict[str, Any], identity: dict[str, Any], sizes: list[int | None]) -> Any:
    """The data sets of a job, by the real builder."""
    from megatron.core.datasets.blended_megatron_dataset_builder import (
        BlendedMegatronDatasetBuilder,
    )
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig

    masks = {"reset_position_ids": False, "reset_attention_mask": False, "eod_mask_loss": False}
    made = GPTDatasetConfig(tokenizer=Tokenizer(identity), **masks, **config)
    return BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, made).build()


def job(question: dict[str, Any]) -> dict[str, Any]:
    """Start a job's data sets: CPU and wall seconds, their lengths, tokens of one sample, and files
    that it had to write.
    """
    os.chdir(question["folder"])
    cache = question["config"]["path_to_cache"]
    before = stamps(cache)
    cpu, wall = time.process_time(), time.perf_counter()
    built = started(question["config"], question["identity"], question["sizes"])
    seconds = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    after = stamps(cache)
    return seconds | {
        "lengths": [None if data is None else len(data) for data in built],
        "written": sorted(name for name, stamp in after.items() if before.get(name) != stamp),
        "tokens": built[0][0]["tokens"].tolist(),
    }


def launched(question: dict[str, Any]) -> dict[str, Any]:
    """Start the training data of launch arguments, read by Megatron's own rules: files written, the
    length, and digests of the first samples' tokens.
    """
    import argparse
    import shlex

    from megatron.core.datasets.utils import get_blend_from_list

    os.chdir(question["folder"])
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--seq-length", "--seed", "--train-samples", "--eval-iters"):
        parser.add_argument(name, type=int)
    for name in ("--data-args-path", "--data-cache-path", "--split"):
        parser.add_argument(name)
    masked = "--dataloader-inter-document-masking"
    parser.add_argument(masked, action="store_true", dest="inter_document_masking")
    parser.add_argument("--eod-mask-loss", action="store_true")
    stated = parser.parse_args(shlex.split(question["words"]))
    with open(stated.data_args_path) as stream:  # noqa: PTH123
        prefixes, weights = get_blend_from_list(stream.read().split())
    cache = question.get("cache", stated.data_cache_path)
    before = stamps(cache)
    config = {
        "random_seed": stated.seed,
        "sequence_length": stated.seq_length,
        "blend": (prefixes, weights),
        "split": stated.split,
        "path_to_cache": cache,
        "create_attention_mask": False,
    }
    if stated.inter_document_masking:
        from megatron.core.datasets.gpt_dataset import GPTDatasetConfig

        if not hasattr(GPTDatasetConfig, "inter_document_masking"):
            return {"unsupported": masked}
        config["inter_document_masking"] = True
    built = started(config, question["identity"], [stated.train_samples, 0, 0])
    after = stamps(cache)
    samples = [built[0][number] for number in range(min(question["n_samples"], len(built[0])))]
    return {
        "written": sorted(name for name, stamp in after.items() if before.get(name) != stamp),
        "length": len(built[0]),
        "samples": [hashlib.sha256(tokens_of(sample).tobytes()).hexdigest() for sample in samples],
        "cu_seqlens": [edges_of(sample) for sample in samples],
    }


def edges_of(sample: dict[str, Any]) -> list[int]:
    """Where documents begin and end within a sample, without the filling of their array."""
    found = sample["cu_seqlens"].tolist() if "cu_seqlens" in sample else []
    return found[: found.index(found[-1]) + 1] if found else []


def tokens_of(sample: dict[str, Any]) -> Any:
    """Inputs and the last target of a sample, int64."""
    import numpy as np

    return np.append(sample["tokens"].numpy(), sample["labels"].numpy()[-1:]).astype(np.int64)


def stamps(folder: str) -> dict[str, Any]:
    """Names and modification times."""
    return (
        {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(folder)}
        if os.path.isdir(folder)  # noqa: PTH112
        else {}
    )


def file_digest(folder: str, name: str) -> str:
    """Of a file's bytes."""
    with open(os.path.join(folder, name), "rb") as stream:  # noqa: PTH118, PTH123
        return hashlib.sha256(stream.read()).hexdigest()


def main() -> None:
    """Answer until there are no more questions."""
    import logging

    import torch

    logging.disable(logging.WARNING)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1
    )
    asked = {
        "gpt": gpt,
        "blend": blend,
        "exhaustive": exhaustive,
        "index_speed": index_speed,
        "job": job,
        "launched": launched,
    }
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = asked[question["ask"]](question)
        except (AssertionError, IndexError, ValueError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print("answer " + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
