"""Launch arguments of Megatron in a file, and what they state about the data.

The file has the arguments as a shell would read them, on any number of lines, with ``#`` comments.
Arguments that do not concern the data are ignored. Those that would give other indices than this
package builds are refused, and so are unknown ones whose names speak of data, samples, batches or
evaluation.

What follows from them: `lc_assets.mixing.cache_names`.
Source: Megatron-LM ``megatron/training/arguments.py``, ``megatron/training/utils.py``
(``get_blend_and_blend_per_split``), ``megatron/training/training.py``
(``get_train_valid_test_num_samples``).
"""

import argparse
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from lc_assets.errors import BadInput
from lc_assets.mixing.blending import SURPLUS
from lc_assets.mixing.cache_names import SPLITS, Launch, Sources, sources_of

SPLIT_BY_DEFAULT = "969, 30, 1"
"""Megatron's default for ``--data-path`` without ``--split``."""

REFUSED = (
    "--mock-data",
    "--fim-data",
    "--sft",
    "--rampup-batch-size",
    "--phase-transition-iterations",
    "--step-batch-size-schedule",
    "--perform-rl-step",
    "--block-data-path",
    "--evidence-data-path",
    "--titles-data-path",
    "--encoder-seq-length",
    "--batch-size",
    "--yaml-cfg",
)
"""Arguments with which Megatron builds other data sets, or counts samples differently."""
_OF_DATA = re.compile(
    "-(data|datasets?|dataloader|samples?|eval|split|seq|mock|fim|sft|epochs?|valid|validation|test"
    "|train|phase|batch|schedule|rl|iters|surplus|blend)(-|$)"
)
_HARMLESS = re.compile(
    "--((account-for|batch-invariant|batch-p2p|ckpt|dino|fim|gpu-sniff|inference|lr|moe|muon|rl"
    "|tp-comm|wd)-.*|(data-parallel|dataloader|decoder-seq|rotary-seq)-.*|config-logger-dir"
    "|data-per-class-fraction|decrease-batch-size-if-needed|eval-micro-batch-size"
    "|exit-signal-handler-for-dataloader|ft-num-warmup-iters|indexer-batch-size|iter-per-epoch"
    "|log-validation-ppl-to-tensorboard|manual-gc-eval|micro-batch-size|no-data-sharding"
    "|no-create-attention-mask-in-dataloader|num-dataset-builder-threads|sample-rate"
    "|per-dataset-sequences-path|sft-tokenizer-prompt-format|short-seq-prob|test-mode"
    "|train-sync-interval|validation-set-names|variable-seq-lengths)"
)
"""Known arguments, up to Megatron-LM's main of 2026-08, on which no index depends in spite of their
names.
"""


class Words(argparse.ArgumentParser):
    """A parser of launch arguments, which reports errors as `BadInput`."""

    def error(self, message: str) -> NoReturn:
        """Raise the message."""
        raise BadInput(f"launch arguments: {message}")


def read_launch(path: Path) -> tuple[Launch, str | None]:
    """Read a file of launch arguments.

    Returns:
        What they state about the data, and ``--data-cache-path`` if given.

    Raises:
        BadInput: if the file cannot be read, a number is missing, or an argument is unknown.
    """
    return parse_launch(words_in(path), folder=path.parent)


