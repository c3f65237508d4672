"""Tokenizers by name, file, folder or model of the Hugging Face hub.

===============================================  =========================  ========================
setting                                          ids                        vocabulary from
===============================================  =========================  ========================
``gpt2``, ``r50k_base``                          50,257                     the installed package:
                                                                            two names of one
                                                                            vocabulary
                                                                            (`gpt2`)
``p50k_base``, ``cl100k_base``, ``o200k_base``   50,281; 100,277; 200,019   tiktoken, which fetches
                                                                            a file once and keeps it
                                                                            (or finds it under
                                                                            ``TIKTOKEN_CACHE_DIR``)
path of a ``tokenizer.json`` or ``.model``       as the file says           `files`
===============================================  =========================  ========================

`located` turns a folder, or ``owner/model`` of the hub, into such a path.

Each has two implementations that must agree: the fast one by gigatoken, and the reference by
tiktoken, Hugging Face's own program or SentencePiece's.
Source: ``tiktoken_ext/openai_public.py`` for names, sizes, end-of-text ids and SHA-256.
"""

import functools
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lc_assets.arrays import Bytes, Int64s
from lc_assets.errors import BadInput, Unreachable
from lc_assets.formats.tokenizers.files import (
    CONFIG,
    SENTENCEPIECE_SUFFIX,
    Vocabulary,
    open_tokenizer_file,
)
from lc_assets.formats.tokenizers.gpt2 import (
    RANKS_SHA256,
    gigatoken_of,
    gpt2_encoding,
    gpt2_tokenizer,
    rank_file,
)
from lc_assets.memory import anonymous_bytes
from lc_assets.packing.cutting import flags_of
from lc_assets.tokens.tokenizers import (
    GigatokenTokenizer,
    TiktokenTokenizer,
    Tokenizer,
    whole_spans,
)

if TYPE_CHECKING:
    import tiktoken

GPT2 = Vocabulary(name="gpt2", n_ids=50_257, eot=50_256, sha256=RANKS_SHA256)

