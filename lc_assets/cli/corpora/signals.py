"""``lc signals``: RedPajama-V2's signals of any corpus, in its own lines."""

import dataclasses
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lc_assets.build.settings.documents import (
    DocumentSignalSettings,
    FilteringSettings,
    ListSettings,
)
from lc_assets.cli import options
from lc_assets.cli.corpora.filtering import LISTS
from lc_assets.cli.printing import print_error, say, table

if TYPE_CHECKING:
    from lc_assets.counts import Counts
    from lc_assets.text.signals.names import WordLists

STDOUT = Path("-")


@options.with_options
def signals(corpus: options.Corpus, lang: options.Lang = "", lists: ListSettings = LISTS) -> None:
    """Compute RedPajama-V2's 29 rule signals from text and write its own signals lines.

    OUT is a lake, with NAME.signals.json.gz for each file in `document_signals`; or - for standard
    output. A signal whose list is not given is left out, and so are those that need a model.

    Example: lc signals corpus signals --lang en --stop-words stop_words.json
    """
    import gzip
    import tempfile

    from lc_assets.counts import Counts
    from lc_assets.stages.documents.document_signals import LINES_SUFFIX
    from lc_assets.stages.documents.measuring import lists_of
    from lc_assets.vocabulary import NO_RULES

    known, out = lists_of(lists), corpus.out
    settings = {
        "filtered_documents": FilteringSettings(rules=NO_RULES, min_words=0, lists=lists),
        "document_signals": DocumentSignalSettings(lines=True),
    }
    with ExitStack() as stack:
        if out == STDOUT:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            corpus = dataclasses.replace(corpus, paths=[*corpus.paths[:-1], folder])
        stages = corpus.build("document_signals", settings, language=lang)
        built = stages["document_signals"].values()
        if out == STDOUT:
            stream = typer.get_binary_stream("stdout")
            for found in built:
                for path in sorted(found.published.folder.glob(f"*{LINES_SUFFIX}")):
                    with gzip.open(path) as content:
                        stream.writelines(content)
            stream.flush()
    for line in summary(Counts.total(found.counts for found in built), known):
        (print_error if out == STDOUT else say)(line)
    if out != STDOUT:
        table(("list", "SHA-256"), sorted(known.digests.items()))


def summary(counts: "Counts", lists: "WordLists") -> list[str]:
    """Sentences about what was read, written and left out."""
    from lc_assets.stages.documents.document_signals import (
        BYTES,
        WITHOUT_BAD_WORDS,
        WITHOUT_STOP_WORDS,
    )

    unread = ", ".join(f"{n:,} {why}" for why, n in counts.dropped.items()) or "none"
    lacking = {
        "rps_doc_stop_word_fraction": WITHOUT_STOP_WORDS,
        "rps_doc_ldnoobw_words": WITHOUT_BAD_WORDS,
    }
    absent = [
        f"{signal} of {n:,} documents"
        for signal, without in lacking.items()
        if (n := counts.extra.get(without, 0))
    ]
    absent += [] if lists.domains is not None else ["rps_doc_ut1_blacklist"]
    absent.append("rps_doc_ml_* and rps_doc_*_importance*, which need models")
    size = f"{counts.extra.get(BYTES, 0):,} bytes of text"
    return [
        f"{counts.seen:,} documents seen, {counts.kept:,} measured ({size}), unread: {unread}",
        f"Left out: {'; '.join(absent)}",
    ]
