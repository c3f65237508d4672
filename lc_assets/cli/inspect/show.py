"""``lc show``: the kind of an artefact, whether it is intact, and its receipt; ``lc verify``:
whether a data set is whole, byte by byte.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument

from lc_assets.cli.printing import facts, print_error, say, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from lc_assets.cli.inspect.files import Artefact

DAMAGED = 1
MOST_DAMAGE = 50


def show(
    path: Annotated[str, Argument()],
    verify: bool = False,
) -> None:
    """Show what an artefact is, whether it is intact, and its receipt; exit with 1 if it is
    damaged.

    Args:
        path: a lake, a folder in it (gs:// too), an array, a table, a Megatron data set, an
            upstream.
        verify: read every byte instead of names and sizes.

    Example: lc show lake/token_grid/2023-06 --verify
    """
    from lc_assets.cli.inspect.in_lake import recognize

    artefact = recognize(path, verify=verify)
    say(f"{path}: {artefact.kind}", style="bold")
    show_artefact(artefact)
    found = f"damaged in {len(artefact.damage):,} places" if artefact.damage else "whole"
    end_with(artefact.damage, f"{found} ({artefact.checked})" if artefact.checked else "")


def show_artefact(artefact: "Artefact") -> None:
    """Print the facts and tables of an artefact."""
    if artefact.facts:
        facts(artefact.facts)
    for title, columns, lines in artefact.tables:
        table(columns, lines, title=title)


def verify(
    path: Annotated[str, Argument(metavar="PREFIX")],
    tokenizer: str | None = None,
    vocab_size: int | None = None,
    append_eod: bool = False,
) -> None:
    """Read every byte: header, sizes, offsets, boundaries, ids, document ends, digests; exit with 1
    if damaged.

    Expectations come from the receipt beside the data set, if there is one, and from the options.

    Args:
        path: a Megatron data set, or anything that `lc show --verify` accepts.
        tokenizer: the expected tokenizer.
        vocab_size: upper bound of ids, if no tokenizer is named.
        append_eod: every document must end with the tokenizer's end of text.

    Example: lc verify data/mine --tokenizer gpt2
    """
    from lc_assets.cli.inspect.files import is_megatron
    from lc_assets.formats.megatron.idx import bin_path
    from lc_assets.formats.tokenizers.named import located, vocabulary_of
    from lc_assets.stages.megatron.megatron_merging import prefix_of
    from lc_assets.stages.megatron.megatron_verifying import verify_data_set

    prefix = prefix_of(_on_this_machine(path))
    if not is_megatron(prefix) and not bin_path(prefix).is_file():
        show(path, verify=True)
        return
    vocabulary = vocabulary_of(located(tokenizer)) if tokenizer else None
    eod = vocabulary.eot if vocabulary else None
    if append_eod and eod is None:
        raise BadInput("--append-eod needs a --tokenizer that has an end of text")
    n_ids = vocabulary.n_ids if vocabulary else vocab_size
    found = verify_data_set(prefix, n_ids=n_ids, eod=eod, appended=append_eod)
    facts(found.facts)
    for warning in found.warnings:
        print_error(f"warning: {warning}")
    end_with(found.damage, f"damaged in {len(found.damage):,} places" if found.damage else "whole")


def end_with(damage: Sequence[str], conclusion: str) -> None:
    """Print what is damaged and a conclusion; exit with 1 if anything is."""
    for sentence in damage[:MOST_DAMAGE]:
        print_error(sentence)
    if conclusion:
        say(conclusion)
    raise typer.Exit(DAMAGED if damage else 0)


def _on_this_machine(where: str) -> Path:
    """The path itself; for a file of a version in a bucket, the path of its copy."""
    from lc_assets.cli.inspect.in_lake import copy_of
    from lc_assets.lake.bucket import is_in_bucket
    from lc_assets.lake.located import located

    found = located(where) if is_in_bucket(where) else None
    return copy_of(found, verify=True) if found is not None and found.within else Path(where)
