"""Perplexity: how badly a language model guesses a text; high is odd.

Here: the arithmetic over a text's lines, as CCNet does it. Not here: models
    (`lc_assets.formats.models`); the
perplexity that RedPajama-V2 publishes (``ccnet_perplexity``, or a record's ``perplexity``) needs
none of this.

Source: ``cc_net/perplexity.py`` of facebookresearch/cc_net.
"""

from collections.abc import Callable
from typing import TypeAlias

LineScorer: TypeAlias = Callable[[str], tuple[float, int]]
"""Takes a line to the base-10 logarithm of its probability, its end included, and its number of
tokens without the end.
"""


def perplexity_of(text: str, score: LineScorer) -> float | None:
    r"""Ten to the power of minus the mean logarithm per token, each line's end counted as one; None
    for a text without one.

    >>> perplexity_of("a b\nc", lambda line: (-len(line.split()) - 1.0, len(line.split())))
    10.0
    >>> perplexity_of("", lambda line: (0.0, 0)) is None
    True
    """
    scores = [score(line) for line in text.split("\n") if line]
    n_tokens = sum(n + 1 for _, n in scores)
    if not n_tokens:
        return None
    return float(10.0 ** min(-sum(logarithm for logarithm, _ in scores) / n_tokens, 300.0))
