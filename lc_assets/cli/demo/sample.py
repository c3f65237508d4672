"""``lc sample``: write a small upstream of RedPajama-V2's shape, from installed documentation or
from a folder of texts.
"""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import say, sized, table

if TYPE_CHECKING:
    from lc_assets.execution.executor import Executor
    from lc_assets.sample.page import Texts
    from lc_assets.sample.writing import SampleReport
    from lc_assets.vocabulary import Shard

ASSETS_OF_A_SNAPSHOT = "'*megatron_rows'"


def sample(
    out: Annotated[Path, typer.Argument(help="A new folder, or that of the same sample.")],
    source: options.Source = None,
    snapshot: options.Snapshots = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of everything that is drawn.")] = None,
    workers: options.Workers = None,
) -> None:
    """Write crawl snapshots of real prose as RedPajama-V2 lays them out, with duplicates and short
    documents planted.

    Example: lc sample sample --from ~/texts --snapshot 2023-06
    """
    from lc_assets.execution.local import executor_of
    from lc_assets.sample.writing import DEFAULT_SEED, DEFAULT_SNAPSHOTS, write_sample

    executor = executor_of(workers)
    report = write_sample(
        out,
        texts=texts_of(source, executor),
        executor=executor,
        snapshots=snapshot or DEFAULT_SNAPSHOTS,
        seed=DEFAULT_SEED if seed is None else seed,
    )
    show_sample(out, report)
    say("Next:")
    say(next_command(out, report.settings.snapshots[-1]))


def texts_of(source: Path | None, executor: "Executor") -> "Texts":
    """The pages of a folder of texts, or those that the installed packages bring."""
    from lc_assets.sample.folder_texts import texts_from_folder
    from lc_assets.sample.prose import installed_prose

    return installed_prose(executor=executor) if source is None else texts_from_folder(source)


def show_sample(folder: Path, report: "SampleReport") -> None:
    """Print what a sample holds: a line per snapshot and bucket, and what all is made of."""
    from lc_assets.build.settings.documents import FilteringSettings
    from lc_assets.sample.writing import CRAWL
    from lc_assets.vocabulary import Shard

    shards = [Shard.parse(tag) for tag in report.shards]
    min_words = FilteringSettings().min_words
    columns = (
        "snapshot",
        "bucket",
        "shards",
        "documents",
        "bytes",
        "duplicates listed",
        f"below {min_words:,} words",
    )
    lines = []
    for snapshot, bucket in sorted({(shard.snapshot, shard.bucket) for shard in shards}):
        ours = [shard for shard in shards if (shard.snapshot, shard.bucket) == (snapshot, bucket)]
        n_documents = sum(report.shards[shard.tag] for shard in ours)
        lines.append(
            (snapshot, bucket, len(ours), n_documents, *_measured(folder, ours, min_words))
        )
    table(columns, lines)
    say(
        f"{report.n_documents:,} documents in {folder}: "
        + ", ".join(f"{n:,} {kind}s" for kind, n in report.documents.items())
    )
    say(
        f"{sum(report.crawled.values()):,} pages as they would have been crawled, linked to each "
        f"other, in {folder / CRAWL}"
    )
    say(f"Read {len(report.sources):,} sources; not used: {_counted(report.skipped.items())}")


def _measured(folder: Path, shards: "Iterable[Shard]", min_words: int) -> tuple[str, int, int]:
    """Bytes, listed duplicates and documents of too few words of some shards, read back from the
    files.
    """
    import numpy as np

    from lc_assets.formats.redpajama import listings
    from lc_assets.formats.redpajama.duplicates import read_duplicates
    from lc_assets.formats.redpajama.signals import read_signals

    n_bytes = n_listed = n_short = 0
    for shard in shards:
        signals, duplicates = (
            folder / listings.signals_path(shard),
            folder / listings.duplicates_path(shard),
        )
        n_bytes += sum(
            path.stat().st_size
            for path in (folder / listings.documents_path(shard), signals, duplicates)
        )
        n_listed += len(read_duplicates(duplicates, shard=shard, where=str(duplicates)))
        with signals.open("rb") as stream:
            found = read_signals(
                stream,
                shard=shard,
                where=str(signals),
                wanted={"rps_doc_word_count"},
                max_line_bytes=1 << 30,
            )
        n_short += int((np.asarray(found.columns["rps_doc_word_count"]) < min_words).sum())
    return sized(n_bytes), n_listed, n_short


def _counted(skipped: Iterable[tuple[str, list[str]]]) -> str:
    return ", ".join(f"{len(names):,} {reason}" for reason, names in skipped) or "nothing"


def next_command(upstream: Path, snapshot: str) -> str:
    """The line that builds one snapshot of an upstream, to be copied."""
    setting = (
        f"LC_UPSTREAM={shlex.quote(str(upstream.absolute()))} "
        f"LC_ROOT={shlex.quote(str(upstream.absolute().with_name('lake')))}"
    )
    return (
        f"{setting} dagster asset materialize -m lc_assets.definitions --select "
        f"{ASSETS_OF_A_SNAPSHOT} --partition {snapshot}"
    )
