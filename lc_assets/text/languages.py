"""Which language a document is in, and how sure that is: by its beginning, and whatever model is
handed in.

========================  =====================================================================================
``language``              the model's name for it, such as ``en``; empty for a document without a word
``language_probability``  0 to 1; 0 for a document without a word
========================  =====================================================================================

The model sees the first 2,000 characters, with each newline as a space: a language shows early, and
time does not grow with a document. Lone surrogates become U+FFFD. Here: what is shown to a model
and what is made of its answer. Not here: models (`lc_assets.formats.models`).
"""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

Predictor: TypeAlias = Callable[[str], tuple[str, float]]
"""Takes a line of text to a language and its probability."""

BEGINNING_CHARS: Final = 2000


class Language(NamedTuple):
    """What a document is thought to be in.

    Attributes:
        language: as above.
        probability: as above.
    """

    language: str
    probability: float


def language_of(text: str, predict: Predictor) -> Language:
    r"""Ask a model for a document's language.

    >>> language_of("To be,\nor not to be" * 1000, lambda line: ("en" if line.startswith("To be, or") else "", len(line)))
    Language(language='en', probability=1.0)
    >>> language_of(" \n", lambda line: ("en", 0.1))
    Language(language='', probability=0.0)
    """
    line = one_line(text[:BEGINNING_CHARS])
    if not line:
        return Language("", 0.0)
    language, probability = predict(line)
    return Language(
        language, min(max(float(probability), 0.0), 1.0)
    )  # fastText's softmax may end at 1.00001


def one_line(text: str) -> str:
    r"""Text without newlines around or in it, and without lone surrogates: what fastText reads as
    one line.

    >>> one_line("\na\nb\ud800\n")
    'a b\ufffd'
    """
    line = text.strip().replace("\n", " ")
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:
        return line.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return line
