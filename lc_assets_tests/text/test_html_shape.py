"""What an HTML parser would take: the bounds are never below the truth, exact where pages are
sound, and refuse hostile pages.
"""

import re

import pytest
from hypothesis import example, given, strategies as st
from selectolax.lexbor import LexborHTMLParser

from lc_assets.text.html.guard import (
    LEFT_OPEN,
    MAX_ATTRIBUTES,
    MAX_DEPTH,
    TOO_DEEP,
    TOO_MANY_ATTRIBUTES,
    TOO_MANY_OPTIONS,
    TOO_TORN,
    refusal_of,
    shape_of,
)
from lc_assets_tests.reference.tree_depth import tree_depth, tree_depths

NAMES = re.findall(
    "[a-zA-Z0-9]+",
    "div span p b i a font nobr li ul dd dt dl table tr td tbody caption colgroup col select "
    "option optgroup button form h1 h2 svg math "
    "path g title style script mi foreignObject template object marquee textarea br img input hr "
    "body html frameset noscript ruby rt xmp",
)
ODDITIES = (
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<!",
    "<",
    '"',
    "'",
    "x",
    "<p title='</p>'>",
    '<p title="',
    "<i/>",
    "<path/>",
    "<svg/>",
    "<col/>",
)
DOCTYPES = (
    "",
    "<!doctype html>",
    '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN">',
    "<!-- x --><!doctype html><body>",
    "<!-- <p",
)


def shape(html):
    """The bounds of a page, without limits."""
    return shape_of(html.encode(), max_depth=20_000, max_attributes=10**9, max_rebuilt=10**9)


def soup() -> st.SearchStrategy[str]:
    """A few tags that do not fit together, over and over: what leaves one element open leaves many
    open.
    """
    tag = (
        st.sampled_from([f"<{name}>" for name in NAMES])
        | st.sampled_from([f"</{name}>" for name in NAMES])
        | st.sampled_from(ODDITIES)
    )
    return st.builds(
        lambda start, tags: start + "".join(tags) * 30,
        st.sampled_from(DOCTYPES),
        st.lists(tag, max_size=12),
    )


@given(soup())
@example("<p><span><table></table></span></p>" * 40)
@example("<!doctype html>" + "<noscript></p><li><table><section></section></li></table>" * 40)
@example("<h1><font></h1><h2></font>" * 40)
@example("<li><span><div></p></span></li>" * 40)
@example("<form><object></form></object></form>" * 40)
@example("<svg><path></div></svg><div><path/>" * 40)
@example("<button><x</style><rt><h1><style><option><h1>" * 40)
@example("<select><title></select><p title='</title><div>" * 40)
@example("<table><marquee><i></table><dd><li><a>" * 40)
@example("</math></mi><caption/></section><mi></hr></math><math></mi><g>" * 40)
@example("<dd><form><dd></dd><details></dd></dd>" * 40)
@example("<td><col/><table><span></table><tr><center><dt/><table>" * 40)
@example("<svg><title><b></svg></title><path/>" * 40)
@example("<select><input><option></select><h1>" * 40)
@example("<!--><div></div><!--->-->" * 40)
@example("<script><!--<script></script><div></script>-->" * 40)
def test_no_tree_is_deeper_than_counted(html):
    """Twice the count and a little is above the true depth, however torn the page; and above the
    depths of all elements together, of which each tag may make a few.
    """
    found, depths = shape(html), tree_depths(html)
    assert max(depths) <= 2 * found.depth + 10
    assert sum(depths) <= 3 * found.levels + 10 * (found.rebuilt + html.count("<") + 3)


def trees() -> st.SearchStrategy[tuple[str, int]]:
    """Sound pages, end tags left out where authors do, with their depth."""

    def within(child: st.SearchStrategy[tuple[str, int]]) -> st.SearchStrategy[tuple[str, int]]:
        some = st.lists(child, min_size=1, max_size=3)
        return st.one_of(
            st.builds(
                _element, st.sampled_from(["div", "section", "blockquote", "nav", "object"]), some
            ),
            st.builds(
                _list,
                st.sampled_from(["<ul>{}</ul>", "<ol>{}</ol>"]),
                st.sampled_from(["<li>{}", "<li>{}</li>", "<li><p>{}"]),
                some,
            ),
            st.builds(_table, some),
        )

    leaf = st.sampled_from(
        [
            ("text", 0),
            ("<p>one<p>two", 1),
            ("<b>x</b>", 1),
            ("<a href=u>x</a>", 1),
            ("<svg><g><path/></g></svg>", 2),
        ]
    )
    return st.recursive(leaf, within, max_leaves=12)


