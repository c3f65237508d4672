"""`lc_assets.open` reads every layout, and says whose each token is."""

import json

import numpy as np
import pytest

import lc_assets as lc
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.settings.rows import GriddingSettings, TokenizingSettings
from lc_assets.errors import BadInput
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.packed import PackedLoader, open_packed
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.lineage.tracing import row_of_order
from lc_assets_tests.file_runs import run

ROW = 64


def test_every_public_name_is_there():
    for name in lc.__all__:
        assert getattr(lc, name)
    with pytest.raises(AttributeError, match="no attribute 'opened'"):
        lc.opened  # noqa: B018


@pytest.mark.parametrize("split", ["train", "heldout"])
def test_a_lake_gives_its_global_order(published_lake, split):
    lake = published_lake.context.lake
    found, rows = lc.open(lake.root, split), open_rows(lake.root, split)
    assert len(found) == rows.n_rows
    np.testing.assert_array_equal(
        found.loader(batch_rows=2)[0].targets,
        GridLoader(rows, batch_rows=2, context_tokens=rows.row_tokens)[0].targets,
    )
    assert [document.position for document in found.documents([1, 0])] == [1, 0]


def test_a_token_of_a_row_is_traced_as_lc_trace_does(published_lake):
    lake = published_lake.context.lake
    found = lc.open(lake.root)
    for position in range(len(found)):
        row = row_of_order(lake, "train", position)
        for column in (0, row.shift, found.rows.row_tokens - 1):
            token = (column - row.shift) % found.rows.row_tokens
            assert found.trace(position, column) == (row.id, row.document_start + token)
    with pytest.raises(BadInput, match="no column"):
        found.trace(0, found.rows.row_tokens)


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """Packed rows of documents whose texts count upwards, and the texts by id."""
    folder = tmp_path_factory.mktemp("packed")
    texts = {f"d{n}": " ".join(map(str, range(n, 4 * n))) for n in range(8, 24)}
    lines = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    (folder / "corpus.jsonl").write_text("\n".join(lines), "utf-8")
    version, _ = run(
        "packed_rows",
        [folder / "corpus.jsonl"],
        folder / "lake",
        packed_rows=PackingSettings(wanted=True, row_tokens=ROW, min_tokens=1),
        token_documents=TokenizingSettings(),
        token_grid=GriddingSettings(heldout_fraction=0, row_tokens=1),
    )
    return version, texts


def test_packed_rows_are_opened_with_their_spans(packed):
    folder, _ = packed
    found, expected = lc.open(folder), PackedLoader(open_packed(folder), batch_rows=2)
    loader = found.loader(batch_rows=2)
    assert isinstance(loader, PackedLoader)
    assert lc.open(folder.parent).spans.n_rows == found.spans.n_rows == len(found)
    for step in range(len(loader)):
        np.testing.assert_equal(loader[step].arrays(), expected[step].arrays())


def test_every_token_of_packed_rows_is_its_documents(packed):
    folder, texts = packed
    found, tokenizer = lc.open(folder), gpt2_tokenizer()
    rows = found.rows.read(slice(None), slice(None))
    owns = {name: [*tokenizer.encode(text).tolist(), tokenizer.eot] for name, text in texts.items()}
    n_padding = 0
    for row, ids in enumerate(rows.tolist()):
        for column, token in enumerate(ids):
            traced = found.trace(row, column)
            if traced is None:
                n_padding += 1
                continue
            name, number = traced
            assert owns[name.rpartition("/")[2]][number] == token
    assert n_padding == rows.size - sum(map(len, owns.values())) > 0
