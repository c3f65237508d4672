"""Numbers of payment cards and bank accounts, by their lengths and check digits.

Sources: ISO/IEC 7812-1 (Luhn; issuer identification numbers as the card schemes publish them), ISO
13616 and SWIFT's IBAN registry (release 97 and earlier: lengths by country).
"""

_COUNTRIES = """15 NO; 16 BE; 18 DK FI FK FO GL NL SD; 19 MK SI; 20 AT BA EE KZ LT LU MN XK;
    21 CH HR LI LV; 22 BG BH CR DE GB GE IE ME RS VA; 23 AE GI IL IQ OM SO TL;
    24 AD CZ ES MD PK RO SA SE SK TN VG; 25 LY PT ST; 26 IS TR; 27 BI DJ FR GR IT MC MR SM;
    28 AL AZ BY CY DO GT HN HU LB NI PL SV; 29 BR EG PS QA UA; 30 JO KW MU YE; 31 MT SC; 32 LC;
    33 RU"""
IBAN_LENGTHS = {
    country: int(length)
    for length, *countries in map(str.split, _COUNTRIES.split(";"))
    for country in countries
}
"""Characters of an IBAN, by country."""

_CARDS = (
    (4, 4, 1, (13, 16, 19)),  # Visa
    (51, 55, 2, (16,)),  # Mastercard
    (2221, 2720, 4, (16,)),
    (34, 34, 2, (15,)),  # American Express
    (37, 37, 2, (15,)),
    (6011, 6011, 4, (16, 19)),  # Discover
    (644, 649, 3, (16, 19)),
    (65, 65, 2, (16, 19)),
    (300, 305, 3, (14,)),  # Diners Club
    (36, 36, 2, (14,)),
    (38, 39, 2, (14,)),
    (3528, 3589, 4, (16,)),  # JCB
    (62, 62, 2, (16, 17, 18, 19)),  # UnionPay
)
"""First and last prefix, digits of the prefix, lengths of the number."""


def luhn_holds(digits: str) -> bool:
    """Whether the last digit is Luhn's check of the others.

    >>> luhn_holds("79927398713"), luhn_holds("79927398710")
    (True, False)
    """
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 * (value > 9) for value in doubled) % 10 == 0


def is_card(digits: str) -> bool:
    """Whether some digits are a payment card's number: an issuer's prefix, one of its lengths, and
    Luhn's digit.

    >>> numbers = "4111111111111111", "4111111111111112", "9111111111111111", "0" * 16
    >>> [is_card(number) for number in numbers]
    [True, False, False, False]
    """
    issued = any(
        first <= int(digits[:n_prefix] or 0) <= last and len(digits) in lengths
        for first, last, n_prefix, lengths in _CARDS
    )
    return issued and luhn_holds(digits)


def is_iban(account: str) -> bool:
    """Whether some capital letters and digits are an IBAN: a country's length, and 97's remainder.

    >>> numbers = "DE89370400440532013000", "DE89370400440532013001", "XX89370400440532013000"
    >>> [is_iban(number) for number in numbers]
    [True, False, False]
    """
    if IBAN_LENGTHS.get(account[:2]) != len(account):
        return False
    return int("".join(str(int(char, 36)) for char in account[4:] + account[:4])) % 97 == 1
