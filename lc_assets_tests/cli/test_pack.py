"""``lc pack``: any corpus into rows; what it prints balances, what it writes is what training,
Megatron and other commands read.
"""

import gzip
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.loaders.packed import PackedLoader, open_packed
from lc_assets.packing.methods import METHODS
from lc_assets.vocabulary import GPT2_EOT
from lc_assets_tests.builders import WORDS, tokenizer_json
from lc_assets_tests.file_runs import version_in

ROW = 256


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """Two files whose ids repeat: documents of lines, some of them long; one that is none; a short
    one; one in another alphabet.
    """
    folder = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(5)
    for number in range(2):
        records = [
            {"id": f"d{at}", "text": lines(rng, int(rng.integers(1, 30))), "kind": "ab"[at % 2]}
            for at in range(20)
        ]
        records += [{"id": "short", "text": "Hm."}, {"id": "kana", "text": "これはペンです。" * 60}]
        content = "".join(json.dumps(record) + "\n" for record in records) + "not JSON\n"
        (folder / f"part{number}.jsonl.gz").write_bytes(gzip.compress(content.encode()))
    return folder


def lines(rng, n_lines):
    """Sentences of common words, one a line."""
    return "".join(
        " ".join(WORDS[at] for at in rng.integers(len(WORDS), size=12)).capitalize() + ".\n"
        for _ in range(n_lines)
    )


def documents_of(corpus):
    """The texts that are long enough, by file and number of those that have tokens enough."""
    found = {}
    for number, path in enumerate(sorted(corpus.iterdir())):
        texts = [
            document.text
            for document in read_corpus(path)
            if hasattr(document, "text") and len(document.text) > 10
        ]
        found |= {(f"part{number}", place): text for place, text in enumerate(texts)}
    return found


def rows_of(out):
    """Records of the rows' texts."""
    return [
        json.loads(line)
        for path in sorted((rows_in(out) / "texts").iterdir())
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]


def rows_in(out):
    """Folder of the packed rows of a lake of one corpus."""
    return version_in(out, "packed_rows")


def pack(lc, corpus, out, *options):
    return lc(
        "pack",
        corpus,
        out,
        "--length",
        ROW,
        "--segment",
        64,
        "--min-tokens",
        5,
        "--workers",
        1,
        *options,
        *(() if "rows" in options else ("--texts",)),
    )


@pytest.mark.parametrize("method", [*sorted(METHODS), "upsample"])
def test_what_is_printed_balances_and_what_is_written_can_be_read(lc, corpus, tmp_path, method):
    """Documents in and out, tokens in rows, rows; texts of pieces are their documents' own;
    training and Megatron see the same.
    """
    out = tmp_path / "packed"
    said = pack(
        lc, corpus, out, "--method", method, *(["--threshold", 200] if method == "upsample" else [])
    )
    assert said.code == 0, said.err
    spans = pq.read_table(rows_in(out) / "spans.parquet").to_pylist()
    n_tokens = sum(line["document_stop"] - line["document_start"] for line in spans)
    table = {
        name: int(n.replace(",", ""))
        for name, n in re.findall(r"^ *(\S.*?) {2,}([\d,]+)$", said.out, re.MULTILINE)
    }
    assert table["= tokens in rows"] == n_tokens
    assert table["tokens of documents"] + table["+ repeated"] - table["- left over"] == n_tokens
    n_rows = max(line["row"] for line in spans) + 1
    assert n_tokens + table["+ padding"] == table[f"= {n_rows} rows of {ROW}"] == n_rows * ROW
    assert "dropped: not JSON 2 dropped: too few bytes 2" in " ".join(said.out.split())

    texts = documents_of(corpus)
    assert [line["row"] for line in spans] == sorted(line["row"] for line in spans)
    data = MegatronReader(rows_in(out) / "train")
    for line, ids in zip(spans, data, strict=True):
        own = [
            *gpt2_tokenizer().encode(texts[line["token_shard"], line["document"]]).tolist(),
            GPT2_EOT,
        ]
        assert ids.tolist() == own[line["document_start"] : line["document_stop"]]
    batch = PackedLoader(open_packed(rows_in(out).parent), batch_rows=n_rows)[0]
    np.testing.assert_array_equal(batch.targets[batch.documents >= 0], data.ids)

    records = rows_of(out)
    assert [record["id"] for record in records] == [f"train/{row}" for row in range(n_rows)]
    assert sum(record["n_tokens"] for record in records) == n_tokens
    told = [(record, span) for record in records for span in record["spans"]]
    for line, (record, span) in zip(spans, told, strict=True):
        assert (record["id"], span["document"]) == (f"train/{line['row']}", line["id"])
        text = texts[line["token_shard"], line["document"]]
        shown = record["text"][span["start"] : span["stop"]]
        assert shown in text or "\ufffd" in shown
    neighbours = [
        (record, *pair) for record in records for pair in itertools.pairwise(record["spans"])
    ]
    parted = {record["text"][left["stop"] : right["start"]] for record, left, right in neighbours}
    assert parted <= {"\n\n"}


