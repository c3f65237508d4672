"""KenLM models of perplexity, with the SentencePiece models that cut texts into their words.

Texts are scored as CCNet does (``cc_net/perplexity.py`` of facebookresearch/cc_net).
"""

import importlib
from pathlib import Path
from typing import Any

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.text.rules.models import TextScorer, ccnet_normalized

_ARPA = ".arpa.bin"
_PIECES = ".sp.model"
_TEXT_MODEL = ".arpa"
_LAST_LINE = b"\\end\\"


def pieces_beside(model: Path) -> Path | None:
    """The SentencePiece model beside a KenLM model in CCNet's layout; None without one."""
    beside = model.with_name(model.name.removesuffix(_ARPA) + _PIECES)
    return beside if model.name.endswith(_ARPA) and beside.is_file() else None


def open_perplexity_model(model: Path, pieces: Path | None = None) -> TextScorer:
    """Open a KenLM model, for `lc_assets.text.rules.models.perplexity_of`.

    Texts are normalized as CCNet does. With ``pieces`` a whole text is one sequence; without, each
    line is one.

    Args:
        model: ``.arpa`` or binary.
        pieces: SentencePiece model that cuts texts into the model's words.

    Raises:
        BadInput: when a file does not exist, or the library for it is not installed.
        CorruptFile: when KenLM or SentencePiece cannot read it.
    """
    known = _opened("kenlm", "Model", model)
    cut = None if pieces is None else _opened("sentencepiece", "SentencePieceProcessor", pieces)

    def score(text: str) -> tuple[float, int]:
        text = text.encode("utf-8", "replace").decode("utf-8")
        if cut is None:
            lines = [ccnet_normalized(line) for line in text.split("\n")]
        else:
            lines = [" ".join(cut.encode(ccnet_normalized(text), out_type=str))]
        lines = [line for line in lines if line]
        return (
            sum((float(known.score(line)) for line in lines), 0.0),
            sum(len(line.split()) + 1 for line in lines),
        )

    return score


def _opened(library: str, kind: str, path: Path) -> Any:
    if not path.is_file():
        raise BadInput(
            f"{path}: does not exist; give the path of a model, or use the published perplexity"
        )
    if path.name.endswith(_TEXT_MODEL):
        _require_end(path)
    try:
        module = importlib.import_module(library)
    except ImportError as error:
        raise BadInput(
            f"{path}: needs the library {library}; pip install {library}, or use the published "
            "perplexity"
        ) from error
    try:
        return getattr(module, kind)(str(path))
    except (OSError, RuntimeError, UnicodeDecodeError) as error:  # of bytes in KenLM's own message
        raise CorruptFile(f"{path}: {library} does not take it: {error}") from error


def _require_end(path: Path) -> None:
    """Refuse an ARPA file that is cut short, without parsing it; KenLM checks binary ones."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - 64, 0))
        if _LAST_LINE not in file.read():
            raise CorruptFile(f"{path}: is cut short: does not end with \\end\\; fetch it again")
