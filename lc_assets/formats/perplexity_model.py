"""KenLM models of text, by path: a plug-in, because neither models nor KenLM's library are part of
anything here.

A model's words are what it was trained on. CCNet's are pieces of a SentencePiece model that lies
beside each (``en.arpa.bin``, ``en.sp.model``); give both. Without the second a line's words are
what spaces separate.
"""

import importlib
from pathlib import Path
from typing import Any

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.text.perplexity import LineScorer


def open_perplexity_model(model: Path, pieces: Path | None = None) -> LineScorer:
    """Open a KenLM model, for `lc_assets.text.perplexity.perplexity_of`.

    Args:
        model: ``.arpa`` or binary.
        pieces: SentencePiece model that cuts lines into the model's words.

    Raises:
        BadInput: when a file is not there, or the library for it is not installed.
        CorruptFile: when KenLM or SentencePiece does not take it.
    """
    known = _opened("kenlm", "Model", model)
    cut = None if pieces is None else _opened("sentencepiece", "SentencePieceProcessor", pieces)

    def score(line: str) -> tuple[float, int]:
        line = line.encode("utf-8", "replace").decode("utf-8")
        words = " ".join(cut.encode(line, out_type=str)) if cut else line
        return float(known.score(words)), len(words.split())

    return score


def _opened(library: str, kind: str, path: Path) -> Any:
    if not path.is_file():
        raise BadInput(
            f"{path}: is not there; give the path of a model, or use the published perplexity"
        )
    try:
        module = importlib.import_module(library)
    except ImportError as error:
        raise BadInput(
            f"{path}: needs the library {library}; pip install {library}, or use the published "
            "perplexity"
        ) from error
    try:
        return (
            getattr(module, kind)(str(path))
            if library == "kenlm"
            else getattr(module, kind)(model_file=str(path))
        )
    except (OSError, RuntimeError) as error:
        raise CorruptFile(f"{path}: {library} does not take it: {error}") from error
