"""RedPajama-V2's three scores by trained models: plug-ins, because the models are Together's and not part of anything here.

===========================  ===============  ==========================
score                        model            languages
===========================  ===============  ==========================
rps_doc_ml_palm_score        ``palm``         English
rps_doc_ml_wikiref_score     ``wikiref``      English
rps_doc_ml_wikipedia_score   ``wikipedia``    all others, one model each
===========================  ===============  ==========================

A model is a fastText file that tells ``__label__cc`` (the crawl) from text of a better kind; the score is the probability
of the latter, rounded to 8 places. A score whose model was not given is absent: it is not guessed.
Source: ``app/src/core/quality_signals/classifiers.py`` of togethercomputer/RedPajama-Data.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from lc_assets.errors import BadInput
from lc_assets.formats.language_model import open_line_model
from lc_assets.text.languages import Predictor, one_line

SCORES: Final = {"palm": "rps_doc_ml_palm_score", "wikiref": "rps_doc_ml_wikiref_score", "wikipedia": "rps_doc_ml_wikipedia_score"}


def open_quality_models(paths: Mapping[str, Path]) -> Callable[[str], dict[str, float]]:
    """Open the models given, by the names above, for one language.

    Returns:
        The function from a text to its scores, of the models that were given and no others.

    Raises:
        BadInput: when a name is none of the above, or a file is not there.
        CorruptFile: when a file is no model.
    """
    unknown = sorted(set(paths) - set(SCORES))
    if unknown:
        raise BadInput(f"no such model of quality: {', '.join(unknown)}; there are {', '.join(SCORES)}")
    models = {SCORES[name]: open_line_model(path).predict for name, path in sorted(paths.items())}
    return lambda text: {name: quality_score(text, predict) for name, predict in models.items()}


def quality_score(text: str, predict: Predictor) -> float:
    r"""How little a text is like the crawl, 0 to 1.

    >>> quality_score("a\nb", lambda line: ("cc", 0.75)), quality_score("a\nb", lambda line: ("wiki", 0.75))
    (0.25, 0.75)
    """
    label, probability = predict(one_line(" ".join(text.splitlines())))
    return round(1 - probability if label == "cc" else probability, 8)
