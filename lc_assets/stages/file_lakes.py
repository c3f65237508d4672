"""Lakes made of files by one command: the stages of the chain, run over files into a folder.

``lc dedup IN... OUT`` is the stage `clean_documents` and all that it reads, over a source per IN,
published in OUT as in any lake. Running it again reuses what is current. IN may be the OUT of an
earlier command: its documents are read, under the ids that they have there.
"""

import contextlib
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import Any

import msgspec

from lc_assets.builds.checks import DOCUMENTS_SUFFIX, JSON_SUFFIX, REST_SUFFIX, TABLE_SUFFIX
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.recipe_files import RECIPE_FILE, hint, toml_of
from lc_assets.builds.settings.documents import (
    CleanDocumentsSettings,
    FilteringSettings,
    NearDuplicateSettings,
)
from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.builds.stage import (
    BuildContext,
    Built,
)
from lc_assets.builds.verified_reads import verified_reads
from lc_assets.compiling import interpreted
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.corpora.containers import SUFFIXES, TEXT
from lc_assets.formats.corpora.reading import corpus_files
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.partition import CURRENT
from lc_assets.lake.staging import adopt
from lc_assets.lake.upstream import Upstream
from lc_assets.sources.files import source_of_files
from lc_assets.sources.opening import file_partitions
from lc_assets.sources.settings import SourceSettings
from lc_assets.stages.catalogue import NAMES, needed_by, stage_named
from lc_assets.vocabulary import NO_RULES

Versions = dict[str, dict[str, Built]]
"""Versions by stage and partition."""

DOCUMENT_STAGES = ("longpack_documents", "clean_documents", "filtered_documents")
"""Stages that publish documents, the one to be read first."""

TOGETHER = "documents"
"""Name of the one source of all inputs."""

ALL_DOCUMENTS = {
    "filtered_documents": FilteringSettings(rules=NO_RULES, min_words=0),
    "near_duplicate_pairs": NearDuplicateSettings(near=False),
    "token_grid": GriddingSettings(heldout_fraction=0),
    "clean_documents": CleanDocumentsSettings(wanted=True),
}
"""Sections of a recipe that removes no document."""

_SUFFIXES = {
    "longpack_documents": (DOCUMENTS_SUFFIX, REST_SUFFIX),
    "clean_documents": (JSON_SUFFIX, TABLE_SUFFIX),
    "filtered_documents": (DOCUMENTS_SUFFIX,),
}
_DROPPING = {
    "clean_documents",
    "token_documents",
    "packing_tokens",
    "packed_rows",
    "length_buckets",
    "length_report",
}
"""Stages that drop documents, of which no command builds two that drop the same."""
_MOST_NAME_CHARS = 20
_INTERPRETED_BYTES = 1 << 14
_PLAIN = {".jsonl", ".json", ".txt"}
"""Endings of files that are not compressed."""
_PACKED = 8
"""Bytes of text that a byte of another file is taken for."""


def context_over_files(
    inputs: Sequence[Path],
    out: Path,
    *,
    executor: Executor,
    settings: Mapping[str, Any],
    text_field: str | None = None,
    json_keys: Sequence[str] = (),
    together: bool = False,
    **how: Any,
) -> BuildContext:
    """Prepare to build stages over files, or over the documents of lakes, into a lake.

    Args:
        inputs: files and folders of documents, each a source with one partition; or lakes, of which
            every partition is a source.
        out: a lake written by an earlier run, an empty folder, or a new path.
        executor: runs the tasks.
        settings: sections of the recipe that differ from `ALL_DOCUMENTS`, by name.
        text_field: record field with the text; by default the usual fields.
        json_keys: several such fields instead: each of an input is a source, ``INPUT_FIELD``.
        together: whether all inputs form one partition, so that pages of different inputs can be
            packed together.
        how: other settings of the sources.

    Raises:
        BadInput: when an input does not exist or contains ``out``, or ``out`` is named like a file
            of documents or holds something other than a lake of these inputs.
    """
    if json_keys and text_field:
        raise BadInput("name one text_field or several json_keys, not both")
    if out.name.endswith((*SUFFIXES, *TEXT)) and not out.is_dir():
        raise BadInput(f"{out}: would be a folder, not a file of documents; name it otherwise")
    for path in inputs:
        if out.resolve().is_relative_to(path.resolve()):
            raise BadInput(f"{out} lies in {path}, which is read: name a folder elsewhere")
    sources: dict[str, SourceSettings] = {}
    for path, field in product(inputs, dict.fromkeys(json_keys) or [text_field]):
        for name, source in _sources_of(path, field):
            named = _with_field(name, field) if json_keys and field else name
            sources[_unused(named, sources)] = msgspec.structs.replace(source, **how)
    if together:
        one = source_of_files(document_files(inputs))
        sources = {TOGETHER: msgspec.structs.replace(one, text_field=text_field or "", **how)}
    recipe = Recipe(sources=sources, **{**ALL_DOCUMENTS, **settings})
    _require_own_lake(out, file_partitions(sources))
    return BuildContext(lake=Lake(out), upstream=Upstream(""), recipe=recipe, executor=executor)


