"""`data_set_card`: the card of the published data set, as Markdown for Hugging Face and as one HTML
page.

=================  =================================================================
file               content
=================  =================================================================
``README.md``      front matter, then the card; its plots are in ``plots``
``index.html``     the same as one page: no script, no external resources
``sheet.json``     the numbers (`lc_assets.stages.reports.data_sheet.Sheet`)
=================  =================================================================

Text from pages, URLs and settings is untrusted: it is escaped for table cells, and no HTML in it is
kept. Format of the front matter: Hugging Face's dataset cards (``datasetcard.md`` of
``huggingface_hub``).
"""

import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from lc_assets.builds.recipe import plain
from lc_assets.builds.settings.common import CardSettings
from lc_assets.builds.showing import cell, inline
from lc_assets.builds.stage import (
    ALL_SNAPSHOTS,
    UNPARTITIONED,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.counts import Counts
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.lake.receipts import decode_json, encode_json
from lc_assets.publishing import publish_bytes
from lc_assets.stages.deduplication.removed_documents import removes_documents
from lc_assets.stages.reports import drawing
from lc_assets.stages.reports.data_sheet import LENGTH_BINS, Sheet, sheet_of
from lc_assets.tokens.dtypes import memory_dtype

README = "README.md"
PAGE = "index.html"
SHEET = "sheet.json"
PLOTS = ("plots/yield.png", "plots/reasons.png", "plots/lengths.png")
MOST_REASONS = 16

SIZE_CATEGORIES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
    (10**8, "10M<n<100M"),
    (10**9, "100M<n<1B"),
)
"""As Hugging Face has them."""


def write_data_set_card(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the card of the published global order and its mixes.

    Raises:
        NotPublished: if there is no global order.
        Mismatch: if its rows were made from other versions than the published ones.
    """
    tokens = context.recipe.token_documents
    sheet = sheet_of(staging.inputs, tokens.tokenizer)
    images, card = plots_of(sheet), context.recipe.data_set_card
    markdown = markdown_of(sheet, card, replaced=tokens.privacy.replace)
    files = images | {
        SHEET: encode_json(sheet),
        README: markdown.encode(),
        PAGE: page_of(markdown, card.title, images).encode(),
    }
    for name, content in files.items():
        publish_bytes(staging.folder / name, content)
    n_rows = sheet.train_rows + sheet.heldout_rows
    return Counts(
        seen=n_rows,
        kept=n_rows,
        extra={
            "tokens": sheet.tokens,
            "snapshots": len(sheet.snapshots),
            "mixes": len(sheet.mixes),
        },
    )


def plots_of(sheet: Sheet) -> dict[str, bytes]:
    """The card's plots as PNG, by relative path."""
    tokens = {
        line.snapshot: float((line.train_rows + line.heldout_rows) * sheet.row_tokens)
        for line in sheet.snapshots
    }
    reasons = {
        f"{stage}: {reason}": float(count)
        for stage, counted in sheet.reasons.items()
        for reason, count in counted.items()
    }
    most = dict(sorted(reasons.items(), key=lambda item: -item[1])[:MOST_REASONS])
    lengths = {
        f"from {start:,}": float(count)
        for start, count in zip(LENGTH_BINS, sheet.lengths, strict=True)
        if count
    }
    why, how_long = (
        "Why documents were dropped, by the first reason",
        "Documents behind the rows by length in tokens",
    )
    plots = (
        drawing.timeline("Tokens in rows by snapshot", tokens, unit="tokens"),
        drawing.bars(why, most, unit="documents"),
        drawing.bars(how_long, lengths, unit="documents"),
    )
    return dict(zip(PLOTS, plots, strict=True))


def markdown_of(sheet: Sheet, card: CardSettings, *, replaced: tuple[str, ...] = ()) -> str:
    """The card as Markdown with front matter."""
    from jinja2 import Environment, StrictUndefined

    # Not HTML: `cell` escapes cells, and the page is rendered without HTML in the Markdown.
    environment = Environment(
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "n": _number,
        "cell": cell,
        "yaml": _yaml,
        "code": _code,
        "size": _size,
        "bound": lambda value: "" if value is None else f"{value:,.6g}",
        "size_category": _size_category,
    }
    privacy = "Personal data were not looked for."
    if replaced:
        privacy = f"Replaced before tokenizing: {', '.join(replaced)}."
    return environment.from_string(_preset("card.md.j2")).render(
        sheet=sheet,
        card=card,
        rows=sheet.train_rows + sheet.heldout_rows,
        id_bytes=memory_dtype(sheet.vocab_size).itemsize,
        privacy=privacy,
        citation_key=re.sub(r"[^a-z0-9]+", "", card.title.lower()) or "dataset",
    )


def page_of(markdown: str, title: str, images: Mapping[str, bytes]) -> str:
    """The card as one page of HTML; the images are in it."""
    from jinja2 import Environment, StrictUndefined
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    body = markdown.split("\n---\n", 1)[1]
    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(body)
    for name, png in images.items():
        html = html.replace(f'src="{name}"', f'src="{inline(png)}"')
    environment = Environment(undefined=StrictUndefined, autoescape=True)
    # Made two lines above.
    return environment.from_string(_preset("card.html.j2")).render(title=title, body=Markup(html))  # noqa: S704


def _preset(name: str) -> str:
    return resources.files("lc_assets").joinpath(f"presets/{name}").read_text("utf-8")


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _code(value: object) -> str:
    """A value as JSON between backticks; backticks inside are removed."""
    return json.dumps(value, ensure_ascii=True, sort_keys=True).replace("`", "\\u0060")


def _yaml(value: object) -> str:
    """A text in double quotes; YAML breaks lines at some characters that JSON leaves as they
    are.
    """
    quoted = json.dumps(str(value), ensure_ascii=False)
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in quoted)


