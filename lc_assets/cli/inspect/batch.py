"""``lc batch``: the first rows of a training batch, decoded, with the document of each row."""

from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from lc_assets.cli import options
from lc_assets.cli.printing import say, shortened, table, visible

if TYPE_CHECKING:
    from lc_assets.loaders.arrays import InterleavedRows, ZarrRows
    from lc_assets.stages.lineage.spans import Span

SHOWN_TOKENS = 8
SHOWN_CHARS = 60
MOST_ROWS = 4


def batch(
    path: Annotated[str, Argument(envvar="LC_ROOT")],
    step: Annotated[int, Option(min=0)] = 0,
    rows: Annotated[int | None, Option(min=1)] = None,
    context: Annotated[int, Option(min=1)] = 64,
    split: options.Split = "train",
) -> None:
    """Show the first rows of a training batch: ids, decoded text, and the document of each row.

    Text is escaped as in Python, so control characters are visible and have no effect.

    Args:
        path: a lake, a version of its longcrawl, grid or flat, or a .zarr; gs:// too.
        step: which batch.
        rows: rows of a batch; 4, or all if there are fewer.
        context: tokens of a row of the batch; must divide the rows of the data.

    Example: lc batch lake --step 3 --rows 8 --context 4096
    """
    from lc_assets.errors import BadInput
    from lc_assets.loaders.arrays import InterleavedRows
    from lc_assets.loaders.grid import GridLoader
    from lc_assets.loaders.rows import open_rows

    source = open_rows(path, split)
    n_rows = rows or min(MOST_ROWS, source.n_rows)
    loader = GridLoader(source, batch_rows=n_rows, context_tokens=context)
    if step >= len(loader):
        raise BadInput(
            f"no step {step:,}: with {n_rows:,} rows of {context:,} tokens there are "
            f"{len(loader):,}"
        )
    text = loader[step].text
    say(
        f"step {step:,} of {len(loader):,}: text {text.shape[0]:,} × {text.shape[1]:,} "
        f"{text.dtype}; targets are one token further"
    )
    array = source.sources[0] if isinstance(source, InterleavedRows) else source
    tokenizer = array.tokenizer or "gpt2"
    lines = [
        _line(ids, position, origin_of(source, position), tokenizer)
        for ids, position in zip(text, loader.rows_of(step), strict=True)
    ]
    table(("row", "first tokens", "decoded", "document", "url"), lines)


def _line(ids: Any, position: int, origin: "Span | None", tokenizer: str) -> tuple[Any, ...]:
    where = ("", "") if origin is None else (origin.id, shortened(origin.url, SHOWN_CHARS))
    return (
        f"{position:,}",
        " ".join(map(str, ids[:SHOWN_TOKENS].tolist())),
        visible(shortened(decode(ids[:SHOWN_CHARS], tokenizer), SHOWN_CHARS)),
        *where,
    )


def decode(ids: Any, tokenizer: str = "gpt2") -> str:
    """Text of some ids; end-of-text by its name, invalid UTF-8 as �; empty if the tokenizer is a
    file.
    """
    from lc_assets.errors import LcError
    from lc_assets.formats.tokenizers.named import text_of

    try:
        return text_of(tokenizer, ids.tolist())
    except LcError:  # an array names a tokenizer.json by its digest, without a path
        return ""


def origin_of(source: "ZarrRows | InterleavedRows", position: int) -> "Span | None":
    """The document of a row that a loader reads; None if the array's origin is unknown."""
    from lc_assets.loaders.arrays import InterleavedRows
    from lc_assets.stages.lineage.tracing import rows_of_array

    place = source.place(position) if isinstance(source, InterleavedRows) else (source, position)
    found = rows_of_array(place[0].where, [place[1]])
    return None if found is None else found[1][0][0]
