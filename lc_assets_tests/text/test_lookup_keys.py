"""Lookup keys: every document is found by each of its values, however these are written, and by no
other's.
"""

import can_ada
import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from lc_assets.text.links.addresses import (
    KINDS,
    address_key,
    domains_above,
    host_of,
    is_public_suffix,
    keys_of,
    keys_of_columns,
    merged_keys,
    normal,
    values_of,
)

WORDS = st.sampled_from(["a", "b", "www", "xn--bcher-kva", "\u00fc", "1", ""])
URLS = st.builds(
    lambda scheme, host, path, rest: f"{scheme}{'.'.join(host)}.example.co.uk/{path}{rest}",
    st.sampled_from(["http://", "https://", "HTTP://", "", "ftp://"]),
    st.lists(WORDS.filter(bool), max_size=3),
    st.sampled_from(["", "page", "a/../b", "a%20b", "\u65e5\u672c"]),
    st.sampled_from(["", "/", "?q=1", "#top", "?", "?q=[a]#x"]),
) | st.text(max_size=30)


@given(URLS)
def test_parts_of_an_address_are_read_as_one(url):
    """Key, host and domains belong together; nothing raises."""
    host = host_of(url)
    assert all(host.removeprefix("www.").endswith(domain) for domain in domains_above(host))
    assert normal("url", url) == address_key(url)


@given(
    st.lists(
        st.text("anx-0", max_size=5) | st.sampled_from(["xn--a", "xn--bcher-kva"]), max_size=3
    ),
    st.sampled_from(["com", "0x1", "1", "c0m", "xn--p1ai", ""]),
    st.sampled_from(["", ".", "/a@b", ":80/", "@c.de", "?q", "\\x", " ", "\n", "#\u65e5", "A/"]),
)
@example(["xn--a"], "com", "/")
def test_a_host_is_what_a_parser_says(labels, last, rest):
    """Also a plain one, which is read without a parser."""
    url = f"http://{'.'.join([*labels, last])}{rest}"
    try:
        expected = can_ada.parse(url.strip()).hostname.rstrip(".")
    except ValueError:
        expected = ""
    assert host_of(url) == expected


@pytest.mark.parametrize(
    "other",
    [
        "http://example.org/a/b?q=1",
        "HTTPS://WWW.EXAMPLE.ORG:443/a/./b?q=1#part",
        "example.org/a/b/?q=1",
        "//user@example.org/x",
    ],
)
def test_one_page_has_one_key(other):
    assert (address_key(other) == "example.org/a/b?q=1") is ("user" not in other)


def test_what_makes_another_page():
    """Path, query, their letters' case and a port of one's own."""
    one = "https://example.org/a?q=1"
    others = (
        "https://example.org/A?q=1",
        "https://example.org/a?q=2",
        "https://example.org/a",
        "https://example.org:8080/a?q=1",
    )
    assert len({address_key(url) for url in (one, *others)}) == 5


@given(
    st.lists(
        st.tuples(
            URLS, st.sampled_from(["", "sha1:A", "sha1:B"]), st.sampled_from(["", "sha256:0"])
        ),
        max_size=12,
    )
)
def test_the_index_is_of_every_value_of_every_document(lines):
    """All keys at once are those of each document by itself, sorted, none twice."""
    documents = [
        {
            "id": f"2023-06/0000/en_head.json.gz/{number}",
            "url": url,
            "digest": digest,
            "text_digest": text,
        }
        for number, (url, digest, text) in enumerate(lines)
    ]
    columns = {
        name: [line[name] for line in documents] for name in ("id", "url", "digest", "text_digest")
    }
    keys, places = merged_keys([keys_of_columns(columns)])
    wanted = {
        (int(key), place)
        for place, line in enumerate(documents)
        for kind in KINDS
        for key in keys_of(kind, values_of(kind, line))
    }
    assert list(zip(keys.tolist(), places.tolist(), strict=True)) == sorted(wanted)
    assert (keys.dtype, places.dtype) == (np.uint64, np.uint32)
    parts = [
        {name: values[start : start + 5] for name, values in columns.items()}
        for start in range(0, len(lines), 5)
    ]
    assert all(map(np.array_equal, merged_keys(map(keys_of_columns, parts)), (keys, places)))


def test_kinds_do_not_share_keys():
    """The id of one document that looks like the digest of another does not find it."""
    assert len({int(keys_of(kind, ["same"])[0]) for kind in KINDS}) == len(KINDS)


def test_suffixes_that_many_have():
    assert is_public_suffix("co.uk")
    assert is_public_suffix("github.io")
    assert not is_public_suffix("me.github.io")
    assert not is_public_suffix("1.2.3.4")
