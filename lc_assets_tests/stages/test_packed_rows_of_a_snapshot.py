"""Packed rows of a snapshot: by every method, of natural documents, LongPack's and both; as slow
references would make them.
"""

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.building import check_input_of
from lc_assets.builds.checks import documents_files
from lc_assets.builds.settings.longpack import (
    LongPackSettings,
    PackingSettings,
    UpsamplingSettings,
)
from lc_assets.builds.tables import FILTERED, TOKENIZED, read_all
from lc_assets.counts import Counts
from lc_assets.errors import BadInput, NotPublished
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.formats.tokenizers.named import text_of
from lc_assets.lake.receipts import Fingerprint, receipt_of
from lc_assets.lake.versions import write_receipt
from lc_assets.loaders.packed import PackedLoader, open_packed
from lc_assets.packing.methods import METHODS
from lc_assets.packing.upsampling import upsampled
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.deduplication.heldout_pairs import held_out
from lc_assets.stages.lineage.spans import spans_of_packed_row
from lc_assets.stages.links.link_tables import LINK_CLAIMS
from lc_assets.stages.longpack import longpack_documents as longpack
from lc_assets.stages.packing import packed_rows as packed, packing_writing
from lc_assets.stages.packing.packed_checks import (
    every_token_is_packed_as_planned,
    rows_are_as_the_method_makes_them,
    spans_are_megatrons_documents,
)
from lc_assets.stages.tokens.packing_tokens import IN_LONGPACK
from lc_assets.vocabulary import GPT2_EOT, SPLITS
from lc_assets_tests.builders import tiny_context, tiny_upstream, tokenizer_json
from lc_assets_tests.faults import BEFORE_TOKENS, build_snapshot, digests
from lc_assets_tests.link_builders import publish_links

OLD = "2023-06"
SETTINGS = PackingSettings(wanted=True, row_tokens=300, segment_tokens=50, min_tokens=55)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory) -> Path:
    return tiny_upstream(tmp_path_factory.mktemp("upstream"), snapshots=[OLD])


@pytest.fixture(scope="module")
def lake(tmp_path_factory, upstream):
    """A lake with everything that stands before packing."""
    context = tiny_context(tmp_path_factory.mktemp("lake"), upstream=upstream, packed_rows=SETTINGS)
    build_snapshot(context, OLD, BEFORE_TOKENS)
    return context


def with_packing(context, **changes):
    """The same context with other settings of packing."""
    packing = msgspec.structs.replace(context.recipe.packed_rows, **changes)
    return replace(context, recipe=msgspec.structs.replace(context.recipe, packed_rows=packing))


def built(context):
    stage_named("packing_tokens").build(context, OLD)
    return stage_named("packed_rows").build(context, OLD)


def texts_of(folder: Path) -> dict[str, str]:
    table = read_all(documents_files(folder), FILTERED, ["id", "raw_content"])
    return dict(zip(table["id"].to_pylist(), table["raw_content"].to_pylist(), strict=True))


def spans_of(version, split):
    return [
        line
        for line in pq.read_table(version.published.folder / "spans.parquet").to_pylist()
        if line["split"] == split
    ]


@pytest.mark.parametrize("method", sorted(METHODS))
def test_rows_are_the_documents_tokens_and_nothing_else(lake, method):
    """From the texts up: each piece is its document's tokens, ended; the rest is padding;
    Megatron's documents are the pieces.
    """
    version = built(with_packing(lake, method=method))
    assert all(finding.passed for finding in version.findings)
    texts = texts_of(lake.lake.partition("filtered_documents", OLD).require().folder)
    ids = {
        name: [*gpt2_tokenizer().encode(text).tolist(), GPT2_EOT] for name, text in texts.items()
    }
    seen = Counter[tuple[str, int]]()
    for split in SPLITS:
        rows = GridReader(version.published.folder / f"{split}.zarr").read()
        data = iter(MegatronReader(version.published.folder / split))
        right = np.full_like(rows, GPT2_EOT)
        for line in spans_of(version, split):
            own = ids[line["id"]][line["document_start"] : line["document_stop"]]
            right[line["row"], line["row_start"] : line["row_stop"]] = own
            assert next(data).tolist() == own
            seen.update(
                (line["id"], token)
                for token in range(line["document_start"], line["document_stop"])
            )
        np.testing.assert_array_equal(rows, right)
        assert next(data, None) is None
    long_enough = {name for name, own in ids.items() if len(own) > SETTINGS.min_tokens}
    assert seen == Counter((name, token) for name in long_enough for token in range(len(ids[name])))


