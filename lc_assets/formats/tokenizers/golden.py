r"""The golden page: a short text whose token ids show that a tokenizer is the one it was.

A vocabulary's file says which ids there are, not which a program gives: another version of the
program may split digits otherwise, or begin every text with a special token, and the file beside it
that names the end of text may change. So the ids of one page, and the id of end of text, are
computed by the reference program where a build begins, compared by every worker for every shard,
and kept in the receipt as a digest: the first twelve digits of the SHA-256 of the ids and the id of
end of text (4,294,967,295 without one), each an unsigned number of four bytes, the lowest first.

`KNOWN` has the digests of the vocabularies that are known by name. Of others, no id may be that of
a special token: nothing is added before or after a text.
"""

import hashlib

import numpy as np

from lc_assets.errors import BadInput, Mismatch
from lc_assets.formats.tokenizers.named import special_ids, tokenizer_of
from lc_assets.tokens.tokenizers import Tokenizer

PAGE = (
    "Call me Ishmael. Some years ago\u2014never mind how long precisely\u2014having no money:\n\n"
    "  It's 3.14159, or 1,234,567.89 (2023-06-01T12:00:00Z); DON'T they'LL we'd I\u2019m.\r\n"
    "\tdef f(x): return {'a': [x ** 2, \"b\"], 0x1F: not None}  # 100%\n"
    '        if (a != b && c->d) { printf("%s\\n", &e[0]); }\n\n\n'
    "https://example.org/~user/index.html?q=1&r=%20#top  user@example.org <br/>&nbsp;\n"
    "Zo\u00eb na\u00efve Stra\u00dfe \u00bfQu\u00e9? e\u0301 \ufb01 \u2116 \u00bd x\u00b2 \u20ac5 "
    "\u0417\u0434\u0440\u0430\u0432\u0441\u0442\u0432\u0443\u0439 \u03ba\u03cc\u03c3\u03bc\u03b5 "
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd "
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 "
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002 \u3053\u3093\u306b\u3061\u306f "
    "\uc548\ub155\ud558\uc138\uc694 \U0001f468\u200d\U0001f469\u200d\U0001f467 "
    "\U0001f1eb\U0001f1f7 \U00020000\n"
    "<|endoftext|> <s>[INST] </s> <|im_start|>user <unk> [CLS] <pad>   end  "
)
"""English, numbers, code, addresses, spaces, eleven scripts, and names of special tokens, which in
a text are text. It ends in spaces.
"""

KNOWN = {
    "gpt2": "55f21a9d8664",
    "p50k_base": "6a1326296fef",
    "cl100k_base": "3a9675b10988",
    "o200k_base": "807d268b8cee",
}
"""Digests of the vocabularies that are known by name, made by tiktoken 0.14."""


def golden_page(setting: str) -> str:
    """Digest of the golden page's ids by the reference program, or by the fast one where the
    reference's package is missing.

    Raises:
        BadInput: when there is no such tokenizer.
        Mismatch: when the ids are wrong.
        Unreachable: when a vocabulary has to be fetched and cannot.
    """
    try:
        tokenizer = tokenizer_of(setting, fast=False)
    except BadInput:
        tokenizer = tokenizer_of(setting)
    found = page_digest(tokenizer)
    added = special_ids(setting) & set(tokenizer.encode(PAGE).tolist())
    if added or KNOWN.get(tokenizer.name, found) != found:
        wrong = f"the special token {min(added)}" if added else "others than it has always had"
        raise Mismatch(
            f"{tokenizer.name}: among the ids of the golden page, which has no special token, is "
            f"{wrong}: the installed tokenizer program is not fit for it; install another version"
        )
    return found


def page_digest(tokenizer: Tokenizer) -> str:
    """Digest of the ids that a tokenizer gives for the golden page, and of its end of text."""
    end = 2**32 - 1 if tokenizer.eot is None else tokenizer.eot
    ids = np.append(tokenizer.encode(PAGE), end).astype("<u4")
    return hashlib.sha256(ids.tobytes()).hexdigest()[:12]
