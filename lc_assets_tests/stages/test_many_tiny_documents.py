"""The cost of many tiny documents and shards follows their bytes: tables are opened once, and ids,
addresses and keys are read in bulk. Slow references are compared.
"""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, strategies as st

from lc_assets.builds import building, lookups, table_checks
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.key_index import KeyIndex, write_key_index
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.documents import document_keys
from lc_assets.stages.documents.keyed_texts import lines_of_ids, with_digests
from lc_assets.stages.file_lakes import build_for, context_over_files
from lc_assets.text.links.addresses import KINDS, keys_of, keys_of_columns, merged_keys, values_of
from lc_assets.vocabulary import Shard, parse_document_id

SHARDS = [Shard.of_tag(tag) for tag in ("2023-06/0000/en_head", "books/part-0001", "b/line-3")]
LINES = st.integers(0, 10**9)
OWN = st.sampled_from(["17", "x/line-17", "line-03", "en_head.json.gz/3", "a-1", "é"])
URLS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["", "//", "http://www.a.co.uk:81/x/?q#b", "a.b.example.org", "HTTP://É.org/"]),
)
DIGESTS = st.sampled_from(["", "sha1:A", "sha256:B"])


def by_line(ids: list[str]) -> list[int] | None:
    """The lines that ids name, one by one."""
    lines = [parse_document_id(name)[1] for name in ids]
    return lines if all(isinstance(line, int) for line in lines) else None


@given(st.lists(st.tuples(st.sampled_from(SHARDS), LINES), max_size=5), st.lists(OWN, max_size=1))
def test_lines_of_ids_are_read_as_one_by_one(lines, own):
    ids = [shard.document_id(line) for shard, line in lines]
    ids += [SHARDS[1].document_id(name) for name in own]
    found = lines_of_ids(pa.chunked_array([pa.array(ids, pa.string())]))
    assert (None if found is None else found.tolist()) == by_line(ids)


@given(st.lists(st.tuples(URLS, DIGESTS, DIGESTS), max_size=6), st.integers(1, 3), st.booleans())
def test_keys_in_bulk_are_those_of_single_documents(documents, n_lines, with_text_digests):
    """Every pair of key and place once, ascending, however the documents come in parts."""
    names = ("id", "url", "digest", "text_digest")
    if not with_text_digests:
        names, documents = names[:3], [document[:2] for document in documents]
    rows = [(f"books/a/line-{line}", *rest) for line, rest in enumerate(documents)]
    parts = [
        dict(zip(names, map(list, zip(*rows[start : start + n_lines], strict=True)), strict=True))
        for start in range(0, len(rows), n_lines)
    ]
    wanted = {
        (int(key), place)
        for place, row in enumerate(rows)
        for kind in KINDS
        for key in keys_of(kind, values_of(kind, dict(zip(names, row, strict=True))))
    }
    keys, places = merged_keys(map(keys_of_columns, parts))
    assert list(zip(keys.tolist(), places.tolist(), strict=True)) == sorted(wanted)


def corpus(folder, n_files, n_lines=1):
    folder.mkdir()
    for number in range(n_files):
        lines = [json.dumps({"text": f"{number} {line}"}) for line in range(n_lines)]
        (folder / f"f{number:03d}.jsonl").write_text("\n".join(lines))
    return folder


def test_checks_open_each_table_of_a_shard_once(tmp_path, monkeypatch):
    """Five checks look at the tables of filtered documents."""
    source = corpus(tmp_path / "tiny", 5)
    context = context_over_files([source], tmp_path / "out", executor=LocalExecutor(), settings={})
    (built,) = build_for(context, "filtered_documents")["filtered_documents"].values()
    opened = Counter[str]()
    init = pq.ParquetFile.__init__

    def counting(self, source, *args, **kwargs):
        opened[source.name] += 1
        init(self, source, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "__init__", counting)
    check_input = building.check_input_of(context.lake, built.published)
    found = building.audit(stage_named("filtered_documents"), check_input)
    assert all(result.passed for result in found)
    shards = {name: count for name, count in opened.items() if name.startswith("f0")}
    assert len(shards) == 15
    assert set(shards.values()) == {1}


