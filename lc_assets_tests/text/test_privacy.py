"""Personal data: what is found, what is left alone, what takes its place; and that no text takes
long.
"""

import ipaddress
import itertools
import re

import pytest
from hypothesis import given, strategies as st

from lc_assets.text.privacy.account_numbers import IBAN_LENGTHS, is_card, is_iban, luhn_holds
from lc_assets.text.privacy.personal import KINDS, find_personal
from lc_assets.text.privacy.replacing import Replaced, replace_personal, replacement

PIECES = st.sampled_from(
    [
        "ann.lee@mail.org",
        "@",
        "a@b",
        "8.8.4.4",
        "1.2.3.4",
        ".",
        ":",
        "::",
        "2a00:1450:4001:81b::200e",
        "+49 30 901820",
        "(212) 736-5000",
        "212-736-5000",
        "4111 1111 1111 1111",
        "4111111111111111",
        "DE89 3704 0044 0532 0130 00",
        "GB82WEST12345698765432",
        " ",
        "\n",
        "-",
        "+",
        "00",
        "0",
        "7",
        "4",
        "x",
        "é",
        "<EMAIL>",
        "<IP>",
        "version ",
        "user-0123456789abcdef@example.com",
        "+1-303-555-0153",
        "192.0.2.7",
        "\ud800",
    ]
)
TEXTS = st.lists(PIECES, max_size=25).map("".join)


def found(text, *kinds, regions=("US",)):
    return [
        text[personal.start : personal.end]
        for personal in find_personal(text, kinds or KINDS, regions=regions)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mail ann@mail.org.", ["ann@mail.org"]),
        (
            "<a href='mailto:Ann.Lee+news@sub.mail-host.co.uk'>",
            ["Ann.Lee+news@sub.mail-host.co.uk"],
        ),
        ("a@b.com,c@d.com;e@f.com", ["a@b.com", "c@d.com", "e@f.com"]),
        ("rené@müller.de", ["rené@müller.de"]),
        ("('x@y.fr')", ["x@y.fr"]),
        ("ann@mail.org's", ["ann@mail.org"]),
        ("ann@mail.org-", ["ann@mail.org"]),
        ("@user on medium.com/@user", []),
        ("a@b, a@b.c, a@b.c1, a@.com, @b.com, a@-b.com, a@b..com, a..b@c.com", []),
        ("x" * 65 + "@mail.org", []),
        ("logo@2x.png, icon@3x.webp, a@b.jpeg, x@page.html, ann@2x.org", ["ann@2x.org"]),
        ("me@example.com me@mail.example.org me@x.test me@y.invalid root@a.localhost", []),
    ],
)
def test_email(text, expected):
    assert found(text, "email") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from 8.8.4.4 to 1.1.1.1.", ["8.8.4.4", "1.1.1.1"]),
        ("http://8.8.4.4:8080/x", ["8.8.4.4"]),
        (
            (
                "127.0.0.1 0.0.0.0 10.1.2.3 192.168.0.1 172.16.0.1 169.254.1.1 224.0.0.1 "
                "255.255.255.255 203.0.113.9"
            ),
            [],
        ),
        ("256.1.1.1 1.2.3 1.2.3.4.5 01.02.03.04 x8.8.4.4 8.8.4.41234 8.8.4.4.8", []),
        ("version 8.8.4.4, v8.8.4.4, v. 8.8.4.4, Release: 8.8.4.4, § 8.8.4.4, VERSION 8.8.4.4", []),
        ("torch==2.4.1.1, torch >= 2.4.1.1, torch~=2.4.1.1", []),
        ("the versions of 8.8.4.4", ["8.8.4.4"]),
        (
            "2a00:1450:4001:81b::200e and 2A00:1450::1.",
            ["2a00:1450:4001:81b::200e", "2A00:1450::1"],
        ),
        ("[2a00:1450::1]:80", ["2a00:1450::1"]),
        ("at 2a00:1450::1: here", ["2a00:1450::1"]),
        ("::1 fe80::1 2001:db8::7 :: 12:30:45 a::b std::vector 1:2:3:4:5:6:7:8:9 ff02::1", []),
    ],
)
def test_ip(text, expected):
    assert found(text, "ip") == expected


