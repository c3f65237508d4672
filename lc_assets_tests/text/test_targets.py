"""Targets of links: where addresses lead, one target per page, words that lead there, and why links
lead nowhere.
"""

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from lc_assets.text.links import targets as module
from lc_assets.text.links.links import Link
from lc_assets.text.links.page_keys import page_key
from lc_assets.text.links.targets import (
    BROKEN,
    EMPTY,
    FRAGMENT,
    ITSELF,
    REASONS,
    RELATIVE,
    SCHEME,
    targets_of,
)
from lc_assets_tests.reference.pages import targets

PAGE = "http://www.example.org/a/b.html"
HREFS = (
    "b.html",
    "c",
    "/d#x",
    "../e/",
    "//other.example/f",
    "http://example.org/a/c?utm_source=q",
    "",
    "#x",
    "mailto:a",
    "http://[",
    "?q",
    " c ",
)


@pytest.mark.parametrize(
    ("base", "href", "url"),
    [
        ("", "c", "http://www.example.org/a/c"),
        ("", "/c#part", "http://www.example.org/c"),
        ("/x/", "c", "http://www.example.org/x/c"),
        ("https://other.example/y/z", "c", "https://other.example/y/c"),
        ("https://other.example/y/z", "/c", "https://other.example/c"),
        (" ../x/ ", "c?d=1", "http://www.example.org/x/c?d=1"),
        ("mailto:x", "c", "http://www.example.org/a/c"),
        ("http://[", "c", "http://www.example.org/a/c"),
        ("", "//other.example", "http://other.example/"),
        ("", " \n c\td ", "http://www.example.org/a/cd"),
    ],
)
def test_addresses_lead_where_browsers_go(base, href, url):
    """Against the base, which is itself against the page; a base that leads out of the web counts
    for nothing.
    """
    (found,) = targets([Link(href, "x")], PAGE, base=base)
    assert (found.url, found.key) == (url, page_key(url))


@pytest.mark.parametrize(
    ("href", "reason"),
    [
        ("", EMPTY),
        (" \n", EMPTY),
        ("#part", FRAGMENT),
        (" #", FRAGMENT),
        ("mailto:x@example.org", SCHEME),
        ("javascript:void(0)", SCHEME),
        ("ftp://example.org", SCHEME),
        ("http://[", BROKEN),
        ("\ud800", BROKEN),
        ("x" * 10_000, BROKEN),
        ("b.html#part", ITSELF),
        ("http://example.org/a/b.html", ITSELF),
        ("data:text/html,x", SCHEME),
    ],
)
def test_what_leads_nowhere_is_counted(href, reason):
    """Each link without a target has one reason."""
    assert targets_of([Link(href, "x")], PAGE) == module.Targets((), {reason: 1})


def test_the_paper_resolves_nothing():
    """Relative addresses are left out, absolute ones stand, and generic anchor texts stay among the
    keys.
    """
    links = [
        Link("c", "C"),
        Link("//example.org/c", "C"),
        Link("http://example.org/c", "next"),
        Link("http://example.org/c", "C &amp; D"),
    ]
    found = targets_of(links, PAGE, resolve=False)
    assert found.left_out == {RELATIVE: 2}
    assert [(target.url, target.keys, target.position) for target in found.found] == [
        ("http://example.org/c", "next, C &amp; D", 2)
    ]


def test_one_page_is_one_target():
    """Links to one page become one target at the first one's place; marks hold when they do of
    every link.
    """
    links = [
        Link("http://other.example/", "up", navigation=True, rel="nofollow"),
        Link("c", "Sea"),
        Link("https://www.other.example/index.html#x", "Other", rel="ugc"),
        Link("c#y", "Sea", navigation=True),
        Link("/a/c/", "", label="C", navigation=True),
    ]
    other, sea = targets(links, PAGE, text="The sea, the SEA!")
    assert (other.key, other.url, other.texts, other.position, other.n_links) == (
        "other.example",
        "http://other.example/",
        ("Other",),
        0,
        2,
    )
    assert (other.nofollow, other.navigation, other.generic, other.in_text) == (
        True,
        False,
        False,
        False,
    )
    assert (sea.keys, sea.position, sea.n_links) == ("Sea, C", 1, 3)
    assert (sea.nofollow, sea.navigation, sea.generic, sea.in_text) == (False, False, False, True)


def test_generic_anchors_are_marked_where_there_are_no_others():
    """They stay as keys then, so that packing may choose."""
    next_page, image = targets(
        [Link("c", "Next »"), Link("c", "2"), Link("d", "")], PAGE, text="next 2"
    )
    assert (next_page.texts, next_page.generic, next_page.in_text) == (("Next »", "2"), True, False)
    assert (image.texts, image.generic, image.keys) == ((), True, "")


def test_the_search_for_anchors_ends(monkeypatch):
    """After so many characters anchors count as not in the text, those before keep what was
    found.
    """
    links = [Link(f"/{name}", name) for name in ("one", "two", "three")]
    assert [target.in_text for target in targets(links, PAGE, text="one two three")] == [
        True,
        True,
        True,
    ]
    monkeypatch.setattr(module, "COMPARED_CHARS", 2 * len(" one two three "))
    assert [target.in_text for target in targets(links, PAGE, text="one two three")] == [
        True,
        True,
        False,
    ]


links_of_pages = st.lists(
    st.builds(
        Link,
        st.sampled_from(HREFS),
        st.sampled_from(("", "here", "Sea", "C")),
        st.sampled_from(("", "ugc")),
        st.booleans(),
    ),
    max_size=12,
)


@given(links_of_pages, st.booleans())
def test_every_link_is_in_one_count(links, resolve):
    """Links of targets and links left out make all links; targets stand by first appearance, each
    page once, never the page itself.
    """
    found = targets_of(links, PAGE, resolve=resolve)
    assert sum(target.n_links for target in found.found) + sum(found.left_out.values()) == len(
        links
    )
    assert set(found.left_out) <= set(REASONS)
    places = [target.position for target in found.found]
    assert places == sorted(set(places))
    assert max(Counter(target.key for target in found.found).values(), default=1) == 1
    assert page_key(PAGE) not in {target.key for target in found.found}
    for target in found.found:
        assert (
            links[target.position].anchor in target.texts
            or not links[target.position].anchor
            or not target.generic
        )
