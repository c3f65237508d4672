"""Asking published claims and packed documents whether they hold: questions to tables that may be
larger than memory.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from lc_assets.stages.deduplication.queries import Queries, parquet, queries
from lc_assets.tokens.orders import heldout


@contextlib.contextmanager
def asking(
    claims: Path, documents: Sequence[Path] = (), removed: Sequence[Path] = ()
) -> Iterator[Queries]:
    """Open views ``claims``, ``documents`` and ``removed`` over tables that there are."""
    with (
        tempfile.TemporaryDirectory(prefix="lc-audit-") as folder,
        queries(Path(folder) / "duckdb") as asked,
    ):
        for name, paths in (
            ("claims", [claims]),
            ("documents", list(documents)),
            ("removed", list(removed)),
        ):
            table = parquet(paths) if paths else "(SELECT '' AS id, '' AS digest WHERE false)"
            asked.do(f"CREATE VIEW {name} AS SELECT * FROM {table}")
        yield asked


def how_many(asked: Queries, query: str) -> int:
    """Number of lines that a query answers."""
    return asked.number(f"SELECT count(*) FROM ({query})")


def on_two_sides(asked: Queries, splits: Sequence[tuple[int, float]]) -> tuple[int, int]:
    """How many pairs of a root and a child there are, and how many of them lie on two sides of a
    split.

    Args:
        asked: has views ``claims`` and ``documents``.
        splits: seed and fraction of each.
    """
    n_pairs = n_wrong = 0
    query = """SELECT coalesce(nullif(root.digest, ''), root.id) AS root_key, coalesce(nullif(child.digest, ''), child.id) AS child_key
        FROM claims JOIN documents AS root ON root.id = root_id JOIN documents AS child ON child.id = child_id"""
    for batch in asked.batches(query):
        roots, children = (batch[name].to_pylist() for name in ("root_key", "child_key"))
        wrong = np.zeros(len(roots), np.bool_)
        for seed, fraction in splits:
            wrong |= heldout(roots, seed=seed, fraction=fraction) != heldout(
                children, seed=seed, fraction=fraction
            )
        n_pairs += len(roots)
        n_wrong += int(wrong.sum())
    return n_pairs, n_wrong
