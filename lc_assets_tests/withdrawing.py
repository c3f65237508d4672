"""A small lake with near duplicates within and across its snapshots, and a list of withdrawals
beside it.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lc_assets.builds.settings.common import WithdrawalSettings
from lc_assets.builds.stage import (
    BuildContext,
    Built,
)
from lc_assets.formats.lists.withdrawal_lists import COLUMNS, Withdrawal, line_of
from lc_assets.lake.lake import Lake
from lc_assets.lake.versions import Published
from lc_assets.stages.documents.document_keys import keyed_documents
from lc_assets.stages.rows.token_grid import rows_table
from lc_assets.vocabulary import Shard, parse_snapshot
from lc_assets_tests.builders import (
    SNAPSHOTS,
    TAGS,
    build_all,
    deduplication,
    made_up_record,
    made_up_text,
    tiny_context,
    tiny_upstream,
    write_shard,
)
from lc_assets_tests.faults import digests

OLD, NEW = map(parse_snapshot, SNAPSHOTS)
COPIED, ALONE_OLD, ALONE_NEW = 0, 5, 6
"""Lines of a shard: an old text whose copy stands on the same line of the new snapshot; one that
only the old has, or the new.
"""


def upstream_with_copies(folder: Path) -> Path:
    """Per shard six texts of each snapshot: five of the new one are versions of the old one's, from
    the same words to most of them.
    """
    tiny_upstream(folder)
    rng = np.random.default_rng(5)
    for tag in TAGS:
        texts = [made_up_text(rng, n_words=int(rng.integers(100, 140))) for _ in range(7)]
        copies = [
            text + "".join(f" extra{number}" for number in range(4 * version))
            for version, text in enumerate(texts[:5])
        ]
        for snapshot, found in ((OLD, texts[:6]), (NEW, [*copies, texts[6]])):
            shard = Shard.parse(f"{snapshot}/{tag}")
            write_shard(
                folder, shard, [record_of(shard, line, text) for line, text in enumerate(found)]
            )
    return folder


def record_of(shard: Shard, line: int, text: str) -> Any:
    """A record with an address of its own snapshot, so that an address finds one document."""
    record = made_up_record(shard, line, text)
    return msgspec.structs.replace(
        record, url=f"https://www.site{line}.example.org/{shard.snapshot}/{shard.name}"
    )


def id_of(snapshot: str, line: int, tag: str = TAGS[0]) -> str:
    """Id of a document; the last line of the new snapshot has a text that no other document has."""
    return Shard.parse(f"{snapshot}/{tag}").document_id(min(line, 5))


@dataclass(frozen=True)
class WithdrawingLake:
    """A build context whose recipe names one list, and the results built while it was empty."""

    context: BuildContext
    built: dict[str, Built]

    @property
    def lake(self) -> Lake:
        """The lake."""
        return self.context.lake

    @property
    def list_file(self) -> Path:
        """The list."""
        return Path(self.context.recipe.withdrawn_documents.lists[0])

    def copy(self, folder: Path) -> "WithdrawingLake":
        """The same lake and an empty list elsewhere, to be changed."""
        shutil.copytree(self.lake.root, folder / "lake")
        return replace(
            self,
            context=with_list(replace(self.context, lake=Lake(folder / "lake")), folder),
        )

    def say(
        self, *entries: tuple[str, str], reason: str = "asked for", date: str = "2026-03-01"
    ) -> None:
        """Rewrite the list."""
        lines = [
            line_of(Withdrawal(kind=kind, value=value, reason=reason, date=date))
            for kind, value in entries
        ]
        self.list_file.write_text("\n".join([",".join(COLUMNS), *lines, ""]))

    def build(self) -> dict[str, Built]:
        """Build what is out of date, upstream first."""
        return build_all(self.context)

    def rebuilt(self) -> set[str]:
        """Build, and name the partitions that were computed."""
        return {name for name, built in self.build().items() if not built.reused}

    def digests(self) -> dict[str, str]:
        """Data versions as they were built first."""
        return digests(self.built)

    def published(self, name: str) -> Published:
        """The published version of a name."""
        return self.lake.partition(*name.split("/")).require()

    def rows(self, snapshot: str) -> list[dict[str, Any]]:
        """The row table but for the rows' numbers, which count those that are there, and the
        documents' in their token shard.
        """
        return (
            rows_table(self.published(f"token_grid/{snapshot}"))
            .drop_columns(["row", "document"])
            .to_pylist()
        )

    def served(self) -> set[str]:
        """Ids of all documents that have a row."""
        return {row["id"] for snapshot in SNAPSHOTS for row in self.rows(snapshot)}

    def document(self, name: str) -> dict[str, Any]:
        """What the index says of a document."""
        (line,) = keyed_documents(self.lake, name.partition("/")[0]).find("document", name)
        return line


def with_list(context: BuildContext, folder: Path, **settings: Any) -> BuildContext:
    """The same build context with an empty list in ``folder``, and other settings of it."""
    path = folder / "withdrawn.csv"
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n")
    named = WithdrawalSettings(lists=(str(path),), **settings)
    return replace(
        context, recipe=msgspec.structs.replace(context.recipe, withdrawn_documents=named)
    )


def withdrawing_lake(
    folder: Path, snapshots: Sequence[str] = SNAPSHOTS, **changes: Any
) -> WithdrawingLake:
    """Build the chain with an empty list."""
    upstream = upstream_with_copies(folder / "upstream")
    context = tiny_context(
        folder,
        upstream=upstream,
        **deduplication(signatures="computed"),
        **changes,
    )
    context = with_list(context, folder)
    return WithdrawingLake(context, build_all(context, snapshots))