@pytest.mark.parametrize(
    ("text", "region", "expected"),
    [
        ("call (212) 736-5000 or 212-736-5000", "US", ["(212) 736-5000", "212-736-5000"]),
        ("+49 30 901820, +44 20 7946 0018", "US", ["+49 30 901820", "+44 20 7946 0018"]),
        ("0049 30 901820", "", ["0049 30 901820"]),
        ("(212)736-5000, 1-800-273-8255", "US", ["(212)736-5000", "1-800-273-8255"]),
        ("212.736.5000 (212) 736\u20115000", "US", ["212.736.5000", "(212) 736\u20115000"]),
        ("+44 (0)20 7946 0018, +33\xa01\xa042\xa068\xa053\xa000", "", None),
        ("+1 (212) 736-5000", "", None),
        ("020 7946 0018; 07911 123456", "GB", ["020 7946 0018", "07911 123456"]),
        ("(0121) 496 0018, 01865 270000", "GB", ["(0121) 496 0018", "01865 270000"]),
        ("in 0123 456 or 1914 1918 and 01.02.2003 at 07:45", "GB", []),
        ("0 30 / 90 18 20", "DE", None),
        ("030 901820", "DE", ["030 901820"]),
        ("(030) 901820, (030 901820)", "DE", ["(030) 901820", "030 901820"]),
        ("030 901820", "US", []),
        ("01 42 68 53 00", "FR", ["01 42 68 53 00"]),
        ("912 345 678", "ES", ["912 345 678"]),
        ("06 6982 1234", "IT", ["06 6982 1234"]),
        ("1914-1918, 2125551234, 10.12.2023, 3.14159265358, +123", "US", []),
        ("+1-303-555-0153 (212) 555-0142", "US", []),
        ("4 30 3333 212-736-5000", "US", ["212-736-5000"]),
        ("x212-736-5000 212-736-50001 1,212-736-5000", "US", []),
    ],
)
def test_phone(text, region, expected):
    """None stands for the parts between the commas, all of them."""
    expected = text.split(", ") if expected is None else expected
    assert found(text, "phone", regions=region.split()) == expected


CARDS = [
    "4111111111111111",
    "4222222222222",
    "5555555555554444",
    "2223003122003222",
    "378282246310005",
    "6011111111111117",
    "30569309025904",
    "3530111333300000",
    "6200000000000005",
]


@pytest.mark.parametrize("number", CARDS)
def test_card(number):
    """Numbers that the card schemes and payment services publish for tests; each with one digit
    changed is none.
    """
    assert is_card(number)
    assert found(f"card {number}.", "card") == [number]
    grouped = " ".join(number[start : start + 4] for start in range(0, len(number), 4))
    assert found(grouped, "card") == [grouped]
    assert found(f"{number}0", "card") == found(f"1{number}", "card") == []
    assert found(f"4 {number}", "card") == [number]
    assert not any(
        is_card(number[:place] + str((int(digit) + 1) % 10) + number[place + 1 :])
        for place, digit in enumerate(number)
    )


IBANS = [
    "DE89370400440532013000",
    "GB82WEST12345698765432",
    "FR1420041010050500013M02606",
    "ES9121000418450200051332",
    "IT60X0542811101000000123456",
    "NO9386011117947",
    "MT84MALT011000012345MTLCAST001S",
    "CH9300762011623852957",
    "BR1800360305000010009795493C1",
]


@pytest.mark.parametrize("number", IBANS)
def test_iban(number):
    """Examples of SWIFT's registry."""
    assert is_iban(number)
    assert len(number) == IBAN_LENGTHS[number[:2]]
    grouped = " ".join(number[start : start + 4] for start in range(0, len(number), 4))
    assert found(f"IBAN {grouped} AND MORE", "iban") == [grouped]
    assert found(f"{number}.", "iban") == [number]
    assert found(f"iban {number.lower()} and more", "iban") == [number.lower()]
    assert found(f"ab12 is it: {grouped.lower()} or so", "iban") == [grouped.lower()]
    assert found(grouped.replace(" ", "\xa0"), "iban") == [grouped.replace(" ", "\xa0")]
    assert not is_iban(number[:-1])
    assert not is_iban(number[:-1] + ("1" if number[-1] != "1" else "2"))
    assert found(f"{number}X", "iban") == []


@given(st.integers(0, 10**18))
def test_luhn_is_one_digit_in_ten(number):
    assert sum(luhn_holds(f"{number}{digit}") for digit in range(10)) == 1


