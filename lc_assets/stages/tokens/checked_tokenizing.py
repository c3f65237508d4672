"""Tokenizing one file with the fast tokenizer, checked against the reference tokenizer.

The fast tokenizer does the work; the reference tokenizer (tiktoken, tokenizers or sentencepiece)
encodes the beginnings of some documents of every file. If any ids differ, the whole file is
tokenized by the reference, so the ids are the reference's in any case.
"""

from collections.abc import Callable
from typing import Final

from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.randomness import rng_for
from lc_assets.tokens.tokenizers import Tokenizer, disagreement

GAVE_UP: Final = "tokenizer gave up"
"""tiktoken panics at a run of about a million spaces; the fast tokenizer does not."""
BY_REFERENCE: Final = "files tokenized by the reference tokenizer"
UNCHECKED: Final = "files not checked by a reference tokenizer"

CHECKED_FIRST: Final = 4
"""Documents at the beginning of a file that are all checked."""
CHECKED_CHARS: Final = 20_000
"""Length of a beginning: it costs the reference about 2 ms."""


class _TokenizersDiffer(Exception):
    """The two tokenizers gave different ids; the file's output is discarded."""


class SpotCheck:
    """Compares two tokenizers on the beginnings of some documents of a file.

    Checked are the first `CHECKED_FIRST` documents, and one drawn from each following run of
    documents, every run twice as long as the one before: the length of the file need not be known.
    """

    def __init__(self, fast: Tokenizer, reference: Tokenizer | None, *, key: str) -> None:
        self._fast, self._reference = fast, reference
        self._rng = rng_for("spot check", seed=0, key=key)
        self._n_seen, self._chosen, self._run_end = 0, 0, CHECKED_FIRST

    def see(self, text: str) -> None:
        """Look at the file's next document; may end the work given to `tokenize_checked`."""
        if self._reference is None:
            return
        self._n_seen += 1
        if self._n_seen > self._run_end:
            begin, self._run_end = self._run_end + 1, 2 * self._run_end
            self._chosen = int(self._rng.integers(begin, self._run_end + 1))
        if self._n_seen <= CHECKED_FIRST or self._n_seen == self._chosen:
            try:
                different = disagreement(
                    self._fast, self._reference, [text], head_chars=CHECKED_CHARS
                )
            except BadInput:  # one of them gives up on such a text: nothing to compare
                return
            if different:
                raise _TokenizersDiffer


def tokenize_checked(
    setting: str, key: str, work: Callable[[Tokenizer, SpotCheck], Counts]
) -> Counts:
    """Run ``work``, which tokenizes one file, with the fast tokenizer if the reference agrees.

    Args:
        setting: of the tokenizer, as in the recipe.
        key: the file's name, which decides the documents to check.
        work: shows the spot check each text before it encodes it; publishes nothing when it raises.

    Returns:
        The work's counts, with `BY_REFERENCE` and `UNCHECKED`.

    Raises:
        BadInput: when neither tokenizer can be had.
    """
    fast, reference = (_tokenizer_or_why(setting, fast=fast) for fast in (True, False))
    known = None if isinstance(reference, BadInput) else reference
    if not isinstance(fast, BadInput):
        try:
            counts = work(fast, SpotCheck(fast, known, key=key))
            return counts + Counts(extra={BY_REFERENCE: 0, UNCHECKED: int(known is None)})
        except _TokenizersDiffer:
            pass
    if isinstance(reference, BadInput):
        raise reference
    counts = work(reference, SpotCheck(reference, None, key=key))
    return counts + Counts(extra={BY_REFERENCE: 1, UNCHECKED: 0})


def _tokenizer_or_why(setting: str, *, fast: bool) -> Tokenizer | BadInput:
    """A tokenizer, or why there is none: the fast one does not read every kind of file, and the
    package of the reference may be missing.
    """
    try:
        return tokenizer_of(setting, fast=fast)
    except BadInput as why:
        return why
