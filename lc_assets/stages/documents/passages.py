"""Which documents contain a passage that withdrawal lists name.

A document contains a passage if the passage's words stand in it in this order; case, punctuation
and white space make no difference (`lc_assets.text.contamination.loose_words`). Of a passage of
more than 64 words, every run of 64 must stand in the document.
"""

from collections.abc import Sequence

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.formats.lists.withdrawal_lists import LEAST_WORDS
from lc_assets.text.contamination.grams import (
    GramIndex,
    GramSettings,
    Item,
    build_index,
)
from lc_assets.text.contamination.overlaps import items_of
from lc_assets.text.contamination.scanning import find_grams

LONGEST_RUN = 64


def index_of_passages(passages: Sequence[str]) -> GramIndex:
    """The runs of words of some passages.

    Raises:
        BadInput: if one has fewer than 8 words.
    """
    settings = GramSettings(ngram=LONGEST_RUN, min_words=LEAST_WORDS)
    index = build_index((Item(id=text, parts=(text,)) for text in passages), settings)
    for text in np.array(index.item_ids)[index.item_grams == 0].tolist():
        raise BadInput(
            f"a passage to withdraw has fewer than {LEAST_WORDS} words: {text!r}: so short a text "
            "stands in many documents"
        )
    return index


def passages_in(text: str, index: GramIndex) -> list[str]:
    """The passages that a text contains.

    >>> index = index_of_passages(["The quick brown fox jumps over the lazy dog"])
    >>> passages_in("He said: 'the quick, brown fox jumps over the LAZY dog.'", index)
    ['The quick brown fox jumps over the lazy dog']
    """
    grams = np.unique(find_grams(text, index).grams)
    found = np.bincount(items_of(index, grams)[1], minlength=len(index.item_ids))
    whole = np.flatnonzero((found == index.item_grams) & (found > 0)).tolist()
    return [index.item_ids[item] for item in whole]
