"""Files against evaluation sets: which documents are left, and what is published about the
others.
"""

import gzip
import json
import shutil

import pyarrow.parquet as pq
import pytest

from lc_assets.builds.settings.common import DecontaminationSettings
from lc_assets.counts import Counts
from lc_assets.errors import BadInput, CorruptFile, Mismatch, NotPublished
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.gram_index_files import open_index
from lc_assets.stages.file_lakes import build_for, context_over_files, counts_of

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


class Result:
    """What decontaminating files published.

    Attributes:
        counts: documents read, left, and why the others are not.
        found: folder of `contaminated_documents`.
        clean: folder of `clean_documents`.
    """

    def __init__(self, built):
        self.counts: Counts = counts_of(built)
        self.found, self.clean = (
            next(iter(built[stage].values())).published.folder
            for stage in ("contaminated_documents", "clean_documents")
        )

    @property
    def items(self):
        return table(self.found / "items.parquet")

    @property
    def documents(self):
        contents = [
            gzip.decompress(path.read_bytes()) for path in sorted(self.clean.glob("*.jsonl.gz"))
        ]
        return [json.loads(line) for content in contents for line in content.splitlines()]

    @property
    def ids(self):
        return [document["id"] for document in self.documents]


def table(path):
    return pq.read_table(path).to_pylist()


def run(place, out="out", workers=1, source="corpus", **more):
    context = context_over_files(
        [place / source],
        place / out,
        executor=LocalExecutor(workers=workers),
        settings={"contaminated_documents": settings(place, **more)},
    )
    return Result(build_for(context, "clean_documents"))


def test_the_question_is_removed_with_its_document_and_everything_is_accounted_for(place):
    result = run(place)
    assert (result.counts.seen, result.counts.kept) == (12, 6)
    assert result.counts.dropped == {"contaminated": 2, "no text": 2, "not JSON": 2}
    assert sorted(line["verdict"] for line in result.items) == [
        "clean",
        "contaminated",
        "too short",
        "touched",
    ]
    assert result.ids == ["a0", "a2", "a3", "b0", "b2", "b3"]
    assert result.documents[0] == {"id": "a0", "n": 0, "raw_content": f"{FILLER} {FOOTER}"}


def test_items_and_evidence_say_how_much_and_where(place):
    result = run(place)
    lines = {line["item_id"]: line for line in result.items}
    whole = lines["e.jsonl#0"]
    assert (
        whole["verdict"],
        whole["documents"],
        whole["condemned_documents"],
        whole["best_coverage"],
    ) == ("contaminated", 4, 2, 1.0)
    assert whole["longest_words"] == whole["words"] == len(QUESTION.split())
    text = f"“{QUESTION.upper()}?” {FOOTER}"
    assert (whole["best_document"], text[whole["start"] : whole["end"]]) == (
        "corpus/a/a1",
        QUESTION.upper(),
    )
    assert lines["e.jsonl#1"]["documents"] == 6
    evidence = table(result.found / "a.contamination.parquet")
    assert [(line["id"], line["item"], line["condemned"]) for line in evidence] == [
        ("corpus/a/a0", 1, False),
        ("corpus/a/a1", 0, True),
        ("corpus/a/a1", 1, False),
        ("corpus/a/a2", 1, False),
        ("corpus/a/a2", 0, False),
    ]
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
    assert run(place, **more).ids == kept


def test_common_n_grams_are_listed_with_how_often(place):
    common = table(run(place, ignore_common=5).found / "common.parquet")
    assert common[0]["documents"] == 6
    assert common[0]["words"] in FOOTER
    assert {line["ignored"] for line in common if line["words"] in FOOTER} == {True}
    assert {line["ignored"] for line in common if line["words"] in QUESTION.lower()} == {False}


def test_cutting_keeps_the_rest(place):
    result = run(place, action="cut")
    assert result.counts.kept == 8
    assert result.counts.extra["documents cut"] == 2
    assert result.counts.extra["characters cut"] == 2 * len(QUESTION)
    kept = {document["id"]: document for document in result.documents}
    assert kept["a1"]["raw_content"] == f"“?” {FOOTER}"


