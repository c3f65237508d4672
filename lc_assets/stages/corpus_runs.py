"""Doing one thing to every file of a plain corpus: what the command line's verbs share.

A file of the corpus is a task. Each task publishes whole files under ``out`` and counts what it
saw, so a run that was killed is run again, and the sum of the counts must add up.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.formats.corpora.containers import without_suffix
from lc_assets.formats.corpora.reading import corpus_files
from lc_assets.lake.staging import output_folder


def over_corpus(
    sources: Sequence[Path],
    out: Path,
    task_of: Callable[[Path, Path], Any],
    function: Callable[[Any], Counts],
    *,
    executor: Executor,
    what: str,
) -> Counts:
    """Run ``function`` over ``task_of(file, output stem)`` for each file of the corpus and add up
    what was counted.

    The output stem is ``out`` and the file's path below its source, without the ends of names that
    say a format.

    Raises:
        BadInput: when two files would be written to the same place, or a source is not a corpus.
        Busy: when another run writes into ``out``.
    """
    stems = {file: out / stem for source in sources for file, stem in _stems(source)}
    _require_one_place_each(stems)
    tasks = [task_of(file, stem) for file, stem in sorted(stems.items())]
    with output_folder(out, stems.values()):
        return Counts.total(counts for _, counts in executor.run(function, tasks, what=what))


def _stems(source: Path) -> list[tuple[Path, str]]:
    return [(file, stem_of(source, file)) for file in corpus_files([source])]


def stem_of(source: Path, file: Path) -> str:
    """Path of a file below its source, without the ends of names that say a format."""
    base = source.parent if source.is_file() else source
    return without_suffix(file.relative_to(base).as_posix())


def _require_one_place_each(stems: dict[Path, Path]) -> None:
    seen: dict[Path, Path] = {}
    for file, stem in stems.items():
        if stem in seen:
            raise BadInput(
                f"{seen[stem]} and {file} would both be written to {stem}; name them apart, or "
                "run them one after the other"
            )
        seen[stem] = file
