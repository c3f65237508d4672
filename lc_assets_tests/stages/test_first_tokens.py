"""Keeping the first tokens of a document only: the same rows, from less work."""

import numpy as np

from lc_assets.builds.checks import DOCUMENTS_SUFFIX, documents_files
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets_tests.builders import SNAPSHOTS, TINY_ROW_TOKENS, tiny_context
from lc_assets_tests.faults import BEFORE_TOKENS, build_snapshot

OLD, _ = SNAPSHOTS


def test_the_rows_are_those_of_whole_documents(tmp_path):
    """And every stored document is as long as was asked for, where whole ones are longer."""
    whole = tiny_context(tmp_path / "whole")
    first = tiny_context(
        tmp_path / "first",
        token_documents=TokenizingSettings(
            min_tokens=TINY_ROW_TOKENS, first_tokens=TINY_ROW_TOKENS
        ),
        upstream=tmp_path / "whole" / "upstream",
    )
    stages = [*BEFORE_TOKENS, "token_documents", "token_grid"]
    by_whole, by_first = (build_snapshot(context, OLD, stages) for context in (whole, first))
    for split in ("train", "heldout"):
        rows = [
            GridReader(built["token_grid"].published.folder / f"{split}.zarr").read()
            for built in (by_whole, by_first)
        ]
        np.testing.assert_array_equal(*rows)
    assert by_first["token_documents"].counts.dropped == by_whole["token_documents"].counts.dropped
    lengths = {built["token_documents"].counts.extra["tokens"] for built in (by_whole, by_first)}
    assert len(lengths) == 2
    for path in documents_files(by_first["token_documents"].published.folder):
        reader = MegatronReader(path.with_name(path.name.removesuffix(DOCUMENTS_SUFFIX)))
        assert set(np.asarray(reader.lengths).tolist()) <= {TINY_ROW_TOKENS}
