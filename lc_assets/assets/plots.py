"""Small plots for the Dagster UI: what `lc_assets.stages.reports.drawing` draws, shown inline as
Markdown.
"""

import base64
import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec

import dagster as dg

from lc_assets.stages.reports import drawing

Numbers = ParamSpec("Numbers")


def inline(png: bytes) -> str:
    """A picture as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _shown(
    draw: Callable[Concatenate[str, Numbers], bytes],
) -> Callable[Concatenate[str, Numbers], dg.MetadataValue]:
    @functools.wraps(draw)
    def show(title: str, /, *args: Numbers.args, **kwargs: Numbers.kwargs) -> dg.MetadataValue:
        return dg.MetadataValue.md(f"![{title}]({inline(draw(title, *args, **kwargs))})")

    return show


bars = _shown(drawing.bars)
histogram = _shown(drawing.histogram)
timeline = _shown(drawing.timeline)
curves = _shown(drawing.curves)
columns = _shown(drawing.columns)
shares = _shown(drawing.shares)
