"""Lists of words and domains: every layout that people have them in, and what is said of those that
are broken.
"""

import hashlib
import json
from itertools import chain, combinations

import pytest

from lc_assets.errors import BadInput
from lc_assets.formats.lists.word_lists import read_word_lists


def test_stop_words_by_language_in_one_file_or_a_folder(tmp_path):
    (tmp_path / "stop.json").write_text('{"en": ["the", "a\'s"], "de": ["über"]}', "utf-8")
    folder = tmp_path / "stop"
    folder.mkdir()
    (folder / "en.txt").write_text("\ufeffthe\r\na's\n\n", "utf-8")
    (folder / "de.json").write_text('["über"]', "utf-8")
    (folder / "README.md").write_text("no list", "utf-8")
    one, other = (read_word_lists(stop_words=path) for path in (tmp_path / "stop.json", folder))
    assert one.stop_words == other.stop_words == {"en": {"the", "a's"}, "de": {"über"}}
    assert one.digests == {
        "stop words: stop.json": hashlib.sha256((tmp_path / "stop.json").read_bytes()).hexdigest()
    }
    assert set(other.digests) == {"stop words: en.txt", "stop words: de.json"}


@pytest.mark.parametrize("name", ["en", "en.txt", "ldnoobw_en.txt"])
def test_bad_words_as_ldnoobw_has_them(tmp_path, name):
    """An entry per line, spaces within kept; beside it what is no list."""
    (tmp_path / name).write_text("darn\ndarn it \n", "utf-8")
    (tmp_path / "LICENSE").write_bytes(b"\xff")
    assert read_word_lists(bad_words=tmp_path).bad_words == {"en": {"darn", "darn it"}}


def test_domains_by_number_or_from_the_folders_of_their_categories(tmp_path):
    """A domain's number is the place of its set of categories among all sets, small ones first."""
    names = [f"category{n}" for n in range(5)]
    domains = {"a.org": [0], "b.org": [1, 4], "c.org": [0, 1, 2, 3, 4], "d.org": [4]}
    for place, name in enumerate(names):
        (tmp_path / name).mkdir()
        own = [domain for domain, places in domains.items() if place in places]
        (tmp_path / name / "domains").write_text("\n".join([*own, *own]), "utf-8")
    every = list(chain.from_iterable(combinations(names, size) for size in range(1, 6)))
    wanted = {
        domain: every.index(tuple(names[place] for place in places))
        for domain, places in domains.items()
    }
    assert read_word_lists(domains=tmp_path).domains == wanted
    (tmp_path / "ut1.json").write_text(json.dumps(wanted), "utf-8")
    assert read_word_lists(domains=tmp_path / "ut1.json").domains == wanted


def test_no_lists_are_no_lists():
    lists = read_word_lists()
    assert (lists.stop_words, lists.bad_words, lists.domains, lists.digests) == ({}, {}, None, {})


@pytest.mark.parametrize("what", ["stop_words", "bad_words", "domains"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"en": ["caf\u00e9"]}'.encode("latin-1"), "byte 12 is not UTF-8"),
        ("{}".encode("utf-16"), "byte 0 is not UTF-8"),
        (b"the\nand\n", "in JSON"),
        (b'{"en": "the"}', "in JSON"),
        (b"[" * 100_000, "in JSON"),
        (b"", "in JSON"),
    ],
)
def test_a_broken_list_is_named(tmp_path, what, content, said):
    path = tmp_path / "list.json"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=said) as raised:
        read_word_lists(**{what: path})
    assert str(path) in str(raised.value)


def test_a_file_of_a_folder_in_the_wrong_encoding_is_named(tmp_path):
    (tmp_path / "de.txt").write_bytes("Ärger\n".encode("latin-1"))
    with pytest.raises(
        BadInput, match=r"de\.txt: byte 0 is not UTF-8; save the list of bad words as UTF-8"
    ):
        read_word_lists(bad_words=tmp_path)


def test_a_folder_without_lists_and_one_with_two_of_a_language(tmp_path):
    with pytest.raises(BadInput, match=r"holds no stop words; expected files named by language"):
        read_word_lists(stop_words=tmp_path)
    with pytest.raises(BadInput, match=r"expected UT1's layout"):
        read_word_lists(domains=tmp_path)
    for name in ("en", "en.txt"):
        (tmp_path / name).write_text("a", "utf-8")
    with pytest.raises(BadInput, match=r"en and en\.txt are both of language en"):
        read_word_lists(stop_words=tmp_path)


def test_a_list_that_is_not_there(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        read_word_lists(stop_words=tmp_path / "nowhere.json")
