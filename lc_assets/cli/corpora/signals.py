"""``lc signals``: the signals of a plain corpus, as RedPajama-V2's own program writes them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import complain, say, table

if TYPE_CHECKING:
    from lc_assets.counts import Counts
    from lc_assets.stages.documents.signalling import Signalling
    from lc_assets.text.signals.names import WordLists

STDOUT = "-"


def signals(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="A file of documents, or a folder of such files.")
    ],
    out: Annotated[str, typer.Argument(metavar="OUT", help="A folder, or - for standard output.")],
    lang: Annotated[
        str | None,
        typer.Option("--lang", help="Language of every document; by default what its record says."),
    ] = None,
    text_field: Annotated[
        str | None,
        typer.Option(
            "--text-field", help="Where the text is; by default raw_content, text or content."
        ),
    ] = None,
    stop_words: options.StopWords = None,
    bad_words: options.BadWords = None,
    domains: options.Domains = None,
    workers: options.Workers = None,
) -> None:
    """Compute RedPajama-V2's 29 rule signals from text and write its own signals lines.

    A signal whose list is not given is left out, and so are the signals that need a model.

    Example: lc signals corpus signals --lang en --stop-words stop_words.json
    """
    from lc_assets.stages.documents.signalling import Signalling, signal_corpus

    settings = Signalling(
        language=lang,
        text_field=text_field,
        stop_words=stop_words,
        bad_words=bad_words,
        domains=domains,
    )
    if out == STDOUT:
        _to_standard_output(source, settings)
        return
    from lc_assets.execution.local import executor_of

    counts = signal_corpus(source, Path(out), settings, executor=executor_of(workers))
    for line in summary(counts, settings.lists()):
        say(line)
    table(("list", "SHA-256"), sorted(settings.lists().digests.items()))


def _to_standard_output(source: Path, settings: "Signalling") -> None:
    from lc_assets.counts import Counts
    from lc_assets.stages.documents.signalling import signal_stream

    stream = typer.get_binary_stream("stdout")
    for line in signal_stream(source, settings):
        if isinstance(line, Counts):
            for sentence in summary(line, settings.lists()):
                complain(sentence)
        else:
            stream.write(line)
    stream.flush()


def summary(counts: "Counts", lists: "WordLists") -> list[str]:
    """What was read and written, and what was left out, in sentences."""
    from lc_assets.stages.documents.signalling import BYTES, WITHOUT_BAD_WORDS, WITHOUT_STOP_WORDS

    unread = ", ".join(f"{n:,} {why}" for why, n in counts.dropped.items()) or "none"
    absent = [
        *(
            [f"rps_doc_stop_word_fraction of {n:,} documents"]
            if (n := counts.extra.get(WITHOUT_STOP_WORDS, 0))
            else []
        ),
        *(
            [f"rps_doc_ldnoobw_words of {n:,} documents"]
            if (n := counts.extra.get(WITHOUT_BAD_WORDS, 0))
            else []
        ),
        *(["rps_doc_ut1_blacklist"] if lists.domains is None else []),
        "rps_doc_ml_* and rps_doc_*_importance*, which need models",
    ]
    return [
        (
            f"{counts.seen:,} documents seen, {counts.kept:,} measured "
            f"({counts.extra.get(BYTES, 0):,} "
            f"bytes of text), unread: {unread}"
        ),
        f"Left out: {'; '.join(absent)}",
    ]
