r"""Sentences of a text, as Megatron's ``tools/preprocess_data.py --split-sentences`` finds them: by
NLTK's Punkt, a million characters at a time.

The package ``nltk`` and its data ``punkt_tab`` must be installed. With ``keep_newlines`` a sentence
ends with the white space behind it; else that is lost.

Source: Megatron-LM core 0.19.2, ``tools/preprocess_data.py``. It reads ``punkt``, the pickled form;
NLTK says that ``punkt_tab`` is the same model without pickle, which was not compared here.
"""

import functools
import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from lc_assets.errors import BadInput

CHARS_AT_ONCE = 1_000_000
"""Characters that are split together, whatever sentence is there."""

_PERIOD_CONTEXT = r"""
        \S*
        %(SentEndChars)s
        \s*
        (?=(?P<after_tok>
            %(NonWord)s
            |
            (?P<next_tok>\S+)
        ))"""
"""As Megatron's ``CustomLanguageVars`` has it, after https://stackoverflow.com/questions/33139531."""


def sentences_of(text: str, language: str, *, keep_newlines: bool = False) -> Iterator[str]:
    """The sentences of a text.

    Args:
        text: the text.
        language: of Punkt's model, such as ``english``.
        keep_newlines: whether sentences keep the white space behind them.

    Raises:
        BadInput: when NLTK, or its model of the language, is not installed.
    """
    splitter = _splitter(language, keep_newlines)
    for start in range(0, len(text), CHARS_AT_ONCE):
        yield from splitter.tokenize(text[start : start + CHARS_AT_ONCE])


def model_digest(language: str) -> str:
    """Digest of what decides where sentences end: the numbers of Punkt's model; raises as
    `sentences_of`.
    """
    found = _splitter(language, False)._params
    sets = (
        found.abbrev_types,
        found.collocations,
        found.sent_starters,
        found.ortho_context.items(),
    )
    return hashlib.sha256(msgspec.json.encode([sorted(one) for one in sets])).hexdigest()


@functools.cache
def _splitter(language: str, keep_newlines: bool) -> Any:
    try:
        from nltk.tokenize import punkt

        splitter = punkt.PunktTokenizer(language)
    except ImportError as error:
        raise BadInput("sentences are split by NLTK 3.9 or newer: pip install nltk") from error
    except (LookupError, OSError, ValueError) as error:
        raise BadInput(
            f"NLTK has no model of {language!r} to split sentences by: python -m nltk.downloader "
            "punkt_tab, or name the folder of its data in NLTK_DATA"
        ) from error
    if not keep_newlines:
        return splitter
    variables = type(
        "KeepingNewlines", (punkt.PunktLanguageVars,), {"_period_context_fmt": _PERIOD_CONTEXT}
    )
    return punkt.PunktSentenceTokenizer(splitter._params, lang_vars=variables())