def _element(name, children):
    return f"<{name}>{''.join(html for html, _ in children)}</{name}>", 1 + max(
        depth for _, depth in children
    )


def _list(outer, item, children):
    held = "".join(item.format(html) for html, _ in children)
    return outer.format(held), 2 + ("<p>" in item) + max(depth for _, depth in children)


def _table(children):
    held = "".join(f"<tr><td>{html}<td>x" for html, _ in children)
    return f"<table>{held}</table>", 4 + max(depth for _, depth in children)


@given(st.lists(trees(), min_size=1, max_size=20))
def test_sound_pages_are_counted_exactly(pages):
    """However long a sound page is, its depth is that of its deepest part, give or take what
    paragraphs end or take in by themselves.
    """
    html = "<!doctype html>" + "".join(html for html, _ in pages)
    deepest = max(depth for _, depth in pages)
    assert abs(shape(html).depth - deepest) <= html.count("<p>")
    assert shape(html).rebuilt == 0


@given(
    st.lists(
        st.sampled_from(
            ["a", "b=", "c='", "'", '"', '="', " ", "/", "=", "\n", "é", "<", "d", "\t"]
        ),
        max_size=20,
    ).map("".join)
)
def test_attributes_are_counted(soup):
    """A tag has no more attributes than are counted, and a page has none that ends within it."""
    html = f"<a {soup}>x"
    nodes = LexborHTMLParser(html).css("a")
    assert shape(html).attributes >= max((len(node.attributes) for node in nodes), default=0)


def test_attributes_of_sound_tags_are_counted_exactly():
    """Quoted or not, empty or not."""
    assert shape("<a href=x title='a b>c' id = \"d\" hidden/ ><p q>").attributes == 4


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("<div>" * MAX_DEPTH, None),
        ("<div>" * (MAX_DEPTH + 1), TOO_DEEP),
        ("<div></div><p>x" * 10_000, None),
        ("<div>" * 20 + "<p>x" * 90_000, None),
        ("<div>" * 30 + "<p>x" * 90_000, TOO_DEEP),
        ("<div>" * 30 + "<!---->" * 90_000, TOO_DEEP),
        ("<div>" * 60 + "<p>See the <a href=x>bees</a> and their hives.</p>" * 30_000, TOO_DEEP),
        ("<div>" * 15 + "<p>See the <a href=x>bees</a> and their hives.</p>" * 90_000, None),
        ("<ul>" + "<li>x" * 10_000, None),
        ("<table>" + "<tr><td>x<td><font>y" * 10_000, None),
        ("<select>" + "<option>x" * 5_000, None),
        ("<select>" + "<option>x" * 6_000, TOO_MANY_OPTIONS),
        ("<select>" + "<option>x</option>" * 5_000 + "</select>", TOO_MANY_OPTIONS),
        ("<select>" + "<option>x<template><select></select></template>" * 3_000, TOO_MANY_OPTIONS),
        ("<select>" + "<!-- -->" * 9_000 + "<option>x" * 2_000, TOO_MANY_OPTIONS),
        (("<select>" + "<option>x</option>" * 1_000 + "</select>") * 10, None),
        (("<select>" + "<option>x" * 1_000 + "</select>") * 10, None),
        ("<a name=x>y" * 10_000, None),
        ("<p " + "a " * MAX_ATTRIBUTES + ">", None),
        ("<p " + "a " * (MAX_ATTRIBUTES + 1) + ">", TOO_MANY_ATTRIBUTES),
        ("<body a>" * (MAX_ATTRIBUTES + 1), TOO_MANY_ATTRIBUTES),
        ("<p>" + "<b>" * LEFT_OPEN, None),
        ("<p>" + "<b>" * LEFT_OPEN + "<p>x" * 3000, TOO_TORN),
        ("<p>" + "<b>" * (LEFT_OPEN + 1) + "<p>x", TOO_TORN),
        ("", None),
        ("\0<\0", None),
        ("<svg><title>x</title><path/></svg>" * 2000, None),
    ],
)
def test_pages_beyond_the_limits_are_refused(html, reason):
    """To the element; and long sloppy pages are not."""
    assert refusal_of(html.encode()) == reason


def test_manuals_are_not_refused(shared_data):
    """Real pages stay far below the limits, and are counted as deep as they are, or a little
    deeper.
    """
    from lc_assets_tests.text.test_links import MANUALS, pages_of

    for manual in MANUALS:
        for url, html in pages_of(shared_data, manual):
            assert tree_depth(html) - 3 <= shape(html).depth <= tree_depth(html) + 8, url
