"""Packing: documents a second, padding, writing rows, loading them with masks. Run with ``-s`` to
see the figures.

Lengths are a crawl's: lognormal, median 1,100 tokens, one in 300 longer than 30,000.
"""

import numpy as np
import pytest

from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.table_writer import TableWriter
from lc_assets.formats.arrays.grid import GridReader, create_grid, plan_bands, write_band
from lc_assets.formats.arrays.grid_layout import GridLayout
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.formats.tokenizers.named import vocabulary_of
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.packed import PackedBatch, PackedLoader, open_packed
from lc_assets.loaders.rows import open_rows
from lc_assets.packing.methods import METHODS, Shape, _fit, best_fit, pack
from lc_assets.packing.pieces import balance, cut_evenly, whole
from lc_assets.stages.packing.packing_plans import DOCUMENTS, plan_packing, read_documents
from lc_assets.stages.packing.packing_writing import PackedTask, write_plan, write_task
from lc_assets.vocabulary import GPT2_VOCAB_SIZE, ROW_TOKENS
from lc_assets_tests.benchmarks.timing import cpu_seconds, median_seconds, say
from lc_assets_tests.benchmarks.token_rows import token_rows
from lc_assets_tests.reference import packing as reference

N_DOCS = 200_000
N_ROWS = 128
"""Rows that are written and loaded: 17 MB of ids."""


def crawl_lengths(n_docs):
    """Tokens of documents as a crawl has them."""
    return np.clip(np.random.default_rng(11).lognormal(7, 1.2, n_docs), 1, 10**6).astype(np.int64)


@pytest.mark.parametrize("row_tokens", [8192, 65_536, 131_072])
def test_best_fit_pads_next_to_nothing_and_is_quick(row_tokens):
    """Documents per CPU-second, compiled and by the reference implementation; padding and cuts
    beside those of concatenation.
    """
    lengths = crawl_lengths(N_DOCS)
    items = cut_evenly(whole(lengths), row_tokens).lengths
    row = np.empty(len(items), np.int64)
    order = np.argsort(-items, kind="stable")
    _fit(items[:100], np.arange(100), row_tokens, row)
    fast, n_rows = cpu_seconds(lambda _: _fit(items, order, row_tokens, row))
    slow, expected = cpu_seconds(lambda _: reference.fit(items, row_tokens), rounds=1)
    np.testing.assert_array_equal(row, expected[0])
    assert n_rows == expected[1]
    all_of_it, packing = cpu_seconds(lambda _: best_fit(lengths, row_tokens=row_tokens))
    say(
        f"best fit into {row_tokens:,}",
        N_DOCS / 1e6,
        "M documents",
        fast,
        reference=slow,
        with_cutting_and_sorting=all_of_it,
    )
    joined = balance(pack(lengths, method="concat", shape=Shape(row_tokens=row_tokens)), lengths)
    found = balance(packing, lengths)
    print(
        f"padding {found.padding_share:.5%}, concatenated {joined.padding_share:.5%}; documents "
        "cut without need "
        f"{found.cut_share:.2%}, concatenated {joined.cut_share:.2%}; attention "
        f"{found.attention / joined.attention:.2f} ×"
    )
    assert found.padding_share < 0.001
    assert found.cut_needlessly == 0
    assert slow > 1.5 * fast


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_keeps_up_with_a_million_documents(method):
    """Documents per CPU-second, all in; the shape of the result is what `lc pack` prints."""
    lengths, shape = crawl_lengths(N_DOCS), Shape(row_tokens=ROW_TOKENS, segment_tokens=4096)
    pack(lengths[:25_000], method=method, shape=shape)
    seconds, packing = cpu_seconds(lambda _: pack(lengths, method=method, shape=shape))
    found = balance(packing, lengths)
    print(
        f"\n{method}: {N_DOCS / 1e6 / seconds:.1f} M documents per CPU-second, padding "
        f"{found.padding_share:.3%}, {found.pieces:,} pieces"
    )
    assert found.tokens == found.in_rows
    assert N_DOCS / seconds > 100_000


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A token store of a crawl's documents, 17 MB of ids, and as many rows of one document each."""
    folder = tmp_path_factory.mktemp("store")
    kind, rows = token_rows(N_ROWS, ROW_TOKENS)
    print(f"\nids of {kind}")
    ids, lengths = rows.reshape(-1), crawl_lengths(20_000)
    table = TableWriter(folder / "0000-en_head.documents.parquet", DOCUMENTS)
    at = 0
    with MegatronWriter.publishing(folder / "0000-en_head", np.dtype(np.uint16)) as writer:
        for number, length in enumerate(lengths.tolist()):
            if at + length > len(ids):
                break
            writer.add(ids[at : at + length])
            name = f"2023-06/0000/en_head.json.gz/{number}"
            table.add(
                {
                    "id": name,
                    "url": f"https://example.org/{number}",
                    "digest": name,
                    "document": number,
                    "n_tokens": length,
                }
            )
            at += length
    table.close()
    return folder, rows


