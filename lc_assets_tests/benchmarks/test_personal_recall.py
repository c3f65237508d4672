"""How much personal data is found in sentences, by kind and form, and how much is taken for it in
novels and manuals; run with ``-m slow -s`` to see.

The values are not this project's: numbers that Google's libphonenumber gives as examples for every
country, in the forms that it writes (for the US of offices: the examples are fictional); the IBANs of SWIFT's registry; the card schemes' numbers for
tests; addresses of RFC 5321's and 5952's forms.
"""

import itertools
from functools import partial

import phonenumbers
import pytest
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from lc_assets.text.privacy.personal import KINDS, REGIONS, find_personal
from lc_assets_tests.benchmarks.referral_texts import read_novels, read_pages
from lc_assets_tests.reference import personal_peers
from lc_assets_tests.text.test_privacy import CARDS, IBANS

AMERICAN = ["(202) 456-1111", "(212)736-5000", "1-800-273-8255", "650-253-0000", "650.253.0000"]
SENTENCE = "Please answer ({}), or write to us; it is the {} since May."
FORMS = {"E.164": 0, "international": 1, "national": 2}
EMAILS = ["ann@mail.org", "a.b+c@sub.mail-host.co.uk", "O'Neil_77@uni-bonn.de", "x@müller.de"]
IPS = ["8.8.4.4", "2a00:1450:4001:81b::200e", "2A00:1450::1", "81.2.69.160"]


def numbers(regions) -> list[phonenumbers.PhoneNumber]:
    found = (
        phonenumbers.example_number_for_type(region, kind)
        for region in regions
        for kind in (PhoneNumberType.FIXED_LINE, PhoneNumberType.MOBILE)
    )
    return [number for number in found if number is not None]


def grouped(number: str) -> str:
    return " ".join(number[at : at + 4] for at in range(0, len(number), 4))


def values() -> dict[str, tuple[str, tuple[str, ...], list[str]]]:
    """Kind, countries and values, by form."""
    everywhere = sorted(phonenumbers.SUPPORTED_REGIONS)
    found = {
        f"phone, {name}": (
            "phone",
            (),
            [phonenumbers.format_number(number, form) for number in numbers(everywhere)],
        )
        for name, form in itertools.islice(FORMS.items(), 2)
    }
    for regions in REGIONS.values():
        for region in regions:
            national = [
                phonenumbers.format_number(number, PhoneNumberFormat.NATIONAL)
                for number in numbers([region])
            ]
            dashed = [number.translate({32: "-", 40: None, 41: None}) for number in national]
            dotted = [number.replace("-", ".") for number in dashed]
            found[f"phone, as in {region}"] = ("phone", regions, [*national, *dashed, *dotted])
    found["phone, as in US"] = ("phone", ("US",), AMERICAN)
    found["iban"] = ("iban", (), IBANS)
    found["iban, in groups"] = ("iban", (), [grouped(number) for number in IBANS])
    found["iban, lower case"] = ("iban", (), [number.lower() for number in IBANS])
    found["iban, lower case, in groups"] = ("iban", (), [grouped(n).lower() for n in IBANS])
    found["card"] = ("card", (), [*CARDS, *map(grouped, CARDS)])
    found["email"] = ("email", (), EMAILS)
    found["ip"] = ("ip", (), IPS)
    return found


@pytest.mark.slow
def test_recall_by_form_and_false_positives(shared_data):
    recalls = {}
    for name, (kind, regions, some) in values().items():
        hits = 0
        for value in some:
            text = SENTENCE.format(value, value)
            found = [
                text[one.start : one.end] for one in find_personal(text, [kind], regions=regions)
            ]
            hits += found == [value, value]
        recalls[name] = hits / len(some)
        print(f"{name}: {hits} of {len(some)}")
    texts = [
        *read_novels(shared_data),
        *(t for p in read_pages(shared_data).values() for t in p.values()),
    ]
    found = [
        (one.kind, text[one.start : one.end])
        for text in texts
        for one in find_personal(text, KINDS)
    ]
    print(f"{sum(map(len, texts)) / 1e6:.0f} MB of novels and manuals:")
    for kind in KINDS:
        some = [value for found_kind, value in found if found_kind == kind]
        print(f"{kind}: {len(some)}, such as {', '.join(sorted(set(some))[:8])}")
    assert min(recalls[name] for name in recalls if not name.startswith("phone")) == 1


EDGES = " .,;:!?()"
"""Characters beside a value that a peer may count among it."""


def own(kind: str, regions, text: str) -> list[str]:
    """What this package finds."""
    return [text[one.start : one.end] for one in find_personal(text, [kind], regions=regions)]


@pytest.mark.slow
@pytest.mark.network
def test_recall_and_false_positives_beside_peers(shared_data):
    """A value counts as found where its characters are, but for `EDGES`: once of two times by half.

    What is found in novels and manuals is nearly all false, but for addresses.
    """
    for module in ("presidio_analyzer", "datatrove"):
        pytest.importorskip(module)

    makers = {
        "this": {kind: partial(own, kind, REGIONS["en"]) for kind in KINDS},
        "Presidio": personal_peers.presidio(),
        "datatrove": personal_peers.datatrove(),
        "Dolma": personal_peers.dolma(),
    }
    print("\nform:", ", ".join(makers))
    shares = {}
    for name, (kind, regions, some) in values().items():
        row = shares.setdefault(name, {})
        for maker, finders in makers.items():
            if kind not in finders:
                continue
            own_regions = maker == "this" and regions
            find = partial(own, kind, regions) if own_regions else finders[kind]
            hits = 0.0
            for value in some:
                found = [one.strip(EDGES) for one in find(SENTENCE.format(value, value))]
                hits += min(found.count(value.strip(EDGES)), 2) / 2
            row[maker] = hits / len(some)
        print(f"{name} ({len(some)}):", {maker: f"{hit:.2f}" for maker, hit in row.items()})
    pages = [text for part in read_pages(shared_data).values() for text in part.values()]
    texts = [*(novel[:200_000] for novel in read_novels(shared_data)[:10]), *pages[:400]]
    print(f"found in {sum(map(len, texts)) / 1e6:.1f} MB of novels and manuals:")
    for maker, finders in makers.items():
        print(maker, {kind: sum(len(find(t)) for t in texts) for kind, find in finders.items()})
    assert all(row["this"] >= max(row.values()) - 0.05 for row in shares.values())