def test_the_counts_of_a_receipt_are_a_balance(lake):
    """Tokens in are tokens in rows; rows are tokens and padding; segments of a document never meet,
    so their cost is small.
    """
    found = {
        method: packed.balance_of(built(with_packing(lake, method=method)).counts, SETTINGS)
        for method in METHODS
    }  # fmt: skip
    for balance in found.values():
        assert balance.tokens == balance.in_rows
        assert balance.in_rows + balance.padding == balance.rows * balance.row_tokens
    assert found["bestfit"].cut_needlessly == 0 < found["concat"].cut_needlessly
    assert found["segment"].attention < found["concat"].attention < found["bestfit"].attention


def test_rows_of_a_step_cost_the_same(lake):
    """Groups of neighbours in cost, in another keyed order; the same rows, with their costs."""
    plain, equal = built(lake), built(with_packing(lake, equal_steps=4))
    assert all(finding.passed for finding in equal.findings)
    rows, again = (
        GridReader(version.published.folder / "train.zarr").read() for version in (plain, equal)
    )
    assert not np.array_equal(rows, again)
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, again.tolist()))
    costs = np.load(equal.published.folder / "train_row_cost.npy")
    by_row = [0] * len(costs)
    for line in spans_of(equal, "train"):
        by_row[line["row"]] += (line["row_stop"] - line["row_start"]) ** 2
    filled = {line["row"]: line["row_stop"] for line in spans_of(equal, "train")}
    pads = [(SETTINGS.row_tokens - filled[row]) ** 2 for row in range(len(costs))]
    assert costs.tolist() == [cost + pad for cost, pad in zip(by_row, pads, strict=True)]
    n_whole = len(costs) // 4
    assert n_whole > 1
    groups = np.sort(costs[: 4 * n_whole].reshape(-1, 4), axis=1).tolist()
    in_order = [cost for group in sorted(groups) for cost in group]
    assert in_order == sorted(costs.tolist())[len(costs) % 4 :]


def test_aligned_pieces_begin_at_multiples_with_padding_between(lake):
    """The same documents, in rows whose costs are of the pieces with their padding."""
    version = built(with_packing(lake, align_tokens=12, equal_steps=4, megatron="rows"))
    assert all(finding.passed for finding in version.findings)
    folder, lines = version.published.folder, spans_of(version, "train")
    assert {line["row_start"] % 12 for line in lines} == {0}
    assert {line["row_stop"] % 12 for line in lines} != {0}
    row = lines[0]["row"]
    rows = open_packed(folder)
    batch = PackedLoader(rows, batch_rows=1)[row]
    expected = np.full(SETTINGS.row_tokens, -1)
    own = [line for line in lines if line["row"] == row]
    for line in own:
        expected[line["row_start"] : line["row_stop"]] = 1
    assert ((batch.documents[0] >= 0) == (expected > 0)).all()
    assert (batch.targets[0][expected < 0] == GPT2_EOT).all()
    edges = batch.cu_seqlens
    starts = [line["row_start"] for line in own]
    assert set(starts) <= set(edges[edges % 12 == 0].tolist())
    room = np.diff([*starts, -(-own[-1]["row_stop"] // 12) * 12, SETTINGS.row_tokens])
    assert np.load(folder / "train_row_cost.npy")[row] == (room**2).sum()
    spans = spans_of_packed_row(version.published, "train", row)
    assert [span.row_start for span in spans[1:]] == [span.row_stop for span in spans[:-1]]
    assert [bool(span.id) for span in spans].count(True) == len(own) < len(spans)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"align_tokens": 7}, "must divide row_tokens"), ({"method": "segment"}, "cuts documents")],
)
def test_what_cannot_be_aligned_is_refused(changes, said):
    with pytest.raises(BadInput, match=said):
        PackingSettings(**{"row_tokens": 300, "align_tokens": 10} | changes)


