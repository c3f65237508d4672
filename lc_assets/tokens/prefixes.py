r"""The first tokens of a long text without tokenizing all of it, and exactly those.

A tokenizer of tiktoken's family first splits a text into pieces by a regular expression and then
never looks across a piece's end. So where it is certain that a piece ends, the text can be cut, and
the ids of both parts, one after the other, are the ids of the whole. It is certain in these places,
whatever stands around them:

============  ==========================================  ===========================================================
vocabulary    cut                                         because
============  ==========================================  ===========================================================
gpt2, r50k    between printable ASCII and a following     no alternative of the pattern matches <non-space><space>:
              space or newline                            a space can only stand first in a piece, and ``\s+`` holds
                                                          nothing else. The two that look ahead,
                                                          ``\s+(?!\S)`` and ``\s+``, see the same as
                                                          before, because the part before the cut
                                                          does not end in whitespace
cl100k,       between an ASCII letter and a following     as above, for letters: ``\p{L}+`` ends there, and what may
o200k         space                                       follow it within a piece is an apostrophe. (Punctuation
                                                          takes newlines with it here, so it is no
                                                          safe place.)
============  ==========================================  ===========================================================

A text without such a place is tokenized whole. Not here: bounds that need no ids at all
(`lc_assets.tokens.bounds`).
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
"""By vocabulary: the last character before a place where the text may be cut."""

CHARS_PER_TOKEN = 4.2
"""First guess, of English prose; after the first part the text's own ratio is used."""
SLACK = 1.02
"""A second part costs a call; two per cent too many tokens cost less."""


def first_ids(tokenizer: Tokenizer, text: str, wanted: int) -> Ids:
    """The first ``wanted`` ids of a text, or all of them when it has fewer; equal to
    ``tokenizer.encode(text)[:wanted]``.

    Raises:
        BadInput: when the tokenizer gives up, or ``wanted`` is not positive.
    """
    if wanted < 1:
        raise BadInput(f"wanted is the number of tokens to find, at least 1, got {wanted:,}")
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
    """The first safe cut behind ``place``, or the text's end."""
    found = cuts.search(text, place)
    return found.end() if found else len(text)
