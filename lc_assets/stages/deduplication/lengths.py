"""Which documents are too short to be published: no duplicate is removed for one of them."""

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

import pyarrow as pa
from msgspec.structs import replace

from lc_assets.builds.checks import DOCUMENTS_SUFFIX
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.stage import BuildContext
from lc_assets.builds.tables import read_lines
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.lake.versions import Published
from lc_assets.records import record
from lc_assets.stages.tokens.tokenized_text import tokenized_utf8
from lc_assets.stages.tokens.tokenizing import available_tokenizer, sequences_of
from lc_assets.tokens.tokenizers import escaped_utf8
from lc_assets.vocabulary import parse_document_id


@record
class LengthTask:
    """Some documents of a shard, of which the short ones are to be found.

    Attributes:
        documents: table of the documents.
        ids: of the documents to test.
        settings: how text becomes ids, and how many there must be.
    """

    documents: Path
    ids: frozenset[str]
    settings: TokenizingSettings

    def __str__(self) -> str:
        return str(self.documents)


def short_documents(task: LengthTask) -> list[str]:
    """Ids of those documents that `tokenize_shard` drops with these settings."""
    setting, found = task.settings.tokenizer, list[str]()
    tokenizer = available_tokenizer(setting, fast=True) or tokenizer_of(setting, fast=False)
    columns = ["id", "language", "raw_content"]
    for line in read_lines(task.documents, columns, batch_lines=16, utf8="raw_content"):
        if line["id"] in task.ids:
            content, _ = tokenized_utf8(line, task.settings.privacy)
            escaped = escaped_utf8(content, task.settings.text_encoding)
            if sequences_of(escaped, tokenizer, task.settings)[1]:
                found.append(line["id"])
    return found


def least_tokens(recipe: Recipe) -> int:
    """Least number of tokens of the documents that some stage publishes; 1 if any length will do.

    >>> least_tokens(Recipe())
    65536
    """
    packing, least = recipe.packed_rows, recipe.token_documents.min_tokens
    if recipe.clean_documents.wanted or recipe.longpack_documents.wanted:
        return 1
    return min(packing.min_tokens, least) if packing.wanted else least


def counted_by(recipe: Recipe) -> TokenizingSettings:
    """How duplicates are tokenized, as far as it decides which of them are too short."""
    least = least_tokens(recipe)
    return replace(
        recipe.token_documents,
        min_tokens=least,
        first_tokens=least,
        append_eod=False,
        dtype="auto",
        split_sentences="",
        keep_newlines=False,
    )


def too_short(
    context: BuildContext, inputs: Mapping[str, Published], ids: pa.ChunkedArray
) -> set[str]:
    """Those of some documents that have too few tokens for every stage."""
    settings, tasks = counted_by(context.recipe), list[LengthTask]()
    if settings.min_tokens <= 1:
        return set()
    shards = groupby(sorted(ids.to_pylist()), key=lambda name: parse_document_id(name)[0])
    named = [(shard, frozenset(names)) for shard, names in shards]
    for snapshot, of_shards in groupby(named, key=lambda found: found[0].snapshot):
        files = {f"{shard.name}{DOCUMENTS_SUFFIX}": names for shard, names in of_shards}
        folder = inputs[f"filtered_documents/{snapshot}"].only(*files)
        tasks += [
            LengthTask(documents=folder / file, ids=names, settings=settings)
            for file, names in files.items()
        ]
    run = context.executor.run(short_documents, tasks, what="count tokens of duplicates")
    return {name for _, names in run for name in names}
