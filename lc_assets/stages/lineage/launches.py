"""What a launch of Megatron served at a step: the documents in its global batch, by microbatch and
rank; and how much of each data set up to a step.

A sample is found by the arrays that Megatron reads: those of the launch's cache, or those that it
would build. Its documents are known where the launch's data sets are versions of a lake, or the
pieces that `lc_assets.stages.mixes.launching` makes of packed rows.

Source: Megatron-LM ``megatron/legacy/data/data_samplers.py`` (``MegatronPretrainingSampler``): of
    micro batch × ranks consecutive samples, each rank takes a microbatch.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from lc_assets.arrays import Array, Integers
from lc_assets.builds.checks import DOCUMENTS_SUFFIX
from lc_assets.builds.lookups import read_some
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.lake.located import located
from lc_assets.lake.versions import Published
from lc_assets.mixing.blending import counts
from lc_assets.mixing.cache_names import Launch, Request, documents_of
from lc_assets.mixing.gpt_index import GptIndex
from lc_assets.records import record
from lc_assets.stages.lineage.characters import tokenizer_of
from lc_assets.stages.lineage.spans import Span, row_tokens_of, spans_of_packed_rows
from lc_assets.stages.lineage.tracing import (
    Piece,
    cuts_of_sample,
    pieces_between,
    rows_behind,
    spans_of_documents,
)
from lc_assets.stages.megatron.caching import Arrays, training_arrays
from lc_assets.stages.mixes.launching import rows_of_pieces

STORES = ("token_documents", "packing_tokens")
"""Stages whose Megatron documents are documents."""


@record
class Step:
    """A step of a launch.

    Attributes:
        iteration: its number, as Megatron logs it: from 1.
        batch: samples of all ranks together.
        micro_batch: samples of a microbatch of one rank.
        n_ranks: data-parallel ranks.
    """

    iteration: int
    batch: int
    micro_batch: int
    n_ranks: int = 1

    def __post_init__(self) -> None:
        together = self.micro_batch * self.n_ranks
        if min(self.iteration, together, self.batch) < 1 or self.batch % together:
            raise BadInput(
                f"iteration {self.iteration:,}: iterations count from 1, and {self.n_ranks:,} "
                f"ranks × {self.micro_batch:,} samples must divide a batch of {self.batch:,}"
            )


@record
class ServedPiece:
    """Consecutive tokens of one document in a sample.

    Attributes:
        microbatch: of the step, from 0.
        rank: data-parallel rank.
        sample: number among all samples of the launch, from 0.
        start: its first token in the sample.
        ids: its tokens; the last token of a sample is a target only.
        data_set: prefix of the data set, as in the launch.
        number: of Megatron's document there.
        piece: the columns of a row that it is of, or the document's tokens; None if the data set is
            of no lake.
        tokenizer: setting of the tokenizer; empty if it is not known.
    """

    microbatch: int
    rank: int
    sample: int
    start: int
    ids: Array
    data_set: str
    number: int
    piece: Piece | None
    tokenizer: str


def served(launch: Launch, step: Step, cache: Path | None) -> Iterator[ServedPiece]:
    """What a step trains on, sample by sample, without padding.

    Args:
        launch: the launch.
        step: the step.
        cache: its ``--data-cache-path``.

    Raises:
        BadInput: if there is no such step, or the launch is impossible.
        CorruptFile: if a data set or an index is missing or damaged.
        NotPublished: if the documents of a lake's data set are gone.
    """
    cuts = _cuts(launch, step, cache)
    named: dict[str, set[int]] = {}
    for prefix, own in cuts:
        named.setdefault(prefix, set()).update(document for document, *_ in own)
    data_sets = {prefix: _DataSet(prefix, sorted(numbers)) for prefix, numbers in named.items()}
    for nth, (prefix, own) in enumerate(cuts):
        microbatch, within = divmod(nth, step.micro_batch * step.n_ranks)
        data, start = data_sets[prefix], 0
        for document, begin, end in own:
            for ids, piece in data.parts(document, begin, end):
                if piece is None or piece.span.id:
                    yield ServedPiece(
                        microbatch=microbatch,
                        rank=within // step.micro_batch,
                        sample=(step.iteration - 1) * step.batch + nth,
                        start=start,
                        ids=ids,
                        data_set=prefix,
                        number=document,
                        piece=piece,
                        tokenizer=data.tokenizer,
                    )
                start += len(ids)


Cut = tuple[int, int, int | None]


def _cuts(launch: Launch, step: Step, cache: Path | None) -> list[tuple[str, list[Cut]]]:
    """The data set of each sample of a step, and what it takes of it."""
    requests, arrays = training_arrays(launch, cache)
    parts, (chosen, numbers) = _drawn(requests, arrays, step, step.batch)
    indices = {number: GptIndex(*arrays(parts[number])) for number in np.unique(chosen).tolist()}
    return [
        (parts[number].parts[0].prefix, cuts_of_sample(indices[number], sample))
        for number, sample in zip(chosen.tolist(), numbers.tolist(), strict=True)
    ]


def _drawn(
    requests: Sequence[Request], arrays: Arrays, step: Step, n_samples: int
) -> tuple[Sequence[Request], list[Integers]]:
    """The launch's data sets; and which of them the last samples up to the end of a step are of,
    with their numbers there.
    """
    *parts, last = requests
    *_, order = arrays(last)
    end = step.iteration * step.batch
    if end > len(order):
        raise BadInput(
            f"no iteration {step.iteration:,}: the launch has {len(order):,} samples, "
            f"{step.batch:,} a step"
        )
    own = slice(end - n_samples, end)
    if last.weights is None:
        return [last], [np.zeros(n_samples, np.int64), np.arange(own.start, end)]
    return parts, [np.asarray(array[own]) for array in arrays(last)]


def seen(launch: Launch, step: Step, cache: Path | None) -> dict[str, tuple[int, float]]:
    """How many samples of each data set a launch has served up to the end of a step, by prefix, and
    how many epochs these are.

    Raises:
        BadInput: as `served`.
        CorruptFile: as `served`.
    """
    requests, arrays = training_arrays(launch, cache)
    parts, (chosen, _) = _drawn(requests, arrays, step, step.iteration * step.batch)
    found = {}
    for request, n_samples in zip(parts, counts(chosen, len(parts)), strict=True):
        (part,) = request.parts
        lengths = MegatronReader(Path(part.prefix)).lengths
        own = documents_of(part.bounds, len(lengths))
        n_tokens = int(lengths[own.start : own.stop].sum(dtype=np.int64))
        found[part.prefix] = n_samples, n_samples * launch.sequence_length / n_tokens
    return found


class _DataSet:
    """A data set and the spans of some of its documents."""

    def __init__(self, prefix: str, documents: Sequence[int]) -> None:
        self.reader, self.tokenizer = MegatronReader(Path(prefix)), ""
        self.spans: dict[int, list[Span]] = {}
        pieces = rows_of_pieces(Path(prefix))
        found = located(str(pieces or Path(prefix).absolute().parent))
        if found is None or not found.version:
            return
        lake, published = found.lake, found.published
        if published.stage in STORES:
            self.spans = _stored(published, Path(prefix).name, documents)
            self.tokenizer = tokenizer_of(lake, published.params["tokenizer"])
            return
        rows = rows_behind(lake, published)
        if pieces:
            self.spans = self._within_rows(rows, documents)
        else:
            self.spans = spans_of_documents(lake, rows, documents)
        self.tokenizer = tokenizer_of(lake, GridReader(rows.folder / "train.zarr").tokenizer)

    def _within_rows(self, rows: Published, pieces: Sequence[int]) -> dict[int, list[Span]]:
        """The spans of pieces, each a part of a row."""
        width = row_tokens_of(rows)
        places = [self.reader.places(number, number + 1) for number in pieces]
        wanted = sorted({first // width for first, _ in places})
        of_row = dict(zip(wanted, spans_of_packed_rows(rows, "train", wanted), strict=True))
        return {
            number: [
                span
                for span in of_row[first // width]
                if first % width <= span.row_start < first % width + end - first
            ]
            for number, (first, end) in zip(pieces, places, strict=True)
        }

    def parts(
        self, document: int, start: int, stop: int | None
    ) -> Iterator[tuple[Array, Piece | None]]:
        """The ids between two tokens of a document, span by span."""
        end = int(self.reader.lengths[document]) if stop is None else stop
        ids, spans = self.reader.read(document, start, end), self.spans.get(document)
        for piece in (None,) if spans is None else pieces_between(spans, start, end):
            n_tokens = len(ids) if piece is None else piece.stop - piece.start
            yield ids[:n_tokens], piece
            ids = ids[n_tokens:]


def _stored(store: Published, name: str, documents: Sequence[int]) -> dict[int, list[Span]]:
    """Documents of a token store, each a span of its own."""
    table = f"{name}{DOCUMENTS_SUFFIX}"
    lines = read_some(store.only(table) / table, documents, ["id", "url", "n_tokens"])
    return {
        number: [
            Span(
                published=store,
                split="train",
                row=number,
                number=number,
                row_start=0,
                row_stop=line["n_tokens"] + 1,  # with its end of text, if it has one
                **line,
            )
        ]
        for number, line in zip(documents, lines, strict=True)
    }
