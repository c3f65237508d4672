"""Paragraphs that several documents have: against doing it document by document in memory."""

import pytest

from lc_assets_tests.stages.deduplication.corpora import (
    deduplicate,
    drawing,
    lines,
    own,
    words,
    write,
)


def made_up(seed, n=40):
    """Documents of some lines each, out of a few dozen different ones, some too short to matter,
    some with surprises.
    """
    draw = drawing(seed)
    shelf = [" ".join(words(draw, draw.choice([1, 8, 30]))) for _ in range(60)] + [
        "\U0001f600" * 60,
        "\u05d0 " * 40,
        "",
        "  ",
    ]
    return [
        {
            "id": f"d{number:03d}",
            "text": "\n".join(f" {draw.choice(shelf)}" for _ in range(draw.randrange(1, 8))),
            "date_download": f"20{draw.randrange(14, 24)}-01-01",
            "kind": number,
        }
        for number in range(n)
    ]


def plainly(documents, least_chars):
    """Newest first: a long line that an earlier document had is removed."""
    seen, edited = {}, {}
    by_id = sorted(documents, key=lambda d: (d["kind"] % 2, d["id"]))  # a shard's name begins an id
    for document in sorted(by_id, key=lambda d: d["date_download"], reverse=True):
        kept, own = [], set()
        for line in document["text"].splitlines(keepends=True):
            bare = line.strip()
            if len(bare) < least_chars or bare not in seen:
                kept.append(line)
                own.add(bare)
        seen |= dict.fromkeys(own)
        edited[document["id"]] = "".join(kept)
    return edited


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_preferred_document_has_is_removed_from_the_others(tmp_path, seed, workers):
    documents = made_up(seed)
    for part in range(2):
        write(tmp_path / f"in/part{part}.jsonl", documents[part::2])
    whole = deduplicate([tmp_path / "in"], tmp_path / "whole", near=False, exact=("text",))
    found = deduplicate(
        [tmp_path / "in"],
        tmp_path / "out",
        workers=workers,
        near=False,
        exact=("text",),
        paragraphs=40,
    )
    kept = {d["id"] for d in whole.documents}
    expected = plainly([d for d in documents if d["id"] in kept], 40)
    originals = {d["id"]: d for d in documents}
    assert {d["id"]: d["text"] for d in found.documents} == {
        name: text
        for name, text in expected.items()
        if text.strip() or not originals[name]["text"].strip()
    }
    assert all(d["kind"] == originals[d["id"]]["kind"] for d in found.documents), (
        "other fields are carried along"
    )
    counts = found.built["clean_documents"]["in"].counts
    assert counts.extra["characters"] == sum(len(d["text"]) for d in found.documents)
    for line in lines(found.folder("clean_documents") / "paragraphs.parquet"):
        name, first = own(line["id"]), own(line["first_id"])
        paragraph = originals[name]["text"][line["start"] : line["end"]].strip()
        assert originals[first]["text"][line["first_start"] :].lstrip().startswith(paragraph)
        assert name != first


def test_written_files_hold_neither_the_clock_nor_a_name(tmp_path):
    """So that the same documents give the same bytes: flags and time in the gzip header are
    zero.
    """
    found = deduplicate(
        [write(tmp_path / "a.jsonl", made_up(0))], tmp_path / "out", near=False, paragraphs=40
    )
    (path,) = found.folder("clean_documents").glob("*.gz")
    assert path.read_bytes()[3:8] == bytes(5)


def test_what_one_document_has_twice_stays(tmp_path):
    line = "a line that is long enough to be looked at"
    source = write(tmp_path / "in.jsonl", [{"id": "a", "text": f"{line}\n{line}"}])
    found = deduplicate([source], tmp_path / "out", near=False, paragraphs=10)
    assert found.documents == [{"id": "a", "text": f"{line}\n{line}"}]