def written(store, out, method="bestfit"):
    """Rows as `packed` writes them."""
    settings = PackingSettings(method=method, cut_at="anywhere")
    documents = read_documents(store, settings, {}, "")
    plans = {"train": plan_packing(documents)["train"]}
    common = PackedTask(
        tokens=store,
        folder=out,
        settings=settings,
        tokenizer="gpt2",
        vocabulary=vocabulary_of("gpt2"),
    )
    for task in write_plan(plans, documents, common):
        write_task(task)
    return plans["train"]


def test_writing_packed_rows_costs_little_more_than_writing_rows(store, tmp_path):
    """Plan, gather, encode, Megatron's files, spans: MB of ids per CPU-second, beside the same rows
    encoded and nothing else.
    """
    folder, _ = store
    fast, plan = cpu_seconds(lambda number: written(folder, tmp_path / f"packed{number}"), rounds=2)
    rows = GridReader(tmp_path / "packed0" / "train.zarr").read()

    def encoded(number):
        layout, out = GridLayout(*rows.shape, GPT2_VOCAB_SIZE), tmp_path / f"grid{number}.zarr"
        create_grid(out, layout)
        for block in plan_bands(layout):
            write_band(out, block, rows[block.start : block.stop])

    bare, _ = cpu_seconds(encoded, rounds=2)
    data = MegatronReader(tmp_path / "packed0" / "train")
    assert np.array_equal(data.ids, rows[np.arange(rows.shape[1]) < reference.used(plan)[:, None]])
    say(
        f"packed rows, {len(plan.pieces):,} pieces",
        rows.nbytes / 1e6,
        "MB",
        fast,
        encoding_alone=bare,
    )
    assert fast < 4 * bare


def test_masks_cost_little_beside_decoding(store, tmp_path):
    """Batches of whole rows: ids and spans, and all that is told of them, against a loader that
    knows no spans.
    """
    folder, _ = store
    written(folder, tmp_path / "packed")
    for batch_rows in (1, 8):
        packed = PackedLoader(open_packed(tmp_path / "packed"), batch_rows=batch_rows)
        plain = GridLoader(
            open_rows(tmp_path / "packed"), batch_rows=batch_rows, context_tokens=ROW_TOKENS
        )
        np.testing.assert_array_equal(packed[1].targets, plain[1].targets)
        bare, spans = gone_through(plain), gone_through(packed)
        told = gone_through(packed, PackedBatch.arrays)
        amount = len(plain) * batch_rows * ROW_TOKENS / 1e6
        said = (
            f"{amount / spans:.0f} M tokens per CPU-second with spans, {amount / told:.0f} "
            "with masks and positions too"
        )
        ratios = f"{spans / bare:.2f} and {told / bare:.2f} × the time"
        print(
            f"\npacked batches of {batch_rows} × 65,536: {said}, {amount / bare:.0f} without: "
            f"{ratios}"
        )
        assert spans < 2 * bare


def gone_through(loader, use=lambda batch: batch):
    """CPU seconds of all of a loader's batches, each used and let go."""
    return median_seconds(lambda: [use(loader[step]) is None for step in range(len(loader))])
