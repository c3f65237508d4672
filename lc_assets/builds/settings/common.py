"""The base class of settings, and the settings of evaluation items, personal data, withdrawals and
models.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, dataclass_transform

import msgspec
from msgspec import Meta

from lc_assets.errors import BadInput

_ATTRIBUTE = re.compile(r"^    (\w+): ((?:.|\n(?!    \w+: |\n))*)", re.MULTILINE)

Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Seed = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Tokens = Annotated[int, Meta(gt=0, le=2**31 - 1)]
"""Megatron states a document's length as an int32."""
Fraction = Annotated[float, Meta(ge=0, le=1)]
Share = Annotated[float, Meta(gt=0, le=1)]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One stage's settings; all of them are frozen, and made by keywords."""


def attributes_of(kind: Callable[..., Any]) -> dict[str, str]:
    """Meanings of a class's attributes, or of a function's arguments, from its docstring.

    >>> from lc_assets.builds.recipe import Recipe
    >>> attributes_of(type(Recipe().longcrawl_flat))["codec"][:11]
    '``blosc-lz4'
    """
    *_, attributes = re.split("(?:Attributes|Args):\n", inspect.getdoc(kind) or "", maxsplit=1)
    return {name: " ".join(words.split()) for name, words in _ATTRIBUTE.findall(attributes)}


class DecontaminationSettings(Settings):
    """Which documents count as contaminated by evaluation items; see docs/contamination.md.

    Attributes:
        against: files and folders of evaluation sets, or of a held-out corpus; without any, no
            document is contaminated.
        fields: record fields to search; the usual ones if empty.
        rule: an established rule, which sets ``ngram``, ``min_words``, ``mode``, ``threshold`` and
            ``ignore_common``: ``gpt3``, ``llama2``, ``tulu3``, ``olmo3``; or ``edited``, which also
            finds items of which a word was changed.
        ngram: number of words in an n-gram.
        min_words: items with fewer words are ignored.
        sample: keep one n-gram in this many.
        mode: ``coverage`` of an item, ``any`` n-gram, ``overlap`` on either side; or the share of
            an item's ``words`` in n-grams close together, ``weighted`` by rarity.
        threshold: documents with at least this share are contaminated.
        ignore_common: n-grams in more documents of the corpus than this are ignored; unset ignores
            none.
        max_items: n-grams in more items than this are ignored.
        action: ``drop`` a contaminated document; or ``cut`` the matches out of the texts that
            `clean_documents` publishes.
        margin: number of characters cut on either side of a match.
    """

    against: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    rule: Literal["own", "edited", "gpt3", "llama2", "tulu3", "olmo3"] = "own"
    ngram: Annotated[int, Meta(ge=1, le=64)] = 13
    min_words: Annotated[int, Meta(ge=1, le=64)] = 8
    sample: Annotated[int, Meta(ge=1, le=10**6)] = 1
    mode: Literal["coverage", "any", "overlap", "words", "weighted"] = "coverage"
    threshold: Share = 0.5
    ignore_common: Natural | None = None
    max_items: Positive = 100
    action: Literal["drop", "cut"] = "drop"
    margin: Annotated[int, Meta(ge=0, le=10**6)] = 0


DECONTAMINATION_RULES: Mapping[str, Mapping[str, Any]] = {
    "edited": {"ngram": 4, "min_words": 7, "mode": "weighted", "threshold": 0.65},
    "gpt3": {"ngram": 13, "min_words": 8, "mode": "any", "ignore_common": 10},
    "llama2": {"ngram": 11, "min_words": 11, "mode": "words", "threshold": 0.8},
    "tulu3": {"ngram": 8, "min_words": 8, "mode": "words", "threshold": 0.5},
    "olmo3": {"ngram": 5, "min_words": 20, "mode": "weighted", "threshold": 0.815},
}
"""Established rules; docs/contamination.md has their sources, and what differs here."""


def by_rule(settings: DecontaminationSettings) -> DecontaminationSettings:
    """The settings, with those of the rule that they name.

    >>> by_rule(DecontaminationSettings(rule="tulu3")).ngram
    8

    Raises:
        BadInput: when they set one of these otherwise.
    """
    known, default = DECONTAMINATION_RULES.get(settings.rule, {}), DecontaminationSettings()
    for name, value in known.items():
        if getattr(settings, name) not in (getattr(default, name), value):
            raise BadInput(
                f"rule {settings.rule}: {name} is {value} by this rule; leave out {name}, or rule"
            )
    return msgspec.structs.replace(settings, **known)


