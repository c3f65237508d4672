"""What ``lc filter``, ``dedup``, ``decontaminate``, ``tokenize`` and ``pack`` do, as functions over
documents of files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
from msgspec import structs

from lc_assets.api.files import Output, Paths, Reading, build_over, built_in, prepare
from lc_assets.builds.settings.common import (
    NO_MODEL_SETTINGS,
    DecontaminationSettings,
    ModelSettings,
)
from lc_assets.builds.settings.documents import (
    NO_LIST_SETTINGS,
    Bounds,
    CleanDocumentsSettings,
    DocumentSignalSettings,
    ListSettings,
    NearDuplicateSettings,
    RemovalSettings,
    SignatureSettings,
)
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.settings.rows import GriddingSettings, TokenizingSettings
from lc_assets.builds.stage import BuildContext
from lc_assets.builds.tables import read_table
from lc_assets.errors import BadInput
from lc_assets.formats.tokenizers.named import located, vocabulary_of
from lc_assets.sources.opening import file_partitions
from lc_assets.stages.documents.document_signals import columns_of_key
from lc_assets.stages.documents.measuring import rules_of_key
from lc_assets.stages.documents.shard_inputs import VALUES_SUFFIX
from lc_assets.stages.file_lakes import (
    ALL_DOCUMENTS,
    build_for,
    build_in_each,
    is_lake,
    replaced,
)
from lc_assets.text.rules.rules import quantile_bounds
from lc_assets.vocabulary import NO_RULES

NEAR = "near"
NONE_HELD_OUT = GriddingSettings(heldout_fraction=0, row_tokens=1)
"""For documents of any length, all of which are trained on."""
ANY_LANGUAGE = {"identify_language": False}
"""For what does not depend on the language of documents."""
_TEXTS = replaced(ALL_DOCUMENTS["filtered_documents"], compression="none")
UNCOMPRESSED = {"filtered_documents": _TEXTS}
"""For texts that stand in a lake beside what is made of them."""


def filter(  # noqa: A001 - read as `lc_assets.filter`
    inputs: Paths,
    out: str | Path,
    *,
    rules: str = "",
    thresholds: Mapping[str, Mapping[str, float | None]] | None = None,
    quantiles: Mapping[str, tuple[float | Fraction, float | Fraction]] | None = None,
    all_signals: bool = False,
    language: str = "en",
    lists: ListSettings = NO_LIST_SETTINGS,
    models: ModelSettings = NO_MODEL_SETTINGS,
    **reading: Unpack[Reading],
) -> Output:
    """Keep the documents that pass a set of rules; record why each other one was dropped.

    Args:
        inputs: files and folders of documents, or lakes.
        out: the folder of the lake to write.
        rules: a preset's name, or a file of rules.
        thresholds: bounds that differ from the rules', such as ``{"symbols": {"at_most": 0.2}}``.
        quantiles: by column, the two quantiles of these documents to keep between, such as
            ``{"gzip_ratio": (0.2, 0.8)}``.
        all_signals: whether to store all values of every document.
        language: of documents that do not state theirs.
        lists: word lists that signals need.
        models: models that rules need.
        reading: see `Reading`.

    Returns:
        `filtered_documents`, and `document_signals` with the stored values.

    Raises:
        BadInput: when neither rules nor quantiles are given, or one is not known.
    """
    if not rules and not quantiles:
        raise BadInput("name what to keep: rules, such as gopher-paper, or quantiles of a column")
    shares = {column: _shares(column, *bounds) for column, bounds in (quantiles or {}).items()}
    filtering = replaced(
        ALL_DOCUMENTS["filtered_documents"], rules=rules or NO_RULES, thresholds=thresholds or {}
    )
    sections = {
        "filtered_documents": structs.replace(filtering, lists=lists, models=models),
        "document_signals": DocumentSignalSettings(
            values=all_signals or bool(shares), columns=tuple(shares)
        ),
    }
    context = prepare(inputs, out, sections, language=language, **reading)
    key = file_partitions(context.recipe.sources)[0]
    rules_of_key(context.recipe, key), columns_of_key(context.recipe, key)
    return built_in(_within_quantiles(context, shares), "filtered_documents")


def _shares(
    column: str, low: float | Fraction, high: float | Fraction
) -> tuple[Fraction, Fraction]:
    """The shares of documents to drop below and above."""
    below, above = Fraction(low), 1 - Fraction(high)
    if min(below, above) < 0 or not 0 < below + above < 1:
        raise BadInput(
            f"quantiles {column}={float(low):g}:{float(high):g}: expected two quantiles from 0 to "
            "1 that drop some documents and not all, such as 0.2:0.8"
        )
    return below, above


def _within_quantiles(
    context: BuildContext, shares: Mapping[str, tuple[Fraction, Fraction]]
) -> BuildContext:
    """Store the columns' values, and bound them by their quantiles."""
    if not shares:
        return context
    built = build_for(context, "document_signals")["document_signals"].values()
    paths = [
        path for found in built for path in sorted(found.published.folder.glob(f"*{VALUES_SUFFIX}"))
    ]
    bounds = {}
    for column, (below, above) in shares.items():
        values = np.concatenate([read_table(path, [column])[column].to_numpy() for path in paths])
        try:
            lowest, highest = quantile_bounds(values, below, above)
        except BadInput as error:
            raise BadInput(f"{column}: {error}") from error
        bounds[column] = Bounds(at_least=lowest, at_most=highest)
    filtering = structs.replace(context.recipe.filtered_documents, bounds=bounds)
    return replace(context, recipe=structs.replace(context.recipe, filtered_documents=filtering))


