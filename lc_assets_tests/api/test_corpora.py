"""The public functions do what the commands of the same names do."""

import json
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lc_assets as lc
from lc_assets.builds.settings.common import DecontaminationSettings
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.errors import BadInput
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer

WORDS = [
    "the",
    "river",
    "runs",
    "past",
    "a",
    "mill",
    "and",
    "under",
    "the",
    "old",
    "bridge",
    "to",
    "the",
    "harbour",
    "of",
    "the",
    "town",
]


def text(n: int) -> str:
    """Some words, of which a third are longer by a number of letters."""
    return " ".join(
        word + "x" * (n if place % 3 == n % 3 else 0) for place, word in enumerate(WORDS)
    )


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Six documents, the last a copy of the first."""
    path = tmp_path / "pages.jsonl"
    texts = [*map(text, range(5)), text(0)]
    path.write_text("\n".join(json.dumps({"id": f"d{n}", "text": t}) for n, t in enumerate(texts)))
    return path


def texts_of(output: lc.Output) -> list[str]:
    return [document.text for document in output.documents()]


def test_quantiles_keep_what_lies_between(corpus, tmp_path):
    output = lc.filter(
        corpus, tmp_path / "out", quantiles={"mean_word_length:raw": (0, 0.5)}, workers=1
    )
    kept, every = set(texts_of(output)), list(map(text, [0, 1, 2, 3, 4, 0]))
    dropped = set(every) - kept
    assert output.counts.seen == 6
    assert max(map(mean_word_length, kept)) <= min(map(mean_word_length, dropped))
    with pytest.raises(BadInput, match="two quantiles"):
        lc.filter(corpus, tmp_path / "none", quantiles={"mean_word_length:raw": (0.5, 0.5)})


def mean_word_length(words: str) -> float:
    found = words.split()
    return sum(map(len, found)) / len(found)


def test_thresholds_are_those_of_the_command(corpus, tmp_path):
    """No document has 10,000 words, so none is left; with a lower bound all are."""
    for least, kept in ((10_000, 0), (1, 6)):
        rules = tmp_path / "words.toml"
        rules.write_text(
            'name = "words"\n[[rule]]\nname = "words"\nsignal = "rps_doc_word_count"\n'
            'at_least = 5\nsource = "none"\n'
        )
        output = lc.filter(
            [corpus],
            tmp_path / "out",
            rules=str(rules),
            thresholds={"words": {"at_least": least}},
            workers=1,
        )
        assert output.counts.kept == kept


def test_a_copy_is_removed(corpus, tmp_path):
    output = lc.deduplicate(corpus, tmp_path / "out", by=["text"], prefer=["oldest"], workers=1)
    assert sorted(texts_of(output)) == sorted(map(text, range(5)))
    with pytest.raises(BadInput, match="name at least one"):
        lc.deduplicate(corpus, tmp_path / "none", by=[])
    with pytest.raises(BadInput, match="shingle_size"):
        lc.deduplicate(corpus, tmp_path / "none", shingle_size=2)


def decontaminated(corpus, out, **how):
    """Without the documents that contain document 3."""
    items = out.with_name("evals.jsonl")
    items.write_text(json.dumps({"id": "q", "question": text(3)}))
    search = DecontaminationSettings(against=(str(items),), mode="any")
    return lc.decontaminate(corpus, out, search, **how)


def test_a_document_with_an_evaluation_item_is_removed(corpus, tmp_path):
    output = decontaminated(corpus, tmp_path / "out", workers=1)
    assert sorted(texts_of(output)) == sorted(map(text, [0, 1, 2, 4, 0]))
    with pytest.raises(BadInput, match="evaluation sets"):
        lc.decontaminate(corpus, tmp_path / "none", DecontaminationSettings())


def test_tokens_are_the_tokenizers(corpus, tmp_path):
    output = lc.tokenize(corpus, tmp_path / "out", workers=1)
    (folder,) = output.versions
    (prefix,) = (path.with_suffix("") for path in folder.glob("*.idx"))
    found = [ids.tolist() for ids in MegatronReader(prefix)]
    assert found == [gpt2_tokenizer().encode(text(n)).tolist() for n in [*range(5), 0]]


@pytest.mark.parametrize(
    ("command", "codec"),
    [
        (lc.tokenize, "UNCOMPRESSED"),
        (lc.deduplicate, "UNCOMPRESSED"),
        (decontaminated, "UNCOMPRESSED"),
        (partial(lc.filter, quantiles={"mean_word_length:raw": (0, 0.5)}), "ZSTD"),
    ],
    ids=["tokenize", "deduplicate", "decontaminate", "filter"],
)
def test_texts_are_compressed_where_they_are_the_output(corpus, tmp_path, command, codec):
    (built,) = command(corpus, tmp_path / "out", workers=1)["filtered_documents"]
    footers = [
        pq.read_metadata(path) for path in built.published.folder.glob("*.documents.parquet")
    ]
    assert {footer.row_group(0).column(0).compression for footer in footers} == {codec}


def test_packed_rows_are_opened(corpus, tmp_path):
    output = lc.pack(corpus, tmp_path / "out", PackingSettings(row_tokens=64), workers=1)
    data = lc.open(output.versions[0])
    assert data.rows.row_tokens == 64
    assert {piece.id for piece in data.documents(range(len(data)))} == {
        document.id for document in output.documents()
    }


def test_files_that_cannot_be_read_are_counted(corpus, tmp_path):
    (tmp_path / "bad.jsonl.gz").write_bytes(b"no gzip")
    inputs = [corpus, tmp_path / "bad.jsonl.gz"]
    output = lc.deduplicate(inputs, tmp_path / "out", by=["text"], workers=1)
    assert output.skipped_files == (1, 2)


def test_a_second_call_reuses_what_is_current(corpus, tmp_path):
    first = lc.deduplicate(corpus, tmp_path / "out", threshold=0.8, workers=1)
    second = lc.deduplicate(corpus, tmp_path / "out", threshold=0.9, workers=1)
    for stage in ("filtered_documents", "near_duplicate_pairs"):
        assert [built.reused for built in second[stage]] == [True]
        assert [b.published.name for b in first[stage]] == [b.published.name for b in second[stage]]
    assert [built.reused for built in second["removed_documents"]] == [False]
