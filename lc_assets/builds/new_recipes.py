"""A recipe for documents of one's own, as a file that the user may edit."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec

from lc_assets.builds.recipe_files import RECIPE_FILE, parse_recipe, recorded_recipe
from lc_assets.builds.settings.common import Settings
from lc_assets.builds.settings.longpack import (
    PAPER_LINKS,
    PAPER_LONGPACK,
    HtmlIndexSettings,
    LongPackSettings,
    PageLinkSettings,
)
from lc_assets.errors import BadInput
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.sources.settings import SourceSettings

ROW_TOKENS = 2048
HELDOUT_FRACTION = 1 / 128
RULES = "gopher-paper"
Preset = Literal["none", "longpack", "paper"]
"""Whether pages are packed along their links, and by which settings."""


def absolute(place: str, folder: Path = Path()) -> str:
    """An absolute path, of a relative one below a folder; a URL as it is."""
    return place if "://" in place else str((folder / place).absolute())


def source_at(path: str, settings: SourceSettings) -> SourceSettings:
    """The source at a path or URL."""
    return msgspec.structs.replace(settings, path=absolute(path))


def recipe_text(
    source: SourceSettings,
    *,
    rules: str = RULES,
    min_words: int = 0,
    row_tokens: int,
    heldout_fraction: float = HELDOUT_FRACTION,
    packed: bool = True,
    linked: Mapping[str, Settings] = MappingProxyType({}),
) -> str:
    """A recipe for documents of one's own, as TOML.

    >>> "[sources.corpus]" in recipe_text(SourceSettings(path="/data/corpus"), row_tokens=8)
    True
    """
    settings = msgspec.to_builtins(source)
    lines = [f"{name} = {_toml(value)}" for name, value in settings.items()]
    found = f"""\
# Settings that differ from the default recipe; see docs/sources.md.
[sources.{source_name(source.path)}]
{chr(10).join(lines)}

[raw_snapshot]
trust_file_times = true  # a file of the same size and modification time is the same file

[filtered_documents]
rules = {_toml(str(Path(rules).absolute()) if Path(rules).is_file() else rules)}
min_words = {min_words}

[token_documents]
min_tokens = {row_tokens}

[token_grid]  # rows of one document each; shorter documents have none
row_tokens = {row_tokens}
heldout_fraction = {heldout_fraction}

[megatron_rows]
sequence_length = {min(8192, row_tokens)}
"""
    if packed:
        found += f"""\

[packed_rows]  # rows of whole documents of any length
wanted = true
row_tokens = {row_tokens}
{'documents = "both"  # packed documents, and the others' if linked else ""}
"""
    for name, section in linked.items():
        default = msgspec.to_builtins(type(section)())
        own = {
            key: value
            for key, value in msgspec.to_builtins(section).items()
            if value != default[key]
        }
        found += "\n".join(["", f"[{name}]", *(f"{key} = {_toml(own[key])}" for key in own), ""])
    return found


def _sections_of(preset: Preset, pages: HtmlIndexSettings) -> dict[str, Settings]:
    """Sections of a recipe that packs pages along their links; none when it does not."""
    if preset == "none":
        return {}
    archives = tuple(str(Path(path).absolute()) for path in pages.archives)
    is_paper = preset == "paper"
    return {
        "html_index": msgspec.structs.replace(pages, archives=archives),
        "page_links": PAPER_LINKS if is_paper else PageLinkSettings(),
        "longpack_documents": PAPER_LONGPACK if is_paper else LongPackSettings(wanted=True),
    }


def source_name(source: str) -> str:
    """A source's name, derived from the last part of its path.

    >>> source_name("/data/my corpus/"), source_name("gs://bucket/2024-10")
    ('my_corpus', 's2024_10')
    """
    last = source.rstrip("/").rpartition("/")[2].partition(".")[0]
    safe = re.sub(r"[^A-Za-z0-9]+", "_", last).strip("_")[:19] or "corpus"
    return safe if safe[0].isalpha() else f"s{safe}"


def record_new_recipe(
    lake: str,
    source: SourceSettings,
    *,
    rules: str,
    min_words: int,
    row_tokens: int,
    preset: Preset,
    pages: HtmlIndexSettings,
) -> Path | None:
    """Record the recipe for a source in a lake that has none or the same; return the recorded file.

    Raises:
        BadInput: when the lake has another, or the options exclude each other.
    """
    content = recipe_text(
        source,
        rules=rules,
        min_words=min_words,
        row_tokens=row_tokens,
        linked=_sections_of(preset, pages),
    )
    found = recorded_recipe(lake)
    if found is None:
        parse_recipe(content, where="these options")
        open_lake(lake).replace_note(RECIPE_FILE, content.encode())
        found = recorded_recipe(lake)
    if found is not None and found.read_text("utf-8") != content:
        raise BadInput(
            f"{found}: holds other settings than these options; edit it and run `lc rebuild --lake "
            f"{lake} --recipe {found}`, or choose another --lake"
        )
    return found


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
