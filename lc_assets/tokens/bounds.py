"""Bounds on a text's number of GPT-2 tokens that cost less than tokenizing it. Both are exact, not
estimates.

* Every token covers at least one byte of UTF-8: ``tokens <= bytes``.
* No token of GPT-2 holds <non-space><space>, so each word begins a token of its own: ``words <=
  tokens``.

So a text of fewer bytes than the tokens that are wanted can be dropped unread, and one of as many
words can be kept. Anything sharper is a heuristic and has no place here. Texts with lone surrogates
are measured as the tokenizers see them (`lc_assets.tokens.tokenizers.without_surrogates`).

Here: the bounds. Not here: tokenizing (`lc_assets.tokens.tokenizers`).
"""


def most_tokens(text: str) -> int:
    """Number of tokens that the text cannot exceed: its UTF-8 bytes, three for a lone surrogate.

    >>> most_tokens("naïve")
    6
    """
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def fewest_tokens(text: str, *, enough: int | None = None) -> int:
    r"""Number of tokens that the text has at least: its words, as `str.split` sees them.

    Args:
        text: any text.
        enough: stop counting here; None counts to the end.

    >>> fewest_tokens("Call me\nIshmael.")
    3
    >>> fewest_tokens("Call me\nIshmael.", enough=2)
    2
    """
    if enough is None:
        return len(text.split())
    if enough < 1:
        return 0
    words = text.split(None, enough)
    return min(len(words), enough)
