"""The main process leaves shards to the workers: what it reads itself does not grow with them."""

from collections import Counter
from dataclasses import dataclass, replace

from lc_assets.builds import tables
from lc_assets.builds.settings.documents import CleanDocumentsSettings, DocumentSignalSettings
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake import digests
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.planning import keys_of
from lc_assets_tests.builders import SNAPSHOTS, build_all, tiny_context, tiny_upstream

BY_WORKERS = (
    "document_signals",
    "filtered_documents",
    "clean_documents",
    "document_signatures",
    "signature_index",
    "token_documents",
    "longcrawl_flat",
    "megatron_rows",
)
MOST_READS = {"token_grid": 7, "longcrawl": 6}
"""Of the table of rows, of a snapshot: each check reads it once, or once for each split."""


@dataclass
class Noted:
    """An executor of one worker that notes whether a task is running."""

    is_in_task: bool = False

    def run(self, function, tasks, *, what):
        for task in tasks:
            self.is_in_task = True
            ((_, result),) = LocalExecutor().run(function, [task], what=what)
            self.is_in_task = False
            yield task, result


def opened_in_main_process(folder, monkeypatch, *, n_shards) -> dict[str, Counter[str]]:
    """Tables that are opened outside tasks while a lake is built, by stage and ending."""
    tags = [f"{number:04d}/en_head" for number in range(n_shards)]
    upstream = tiny_upstream(folder / "upstream", tags=tags)
    executor = Noted()
    tiny = tiny_context(
        folder,
        upstream=upstream,
        clean_documents=CleanDocumentsSettings(wanted=True),
        document_signals=DocumentSignalSettings(values=True),
    )
    context = replace(tiny, executor=executor)
    opened: dict[str, Counter[str]] = {}
    check, stage_now = tables.require_sound_footer, [""]

    def noting(path):
        if not executor.is_in_task:
            opened.setdefault(stage_now[0], Counter())[path.name.partition(".")[2]] += 1
        return check(path)

    monkeypatch.setattr(tables, "require_sound_footer", noting)
    for stage in STAGES:
        stage_now[0] = stage.name
        for key in keys_of(stage, context.recipe, SNAPSHOTS):
            stage.build(context, key)
    monkeypatch.undo()
    return opened


def test_the_main_process_opens_no_more_tables_for_more_shards(tmp_path, monkeypatch):
    """Whether two shards or five: workers write, check and digest them."""
    few, many = (
        opened_in_main_process(tmp_path / str(n_shards), monkeypatch, n_shards=n_shards)
        for n_shards in (2, 5)
    )
    for stage in BY_WORKERS:
        assert many.get(stage) == few.get(stage), stage
    for stage, most in MOST_READS.items():
        assert many[stage]["parquet"] <= most * len(SNAPSHOTS), stage


def test_workers_digest_what_they_write(tmp_path, monkeypatch):
    """The receipt's digests of rows, the largest files, come from the tasks that wrote them."""
    executor = Noted()
    context = replace(tiny_context(tmp_path), executor=executor)
    digested, digest = dict[bool, set[str]]({True: set(), False: set()}), digests.crc32_of_file

    def noting(path, *others):
        if others:
            digested[executor.is_in_task].add(path.relative_to(context.lake.root).as_posix())
        return digest(path, *others)

    monkeypatch.setattr(digests, "crc32_of_file", noting)
    build_all(context)
    stages = {path.split("/")[0] for path in digested[True]}
    assert stages >= {"token_grid", "longcrawl_flat", "megatron_rows"}
    assert digested[True].isdisjoint(digested[False])
