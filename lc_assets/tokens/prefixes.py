r"""The first tokens of a long text without tokenizing all of it, and a bound on the number of
tokens.

A tokenizer of tiktoken's family first splits a text into pieces by a regular expression and then
never looks across the end of a piece. So where a piece is certain to end, the text can be cut, and
the ids of both parts, concatenated, are the ids of the whole. In these places it is certain, for
any text around them:

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
Source: the split patterns of tiktoken's ``openai_public``.
"""

import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.tokens.tokenizers import Ids, Tokenizer

_ANY_WORD = re.compile(r"[!-~](?=[ \n])")
_LETTERS = re.compile(r"[A-Za-z](?= )")

SAFE_CUTS: Final[Mapping[str, re.Pattern[str]]] = {
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


def first_ids(tokenizer: Tokenizer, text: str, wanted: int) -> Ids:
    """The first ``wanted`` ids of a text: equal to ``tokenizer.encode(text)[:wanted]``.

    Raises:
        BadInput: if the tokenizer fails on the text, or ``wanted`` is below 1.
    """
    if wanted < 1:
        raise BadInput(f"wanted must be at least 1 token, got {wanted:,}")
    cuts = SAFE_CUTS.get(tokenizer.name)
    if cuts is None:
        return tokenizer.encode(text)[:wanted]
    parts, n_ids, done, per_token = list[Ids](), 0, 0, CHARS_PER_TOKEN
    while done < len(text) and n_ids < wanted:
        end = _cut_after(cuts, text, done + int((wanted - n_ids) * per_token * SLACK))
        parts.append(tokenizer.encode(text[done:end]))
        n_ids, done = n_ids + len(parts[-1]), end
        per_token = done / max(n_ids, 1)
    return np.concatenate(parts)[:wanted] if parts else tokenizer.encode(text)


def _cut_after(cuts: re.Pattern[str], text: str, place: int) -> int:
    """The first safe cut after ``place``, or the end of the text."""
    found = cuts.search(text, place)
    return found.end() if found else len(text)


def most_tokens(text: str) -> int:
    """Upper bound of a text's tokens: its UTF-8 bytes, since every token covers at least one.

    A lone surrogate counts three bytes, as the tokenizers see it
    (`lc_assets.tokens.tokenizers.without_surrogates`).

    >>> most_tokens("naïve")
    6
    """
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
