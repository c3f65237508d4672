r"""Tokenizers: text becomes token ids, and every text means the same ids to the fast one and to its
twin.

* `TiktokenTokenizer` is the reference: OpenAI's own program.
* `GigatokenTokenizer` gives the same ids 12 times faster, 25 times where it remembers the words;
  `disagreement` compares the two on the beginnings of real texts, so nobody has to take that on
  trust.

Three things are the same for both. ``<|endoftext|>`` in a text is thirteen characters like any
others: a web page cannot end a document. A lone surrogate counts as U+FFFD, as tiktoken has it. A
    failure of the program
underneath is a `BadInput` that says which text, never a ``PanicException``, which ``except
Exception`` misses.

Here: the interface, the two wrappers, the spot check, and JSON escaping. Not here: vocabularies,
    which are
files (`lc_assets.formats.gpt2_tokenizer` makes these objects).
Source: tiktoken 0.14 (``Encoding.encode_ordinary``), gigatoken 0.10.
"""

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from jaxtyping import UInt16, UInt32

from lc_assets.errors import BadInput
from lc_assets.tokens.dtypes import as_dtype, memory_dtype

Ids: TypeAlias = UInt16[np.ndarray, " token"] | UInt32[np.ndarray, " token"]
"""Token ids of one text: uint16 for vocabularies of at most 65,536 tokens, else uint32."""

TextEncoding = Literal["plain", "json_ascii", "json_utf8"]
"""How a text is written before it is tokenized; see `escape`."""

REBUILD_AFTER_BYTES = 64 << 20
"""Text after which gigatoken is built anew, because its memory of words never shrinks. Measured
with 0.10.0: it grows by 11.7 MB per MB of words never seen before, so at worst by 0.8 GB in
between; building takes 0.05 s.
"""

SHOWN_CHARS = 40


@runtime_checkable
class Tokenizer(Protocol):
    """What the rest of the package asks of a tokenizer."""

    @property
    def name(self) -> str:
        """Name of the vocabulary, such as ``gpt2``; equal names mean equal ids."""
        ...

    @property
    def vocab_size(self) -> int:
        """Number of ids, the end-of-text id included: every id is smaller."""
        ...

    @property
    def eot(self) -> int | None:
        """Id of end of text, or None where the vocabulary has none. `encode` never gives it."""
        ...

    def encode(self, text: str) -> Ids:
        """Ids of a text; nothing is added before or after.

        Raises:
            BadInput: when the program underneath gives up on the text.
        """
        ...


@runtime_checkable
class TiktokenEncoding(Protocol):
    """The part of `tiktoken.Encoding` that is used."""

    @property
    def name(self) -> str: ...  # noqa: D102 - tiktoken's own
    @property
    def n_vocab(self) -> int: ...  # noqa: D102
    @property
    def eot_token(self) -> int: ...  # noqa: D102
    def encode_to_numpy(  # noqa: D102
        self, text: str, *, disallowed_special: Any
    ) -> UInt32[np.ndarray, " token"]: ...


@runtime_checkable
class FastEncoding(Protocol):
    """The part of `gigatoken.Tokenizer` that is used."""

    # Gigatoken's own.
    def encode(self, input: bytes, /) -> UInt32[np.ndarray, " token"]: ...  # noqa: A002, D102


class TiktokenTokenizer:
    """The reference, and the twin of the fast one."""

    def __init__(self, encoding: TiktokenEncoding) -> None:
        self._encoding = encoding
        self._dtype = memory_dtype(encoding.n_vocab)

    @property
    def name(self) -> str:
        """Name of the vocabulary."""
        return self._encoding.name

    @property
    def vocab_size(self) -> int:
        """Number of ids."""
        return self._encoding.n_vocab

    @property
    def eot(self) -> int:
        """Id of end of text."""
        return self._encoding.eot_token

    def encode(self, text: str) -> Ids:
        """Ids of a text.

        Raises:
            BadInput: when tiktoken gives up; 0.14 does so at a run of about a million spaces.
        """
        with failures_said_plainly("tiktoken", text):
            return as_dtype(
                self._encoding.encode_to_numpy(without_surrogates(text), disallowed_special=()),
                self._dtype,
            )


