"""The text and the title of a page.

========  ==================================================================  ====================
quality   by                                                                  pages per second [M]
========  ==================================================================  ====================
``fast``  resiliparse: the main content, with its line breaks                 631–771
``high``  trafilatura (``pip install 'lc-assets[trafilatura]'``)              56
========  ==================================================================  ====================

[M]: of articles, one core; against texts marked by people, the 4-gram F1 is .898 and .959.
"""

from typing import Literal, NamedTuple

from lc_assets.errors import BadInput
from lc_assets.text.html.guard import refusal_of

Quality = Literal["fast", "high"]


TITLE_CHARS = 1000
"""Of a title, at most."""


class PageContent(NamedTuple):
    """What is read of a page.

    Attributes:
        text: its main content.
        title: its title, else its first heading, on one line; empty without either.
    """

    text: str
    title: str


def page_content(html: str, quality: Quality = "fast") -> PageContent | None:
    """The text, without alternative texts of images, and the title of a page; None when the guard
    refuses it (`lc_assets.text.html.guard`).

    Args:
        html: the page, decoded.
        quality: ``fast`` or ``high``; see the module.

    Raises:
        BadInput: when the quality is ``high`` and trafilatura is not installed.

    >>> page_content("<title>Tea &amp; more</title><p>Tea.").title, page_content("<h2>T").title
    ('Tea & more', 'T')
    >>> page_content("<nav>Menu</nav><main><p>Green tea is not black.</p></main>").text
    'Green tea is not black.'
    >>> page_content("<div>" * 10_000) is None
    True
    """
    if refusal_of(html.encode("utf-8", "replace")) is not None:
        return None
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    tree = HTMLTree.parse(html)
    title = tree.title
    if not (title and title.strip()) and tree.body is not None:
        heading = tree.body.query_selector("h1,h2,h3,h4,h5,h6")
        title = heading.text if heading is not None else ""
    text = (
        _by_trafilatura(html)
        if quality == "high"
        else extract_plain_text(tree, preserve_formatting=True, main_content=True, alt_texts=False)
    )
    return PageContent(text, " ".join((title or "").split())[:TITLE_CHARS])


def _by_trafilatura(html: str) -> str:
    try:
        # An optional package that takes a second to import.
        import trafilatura
    except ImportError as error:
        raise BadInput(
            "quality high needs the package trafilatura, which cannot be imported "
            f"({str(error).splitlines()[0]}): "
            "pip install 'lc-assets[trafilatura]', or use quality fast"
        ) from error
    return trafilatura.extract(html, include_comments=False, deduplicate=False) or ""
