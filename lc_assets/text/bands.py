"""The middle of a corpus by one measure: bounds that leave out so many of the lowest and of the
highest values.

Bounds are values that occur. Documents that share a bound's value stay together, all within the
band: so never more is left out than was asked for, whatever the ties, and the order of the
    documents does not matter.

Here: values to bounds. Not here: where values come from, rules made of bounds
    (`lc_assets.text.rules`).
Source: Olmo 3 (2025) leaves out the fifth of long documents that gzip packs best, and the fifth
    that it packs worst.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from lc_assets.errors import BadInput
from lc_assets.text.rules import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What is left out: shares of all documents that have a value.

    Raises:
        BadInput: when they are no shares, nothing would be left out, or nothing would be left.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (0 <= self.low < 1 and 0 <= self.high < 1 and 0 < self.low + self.high < 1):
            raise BadInput(
                f"wanted two shares of at least 0, together above 0 and below 1, got {self.low} "
                f"and {self.high}"
            )


def band(column: str, values: Float64[np.ndarray, " doc"], shares: Shares) -> Rule:
    """The rule that keeps the middle.

    Args:
        column: whose values these are: ``signal``, or ``signal:words``.
        values: of every document; NaN where there is none.
        shares: what is left out below and above.

    >>> rule = band("gzip_ratio", np.array([0.1, 0.4, 0.3, 0.2, 0.5]), Shares(low=0.2, high=0.2))
    >>> rule.at_least, rule.at_most, rule.source
    (0.2, 0.4, 'the middle of 5 documents: 0.2 lowest and 0.2 highest left out')

    Raises:
        BadInput: when no document has a value.
    """
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        raise BadInput(f"no document has a value of {column}, so there is no middle")
    signal, _, words = column.partition(":")
    return Rule(
        name="band",
        signal=signal,
        words=words,
        at_least=float(known[int(len(known) * shares.low)]) if shares.low else None,
        at_most=float(known[len(known) - 1 - int(len(known) * shares.high)])
        if shares.high
        else None,
        source=f"the middle of {len(known):,} documents: {shares.low:g} lowest and "
        f"{shares.high:g} highest left out",
    )
