"""Opening what `lc_assets.text.models` wants handed in: models and lists of addresses, by path,
with their digests.

===========  ==============================================================================================
name         is
===========  ==============================================================================================
language     a fastText model of languages; the packaged ``lid.176.ftz`` when no path is given
blocklist    a text file of domains and addresses, or a folder in UT1's layout
perplexity   a KenLM model; ``{language}.sp.model`` beside a ``{language}.arpa.bin`` cuts lines into its words
palm, ...    fastText models of quality, `lc_assets.text.models.QUALITY`
===========  ==============================================================================================
"""

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from lc_assets.formats.blocklists import read_blocklist
from lc_assets.formats.language_model import open_language_model
from lc_assets.formats.perplexity_model import open_perplexity_model
from lc_assets.formats.quality_model import open_quality_models, require_known
from lc_assets.text.models import BLOCKLIST, LANGUAGE, PERPLEXITY, QUALITY, Models

_ARPA: Final = ".arpa.bin"
_PIECES: Final = ".sp.model"


def open_models(
    needs: Collection[str],
    *,
    language: Path | None = None,
    blocklist: Path | None = None,
    perplexity: Path | None = None,
    quality: Mapping[str, Path] | None = None,
) -> Models:
    """Open what is needed and given, and nothing else.

    Args:
        needs: names as above, such as `lc_assets.text.models.needs_of` gives them.
        language: path; None for the packaged model.
        blocklist: path; None: there is none.
        perplexity: path; None: there is none, and the published perplexity is taken.
        quality: paths by name.

    Raises:
        BadInput: when a file is not there, a list cannot be meant, or there is no model of quality
            of that name.
        CorruptFile: when a file is no model, or damaged.
    """
    require_known(quality or {})
    digests: dict[str, str] = {}
    identifier = open_language_model(language) if LANGUAGE in needs else None
    listed = read_blocklist(blocklist) if BLOCKLIST in needs and blocklist else None
    pieces = _pieces_beside(perplexity) if perplexity else None
    scorer = (
        open_perplexity_model(perplexity, pieces) if PERPLEXITY in needs and perplexity else None
    )
    scores = open_quality_models(
        {name: path for name, path in (quality or {}).items() if name in needs}
    )
    if identifier:
        digests["language model"] = identifier.digest
    if listed:
        digests["blocklist"] = listed.digest
    if scorer and perplexity:
        digests["perplexity model"] = _digest(perplexity)
    if scorer and pieces:
        digests["perplexity model's words"] = _digest(pieces)
    digests |= {
        f"quality model {name}": scores[signal].digest
        for name, signal in QUALITY.items()
        if signal in scores
    }
    return Models(
        language=identifier.predict if identifier else None,
        blocklist=listed,
        perplexity=scorer,
        quality={signal: model.predict for signal, model in scores.items()},
        digests=digests,
    )


def _pieces_beside(model: Path) -> Path | None:
    beside = model.with_name(model.name.removesuffix(_ARPA) + _PIECES)
    return beside if model.name.endswith(_ARPA) and beside.is_file() else None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
