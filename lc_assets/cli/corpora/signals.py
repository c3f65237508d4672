"""``lc signals``: RedPajama-V2's signals of any corpus, in its own lines."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument

from lc_assets.cli import options
from lc_assets.cli.printing import print_error, say, table

if TYPE_CHECKING:
    from lc_assets.counts import Counts
    from lc_assets.text.signals.names import WordLists

STDOUT = "-"


@options.with_options
def signals(
    source: Annotated[
        Path, Argument(metavar="IN", help="A file or folder of documents, or a lake.")
    ],
    out: Annotated[
        str,
        Argument(metavar="OUT", help="A folder for the lake to write, or - for standard output."),
    ],
    lang: options.Lang = "",
    text_field: options.TextField = None,
    *,
    lists: options.Lists,
    workers: options.Workers = None,
) -> None:
    """Compute RedPajama-V2's 29 rule signals from text and write its own signals lines.

    OUT is a lake, with NAME.signals.json.gz for each file in `document_signals`. A signal whose
    list is not given is left out, and so are those that need a model.

    Example: lc signals corpus signals --lang en --stop-words stop_words.json
    """
    import gzip
    import tempfile

    from lc_assets.build.settings.documents import DocumentSignalSettings, FilteringSettings
    from lc_assets.counts import Counts
    from lc_assets.execution.local import executor_of
    from lc_assets.stages.documents.document_signals import LINES_SUFFIX
    from lc_assets.stages.documents.measuring import lists_of
    from lc_assets.stages.file_lakes import build_for, context_over_files
    from lc_assets.vocabulary import NO_RULES

    known = lists_of(wanted := lists.settings())
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory()) if out == STDOUT else out
        context = context_over_files(
            [source],
            Path(folder),
            executor=executor_of(workers),
            settings={
                "filtered_documents": FilteringSettings(rules=NO_RULES, min_words=0, lists=wanted),
                "document_signals": DocumentSignalSettings(lines=True),
            },
            text_field=text_field,
            language=lang,
        )
        built = build_for(context, "document_signals")["document_signals"].values()
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
