"""The columns of published tables: what each contains, and from which columns it was made.

Both are in ``presets/columns.json``: ``meanings`` by column, one phrase per name, where a name that
two tables use for different things has both; and ``origins`` by stage and column, the columns that
it was made from as ``stage.column``, separated by spaces. Types and nulls: docs/formats/tables.md.
"""

from functools import cache
from importlib import resources

import msgspec
import pyarrow as pa

UNKNOWN = "as measured by a rule"

PERPLEXITY = "ccnet_perplexity"
"""Column of the perplexity that CCNet published with a document."""
PLACES = pa.field("source_places", pa.list_(pa.int64()))
"""Column of documents whose lines were edited: which characters of the source's text are left, as
`lc_assets.text.rules.line_rules.Edited.places` has them.
"""


class Columns(msgspec.Struct, frozen=True):
    """What is known of columns; see the module."""

    meanings: dict[str, str]
    origins: dict[str, dict[str, str]]


@cache
def known_columns() -> Columns:
    """Read the package's file."""
    content = resources.files("lc_assets").joinpath("presets/columns.json").read_bytes()
    return msgspec.json.decode(content, type=Columns)


def meaning(column: str) -> str:
    """The description of a column; one without is what a rule measured."""
    return known_columns().meanings.get(column, UNKNOWN)


def origins_of(stage: str) -> dict[str, str]:
    """The columns from which those of a stage's table were made."""
    return known_columns().origins.get(stage, {})
