r"""Columns that a model or a blocklist gives, and computing them.

========================  =========  ===============================================================
column                    needs      is
========================  =========  ===============================================================
``language_probability``  language   probability of the language that the model finds
``language_is``           language   1 when that is the language given for the document, else 0;
                                     missing when none is given
``domain_blocked``        blocklist  1 when the page's domain is on the list, else 0; missing
                                     without a host
``url_blocked``           blocklist  1 when the page or its domain is on the list, else 0; missing
                                     without a host
``perplexity``            (model)    by the given model, of the normalized text; otherwise as
                                     published; otherwise missing
``rps_doc_ml_*``          palm,      0 to 1, how little the text resembles the crawl; computed for
                          wikiref,   every language: use it per language
                          wikipedia
========================  =========  ===============================================================

Models see a text before its lines are edited. A language model sees the first 2,000 characters,
with each newline as a space and lone surrogates as U+FFFD; a document without a word has no
language and probability 0. FineWeb's "English at 0.65" is two rules: ``language_is`` at least 1 and
``language_probability`` at least 0.65. `lc_assets.formats.lists.models` opens models.

Source of the perplexity: ``cc_net/perplexity.py`` of facebookresearch/cc_net.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from lc_assets.text.links.addresses import Blocklist, host_of

Predictor: TypeAlias = Callable[[str], tuple[str, float]]
"""Takes a line of text to a language and its probability."""

BEGINNING_CHARS = 2000


def language_of(text: str, predict: Predictor) -> tuple[str, float]:
    r"""Detect a document's language, and its probability, with a model.

    >>> predict = lambda line: ("en" if line.startswith("To be, or") else "", len(line))
    >>> language_of("To be,\nor not to be" * 1000, predict)
    ('en', 1.0)
    >>> language_of(" \n", lambda line: ("en", 0.1))
    ('', 0.0)
    """
    line = one_line(text[:BEGINNING_CHARS])
    if not line:
        return "", 0.0
    language, probability = predict(line)
    return language, min(max(float(probability), 0.0), 1.0)  # fastText's may end at 1.00001


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


TextScorer: TypeAlias = Callable[[str], tuple[float, int]]
"""Takes a text to the base-10 logarithm of its probability, and its number of tokens; the ends of
sequences are counted in both.
"""


def perplexity_of(text: str, score: TextScorer) -> float | None:
    r"""Ten to the power of minus the mean logarithm per token; None for a text without one.

    >>> perplexity_of("a b\nc", lambda text: (-5.0, 5))
    10.0
    >>> perplexity_of("", lambda text: (0.0, 0)) is None
    True
    """
    logarithm, n_tokens = score(text)
    return float(10.0 ** min(-logarithm / n_tokens, 300.0)) if n_tokens else None


_DIGIT = re.compile(r"\d")
_PUNCTUATION = str.maketrans(
    dict(
        zip(
            "，。、„”“«»１」「《》´∶：？！（）；–～’━〈〉【】％►",
            ',.,""""""""""\'::?!();-~\'-<>[]%-',
            strict=True,
        )
    )
    | {"—": " - ", "．": ". ", "…": "..."}
    | dict.fromkeys(map(chr, (*range(32), *range(127, 160))), "")
)
"""CCNet's replacements; controls go, newlines too."""


def ccnet_normalized(text: str) -> str:
    r"""A text as CCNet's language models were trained on: lower case, without accents, each digit
    0, punctuation in ASCII, no control characters.

    >>> ccnet_normalized(" Été 2023 — «No.»\nNext… ")
    'ete 0000  -  "no."next...'

    Source: ``normalize`` of ``cc_net/text_normalizer.py`` of facebookresearch/cc_net.
    """
    decomposed = unicodedata.normalize("NFD", text.strip().lower())
    bare = "".join(char for char in decomposed if unicodedata.category(char) != "Mn")
    return _DIGIT.sub("0", bare).translate(_PUNCTUATION)


LANGUAGE, BLOCKLIST, PERPLEXITY = "language", "blocklist", "perplexity"
QUALITY = {
    "palm": "rps_doc_ml_palm_score",
    "wikiref": "rps_doc_ml_wikiref_score",
    "wikipedia": "rps_doc_ml_wikipedia_score",
}
"""Signals by the names of RedPajama-V2's models of quality."""

_NEEDS = {
    "language_probability": LANGUAGE,
    "language_is": LANGUAGE,
    "domain_blocked": BLOCKLIST,
    "url_blocked": BLOCKLIST,
    "perplexity": PERPLEXITY,
    **{signal: name for name, signal in QUALITY.items()},
}
MODELLED = frozenset(_NEEDS)
"""Every column that a model or a list of addresses gives."""
MODEL_MEASURES = tuple(name for name in _NEEDS if name not in QUALITY.values())
"""Those that have no published signal."""

_OPTIONS = {
    LANGUAGE: "a model; give --language-model PATH, or language in [filtered_documents.models]",
    BLOCKLIST: "a list of addresses; give --blocklist PATH, or blocklist in "
    "[filtered_documents.models]",
    **{
        name: f"a model; give --{name}-model PATH, or {name} in [filtered_documents.models.quality]"
        for name in QUALITY
    },
}
GIVEN_BY = {column: _OPTIONS[need] for column, need in _NEEDS.items() if need in _OPTIONS}
"""What a column needs, and how to give it."""

