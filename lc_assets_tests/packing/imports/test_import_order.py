"""What is imported comes before what imports it; circles are cut the same way every time; packs
hold whole files.
"""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_assets.errors import BadInput
from lc_assets.packing.imports.ordering import cut_into_packs, in_import_order, scan_file
from lc_assets.packing.imports.scanned import Import, Scanned


@st.composite
def graphs(draw, *, circles):
    """Python files that import one another by number; without circles, only smaller numbers."""
    n_files = draw(st.integers(1, 12))
    pairs = draw(
        st.lists(st.tuples(st.integers(0, n_files - 1), st.integers(0, n_files - 1)), max_size=30)
    )
    names = draw(st.permutations([f"m{n:02}" for n in range(n_files)]))
    edges = {name: [] for name in names}
    for one, other in pairs:
        if one != other and (circles or other < one):
            edges[names[one]].append(names[other])
    return {
        f"{name}.py": Scanned(tuple(Import(target) for target in found))
        for name, found in edges.items()
    }


def edges_of(files):
    """Pairs: a file and what it imports."""
    return {(path, f"{found.module}.py") for path, one in files.items() for found in one.imports}


def reached_from(edges, path):
    """Everything that a file imports, and what that imports, and so on."""
    found, new = set(), {path}
    while new:
        found |= new
        new = {target for source, target in edges if source in new} - found
    return found


@given(graphs(circles=False))
def test_without_circles_every_import_comes_first(files):
    """And nothing is cut."""
    order = in_import_order(files)
    assert sorted(order.paths) == sorted(files)
    assert all(
        order.paths.index(target) < order.paths.index(path) for path, target in edges_of(files)
    )
    assert (order.n_edges, order.n_cut) == (len(edges_of(files)), 0)


@given(graphs(circles=True), st.randoms(use_true_random=False))
def test_circles_are_cut_within_themselves_and_the_order_of_arrival_does_not_matter(files, random):
    """What lies in no circle with its import still comes behind it."""
    order = in_import_order(files)
    edges = edges_of(files)
    assert sorted(order.paths) == sorted(files)
    for path, target in edges:
        if path not in reached_from(edges, target):
            assert order.paths.index(target) < order.paths.index(path)
    shuffled = list(files.items())
    random.shuffle(shuffled)
    assert in_import_order(dict(shuffled)) == order


def test_packages_come_before_what_imports_them():
    """All of a folder's files, but for its tests."""
    files = {
        "go.mod": "module m.org/p",
        "a.go": 'package p\nimport "m.org/p/z"\n',
        "z/one.go": "package z\n",
        "z/two.go": "package z\n",
        "z/two_test.go": 'package z\nimport "m.org/p"\n',
    }
    order = in_import_order({path: scan_file(path, text) for path, text in files.items()})
    assert order.paths == ("z/one.go", "z/two.go", "a.go", "go.mod", "z/two_test.go")
    assert dict(zip(order.paths, order.depths, strict=True))["z/two.go"] == 1


def test_a_long_chain_is_no_matter():
    """Ten thousand files, each of which imports the next."""
    files = {f"m{n}.py": Scanned((Import(f"m{n + 1}"),)) for n in range(10_000)}
    assert in_import_order(files).paths == tuple(f"m{n}.py" for n in reversed(range(10_000)))


@given(st.lists(st.integers(0, 20), max_size=30), st.integers(1, 25))
def test_packs_are_the_whole_order_and_as_full_as_whole_files_allow(lengths, max_tokens):
    packs = cut_into_packs(lengths, max_tokens)
    assert [place for pack in packs for place in pack] == list(range(len(lengths)))
    assert all(
        len(pack) == 1 or sum(lengths[pack.start : pack.stop]) <= max_tokens for pack in packs
    )
    for pack, following in pairwise(packs):
        assert sum(lengths[pack.start : pack.stop]) + lengths[following.start] > max_tokens


def test_a_limit_is_at_least_one_token():
    with pytest.raises(BadInput, match="at least 1, got 0"):
        cut_into_packs([1], 0)
