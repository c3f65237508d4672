"""The recipe: every setting of every stage, in one value, from one TOML file.

Assets, planner, command line and tests read the same recipe, so what the planner calls current is
what an asset would build. A file needs only what differs from the defaults below::

    [filtering]
    min_words = 12000
    [filtering.thresholds]
    no_alphabetic_words = { at_most = 0.4 }

Unknown names, wrong types and impossible sizes are refused, with the place in the file and what
could stand there.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from lc_assets.errors import BadInput
from lc_assets.stages.documents.document_settings import (
    CleanDocumentsSettings,
    DeduplicationSettings,
    FilteringSettings,
    RawSettings,
)
from lc_assets.stages.longpack.longpack_settings import (
    LongPackSettings,
    PackingSettings,
    ReportSettings,
    WebSettings,
)
from lc_assets.stages.reports.card_settings import CardSettings
from lc_assets.stages.rows.row_settings import (
    FlatteningSettings,
    GriddingSettings,
    MegatronSettings,
    MixSettings,
    TokenizingSettings,
)
from lc_assets.stages.settings import (
    DecontaminationSettings,
    PrivacySettings,
    Settings,
    WithdrawalSettings,
)
from lc_assets.vocabulary import parse_snapshot

PACKED: Final = "packed_rows"
WHOLE_ROWS: Final = "rows"
"""What packed rows are called in a mix, and what their Megatron files must hold there."""


class Recipe(Settings, frozen=True, kw_only=True):
    """All settings of the chain.

    Attributes:
        mixes: by name, which is the name of a folder too.
    """

    raw: RawSettings = RawSettings()
    filtering: FilteringSettings = FilteringSettings()
    privacy: PrivacySettings = PrivacySettings()
    deduplication: DeduplicationSettings = DeduplicationSettings()
    decontamination: DecontaminationSettings = DecontaminationSettings()
    withdrawals: WithdrawalSettings = WithdrawalSettings()
    clean_documents: CleanDocumentsSettings = CleanDocumentsSettings()
    tokenizing: TokenizingSettings = TokenizingSettings()
    gridding: GriddingSettings = GriddingSettings()
    flattening: FlatteningSettings = FlatteningSettings()
    web: WebSettings = WebSettings()
    longpack: LongPackSettings = LongPackSettings()
    packing: PackingSettings = PackingSettings()
    reports: ReportSettings = ReportSettings()
    megatron: MegatronSettings = MegatronSettings()
    card: CardSettings = CardSettings()
    mixes: dict[str, MixSettings] = msgspec.field(
        default_factory=lambda: {"by-tokens": MixSettings(), "equal": MixSettings(weights="equal")}
    )

    def __post_init__(self) -> None:
        self.decontamination.require_no_cutting()
        if self.tokenizing.min_tokens < self.gridding.row_tokens:
            raise BadInput(
                f"tokenizing.min_tokens ({self.tokenizing.min_tokens:,}) is below "
                "gridding.row_tokens "
                f"({self.gridding.row_tokens:,}): shorter documents would not fill a row"
            )
        kept, wanted = (
            self.tokenizing.first_tokens,
            self.gridding.row_tokens * self.gridding.rows_per_document,
        )
        if kept is not None and kept < wanted:
            raise BadInput(
                f"tokenizing.first_tokens ({kept:,}) is below what gridding may take of a "
                "document: "
                f"{self.gridding.rows_per_document:,} rows of {self.gridding.row_tokens:,} tokens"
            )
        for name, mix in self.mixes.items():
            _require_name(name)
            if PACKED in mix.kinds:
                require_whole_rows(name, self.packing.megatron)


def require_whole_rows(mix: str, megatron: str) -> None:
    """Refuse a mix over packed rows whose documents of Megatron's are spans: its samples would cut
    across rows.

    Raises:
        BadInput: when ``megatron``, as `PackingSettings` has it, is not ``rows``.
    """
    if megatron != WHOLE_ROWS:
        raise BadInput(
            f"the mix {mix!r} takes packed rows, whose Megatron files hold {megatron}: its "
            "samples would join and cut these anew; "
            'set packing.megatron = "rows" and make the rows again'
        )


def _require_name(mix: str) -> None:
    try:
        parse_snapshot(mix)
    except BadInput as error:
        raise BadInput(
            f"a mix cannot be called {mix!r}: wanted at most 40 letters, digits, '-' and '_', "
            "such as 'by-tokens'"
        ) from error


def parse_recipe(content: str | bytes, *, where: str) -> Recipe:
    r"""Read a recipe from TOML; ``where`` names it in errors.

    >>> parse_recipe("[filtering]\nmin_words = 12000", where="mine.toml").filtering.min_words
    12000

    Raises:
        BadInput: for anything that is not a recipe: says which name or value, and where.
    """
    try:
        return msgspec.toml.decode(content, type=Recipe)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadInput(f"{where}: not a recipe: {error}{_hint(str(error))}") from error


def _hint(complaint: str) -> str:
    """What could stand at the place where msgspec found an unknown name or value; empty for other
    complaints.

    >>> _hint("Invalid enum value 'xx' - at `$.raw.buckets[0]`")
    '; there are head, middle'
    """
    if not complaint.startswith(("Object contains unknown field", "Invalid enum value")):
        return ""
    *_, place = complaint.rpartition("at `$")
    steps = re.findall(r"\.(\w+)|\[", place) if "at `$" in complaint else []
    return f"; there are {', '.join(_possible(msgspec.inspect.type_info(Recipe), steps))}"


def _possible(kind: msgspec.inspect.Type, steps: list[str]) -> Iterator[str]:
    """Names of the settings, or values, that a type allows ``steps`` further down; an empty step is
    an item or an entry.
    """
    if isinstance(kind, msgspec.inspect.UnionType):
        for choice in kind.types:
            yield from _possible(choice, steps)
    elif isinstance(kind, msgspec.inspect.LiteralType) and not steps:
        yield from map(str, kind.values)
    elif isinstance(kind, msgspec.inspect.StructType):
        if not steps:
            yield from (field.name for field in kind.fields)
        for field in kind.fields:
            if steps and field.name == steps[0]:
                yield from _possible(field.type, steps[1:])
    elif isinstance(kind, msgspec.inspect.VarTupleType) and steps:
        yield from _possible(kind.item_type, steps[1:])
    elif isinstance(kind, msgspec.inspect.DictType) and steps:
        yield from _possible(kind.value_type, steps[1:])


def read_recipe(path: Path | None, *, withdrawn: str = "") -> Recipe:
    """The recipe of a file, or the default recipe when there is none.

    Args:
        path: the file.
        withdrawn: further lists of withdrawals, as `lists_named` has them.
    """
    if path is not None and not path.is_file():
        raise BadInput(f"{path}: no such recipe file")
    recipe = Recipe() if path is None else parse_recipe(path.read_bytes(), where=str(path))
    named = recipe.withdrawals.lists + tuple(
        name for name in lists_named(withdrawn) if name not in recipe.withdrawals.lists
    )
    return msgspec.structs.replace(
        recipe, withdrawals=msgspec.structs.replace(recipe.withdrawals, lists=named)
    )


def lists_named(words: str) -> tuple[str, ...]:
    """The paths that ``LC_WITHDRAWN`` names, separated as in ``PATH``.

    >>> lists_named("a.csv:b.csv"), lists_named("")
    (('a.csv', 'b.csv'), ())
    """
    return tuple(name for name in words.split(os.pathsep) if name)


def plain(settings: Settings) -> dict[str, Any]:
    """Settings as JSON-like values, for a fingerprint."""
    values: dict[str, Any] = msgspec.to_builtins(settings)
    return values