def test_workers_do_not_show(place):
    one, two = run(place), run(place, out="two", workers=2)
    for folder in ("found", "clean"):
        ours, theirs = getattr(one, folder), getattr(two, folder)
        names = sorted(path.name for path in ours.iterdir() if path.name != "receipt.json")
        for name in names:
            if (ours / name).is_file():
                assert (ours / name).read_bytes() == (theirs / name).read_bytes()


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
        against = (str(place / "heldout.jsonl"),)
        return run(place, source="train.jsonl", against=against, **more).counts.kept

    assert kept() == 2
    assert kept(mode="overlap") == 1
    assert kept(mode="overlap", sample=4) == 1


def test_another_threshold_scans_nothing_again(place):
    """Only what depends on the threshold is built again: the filtered documents are those there."""
    run(place)
    context = context_over_files(
        [place / "corpus"],
        place / "out",
        executor=LocalExecutor(),
        settings={"contaminated_documents": settings(place, threshold=0.2)},
    )
    built = build_for(context, "clean_documents")
    assert built["filtered_documents"]["corpus"].reused
    assert not built["contaminated_documents"]["corpus"].reused


def test_the_output_is_input_of_the_next_command(place):
    """What a second run drops is added to what the first one dropped; ids and fields stay."""
    first = run(place)
    again = run(place, out="again", source="out", threshold=0.2)
    assert again.counts.seen == first.counts.kept
    assert again.ids == ["a3", "b3"]
    assert again.documents[0] == {"id": "a3", "n": 3, "raw_content": FILLER}


def test_documents_without_an_id_keep_theirs_through_commands(place):
    (place / "corpus" / "c.jsonl").write_text(
        "not JSON\n" + json.dumps({"text": FILLER}) + "\n", "utf-8"
    )
    run(place)
    again = run(place, out="again", source="out")
    assert again.ids[-2:] == ["b3", "corpus/c/line-1"]


def test_unusable_input_is_refused(place):
    with pytest.raises(BadInput, match="which is read: name a folder elsewhere"):
        run(place, out="corpus/out")
    (place / "mine").mkdir()
    (place / "mine" / "letter.txt").write_text("dear", "utf-8")
    with pytest.raises(BadInput, match=r"holds letter\.txt, which no stage wrote"):
        run(place, out="mine")
    run(place)
    shutil.copytree(place / "corpus", place / "other")
    with pytest.raises(BadInput, match="was made of other input, corpus"):
        run(place, source="other")
    (place / "evals" / "e.jsonl").write_text('{"question": "Two words"}\n{"other": 1}', "utf-8")
    with pytest.raises(BadInput, match=r"2 items, 1 of them without text.*--field"):
        run(place, out="third")
    (place / "evals" / "e.jsonl").write_text("", "utf-8")
    with pytest.raises(BadInput, match="0 items"):
        run(place, out="fourth")


def test_a_damaged_index_is_noticed(place):
    index = run(place).found / "index"
    (index / "keys.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(
        CorruptFile, match="keys.npy: not a whole .npy file.*; build the index again"
    ):
        open_index(index)
    (index / "index.json").unlink()
    with pytest.raises(NotPublished):
        open_index(index)


def test_files_without_a_text_are_refused_with_their_fields(place):
    (place / "wrong.jsonl").write_text('{"body": "a page"}\n', "utf-8")
    with pytest.raises(BadInput, match=r"the fields of wrong\.jsonl are body.*--text-field"):
        run(place, source="wrong.jsonl")


def test_a_file_that_changed_while_it_was_read_is_noticed(place, monkeypatch):
    from lc_assets.stages.deduplication import removed_documents

    def changed(*arguments):
        (place / "corpus" / "a.jsonl").write_text('{"id": "new", "text": "x"}\n' * 9, "utf-8")
        return sound(*arguments)

    sound = removed_documents.contaminated
    monkeypatch.setattr(removed_documents, "contaminated", changed)
    with pytest.raises(Mismatch, match="has changed since the manifest was made"):
        run(place)