def test_segments_end_where_sentences_do(lake):
    """Lines of the made-up texts end with a full stop: with ends, most segments do; anywhere,
    few.
    """
    shares = []
    for cut_at in ("ends", "anywhere"):
        version = built(with_packing(lake, method="segment", cut_at=cut_at))
        lines = [line for split in SPLITS for line in spans_of(version, split)]
        texts = texts_of(lake.lake.partition("filtered_documents", OLD).require().folder)
        ids = {name: gpt2_tokenizer().encode(text) for name, text in texts.items()}
        inner = [line for line in lines if line["document_stop"] < line["n_tokens"]]
        heads = [text_of("gpt2", ids[line["id"]][: line["document_stop"]]) for line in inner]
        shares.append(np.mean([head.rstrip("\n").endswith(".") for head in heads]))
    assert shares[0] > 0.9
    assert shares[1] < 0.3


def test_other_bands_and_groups_give_the_same_rows(lake, tmp_path, monkeypatch):
    """Whatever is held in memory at once, and with several workers: the same bytes of every file
    but the table's groups.
    """
    whole = built(with_packing(lake, method="concat"))
    monkeypatch.setattr(packing_writing, "MOST_PIECES", 3)
    monkeypatch.setattr(packing_writing, "MOST_TOKENS", 600)
    there = replace(
        with_packing(lake, method="concat", seed=64),
        executor=LocalExecutor(workers=2, preload=("lc_assets.stages.catalogue",)),
    )
    shutil.rmtree(whole.published.folder)
    again = stage_named("packed_rows").build(there, OLD)
    files, others = (
        {fact.path: fact.sha256 for fact in version.published.receipt.files}
        for version in (whole, again)
    )
    assert {path: digest for path, digest in files.items() if others[path] != digest}.keys() == {
        "spans.parquet"
    }
    assert spans_of(again, "train")
    assert pq.ParquetFile(again.published.folder / "spans.parquet").num_row_groups > 3


def test_another_seed_is_another_order_of_the_same_pieces(lake):
    """Rows are shuffled by a keyed hash; the split does not depend on its seed."""
    versions = [built(with_packing(lake, seed=seed)) for seed in (1, 2)]
    first, second = ([line["id"] for line in spans_of(version, "train")] for version in versions)
    assert first != second
    sides = [{line["id"] for line in spans_of(version, "heldout")} for version in versions]
    assert sides[0] == sides[1]


UPSAMPLING = UpsamplingSettings(threshold=120, keep_short=0.5, by="bucket", budget=2.0)


def test_long_documents_are_upsampled_by_source(lake):
    """As often as the plain function says, each copy whole in a place of its own; what is held out
    is there once.
    """
    version = built(with_packing(lake, method="upsample", upsampling=UPSAMPLING))
    assert all(finding.passed for finding in version.findings)
    store = read_all(
        documents_files(lake.lake.partition("packing_tokens", OLD).require().folder), TOKENIZED
    )
    out = {line["id"] for line in spans_of(version, "heldout")}
    train = store.filter(pa.array([name not in out for name in store["id"].to_pylist()]))
    lengths, sources, keys = (
        np.asarray(train["n_tokens"]),
        train["bucket"].to_pylist(),
        train["id"].to_pylist(),
    )
    asked = {
        "threshold": 120,
        "keep_short": 0.5,
        "budget_tokens": 2 * int(lengths.sum()),
        "seed": SETTINGS.seed,
    }
    times = upsampled(lengths, sources, keys, **asked)
    found = Counter[str]()
    for line in spans_of(version, "train"):
        found[line["id"]] += line["document_stop"] - line["document_start"]
    assert found == Counter(
        {
            name: (n + 1) * often
            for name, n, often in zip(keys, lengths.tolist(), times.tolist(), strict=True)
            if often
        }
    )
    assert max(times) > 1
    assert min(times) == 0
    balance = packed.balance_of(version.counts, SETTINGS)
    assert balance.tokens + balance.repeated == balance.in_rows + balance.left_over
    assert version.counts.dropped == {packed.NOT_TAKEN: int((times == 0).sum())}
    held = sum(
        line["document_stop"] - line["document_start"] for line in spans_of(version, "heldout")
    )
    assert held == sum(
        n + 1
        for name, n in zip(store["id"].to_pylist(), store["n_tokens"].to_pylist(), strict=True)
        if name in out
    )