def _size(n_bytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:,.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.3g} TB"


def _size_category(n_rows: int) -> str:
    return next((name for most, name in SIZE_CATEGORIES if n_rows < most), "n>1B")


def the_card_agrees_with_the_order(check_input: CheckInput) -> CheckResult:
    """Rows and digest in the sheet equal those of the global order it was made from; card and page
    cite that digest, and the page holds the plots.
    """
    folder, order = check_input.folder, check_input.only_input("longcrawl")
    sheet = decode_json(folder / SHEET, Sheet)
    with library_errors_as_corrupt_file(folder, "not a readable card", system_errors_too=True):
        readme, page = ((folder / name).read_text("utf-8", "replace") for name in (README, PAGE))
        plots = [inline((folder / name).read_bytes()) for name in PLOTS]
    n_rows, cited = sheet.train_rows + sheet.heldout_rows, f"Digest {order.digest}"
    wrong = [
        what
        for what, right in {
            "rows": n_rows == order.counts.kept,
            "digest": sheet.digest == order.digest and cited in readme and cited in page,
            "plots": all(f'"{plot}"' in page for plot in plots),
        }.items()
        if not right
    ]
    return CheckResult(
        passed=not wrong,
        message=f"differs in {', '.join(wrong)}" if wrong else f"{n_rows:,} rows",
        values={"rows": n_rows},
    )


def _params(recipe: Any, _: str) -> dict[str, Any]:
    return plain(recipe.data_set_card) | {"replaced": list(recipe.token_documents.privacy.replace)}


STAGE = Stage(
    name="data_set_card",
    description=(
        "Card of the published rows and mixes: Markdown for Hugging Face, and one HTML page."
    ),
    code_version="3",
    reads={
        "longcrawl": UNPARTITIONED,
        "blended_mix": ALL_SNAPSHOTS,
        "token_grid": ALL_SNAPSHOTS,
        "token_documents": ALL_SNAPSHOTS,
        "removed_documents": ALL_SNAPSHOTS.only_if(removes_documents),
        "filtered_documents": ALL_SNAPSHOTS,
        "raw_snapshot": ALL_SNAPSHOTS,
    },
    params=_params,
    checks=(the_card_agrees_with_the_order,),
    partitioned_by="nothing",
    group="published",
    job="card",
    kinds=("markdown",),
    counted="rows",
    write=write_data_set_card,
    pool=None,
    grows=False,  # its plots have as many points whatever the data set's size
    cited=lambda published: [published.version, published.receipt.libraries],
)
"""The data sheet."""
