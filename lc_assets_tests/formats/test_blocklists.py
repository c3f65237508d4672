"""Lists of domains and addresses: what they say of a page, and what they may not be."""

import gzip
import tracemalloc

import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.lists.models import read_blocklist
from lc_assets.text.links.addresses import (
    Blocklist,
    host_of,
    registered_domain,
)


def ut1(folder):
    for name, content in {
        "adult/domains": "Bad.example\n# comment\n\nwww.worse.co.uk\n1.2.3.4\nco.uk\n",
        "adult/urls": "https://mixed.example/bad/\nmixed.example/~user\n",
        "ads/domains": "bad.example\nbücher.example\n",
        "ads/usage": "not a list\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    return folder


@pytest.mark.parametrize(
    ("url", "domain", "page"),
    [
        ("http://bad.example/x", "ads", "ads"),
        ("https://WWW.deep.Bad.Example:8080/", "ads", "ads"),
        ("http://notbad.example/", "", ""),
        ("http://shop.worse.co.uk", "adult", "adult"),
        ("http://better.co.uk", "", ""),
        ("http://1.2.3.4/x", "adult", "adult"),
        ("http://5.1.2.3.4/x", "", ""),
        ("http://xn--bcher-kva.example", "ads", "ads"),
        ("http://user:bad.example@good.example", "", ""),
        ("http://good.example@bad.example/", "ads", "ads"),
        ("bad.example/without/scheme", "ads", "ads"),
        ("http://mixed.example/good", "", ""),
        ("http://mixed.example/bad", "", "adult"),
        ("http://www.mixed.example/a/../bad/page?x=y#z", "", "adult"),
        ("http://mixed.example/badly", "", ""),
        ("http://mixed.example/~user/", "", "adult"),
        ("", "", ""),
        ("http://", "", ""),
        ("mailto:x@bad.example", "", ""),
        ("http://a\0b\ud800/", "", ""),
    ],
)
def test_pages_are_found_on_a_list(tmp_path, url, domain, page):
    blocklist = read_blocklist(ut1(tmp_path))
    assert (blocklist.blocks_domain(url), blocklist.blocks_page(url)) == (bool(domain), bool(page))
    assert blocklist.measures(url) == {
        "domain_blocked": float(bool(domain)),
        "url_blocked": float(bool(page)),
    }


def test_a_list_may_be_one_file(tmp_path):
    (tmp_path / "mine.txt.gz").write_bytes(
        gzip.compress("\ufeffbad.example\nother.example/x\n".encode())
    )
    mine = read_blocklist(tmp_path / "mine.txt.gz")
    assert (mine.domains, mine.urls) == ({"bad.example"}, {"other.example/x"})
    assert mine.digest != read_blocklist(ut1(tmp_path / "ut1")).digest


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("b\xfccher.example\n".encode("latin-1"), r"line 1: is not UTF-8 .*iconv"),
        ("good.example\n".encode("utf-16"), "line 1: is not UTF-8"),
        ("good.example\n".encode("utf-16-le"), "holds a NUL"),
        (b"good.example\n" + b"x" * 10_000_000, "line 2: is longer than 8,192 bytes"),
        (b"\n# nothing\n", "holds no domain"),
        (b"", "holds no domain"),
    ],
)
def test_lists_that_are_none_are_refused(tmp_path, content, message):
    (tmp_path / "list.txt").write_bytes(content)
    with pytest.raises(BadInput, match=message):
        read_blocklist(tmp_path / "list.txt")


def test_sources_that_are_none_are_refused(tmp_path):
    with pytest.raises(BadInput, match="does not exist"):
        read_blocklist(tmp_path / "nowhere")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"good.example\n" * 1000)[:-9])
    with pytest.raises(CorruptFile, match="cut short"):
        read_blocklist(tmp_path / "cut.gz")


@given(st.text(alphabet=st.characters(codec=None), max_size=60))
def test_any_text_is_an_address_or_none(url):
    """No address raises, and what is blocked as a domain is blocked as a page."""
    blocklist = Blocklist({host_of(url) or "x"}, ())
    host = host_of(url)
    assert registered_domain(host) in {
        host,
        *(host[at + 1 :] for at, letter in enumerate(host) if letter == "."),
    }
    if host and not host.startswith("www."):
        assert blocklist.blocks_domain(url)
        assert blocklist.blocks_page(url)
    assert not Blocklist((), ()).blocks_page(url)


def test_long_addresses_cost_little():
    for url in (
        "http://" + "a." * 500_000 + "example",
        "http://a.example/" + "x/" * 500_000,
        "http://" + "é" * 1_000_000,
    ):
        Blocklist((), {"nothing"}).blocks_page(url)


def test_a_list_takes_memory_by_its_entries(tmp_path):
    """A hundred thousand domains: a million are ten times that."""
    (tmp_path / "many.txt").write_text(
        "".join(f"some-domain-{number}.example\n" for number in range(100_000))
    )
    tracemalloc.start()
    try:
        blocklist = read_blocklist(tmp_path / "many.txt")
        n_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(blocklist.domains) == 100_000
    assert n_bytes < 20_000_000
