"""Paragraphs that several documents have: against doing it document by document in memory."""

import gzip
import json

import pytest

from lc_assets.errors import BadInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.stages.deduplication.paragraphs import remove_paragraphs
from lc_assets.stages.deduplication.running import deduplicate
from lc_assets.stages.deduplication.settings import Decision
from lc_assets_tests.stages.deduplication.corpora import drawing, lines, search, words, write

BY_TEXT = Decision(by=("text",), prefer=("newest",))


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
    """Newest first: a long line that an earlier document had goes."""
    seen, edited = {}, {}
    for document in sorted(
        sorted(documents, key=lambda d: d["id"]), key=lambda d: d["date_download"], reverse=True
    ):
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
def test_what_an_earlier_document_has_goes_from_the_later_ones(tmp_path, seed, workers):
    documents = made_up(seed)
    parts = [write(tmp_path / f"{part}.jsonl", documents[part::2]) for part in range(2)]
    deduplicate(search(parts, tmp_path / "out", decision=BY_TEXT))
    kept = {line["id"] for line in lines(tmp_path / "out/kept.parquet")}
    counts = remove_paragraphs(
        tmp_path / "out", executor=LocalExecutor(workers=workers), least_chars=40
    )
    expected = plainly([d for d in documents if d["id"] in kept], 40)
    paths = [tmp_path / f"out/documents/{part:05d}.jsonl.gz" for part in range(2)]
    written = [
        json.loads(line)
        for path in paths
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    assert {d["id"]: d["text"] for d in written} == {
        name: text for name, text in expected.items() if text.strip()
    }
    originals = {d["id"]: d for d in documents}
    assert all(d["kind"] == originals[d["id"]]["kind"] for d in written), (
        "other fields are carried along"
    )
    assert counts.seen == len(kept)
    assert (
        counts.extra["characters"]
        == counts.extra["characters written"] + counts.extra["characters removed"]
    )
    assert counts.extra["characters written"] == sum(len(d["text"]) for d in written)
    for line in lines(tmp_path / "out/paragraphs.parquet"):
        paragraph = originals[line["id"]]["text"][line["start"] : line["end"]].strip()
        assert (
            originals[line["first_id"]]["text"][line["first_start"] :]
            .lstrip()
            .startswith(paragraph)
        )
        assert line["id"] != line["first_id"]


def test_written_files_hold_neither_the_clock_nor_a_name(tmp_path):
    """So that the same documents give the same bytes: flags and time in the gzip header are
    zero.
    """
    deduplicate(
        search([write(tmp_path / "a.jsonl", made_up(0))], tmp_path / "out", decision=BY_TEXT)
    )
    remove_paragraphs(tmp_path / "out", executor=LocalExecutor(), least_chars=40)
    (path,) = (tmp_path / "out/documents").glob("*.gz")
    assert path.read_bytes()[3:8] == bytes(5)


def test_what_one_document_has_twice_stays(tmp_path):
    line = "a line that is long enough to be looked at"
    source = write(tmp_path / "in.jsonl", [{"id": "a", "text": f"{line}\n{line}"}])
    deduplicate(search([source], tmp_path / "out", decision=BY_TEXT))
    assert (
        remove_paragraphs(tmp_path / "out", executor=LocalExecutor(), least_chars=10).extra[
            "characters removed"
        ]
        == 0
    )


def test_it_is_refused_after_a_search_in_parts(tmp_path):
    parts = [write(tmp_path / f"{part}.jsonl", made_up(part)) for part in range(2)]
    deduplicate(search(parts[:1], tmp_path / "one", decision=BY_TEXT))
    deduplicate(search(parts[1:], tmp_path / "two", decision=BY_TEXT, against=tmp_path / "one"))
    with pytest.raises(BadInput, match="within one search only"):
        remove_paragraphs(tmp_path / "two", executor=LocalExecutor())
