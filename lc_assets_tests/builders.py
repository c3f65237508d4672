"""Build small, complete inputs for tests: an upstream in RedPajama-V2's layout, a build context,
and a lake.

Everything is made up, deterministic, and small enough that the whole chain takes well under a
second. Words are common English ones, each one GPT-2 token after a space, so a document of n words
has n tokens or one or two more.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.documents import FilteringSettings, RawSettings
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.settings.rows import (
    GriddingSettings,
    MegatronSettings,
    MixSettings,
    TokenizingSettings,
)
from lc_assets.builds.stage import (
    BuildContext,
    Built,
    Stage,
    StagingFolder,
)
from lc_assets.counts import Counts
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.redpajama.documents import DocumentRecord, write_documents, write_duplicates
from lc_assets.formats.redpajama.signals import write_signals
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.sample.pages import Page
from lc_assets.sample.web import write_crawl
from lc_assets.sample.writing import CRAWL
from lc_assets.sources import redpajama_v2
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.planning import keys_of
from lc_assets.text.signals.signals import signals_of
from lc_assets.vocabulary import Shard, parse_snapshot
from lc_assets_tests.linked_pages import fetched_pages
from lc_assets_tests.named_draws import rng_for

SNAPSHOTS = ("2023-06", "2023-14")
TAGS = ("0000/en_head", "0000/en_middle", "0001/en_head")

TINY_ROW_TOKENS = 64
TINY_MIN_WORDS = 40
"""Documents of at least so many words but too few tokens pass the filter, and the tokenizer drops
them.
"""

N_LONG = 8
"""Long documents per shard, 70 to 140 words each; all become rows except planted duplicates."""

COMMON_WORDS = """
the of and to in is that it was for on are as with his they at be this from have or by one had not but what all were
when we there can an your which their said if do will each about how up out them then she many some so these would
other into has more her two like him see time could no make than first been its who now people my made over did down
only way find use may water long little very after words called just where most know get through back much before go
good new write our used me man too any day same right look think also around another came come work three word must
because does part even place well such here take why things help put years different away again off went old number
great tell men say small every found still between name should home big give air line
"""

WORDS = tuple(COMMON_WORDS.split())

SURPRISES = (
    "\u00ab na\u00efve \u00bb",
    "<|endoftext|>",
    "\u65e5\u672c",
    "[bold]",
    "\x1b[31m",
    '"quoted"\\',
    "\ttab",
)
"""Strings from web pages that a tokenizer, a table or a terminal could mishandle."""


def tiny_upstream(
    folder: Path, *, snapshots: Sequence[str] = SNAPSHOTS, tags: Sequence[str] = TAGS, seed: int = 0
) -> Path:
    """Write a RedPajama-V2-shaped upstream of a few made-up documents per shard; return its folder.

    Per shard, in this order: `N_LONG` documents that fill a row; one with too few tokens; one with
    too few words; one of symbols, which the rules drop; and a duplicate of the first. Listings,
    documents, signals and duplicates are written; so is, in the folder ``crawl``, the crawl that
    the documents come from.
    """
    for snapshot in map(parse_snapshot, snapshots):
        shards = [Shard.parse(f"{snapshot}/{tag}") for tag in tags]
        for shard in shards:
            write_shard(folder, shard, tiny_documents(shard, seed=seed), duplicates=[N_LONG + 3])
        for language in sorted({shard.language for shard in shards}):
            path = folder / redpajama_v2.listing_path(snapshot, language)
            path.parent.mkdir(parents=True, exist_ok=True)
            redpajama_v2.write_listing(
                path, [shard for shard in shards if shard.language == language]
            )
        tiny_crawl(
            folder / CRAWL / snapshot,
            [record for shard in shards for record in tiny_documents(shard, seed=seed)],
        )
    return folder


def tiny_crawl(folder: Path, records: Sequence[DocumentRecord]) -> None:
    """Write a crawl with the pages of some documents, linked to each other, and its index."""
    pages = [
        (
            Page(url=found.url, title=found.title, lines=tuple(found.raw_content.split("\n"))),
            found.date_download,
        )
        for found in records
    ]
    urls = [found.url for found in records]
    write_crawl(folder, fetched_pages(pages, urls=urls, seed=0))


def tiny_documents(shard: Shard, *, seed: int = 0) -> list[DocumentRecord]:
    """The made-up documents of one shard."""
    rng = rng_for("tiny documents", seed=seed, key=shard.tag)
    texts = [made_up_text(rng, n_words=int(rng.integers(70, 140))) for _ in range(N_LONG)]
    texts += [
        made_up_text(rng, n_words=TINY_MIN_WORDS + 2),
        made_up_text(rng, n_words=12),
        "# # # # ... \u2022 # " * 30,
        texts[0],
    ]
    return [made_up_record(shard, line, text) for line, text in enumerate(texts)]


def made_up_text(rng: np.random.Generator, *, n_words: int) -> str:
    """Return lines of sentences of common words, with one of `SURPRISES`."""
    words = [WORDS[number] for number in rng.integers(len(WORDS), size=n_words)]
    words[int(rng.integers(n_words))] = SURPRISES[int(rng.integers(len(SURPRISES)))]
    return "\n".join(" ".join(words[at : at + 12]) + "." for at in range(0, n_words, 12))


def made_up_record(shard: Shard, line: int, text: str) -> DocumentRecord:
    """Return a document's record with CCNet's fields."""
    return DocumentRecord(
        url=f"https://example.org/{shard.name}/{line}?q=[a]",
        date_download="2023-02-03T04:05:06Z",
        digest=f"sha1:{shard.snapshot.replace('-', '').upper()}{shard.number:04d}{shard.bucket[:1].upper()}{line:04d}",
        length=len(text),
        nlines=text.count("\n") + 1,
        source_domain="example.org",
        title=f"Page {line}",
        raw_content=text,
        cc_segment=f"crawl-data/CC-MAIN-{shard.snapshot}/segments/0/wet/CC-MAIN-0-{shard.number:05d}.warc.wet.gz",
        original_nlines=text.count("\n") + 1,
        original_length=len(text.encode("utf-8", "surrogatepass")),
        line_ids=list(range(text.count("\n") + 1)),
        language=shard.language,
        language_score=0.9,
        perplexity=200.0,
        bucket=shard.bucket,
    )


def write_shard(
    folder: Path, shard: Shard, records: Sequence[DocumentRecord], *, duplicates: Iterable[int] = ()
) -> None:
    """Write one shard's documents, signals and duplicates at RedPajama-V2's paths."""
    paths = [
        folder / redpajama_v2.part_path(part, shard)
        for part in ("documents", "signals", "duplicates")
    ]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_documents(paths[0], records)
    write_signals(
        paths[1],
        shard,
        ((line, record, signals_of(record.raw_content)) for line, record in enumerate(records)),
    )
    write_duplicates(paths[2], shard, [(line, records[line].digest) for line in duplicates])


def tiny_recipe(folder: Path, **changes: Any) -> Recipe:
    """Return a recipe for rows of 64 tokens with one lenient rule, whose file goes into ``folder``.

    Args:
        folder: where the rule file goes.
        changes: fields of the recipe that replace the tiny ones.
    """
    rules = folder / "lenient.toml"
    rules.write_text(LENIENT_RULES)
    recipe = Recipe(
        raw_snapshot=RawSettings(languages=("en",)),
        filtered_documents=FilteringSettings(rules=str(rules), min_words=TINY_MIN_WORDS),
        token_documents=TokenizingSettings(min_tokens=TINY_ROW_TOKENS),
        token_grid=GriddingSettings(row_tokens=TINY_ROW_TOKENS, heldout_fraction=0.2),
        megatron_rows=MegatronSettings(sequence_length=24),
        packed_rows=PackingSettings(
            wanted=True,
            row_tokens=4 * TINY_ROW_TOKENS,
            min_tokens=TINY_ROW_TOKENS,
        ),
        blended_mix={
            "by-tokens": MixSettings(),
            "one-sided": MixSettings(weights={"2023-06": 3.0, "2023-14": 1.0}, samples=60),
        },
    )
    return msgspec.structs.replace(recipe, **changes)


DEDUPLICATING = ("document_signatures", "near_duplicate_pairs", "removed_documents")
"""Sections of the recipe with settings of deduplication."""


def deduplication(recipe: Recipe | None = None, **settings: Any) -> dict[str, Any]:
    """Return sections of a recipe with these settings of deduplication.

    >>> deduplication(near=False)["near_duplicate_pairs"].near
    False
    """
    sections = {name: getattr(recipe or Recipe(), name) for name in DEDUPLICATING}
    of = {field: name for name, section in sections.items() for field in section.__struct_fields__}
    for setting, value in settings.items():
        name = of[setting]
        sections[name] = msgspec.structs.replace(sections[name], **{setting: value})
    return sections


def recipe_file(path: Path, recipe: Recipe) -> Path:
    """Write a recipe as TOML, as the command line and Dagster read it."""
    path.write_text("".join(_toml_lines(msgspec.to_builtins(recipe), ())))
    return path


def tiny_context(
    tmp_path: Path, *, upstream: Path | None = None, workers: int = 1, **changes: Any
) -> BuildContext:
    """Return a build context over a tiny upstream, with nothing built yet.

    Args:
        tmp_path: gets ``upstream`` (unless one is given), ``lake`` and the rule file.
        upstream: an existing upstream to use instead.
        workers: processes of the executor.
        changes: fields of the recipe that replace the tiny ones.
    """
    tmp_path.mkdir(parents=True, exist_ok=True)
    root = tiny_upstream(tmp_path / "upstream") if upstream is None else upstream
    return BuildContext(
        lake=Lake(tmp_path / "lake"),
        upstream=Upstream(str(root)),
        recipe=tiny_recipe(tmp_path, **changes),
        executor=LocalExecutor(workers=workers),
        crawl=Upstream(f"{root}/{CRAWL}"),
    )


@dataclass(frozen=True, slots=True)
class TinyLake:
    """A build context whose whole chain is built."""

    context: BuildContext
    built: dict[str, Built]

    @property
    def root(self) -> Path:
        """The lake's folder."""
        return self.context.lake.root

    def with_recipe(self, recipe: Recipe) -> BuildContext:
        """Return the context with another recipe."""
        return replace(self.context, recipe=recipe)


