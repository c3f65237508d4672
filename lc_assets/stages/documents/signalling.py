"""Signals of a plain corpus: a file of RedPajama-V2's own lines for each file of documents.

The lists that some signals need are given by path, and read once in each worker. A document that
cannot be read is counted by its reason; all others have a line. What a signal cannot be computed
from is left out, and counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from lc_assets.counts import Counts
from lc_assets.execution.executor import Executor
from lc_assets.formats.corpora.reading import corpus_files, read_corpus
from lc_assets.formats.corpora.records import CorpusDocument, Unread
from lc_assets.formats.lists.word_lists import read_word_lists
from lc_assets.formats.redpajama.signal_lines import SUFFIX, signals_line, write_signal_lines
from lc_assets.publishing import publish
from lc_assets.stages.corpus_runs import over_corpus
from lc_assets.text.signals.names import WordLists
from lc_assets.text.signals.signals import measure_signals

BYTES: Final = "bytes of text"
WITHOUT_STOP_WORDS: Final = "documents without stop words of their language"
WITHOUT_BAD_WORDS: Final = "documents without bad words of their language"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signalling:
    """What to compute from.

    Attributes:
        language: of every document; by default what each record says.
        text_field: where a record's text is; by default as `read_corpus` finds it.
        stop_words: path of a list, or none; see `lc_assets.formats.lists.word_lists`.
        bad_words: as well.
        domains: as well.
    """

    language: str | None = None
    text_field: str | None = None
    stop_words: Path | None = None
    bad_words: Path | None = None
    domains: Path | None = None

    def lists(self) -> WordLists:
        """The lists, read once in a process."""
        return _lists(self.stop_words, self.bad_words, self.domains)


@dataclass(frozen=True, slots=True)
class SignalTask:
    """One file of documents, and where its signals go."""

    source: Path
    target: Path
    settings: Signalling

    def __str__(self) -> str:
        return self.source.name


def signal_corpus(source: Path, out: Path, settings: Signalling, *, executor: Executor) -> Counts:
    """Publish the signals of every file of a corpus under ``out``: ``{path without its
    ends}.signals.json.gz``.

    Raises:
        BadInput: when the corpus, or a list, cannot be meant.
        CorruptFile: when a file's container is damaged.
    """
    settings.lists()  # so that a bad list is said before any work is done

    def task_of(file: Path, stem: Path) -> SignalTask:
        return SignalTask(file, stem.with_name(stem.name + SUFFIX), settings)

    return over_corpus([source], out, task_of, signal_file, executor=executor, what="signals")


def signal_file(task: SignalTask) -> Counts:
    """Publish the signals of one file."""
    counts = _Counts()
    with publish(task.target) as draft:
        write_signal_lines(draft, _lines(task.source, task.settings, counts))
    return counts.counts()


def signal_stream(source: Path, settings: Signalling) -> Iterator[bytes | Counts]:
    """Yield the lines of a whole corpus, in the order of its files, and at last what was
    counted.
    """
    counts = _Counts()
    for file in corpus_files([source]):
        yield from _lines(file, settings, counts)
    yield counts.counts()


class _Counts:
    """What is seen while lines are handed out."""

    def __init__(self) -> None:
        self._kept = 0
        self._dropped: dict[str, int] = {}
        self._also: dict[str, int] = {}

    def unread(self, why: str) -> None:
        self._dropped[why] = self._dropped.get(why, 0) + 1

    def kept(self, **extra: int) -> None:
        self._kept += 1
        for name, n in extra.items():
            self._also[name] = self._also.get(name, 0) + n

    def counts(self) -> Counts:
        seen = self._kept + sum(self._dropped.values())
        return Counts(
            seen=seen,
            kept=self._kept,
            dropped=self._dropped,
            failed_rules=dict(self._dropped),
            extra=self._also,
        )


def _lines(file: Path, settings: Signalling, counts: _Counts) -> Iterator[bytes]:
    lists = settings.lists()
    for found in read_corpus(file, text_field=settings.text_field):
        if isinstance(found, Unread):
            counts.unread(found.why)
            continue
        language = found.language if settings.language is None else settings.language
        domain = found.source_domain or host_of(found.url)
        measured = measure_signals(found.text, lists, language=language, source_domain=domain)
        line = signals_line(found, measured, language=language, source_domain=domain)
        counts.kept(
            **{
                BYTES: n_bytes(found),
                WITHOUT_STOP_WORDS: int(language not in lists.stop_words),
                WITHOUT_BAD_WORDS: int(language not in lists.bad_words),
            }
        )
        yield line


def n_bytes(document: CorpusDocument) -> int:
    """Bytes of a document's text in UTF-8; a lone surrogate counts as the three that it would
    take.
    """
    return (
        len(document.text)
        if document.text.isascii()
        else len(document.text.encode("utf-8", "surrogatepass"))
    )


def host_of(url: str) -> str:
    """The host of an address as CCNet takes it for ``source_domain``: with its port, without
    stripping anything.

    >>> host_of("https://www.example.org:8080/page"), host_of("not an address")
    ('www.example.org:8080', '')
    """
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


@lru_cache(maxsize=2)
def _lists(stop_words: Path | None, bad_words: Path | None, domains: Path | None) -> WordLists:
    return read_word_lists(stop_words=stop_words, bad_words=bad_words, domains=domains)