def build_for(context: BuildContext, target: str) -> Versions:
    """Build a stage and all that it reads, of every partition of the context's sources; record
    the recipe, by which `lc plan` and `lc rebuild` find what is out of date later.

    Returns:
        What was built or found current: by stage, in the chain's order, then by partition.
    """
    return build_in_each([context], target)[0]


def build_in_each(contexts: Sequence[BuildContext], target: str) -> list[Versions]:
    """Build a stage in several lakes, by recipes that differ in nothing that it reads: this is
    built in the first lake, and has second names in the others. See `build_for`.
    """
    first = contexts[0]
    keys, needed = file_partitions(first.recipe.sources), needed_by(_for_target(first, target))
    made: list[Versions] = [{} for _ in contexts]
    with contextlib.ExitStack() as stack:
        for context in contexts:
            content = toml_of(_for_target(context, target), Path.cwd()).encode()
            require = functools.partial(_require_own_lake, context.lake.root, keys)
            stack.enter_context(context.lake.holding_note(RECIPE_FILE, content, require=require))
        stack.enter_context(interpreted(_is_small(first.recipe)))
        stages = [stage_named(name) for name in NAMES if name in needed]
        for place, stage in enumerate(stages):
            following = tuple(stages[place + 1 :])
            of_stage = keys if stage.partitioned_by == "snapshot" else (GLOBAL,)
            for number, context in enumerate(contexts):
                if number == 0 or stage.name == target:
                    also = tuple(contexts[number + 1 :]) if stage.name == target else ()
                    where = replace(context, also=also, following=following)
                    built = {key: stage.build(where, key) for key in of_stage}
                else:
                    built = {
                        key: _adopted(found, context.lake)
                        for key, found in made[0][stage.name].items()
                    }
                made[number][stage.name] = built
    return made


def _for_target(context: BuildContext, target: str) -> Recipe:
    return msgspec.structs.replace(context.recipe, target=target)


def _adopted(found: Built, lake: Lake) -> Built:
    published = found.published
    partition = lake.partition(published.stage, published.key)
    return Built(published=adopt(published, partition), reused=True)


def counts_of(built: Mapping[str, Mapping[str, Built]]) -> Counts:
    """Counts over all partitions: documents read from the files, documents kept after the last
    stage, and reasons for the others.
    """
    filtered = Counts.total(found.counts for found in built["filtered_documents"].values())
    last = Counts.total(found.counts for found in list(built.values())[-1].values())
    dropped = Counter(filtered.dropped)
    for name, versions in built.items():
        for found in versions.values() if name in _DROPPING else ():
            dropped.update(found.counts.dropped)
    return Counts(
        seen=filtered.seen,
        kept=last.kept,
        dropped=dict(dropped),
        failed_rules=dict(dropped),
        extra=last.extra,
    )


def document_files(inputs: Iterable[Path]) -> list[Path]:
    """Files of documents, of files, folders and lakes, whose files are verified.

    Raises:
        BadInput: when an input does not exist or has no documents.
        DamagedInput: when a file of a lake is missing or damaged.
    """
    with verified_reads(LocalExecutor()):
        sources = [source for path in inputs for _, source in _sources_of(path, None)]
    return [file for source in sources for file in corpus_files(_paths_of(source))]