def test_pieces_put_together_are_the_documents(lc, corpus, tmp_path):
    """By first token, the texts of a document's pieces are its text again, where none is torn."""
    assert pack(lc, corpus, tmp_path / "out", "--method", "concat").code == 0
    lines, records = (
        pq.read_table(rows_in(tmp_path / "out") / "spans.parquet").to_pylist(),
        rows_of(tmp_path / "out"),
    )
    told = [
        record["text"][span["start"] : span["stop"]]
        for record in records
        for span in record["spans"]
    ]
    parts = {}
    for line, text in zip(lines, told, strict=True):
        parts.setdefault((line["token_shard"], line["document"]), []).append(
            (line["document_start"], text)
        )
    for name, text in documents_of(corpus).items():
        again = "".join(part for _, part in sorted(parts[name]))
        assert again == text or "\ufffd" in again


def test_workers_change_no_byte(lc, corpus, tmp_path):
    """Every file, whichever task ends first."""
    for number, workers in enumerate((1, 2)):
        out = tmp_path / str(number)
        assert pack(lc, corpus, out, "--method", "segment", "--workers", workers).code == 0
    one, two = (
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.name != "receipt.json"
        }
        for folder in (rows_in(tmp_path / "0"), rows_in(tmp_path / "1"))
    )
    assert one == two
    assert not any(".scratch" in str(path) for path in one)


def test_whole_rows_for_megatron_and_no_texts(lc, corpus, tmp_path):
    assert pack(lc, corpus, tmp_path / "out", "--megatron", "rows").code == 0
    assert set(MegatronReader(rows_in(tmp_path / "out") / "train").lengths.tolist()) == {ROW}
    assert not (rows_in(tmp_path / "out") / "texts").exists()


def test_sources_keep_their_shares(lc, corpus, tmp_path):
    """Upsampled by kind: each kind has about the tokens that it had, though long documents replace
    short ones.
    """
    asked = (
        "--method",
        "upsample",
        "--threshold",
        300,
        "--keep-short",
        0,
        "--source-field",
        "kind",
    )
    assert pack(lc, corpus, tmp_path / "out", *asked).code == 0
    lines = pq.read_table(rows_in(tmp_path / "out") / "spans.parquet").to_pylist()
    for line in lines:
        line["id"] = line["id"].rpartition("/")[2]
    kinds = {f"d{at}": "ab"[at % 2] for at in range(20)}
    sizes = {key: len(gpt2_tokenizer().encode(text)) for key, text in documents_of(corpus).items()}
    names = {(line["token_shard"], line["document"]): line["id"] for line in lines}
    taken = dict.fromkeys("ab", 0)
    for line in lines:
        if line["id"] in kinds:
            taken[kinds[line["id"]]] += line["document_stop"] - line["document_start"]
    assert {name for name in names.values() if name in kinds}
    assert all(line["n_tokens"] >= 300 for line in lines)
    longest = max(sizes.values())
    before = dict.fromkeys("ab", 0)
    for path in sorted(corpus.iterdir()):
        for document in read_corpus(path):
            if document.id in kinds:
                before[kinds[document.id]] += len(gpt2_tokenizer().encode(document.text))
    assert all(before[kind] - longest <= taken[kind] <= before[kind] + 40 for kind in "ab")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ("--method", "first-fit"),
            "there are bestfit, concat, reorder, segment, upsample",
        ),
        (("--length", 0), "Expected `int` >= 1"),
        (
            ("--segment", 1000, "--method", "segment"),
            "a segment must have 1 to 256 tokens, got 1,000",
        ),
        (("--tokenizer", "no-such"), "no-such"),
        (("--min-tokens", 100_000), "no document is left of 46 seen"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence_and_2(lc, corpus, tmp_path, options, says):
    said = pack(lc, corpus, tmp_path / "out", *options)
    assert said.code == 2
    assert says in said.err
    assert "Traceback" not in said.err + said.out


def test_a_folder_that_holds_something_is_left_alone(lc, corpus, tmp_path):
    (tmp_path / "precious").write_text("x")
    said = pack(lc, corpus, tmp_path)
    assert (said.code, (tmp_path / "precious").read_text()) == (2, "x")
    assert "holds precious, which no stage wrote" in said.err


def test_a_tokenizer_without_end_of_text_wants_no_eod(lc, corpus, tmp_path):
    """It is said before anything is read."""
    setting = tokenizer_json(tmp_path / "tokenizer.json")
    document = json.loads(setting.read_text())
    setting.write_text(json.dumps(document | {"added_tokens": []}))
    said = pack(lc, corpus, tmp_path / "out", "--tokenizer", setting)
    assert said.code == 2
    assert "pass --no-eod" in said.err
    assert pack(lc, corpus, tmp_path / "out", "--tokenizer", setting, "--no-eod").code == 0


def referrals_of(out, bound):
    """Pairs of mentions in each row, within documents: all of them, and those ``bound`` sentences
    apart or more.
    """
    from lc_assets.formats.lists.word_lists import read_special_words
    from lc_assets.stages.reports.document_sets import parts_of
    from lc_assets.text.referrals.concepts import LexicalConcepts
    from lc_assets.text.referrals.referrals import count_referrals

    finder, found = LexicalConcepts(read_special_words()), []
    for path in sorted((rows_in(out) / "texts").iterdir()):
        for row in read_corpus(path):
            spans = json.dumps(json.loads(bytes(row.rest))["spans"])
            parts = parts_of(row.id, row.text, spans)
            pairs = count_referrals(finder.mentions(row.text, parts), (bound,)).pairs
            found.append((sum(pairs), pairs[-1]))
    return found


def test_taking_segments_in_turns_moves_pairs_outwards_and_dealing_them_out_leaves_none_far_apart(
    lc, tmp_path
):
    """Measured as `lc referrals` does: turns keep the pairs of every row to the last; no dealt pair
    is further than a segment.
    """
    rng = np.random.default_rng(9)
    texts = [lines(rng, 120) for _ in range(12)]
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps({"id": f"d{at}", "text": text}) + "\n" for at, text in enumerate(texts))
    )
    found = {}
    for method in ("concat", "reorder", "segment"):
        out = tmp_path / method
        assert (
            lc(
                "pack",
                tmp_path / "in.jsonl",
                out,
                "--method",
                method,
                "--length",
                4096,
                "--segment",
                256,
                "--texts",
                "--workers",
                1,
            ).code
            == 0
        )
        found[method] = referrals_of(out, 32)
    assert [total for total, _ in found["reorder"]] == [total for total, _ in found["concat"]]
    assert all(
        far > before
        for (_, far), (_, before) in zip(found["reorder"], found["concat"], strict=True)
    )
    assert sum(total for total, _ in found["segment"]) > 0
    assert {far for _, far in found["segment"]} == {0}