def deduplicate(
    inputs: Paths,
    out: str | Path,
    *,
    by: Sequence[str] = ("digest", "text", "url", NEAR),
    prefer: Sequence[str] = ("newest",),
    threshold: float = RemovalSettings().threshold,
    floor: float = NearDuplicateSettings().evidence_floor,
    paragraphs: int | None = None,
    shingle_size: int = SignatureSettings().shingle_size,
    shingle_of: Literal["words", "characters"] = "words",
    measure: Literal["jaccard", "containment"] = "jaccard",
    **reading: Unpack[Reading],
) -> Output:
    """Remove duplicates by digest, text, address and shingles; near ones are compared by their
    texts first.

    Args:
        inputs: files and folders of documents, or lakes.
        out: the folder of the lake to write.
        by: of ``digest``, ``text``, ``url`` and ``near``.
        prefer: which document is kept: ``newest``, ``oldest``, ``longest``, ``best_perplexity``,
            ``source=NAME`` (the name of an input).
        threshold: least similarity of near duplicates.
        floor: less similar pairs are not published.
        paragraphs: also remove lines of at least this many characters that several documents share.
        shingle_size: words or characters of a shingle, 3 to 13.
        shingle_of: which of the two.
        measure: of similarity; ``containment`` needs ``longest`` as the first of ``prefer``.
        reading: see `Reading`.

    Returns:
        `clean_documents`; and the evidence, `near_duplicate_pairs` and `removed_documents`.

    Raises:
        BadInput: when an argument is not acceptable.
    """
    if not by:
        raise BadInput("name at least one of digest, text, url and near")
    removal = replaced(
        RemovalSettings(),
        threshold=threshold,
        heldout_floor=max(floor, RemovalSettings().heldout_floor),
        prefer=list(prefer),
        exact=[kind for kind in by if kind != NEAR],
    )
    settings = {
        "document_signatures": replaced(
            SignatureSettings(signatures="fast"), shingle_size=shingle_size, shingle_of=shingle_of
        ),
        "near_duplicate_pairs": replaced(
            NearDuplicateSettings(), near=NEAR in by, evidence_floor=floor, measure=measure
        ),
        "removed_documents": removal,
        **UNCOMPRESSED,
        "clean_documents": replaced(CleanDocumentsSettings(wanted=True), paragraphs=paragraphs),
    }
    return build_over(inputs, out, "clean_documents", settings, **ANY_LANGUAGE, **reading)


def decontaminate(
    inputs: Paths,
    out: str | Path,
    search: DecontaminationSettings,
    **reading: Unpack[Reading],
) -> Output:
    """Remove the documents that contain evaluation items.

    Args:
        inputs: files and folders of documents, or lakes.
        out: the folder of the lake to write.
        search: the evaluation sets, and how they are found.
        reading: see `Reading`.

    Returns:
        `clean_documents`; and the evidence, `contaminated_documents`.

    Raises:
        BadInput: when no evaluation set is named.
    """
    if not search.against:
        raise BadInput("name evaluation sets or a held-out corpus: against")
    settings = {"contaminated_documents": search, **UNCOMPRESSED}
    return build_over(inputs, out, "clean_documents", settings, **ANY_LANGUAGE, **reading)


