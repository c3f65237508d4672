"""Settings of the data-set card: what no receipt can know."""

from typing import Annotated

import msgspec

from lc_assets.build.settings.common import Settings

Words = Annotated[str, msgspec.Meta(max_length=4000)]


class SourceTerms(Settings, frozen=True, kw_only=True):
    """The licence or terms of one source of the data.

    Attributes:
        source: what it covers.
        terms: under what it may be used.
        link: where that is written.
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


class CardSettings(Settings, frozen=True, kw_only=True):
    """What the card states beside what was measured.

    Attributes:
        title: of the data set.
        summary: a sentence or two in Markdown; empty omits it.
        licence: as in Hugging Face's front matter; ``other`` needs ``licence_name`` and
            ``licence_link``.
        licence_name: of another licence.
        licence_link: its URL.
        contact: for withdrawal requests: a mail address or a page.
        homepage: of the data set.
        authors: who publishes it.
        terms: of the sources.
    """

    title: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] = "LongCrawl"
    summary: Words = ""
    licence: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9.\-]+$")] = "other"
    licence_name: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9.\-]*$")] = (
        "common-crawl-terms-of-use"
    )
    licence_link: Words = "https://commoncrawl.org/terms-of-use"
    contact: Words = ""
    homepage: Words = ""
    authors: tuple[Words, ...] = ()
    terms: tuple[SourceTerms, ...] = TERMS
