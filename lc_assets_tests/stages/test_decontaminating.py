"""A corpus against evaluation sets: what is kept, what is not, and what is written down of it."""

import gzip
import json

import pyarrow.parquet as pq
import pytest

from lc_assets.errors import BadInput, CorruptFile, Mismatch, NotPublished
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.gram_index_files import open_index
from lc_assets.stages.decontamination import decontaminating
from lc_assets.stages.decontamination.decontaminating import FileTask, decontaminate, sort_file
from lc_assets.stages.settings import DecontaminationSettings

QUESTION = (
    "In which year did the keeper of the northern lighthouse first write down the names of "
    "all ships that passed him"
)
FOOTER = (
    "please read all of our terms and conditions of use before you go on to any other page "
    "of this site"
)
FILLER = (
    "Nothing of what stands here was ever asked of anybody, and no examiner would think of "
    "it in all of his days."
)


def settings(folder, **more):
    return DecontaminationSettings(**{"against": (str(folder / "evals"),)} | more)


@pytest.fixture
def place(tmp_path):
    """Two files of a corpus with one whole question, half a question, a footer everywhere; and
    evaluation sets.
    """
    half = " ".join(QUESTION.split()[:14])
    texts = [
        f"{FILLER} {FOOTER}",
        f"“{QUESTION.upper()}?” {FOOTER}",
        f"{half}. {FILLER} {FOOTER}",
        FILLER,
    ]
    (tmp_path / "corpus").mkdir()
    for name in ("a", "b"):
        lines = [
            json.dumps({"id": f"{name}{number}", "raw_content": text, "n": number})
            for number, text in enumerate(texts)
        ]
        (tmp_path / "corpus" / f"{name}.jsonl").write_text(
            "\n".join([*lines, "not JSON", '{"id": "x"}']), "utf-8"
        )
    (tmp_path / "evals").mkdir()
    items = [
        {"question": QUESTION},
        {"question": f"{FOOTER} {QUESTION[::-1]}"},
        {"question": "Too short?"},
        {"question": FILLER[::-1]},
    ]
    (tmp_path / "evals" / "e.jsonl").write_text("\n".join(map(json.dumps, items)), "utf-8")
    return tmp_path


def run(place, out="out", workers=1, **more):
    return decontaminate(
        [place / "corpus"],
        place / out,
        settings(place, **more),
        executor=LocalExecutor(workers=workers),
    )


def documents(folder, kind):
    contents = [gzip.decompress(path.read_bytes()) for path in sorted((folder / kind).glob("*.gz"))]
    return [json.loads(line) for content in contents for line in content.splitlines()]


def ids(folder, kind):
    return [document["id"] for document in documents(folder, kind)]


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_question_goes_with_its_document_and_everything_is_accounted_for(place):
    report = run(place)
    assert report.counts.seen == 12
    assert report.counts.kept == 6
    assert report.counts.dropped == {"contaminated": 2, "no text": 2, "not JSON": 2}
    assert report.items == {"clean": 1, "contaminated": 1, "too short": 1, "touched": 1}
    assert ids(place / "out", "kept") == ["a0", "a2", "a3", "b0", "b2", "b3"]
    assert ids(place / "out", "dropped") == ["a1", "b1"]
    assert documents(place / "out", "dropped")[0] == {
        "id": "a1",
        "n": 1,
        "raw_content": f"“{QUESTION.upper()}?” {FOOTER}",
    }


def test_items_and_evidence_say_how_much_and_where(place):
    run(place)
    lines = {
        line["item_id"]: line for line in pq.read_table(place / "out" / "items.parquet").to_pylist()
    }
    whole = lines["e.jsonl#0"]
    assert (
        whole["verdict"],
        whole["documents"],
        whole["condemned_documents"],
        whole["best_coverage"],
    ) == ("contaminated", 4, 2, 1.0)
    assert whole["longest_words"] == whole["words"] == len(QUESTION.split())
    text = f"“{QUESTION.upper()}?” {FOOTER}"
    assert (whole["best_document"], text[whole["start"] : whole["end"]]) == ("a1", QUESTION.upper())
    assert lines["e.jsonl#1"]["documents"] == 6
    evidence = pq.read_table(place / "out" / "evidence" / "a.parquet").to_pylist()
    assert [(line["id"], line["item"], line["condemned"]) for line in evidence] == [
        ("a0", 1, False), ("a1", 0, True), ("a1", 1, False), ("a2", 1, False), ("a2", 0, False)
    ]  # fmt: skip
    half = evidence[-1]
    assert (half["grams"], half["item_grams"], half["longest_words"]) == (2, 9, 14)


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ({"mode": "any"}, ["a3", "b3"]),
        ({"mode": "any", "ignore_common": 4}, ["a0", "a3", "b0", "b3"]),
        ({"threshold": 0.2}, ["a3", "b3"]),
        ({"threshold": 0.2, "ignore_common": 5}, ["a0", "a3", "b0", "b3"]),
        ({"ignore_common": 1}, ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"]),
    ],
)
def test_modes_thresholds_and_common_n_grams(place, more, kept):
    run(place, **more)
    assert ids(place / "out", "kept") == kept


