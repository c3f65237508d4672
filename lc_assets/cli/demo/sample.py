"""``lc sample``: write a small upstream in RedPajama-V2's layout."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import say, sized, table

if TYPE_CHECKING:
    from lc_assets.sample.writing import SampleReport

COLUMNS = ("snapshot", "bucket", "shards", "documents", "bytes", "duplicates listed", "too short")


def sample(
    out: Annotated[Path, typer.Argument(help="A new folder, or that of the same sample.")],
    source: options.Source = None,
    snapshot: options.Snapshots = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of everything that is drawn.")] = None,
    workers: options.Workers = None,
) -> None:
    """Write crawl snapshots of real prose in RedPajama-V2's layout, with added duplicates and short
    documents.

    Example: lc sample sample --from ~/texts --snapshot 2023-06
    """
    from lc_assets.execution.local import executor_of
    from lc_assets.sample.pages import texts_of_folder
    from lc_assets.sample.prose import installed_prose
    from lc_assets.sample.writing import DEFAULT_SEED, DEFAULT_SNAPSHOTS, write_sample

    executor = executor_of(workers)
    report = write_sample(
        out,
        texts=installed_prose(executor=executor) if source is None else texts_of_folder(source),
        executor=executor,
        snapshots=snapshot or DEFAULT_SNAPSHOTS,
        seed=DEFAULT_SEED if seed is None else seed,
    )
    show_sample(out, report)
    root = out.absolute()
    say(
        f"Next:\nLC_UPSTREAM={shlex.quote(str(root))} "
        f"LC_ROOT={shlex.quote(str(root.with_name('lake')))} dagster asset materialize "
        "-m lc_assets.definitions --select '*megatron_rows' "
        f"--partition {report.snapshots[-1]}"
    )


def show_sample(folder: Path, report: "SampleReport") -> None:
    """Print what a sample contains: a line per snapshot and bucket, and what it is made of."""
    from lc_assets.sample.writing import CRAWL
    from lc_assets.vocabulary import Shard

    lines: dict[tuple[str, str], list[int]] = {}
    for tag, facts in report.shards.items():
        shard = Shard.parse(tag)
        counts = (1, facts.documents, facts.n_bytes, facts.listed_duplicates, facts.short)
        line = lines.setdefault((shard.snapshot, shard.bucket), [0] * len(counts))
        line[:] = map(sum, zip(line, counts, strict=True))
    table(
        COLUMNS,
        [
            (*who, n_shards, n_documents, sized(n_bytes), *others)
            for who, (n_shards, n_documents, n_bytes, *others) in sorted(lines.items())
        ],
    )
    say(
        f"{report.n_documents:,} documents in {folder}: "
        + ", ".join(f"{n:,} {kind}s" for kind, n in report.documents.items())
    )
    skipped = ", ".join(f"{len(names):,} {reason}" for reason, names in report.skipped.items())
    say(f"{sum(report.crawled.values()):,} HTML pages with links in {folder / CRAWL}")
    say(f"Read {len(report.sources):,} sources; not used: {skipped or 'nothing'}")
