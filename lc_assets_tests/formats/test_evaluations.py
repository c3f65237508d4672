"""Evaluation sets: what an item is in each kind of file, and what is refused."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.errors import BadInput
from lc_assets.formats.lists.evaluations import evaluation_files, read_items

RECORDS = [
    {
        "id": 7,
        "question": "Who?",
        "choices": {"text": ["Ann", "Bob"], "label": ["A", "B"]},
        "answer": 1,
        "context": "A passage.",
    },
    {
        "task_id": "HumanEval/0",
        "prompt": "def f():",
        "canonical_solution": "return 1",
        "test": "assert f() == 1",
    },
    {"other": "nothing that is known"},
]
PARTS = [("Who?", "Ann", "Bob", "A", "B"), ("def f():", "return 1"), ()]


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.jsonl", lines(RECORDS)),
        ("e.jsonl.gz", gzip.compress(lines(RECORDS), mtime=0)),
        ("e.json", json.dumps(RECORDS, indent=1).encode()),
        ("e.jsonl", b"\n" + lines(RECORDS).replace(b"\n", b"\r\n\n")),
    ],
)
def test_objects_give_the_strings_of_the_usual_fields(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    items = list(read_items(path))
    assert [item.parts for item in items] == PARTS
    assert [item.id for item in items][:2] == [f"{name}#7", f"{name}#HumanEval/0"]
    assert [item.parts for item in read_items(path, ["context", "test"])] == [
        ("A passage.",),
        ("assert f() == 1",),
        (),
    ]


def test_parquet_and_plain_text(tmp_path):
    pq.write_table(
        pa.table({"question": ["Who?", None], "choices": [["a", "b"], []]}), tmp_path / "e.parquet"
    )
    assert [item.parts for item in read_items(tmp_path / "e.parquet")] == [("Who?", "a", "b"), ()]
    (tmp_path / "e.txt").write_bytes(b"\xef\xbb\xbfOne.\n\n  Two. \n")
    assert [(item.id, item.parts) for item in read_items(tmp_path / "e.txt")] == [
        ("e.txt#0", ("One.",)),
        ("e.txt#2", ("Two.",)),
    ]
    assert [path.name for path in evaluation_files([tmp_path])] == ["e.parquet", "e.txt"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("e.txt", "Übung".encode("latin-1"), "e.txt, line 0: not UTF-8"),
        ("e.jsonl", b'{"text": "ok"}\n' + '{"text": "Übung"}'.encode("latin-1"), "line 1"),
        ("e.jsonl", '{"text": "Übung"}'.encode("utf-16"), "line 0"),
        ("e.jsonl", b'{"text": "ok"}\n[1]\n', "line 1"),
        ("e.jsonl", b'{"text": ', "line 0"),
        ("e.json", b'[{"text": "ok"}, 3]', "e.json"),
        ("e.parquet", b"PAR1", "e.parquet"),
        ("e.jsonl.gz", gzip.compress(lines(RECORDS), mtime=0)[:-9], "e.jsonl.gz"),
    ],
)
def test_what_is_not_sound_is_refused(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=words):
        list(read_items(tmp_path / name))


def test_sources_that_hold_nothing(tmp_path):
    with pytest.raises(BadInput, match="does not exist"):
        evaluation_files([tmp_path / "none"])
    with pytest.raises(BadInput, match="holds no file"):
        evaluation_files([tmp_path])