def test_a_document_taken_once_too_often_is_found(lake):
    """The claim counts anew how often each was to be taken: by other settings, another number."""
    version = built(with_packing(lake, method="upsample", upsampling=UPSAMPLING))
    evidence = check_input_of(lake.lake, version.published)
    other = msgspec.to_builtins(msgspec.structs.replace(UPSAMPLING, budget=1.5))
    params = evidence.fingerprint.params | {"upsampling": other}
    found = every_token_is_packed_as_planned(
        replace(evidence, fingerprint=msgspec.structs.replace(evidence.fingerprint, params=params))
    )
    assert "more or fewer pieces" in found.message


def publish(lake, stage, tables, counts):
    """Put a version of a stage that some other module makes into the lake."""
    partition = lake.lake.partition(stage, OLD)
    folder = partition.folder / "0123456789ab"
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        pq.write_table(table, folder / name)
    fingerprint = Fingerprint(stage=stage, key=OLD, code_version="1", params={}, inputs={})
    partition.point_at(write_receipt(folder, receipt_of(folder, fingerprint, counts)))


@pytest.fixture
def with_longpack(tmp_path, upstream):
    """A lake with one packed document: the second natural one of a shard below the first, as
    LongPack writes it.
    """
    context = tiny_context(tmp_path, upstream=upstream, packed_rows=SETTINGS)
    build_snapshot(context, OLD, BEFORE_TOKENS)
    path = documents_files(context.lake.partition("filtered_documents", OLD).require().folder)[0]
    table = read_all([path], FILTERED)
    root, child = table.slice(0, 1).to_pylist()[0], table.slice(1, 1).to_pylist()[0]
    text = f"a page\n{child['raw_content']}\n\nroot : \n{root['raw_content']}"
    document = pa.Table.from_pylist([root | {"raw_content": text}], FILTERED)
    publish(context, "longpack_documents", {path.name: document}, Counts(seen=1, kept=1))
    nothing = {field.name: None for field in LINK_CLAIMS}
    lines = [
        nothing | {"root_id": root["id"], "child_id": child["id"]},
        nothing | {"root_id": "not/packed", "child_id": "x"},
    ]
    publish(
        context,
        "link_claims",
        {"claims.parquet": pa.Table.from_pylist(lines, LINK_CLAIMS)},
        Counts(),
    )
    return context, root["id"], child["id"], text


def test_both_are_longpacks_documents_and_what_they_did_not_take(with_longpack):
    """The root is there once, packed; its child is not there alone; all others are."""
    context, root, child, text = with_longpack
    version = built(with_packing(context, documents="both"))
    assert all(finding.passed for finding in version.findings)
    ids = [line["id"] for split in SPLITS for line in spans_of(version, split)]
    natural = texts_of(context.lake.partition("filtered_documents", OLD).require().folder)
    assert child not in ids
    (line,) = [line for split in SPLITS for line in spans_of(version, split) if line["id"] == root]
    assert line["token_shard"].startswith("longpack-")
    assert line["n_tokens"] == len(gpt2_tokenizer().encode(text))
    tokens = context.lake.partition("packing_tokens", OLD).require().receipt.counts
    assert tokens.dropped[IN_LONGPACK] == 2
    assert tokens.seen == len(natural) + 1
    assert set(ids) <= natural.keys()


