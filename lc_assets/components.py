"""The chain as Dagster components: a few lines of another project's ``defs.yaml`` make its assets,
checks, jobs, sensors and schedules, on the lake that they name::

    type: lc_assets.components.CorpusChain
    attributes:
      lake: lake
      upstream: corpus
    ---
    type: lc_assets.components.PackedRows
    attributes:
      row_tokens: 8192
    ---
    type: lc_assets.components.Mix
    attributes:
      name: by-tokens

`PackedRows` and `Mix` are sections of the chain's recipe, and have its settings as attributes. They
may be in files of their own, anywhere in the project. A section is in one place: one that the
recipe has, too, is refused. A project has one chain: assets of all lakes have the same keys.
"""

import os
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import dagster as dg
import msgspec
import pydantic

from lc_assets.builds.new_recipes import absolute
from lc_assets.builds.recipe_files import hint, section_of
from lc_assets.builds.settings.common import Settings, attributes_of
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.settings.rows import MixSettings
from lc_assets.errors import BadInput
from lc_assets.vocabulary import REDPAJAMA_V2

TEMPLATE = {"type": "string", "pattern": r"\{\{.*\}\}"}
"""JSON schema of what Dagster replaces, such as ``{{ env.ROW_TOKENS | int }}``."""


class CorpusChain(dg.Component, dg.Model, dg.Resolvable):
    """The chain over one lake, with the sections that the project's `PackedRows` and `Mix` add to
    its recipe. Relative paths are relative to the folder of ``defs.yaml``.

    Attributes:
        lake: folder, or ``gs://bucket/folder``, in which everything is published.
        upstream: RedPajama-V2, or its layout: a folder or a URL.
        crawl: the crawl's own archives, for LongPack: a folder or a URL.
        recipe: TOML file of what differs from the default recipe; by default the lake's own.
        withdrawn: a list of withdrawals besides the recipe's.
        snapshots: text file with further snapshots of one's own.
        workers: processes that one stage uses; 0 for one per processor.
        executor: a Ray cluster's address; by default this machine.
        task_seconds: time limit of a shard; 0 for none.
        automation: whether sensors and schedules run from the start.
    """

    lake: str
    upstream: str = REDPAJAMA_V2
    crawl: str = ""
    recipe: str = ""
    withdrawn: str = ""
    snapshots: str = ""
    workers: int = 0
    executor: str = ""
    task_seconds: float = 0.0
    automation: bool = False

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The code location.

        Raises:
            BadInput: when recipe, sections or snapshots cannot be read.
        """
        from lc_assets.definitions import build_defs  # makes those of the environment, too

        settings = self.model_dump()
        for name in ("lake", "upstream", "crawl", "recipe", "withdrawn", "snapshots"):
            settings[name] = settings[name] and absolute(settings[name], context.path)
        settings["workers"] = self.workers or os.cpu_count() or 1
        tree = context.component_tree
        found: list[RecipeSection] = [
            *tree.get_all_components(PackedRows),
            *tree.get_all_components(Mix),
        ]
        return build_defs(**settings, sections="\n".join(sorted(one.toml() for one in found)))


class RecipeSection(dg.Component):
    """A section of the recipe of the project's `CorpusChain`, which makes the assets.

    Attributes:
        kind: its attributes' type.
        values: the attributes that are given.
    """

    kind: ClassVar[type[Settings]]

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    @abstractmethod
    def toml(self) -> str:
        """The section."""

    @classmethod
    def get_model_cls(cls) -> type[pydantic.BaseModel]:
        """The attributes as Dagster wants them; `load` compares them with `kind`."""

        class Attributes(pydantic.BaseModel, extra="allow"):
            @classmethod
            def __get_pydantic_json_schema__(cls, *_: Any) -> dict[str, Any]:
                return schema

        schema = schema_of(cls.kind)
        return Attributes

    @classmethod
    def load(cls, attributes: pydantic.BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """The component, with templates replaced.

        Raises:
            BadInput: names a wrong attribute.
        """
        given = (attributes.model_extra if attributes else None) or {}
        values = context.resolution_context.at_path("attributes").resolve_value(dict(given))
        try:
            msgspec.convert(values, cls.kind, str_keys=True)
        except msgspec.ValidationError as error:
            message = f"{cls.__name__}: {error}{hint(str(error), cls.kind)}"
            raise BadInput(message) from error
        return cls(values)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """None of its own: the chain's are of a recipe with this section.

        Raises:
            BadInput: when the project has no chain.
        """
        if not context.component_tree.get_all_components(CorpusChain):
            raise BadInput(
                f"{type(self).__name__} is a section of a CorpusChain's recipe: this project needs "
                "a component of the type lc_assets.components.CorpusChain"
            )
        return dg.Definitions()


def schema_of(kind: type[Settings]) -> dict[str, Any]:
    """The JSON schema of settings, without references, whose values may be templates; by it
    ``dg check yaml`` names wrong attributes.
    """
    kinds = msgspec.json.schema(kind)["$defs"]
    schema: dict[str, Any] = _inlined(kinds[kind.__name__], kinds)
    for base in reversed(kind.__mro__):
        for name, meaning in attributes_of(base).items():
            schema["properties"][name]["description"] = meaning
    return schema


def _inlined(schema: Any, kinds: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(one, kinds) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(kinds[schema["$ref"].rpartition("/")[2]], kinds)
    found = {name: _inlined(value, kinds) for name, value in schema.items()}
    is_value = "enum" in found or found.get("type") in ("boolean", "integer", "number")
    return {"if": TEMPLATE, "else": found} if is_value else found


class PackedRowsAttributes(PackingSettings):
    """The recipe's settings of packed rows.

    Attributes:
        wanted: whether to build packed rows.
    """

    wanted: bool = True


class PackedRows(RecipeSection):
    """Rows of whole documents of any length, packed from the chain's documents."""

    kind = PackedRowsAttributes

    def toml(self) -> str:
        """The section `packed_rows`."""
        return section_of(("packed_rows",), {"wanted": True, **self.values})


class MixAttributes(MixSettings, kw_only=True):
    """The recipe's settings of a mix, and its name.

    Attributes:
        name: of the mix, a partition of `blended_mix`.
    """

    name: str


class Mix(RecipeSection):
    """One blend of the chain's snapshots. Where there is one, the recipe's default mixes are not
    built.
    """

    kind = MixAttributes

    def toml(self) -> str:
        """The section ``blended_mix.NAME``."""
        values = dict(self.values)
        return section_of(("blended_mix", values.pop("name")), values)
