"""The text of a page: what one reads of its HTML.

==========  =======================================================================  =====================
quality     by                                                                       pages per second [M]
==========  =======================================================================  =====================
``fast``    resiliparse: the main content, or all of it, with its line breaks        631–771
``high``    trafilatura, when it is installed (``pip install 'lc-assets[trafilatura]'``)  56
==========  =======================================================================  =====================

[M]: of articles, one core; against texts that people marked, the 4-gram F1 is .898 and .959.
Here: HTML in, text out. Not here: pages out of archives (`lc_assets.formats.archives`), links
    (`lc_assets.text.links`).
"""

from typing import Literal

from resiliparse.extract.html2text import extract_plain_text

from lc_assets.errors import BadInput
from lc_assets.text.html_shape import complaint_about

Quality = Literal["fast", "high"]


def page_text(
    html: str, quality: Quality = "fast", *, main_content: bool = True, alt_texts: bool = True
) -> str | None:
    r"""The text of a page; None when a parser would take the square of its length for it
    (`lc_assets.text.html_shape`).

    Args:
        html: the page, decoded.
        quality: ``fast`` or ``high``; see the module.
        main_content: whether to leave out menus, footers and the like; ``high`` always does.
        alt_texts: whether texts in place of pictures are texts; ``high`` knows none.

    Raises:
        BadInput: when the quality is ``high`` and trafilatura is not installed.

    >>> page_text("<nav>Menu</nav><main><h1>Tea</h1><p>Green tea is not black.</p></main>")
    'Tea\n\nGreen tea is not black.'
    >>> page_text("<div>" * 10_000) is None
    True
    """
    if complaint_about(html.encode("utf-8", "replace")) is not None:
        return None
    if quality == "high":
        return _by_trafilatura(html)
    text: str = extract_plain_text(
        html, preserve_formatting=True, main_content=main_content, alt_texts=alt_texts
    )
    return text


def _by_trafilatura(html: str) -> str:
    try:
        # An optional package, and one that takes a second to import.
        import trafilatura  # noqa: PLC0415
    except ImportError as error:
        raise BadInput(
            "texts of high quality need the package trafilatura, which cannot be imported "
            f"({str(error).splitlines()[0]}): "
            "pip install 'lc-assets[trafilatura]', or ask for quality fast"
        ) from error
    return trafilatura.extract(html, include_comments=False, deduplicate=False) or ""
