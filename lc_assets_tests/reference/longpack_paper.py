"""The LongPack paper's pseudo-code (appendix D, algorithm 1), line by line, with its three
expressions as printed.

What the paper leaves open: a page that `P` does not hold is passed over, and keys of one address
are joined by ``", "``. The first expression takes time in the cube of the length of hostile HTML;
give it short texts.
"""

import re
from collections.abc import Mapping

REGEX_REF = r'<a[^>]+?href="[^>]+?"[^>]*?>[^<]+</a>'
REGEX_URL = r'href="([^">]+?)"'
REGEX_KEY = r">([^<]+)</a>"

Targets = list[tuple[str, str]]


# The paper's names.
def longpack(r: str, u: str, H: Mapping[str, str], P: Mapping[str, str]) -> str:  # noqa: N803
    """Pack root ``r`` of address ``u`` out of HTML ``H`` and cleaned pages ``P``, both by
    address.
    """
    packed = ""
    for url, keys in targets(H[u]):
        content = P.get(url)
        if content is None:
            continue
        packed = packed + keys + "\n" + content
    return packed + "root : \n" + r


def targets(html: str) -> Targets:
    """What a page points at, each address once, with all its keys."""
    references = re.findall(REGEX_REF, html)
    retrieve_target: Targets = []
    for reference in references:
        url = re.search(REGEX_URL, reference)
        key = re.search(REGEX_KEY, reference)
        if url and key:
            retrieve_target = [*retrieve_target, (url.group(1), key.group(1))]
    return dedup_url_merge_key(retrieve_target)


def dedup_url_merge_key(retrieve_target: Targets) -> Targets:
    """Each address once, where it first stands, with its different keys in their order."""
    merged: dict[str, list[str]] = {}
    for url, key in retrieve_target:
        keys = merged.setdefault(url, [])
        if key not in keys:
            keys.append(key)
    return [(url, ", ".join(keys)) for url, keys in merged.items()]
