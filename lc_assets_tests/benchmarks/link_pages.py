"""Pages to read links out of: a manual's, where it lies beside the checkout, else made up; and
hostile ones of a megabyte.
"""

from html import escape
from pathlib import Path

MEGABYTE = 1_000_000


def filled(start: str, piece: str) -> str:
    """A page of a megabyte that repeats a piece."""
    return start + (piece * (MEGABYTE // len(piece) + 1))[: MEGABYTE - len(start)]


def made_up_pages(n_pages: int) -> list[str]:
    """Sound pages with a menu, paragraphs with links in them, and a list."""
    pages = []
    for number in range(n_pages):
        menu = "".join(f'<li><a href="/part/{part}">Part {part}</a></li>' for part in range(12))
        text = "".join(
            f"<p>{escape('Words & words < signs. ') * 6}See <a "
            f'href="page{number + step}.html">page <b>{number + step}</b></a>.</p>'
            for step in range(40)
        )
        head = (
            "<!DOCTYPE "
            f"html><html><head><title>{number}</title></head><body><nav><ul>{menu}</ul></nav>"
        )
        pages.append(
            f'{head}<h1>{number}</h1>{text}<a href="/about" rel="nofollow">About &amp; '
            "more</a></body></html>"
        )
    return pages


def manual_pages(folder: Path) -> list[str]:
    """All pages of three manuals."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    pages = []
    for path in sorted(folder.glob("hyperlinked/warc/*.warc.gz")):
        with path.open("rb") as file:
            records = ArchiveIterator(file, record_types=WarcRecordType.response)
            pages += [record.reader.read().decode("utf-8", "replace") for record in records]
    return pages


HOSTILE = {
    "elements 100,000 deep": lambda: "<div>" * 100_000 + "x" + "</div>" * 100_000,
    "… hidden from who counts tags": lambda: filled("", "<div><!--</div>-->"),
    "unclosed bold": lambda: filled("", "<b>"),
    "bold in every paragraph after": lambda: filled("<p>" + "<b>" * 200, "<p>x"),
    "unclosed items in items": lambda: filled("", "<dl><dd>"),
    "tables in tables": lambda: filled("", "<table><tr><td>"),
    "links in links": lambda: filled("<svg>", "<a href=u>x"),
    "half a million attributes": lambda: filled("<a ", "a ") + ">x</a>",
    "attributes, all different": lambda: (
        "<a " + " ".join(f"a{place}" for place in range(150_000)) + ">x</a>"
    ),
    "attributes of body": lambda: filled("", "<body a=1>"),
    "one unclosed tag of links": lambda: filled("<a ", 'x href="y" '),
    "unclosed links": lambda: filled("", '<a href="x">y'),
    "no tag ever closed": lambda: filled("", '<a href="x" '),
    "comments never closed": lambda: filled("", "<!--"),
    "nothing but <": lambda: filled("", "<"),
    "nothing but NUL": lambda: filled("", "\0"),
    "at the limit, no end tag fits": lambda: filled("<span>" * 500, "</p>"),
    "at the limit, items": lambda: filled("<b>" * 500, "<li>"),
    "at the limit, attributes": lambda: filled(
        "", "<a " + " ".join(f"a{place}" for place in range(1000)) + ">"
    ),
}
"""Pages of a megabyte, by what is wrong with them."""
