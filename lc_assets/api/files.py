"""Stages built over documents of files into a folder, and what comes of it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import BuildContext, Built
from lc_assets.counts import Counts
from lc_assets.execution.local import executor_of
from lc_assets.formats.corpora.containers import CorpusDocument
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.records import record
from lc_assets.stages.documents.shard_inputs import n_skipped
from lc_assets.stages.file_lakes import (
    ALL_DOCUMENTS,
    build_for,
    context_over_files,
    counts_of,
    document_files,
    replaced,
)

Paths = str | Path | Sequence[str | Path]


class Reading(TypedDict, total=False):
    """How documents are read.

    Attributes:
        text_field: where a record's text is; by default ``raw_content``, ``text`` or ``content``.
        broken: what to do about a file that cannot be read; ``skip`` counts it.
        killed: what to do about a document that needs more memory than there is.
        shard_bytes: size of the shards of larger files, see
            `lc_assets.sources.settings.SourceSettings`.
        small_bytes: size of the files that do not share shards, see there.
        workers: processes; by default one per processor.
        log_seconds: how often progress is printed on standard error, rather than drawn on a
            terminal; 0 is never.
    """

    text_field: str | None
    broken: Literal["skip", "fail"]
    killed: Literal["fail", "skip"]
    shard_bytes: int
    small_bytes: int
    workers: int | None
    log_seconds: float


@record
class Output:
    """What a function built or found current.

    Attributes:
        folder: the lake.
        recipe: its settings.
        stages: versions by stage, in the order that they are built in, then by partition; the last
            stage is the one that was asked for.
    """

    folder: Path
    recipe: Recipe
    stages: Mapping[str, Mapping[str, Built]]

    def __getitem__(self, stage: str) -> list[Built]:
        """The versions of one stage."""
        return list(self.stages[stage].values())

    @property
    def versions(self) -> list[Path]:
        """The folders of what was asked for, one per input."""
        return [built.published.folder for built in list(self.stages.values())[-1].values()]

    @property
    def counts(self) -> Counts:
        """Documents seen and kept, and why the others were not."""
        return counts_of(self.stages)

    @property
    def skipped_files(self) -> tuple[int, int]:
        """How many files could not be read, and how many there are."""
        reading = self.stages.get("filtered_documents") or self.stages["document_signals"]
        n_files = sum(built.counts.extra["files"] for built in self["raw_snapshot"])
        return sum(n_skipped(built.counts) for built in reading.values()), n_files

    def documents(self) -> Iterator[CorpusDocument]:
        """The documents that are left, in the order of their files. Files are verified.

        Raises:
            BadInput: when the lake has no documents, such as that of signatures.
        """
        for path in document_files([self.folder]):
            yield from (found for found in read_corpus(path) if isinstance(found, CorpusDocument))


def prepare(
    inputs: Paths,
    out: str | Path,
    settings: Mapping[str, Any],
    *,
    text_field: str | None = None,
    broken: Literal["skip", "fail"] = "skip",
    killed: Literal["fail", "skip"] = "fail",
    workers: int | None = None,
    log_seconds: float = 0,
    **how: Any,
) -> BuildContext:
    """Prepare to build stages over documents.

    Args:
        inputs: files and folders of documents, or lakes.
        out: the folder of the lake to write.
        settings: sections of the recipe, by name.
        text_field: see `Reading`, as for the next four.
        broken: see there.
        killed: see there.
        workers: see there.
        log_seconds: see there.
        how: further arguments of `lc_assets.stages.file_lakes.context_over_files`.

    Raises:
        BadInput: when an input is unusable.
    """
    paths = [inputs] if isinstance(inputs, str | Path) else inputs
    filtering = replaced(
        settings.get("filtered_documents", ALL_DOCUMENTS["filtered_documents"]),
        corrupt_documents="fail" if broken == "fail" else "skip_shard",
        killed_documents=killed,
    )
    return context_over_files(
        [Path(path) for path in paths],
        Path(out),
        executor=executor_of(workers, log_seconds=log_seconds),
        settings={**settings, "filtered_documents": filtering},
        text_field=text_field,
        **how,
    )


def build_over(
    inputs: Paths, out: str | Path, target: str, settings: Mapping[str, Any], **how: Any
) -> Output:
    """Build a stage and all that it reads over documents; see `prepare`."""
    return built_in(prepare(inputs, out, settings, **how), target)


def built_in(context: BuildContext, target: str) -> Output:
    """Build a stage and all that it reads in a context."""
    return Output(
        folder=context.lake.root, recipe=context.recipe, stages=build_for(context, target)
    )