def _paths_of(source: SourceSettings) -> list[Path]:
    return [Path(source.path) / name for name in source.files] or [Path(source.path)]


def is_lake(folder: Path) -> bool:
    """Whether a folder holds a lake: a partition of a stage that was published in it."""
    return any(next(folder.glob(f"{name}/*/{CURRENT}"), None) for name in NAMES)


def _sources_of(path: Path, text_field: str | None) -> Iterator[tuple[str, SourceSettings]]:
    if not path.is_dir() or not is_lake(path):
        name = path.name.partition(".")[0] if path.is_file() else path.resolve().name
        yield name, SourceSettings(path=str(path), text_field=text_field or "")
        return
    lake = Lake(path)
    stage = next((name for name in DOCUMENT_STAGES if lake.keys(name)), None)
    if stage is None:
        raise BadInput(f"{path}: a lake without documents: none of {', '.join(DOCUMENT_STAGES)}")
    for key in lake.keys(stage):
        published = lake.partition(stage, key).require()
        files = [
            fact.path for fact in published.receipt.files if fact.path.endswith(_SUFFIXES[stage])
        ]
        if stage == "clean_documents":
            tables = [name for name in files if name.endswith(TABLE_SUFFIX)]
            files = tables or files
        folder = str(published.only(*files))
        yield key, SourceSettings(path=folder, files=tuple(files), text_field=text_field or "")


def _is_small(recipe: Recipe) -> bool:
    """Whether the texts are so few that kernels run sooner in the interpreter, which takes 20 µs a
    byte, than by numba, whose import takes 0.4 s.
    """
    paths = [path for source in recipe.sources.values() for path in _paths_of(source)]
    paths += map(Path, recipe.contaminated_documents.against)
    n_bytes = 0
    for file in (file for path in paths for file in chain([path], path.rglob("*"))):
        if file.is_file():
            n_bytes += file.stat().st_size * (1 if file.suffix in _PLAIN else _PACKED)
        if n_bytes > _INTERPRETED_BYTES:  # without listing the rest of a large folder
            return False
    return all(path.exists() for path in paths)


def _with_field(name: str, field: str) -> str:
    """A source's name that ends in its field, if that is short enough.

    >>> _with_field("documents-of-the-year", "title"), _with_field("web", "text")
    ('documents-of-t_title', 'web_text')
    """
    return f"{name[: max(_MOST_NAME_CHARS - 1 - len(field), 1)]}_{field}"


def _unused(name: str, known: Mapping[str, object]) -> str:
    """A source's name like ``name`` that no other source has."""
    safe = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    safe = (safe if safe[:1].isalpha() else f"in_{safe}".rstrip("_"))[:_MOST_NAME_CHARS]
    number, found = 2, safe
    while found in known:
        found = f"{safe[: _MOST_NAME_CHARS - len(str(number)) - 1]}_{number}"
        number += 1
    return found


def _require_own_lake(out: Path, keys: Sequence[str]) -> None:
    """Refuse a folder that holds anything but a lake of the partitions ``keys``."""
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: is a file; name a folder")
    if not out.is_dir():
        return
    foreign = [
        path.name
        for path in out.iterdir()
        if path.name not in (*NAMES, RECIPE_FILE) and not path.name.startswith(".")
    ]
    if foreign:
        raise BadInput(
            f"{out}: holds {', '.join(sorted(foreign)[:3])}, which no stage wrote; name an empty "
            "folder, or the OUT of an earlier run"
        )
    others = set(Lake(out).keys("raw_snapshot")) - set(keys)
    if others:
        raise BadInput(
            f"{out}: was made of other input, {', '.join(sorted(others)[:3])}; name another "
            "folder, or add that input"
        )


def replaced(settings: Any, **changes: Any) -> Any:
    """Settings with other values, checked as in a recipe's file.

    Raises:
        BadInput: when a value is not acceptable.
    """
    try:
        given = msgspec.to_builtins(settings) | changes
        return msgspec.convert(given, type(settings))
    except msgspec.ValidationError as error:
        possible = hint(str(error), type(settings))
        raise BadInput(f"not a setting of {type(settings).__name__}: {error}{possible}") from error
