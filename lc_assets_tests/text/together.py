"""Texts one behind the other, for what takes several at once."""

from collections.abc import Sequence

from lc_assets.arrays import Bytes, Int64s
from lc_assets.text.folding import normalized_each
from lc_assets.text.texts import Texts


def normalized_together(texts: Sequence[str]) -> tuple[Bytes, Int64s]:
    """Normalized texts, and after the last byte of each."""
    return normalized_each(*Texts(texts).utf8)
