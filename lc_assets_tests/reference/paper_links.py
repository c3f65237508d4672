"""Links as the LongPack paper's pseudo-code finds them: its three expressions, applied as printed.
Cubic on hostile pages.
"""

import re

from lc_assets.text.links.links import REGEX_URL

REGEX_REF = re.compile(r'<a[^>]+?href="[^>]+?"[^>]*?>[^<]+</a>')
REGEX_KEY = re.compile(r">([^<]+)</a>")


def paper_links(html: str) -> list[tuple[str, str]]:
    """Address and anchor text of each reference; one without either is none."""
    found = []
    for reference in REGEX_REF.findall(html):
        url, key = REGEX_URL.search(reference), REGEX_KEY.search(reference)
        if url and key:
            found.append((url[1], key[1]))
    return found
