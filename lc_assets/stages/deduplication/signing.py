"""How `lc dedup` signs documents: this package's fast MinHash, cut into bands that miss few true
duplicates.

Candidates are compared before anybody is removed, so bands may be generous: 18 of 7 rows. The
chance that two documents share one of them, beside RedPajama-V2's bands for the same similarities:

==========  ======  ======  ======  ======  ======
similarity  0.5     0.7     0.8     0.85    0.9
==========  ======  ======  ======  ======  ======
18 × 7      0.13    0.79    0.986   0.999   1.000
14 × 9      0.03    0.44    0.87    0.97    0.999
9 × 13      0.001   0.08    0.40    0.69    0.93
==========  ======  ======  ======  ======  ======
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.stages.deduplication.asking import Signing
from lc_assets.stages.deduplication.stored_signatures import label_of_signatures
from lc_assets.text.duplicates.minhash import FAST, signature

BANDS, ROWS = 18, 7


def sign(text: str) -> NDArray[np.uint32] | None:
    """``(18, 7)`` uint32 of a text; None when it has fewer than 13 words."""
    numbers = signature(text, FAST)
    return None if numbers is None else numbers[: BANDS * ROWS].reshape(BANDS, ROWS)


OWN: Final = Signing(name=f"{FAST.label}, {BANDS} bands of {ROWS}", bands=BANDS, sign=sign)
"""How `lc dedup` signs."""


def stored_signing(folder: Path) -> Signing:
    """Take signatures that lie in ``folder`` instead of making them, cut into the same bands.

    Raises:
        BadInput: when there are none, or they were made by several schemes.
        CorruptFile: when a file of them is none.
    """
    return replace(
        OWN, name=f"{label_of_signatures(folder)}, {BANDS} bands of {ROWS}", stored=folder
    )
