"""Megatron's blending rule in plain Python: Python floats are IEEE doubles, and nothing is
fused.
"""

from collections.abc import Sequence


def slow_blend(weights: Sequence[float], size: int) -> tuple[list[int], list[int]]:
    """Take each sample from the data set that is furthest behind, the first of equals."""
    taken, datasets, samples = [0] * len(weights), [], []
    for n in range(size):
        behind = [weight * max(n, 1) - count for weight, count in zip(weights, taken, strict=True)]
        dataset = behind.index(max(behind))
        datasets.append(dataset)
        samples.append(taken[dataset])
        taken[dataset] += 1
    return datasets, samples


def slow_blend_all(sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    """The same rule among those that have samples left."""
    taken, datasets, samples = [0] * len(sizes), [], []
    for n in range(sum(sizes)):
        left = [i for i in range(len(sizes)) if taken[i] < sizes[i]]
        dataset = max(left, key=lambda i: (sizes[i] / float(sum(sizes)) * max(n, 1) - taken[i], -i))
        datasets.append(dataset)
        samples.append(taken[dataset])
        taken[dataset] += 1
    return datasets, samples
