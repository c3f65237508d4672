"""Lists of words and domains: what `lc_assets.text.signals.names` and
`lc_assets.text.referrals.words` need.

============  ======================================================================================
list          as a file or a folder
============  ======================================================================================
stop words    a JSON object ``{language: [word, ...]}`` (as stopwords-json and RedPajama-V2's own
              code have it), or a folder of ``{language}.txt`` (a word per line) and
              ``{language}.json`` (an array)
bad words     the folder of LDNOOBW's repository, or any whose files are named by language: ``en``,
              ``en.txt``, ``ldnoobw_en.txt``; an entry per line. Or one JSON object as above
domains       RedPajama-V2's ``ut1_domain_categories.json``, ``{domain: number}``; or UT1's own
              folder, ``{category}/domains``, a domain per line
============  ======================================================================================

Numbers of domains count the sets of UT1's 13 categories that RedPajama-V2 uses, one category first,
then two, and so on, in the order of `itertools.combinations` of their sorted names. From a folder
they are computed so over the categories that the folder holds; only with all 13 are they the
published ones.

Words that concepts are not made of come from a text file of three lists, any of which may be
missing. Words are in lower case, separated by white space. `PRESET` is such a file in English::

    # a comment
    [stop]
    a an the
    [pronouns]
    he she him
    [abbreviations]
    mr dr

Everything is UTF-8; a byte order mark is skipped. Files are digested, so that a receipt can record
which lists were used. Common words are counted in a corpus (`lc_assets.text.referrals.concepts`).
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec

from lc_assets.errors import BadInput
from lc_assets.text.referrals.words import SpecialWords, folded
from lc_assets.text.signals.names import WordLists

_NAMED_BY_LANGUAGE = re.compile(r"(?:.*[_-])?([a-z]{2,3})(?:\.txt|\.json)?", re.ASCII)
_WORDS = msgspec.json.Decoder(list[str])
_BY_LANGUAGE = msgspec.json.Decoder(dict[str, list[str]])
MOST_CATEGORIES = 20
"""Of a million sets."""

_NUMBERS = msgspec.json.Decoder(dict[str, int])


def read_word_lists(
    *, stop_words: Path | None = None, bad_words: Path | None = None, domains: Path | None = None
) -> WordLists:
    """Read the lists that are given.

    Raises:
        BadInput: when a list does not exist, holds nothing, is not UTF-8, or is not as above; names
            the file.
    """
    digests: dict[str, str] = {}
    return WordLists(
        stop_words=_words(stop_words, "stop words", digests),
        bad_words=_words(bad_words, "bad words", digests),
        domains=None if domains is None else _domains(domains, digests),
        digests=digests,
    )


def _words(source: Path | None, what: str, digests: dict[str, str]) -> dict[str, frozenset[str]]:
    if source is None:
        return {}
    if source.is_dir():
        found = {
            language: _words_of_file(file, what, digests) for file, language in _by_language(source)
        }
    else:
        by_language = _decoded(
            source, _read(source, what, digests), _BY_LANGUAGE, "an object of lists by language"
        )
        found = {language: frozenset(words) for language, words in by_language.items()}
    if not found:
        raise BadInput(
            f"{source}: holds no {what}; expected files named by language, such as en.txt"
        )
    return found


def _by_language(folder: Path) -> Iterator[tuple[Path, str]]:
    files: dict[str, Path] = {}
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        named = _NAMED_BY_LANGUAGE.fullmatch(file.name)
        if named is None:
            continue
        language = named.group(1)
        if language in files:
            raise BadInput(
                f"{folder}: {files[language].name} and {file.name} are both of language "
                f"{language}; leave one"
            )
        files[language] = file
        yield file, language


def _words_of_file(file: Path, what: str, digests: dict[str, str]) -> frozenset[str]:
    text = _read(file, what, digests)
    words = (
        _decoded(file, text, _WORDS, "a list of words")
        if file.name.endswith(".json")
        else text.splitlines()
    )
    return frozenset(word.strip() for word in words if word.strip())


def _domains(source: Path, digests: dict[str, str]) -> Mapping[str, int]:
    if not source.is_dir():
        published: dict[str, int] = _decoded(
            source, _read(source, "domains", digests), _NUMBERS, "an object of numbers by domain"
        )
        return published
    files = sorted(source.glob("*/domains"))
    if not files:
        raise BadInput(
            f"{source}: holds no domains; expected UT1's layout, a folder for each category and in "
            "it a file named domains"
        )
    names = [file.parent.name for file in files]
    categories: dict[str, list[str]] = {}
    for name, file in zip(names, files, strict=True):
        for domain in {line.strip() for line in _read(file, "domains", digests).splitlines()} - {
            ""
        }:
            categories.setdefault(domain, []).append(name)
    sets = {tuple(of_domain) for of_domain in categories.values()}
    numbers = _set_numbers(names, sets)
    return {domain: numbers[tuple(of_domain)] for domain, of_domain in categories.items()}


def _set_numbers(names: list[str], sets: set[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    if len(names) > MOST_CATEGORIES:
        raise BadInput(
            f"{len(names)} categories of domains; expected at most {MOST_CATEGORIES}, such as the "
            "13 of RedPajama-V2"
        )
    every = (some for size in range(1, len(names) + 1) for some in combinations(names, size))
    return {some: number for number, some in enumerate(every) if some in sets}


def _read(file: Path, what: str, digests: dict[str, str]) -> str:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise BadInput(
            f"{file}: cannot be read: {error.strerror}; expected a list of {what}"
        ) from error
    digests[f"{what}: {file.parent.name + '/' if what == 'domains' else ''}{file.name}"] = (
        hashlib.sha256(content).hexdigest()
    )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{file}: byte {error.start:,} is not UTF-8; save the list of {what} as UTF-8 (iconv "
            "-f latin1 -t utf-8, perhaps)"
        ) from error


def _decoded(file: Path, text: str, decoder: "msgspec.json.Decoder[Any]", expected: str) -> Any:
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(f"{file}: {error}; expected {expected} in JSON") from error


PRESET = "referral-words-en.txt"
LISTS = ("stop", "pronouns", "abbreviations")


def read_special_words(path: str | Path = "") -> SpecialWords:
    """Read the lists of a file, or without one those of the preset.

    Raises:
        BadInput: when it cannot be read, or is not as above; names the line.
    """
    where = path or PRESET
    lists: dict[str, set[str]] = {name: set() for name in LISTS}
    now: set[str] | None = None
    for number, line in enumerate(
        _content(path).decode("utf-8", "replace").lstrip("\ufeff").splitlines(), 1
    ):
        bare = line.strip()
        if bare.startswith("[") and bare.endswith("]"):
            if bare[1:-1] not in lists:
                raise BadInput(
                    f"{where}, line {number}: no list is called {bare[1:-1]!r}; there are "
                    f"{', '.join(LISTS)}"
                )
            now = lists[bare[1:-1]]
        elif bare and not bare.startswith("#"):
            if now is None:
                raise BadInput(
                    f"{where}, line {number}: words before any list; expected one of "
                    f"{', '.join(f'[{name}]' for name in LISTS)}"
                )
            now |= {"".join(map(folded, word)) for word in bare.split()}
    return SpecialWords(**{name: frozenset(words) for name, words in lists.items()})


def digest_of_words(path: str | Path = "") -> str:
    """SHA-256 of the file, or of the preset.

    Raises:
        BadInput: when it cannot be read.
    """
    return hashlib.sha256(_content(path)).hexdigest()


def _content(path: str | Path) -> bytes:
    if not path:
        return (resources.files("lc_assets") / "presets" / PRESET).read_bytes()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: no readable file of words: {error.strerror}") from error