def wanted_steps() -> tuple[Stage, ...]:
    """Return the stages that the default recipe builds, without LongPack and packed rows."""
    return tuple(step for step in STAGES if step.wanted(Recipe()))


def build(
    context: BuildContext, stage: Stage, key: str, write: Callable[[StagingFolder], Counts]
) -> Built:
    """Build a partition of a stage whose files ``write`` writes."""
    return replace(stage, write=lambda _context, staging: write(staging)).build(context, key)


def build_all(context: BuildContext, snapshots: Sequence[str] = SNAPSHOTS) -> dict[str, Built]:
    """Build every partition of the chain, upstream first; return them by names such as
    ``token_grid/2023-06``.
    """
    return {
        f"{step.name}/{key}": step.build(context, key)
        for step in STAGES
        for key in keys_of(step, context.recipe, snapshots)
    }


def tiny_lake(tmp_path: Path, **changes: Any) -> TinyLake:
    """Build the whole chain over a tiny upstream."""
    context = tiny_context(tmp_path, **changes)
    return TinyLake(context, build_all(context))


def _toml_lines(table: dict[str, Any], place: tuple[str, ...]) -> Iterator[str]:
    """Yield a table's own values, then its tables; JSON's strings, numbers and lists are TOML."""
    if place:
        yield f"[{'.'.join(map(json.dumps, place))}]\n"
    for name, value in table.items():
        if value is not None and not isinstance(value, dict):
            yield f"{name} = {_toml_value(value)}\n"
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _toml_lines(value, (*place, name))


