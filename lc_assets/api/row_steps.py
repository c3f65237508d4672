"""What a loader of rows served at a step: the documents in its batch, by microbatch and rank.

The loader is one of `lc_assets.loaders`, or torchtitan's, which reads by one: its microbatch is a
step of the loader, of all ranks together, and a step has as many as gradients are accumulated over.

Source: torchtitan 0.3.0, ``torchtitan/trainer.py``.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from lc_assets.errors import BadInput
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.megatron.launch_arguments import Words, words_in
from lc_assets.loaders.arrays import InterleavedRows, ZarrRows
from lc_assets.loaders.data_sets import DataSet, open as open_data_set
from lc_assets.stages.lineage.characters import tokenizer_of
from lc_assets.stages.lineage.launches import ServedPiece, Step
from lc_assets.stages.lineage.spans import Span
from lc_assets.stages.lineage.tracing import pieces_between, rows_of_array

TRAIN = "train.zarr"
TORCHTITAN = "--dataloader."
"""How the arguments begin by which a launch of torchtitan names its data."""


def is_torchtitan_launch(path: Path) -> bool:
    """Whether a file has launch arguments of torchtitan.

    Raises:
        BadInput: if it cannot be read.
    """
    return any(word.startswith(TORCHTITAN) for word in words_in(path))


def read_torchtitan_launch(path: Path, n_ranks: int) -> tuple[DataSet, int, int, int]:
    """Read a file of torchtitan's launch arguments, with the names of
    `lc_assets.loaders.torchtitan.RowLoader.Config`.

    Returns:
        The rows, tokens of a sample, samples of a step, and of a microbatch of one rank.

    Raises:
        BadInput: if a number is missing, or there are no such rows.
    """
    parser = Words(add_help=False, allow_abbrev=False)
    for name in ("seq-len", "local-batch-size"):
        parser.add_argument(f"--training.{name}", dest=name, type=int, required=True)
    parser.add_argument("--training.global-batch-size", dest="batch", type=int, default=-1)
    parser.add_argument(f"{TORCHTITAN}dataset-path", dest="path", required=True)
    parser.add_argument(f"{TORCHTITAN}dataset-split", dest="split", default="train")
    parser.add_argument(f"{TORCHTITAN}release", dest="release")
    found = vars(parser.parse_known_args([_dashed(word) for word in words_in(path)])[0])
    data = open_data_set(found["path"], found["split"], release=found["release"])
    own = found["local-batch-size"]
    batch = own * n_ranks if found["batch"] < 0 else found["batch"]
    return data, found["seq-len"], batch, own


def _dashed(word: str) -> str:
    """An argument with dashes in its name, which torchtitan takes as underscores."""
    name, equals, value = word.partition("=")
    return f"{name.replace('_', '-')}{equals}{value}" if word.startswith("--") else word


def served_rows(data: DataSet, step: Step, context_tokens: int | None) -> Iterator[ServedPiece]:
    """What a step trains on, row by row, without padding; ``ids`` are its targets.

    Args:
        data: the rows.
        step: the step, from 1.
        context_tokens: tokens of a sample; None means whole rows.

    Raises:
        BadInput: if there is no such step, or the rows are not published.
        NotPublished: if the documents are gone.
    """
    together = step.micro_batch * step.n_ranks
    loader = data.loader(batch_rows=together, context_tokens=context_tokens)
    n_parts = step.batch // together
    if step.iteration * n_parts > len(loader):
        raise BadInput(
            f"no iteration {step.iteration:,}: the rows are read once in {len(loader):,} "
            f"microbatches of {together:,}, {n_parts:,} a step"
        )
    for microbatch in range(n_parts):
        number = (step.iteration - 1) * n_parts + microbatch
        targets, (_, columns) = loader[number].targets, loader.part_of(number)
        places = _places(data, loader.rows_of(number))
        for nth, (array, row, spans, tokenizer) in enumerate(places):
            for piece in pieces_between(spans, columns.start, columns.stop):
                if piece.span.id:
                    start, stop = piece.start - columns.start, piece.stop - columns.start
                    yield ServedPiece(
                        microbatch=microbatch,
                        rank=nth // step.micro_batch,
                        sample=number * together + nth,
                        start=start,
                        ids=targets[nth, start:stop],
                        data_set=array,
                        number=row,
                        piece=piece,
                        tokenizer=tokenizer,
                    )


def _places(data: DataSet, rows: Sequence[int]) -> list[tuple[str, int, list[Span], str]]:
    """The array of each of some rows, the row in it, its spans, and its tokenizer."""
    source, by_array = data.rows, defaultdict[str, list[int]](list)
    places: list[tuple[ZarrRows, int]] = []
    for row in rows:
        if isinstance(source, InterleavedRows):
            places.append(source.place(row))
        elif isinstance(source, ZarrRows):
            places.append((source, row))
        by_array[places[-1][0].where].append(places[-1][1])
    arrays = {array.where: array for array, _ in places}
    spans: dict[tuple[str, int], list[Span]] = {}
    tokenizers: dict[str, str] = {}
    for where, own in by_array.items():
        if (found := rows_of_array(where, own)) is None:
            raise BadInput(f"{where}: is in no lake, so the documents of its rows are not known")
        lake, each = found
        spans |= {(where, row): one for row, one in zip(own, each, strict=True)}
        name = arrays[where].tokenizer or GridReader(each[0][0].published.folder / TRAIN).tokenizer
        tokenizers[where] = tokenizer_of(lake, name)
    return [
        (array.where, row, spans[array.where, row], tokenizers[array.where])
        for array, row in places
    ]