def test_longpack_and_the_rest_hold_every_document_once(tmp_path, upstream):
    """By the stages themselves: what links put together, and what they left, is each filtered
    document that goes on, once.
    """
    longpack_settings = LongPackSettings(wanted=True, max_tokens=600, hub_share=1.0)
    context = tiny_context(
        tmp_path,
        upstream=upstream,
        longpack_documents=longpack_settings,
        packed_rows=msgspec.structs.replace(SETTINGS, documents="both", min_tokens=1),
    )
    build_snapshot(context, OLD, BEFORE_TOKENS)
    publish_links(context.lake)
    stage_named("link_claims").build(context, OLD)
    made = stage_named("longpack_documents").build(context, OLD).published
    version = built(context)
    assert all(finding.passed for finding in version.findings)
    lines = [line for split in SPLITS for line in spans_of(version, split)]
    together = Counter(
        line["id"]
        for line in lines
        if line["token_shard"].startswith("longpack-") and line["document_start"] == 0
    )
    alone = Counter(
        line["id"]
        for line in lines
        if not line["token_shard"].startswith("longpack-") and line["document_start"] == 0
    )
    assert together
    assert alone
    inside = Counter[str]()
    for document, parts in longpack.packed_documents(made.folder):
        inside.update(
            [document["id"], *(part["child_id"] for part in parts if part["role"] == "child")]
        )
    natural = texts_of(context.lake.partition("filtered_documents", OLD).require().folder)
    assert together.keys() == {
        document["id"] for document, _ in longpack.packed_documents(made.folder)
    }
    assert inside + alone == Counter(dict.fromkeys(natural, 1))


def test_longpacks_documents_alone_need_nothing_else(with_longpack):
    """Neither filtered documents nor claims are read, so none of them makes the version stale; of
    the decisions the side of the roots.
    """
    context, root, *_ = with_longpack
    alone = with_packing(context, documents="longpack")
    version = built(alone)
    assert {line["id"] for split in SPLITS for line in spans_of(version, split)} == {root}
    receipt = context.lake.partition("packing_tokens", OLD).require().receipt
    assert sorted(receipt.fingerprint.inputs) == [
        f"longpack_documents/{OLD}",
        f"removed_documents/{OLD}",
    ]


def test_natural_documents_need_no_longpack(lake):
    """What a recipe does not ask for need not be there; what it asks for must."""
    inputs = sorted(built(lake).published.receipt.fingerprint.inputs)
    assert inputs == [f"heldout_pairs/{OLD}", f"packing_tokens/{OLD}"]
    with pytest.raises(NotPublished, match=f"link_claims/{OLD} is not published"):
        stage_named("packing_tokens").build(with_packing(lake, documents="both"), OLD)


def test_training_reads_what_was_published(lake):
    """From the partition's place: rows with the spans of the table, and who they are."""
    version = built(lake)
    loader = PackedLoader(open_packed(lake.lake.partition("packed_rows", OLD).folder), batch_rows=2)
    batch = loader[0]
    lines = [line for line in spans_of(version, "train") if line["row"] < 2]
    used = [max(line["row_stop"] for line in lines if line["row"] == row) for row in range(2)]
    assert (batch.documents >= 0).sum(axis=1).tolist() == used
    assert [
        (piece.row, piece.piece, piece.id, piece.row_start) for piece in loader.provenance(0)
    ] == [(line["row"], line["piece"], line["id"], line["row_start"]) for line in lines]
    assert (batch.targets[~batch.mask & (batch.documents < 0)] == GPT2_EOT).all()


def test_large_vocabularies_take_four_bytes(tmp_path, upstream):
    """Ids beyond two bytes, in the store, the rows and Megatron's files."""
    setting = tokenizer_json(tmp_path / "tokenizer.json", far_id=70_000)
    tokenizing = msgspec.structs.replace(
        tiny_context(tmp_path, upstream=upstream).recipe.token_documents, tokenizer=str(setting)
    )
    context = tiny_context(
        tmp_path, upstream=upstream, packed_rows=SETTINGS, token_documents=tokenizing
    )
    build_snapshot(context, OLD, BEFORE_TOKENS)
    version = built(context)
    assert all(finding.passed for finding in version.findings)
    reader = GridReader(version.published.folder / "train.zarr")
    assert (reader.dtype, reader.attributes["pad"]) == (np.uint32, 70_000)
    assert MegatronReader(version.published.folder / "train").dtype == np.int32


