"""LongPack's documents: byte for byte the paper's on request; otherwise every part is where its
span says, and nothing is cut.
"""

from hypothesis import given, strategies as st

from lc_assets.packing.longpack import (
    PART_END,
    ROOT_LINE,
    Part,
    Placed,
    one_line,
    part_text,
    written,
)
from lc_assets_tests.reference import longpack_paper
from lc_assets_tests.reference.longpack_documents import Child, content_of, pack, part_cost
from lc_assets_tests.strategies import hostile_text

ADDRESSES = [f"http://example.org/{name}" for name in "abcdef"]


def pages():
    return st.builds(
        Part,
        url=st.sampled_from(ADDRESSES),
        text=hostile_text(),
        cluster=st.sampled_from(["", "1", "2", "3"]),
        n_tokens=st.integers(0, 60),
    )


def trees():
    leaf = st.builds(Child, page=pages(), keys=hostile_text())
    branch = st.builds(
        Child, page=pages(), keys=hostile_text(), children=st.lists(leaf, max_size=3).map(tuple)
    )
    return st.lists(
        st.builds(
            Child,
            page=pages(),
            keys=hostile_text(),
            children=st.lists(branch, max_size=3).map(tuple),
        ),
        max_size=4,
    )


def post_order(children, depth=1):
    """The obvious recursion."""
    for child in children:
        yield from post_order(child.children, depth + 1)
        yield depth, child


def rounds_of(level):
    """Children with their ancestors, as they are pointed at: the first round, then the second, and
    so on.
    """
    return (
        [
            *level,
            *rounds_of(
                [((*above, child), other) for above, child in level for other in child.children]
            ),
        ]
        if level
        else []
    )


ANCHOR = st.text(
    alphabet=st.characters(exclude_characters="<>", exclude_categories=("Cs",)),
    min_size=1,
    max_size=12,
)


@given(
    st.lists(st.tuples(st.sampled_from(ADDRESSES), ANCHOR), max_size=12),
    st.dictionaries(st.sampled_from(ADDRESSES), hostile_text()),
    hostile_text(),
)
def test_paper_exact_is_the_pseudo_code_byte_for_byte(links, cleaned, root):
    """Over generated HTML, with links that repeat, to pages that are there and to others."""
    html = "<p>".join(f'<a class=x href="{url}" rel=y>{key}</a>' for url, key in links)
    theirs = longpack_paper.longpack(root, "u", {"u": html}, cleaned)
    merged = longpack_paper.targets(html)
    children = [
        Child(page=Part(url=url, text=cleaned[url]), keys=keys)
        for url, keys in merged
        if url in cleaned
    ]
    ours = pack(Part(url="u", text=root), children, paper_exact=True)
    assert ours.text.encode("utf-8", "surrogatepass") == theirs.encode("utf-8", "surrogatepass")


def test_a_document_is_readable():
    """Small enough to read: two rounds, one page per part."""
    deep = Child(page=Part(url="c", text="Wings beat."), keys="wings")
    bees = Child(page=Part(url="b", text="\nBees fly.  \n"), keys="bees, insects", children=(deep,))
    wasps = Child(page=Part(url="d", text="Wasps sting."), keys="wasps")
    packed = pack(Part(url="a", text=" About bees. "), [bees, wasps])
    assert packed.text == (
        "wings\nWings beat.\n\nbees, insects\nBees fly.\n\nwasps\nWasps sting.\n\nroot : \n "
        "About bees. "
    )
    assert [(span.role, span.depth) for span in packed.spans] == [
        ("child", 2),
        ("child", 1),
        ("child", 1),
        ("root", 0),
    ]


@given(pages(), trees(), st.booleans(), st.none() | st.integers(0, 400))
def test_spans_touch_and_hold_their_parts(root, children, exact, max_tokens):
    packed = pack(root, children, max_tokens=max_tokens, paper_exact=exact)
    spans = packed.spans
    assert [span.start for span in spans] == [0, *(span.stop for span in spans[:-1])]
    assert spans[-1].stop == len(packed.text)
    assert packed.text.endswith(ROOT_LINE + root.text)
    assert [span.role for span in spans] == ["child"] * (len(spans) - 1) + ["root"]
    given_pages = [
        (child.page.url, child.page.text.strip(), child.page.cluster)
        for _, child in post_order(children)
    ]
    for span in spans[:-1]:
        part = packed.text[span.start : span.stop]
        content = part[len(span.keys) + 1 :].strip()
        assert (span.url, content, span.cluster) in given_pages
        assert exact or part == part_text(span.keys, content)
        assert exact or "\n" not in span.keys


@given(pages(), trees(), st.none() | st.integers(0, 400))
def test_children_are_admitted_round_by_round_and_written_before_what_points_at_them(
    root, children, max_tokens
):
    """Against the obvious loops: whole parts while there is room, no content twice, and in
    post-order.
    """
    admitted, held, used = [], {content_of(root)}, part_cost(root.n_tokens, "")
    for above, child in rounds_of([((), child) for child in children]):
        cost = part_cost(child.page.n_tokens, child.keys)
        fits = max_tokens is None or used + cost <= max_tokens
        if (
            all(any(found is one for found in admitted) for one in above)
            and fits
            and content_of(child.page) not in held
        ):
            admitted.append(child)
            held.add(content_of(child.page))
            used += cost
    packed = pack(root, children, max_tokens=max_tokens)
    wanted = [
        (depth, child)
        for depth, child in post_order(children)
        if any(child is one for one in admitted)
    ]
    assert [(span.depth, span.url, span.keys) for span in packed.spans[:-1]] == [
        (depth, child.page.url, one_line(child.keys)) for depth, child in wanted
    ]


def test_what_does_not_fit_is_passed_over_and_the_next_is_tried():
    root = Part(url="a", text="root", n_tokens=10)
    children = [
        Child(page=Part(url=name, text=name, n_tokens=n), keys="")
        for name, n in (("b", 50), ("c", 200), ("d", 30))
    ]
    limit = part_cost(10, "") + part_cost(50, "") + part_cost(30, "")
    assert [span.url for span in pack(root, children, max_tokens=limit).spans] == ["b", "d", "a"]
    assert [span.url for span in pack(root, children, max_tokens=limit - 1).spans] == ["b", "a"]
    assert pack(root, children, max_tokens=1).text == "root : \nroot"


def test_a_ring_of_pages_ends():
    """A points at b, b at a and c, c at b: each content once."""
    a, b, c = (Part(url=name, text=name * 3) for name in "abc")
    ring = Child(
        page=b,
        keys="b",
        children=(
            Child(page=a, keys="a"),
            Child(page=c, keys="c", children=(Child(page=b, keys="b"),)),
        ),
    )
    assert [span.url for span in pack(a, [ring]).spans] == ["c", "b", "a"]


def test_a_tree_may_be_deep():
    """Rounds are not Python's calls: what others send in cannot end in a recursion error."""
    child = Child(page=Part(url="0", text="0"), keys="")
    for number in range(1, 3_000):
        child = Child(page=Part(url=str(number), text=str(number)), keys="", children=(child,))
    assert len(pack(Part(url="root", text=""), [child]).spans) == 3_001


def test_placed_children_are_written_as_they_come():
    packed = written(
        Part(url="a", text="r"), [Placed(page=Part(url="b", text="x"), keys="k", depth=3)]
    )
    assert packed.text == f"k\nx{PART_END}{ROOT_LINE}r"
    assert packed.spans[0].depth == 3