FILES = [
    ("proj", "app.py", 2, "from lib import base\n"),
    ("other", "main.c", 1, '#include "util.h"\n'),
    ("proj", "lib/base.py", 0, "X = 1\n"),
    ("other", "util.h", 0, "#pragma once\n"),
    ("proj", "lib/more.py", 1.5, "import base\n"),
]


def path_of(line):
    """The path of a file, by the id of its document: `in/0/path`."""
    return next(path for _, path, _, _ in FILES if line["id"].endswith(f"/{path}"))


def repositories(folder):
    """Files of two repositories, scattered over two files of records; a column orders them."""
    folder.mkdir()
    records = [
        {"repo": repo, "id": path, "import_order": at, "text": text}
        for repo, path, at, text in FILES
    ]
    for number in range(2):
        lines = (json.dumps(record) for record in records[number::2])
        (folder / f"{number}.jsonl").write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize("method", ["bestfit", "concat"])
def test_files_of_a_repository_stay_together_in_the_order_of_a_column(lc, tmp_path, method):
    corpus = repositories(tmp_path / "in")
    columns = ["--group-by", "repo", "--order-by", "import_order", "--method", method]
    said = lc("pack", corpus, tmp_path / "out", *columns, "--length", 64, "--workers", 1)
    assert said.code == 0, said.err
    spans = pq.read_table(rows_in(tmp_path / "out") / "spans.parquet").to_pylist()
    proj, other = ["lib/base.py", "lib/more.py", "app.py"], ["util.h", "main.c"]
    assert {tuple(path for path, _ in itertools.groupby(path_of(line) for line in spans))} <= {
        (*proj, *other),
        (*other, *proj),
    }
    again = lc("pack", corpus, tmp_path / "again", *columns, "--length", 64, "--workers", 2)
    assert again.code == 0
    assert pq.read_table(rows_in(tmp_path / "again") / "spans.parquet").to_pylist() == spans


def test_without_groups_rows_come_in_the_order_of_the_column(lc, tmp_path):
    corpus = repositories(tmp_path / "in")
    columns = ["--order-by", "import_order", "--method", "concat", "--length", 8, "--workers", 1]
    assert lc("pack", corpus, tmp_path / "out", *columns).code == 0
    spans = pq.read_table(rows_in(tmp_path / "out") / "spans.parquet").to_pylist()
    order = {path: at for _, path, at, _ in FILES}
    found = [order[path_of(line)] for line in spans]
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--group-by", "repo"], "give --order-by"),
        (["--order-by", "import_order", "--method", "segment"], "take bestfit or concat"),
        (["--order-by", "repo"], "fields: id, import_order, repo"),
        (["--order-by", "depth"], "document app.py: field 'depth' holds no number"),
    ],
)
def test_an_order_that_is_not_given_is_an_error(lc, tmp_path, options, message):
    corpus = repositories(tmp_path / "in")
    said = lc("pack", corpus, tmp_path / "out", *options, "--workers", 1)
    assert said.code == 2
    assert message in " ".join(said.err.split())
