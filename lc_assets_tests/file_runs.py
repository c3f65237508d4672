"""Stages over files, in one process: what the commands of `lc` run."""

from pathlib import Path

from lc_assets.execution.local import LocalExecutor
from lc_assets.stages.file_lakes import build_for, context_over_files, counts_of, replaced

ONE = LocalExecutor(workers=1)


def run(target, sources, out, *, executor=ONE, text_field=None, **sections):
    """Build a stage over files.

    Args:
        target: name of the stage.
        sources: files, folders or lakes.
        out: folder of the lake.
        executor: what runs the tasks.
        text_field: where the text is.
        sections: settings by the names of stages.

    Returns:
        Folder of the version of the first source, and the counts of all.
    """
    context = context_over_files(
        sources, out, executor=executor, settings=sections, text_field=text_field
    )
    built = build_for(context, target)
    return next(iter(built[target].values())).published.folder, counts_of(built)


def version_in(out: Path, stage: str) -> Path:
    """Folder of the current version of a stage with one partition."""
    (current,) = (out / stage).glob("*/current.json")
    (version,) = (path for path in current.parent.iterdir() if (path / "receipt.json").is_file())
    return version


__all__ = ["ONE", "replaced", "run", "version_in"]