@given(text=TEXTS, style=st.sampled_from(["tag", "surrogate"]), seed=st.integers(0, 3))
def test_replacing_again_changes_nothing(text, style, seed):
    once = replace_personal(text, KINDS, style=style, seed=seed, language="en")
    again = replace_personal(once.text, KINDS, style=style, seed=seed, language="en")
    assert again.text == once.text
    assert again.counts == {}


@given(text=TEXTS)
def test_finds_are_in_order_apart_and_of_the_kinds_asked_for(text):
    every = find_personal(text, KINDS)
    assert all(left.end <= right.start for left, right in itertools.pairwise(every))
    assert all(left.start < left.end for left in every)
    assert {personal.kind for personal in find_personal(text, ["ip"])} <= {"ip"}


def test_the_same_value_becomes_the_same_in_any_document():
    def in_document(before):
        text = f"{before} | ann@mail.org, (212) 736-5000"
        return replace_personal(
            text, KINDS, style="surrogate", seed=5, language="en"
        ).text.partition("|")[2]

    assert in_document("One:") == in_document("Two, 8.8.4.4 and bob@mail.org:")
    for kind, one, two in (
        ("phone", "+1 212 736-5000", "+12127365000"),
        ("email", "Ann@mail.org", "ann@MAIL.org"),
    ):
        assert replacement(kind, one, style="surrogate", seed=1) == replacement(
            kind, two, style="surrogate", seed=1
        )
    assert replacement("email", "a@b.de", style="surrogate", seed=1) != replacement(
        "email", "a@b.de", style="surrogate", seed=2
    )


def test_surrogates_are_of_reserved_ranges():
    nets = [
        ipaddress.ip_network(net)
        for net in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
    ]
    for number in range(200):
        four = ipaddress.ip_address(replacement("ip", f"8.8.4.{number}", style="surrogate", seed=0))
        six = ipaddress.ip_address(
            replacement("ip", f"2a00::{number:x}", style="surrogate", seed=0)
        )
        assert any(four in net for net in nets[:3])
        assert six in nets[3]
        assert replacement("email", f"{number}@b.de", style="surrogate", seed=0).endswith(
            "@example.com"
        )
        assert (
            replacement("phone", f"+49 30 901 {number}", style="surrogate", seed=0)[6:13]
            == "-555-01"
        )


def test_counts_by_kind_and_nothing_else_changes():
    text = "a@b.de 8.8.4.4 a@b.de\ud800\0 4111111111111111 DE89370400440532013000 +4930901820"
    replaced = replace_personal(text, KINDS)
    assert replaced.counts == {"card": 1, "email": 2, "iban": 1, "ip": 1, "phone": 1}
    assert replaced.text == "<EMAIL> <IP> <EMAIL>\ud800\0 <CARD> <IBAN> <PHONE>"
    assert replace_personal(text, ["card"]).text == text.replace("4111111111111111", "<CARD>")
    assert replace_personal(text, []) == Replaced(text=text, counts={})


HOSTILE = [
    "a@",
    "a@a.",
    "@a.b",
    "@",
    "1",
    "1.",
    "1.1.1.1.",
    ":",
    "a:",
    "::",
    "(212) 736-",
    "+1 234 ",
    "4 ",
    "00",
    "DE89 3704 ",
    "AA00",
    "x@y.com ",
    "é@",
    ".",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_takes_more_than_linear_time(piece):
    """200 kB of it, where a quadratic search would take minutes."""
    text = piece * (200_000 // len(piece))
    for region in ("US", "GB", "DE"):
        found = find_personal(text, KINDS, regions=[region])
        assert all(0 <= one.start < one.end <= len(text) for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE)
def test_ten_megabytes_of_it(piece):
    find_personal(piece * (10_000_000 // len(piece)), KINDS)


def test_addresses_are_replaced_as_by_two_plain_expressions():
    """Sound addresses in prose, by the expressions that everybody writes."""
    text = "".join(
        f"Sentence {n} of a page, by jane.{n}@firma.com or at 81.2.69.{n % 256} before noon.\n"
        for n in range(300)
    )
    email = re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}\b")
    ip = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")
    assert replace_personal(text, ["email", "ip"]).text == ip.sub(
        "<IP>", email.sub("<EMAIL>", text)
    )
