"""``lc pack-similar`` and ``lc buckets``: group whole documents by similarity or by length."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, say, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lc_assets.packing.lengths import BucketCount
    from lc_assets.stages.packing.joined_texts import Packed

Sources = Annotated[
    list[Path],
    typer.Argument(metavar="IN... OUT", help="What to read, and a folder for the packs."),
]
MaxTokens = Annotated[
    int,
    typer.Option(
        "--max-tokens",
        min=1,
        help="Tokens of a pack; parts are never cut, a longer one stands alone.",
    ),
]
Tokenizer = Annotated[
    str, typer.Option("--tokenizer", help="That counts tokens: gpt2, cl100k_base, ..., or a file.")
]
TextField = Annotated[
    str | None,
    typer.Option(
        "--text-field", help="Where a record's text is; by default raw_content, text or content."
    ),
]


def pack_similar(
    sources: Sources,
    max_tokens: MaxTokens,
    neighbours: Annotated[
        int,
        typer.Option(
            "--neighbours", min=1, help="Pages that are looked for around each page of a pack."
        ),
    ] = 3,
    path: Annotated[
        bool,
        typer.Option(
            "--path", help="One path through nearest neighbours instead, as in-context pretraining."
        ),
    ] = False,
    min_similarity: Annotated[
        float, typer.Option("--min-similarity", help="Cosine below which a page is no neighbour.")
    ] = 0.0,
    max_similarity: Annotated[
        float,
        typer.Option("--max-similarity", help="Cosine above which it is the same page over again."),
    ] = 0.95,
    seed: Annotated[
        int, typer.Option("--seed", help="Of the order in which pages begin packs.")
    ] = 64,
    tokenizer: Tokenizer = "gpt2",
    text_field: TextField = None,
    workers: options.Workers = None,
) -> None:
    """Pack pages with those that they are most like, by TF-IDF: for pages without links. Every page
    is in one pack, whole.

    Writes OUT/documents/00000.jsonl.gz and so on: text, and a span for every page.

    Example: lc pack-similar pages.jsonl.gz packed --max-tokens 49152
    """
    from lc_assets.execution.local import executor_of
    from lc_assets.packing.similarity import Similarity
    from lc_assets.stages.packing.similar_packing import SimilarSettings
    from lc_assets.stages.packing.similar_packing import pack_similar as run

    *inputs, out = _named(sources, "lc pack-similar IN OUT --max-tokens 49152")
    similarity = Similarity(
        neighbours=neighbours,
        path=path,
        min_similarity=min_similarity,
        max_similarity=max_similarity,
    )
    settings = SimilarSettings(
        max_tokens=max_tokens,
        similarity=similarity,
        seed=seed,
        tokenizer=tokenizer,
        text_field=text_field,
    )
    show(run(inputs, out, settings, executor=executor_of(workers)), out, what="pages")


def buckets(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="Documents: a file, or a folder of them.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for a folder per bucket.")],
    edges: Annotated[
        str | None,
        typer.Option("--edges", help="Tokens at which a bucket ends, such as 4096,16384."),
    ] = None,
    tokenizer: Tokenizer = "gpt2",
    text_field: TextField = None,
    workers: options.Workers = None,
) -> None:
    """Part documents by their length in tokens, a folder for each bucket; by default 4K, 8K, ...
    128K.

    Example: lc buckets pages.jsonl.gz by-length --edges 8192,65536
    """
    from lc_assets.execution.local import executor_of
    from lc_assets.packing.lengths import EDGES
    from lc_assets.stages.packing.length_bucketing import bucket_corpus

    wanted = EDGES if edges is None else numbers_of(edges)
    found = bucket_corpus(
        [source],
        out,
        edges=wanted,
        tokenizer=tokenizer,
        text_field=text_field,
        executor=executor_of(workers),
    )
    _balance(found.seen, found.kept, found.dropped, what="documents", where="in buckets")
    table(("tokens", "documents", "tokens together", "share of tokens"), _lines(found.buckets))
    say(f"written to {out}")


def show(packed: "Packed", out: Path, *, what: str) -> None:
    """Print the balance, and lengths before and after."""
    _balance(packed.seen, packed.kept, packed.dropped, what=what, where="in packs")
    counts = [
        ("packs", packed.packs),
        (f"of one of the {what} alone", packed.alone),
        (f"longer than {packed.max_tokens:,}", packed.too_long),
    ]
    facts([*counts, *packed.extra.items()])
    heading("Lengths in tokens, as they came and as they are packed")
    pairs = zip(_lines(packed.before), _lines(packed.after), strict=True)
    table(
        ("tokens", what, "share of tokens", "packs", "share of tokens, packed"),
        [(b[0], b[1], b[3], a[1], a[3]) for b, a in pairs],
    )
    say(f"written to {out}")


def numbers_of(listed: str) -> list[int]:
    """Numbers, separated by commas.

    >>> numbers_of("4096, 8192")
    [4096, 8192]

    Raises:
        BadInput: when one is none.
    """
    try:
        return [int(number) for number in listed.split(",")]
    except ValueError as error:
        raise BadInput(f"{listed!r} are no numbers; write them as 4096,16384") from error


def _balance(seen: int, kept: int, dropped: "dict[str, int]", *, what: str, where: str) -> None:
    say(f"{seen:,} {what} = {kept:,} {where} + {sum(dropped.values()):,} left out")
    facts(sorted(dropped.items()))


def _lines(counts: "Sequence[BucketCount]") -> list[tuple[str, int, int, str]]:
    return [
        (count.name, count.n_docs, count.n_tokens, f"{100 * count.share:.1f} %") for count in counts
    ]


def _named(sources: list[Path], example: str) -> list[Path]:
    if len(sources) < 2:
        raise BadInput(f"name what to read and where to write: {example}")
    return sources
