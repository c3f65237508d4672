"""What a loader of rows, or torchtitan by one, served at a step: tokens and documents, by microbatch
and rank, as the loader itself gives them to each rank.
"""

import json

import numpy as np
import pytest

import lc_assets
from lc_assets.api.row_steps import read_torchtitan_launch, served_rows
from lc_assets.builds.tables import read_table
from lc_assets.errors import BadInput
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.tokenizers.named import text_of
from lc_assets.loaders.packed import PackedBatch
from lc_assets.loaders.torchtitan import IGNORED, RowLoader
from lc_assets.stages.lineage.launches import Step
from lc_assets.vocabulary import GPT2_EOT


@pytest.fixture(scope="module")
def stored(published_lake):
    """Ids of every tokenized document with its end of text, by the kind of store and its name."""
    found = {}
    for stage in ("token_documents", "packing_tokens"):
        for published in published_lake.context.lake.published(stage).values():
            for table in sorted(published.folder.glob("*.documents.parquet")):
                names = read_table(table, ["id"])["id"].to_pylist()
                data = MegatronReader(table.with_name(table.name.split(".")[0])) if names else ()
                for name, ids in zip(names, data, strict=True):
                    found[stage, name] = [*ids.tolist(), GPT2_EOT]
    return found


@pytest.fixture(params=["", "longcrawl_flat/all", "token_grid/2023-14", "packed_rows/2023-14"])
def path(request, published_lake):
    """A lake, for its global order; and versions of each kind of rows."""
    return str(published_lake.context.lake.root / request.param)


@pytest.mark.parametrize("n_parts", [1, 2])
def test_a_step_is_what_the_ranks_loaders_give(path, stored, n_parts):
    """Token by token; and every token is its document's."""
    data = lc_assets.open(path)
    context, n_ranks, own = data.rows.row_tokens // 2, 2, 2
    ranks = [
        data.loader(batch_rows=4, context_tokens=context, rank=rank, n_ranks=n_ranks)
        for rank in range(n_ranks)
    ]
    for iteration in range(1, len(ranks[0]) // n_parts + 1):
        step = Step(iteration=iteration, batch=4 * n_parts, micro_batch=own, n_ranks=n_ranks)
        served = np.full((n_parts, n_ranks, own, context), -1)
        for piece in served_rows(data, step, context):
            row = piece.sample % own
            assert piece.sample // (4 * n_parts) == iteration - 1
            columns = slice(piece.start, piece.start + len(piece.ids))
            served[piece.microbatch, piece.rank, row, columns] = piece.ids
            span, tokens = piece.piece.span, []
            for start, stop in span.tokens_in(piece.piece.start, piece.piece.stop):
                stage = "packing_tokens" if span.is_packed else "token_documents"
                tokens += stored[stage, span.id][start:stop]
            assert piece.ids.tolist() == tokens
        for part in range(n_parts):
            for rank, loader in enumerate(ranks):
                batch = loader[(iteration - 1) * n_parts + part]
                whole = np.ones_like(batch.targets, bool)
                known = batch.documents >= 0 if isinstance(batch, PackedBatch) else whole
                assert ((served[part, rank] >= 0) == known).all()
                assert (served[part, rank][known] == batch.targets[known]).all()


def launch_of(path, tmp_path, more=""):
    """A file of torchtitan's arguments."""
    file = tmp_path / "titan.args"
    file.write_text(
        f"--module llama3 --training.seq_len=4 --training.local_batch_size 2 {more}\n"
        f"--dataloader.dataset_path {path}\n"
    )
    return file


def test_torchtitans_ranks_get_what_the_command_lists(lc, path, tmp_path):
    """Microbatch by microbatch of the real data loader, which the trainer accumulates over, to the
    end of an epoch.
    """
    pytest.importorskip("torchtitan", reason="torchtitan is not installed")
    file = launch_of(path, tmp_path, "--training.global-batch-size 8")
    ranks = [
        iter(
            RowLoader.Config(dataset_path=path).build(
                dp_world_size=2,
                dp_rank=rank,
                tokenizer=None,
                seq_len=4,
                local_batch_size=2,
                snapshot_every_n_steps=None,
            )
        )
        for rank in range(2)
    ]
    data, context, batch, own = read_torchtitan_launch(file, 2)
    n_steps = len(data.loader(batch_rows=4, context_tokens=context)) // 2
    for iteration in range(1, n_steps + 1):
        step = Step(iteration=iteration, batch=batch, micro_batch=own, n_ranks=2)
        found = np.full((2, 2, 2, 4), IGNORED)
        for piece in served_rows(data, step, context):
            columns = slice(piece.start, piece.start + len(piece.ids))
            found[piece.microbatch, piece.rank, piece.sample % 2, columns] = piece.ids
        for part in range(2):
            for rank, batches in enumerate(ranks):
                _, labels = next(batches)
                learned = labels.numpy() != IGNORED
                assert (found[part, rank][learned] == labels.numpy()[learned]).all()
    said = json.loads(lc("trace", "--launch", file, "--step", 2, "--ranks", 2, "--json").out)
    assert len(said["sections"][0]["tables"][0]["rows"]) > 0


def test_the_command_lists_a_loaders_batch(lc, path):
    words = ("trace", path, "--batch-rows", 4, "--context", 32, "--ranks", 2, "--step", 1)
    found = list(
        served_rows(lc_assets.open(path), Step(iteration=2, batch=4, micro_batch=2, n_ranks=2), 32)
    )
    lines = json.loads(lc(*words, "--json").out)["sections"][0]["tables"][0]["rows"]
    assert [line["document"] for line in lines] == [piece.piece.span.id for piece in found]
    assert [line["text"] for line in lines] == [text_of("gpt2", one.ids.tolist()) for one in found]
    assert {line["rank"] for line in lines} == {0, 1}


def test_what_there_is_not_is_refused(lc, published_lake, tmp_path):
    root = published_lake.context.lake.root
    file = launch_of(root, tmp_path)
    for words, said in (
        (("--launch", file, "--step", 10**6), "no iteration 1,000,000"),
        (("--launch", file, "--seen-until", 1), "of Megatron's launches"),
        ((root, "--batch-rows", 4), "--batch-rows and --step go together"),
        ((root, "--batch-rows", 4, "--step", 0, "--ranks", 3), "must divide a batch of 4"),
    ):
        found = lc("trace", *words)
        assert (found.code, said in found.err) == (2, True), found.err
    file.write_text("--dataloader.dataset_path x")
    with pytest.raises(BadInput, match="seq-len"):
        read_torchtitan_launch(file, 1)