def test_documents_need_not_be_ended(lake):
    """Then no end of text stands in a row but as padding."""
    version = built(with_packing(lake, append_eod=False))
    assert all(finding.passed for finding in version.findings)
    for split in SPLITS:
        assert not any(
            (ids == GPT2_EOT).any() for ids in MegatronReader(version.published.folder / split)
        )


def test_megatrons_documents_may_be_whole_rows(lake):
    """Then its files are the arrays' rows, padding and all, and a claim finds rows where pieces
    were asked for.
    """
    version = built(with_packing(lake, megatron="rows"))
    assert all(finding.passed for finding in version.findings)
    for split in SPLITS:
        rows = GridReader(version.published.folder / f"{split}.zarr").read()
        np.testing.assert_array_equal(
            np.stack(list(MegatronReader(version.published.folder / split))), rows
        )
    evidence = check_input_of(lake.lake, version.published)
    fingerprint = msgspec.structs.replace(
        evidence.fingerprint, params=evidence.fingerprint.params | {"megatron": "spans"}
    )
    assert not spans_are_megatrons_documents(replace(evidence, fingerprint=fingerprint)).passed


def test_a_tokenizer_without_end_of_text_cannot_end_documents(lake):
    stage_named("packing_tokens").build(lake, OLD)
    store = lake.lake.partition("packing_tokens", OLD).require()
    params = store.receipt.fingerprint.params | {"eot": None}
    fingerprint = msgspec.structs.replace(store.receipt.fingerprint, params=params)
    endless = replace(
        store, receipt=msgspec.structs.replace(store.receipt, fingerprint=fingerprint)
    )
    with pytest.raises(BadInput, match="set packed_rows.append_eod = false"):
        packed.vocabulary_of_store(endless, SETTINGS)
    open_ended = msgspec.structs.replace(SETTINGS, append_eod=False)
    assert packed.vocabulary_of_store(endless, open_ended).eot is None


WRONG_METHODS = [
    ("concat", "segment"),
    ("bestfit", "concat"),
    ("concat", "reorder"),
    ("bestfit", "segment"),
]


@pytest.mark.parametrize(("made", "said"), WRONG_METHODS)
def test_rows_of_one_method_are_not_those_of_another(lake, made, said):
    """The claim about the method fails for rows that another one made."""
    version = built(with_packing(lake, method=made))
    evidence = check_input_of(lake.lake, version.published)
    assert rows_are_as_the_method_makes_them(evidence).passed
    params = evidence.fingerprint.params | {"method": said}
    found = rows_are_as_the_method_makes_them(
        replace(evidence, fingerprint=msgspec.structs.replace(evidence.fingerprint, params=params))
    )
    assert not found.passed


def test_an_empty_snapshot_has_no_rows(lake):
    """No document is long enough: arrays without rows, no files that Megatron could not open."""
    version = built(with_packing(lake, min_tokens=10_000))
    assert all(finding.passed for finding in version.findings)
    assert version.counts.extra["train rows"] == 0
    assert not list(version.published.folder.glob("*.bin"))
    assert digests({"again": built(with_packing(lake, min_tokens=10_000))}) == {
        "again": version.published.digest
    }


def test_one_split_holds_for_rows_of_one_document_and_packed_rows(lake):
    """Whatever the seed of packing's order; each document is on the side that its text gives."""
    version = built(with_packing(lake, seed=7))
    grid = lake.recipe.token_grid
    pieces = pq.read_table(version.published.folder / "spans.parquet").to_pylist()
    keys = [piece["tokenized_digest"] for piece in pieces]
    held = held_out(keys, grid)
    assert ["heldout" if side else "train" for side in held] == [piece["split"] for piece in pieces]
    assert 0 < held.sum() < len(held)
