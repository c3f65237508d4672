"""What the texts of a vocabulary's ids say of sentences and lines: a flag per id, found out when an
id first turns up.

Here: ids to texts. Not here: what a text says (`lc_assets.packing.cutting`), vocabularies
    (`lc_assets.formats.named_tokenizers`).
"""

import numpy as np
from numpy.typing import NDArray

from lc_assets.formats.named_tokenizers import text_of
from lc_assets.packing.cutting import flags_of

UNKNOWN = 255


class TokenFlags:
    """Flags of a vocabulary's ids.

    Args:
        setting: of the tokenizer, as `named_tokenizers.vocabulary_of` takes it.
        n_ids: of the vocabulary.
    """

    def __init__(self, setting: str, n_ids: int) -> None:
        self._setting = setting
        self._flags = np.full(n_ids, UNKNOWN, np.uint8)

    def covering(self, ids: NDArray[np.integer]) -> NDArray[np.uint8]:
        """The flags of all ids; those of ``ids`` are known, of others only what was asked for
        before.

        >>> flags = TokenFlags("gpt2", 50_257)
        >>> [int(flags.covering(np.array([13, 198, 262]))[token]) for token in (13, 198, 262)]
        [1, 6, 4]
        """
        strange = np.unique(ids[self._flags[ids] == UNKNOWN])
        self._flags[strange] = [
            flags_of(text_of(self._setting, [token])) for token in strange.tolist()
        ]
        return self._flags