def tokenize(
    inputs: Paths,
    out: str | Path,
    tokenization: TokenizingSettings | None = None,
    *,
    json_keys: Sequence[str] = (),
    **reading: Unpack[Reading],
) -> Output:
    """Tokenize documents, one sequence each; byte for byte what Megatron's preprocess_data.py
    writes.

    Args:
        inputs: files and folders of documents, or lakes.
        out: the folder of the lake to write.
        tokenization: by default GPT-2's tokens of every document that has one.
        json_keys: fields with texts, each tokenized by itself, as by ``--json-keys`` there.
        reading: see `Reading`.

    Returns:
        `token_documents`: a data set per file, and per key.

    Raises:
        BadInput: when the tokenizer is not known.
    """
    settings = tokenization or TokenizingSettings(min_tokens=1)
    context = _tokenizing(inputs, Path(out), settings, json_keys=json_keys, **reading)
    return built_in(context, "token_documents")


def tokenize_each(
    inputs: Paths,
    out: str | Path,
    tokenizers: Sequence[str],
    tokenization: TokenizingSettings | None = None,
    *,
    json_keys: Sequence[str] = (),
    **reading: Unpack[Reading],
) -> dict[str, Output]:
    """Tokenize documents by several tokenizers, which are fed by one reading of the texts.

    Args:
        inputs: files and folders of documents, or lakes.
        out: a folder for a lake of each vocabulary, named after it as in receipts.
        tokenizers: names, files, folders or models of the hub.
        tokenization: the other settings, as for `tokenize`.
        json_keys: as there.
        reading: see `Reading`.

    Returns:
        By vocabulary, what `tokenize` with it alone returns: the files have the same bytes.

    Raises:
        BadInput: when a tokenizer is not known, or two have the same vocabulary.
    """
    settings = tokenization or TokenizingSettings(min_tokens=1)
    contexts = {
        vocabulary_of(located(name)).name: _tokenizing(
            inputs,
            Path(out) / vocabulary_of(located(name)).name,
            structs.replace(settings, tokenizer=name),
            json_keys=json_keys,
            **reading,
        )
        for name in tokenizers
    }
    if len(contexts) < len(tokenizers) or not contexts:
        raise BadInput(f"{', '.join(tokenizers)}: name one or more tokenizers, no vocabulary twice")
    if is_lake(Path(out)):
        raise BadInput(f"{out}: is a lake; name a folder for a lake of each vocabulary")
    made = build_in_each(list(contexts.values()), "token_documents")
    return {
        name: Output(folder=context.lake.root, recipe=context.recipe, stages=stages)
        for (name, context), stages in zip(contexts.items(), made, strict=True)
    }


def _tokenizing(inputs: Paths, out: Path, settings: TokenizingSettings, **how: Any) -> BuildContext:
    settings = structs.replace(settings, tokenizer=located(settings.tokenizer))
    sections = {"token_documents": settings, "token_grid": NONE_HELD_OUT, **UNCOMPRESSED}
    how |= {} if settings.privacy.replace else ANY_LANGUAGE
    return prepare(inputs, out, sections, **how)


def pack(
    inputs: Paths,
    out: str | Path,
    packing: PackingSettings | None = None,
    *,
    tokenizer: str = "gpt2",
    **reading: Unpack[Reading],
) -> Output:
    """Pack documents into rows; each input has rows of its own.

    Args:
        inputs: files and folders of documents, or lakes.
        out: the folder of the lake to write.
        packing: the length of rows, the method and so on.
        tokenizer: a name, a file, a folder, or a model of the hub, as for ``lc pack``.
        reading: see `Reading`.

    Returns:
        `packed_rows`: train.zarr and its spans; `lc_assets.open` reads a version of it.

    Raises:
        BadInput: when the tokenizer is not known, or has no end of text to append.
    """
    settings = structs.replace(packing or PackingSettings(), wanted=True)
    tokens = replaced(TokenizingSettings(), tokenizer=located(tokenizer))
    if settings.append_eod and vocabulary_of(tokens.tokenizer).eot is None:
        raise BadInput(
            f"{tokenizer} has no end of text to end documents with: pass --no-eod, or "
            "append_eod=False"
        )
    sections = {"packed_rows": settings, "token_documents": tokens, "token_grid": NONE_HELD_OUT}
    return build_over(inputs, out, "packed_rows", sections, **reading)
