"""`lc decontaminate`: what it prints, and what it refuses."""

import json

import pytest

QUESTION = (
    "In which year did the keeper of the northern lighthouse first write down the names of "
    "all ships that passed him"
)


@pytest.fixture
def place(tmp_path):
    texts = [QUESTION, "Something else altogether.", f"Before it. {QUESTION} And after it, too."]
    (tmp_path / "corpus.jsonl").write_text(
        "\n".join(json.dumps({"text": text}) for text in texts), "utf-8"
    )
    (tmp_path / "evals.jsonl").write_text(
        json.dumps({"question": QUESTION, "answer": "1871"}) + '\n{"question": "Why?"}', "utf-8"
    )
    return tmp_path


def test_the_summary_balances_and_names_the_worst(lc, place):
    said = lc(
        "decontaminate",
        place / "corpus.jsonl",
        place / "out",
        "--against",
        place / "evals.jsonl",
        "--workers",
        1,
    )
    assert said.code == 0
    assert "dropped: contaminated  2" in said.out
    assert "2: 1 contaminated, 1 too short" in said.out
    assert "evals.jsonl#0" in said.out
    assert "3 documents = 1 kept + 2 dropped" in said.out
    assert f"{place}/out: documents in clean_documents" in said.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--mode", "most"], "Invalid enum value 'most'"),
        (["--threshold", "0"], "not a setting of DecontaminationSettings"),
        (["--threshold", "nan"], "not a setting of DecontaminationSettings"),
        (["--field", "none"], "name others with --field"),
        (["--against", "nowhere"], "does not exist"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence_and_2(lc, place, words, complaint):
    said = lc(
        "decontaminate",
        place / "corpus.jsonl",
        place / "out",
        "--against",
        place / "evals.jsonl",
        "--workers",
        1,
        *words,
    )
    assert (said.code, said.out) == (2, "")
    assert complaint in said.err


def test_one_path_alone_is_not_enough(lc, place):
    said = lc("decontaminate", place / "corpus.jsonl", "--against", place / "evals.jsonl")
    assert said.code == 2
    assert "where to write" in said.err
