"""Reading the words that concepts are not made of: a text file of three lists.

::

    # a comment
    [stop]
    a an the
    [pronouns]
    he she him
    [abbreviations]
    mr dr

Words are in lower case, separated by white space; a list may be left out. `PRESET` comes with the
package and is English. Here: from a file to `lc_assets.text.concept_words.SpecialWords`. Not here:
common words, which a body of text says itself (`lc_assets.text.background`).
"""

import hashlib
from importlib import resources
from pathlib import Path
from typing import Final

from lc_assets.errors import BadInput
from lc_assets.text.concept_words import SpecialWords, folded

PRESET: Final = "referral-words-en.txt"
LISTS: Final = ("stop", "pronouns", "abbreviations")


def read_special_words(path: Path | None = None) -> SpecialWords:
    """Read a file's lists, or the preset's when there is none.

    Raises:
        BadInput: when it cannot be read, or is not as above; names the line.
    """
    where = PRESET if path is None else str(path)
    lists: dict[str, set[str]] = {name: set() for name in LISTS}
    now: set[str] | None = None
    for number, line in enumerate(
        _content(path).decode("utf-8", "replace").lstrip("\ufeff").splitlines(), 1
    ):
        bare = line.strip()
        if bare.startswith("[") and bare.endswith("]"):
            if bare[1:-1] not in lists:
                raise BadInput(
                    f"{where}, line {number}: no list is called {bare[1:-1]!r}; there are "
                    f"{', '.join(LISTS)}"
                )
            now = lists[bare[1:-1]]
        elif bare and not bare.startswith("#"):
            if now is None:
                raise BadInput(
                    f"{where}, line {number}: words before any list; wanted one of "
                    f"{', '.join(f'[{name}]' for name in LISTS)}"
                )
            now |= {"".join(map(folded, word)) for word in bare.split()}
    return SpecialWords(**{name: frozenset(words) for name, words in lists.items()})


def digest_of_words(path: Path | None = None) -> str:
    """SHA-256 of the file, or of the preset.

    Raises:
        BadInput: when it cannot be read.
    """
    return hashlib.sha256(_content(path)).hexdigest()


def _content(path: Path | None) -> bytes:
    if path is None:
        return (resources.files("lc_assets") / "presets" / PRESET).read_bytes()
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: no readable file of words: {error.strerror}") from error