TIKTOKEN = {
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
"""OpenAI's other public vocabularies. Some ids below ``n_ids`` are not tokens."""

GPT2_NAMES = (GPT2.name, "r50k_base")

FILES = ("tokenizer.json", "tokenizer.model")

_PRETOKENIZERS = {"p50k_base": "r50k", "cl100k_base": "cl100k", "o200k_base": "o200k"}
_ON_THE_HUB = re.compile(r"(?P<model>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w.-]+))?")


def vocabulary_of(setting: str) -> Vocabulary:
    """Facts of the vocabulary that a setting names; reads a file when it names one.

    >>> vocabulary_of("cl100k_base").n_ids
    100277

    Raises:
        BadInput: when it is neither a known name nor a readable ``tokenizer.json`` or ``.model``.
    """
    if setting in GPT2_NAMES:
        return GPT2
    if setting in TIKTOKEN:
        return TIKTOKEN[setting]
    if not setting.endswith((".json", SENTENCEPIECE_SUFFIX)):
        known = ", ".join((*GPT2_NAMES, *TIKTOKEN))
        raise BadInput(
            f"no tokenizer {setting!r}; there are {known}, any path of a Hugging Face "
            "tokenizer.json and of a SentencePiece .model"
        )
    return open_tokenizer_file(Path(setting)).vocabulary


def tokenizer_of(setting: str, *, fast: bool = True) -> Tokenizer:
    """The tokenizer that a setting names: the fast one, or the reference. The same object every
    time in a process.

    Raises:
        BadInput: when there is no such tokenizer, or a file is not one.
        Unreachable: when tiktoken has to fetch a vocabulary and cannot.
    """
    if setting in GPT2_NAMES:
        return gpt2_tokenizer(fast)
    return _tokenizer(vocabulary_of(setting), setting, fast)


def special_ids(setting: str) -> frozenset[int]:
    """Ids that no text has, of the vocabulary that a setting names; of those known by name, that of
    end of text.
    """
    if (known := GPT2 if setting in GPT2_NAMES else TIKTOKEN.get(setting)) is not None:
        return frozenset([known.eot] if known.eot is not None else [])
    return open_tokenizer_file(Path(setting)).special_ids


def text_of(setting: str, ids: Iterable[int]) -> str:
    """Text of some ids; bytes that are not UTF-8, as at a cut, become U+FFFD.

    >>> text_of("gpt2", [14134, 502, 50256])
    'Call me<|endoftext|>'

    Raises:
        BadInput: when an id is outside the vocabulary, or there is no such tokenizer.
    """
    n_ids, tokens = vocabulary_of(setting).n_ids, [int(token) for token in ids]
    if tokens and not 0 <= min(tokens) <= max(tokens) < n_ids:
        raise BadInput(
            f"ids {min(tokens):,} to {max(tokens):,} are not of {setting}: it has 0 to "
            f"{n_ids - 1:,}"
        )
    return _decoder(setting)(tokens)


def token_spans(setting: str, text: str) -> Int64s:
    """The characters that each token of a text was made from: int64, begin and end by token. A
    token of a part of a character has all of it; characters of no token, as dropped spaces, belong
    to the next one.

    >>> token_spans("gpt2", "Call me Zoë!").tolist()
    [[0, 4], [4, 7], [7, 10], [10, 11], [11, 12]]

    Raises:
        BadInput: when the reference tokenizer fails on the text, or there is no such tokenizer.
    """
    if setting not in GPT2_NAMES and setting not in TIKTOKEN:
        return whole_spans(open_tokenizer_file(Path(setting)).spans(text))
    ids = tokenizer_of(setting, fast=False).encode(text).tolist()
    lengths = [len(token) for token in _encoding(setting).decode_tokens_bytes(ids)]
    ends, content = np.cumsum(lengths, dtype=np.int64), np.frombuffer(text.encode(), np.uint8)
    characters = np.cumsum(content & 0xC0 != 0x80)
    begins = ends - np.array(lengths, np.int64)
    return np.stack([characters[begins] - 1, characters[ends - 1]], axis=1)


def sentence_flags(setting: str) -> Bytes:
    """Flags of every id of a vocabulary (`lc_assets.packing.cutting.flags_of`), by the text of the
    id alone; 0 where an id is not a token.

    >>> sentence_flags("gpt2")[[13, 198, 262]].tolist()
    [1, 6, 4]
    """
    return _sentence_flags(vocabulary_of(setting), setting)


@functools.lru_cache(maxsize=2)
def _sentence_flags(vocabulary: Vocabulary, setting: str) -> Bytes:
    decode, flags = _decoder(setting), np.zeros(vocabulary.n_ids, np.uint8)
    for token in range(vocabulary.n_ids):
        try:
            flags[token] = flags_of(decode([token]))
        except KeyError:  # tiktoken's vocabularies have gaps
            continue
    return flags


def _decoder(setting: str) -> Callable[[list[int]], str]:
    if setting in GPT2_NAMES or setting in TIKTOKEN:
        return _encoding(setting).decode
    return open_tokenizer_file(Path(setting)).decode


@functools.lru_cache(maxsize=32)
def _tokenizer(vocabulary: Vocabulary, setting: str, fast: bool) -> Tokenizer:
    """One per content of a file, not per path: a file that changed has another digest."""
    if setting in TIKTOKEN:
        if not fast:
            return TiktokenTokenizer(_encoding(setting))
        build: Callable[[], Any] = functools.partial(_build_fast, setting)
    else:
        file = open_tokenizer_file(Path(setting))
        if not fast:
            return file
        build = file.build_fast
    return GigatokenTokenizer(
        build,
        name=vocabulary.name,
        vocab_size=vocabulary.n_ids,
        eot=vocabulary.eot,
        held=anonymous_bytes,
    )


@functools.cache
def _encoding(setting: str) -> "tiktoken.Encoding":
    import tiktoken

    if setting in GPT2_NAMES:
        return gpt2_encoding()
    try:
        return tiktoken.get_encoding(setting)
    except (OSError, ValueError) as error:
        raise Unreachable(
            f"{setting}: tiktoken could not fetch the vocabulary ({type(error).__name__}: "
            f"{error}); with no network, set TIKTOKEN_CACHE_DIR to a folder with files fetched "
            "elsewhere"
        ) from error


@functools.cache
def _rank_file(setting: str) -> bytes:
    ranks = _encoding(setting)._mergeable_ranks  # tiktoken has no public access to them
    return rank_file(ranks)


def _build_fast(setting: str) -> Any:
    try:
        return gigatoken_of(_rank_file(setting), _PRETOKENIZERS[setting])
    except RuntimeError as error:  # p50k_base has a gap among its ranks
        raise BadInput(
            f"{setting}: the fast tokenizer does not know this kind of vocabulary: {error}"
        ) from error


def located(named: str) -> str:
    """A setting for this module's other functions, with every file on this machine.

    Args:
        named: a name or file, which is returned; a folder, which means its ``tokenizer.json`` or
            else its ``tokenizer.model``; or ``owner/model``, also with ``@revision``: the same
            files of that model on the hub, fetched once and kept by ``huggingface_hub``.

    >>> located("gpt2")
    'gpt2'

    Raises:
        BadInput: when a folder, or a model of the hub, holds no tokenizer.
        Unreachable: when the hub does not answer, or refuses the file.
    """
    path = Path(named)
    if named in GPT2_NAMES or named in TIKTOKEN or path.is_file():
        return named
    if path.is_dir():
        found = next((path / name for name in FILES if (path / name).is_file()), None)
        if found is None:
            raise BadInput(f"{named}: holds neither {' nor '.join(FILES)}")
        return str(found)
    on_hub = _ON_THE_HUB.fullmatch(named)
    if on_hub is None or path.suffix in (".json", SENTENCEPIECE_SUFFIX):
        return named
    return _fetched(on_hub["model"], on_hub["revision"])


def _fetched(model: str, revision: str | None) -> str:
    import huggingface_hub
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
    )

    def fetch(name: str) -> str | None:
        try:
            return str(huggingface_hub.hf_hub_download(model, name, revision=revision))
        except LocalEntryNotFoundError as error:  # raised without a network when nothing was kept
            raise Unreachable(
                f"{model}: the hub does not answer, and {name} was not fetched before: {error}"
            ) from error
        except EntryNotFoundError:
            return None
        except (HfHubHTTPError, OSError, ValueError) as error:
            raise Unreachable(f"{model}: the hub does not provide {name}: {error}") from error

    fetch(CONFIG)  # names the end of text
    found = next((path for path in map(fetch, FILES) if path), None)
    if found is None:
        raise BadInput(f"{model}: the hub has neither {' nor '.join(FILES)} for it")
    return found
