"""Reading facts in the documents' order: those of some documents, or of all others; and whose text
is whose.

Tables of facts lie in the order of their files, and a line per document in the order of their
places: documents by ascending numbers are found in one pass. A join of all facts with some would go
    by a table of hashes that no cache holds, and takes more a document the more
there are: 30 million took 1.2 to 1.3 times as long each as 3 million. Texts are grouped range by
range of their keys, so that every piece has the same size.

Not here: what is decided with facts (`lc_assets.stages.deduplication.deciding`), and writing them
(`facts`).
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lc_assets.build.lookups import regrouped
from lc_assets.build.tables import count_lines, opened_table
from lc_assets.execution.exchange import BucketWriter, by_hash, read_bucket
from lc_assets.publishing import publish
from lc_assets.text.duplicates.clusters import Numbers, are_among

LINES_AT_ONCE: Final = 1 << 16
TEXTS_AT_ONCE: Final = 1 << 19
"""Documents whose texts' keys are grouped at once."""
SENT_AT_ONCE: Final = 1 << 20
"""Lines that are sent to buckets together: of few there would be next to none for each."""
TEXTS: Final = pa.schema(
    [("text_high", pa.uint64()), ("text_low", pa.uint64()), ("number", pa.int64())]
)


def facts_of(
    paths: Iterable[Path], numbers: Numbers, columns: Sequence[str], *, others: bool = False
) -> Iterator[pa.Table]:
    """Facts of some documents, or of all others, by number.

    Args:
        paths: tables of facts, by number of file.
        numbers: of the documents, ascending.
        columns: wanted; ``number`` must be among them.
        others: whether the facts of all other documents are wanted.
    """
    for table in _tables(paths, columns):
        found = table["number"].to_numpy()
        if not len(found):
            continue
        begin, end = np.searchsorted(numbers, [found[0], found[-1] + 1])
        marks = are_among(found.view(np.uint64), numbers[begin:end].view(np.uint64))
        yield table.filter(pa.array(marks != others))


def repeated_in(paths: Sequence[Path], scratch: Path) -> Iterator[tuple[Numbers, Numbers]]:
    """Documents whose text others have too, and the first document that has it; some at a time.

    Args:
        paths: tables of facts.
        scratch: a folder for what is exchanged.
    """
    n_pieces = max(1, -(-sum(map(count_lines, paths)) // TEXTS_AT_ONCE))
    if n_pieces == 1:
        yield _repeated([_keys(table) for table in _tables(paths, TEXTS.names)])
        return
    with publish(scratch / "texts.parquet") as draft, BucketWriter(draft, TEXTS) as writer:
        for table in regrouped(_tables(paths, TEXTS.names), SENT_AT_ONCE):
            keyed = table.filter(pc.is_valid(table["text_high"])).select(TEXTS.names).cast(TEXTS)
            writer.send(keyed, by_hash(keyed["text_high"].to_numpy(), n_pieces))
    for piece in range(n_pieces):
        yield _repeated([_keys(batch) for batch in read_bucket([scratch / "texts.parquet"], piece)])


def _tables(paths: Iterable[Path], columns: Sequence[str]) -> Iterator[pa.Table]:
    for path in paths:
        with opened_table(path) as file:
            for batch in file.iter_batches(LINES_AT_ONCE, columns=list(columns)):
                yield pa.Table.from_batches([batch])


def _keys(lines: Any) -> list[NDArray[Any]]:
    """High and low halves of the keys of texts, and whose they are; documents without words have
    none.
    """
    keyed = lines.filter(pc.is_valid(lines["text_high"]))
    return [np.asarray(keyed[name]) for name in TEXTS.names]


def _repeated(parts: Sequence[Sequence[NDArray[Any]]]) -> tuple[Numbers, Numbers]:
    nothing = [np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int64)]
    high, low, numbers = (np.concatenate(columns) for columns in zip(nothing, *parts, strict=True))
    order = np.argsort(high)
    found = high[order]
    same = (
        found[1:] == found[:-1]
    )  # mostly nobody shares half a key, and what follows is about a few
    order = (
        order[np.concatenate([[False], same]) | np.concatenate([same, [False]])]
        if len(order)
        else order
    )
    order = order[np.lexsort([numbers[order], low[order], high[order]])]
    high, low, numbers = high[order], low[order], numbers[order]
    starts = (
        np.concatenate([[True], (high[1:] != high[:-1]) | (low[1:] != low[:-1])])
        if len(order)
        else np.empty(0, np.bool_)
    )
    sizes = np.diff(np.append(np.flatnonzero(starts), len(order)))
    first, several = np.repeat(numbers[starts], sizes), np.repeat(sizes > 1, sizes)
    return numbers[several], first[several]
