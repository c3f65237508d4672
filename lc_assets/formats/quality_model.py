"""RedPajama-V2's three scores by trained models: plug-ins, because the models are Together's and
not part of anything here.

===========================  ===============  ==========================
score                        model            languages
===========================  ===============  ==========================
rps_doc_ml_palm_score        ``palm``         English
rps_doc_ml_wikiref_score     ``wikiref``      English
rps_doc_ml_wikipedia_score   ``wikipedia``    all others, one model each
===========================  ===============  ==========================

A model is a fastText file that tells ``__label__cc`` (the crawl) from text of a better kind. A
score whose model was not given is absent: it is not guessed. Here: opening them. Not here: the
score (`lc_assets.text.models.quality_score`).
Source: ``app/src/core/quality_signals/classifiers.py`` of togethercomputer/RedPajama-Data.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

from lc_assets.errors import BadInput
from lc_assets.formats.language_model import LineModel, open_line_model
from lc_assets.text.models import QUALITY


def open_quality_models(paths: Mapping[str, Path]) -> dict[str, LineModel]:
    """Open the models given, by the names above.

    Returns:
        By signal: the models that were given and no others.

    Raises:
        BadInput: when a name is none of the above, or a file is not there.
        CorruptFile: when a file is no model.
    """
    require_known(paths)
    return {QUALITY[name]: open_line_model(path) for name, path in sorted(paths.items())}


def require_known(names: Collection[str]) -> None:
    """Refuse names that are none of the above.

    Raises:
        BadInput: names them.
    """
    unknown = sorted(set(names) - set(QUALITY))
    if unknown:
        raise BadInput(
            f"no such model of quality: {', '.join(unknown)}; there are {', '.join(QUALITY)}"
        )