class GigatokenTokenizer:
    """The fast one.

    Args:
        build: makes a gigatoken encoder without special tokens and with an empty memory.
        name: of the vocabulary.
        vocab_size: number of ids, the end-of-text id included.
        eot: id of end of text, or None.
        rebuild_after_bytes: UTF-8 bytes of text after which the encoder is built anew.
    """

    def __init__(
        self,
        build: Callable[[], FastEncoding],
        *,
        name: str,
        vocab_size: int,
        eot: int | None,
        rebuild_after_bytes: int = REBUILD_AFTER_BYTES,
    ) -> None:
        if rebuild_after_bytes < 1:
            raise BadInput(f"rebuild_after_bytes is at least 1, got {rebuild_after_bytes:,}")
        self._build, self._rebuild_after_bytes = build, rebuild_after_bytes
        self._name, self._vocab_size, self._eot = name, vocab_size, eot
        self._dtype = memory_dtype(vocab_size)
        self._encoding, self._n_bytes = build(), 0

    @property
    def name(self) -> str:
        """Name of the vocabulary."""
        return self._name

    @property
    def vocab_size(self) -> int:
        """Number of ids."""
        return self._vocab_size

    @property
    def eot(self) -> int | None:
        """Id of end of text, or None."""
        return self._eot

    def encode(self, text: str) -> Ids:
        """Ids of a text.

        Raises:
            BadInput: when gigatoken panics.
        """
        content = _utf8(text)
        with failures_said_plainly("gigatoken", text):
            ids = as_dtype(self._encoding.encode(content), self._dtype)
        self._forget_in_time(len(content))
        return ids

    def _forget_in_time(self, n_bytes: int) -> None:
        self._n_bytes += n_bytes
        if self._n_bytes >= self._rebuild_after_bytes:
            self._encoding, self._n_bytes = self._build(), 0


def disagreement(
    fast: Tokenizer, twin: Tokenizer, texts: Iterable[str], *, head_chars: int | None = None
) -> str | None:
    """Compare two tokenizers on the first ``head_chars`` characters of each text (None: on all of
    it).

    Returns:
        None when all ids are equal; otherwise where they first differ, in words.
    """
    for number, text in enumerate(texts):
        head = text[:head_chars]
        mine, theirs = fast.encode(head), twin.encode(head)
        if not np.array_equal(mine, theirs):
            return f"text {number} ({_shown(head)}): {_first_difference(mine, theirs)}"
    return None


def escape(text: str, mode: TextEncoding) -> str:
    r"""Write a text as it is to be tokenized.

    ``plain`` leaves it alone. The others give what stands between the quotes of a JSON string:
    ``json_ascii`` with every character beyond ASCII as ``\uXXXX``, ``json_utf8`` with those
    characters as they are. LongCrawl64's rows were made from escaped text, its users report; which
    of the two is not known.

    >>> [escape("naïve\n", mode) for mode in ("plain", "json_ascii", "json_utf8")]
    ['naïve\n', 'na\\u00efve\\n', 'naïve\\n']

    Raises:
        BadInput: when there is no such mode.
    """
    if mode == "plain":
        return text
    if mode not in ("json_ascii", "json_utf8"):
        raise BadInput(f"text encoding {mode!r}; wanted plain, json_ascii or json_utf8")
    return json.dumps(text, ensure_ascii=mode == "json_ascii")[1:-1]


def without_surrogates(text: str) -> str:
    r"""The text with surrogate pairs joined and lone surrogates replaced by U+FFFD, as tiktoken
    does it.

    >>> without_surrogates("a\ud800") == "a\ufffd", without_surrogates("\ud83d\ude00") == "\U0001f600"
    (True, True)
    """
    return _utf8(text).decode()


@contextlib.contextmanager
def failures_said_plainly(program: str, text: str) -> Iterator[None]:
    """Turn what happens when a text is too much for the program into a `BadInput`; let everything
    else through.

    That is a Rust panic, a `BaseException` without a public class (tiktoken's ``encode_ordinary``),
    or a `ValueError` about its regular expression (``encode_to_numpy``).

    Raises:
        BadInput: instead; names the program and the text.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException" and not str(error).startswith("Regex error"):
            raise
        raise BadInput(
            f"{program} gave up on a text of {len(text):,} characters that begins {_shown(text)}: "
            f"{error}; "
            "it is not natural text (a run of a million spaces does this): drop it, or collapse "
            "the run"
        ) from error


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _first_difference(mine: np.ndarray, theirs: np.ndarray) -> str:
    shorter = min(len(mine), len(theirs))
    differ = np.flatnonzero(mine[:shorter] != theirs[:shorter])
    if not len(differ):
        return f"{len(mine):,} ids, the twin has {len(theirs):,}"
    at = int(differ[0])
    return f"token {at:,} is {mine[at]:,}, the twin has {theirs[at]:,}"


def _shown(text: str) -> str:
    return ascii(text[:SHOWN_CHARS]) + ("…" if len(text) > SHOWN_CHARS else "")
