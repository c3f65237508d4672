"""Keys of a crawl's index: those that others wrote, and the same one for all ways to write an
address.
"""

import json

import can_ada
import pytest
from hypothesis import given, strategies as st

from lc_assets.text.links.page_keys import surt


@pytest.mark.parametrize("name", ["apachedoc", "gitdoc", "sqlitedoc"])
def test_the_keys_of_real_indexes_are_ours(shared_data, name):
    """Each line's key is that of its address, and by ours the file is sorted."""
    path = shared_data / f"hyperlinked/warc/{name}.cdxj"
    if not path.is_file():
        pytest.skip("no hyperlinked pages beside the checkout")
    lines = [line.split(" ", 2) for line in path.read_text().splitlines()]
    ours = [surt(json.loads(said)["url"]) for _, _, said in lines]
    assert ours == [key for key, _, _ in lines]
    assert ours == sorted(ours)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://an.wikipedia.org/wiki/Escopete", "org,wikipedia,an)/wiki/escopete"),
        ("http://example.org", "org,example)/"),
        ("http://example.org/?", "org,example)/"),
        ("http://example.org/a/", "org,example)/a"),
        ("http://example.org/a/?b", "org,example)/a?b"),
        ("http://example.org/?b&a=2&a=1&", "org,example)/?&a=1&a=2&b"),
        ("http://example.org/index.html", "org,example)/index.html"),
        ("HTTPS://user:pass@WWW3.EXAMPLE.ORG.:443/A#b", "org,example)/a"),
        ("http://example.org:443/", "org,example:443)/"),
        ("http://wwwx.example.org/", "org,example,wwwx)/"),
        ("http://b\u00fccher.example/\u00dc b", "example,xn--bcher-kva)/%c3%9c%20b"),
        ("http://example.org/%7Ea%2Fb%2525", "org,example)/~a/b%25"),
        ("http://example.org/a//b/../%2e/c", "org,example)/a/c"),
        ("http://example.org/a/%252e%252e/%252e%252e/b", "org,example)/b"),
        ("http://example.org/%C3%A9?%C3%A9=%23", "org,example)/%c3%a9?%c3%a9=%23"),
        ("http://1.2.3.4:8080/x", "4,3,2,1:8080)/x"),
        ("http://[::1]/x", "[::1])/x"),
        (
            "http://example.org/a;jsessionid=0123456789abcdef0123456789ABCDEF?b=1",
            "org,example)/a?b=1",
        ),
        (
            "http://example.org/a?b=1&PHPSESSID=0123456789abcdef0123456789abcdef&a=1",
            "org,example)/a?a=1&b=1",
        ),
        ("http://example.org/a?sid=tooshort", "org,example)/a?sid=tooshort"),
        ("http://example.org/(a1b2c3d4e5f6g7h8i9j0k1l2)/page.aspx", "org,example)/page.aspx"),
        ("dns:example.org", None),
        ("mailto:a@example.org", None),
        ("ftp://example.org/", None),
        ("/relative", None),
        ("http://", None),
        ("", None),
        ("http://example.org/" + "x" * 9000, None),
        ("http://exa mple.org/", None),
        ("http://example.org/\ud800", None),
    ],
)
def test_addresses_and_their_keys(url, key):
    assert surt(url) == key


@given(
    st.text(st.characters(codec="utf-8"), max_size=40),
    st.text(st.characters(codec="utf-8"), max_size=20),
)
def test_a_key_is_one_word_of_printable_ascii(path, query):
    """So that lines of an index are sorted by it; and scheme, ``www.``, case and fragments make no
    difference.
    """
    key = surt(f"http://example.org/{path}?{query}")
    assert key is not None
    assert key.isascii()
    assert key.isprintable()
    assert " " not in key
    parsed = can_ada.parse(f"http://example.org/{path}?{query}")
    assert surt(f"HTTPS://u:p@www.EXAMPLE.org{parsed.pathname}{parsed.search}#x") == key


HOSTILE = (
    "%25",
    "%",
    "25",
    "%2",
    "/..",
    "//",
    "(s(",
    "sid=",
    "&",
    "cfid=&cftoken=",
    ";jsessionid=",
    "/(a(" + "0" * 24 + ")",
)


@pytest.mark.parametrize("part", HOSTILE)
def test_hostile_addresses_have_keys(part):
    """Eight thousand characters of what invites backtracking."""
    for separator in ("", "?"):
        assert surt(f"http://example.org/{separator}" + part * (8000 // len(part))) is not None