def read_batches(path: Path) -> tuple[int, int]:
    """Samples of a step, and of a microbatch of one rank, that a file of launch arguments states.

    Raises:
        BadInput: if one is missing, or training takes samples in another order.
    """
    parser = Words(add_help=False, allow_abbrev=False)
    for name in ("--global-batch-size", "--micro-batch-size"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--dataloader-type", choices=["single"])
    known, _ = parser.parse_known_args(words_in(path))
    return known.global_batch_size, known.micro_batch_size


def words_in(path: Path) -> list[str]:
    """The arguments in a file.

    Raises:
        BadInput: if it cannot be read.
    """
    try:
        return shlex.split(path.read_text("utf-8"), comments=True)
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read as launch arguments: {error}") from error


def parse_launch(words: Sequence[str], *, folder: Path) -> tuple[Launch, str | None]:
    """As `read_launch`; files named in the arguments are where Megatron would look, or in
    ``folder``.
    """
    if strange := [word for word in words if word.partition("=")[0] in REFUSED]:
        raise BadInput(
            f"launch arguments: with {strange[0]} Megatron builds other indices than are known "
            "here; leave the cache to it"
        )
    known, others = _parser().parse_known_args(list(words))
    names = [word.partition("=")[0] for word in others if word.startswith("--")]
    if strange := [
        name for name in names if _OF_DATA.search(name) and not _HARMLESS.fullmatch(name)
    ]:
        raise BadInput(
            f"launch arguments: {strange[0]} is not known here, and indices may depend on it; if "
            "they do not, leave it out of this file"
        )
    shared, sources = _named_data(known, folder)
    if known.seq_length is None:
        raise BadInput("launch arguments: --seq-length is missing")
    if known.data_args_path is not None and known.split is None:
        raise BadInput("launch arguments: --split is missing, without which Megatron stops")
    launch = Launch(
        sequence_length=known.seq_length,
        seed=known.seed,
        n_samples=_n_samples(known),
        sources=sources,
        split=known.split or SPLIT_BY_DEFAULT if shared else None,
        surplus=known.mid_level_dataset_surplus,
        several_validation_sets=known.multiple_validation_sets,
    )
    return launch, known.data_cache_path


def _n_samples(known: Any) -> tuple[int, int | None, int]:
    """Samples that Megatron requests of train, valid and test."""
    if known.train_samples is None and known.train_iters is None:
        raise BadInput(
            "neither --train-samples nor --train-iters is given: the number of samples depends on "
            "one of them"
        )
    if known.global_batch_size is None and known.train_samples and not known.eval_iters:
        return known.train_samples, None if known.full_validation else 0, 0
    if known.global_batch_size is None:
        raise BadInput("launch arguments: --global-batch-size is missing")
    batch, interval = known.global_batch_size, known.eval_interval
    if min(batch, interval) < 1:
        raise BadInput(
            f"--global-batch-size and --eval-interval must be at least 1, got {batch:,} and "
            f"{interval:,}"
        )
    n_train = known.train_samples or (known.train_iters or 0) * batch
    iterations = known.train_samples // batch if known.train_samples else known.train_iters
    n_evaluations = (iterations or 0) // interval + 1 - (known.start_eval_at_iter or 0) // interval
    n_test = known.eval_iters * (known.eval_global_batch_size or batch)
    n_valid = n_test if known.skip_train else max(0, n_evaluations) * n_test
    return n_train, None if known.full_validation else n_valid, n_test


def read_identities(path: Path) -> dict[str, dict[str, Any]]:
    """Read the identity of a tokenizer: one JSON object as Megatron prints it, or several by
    version.

    Raises:
        BadInput: if it is neither.
    """
    try:
        stated = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path}: cannot be read as a tokenizer's identity: {error}") from error
    if (
        isinstance(stated, dict)
        and stated
        and all(isinstance(value, dict) for value in stated.values())
    ):
        return stated
    if not isinstance(stated, dict) or "class" not in stated:
        raise BadInput(
            f"{path}: expected what json.dumps(tokenizer.unique_identifiers) prints: an object "
            "with a class, or several by name"
        )
    return {"this": stated}


def _parser() -> argparse.ArgumentParser:
    parser = Words(add_help=False, allow_abbrev=False)
    for name in (
        *("--seq-length", "--train-samples", "--train-iters", "--global-batch-size"),
        *("--eval-global-batch-size", "--start-eval-at-iter"),
    ):
        parser.add_argument(name, type=int)
    for name, default in (("--seed", 1234), ("--eval-interval", 1000), ("--eval-iters", 100)):
        parser.add_argument(name, type=int, default=default)
    for name in ("--data-path", "--train-data-path", "--valid-data-path", "--test-data-path"):
        parser.add_argument(name, nargs="*")
    for name in ("--split", "--data-args-path", "--per-split-data-args-path", "--data-cache-path"):
        parser.add_argument(name)
    for name in ("--full-validation", "--multiple-validation-sets", "--skip-train"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--mid-level-dataset-surplus", type=float, default=SURPLUS)
    return parser


def _named_data(
    known: Any, folder: Path
) -> tuple[bool, tuple[Sources | None, Sources | None, Sources | None]]:
    """Whether all splits share their sources, and the sources of each."""
    each = [known.train_data_path, known.valid_data_path, known.test_data_path]
    files = known.data_args_path, known.per_split_data_args_path
    n_named = sum(named is not None for named in (known.data_path, *files)) + any(each)
    if n_named != 1:
        raise BadInput(
            "launch arguments: "
            f"{'the data is named in several ways' if n_named else 'no data is named'}; expected "
            "one of --data-path, --data-args-path, --per-split-data-args-path, or "
            "--train-data-path with --valid-data-path and --test-data-path"
        )
    shared = known.data_path
    if known.data_args_path is not None:
        shared = _text(folder, known.data_args_path).split()
    if known.per_split_data_args_path is not None:
        each = _each_split(folder, known.per_split_data_args_path)
    words = each if shared is None else [shared] * len(SPLITS)
    train, valid, test = (None if named is None else sources_of(named) for named in words)
    return shared is not None, (train, valid, test)


def _each_split(folder: Path, name: str) -> list[list[str] | None]:
    try:
        stated = json.loads(_text(folder, name))
        kinds = list[str | list[str | float] | None]
        each = msgspec.convert([stated[split] for split in SPLITS], kinds)
    except (ValueError, KeyError, TypeError, RecursionError) as error:  # of msgspec's, too
        raise BadInput(
            f"{name}: expected JSON with {', '.join(SPLITS)}, each a list or a line of prefixes: "
            f"{error}"
        ) from error
    return [None if words is None else _each_word(words) for words in each]


def _each_word(words: str | list[str | float]) -> list[str]:
    return words.split() if isinstance(words, str) else [str(word) for word in words]


def _text(folder: Path, name: str) -> str:
    try:
        path = Path(name) if Path(name).is_file() else folder / name
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise BadInput(f"{name}: cannot be read: {error}") from error
