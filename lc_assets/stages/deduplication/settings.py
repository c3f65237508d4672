"""Settings of a search for duplicates, and the columns of the tables that it writes."""

import msgspec
import pyarrow as pa

from lc_assets.errors import BadInput
from lc_assets.text.duplicates.keys import Preference
from lc_assets.text.duplicates.shingles import SHINGLE_WORDS

DIGEST, TEXT, URL, NEAR = "digest", "text", "url", "near"
KINDS = (DIGEST, TEXT, URL, NEAR)
"""What two documents may share, in the order in which they are asked."""
REASONS = {DIGEST: "same digest", TEXT: "same text", URL: "same url", NEAR: "near duplicate"}

LEAST_MEMORY = 64 << 20
CENTRES = 16
"""Members of a bucket with which all its others are compared. A bucket of at most 17 so has all its
pairs compared.
"""

BANDS, ROWS = 18, 7
"""How a signature is cut into bands.

Candidates are compared before a document is removed, so bands may be generous: 18 of 7 rows. The
chance that two documents share one of them, beside RedPajama-V2's bands for the same similarities:

==========  ======  ======  ======  ======  ======
similarity  0.5     0.7     0.8     0.85    0.9
==========  ======  ======  ======  ======  ======
18 × 7      0.13    0.79    0.986   0.999   1.000
14 × 9      0.03    0.44    0.87    0.97    0.999
9 × 13      0.001   0.08    0.40    0.69    0.93
==========  ======  ======  ======  ======  ======
"""


class Scheme(msgspec.Struct, frozen=True, kw_only=True):
    """What shapes evidence; indexes that are matched with each other must have the same.

    Attributes:
        shingle_words: words of a shingle.
        signature: how documents are signed, in words and numbers.
        floor: pairs that are less alike are not evidence.
        centres: see `CENTRES`.
    """

    shingle_words: int = SHINGLE_WORDS
    signature: str = ""
    floor: float = 0.5
    centres: int = CENTRES


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from evidence.

    Attributes:
        threshold: pairs at least so alike are duplicates.
        by: of `KINDS`.
        prefer: who stays, as `Preference.keys`.
    """

    threshold: float = 0.8
    by: tuple[str, ...] = KINDS
    prefer: tuple[str, ...] = ("newest",)

    def __post_init__(self) -> None:
        unknown = [kind for kind in self.by if kind not in KINDS]
        if unknown or not self.by:
            raise BadInput(
                f"duplicates by {', '.join(unknown) or 'nothing'}: wanted some of "
                f"{', '.join(KINDS)}"
            )
        if not 0 < self.threshold <= 1:
            raise BadInput(f"a threshold of {self.threshold}: wanted more than 0 and at most 1")
        Preference(self.prefer)


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """What shapes no byte: memory, in bytes, of one task and of one query."""

    memory: int = 2 << 30

    def __post_init__(self) -> None:
        if self.memory < LEAST_MEMORY:
            raise BadInput(f"memory of {self.memory:,} bytes: wanted at least {LEAST_MEMORY:,}")


def require_threshold(decision: Decision, scheme: Scheme) -> None:
    """Refuse a threshold below the evidence.

    Raises:
        BadInput: when pairs that would be duplicates were never written down.
    """
    if NEAR in decision.by and decision.threshold < scheme.floor:
        raise BadInput(
            f"a threshold of {decision.threshold} is below the evidence's floor of "
            f"{scheme.floor}: make the evidence anew"
        )


FACTS = pa.schema(
    [
        ("number", pa.int64()),
        ("id", pa.string()),
        ("source", pa.string()),
        ("date", pa.string()),
        ("n_chars", pa.int64()),
        ("perplexity", pa.float64()),
        *(
            (f"{kind}_{half}", pa.uint64())
            for kind in (DIGEST, TEXT, URL)
            for half in ("high", "low")
        ),
    ]
)
"""A document: ``number`` is its file's number × 2³² + its place in the file; keys are null where
there are none.
"""

PAIRS = pa.schema(
    [
        ("a", pa.string()),
        ("b", pa.string()),
        ("a_number", pa.int64()),
        ("b_number", pa.int64()),
        ("bands", pa.uint64()),
        ("similarity", pa.float64()),
        ("verified", pa.bool_()),
    ]
)
"""Pairs that are alike at least to the floor. Bit k of ``bands`` is set when the documents share
band k.
"""

CLUSTERS = pa.schema(
    [
        ("id", pa.string()),
        ("number", pa.int64()),
        ("cluster", pa.string()),
        ("size", pa.int64()),
        ("stays", pa.bool_()),
        ("kept_id", pa.string()),
        ("similarity_to_kept", pa.float64()),
        ("why", pa.string()),
    ]
)
"""Clusters of near duplicates; ``cluster`` is the least id in it. A similarity is null when the two
share no band.
"""

REMOVED = pa.schema(
    [
        ("id", pa.string()),
        ("number", pa.int64()),
        ("reason", pa.string()),
        ("for_id", pa.string()),
        ("kept_id", pa.string()),
        ("similarity", pa.float64()),
        ("why", pa.string()),
    ]
)
"""Documents that do not stay: for which one, which one stays of all in the end, how alike they are,
and why that one.
"""

KEPT = pa.schema([("id", pa.string()), ("number", pa.int64())])
"""Documents that stay."""
