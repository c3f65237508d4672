"""Time for hostile input grows with its length, not with its square: ``pytest -s -m benchmark
lc_assets_tests/benchmarks/test_hostile_input_speed.py``.

The tests of each function give it such input without a clock.
"""

import io
from collections.abc import Callable

import pytest

from lc_assets.formats.archives.captures import matches
from lc_assets.text.duplicates.minhash import FAST, RPV2, signature
from lc_assets.text.links.page_keys import surt
from lc_assets.text.privacy.personal import KINDS, find_personal
from lc_assets.text.referrals.concepts import LexicalConcepts
from lc_assets.text.referrals.referrals import count_referrals
from lc_assets.text.signals.signals import signals_of
from lc_assets.text.words import fold
from lc_assets_tests.benchmarks.timing import cpu_seconds
from lc_assets_tests.text.test_compiled_signals import HOSTILE as TEXTS, LISTS
from lc_assets_tests.text.test_concept_words import HOSTILE as MENTIONS, SPECIAL
from lc_assets_tests.text.test_privacy import HOSTILE as PRIVATE
from lc_assets_tests.text.test_surt import HOSTILE as ADDRESSES

TIMES_LONGER = 4
MOST_TIMES_SLOWER = 9
"""Linear is four, quadratic sixteen."""
UNNOTICED_SECONDS = 0.05


def concepts(text: str) -> object:
    """Find and count what a text refers to."""
    return count_referrals(LexicalConcepts(SPECIAL).mentions(text))


def index(text: str) -> object:
    """Look three keys up in an index of such lines."""
    return list(matches(io.BytesIO(text.encode()), [b"", b"a", b"b"], where="x.cdxj"))


def address(text: str) -> object:
    """Make the keys of two addresses."""
    return surt(f"http://example.org/{text}"), surt(f"http://example.org/?{text}")


def of_piece(piece: str) -> Callable[[int], str]:
    """Make a text of so many characters out of a piece."""
    return lambda n: piece * (n // len(piece))


CASES: list[tuple[str, Callable[[str], object], Callable[[int], str], int]] = [
    *(
        (
            f"signals of {name}",
            lambda text: signals_of(text, LISTS, language="en"),
            make,
            250_000,
        )
        for name, make in TEXTS.items()
    ),
    *(
        (f"concepts of {name}", concepts, lambda n, text=text: text[:n], 250_000)
        for name, text in MENTIONS.items()
    ),
    *(
        (
            f"personal data in {piece!a}",
            lambda text: find_personal(text, KINDS),
            of_piece(piece),
            250_000,
        )
        for piece in PRIVATE
    ),
    *((f"the key of {part!a}", address, of_piece(part), 2_000) for part in ADDRESSES),
    *(
        (
            f"{scheme.label} of {piece!a}",
            lambda text, scheme=scheme: signature(text, scheme),
            of_piece(piece),
            250_000,
        )
        for scheme in (RPV2, FAST)
        for piece in ("x", "a ", "\u0301\u0327", "\x00 ")
    ),
    *(
        (f"an index of {line!a}", index, of_piece(line), 250_000)
        for line in ("a\n", "\n", "a b\n", "\r")
    ),
    ("folding accents", fold, of_piece("\u0301\u0327"), 50_000),
]


@pytest.mark.parametrize("case", CASES, ids=[name for name, *_ in CASES])
def test_time_grows_with_the_length(case):
    """Four times the input takes at most nine times as long."""
    name, work, make, n_chars = case
    short, long = make(n_chars), make(TIMES_LONGER * n_chars)
    work(short)
    once, _ = cpu_seconds(lambda _: work(short))
    longer, _ = cpu_seconds(lambda _: work(long))
    print(f"\n{name}: {len(short):,} characters {once:.3f} s, {len(long):,} {longer:.3f} s")
    assert longer < MOST_TIMES_SLOWER * once + UNNOTICED_SECONDS
