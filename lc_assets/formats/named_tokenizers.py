"""Tokenizers by name or by file: what the setting ``tokenizer`` may say, and what each means.

===============================================  =========================  ============================================
setting                                          ids                        vocabulary from
===============================================  =========================  ============================================
``gpt2``, ``r50k_base``                          50,257                     the installed package (`formats.gpt2_vocabulary`):
                                                                            two names of one
                                                                            vocabulary
``p50k_base``, ``cl100k_base``, ``o200k_base``   50,281; 100,277; 200,019   tiktoken, which fetches a file once and keeps it
                                                                            (or finds it under
                                                                            ``TIKTOKEN_CACHE_DIR``)
path of a ``tokenizer.json``                     as the file says           Hugging Face's format (`formats.hugging_face`)
path of a ``.model``                             as the file says           SentencePiece (`formats.sentencepiece_model`)
===============================================  =========================  ============================================

Of each there are two, which must agree: the fast one by gigatoken, and its twin by tiktoken, by
Hugging Face's own program or by SentencePiece's. Here: from a setting to a tokenizer. Not here:
what a tokenizer does (`lc_assets.tokens.tokenizers`).
Source: ``tiktoken_ext/openai_public.py`` for names, sizes, end-of-text ids and SHA-256.
"""

import functools
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import gigatoken
import tiktoken

from lc_assets.errors import BadInput, Unreachable
from lc_assets.formats import gpt2_tokenizer, hugging_face, sentencepiece_model
from lc_assets.formats.gpt2_vocabulary import SHA256, rank_file
from lc_assets.formats.vocabulary_files import Vocabulary
from lc_assets.tokens.tokenizers import (
    FastEncoding,
    GigatokenTokenizer,
    TiktokenTokenizer,
    Tokenizer,
)

GPT2 = Vocabulary(name="gpt2", n_ids=50_257, eot=50_256, sha256=SHA256["r50k_base.tiktoken"])

TIKTOKEN: Final = {
    known.name: known
    for known in (
        Vocabulary(
            name="p50k_base",
            n_ids=50_281,
            eot=50_256,
            sha256="94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
        ),
        Vocabulary(
            name="cl100k_base",
            n_ids=100_277,
            eot=100_257,
            sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        ),
        Vocabulary(
            name="o200k_base",
            n_ids=200_019,
            eot=199_999,
            sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        ),
    )
}
"""OpenAI's other public vocabularies. They have gaps at their ends, so ``n_ids`` is not the number
of tokens.
"""

GPT2_NAMES: Final = (GPT2.name, "r50k_base")

_PRETOKENIZERS = {"p50k_base": "r50k", "cl100k_base": "cl100k", "o200k_base": "o200k"}


def vocabulary_of(setting: str) -> Vocabulary:
    """Say what a setting means; reads a file when it names one.

    >>> vocabulary_of("cl100k_base").n_ids
    100277

    Raises:
        BadInput: when it is neither a known name nor a readable ``tokenizer.json`` or ``.model``.
    """
    if setting in GPT2_NAMES:
        return GPT2
    if setting in TIKTOKEN:
        return TIKTOKEN[setting]
    if setting.endswith(sentencepiece_model.SUFFIX):
        return sentencepiece_model.read(Path(setting)).vocabulary
    if not setting.endswith(".json"):
        known = ", ".join((*GPT2_NAMES, *TIKTOKEN))
        raise BadInput(
            f"no tokenizer {setting!r}; there are {known}, any path of a Hugging Face "
            "tokenizer.json and of a SentencePiece .model"
        )
    return hugging_face.read(Path(setting)).vocabulary


def end_of_text(setting: str) -> int:
    """Id of end of text of a tokenizer that must have one.

    Raises:
        BadInput: when it has none; says what was looked for.
    """
    eot = vocabulary_of(setting).eot
    if eot is None:
        raise BadInput(
            f"{setting}: has no end of text; looked for {', '.join(hugging_face.END_OF_TEXT)}"
        )
    return eot


def tokenizer_of(setting: str, *, fast: bool = True) -> Tokenizer:
    """The tokenizer that a setting means: the fast one, or its twin. The same object every time in
    a process.

    Raises:
        BadInput: when there is no such tokenizer, or a file is not one.
        Unreachable: when tiktoken would have to fetch a vocabulary and cannot.
    """
    if setting in GPT2_NAMES:
        return gpt2_tokenizer.gpt2_tokenizer(fast)
    return _tokenizer(vocabulary_of(setting), setting, fast)


def text_of(setting: str, ids: Iterable[int]) -> str:
    """Text of some ids; bytes that are no UTF-8, as at a cut, become U+FFFD.

    Raises:
        BadInput: when an id is outside the vocabulary, or there is no such tokenizer.
    """
    if setting in GPT2_NAMES:
        return gpt2_tokenizer.gpt2_text(ids)
    vocabulary, wanted = vocabulary_of(setting), [int(token) for token in ids]
    if wanted and not 0 <= min(wanted) <= max(wanted) < vocabulary.n_ids:
        raise BadInput(
            f"ids {min(wanted):,} to {max(wanted):,} are not of {setting}: it has 0 to "
            f"{vocabulary.n_ids - 1:,}"
        )
    if setting in TIKTOKEN:
        return _encoding(setting).decode(wanted)
    if setting.endswith(sentencepiece_model.SUFFIX):
        return sentencepiece_model.text_of(Path(setting), wanted)
    return hugging_face.text_of(Path(setting), wanted)


@functools.lru_cache(maxsize=8)
def _tokenizer(vocabulary: Vocabulary, setting: str, fast: bool) -> Tokenizer:
    """One per file content, not per path: a file that changed has another digest."""
    if setting in TIKTOKEN:
        if not fast:
            return TiktokenTokenizer(_encoding(setting))
        build = functools.partial(_build_fast, setting)
    else:
        is_pieces = setting.endswith(sentencepiece_model.SUFFIX)
        twin = sentencepiece_model.twin if is_pieces else hugging_face.twin
        if not fast:
            return twin(Path(setting))
        build = functools.partial(
            sentencepiece_model.build_fast if is_pieces else hugging_face.build_fast, Path(setting)
        )
    return GigatokenTokenizer(
        build, name=vocabulary.name, vocab_size=vocabulary.n_ids, eot=vocabulary.eot
    )


@functools.cache
def _encoding(setting: str) -> tiktoken.Encoding:
    try:
        return tiktoken.get_encoding(setting)
    except (OSError, ValueError) as error:
        raise Unreachable(
            f"{setting}: tiktoken could not fetch the vocabulary ({type(error).__name__}: "
            f"{error}); with no network, set "
            "TIKTOKEN_CACHE_DIR to a folder with files fetched elsewhere"
        ) from error


def _build_fast(setting: str) -> FastEncoding:
    encoding = _encoding(setting)
    ranks: dict[bytes, int] = encoding._mergeable_ranks  # tiktoken hands them out by no other door
    with tempfile.TemporaryDirectory(prefix="lc-ranks-") as folder:
        path = Path(folder) / f"{setting}.tiktoken"
        path.write_bytes(rank_file(ranks))
        try:
            made: FastEncoding = gigatoken.Tokenizer.from_tiktoken(
                path, pretokenizer=_PRETOKENIZERS[setting], special_tokens={}
            )
        except RuntimeError as error:  # p50k_base has a gap among its ranks
            raise BadInput(
                f"{setting}: the fast tokenizer does not know this kind of vocabulary: {error}"
            ) from error
    return made