class PrivacySettings(Settings):
    """Which personal data are replaced before a text is tokenized; see docs/privacy.md.

    Attributes:
        replace: kinds; texts are unchanged if empty.
        style: ``tag``, such as ``<EMAIL>``; or ``surrogate``: a made-up value from a reserved
            range, the same for the same value.
        seed: of the surrogates.
        phone_region: two-letter code of the country whose national numbers are recognised; by
            default it follows from the document's language.
    """

    replace: tuple[Literal["email", "ip", "phone", "card", "iban"], ...] = ()
    style: Literal["tag", "surrogate"] = "tag"
    seed: Seed = 0
    phone_region: Annotated[str, Meta(pattern="^[A-Z]{2}$")] | None = None


class WithdrawalSettings(Settings):
    """Which documents are withdrawn; see docs/withdrawal.md.

    Attributes:
        lists: files in the format of `lc_assets.formats.lists.withdrawal_lists`; ``LC_WITHDRAWN``
            names further ones.
        required_lists: those of the lists each of whose entries must match a document, or have
            matched one before.
        reinstated: lists of what is served again although it was withdrawn before: documents that
            an entry matches, and those that were withdrawn by an equal entry. Applied last.
        same_content: whether other copies of a listed document's content are withdrawn too, in any
            snapshot: documents with the same digest, and near duplicates of at least
            ``removed_documents.threshold``. With ``stays``, only listed documents are withdrawn; a
            copy of one is then served instead.
    """

    lists: tuple[str, ...] = ()
    required_lists: tuple[str, ...] = ()
    reinstated: tuple[str, ...] = ()
    same_content: Literal["goes", "stays"] = "goes"


class QualityModelSettings(Settings):
    """Paths of RedPajama-V2's models of quality, see `lc_assets.formats.lists.models`; nothing:
    there is none.

    Attributes:
        palm: fastText model for ``rps_doc_ml_palm_score``.
        wikiref: fastText model for ``rps_doc_ml_wikiref_score``.
        wikipedia: fastText model for ``rps_doc_ml_wikipedia_score``.
    """

    palm: str = ""
    wikiref: str = ""
    wikipedia: str = ""


class ModelSettings(Settings):
    """Paths of the models and lists for rules on languages, addresses, perplexity and quality;
    opened only if a rule needs them.

    Attributes:
        language: a fastText model of languages; nothing means the packaged ``lid.176.ftz``.
        blocklist: a file of domains and addresses, or a folder in UT1's layout; nothing: there is
            none.
        perplexity: a KenLM model; nothing means the published perplexity.
        quality: models of quality.
    """

    language: str = ""
    blocklist: str = ""
    perplexity: str = ""
    quality: QualityModelSettings = QualityModelSettings()


NO_MODEL_SETTINGS = ModelSettings()


Words = Annotated[str, Meta(max_length=4000)]


class SourceTerms(Settings):
    """The licence or terms of one source of the data.

    Attributes:
        source: what it covers.
        terms: the terms of use.
        link: URL of the terms.
    """

    source: Words
    terms: Words
    link: Words = ""


TERMS = (
    SourceTerms(
        source="the text of the pages",
        terms="Common Crawl's terms of use; the pages belong to their authors",
        link="https://commoncrawl.org/terms-of-use",
    ),
    SourceTerms(
        source="RedPajama-V2's selection, signals and duplicates",
        terms="Common Crawl's terms of use for the data, Apache-2.0 for the code",
        link="https://huggingface.co/datasets/togethercomputer/RedPajama-Data-V2",
    ),
)


class CardSettings(Settings):
    """What the data set card states in addition to measured values.

    Attributes:
        title: of the data set.
        summary: a sentence or two of plain text; empty omits it.
        licence: as in Hugging Face's front matter; ``other`` needs ``licence_name`` and
            ``licence_link``.
        licence_name: of another licence.
        licence_link: its URL.
        contact: for withdrawal requests: a mail address or a page.
        homepage: URL of the data set's home page.
        authors: the publishers.
        terms: of the sources.
    """

    title: Annotated[str, Meta(min_length=1, max_length=200)] = "LongCrawl"
    summary: Words = ""
    licence: Annotated[str, Meta(pattern=r"^[a-z0-9.\-]+$")] = "other"
    licence_name: Annotated[str, Meta(pattern=r"^[a-z0-9.\-]*$")] = "common-crawl-terms-of-use"
    licence_link: Words = "https://commoncrawl.org/terms-of-use"
    contact: Words = ""
    homepage: Words = ""
    authors: tuple[Words, ...] = ()
    terms: tuple[SourceTerms, ...] = TERMS


class DagsterSettings(Settings):
    """What Dagster's UI says of all assets.

    Attributes:
        owners: mail addresses, or ``team:NAME``.
        tags: values by name.
        fresh_hours: an asset without partitions that nothing was materialized of for so long is
            overdue; unset for never.
    """

    owners: tuple[str, ...] = ("team:lc_assets",)
    tags: dict[str, str] = msgspec.field(default_factory=dict)
    fresh_hours: Annotated[float, Meta(gt=0)] | None = None
