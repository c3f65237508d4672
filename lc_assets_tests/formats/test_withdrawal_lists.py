"""Lists of withdrawals: what they say is read as written, and nothing that cannot be meant passes
in silence.
"""

import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.formats.lists.withdrawal_lists import (
    MAX_LINE_CHARS,
    Withdrawal,
    append_withdrawal,
    line_of,
    parse_withdrawals,
    read_withdrawals,
)

HEADER = "kind,value,reason,date\n"
GOOD = """\
# taken down at the owner's request
kind,value,reason,date

domain,example.org,"owner's request, ticket ""17""\",2026-03-01
url,https://example.com/private/page?a=1,personal data,2026-03-04
  # later
document,2023-06/0000/en_head.json.gz/17,court order,2026-03-09
digest,sha1:ZFRBHGQKZRRGXLVXHZUDJTXRDRGPNGPE,duplicate of the above,2026-03-09
"""

REASONS = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.sampled_from(" ,\"'"),
    min_size=1,
).filter(lambda text: text == text.strip() and text.isprintable())


def test_a_list_is_read_as_it_is_written():
    found = parse_withdrawals(GOOD, where="list")
    assert [entry.kind for entry in found] == ["domain", "url", "document", "digest"]
    assert found[0].reason == 'owner\'s request, ticket "17"'
    assert found[1].sought == ("url", "example.com/private/page?a=1")


@given(st.lists(REASONS, max_size=4))
def test_what_is_appended_is_read_back(tmp_path_factory, reasons):
    path = tmp_path_factory.mktemp("lists") / "withdrawn.csv"
    entries = [
        Withdrawal(
            kind="document",
            value=f"2023-06/0000/en_head.json.gz/{number}",
            reason=reason,
            date="2026-03-01",
        )
        for number, reason in enumerate(reasons)
    ]
    for entry in entries:
        append_withdrawal(path, entry)
    assert (read_withdrawals(path) if entries else []) == entries


def test_appending_leaves_what_stands(tmp_path):
    """Comments, blank lines, a missing end of line; and a second entry of the same thing is
    refused.
    """
    path = tmp_path / "withdrawn.csv"
    path.write_text(GOOD.rstrip("\n"))
    entry = Withdrawal(kind="domain", value="other.example", reason="asked for", date="2026-04-01")
    append_withdrawal(path, entry)
    assert path.read_text() == GOOD + line_of(entry) + "\n"
    with pytest.raises(BadInput, match="line 10: repeats domain OTHER.example of line 9"):
        append_withdrawal(
            path,
            Withdrawal(kind="domain", value="OTHER.example", reason="again", date="2026-04-02"),
        )
    assert path.read_text() == GOOD + line_of(entry) + "\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "planet,Earth,why,2026-03-01",
            "line 2: no kind 'planet'; there are document, url, domain, digest",
        ),
        ("domain,example.org,why", "line 2: 3 cells, expected 4"),
        ("domain,example.org,a, b,2026-03-01", "line 2: 5 cells"),
        ('domain,example.org,"a,2026-03-01', "line 2: quotes do not match"),
        ("domain,example.org,,2026-03-01", "line 2: reason is empty"),
        ("domain, example.org,why,2026-03-01", "line 2: value is surrounded by spaces"),
        ("domain,example.org,why\tso,2026-03-01", "line 2: reason contains unprintable characters"),
        ("domain,example.org,why,01.03.2026", "line 2: '01.03.2026' is not a date"),
        ("domain,example.org,why,2026-02-30", "line 2: '2026-02-30' is not a date"),
        ("domain,example.org,why,20260301", "line 2: '20260301' is not a date"),
        ("document,2023-06/17,why,2026-03-01", "line 2: not a document id"),
        ("domain,https://example.org/x,why,2026-03-01", "line 2: not a domain"),
        ("domain,localhost,why,2026-03-01", "line 2: not a domain"),
        ("domain,co.uk,why,2026-03-01", "line 2: 'co.uk' is a public suffix"),
        ("url,page,why,2026-03-01", "line 2: not a page's address"),
        ("digest,ABC,why,2026-03-01", "line 2: not a digest"),
        ("digest,sha256:ABC,why,2026-03-01", "line 2: not a digest"),
        (
            "url,https://example.org/a,why,2026-03-01\nurl,http://www.example.org/a#b,why,2026-03-02",
            "line 3: repeats url .* of line 2",
        ),
        (f"url,https://example.org/{'a' * MAX_LINE_CHARS},why,2026-03-01", "line 2: longer than"),
    ],
)
def test_what_cannot_be_meant_names_its_line(line, words):
    with pytest.raises(BadInput, match=words):
        parse_withdrawals(HEADER + line, where="list")


@pytest.mark.parametrize(
    "text",
    [
        "url,https://example.org/a,why,2026-03-01\n",
        "value,kind,reason,date\n",
        "kind;value;reason;date\n",
    ],
)
def test_the_columns_are_named_first(text):
    with pytest.raises(
        BadInput, match="line 1: the first line names the columns: expected kind,value,reason,date"
    ):
        parse_withdrawals(text, where="list")


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# nothing yet\n", HEADER, "\ufeff" + HEADER, HEADER.replace("\n", "\r\n")]
)
def test_a_list_may_be_empty(text):
    assert parse_withdrawals(text, where="list") == []


def test_files_that_are_no_lists(tmp_path):
    path = tmp_path / "withdrawn.csv"
    with pytest.raises(BadInput, match="no such list"):
        read_withdrawals(path)
    path.write_bytes(HEADER.encode() + b"url,https://example.org/\xff,why,2026-03-01\n")
    with pytest.raises(BadInput, match="line 2: not UTF-8"):
        read_withdrawals(path)
