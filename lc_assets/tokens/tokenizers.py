r"""Tokenizers: text to token ids, with the same ids from the fast and from the reference program.

* `TiktokenTokenizer` is the reference: OpenAI's own program.
* `GigatokenTokenizer` gives the same ids 12 times faster, 25 times for words it has seen;
  `disagreement` compares the two on the beginnings of real texts.

Both agree on three rules. ``<|endoftext|>`` in a text is thirteen ordinary characters: a web page
cannot end a document. A lone surrogate counts as U+FFFD, as in tiktoken. If the program fails on a
text, the error is a `BadInput` with the text, never a ``PanicException``, which is no `Exception`.

`first_ids` finds the first tokens of a long text without tokenizing all of it. A tokenizer of
tiktoken's family first splits a text into pieces by a regular expression and then never looks
across the end of a piece. So where a piece is certain to end, the text can be cut, and the ids of
both parts, concatenated, are the ids of the whole. In these places it is certain, for any text
around them:

===========  ====================================  =================================================
vocabulary   cut                                   because
===========  ====================================  =================================================
gpt2, r50k   between printable ASCII and a         no alternative of the pattern matches
             following space or newline            <non-space><space>: a space can only be the first
                                                   of a piece, and ``\s+`` matches nothing else. The
                                                   two that look ahead, ``\s+(?!\S)`` and ``\s+``,
                                                   match the same as before, because the part before
                                                   the cut does not end in whitespace
cl100k,      between an ASCII letter and a         as above, for letters: ``\p{L}+`` ends there, and
o200k        following space                       only an apostrophe can follow it within a piece.
                                                   (Punctuation includes newlines here, so it is not
                                                   safe.)
===========  ====================================  =================================================

A text without such a place is tokenized completely.

Vocabularies: `lc_assets.formats.tokenizers.gpt2` and its neighbours.
Source: tiktoken 0.14 (``Encoding.encode_ordinary``, the split patterns of ``openai_public``),
    gigatoken 0.10.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from lc_assets.arrays import Int64s, UInt32s
from lc_assets.errors import BadInput

Ids: TypeAlias = UInt32s
"""Token ids of one text, as programs give them: those of many texts are cast together."""

TextEncoding = Literal["plain", "json_ascii", "json_utf8"]
"""How a text is escaped before it is tokenized; see `escape`."""

REBUILD_AFTER_BYTES, KEPT_BYTES = 32 << 20, 256 << 20
"""Text after which gigatoken is created again if the process has grown by so much: its cache of
words never shrinks. Measured with 0.10.0: it grows by 11.7 MB per MB of new words, so to at most
0.7 GB, and 25 MB of books have words for 0.5 MB; creating it takes 0.06 s.
"""

SHOWN_CHARS = 40
_FIRST_BYTES = np.int8(-64)
"""The least byte, as a signed number, that begins a character of UTF-8."""


@runtime_checkable
class Tokenizer(Protocol):
    """Interface of a tokenizer.

    Attributes:
        name: of the vocabulary, such as ``gpt2``; equal names mean equal ids.
        vocab_size: number of ids, including end of text: every id is smaller.
        eot: id of end of text, or None if there is none; `encode` never returns it.
    """

    name: str
    vocab_size: int
    eot: int | None

    def encode(self, text: str | bytes) -> Ids:
        """Ids of a text, or of its UTF-8; nothing is added before or after.

        Raises:
            BadInput: if the program fails on the text.
        """
        ...


class TiktokenTokenizer:
    """The reference program, from a `tiktoken.Encoding`."""

    def __init__(self, encoding: Any) -> None:
        self.name, self.vocab_size, self.eot = encoding.name, encoding.n_vocab, encoding.eot_token
        self._encoding = encoding

    def encode(self, text: str | bytes) -> Ids:
        """Ids of a text, or of its UTF-8.

        Raises:
            BadInput: if tiktoken fails; 0.14 does on a run of about a million spaces.
        """
        plain = without_surrogates(text)
        try:
            ids: Ids = self._encoding.encode_to_numpy(plain, disallowed_special=())
        except BaseException as error:
            _refuse_panic("tiktoken", text, error)
            raise
        return ids


class GigatokenTokenizer:
    """The fast program.

    Args:
        build: creates a `gigatoken.Tokenizer` without special tokens and with an empty cache.
        name: name of the vocabulary.
        vocab_size: number of ids, including end of text.
        eot: id of end of text, or None.
        rebuild_after_bytes: UTF-8 bytes of text after which the encoder is created again.
        held: gives the memory of the process; the encoder is kept until that has grown by
            `KEPT_BYTES`.
    """

    def __init__(
        self,
        build: Callable[[], Any],
        *,
        name: str,
        vocab_size: int,
        eot: int | None,
        rebuild_after_bytes: int = REBUILD_AFTER_BYTES,
        held: Callable[[], int] | None = None,
    ) -> None:
        self.name, self.vocab_size, self.eot = name, vocab_size, eot
        self._build, self._rebuild_after_bytes, self._held = build, rebuild_after_bytes, held
        self._encoding, self._n_bytes, self._least = build(), 0, held() if held else 0

    def encode(self, text: str | bytes) -> Ids:
        """Ids of a text, or of its UTF-8.

        Raises:
            BadInput: if gigatoken panics.
        """
        content = _utf8(text)
        self._n_bytes += len(content)
        try:
            ids: Ids = self._encoding.encode(content)
        except BaseException as error:
            _refuse_panic("gigatoken", text, error)
            raise
        if self._n_bytes >= self._rebuild_after_bytes:
            self._n_bytes = 0
            if self._has_grown():
                self._encoding = self._build()
        return ids

    def _has_grown(self) -> bool:
        if self._held is None:
            return True
        now = self._held()
        has_grown = now - self._least >= KEPT_BYTES
        self._least = now if has_grown else min(self._least, now)
        return has_grown


def disagreement(fast: Tokenizer, reference: Tokenizer, texts: Iterable[str]) -> str | None:
    """The first text of which two tokenizers give different ids; None if there is none."""
    return next((t for t in texts if not np.array_equal(fast.encode(t), reference.encode(t))), None)


def escape(text: str, mode: TextEncoding) -> str:
    r"""Escape a text before it is tokenized.

    ``plain`` does not change it. The others escape it like the contents of a JSON string:
    ``json_ascii`` with every non-ASCII character as ``\uXXXX``, ``json_utf8`` with those characters
    unchanged. LongCrawl64's rows were made from escaped text, its users report; which of the two is
    not known.

    >>> [escape("naïve\n", mode) for mode in ("plain", "json_ascii", "json_utf8")]
    ['naïve\n', 'na\\u00efve\\n', 'naïve\\n']
    """
    if mode == "plain":
        return text
    return json.dumps(text, ensure_ascii=mode == "json_ascii")[1:-1]


def escaped_utf8(content: bytes, mode: TextEncoding) -> bytes:
    """The same of a text in UTF-8, in UTF-8."""
    return content if mode == "plain" else escape(content.decode(), mode).encode()


def n_characters(content: bytes) -> int:
    """Characters of a text in UTF-8.

    >>> n_characters("naïve".encode())
    5
    """
    if content.isascii():
        return len(content)
    return int(np.count_nonzero(np.frombuffer(content, np.int8) >= _FIRST_BYTES))


def whole_spans(spans: Sequence[tuple[int, int]]) -> Int64s:
    """Ranges of characters by token, made complete: what is between two tokens belongs to the
    second one, and a token without characters has those of the next.

    >>> whole_spans([(0, 3), (4, 4), (4, 5), (5, 7)]).tolist()
    [[0, 3], [3, 5], [4, 5], [5, 7]]
    """
    begins, ends = np.array(spans, np.int64).reshape(-1, 2).T
    before = np.append(0, np.maximum.accumulate(ends)[:-1])[: len(ends)]
    filled = np.where(begins < ends, np.arange(len(ends)), len(ends) - 1)
    after = np.minimum.accumulate(filled[::-1])[::-1]
    return np.stack([np.minimum(begins, before), ends[after]], axis=1)


def without_surrogates(text: str | bytes) -> str:
    r"""The text with surrogate pairs joined and lone surrogates replaced by U+FFFD, as in tiktoken.

    >>> without_surrogates("a\ud800\ud83d\ude00") == "a\ufffd\U0001f600"
    True
    """
    return _utf8(text).decode()


def _refuse_panic(program: str, text: str | bytes, error: BaseException) -> None:
    """Raise a `BadInput` if an error is a program's failure on a text: a Rust panic, a
    `BaseException` without a public class (tiktoken's ``encode_ordinary``), or a `ValueError` about
    its regular expression (``encode_to_numpy``).
    """
    if type(error).__name__ != "PanicException" and not str(error).startswith("Regex error"):
        return
    text = text if isinstance(text, str) else text.decode()
    raise BadInput(
        f"{program} failed on a text of {len(text):,} characters that begins "
        f"{text[:SHOWN_CHARS]!a}: {error}. The text is not natural (a run of a million spaces, for "
        "example): drop it, or collapse the run"
    ) from error


def _utf8(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


_ANY_WORD = re.compile(r"[!-~](?=[ \n])")
_LETTERS = re.compile(r"[A-Za-z](?= )")

SAFE_CUTS: Mapping[str, re.Pattern[str]] = {
    "gpt2": _ANY_WORD,
    "r50k_base": _ANY_WORD,
    "p50k_base": _ANY_WORD,
    "cl100k_base": _LETTERS,
    "o200k_base": _LETTERS,
}
"""The last character before a safe cut, by vocabulary."""

CHARS_PER_TOKEN = 4.2
"""A first estimate, from English prose; after the first part the text's own ratio is used."""
SLACK = 1.02
"""A second part costs a call, which is more than two per cent too many tokens."""


def first_ids(tokenizer: Tokenizer, text: str, n_ids: int) -> Ids:
    """The first ``n_ids`` ids of a text: equal to ``tokenizer.encode(text)[:n_ids]``.

    Raises:
        BadInput: if the tokenizer fails on the text.
    """
    cuts = SAFE_CUTS.get(tokenizer.name)
    if cuts is None:
        return tokenizer.encode(text)[:n_ids]
    parts, n_found, done, per_token = list[Ids](), 0, 0, CHARS_PER_TOKEN
    while done < len(text) and n_found < n_ids:
        end = _cut_after(cuts, text, done + int((n_ids - n_found) * per_token * SLACK))
        parts.append(tokenizer.encode(text[done:end]))
        n_found, done = n_found + len(parts[-1]), end
        per_token = done / max(n_found, 1)
    first = np.concatenate(parts) if parts else tokenizer.encode(text)
    return first[:n_ids]


def _cut_after(cuts: re.Pattern[str], text: str, place: int) -> int:
    """The first safe cut after ``place``, or the end of the text."""
    found = cuts.search(text, place)
    return found.end() if found else len(text)
