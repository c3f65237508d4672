"""A search for the page that takes longest: tag soup is changed wherever that makes it dearer.

``LC_PAGES=3000 pytest -m slow -s lc_assets_tests/fuzzing/test_worst_pages.py`` prints the worst
pages found, with their CPU-seconds per megabyte, and how these grow with the page.
"""

import os
import random
import time

import pytest

from lc_assets.text.links.links import page_links
from lc_assets.text.links.targets import targets_of
from lc_assets_tests.reference.pages import page_text
from lc_assets_tests.text.test_html_shape import NAMES, ODDITIES

TRIED = int(os.environ.get("LC_PAGES", "300"))
SMALL, LARGE = 100_000, 1_000_000
OPENED = 250
"""Elements that a page of every other search may open before the part that makes up its length."""
TAGS = (
    *(f"<{name}>" for name in NAMES),
    *(f"</{name}>" for name in NAMES),
    *ODDITIES,
    "<option selected>",
    "<a href=x>",
    "<a href=%d>",
    "<a href='//%d.example/'>y</a>",
    "<a href=x><img alt=y></a>",
    "<svg><a xlink:href=x>",
    "<svg><title>",
    "<svg><style>",
    "<!-- x -->",
    "<iframe>",
    "y",
    "one two. ",
    "\n",
)
WORK = {
    "links": lambda page: targets_of(page_links(page).links, "http://a.example/"),
    "text": page_text,
}


def page_of(parts, size, most):
    """A page of about a size: its parts, each repeated, all but the last ``most`` times at most;
    ``%d`` becomes a number of its own.
    """
    pieces, left = [], size
    for number, tags in enumerate(parts):
        unit = "".join(tags) or "x"
        n_times = left // (len(parts) - number) // len(unit) + 1
        repeated = unit * (n_times if number == len(parts) - 1 else min(n_times, most))
        pieces.append(repeated.replace("%d", "{}").format(*range(repeated.count("%d"))))
        left -= len(repeated)
    return "".join(pieces)


def seconds(work, page):
    """CPU-seconds, the least of two."""
    found = []
    for _ in range(2):
        begun = time.process_time()
        work(page)
        found.append(time.process_time() - begun)
    return min(found)


def changed(parts, chosen):
    """The parts with a tag, or a part, more, less or replaced."""
    copy = [list(tags) for tags in parts]
    tags = chosen.choice(copy)
    place = chosen.randrange(len(tags) + 1)
    what = chosen.randrange(5)
    if what == 0:
        copy.insert(chosen.randrange(len(copy) + 1), [chosen.choice(TAGS)])
    elif what == 1 and len(copy) > 1:
        copy.remove(tags)
    elif what == 2 and len(tags) > 1:
        del tags[place % len(tags)]
    else:
        tags[place : place + (what == 3)] = [chosen.choice(TAGS)]
    return copy[:4]


def worst_page(work, tried, seed, most):
    """Parts of the page that takes longest of some that were tried, each a change of a bad one."""
    chosen = random.Random(seed)  # noqa: S311 - nothing secret
    known = [(0.0, [[chosen.choice(TAGS)]]) for _ in range(8)]
    for _ in range(tried):
        _, parts = known[chosen.randrange(len(known))]
        parts = changed(parts, chosen) if chosen.random() < 0.9 else [[chosen.choice(TAGS)]]
        known.append((seconds(work, page_of(parts, SMALL, most)), parts))
        known.sort(key=lambda item: -item[0])
        del known[8:]
    return known[0][1]


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK)
def test_the_worst_page_found_takes_time_linear_in_its_length(name):
    """Ten times the page takes less than thirty times the time."""
    work = WORK[name]
    work("<a href=x>y</a>")
    for seed in range(max(TRIED // 300, 2)):
        most = (LARGE, OPENED)[seed % 2]
        parts = worst_page(work, min(TRIED // 2, 300), seed, most)
        small, large = (seconds(work, page_of(parts, size, most)) for size in (SMALL, LARGE))
        print(f"\n{name}: {large:.2f} s for a megabyte, {small:.3f} for a tenth: {parts}")
        assert large < 30 * max(small, 0.01)