def _toml_value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name} = {_toml_value(item)}' for name, item in value.items())} }}"
    return json.dumps(value)


LENIENT_RULES = """
name = "lenient"

[[rule]]
name = "mean_word_length"
signal = "rps_doc_mean_word_length"
at_least = 1
at_most = 30

[[rule]]
name = "symbols"
signal = "rps_doc_symbol_to_word_ratio"
at_most = 0.5
source = "for tests"
"""


def tokenizer_json(
    path: Path, *, words: Sequence[str] = ("the", "end", "of", "times"), far_id: int | None = None
) -> Path:
    """Write a small byte-level ``tokenizer.json`` in Hugging Face's format, with merges that make
    the words.

    Args:
        path: the file.
        words: each becomes a token, with and without a space before it.
        far_id: id of the end of text; by default the next free one.
    """
    alphabet = [
        chr(code)
        for code in (*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324))
    ]
    vocab, merges = {char: number for number, char in enumerate(alphabet)}, list[tuple[str, str]]()
    for word in [*words, *(f"\u0120{bare}" for bare in words)]:
        for end in range(2, len(word) + 1):
            if word[:end] not in vocab:
                merges.append((word[: end - 1], word[end - 1]))
                vocab[word[:end]] = len(vocab)
    eot = len(vocab) if far_id is None else far_id
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": eot,
                "content": "</s>",
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
        ],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": vocab,
            "merges": merges,
        },
    }
    path.write_bytes(msgspec.json.encode(document))
    return path