_LANGUAGES = """eng:en deu:de fra:fr spa:es ita:it por:pt nld:nl pol:pl rus:ru ukr:uk
    ces:cs slk:sk slv:sl hun:hu ron:ro bul:bg ell:el tur:tr ara:ar fas:fa heb:he hin:hi ben:bn
    jpn:ja kor:ko zho:zh vie:vi tha:th ind:id swe:sv dan:da nor:no nob:no nno:nn fin:fi est:et
    lav:lv lit:lt cat:ca glg:gl eus:eu hrv:hr srp:sr lat:la isl:is"""
_LONG_NAMES = dict(pair.split(":") for pair in _LANGUAGES.split())
"""Common Crawl's names of three letters, to those of the model."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Models:
    """The given models and lists; None, or absent, if not given.

    Attributes:
        language: names a text's language.
        blocklist: blocked domains and addresses.
        perplexity: scores a text.
        quality: label a text as the crawl's or as of a better kind, by signal.
        digests: SHA-256 of each file, in hexadecimal, by its use; for receipts.
    """

    language: Predictor | None = None
    blocklist: Blocklist | None = None
    perplexity: TextScorer | None = None
    quality: Mapping[str, Predictor] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """What can be computed, in the order of the table above."""
        there = {LANGUAGE: self.language, BLOCKLIST: self.blocklist, PERPLEXITY: True}
        return tuple(
            column
            for column, need in _NEEDS.items()
            if there.get(need) is not None or column in self.quality
        )


NO_MODELS = Models()


class Offered(NamedTuple):
    """The parts of a document that columns are computed from.

    Attributes:
        text: the text that is tested.
        edited_from: the text before its lines were edited; None when nothing was edited.
        url: its address; None when it is not known.
        language: stated language of the document, two letters; empty when it is not known.
        source_domain: host of the page; empty when it is not known.
        copied: its published ``ccnet_*`` values.
    """

    text: str
    edited_from: str | None = None
    url: str | None = None
    language: str = ""
    source_domain: str = ""
    copied: Mapping[str, float | None] = MappingProxyType({})

    @property
    def whole(self) -> str:
        """The text before its lines were edited."""
        return self.text if self.edited_from is None else self.edited_from


def needs_of(columns: Collection[str]) -> frozenset[str]:
    """Models and lists needed or used for some columns; names as in the table above.

    >>> sorted(needs_of(["language_is", "url_blocked", "rps_doc_ml_palm_score", "word_count:raw"]))
    ['blocklist', 'language', 'palm']
    """
    return frozenset(_NEEDS[column] for column in columns if column in _NEEDS)


def model_values(
    document: Offered, wanted: Collection[str], models: Models
) -> dict[str, float | None]:
    """Compute only those of the requested columns that are `MODELLED`.

    >>> english = Models(language=lambda line: ("en", 0.9))
    >>> wanted = ["language_is", "language_probability", "perplexity"]
    >>> model_values(Offered(text="To be", language="eng"), wanted, english)
    {'language_is': 1.0, 'language_probability': 0.9, 'perplexity': None}
    """
    found: dict[str, float | None] = {}
    if models.language and not _OF_LANGUAGE.isdisjoint(wanted):
        language, found["language_probability"] = language_of(document.whole, models.language)
        stated = stated_languages(document.language)
        found["language_is"] = float(language in stated) if stated else None
    if models.blocklist is not None and document.url and host_of(document.url):
        found |= models.blocklist.measures(document.url)
    if models.perplexity is None:
        found["perplexity"] = document.copied.get("ccnet_perplexity")
    elif "perplexity" in wanted:
        found["perplexity"] = perplexity_of(document.whole, models.perplexity)
    for signal, predict in models.quality.items():
        if signal in wanted:
            found[signal] = quality_score(document.whole, predict)
    return {column: found.get(column) for column in wanted if column in MODELLED}


def stated_languages(stated: str) -> frozenset[str]:
    """The model's names of a document's stated languages; empty when none is stated.

    >>> [sorted(stated_languages(stated)) for stated in ("eng,deu", "pt-BR", " ")]
    [['de', 'en'], ['pt'], []]
    """
    names = (
        name.strip().lower().replace("_", "-").partition("-")[0].strip()
        for name in stated.split(",")
    )
    return frozenset(_LONG_NAMES.get(name, name) for name in names if name)


def quality_score(text: str, predict: Predictor) -> float:
    r"""How little a text resembles the crawl, 0 to 1, rounded to 8 places.

    A model separates ``cc`` (the crawl) from better text; the score is the probability of the
    latter.

    >>> [quality_score("a\nb", lambda line: (label, 0.75)) for label in ("cc", "wiki")]
    [0.25, 0.75]

    Source: ``app/src/core/quality_signals/classifiers.py`` of togethercomputer/RedPajama-Data.
    """
    label, probability = predict(one_line(" ".join(text.splitlines())))
    return round(1 - probability if label == "cc" else probability, 8)


_OF_LANGUAGE = frozenset(("language_probability", "language_is"))
