"""What ``lc trace`` prints of a step: its documents, and what had been read by then."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lc_assets.api.row_steps import is_torchtitan_launch, read_torchtitan_launch, served_rows
from lc_assets.cli.inspect.trace_shown import SHOWN_TOKENS, token_ranges
from lc_assets.cli.printing import say, shortened, table, visible
from lc_assets.cli.reports import report
from lc_assets.errors import BadInput
from lc_assets.formats.megatron.launch_arguments import read_batches, read_launch
from lc_assets.formats.tokenizers.named import text_of
from lc_assets.loaders.data_sets import open as open_data_set
from lc_assets.mixing.cache_names import Launch
from lc_assets.stages.lineage.launches import ServedPiece, Step, seen, served

if TYPE_CHECKING:
    from lc_assets.cli.inspect.trace import StepOptions


def _read_step(path: Path, iteration: int, n_ranks: int) -> tuple[Launch, Step, Path | None]:
    launch, cache = read_launch(path)
    batch, micro_batch = read_batches(path)
    step = Step(iteration=iteration, batch=batch, micro_batch=micro_batch, n_ranks=n_ranks)
    return launch, step, Path(cache) if cache else None


def trace_seen(path: Path, iteration: int) -> None:
    """How much of each data set a launch of Megatron has served up to the end of a step."""
    if is_torchtitan_launch(path):
        raise BadInput("--seen-until is of Megatron's launches: torchtitan reads rows in order")
    launch, step, cache = _read_step(path, iteration, 1)
    found = seen(launch, step, cache)
    names = ("data set", "samples", "tokens", "epochs")
    length = launch.sequence_length
    table(names, [(name, n, n * length, round(of, 4)) for name, (n, of) in found.items()])
    n_samples = iteration * step.batch
    say(f"{n_samples:,} samples, {n_samples * length:,} tokens, up to iteration {iteration:,}")


def trace_step(path: Path, iteration: int, n_ranks: int) -> None:
    """From a step of a launch of Megatron or torchtitan to the documents that it trains on."""
    if is_torchtitan_launch(path):
        data, context, batch, own = read_torchtitan_launch(path, n_ranks)
        step = Step(iteration=iteration, batch=batch, micro_batch=own, n_ranks=n_ranks)
        _show(list(served_rows(data, step, context)), step)
        return
    launch, step, cache = _read_step(path, iteration, n_ranks)
    _show(list(served(launch, step, cache)), step)


def trace_loader(path: str, split: str, release: str | None, asked: "StepOptions") -> None:
    """From a step of a loader of rows, from 0, to the documents in its batch."""
    number, batch, n_ranks = asked.step, asked.batch_rows, asked.ranks
    if number is None or batch is None:
        raise BadInput("--batch-rows and --step go together: the batch of a loader, and its number")
    data = open_data_set(path, split, release=release)
    own = batch // n_ranks
    step = Step(iteration=number + 1, batch=batch, micro_batch=own, n_ranks=n_ranks)
    _show(list(served_rows(data, step, asked.context)), step)


def _show(found: Sequence[ServedPiece], step: Step) -> None:
    names = ("microbatch", "rank", "sample", "first token", "tokens", "document", "url", "text")
    table(names, map(_served_line, found))
    n_tokens = sum(len(piece.ids) for piece in found)
    say(f"{len(found):,} pieces of documents, {n_tokens:,} tokens in {step.batch:,} samples")


def _served_line(piece: ServedPiece) -> tuple[Any, ...]:
    """A piece; its whole text for programs."""
    name, url = f"document {piece.number} of {piece.data_set}", ""
    ranges = ""
    if (own := piece.piece) is not None:
        name, url, ranges = own.span.id, own.span.url, token_ranges(own.span, own.start, own.stop)
    whole = report() is not None
    ids = piece.ids if whole else piece.ids[:SHOWN_TOKENS]
    text = text_of(piece.tokenizer, ids.tolist()) if piece.tokenizer else ""
    shown = text if whole else visible(shortened(text, SHOWN_TOKENS))
    return piece.microbatch, piece.rank, piece.sample, piece.start, ranges, name, url, shown