def test_common_n_grams_are_listed_with_how_often(place):
    run(place, ignore_common=5)
    common = pq.read_table(place / "out" / "common.parquet").to_pylist()
    assert common[0]["documents"] == 6
    assert common[0]["words"] in FOOTER
    assert {line["ignored"] for line in common if line["words"] in FOOTER} == {True}
    assert {line["ignored"] for line in common if line["words"] in QUESTION.lower()} == {False}


def test_cutting_keeps_the_rest_and_the_original(place):
    report = run(place, action="cut")
    assert report.counts.kept == 8
    assert (report.counts.extra["documents cut"], report.counts.extra["characters cut"]) == (
        2,
        2 * len(QUESTION),
    )
    kept = {document["id"]: document for document in documents(place / "out", "kept")}
    assert kept["a1"]["raw_content"] == f"“?” {FOOTER}"
    assert ids(place / "out", "cut") == ["a1", "b1"]


def test_workers_and_the_order_of_sources_do_not_show(place):
    run(place)
    run(place, out="two", workers=2)
    assert files(place / "out") == files(place / "two")


def test_train_against_heldout(place):
    """A held-out document is an item; the piece of it that train holds is found from its own
    side.
    """
    heldout = " ".join(f"word{number} of{number % 7}" for number in range(500))
    (place / "heldout.jsonl").write_text(json.dumps({"text": heldout}), "utf-8")
    (place / "train.jsonl").write_text(
        "\n".join(json.dumps({"text": text}) for text in (heldout[2000:2900], FILLER, heldout)),
        "utf-8",
    )

    def kept(**more):
        chosen = settings(place, against=(str(place / "heldout.jsonl"),), **more)
        return decontaminate(
            [place / "train.jsonl"], place / "out", chosen, executor=LocalExecutor()
        ).counts.kept

    assert kept() == 2
    assert kept(mode="overlap") == 1
    assert kept(mode="overlap", sample=4) == 1


def test_what_cannot_be_meant(place):
    with pytest.raises(BadInput, match="lies in the corpus"):
        decontaminate(
            [place / "corpus"], place / "corpus" / "out", settings(place), executor=LocalExecutor()
        )
    (place / "evals" / "e.jsonl").write_text('{"question": "Two words"}\n{"other": 1}', "utf-8")
    with pytest.raises(BadInput, match=r"2 items, 1 of them without text.*--field"):
        run(place)
    (place / "evals" / "e.jsonl").write_text("", "utf-8")
    with pytest.raises(BadInput, match="0 items"):
        run(place)


def test_a_corpus_that_changed_between_the_passes_is_noticed(place, monkeypatch):
    def changed(*arguments):
        (place / "corpus" / "a.jsonl").write_text('{"id": "new", "text": "x"}\n' * 9, "utf-8")
        return sound(*arguments)

    sound = decontaminating.document_counts
    monkeypatch.setattr(decontaminating, "document_counts", changed)
    with pytest.raises(Mismatch, match="document 0 was a0 when it was scanned and is new now"):
        run(place)


def test_a_damaged_index_is_noticed(place):
    run(place)
    index = place / "out" / "index"
    task = FileTask(
        source=place / "corpus" / "a.jsonl",
        out=place / "out",
        stem="a",
        text_field=None,
        settings=settings(place),
    )
    assert sort_file(task).kept == 3
    (index / "keys.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(
        CorruptFile, match="keys.npy: not a whole .npy file.*; build the index again"
    ):
        open_index(index)
    (index / "index.json").unlink()
    with pytest.raises(NotPublished):
        sort_file(task)
