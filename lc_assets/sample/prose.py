"""Novels in the public domain, which come with the package, as pages of a crawl.

``prose.jsonl.zst`` holds a `Page` per line: nine that fill rows of 65,536 tokens, and chapters and
a table of contents, which do not. docs/sample.md names the novels.

``signals.jsonl.zst`` holds the signals of the documents of the sample with the default snapshots
and seed. Computing them takes less than a second, but compiling what computes them takes many, at
the start of a first `lc demo`, which needs those kernels for nothing else.
``python -m lc_assets_tests.stages.sample.made_signals`` writes that file.
"""

from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec
import zstandard

from lc_assets.sample.pages import Page, Texts
from lc_assets.text.signals.names import Signals, Span
from lc_assets.text.signals.signals import signals_of

PROSE = "prose.jsonl.zst"
SIGNALS = "signals.jsonl.zst"


class MeasuredPage(msgspec.Struct, frozen=True, array_like=True):
    """The signals of a page, as `signals_of` gives them.

    Attributes:
        digest: of the page.
        signals: spans by name; whole scores stay integers.
    """

    digest: str
    signals: dict[str, list[Span]]


def novels() -> Texts:
    """The pages that come with the package."""
    pages = msgspec.json.Decoder(Page).decode_lines(_content(PROSE))
    return Texts(pages, {page.url: page.digest for page in pages})


def page_signals(page: Page) -> Signals:
    """The signals of a page's content: read if it is one of the default sample's, else computed."""
    known = _measured().get(page.digest)
    return signals_of(page.content) if known is None else known


@cache
def _measured() -> Mapping[str, Signals]:
    found = msgspec.json.Decoder(MeasuredPage).decode_lines(_content(SIGNALS))
    return {one.digest: one.signals for one in found}


def _content(name: str) -> bytes:
    packed = resources.files("lc_assets").joinpath("sample", name).read_bytes()
    return zstandard.ZstdDecompressor().decompress(packed)