def test_tiny_texts_are_listed_in_large_row_groups(tmp_path):
    """Not in one per batch of texts, whose footer would be larger than the lines."""
    source = corpus(tmp_path / "tiny", 1, n_lines=500)
    context = context_over_files([source], tmp_path / "out", executor=LocalExecutor(), settings={})
    (built,) = build_for(context, "filtered_documents")["filtered_documents"].values()
    (path,) = built.published.folder.glob("*.documents.parquet")
    task = document_keys.KeyTask(
        documents=path, folder=tmp_path, passages=(), privacy=PrivacySettings(), shingles=None
    )
    assert document_keys.list_shard(task).kept == 500
    with pa.memory_map(str(task.listed)) as listed:
        assert pa.ipc.open_file(listed).num_record_batches == 1


def test_workers_make_the_keys_of_a_table(tmp_path, monkeypatch):
    """A task per some row groups, which end in any order: the keys are those of all lines."""
    monkeypatch.setattr(lookups, "GROUP_LINES", 3)
    monkeypatch.setattr(lookups, "GROUPS_AT_ONCE", 2)
    columns = {
        "id": [f"b/a/line-{number}" for number in range(20)],
        "url": [f"http://a{number % 4}.example.org/{number}" for number in range(20)],
        "digest": [""] * 20,
    }
    lookups.write_in_groups(tmp_path / "a.parquet", pa.table(columns))
    asked = []

    class Backwards:
        def run(self, function, tasks, *, what):
            asked.extend(tasks)
            assert not what
            return [(task, function(task)) for task in reversed(tasks)]

    found = lookups.keys_in(tmp_path / "a.parquet", list(columns), Backwards())
    assert all(map(np.array_equal, found, merged_keys([keys_of_columns(columns)])))
    assert asked == [0, 2, 4, 6]


def test_the_keys_of_every_eighth_line_show_what_is_wrong(tmp_path):
    """An index whose documents moved by one, and one that lacks a part."""
    columns = {
        "id": [f"b/a/line-{number}" for number in range(3000)],
        "url": [f"http://a{number % 4}.example.org/{number}" for number in range(3000)],
        "digest": [""] * 3000,
    }
    path, index = tmp_path / "a.parquet", KeyIndex(tmp_path / "a")
    lookups.write_in_groups(path, pa.table(columns))
    keys, places = lookups.keys_in(path, list(columns))
    eighth = lookups.keys_in(path, list(columns), every=8)
    assert all(map(np.array_equal, eighth, (keys[places % 8 == 0], places[places % 8 == 0])))
    for is_right, indexed in (
        (True, places),
        (False, (places + 1).astype(np.uint32) % 3000),
        (False, np.where(places < 1024, places, places % 1024)),
    ):
        write_key_index(tmp_path / "a", keys, indexed.astype(np.uint32))
        assert index.holds(*eighth, every=8) == is_right


def test_digests_of_chosen_documents_only(tmp_path):
    """They are those of a pass over all documents."""
    source = corpus(tmp_path / "tiny", 1, n_lines=50)
    context = context_over_files([source], tmp_path / "out", executor=LocalExecutor(), settings={})
    (built,) = build_for(context, "filtered_documents")["filtered_documents"].values()
    (path,) = built.published.folder.glob("*.documents.parquet")
    schema = document_keys.KEYED
    every = pa.Table.from_batches(with_digests(path, schema, PrivacySettings(), None), schema)
    chosen = np.arange(7, 40, 3)
    only = np.isin(np.arange(50), chosen)
    some = with_digests(path, schema, PrivacySettings(), None, only=only)
    assert pa.Table.from_batches(some, schema).equals(every.take(chosen))


def test_a_column_of_another_type_is_a_misfit(tmp_path):
    """Its values are not compared, since that would end in an error of Arrow."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2], "n_tokens": ["a", "b"]}), path)
    table, found = table_checks.checked_columns(path, ["id"])
    assert table_checks.complaints_about("a", table, "id") == []
    assert table_checks.misfits("a", found, pa.schema({"id": "string"}))
