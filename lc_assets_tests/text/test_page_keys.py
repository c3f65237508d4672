"""Page keys: one name per page, however it is written; keys are their own keys; nothing that is no
page has one.
"""

import pytest
from hypothesis import example, given, strategies as st

from lc_assets.text.links.page_keys import MAX_ADDRESS_CHARS, is_home, key_host, page_key

PIECES = (
    "http://",
    "https://",
    "HTTP:",
    "//",
    "/",
    "www.",
    "WWW.",
    "example.org",
    "bücher.example",
    "[::1]",
    "127.0.0.1",
    "0x7f.1",
    "user:pw@",
    ":80",
    ":443",
    ":8080",
    ".",
    "..",
    "index.html",
    "Index.HTM",
    "/index.html/",
    "?",
    "&",
    "=",
    "utm_source=x",
    "gclid=1",
    "a=1",
    "#",
    "#top",
    "%",
    "%7e",
    "%7E",
    "%2e",
    "%2F",
    "%25",
    "%32e",
    "%%32e",
    "%c3%bc",
    "ü",
    " ",
    "\t",
    "\n",
    "\\",
    "ftp:",
    "mailto:",
    "javascript:",
    ";",
    "~",
    "+",
)


@st.composite
def addresses(draw: st.DrawFn) -> str:
    """Addresses of pages, most of them sound, dense in what keys must smooth."""
    pieces = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=9).map("".join)
    return draw(st.sampled_from(("http://", "https://www.", "https://example.org", ""))) + draw(
        pieces
    )


@given(addresses())
@example("https://example.org:80/")
@example("http://www.www.example.org")
@example("http://example.org/%%32e%%32e/a")
@example("http://example.org/index.html/index.htm//")
@example("http://example.org?utm_a=1&&%75tm_b=2")
@example("http://www..com")
def test_a_key_is_its_own_key(url):
    """Taking the key of a key changes nothing, with either scheme."""
    key = page_key(url)
    if key is not None:
        assert page_key(f"http://{key}") == key
        assert page_key(f"https://{key}/") == key or "?" in key
        assert key.isascii()
        assert key_host(key)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/a",
        "HTTPS://EXAMPLE.ORG:443/a",
        "http://www.example.org./a/",
        "http://example.org/a/index.html",
        "http://example.org/a/INDEX.htm#part",
        "https://me:pw@example.org/b/../a",
        "http://example.org/%61",
        "http://example.org/a?",
        "http://example.org/a?utm_source=feed&fbclid=1",
        "  http://example.org/\ta\n",
        "http:\\\\example.org\\a",
        "http://example.org/a?&",
    ],
)
def test_one_page_has_one_key(url):
    """Case of the host, scheme, ports, www, ends, fragments, escapes and followers of visitors make
    no difference.
    """
    assert page_key(url) == "example.org/a"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.org/A", "http://example.org/a"),
        ("http://example.org/?a=1&b=2", "http://example.org/?b=2&a=1"),
        ("http://example.org:8080", "http://example.org"),
        ("http://www.com", "http://com"),
        ("http://example.org/a%2Fb", "http://example.org/a/b"),
        ("http://example.org/index.php", "http://example.org"),
        ("http://example.org/myindex.html", "http://example.org/my"),
        ("http://example.org/?q=utm_source", "http://example.org"),
        ("http://w.example.org", "http://example.org"),
    ],
)
def test_different_pages_have_different_keys(one, other):
    """What servers may tell apart stays apart."""
    assert page_key(one) != page_key(other)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a",
        "/a",
        "//example.org",
        "ftp://example.org",
        "javascript:void(0)",
        "http://",
        "http://a b/",
        "\ud800",
        "http://./",
    ],
)
def test_what_is_no_page_has_no_key(url):
    """No address of the web, no key; no error either."""
    assert page_key(url) is None


def test_endless_addresses_have_no_key():
    """The limit is the limit, to the character."""
    longest = "http://example.org/" + "a" * (MAX_ADDRESS_CHARS - 19)
    assert page_key(longest) is not None
    assert page_key(longest + "a") is None


def test_homes_and_hosts():
    """A home page is one with nothing but a host."""
    assert is_home(page_key("http://example.org/index.html"))
    assert not is_home(page_key("http://example.org/a"))
    assert key_host(page_key("http://a.example.org:8080/x?y=/z")) == "a.example.org:8080"
