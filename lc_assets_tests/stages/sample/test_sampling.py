"""Writing a sample and reading it back."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lc_assets.errors import BadInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.redpajama.documents import DocumentRecord
from lc_assets.formats.redpajama.signals import read_signals
from lc_assets.lake.receipts import decode_json, version_files
from lc_assets.sample.pages import PERPLEXITIES, texts_of_folder
from lc_assets.sample.writing import REPORT, SampleReport, write_sample
from lc_assets.sources.redpajama_v2 import part_path
from lc_assets.text.signals.signals import signals_of
from lc_assets.vocabulary import parse_document_id

Documents = dict[str, DocumentRecord]


def sample(target: Path, books: Path, *, workers: int = 1, **settings: Any) -> SampleReport:
    return write_sample(
        target,
        texts=texts_of_folder(books),
        executor=LocalExecutor(workers=workers),
        **settings,
    )


def listed_duplicates(target: Path) -> dict[str, str]:
    """Digest by document id, as the duplicates files have it."""
    tables = [
        pq.read_table(path).to_pydict() for path in sorted(target.glob("duplicates/*/*/*.parquet"))
    ]
    return {
        name: digest
        for table in tables
        for name, digest in zip(table["doc_id"], table["digest"], strict=True)
    }


def slow_duplicates(found: Documents) -> dict[str, str]:
    """Every document of which another with the same digest stands earlier: newer snapshot, then
    tag, then line.
    """

    def place(name: str) -> tuple[int, str, int]:
        shard, line = parse_document_id(name)
        return -int(shard.snapshot.replace("-", "")), shard.tag, line

    return {
        name: record.digest.removeprefix("sha1:")
        for name, record in found.items()
        if any(
            other.digest == record.digest and place(earlier) < place(name)
            for earlier, other in found.items()
        )
    }


def test_every_text_is_found_again_and_so_is_all_that_was_planted(
    tmp_path: Path, books: Path, read_back: Callable[[Path], Documents]
) -> None:
    """Each page stands exactly once under its own address; copies equal a page in all but their
    address; excerpts lie in a page.
    """
    report = sample(tmp_path / "s", books)
    found = read_back(tmp_path / "s")
    texts = {page.url: page for page in texts_of_folder(books).pages}
    own = {record.url: record for record in found.values() if record.url in texts}
    copies = [record for record in found.values() if record.source_domain == "mirror.invalid"]
    excerpts = [record for record in found.values() if record.source_domain == "excerpt.invalid"]
    assert {url: (record.title, record.raw_content) for url, record in own.items()} == {
        url: (page.title, page.content) for url, page in texts.items()
    }
    contents = {(page.title, page.content, page.digest) for page in texts.values()}
    assert len(copies) == 2
    assert all((copy.title, copy.raw_content, copy.digest) in contents for copy in copies)
    assert len(excerpts) == 2
    assert all(
        any(f"{part.title}\n{part.raw_content}" in page.content for page in texts.values())
        for part in excerpts
    )
    assert report.documents == {"page": 11, "duplicate": 2, "excerpt": 2}
    assert report.n_documents == len(found)


def test_the_duplicates_files_list_every_occurrence_but_the_first(
    tmp_path: Path, books: Path, read_back: Callable[[Path], Documents]
) -> None:
    """As many as were planted, and one more: a book that was in the folder twice."""
    (books / "again.txt").write_bytes((books / "book3.txt").read_bytes())
    report = sample(tmp_path / "s", books)
    listed = listed_duplicates(tmp_path / "s")
    assert listed == slow_duplicates(read_back(tmp_path / "s"))
    assert len(listed) == report.listed_duplicates == 3
    assert all(
        (tmp_path / "s" / part_path("duplicates", parse_document_id(name)[0])).exists()
        for name in read_back(tmp_path / "s")
    )


def test_records_mean_what_ccnets_mean(
    tmp_path: Path, books: Path, read_back: Callable[[Path], Documents]
) -> None:
    sample(tmp_path / "s", books, snapshots=["2023-06", "mine"])
    for name, record in read_back(tmp_path / "s").items():
        shard, _ = parse_document_id(name)
        record_bytes = f"{record.title}\n{record.raw_content}".encode()
        low, high = PERPLEXITIES[record.bucket]
        assert not record.raw_content.startswith(record.title)
        assert record.length == len(record.raw_content)
        assert (
            record.nlines
            == record.original_nlines
            == len(record.raw_content.split("\n"))
            == len(record.line_ids)
        )
        assert record.original_length == len(record_bytes)
        assert record.digest.startswith("sha1:")
        assert len(record.digest) == 37
        assert low <= record.perplexity < high
        assert 0.9 <= record.language_score <= 0.99
        assert (record.language, record.bucket) == (shard.language, shard.bucket)
        assert record.date_download.startswith(
            "2023-02-" if shard.snapshot == "2023-06" else "2000-01-"
        )
        assert record.cc_segment.startswith(f"crawl-data/LC-SAMPLE-{shard.snapshot}/")


def test_signals_are_those_of_the_text_on_the_same_line(
    tmp_path: Path, books: Path, read_back: Callable[[Path], Documents]
) -> None:
    sample(tmp_path / "s", books)
    wanted = ["rps_doc_word_count", "rps_doc_frac_unique_words", "ccnet_perplexity"]
    for name, record in read_back(tmp_path / "s").items():
        shard, line = parse_document_id(name)
        with (tmp_path / "s" / part_path("signals", shard)).open("rb") as stream:
            table = read_signals(
                stream, shard=shard, where=name, names=wanted, max_line_bytes=10**7
            )
        row = table.row_of(line)
        assert row is not None
        signals = signals_of(record.raw_content)
        assert table.values_at(row) == {
            "rps_doc_word_count": signals["rps_doc_word_count"][0][2],
            "rps_doc_frac_unique_words": signals["rps_doc_frac_unique_words"][0][2],
            "ccnet_perplexity": record.perplexity,
        }
        assert table.urls[row] == record.url


def test_the_same_texts_and_settings_give_the_same_bytes(tmp_path: Path, books: Path) -> None:
    """With one worker or two, elsewhere or once more in the same folder; and with another seed they
    do not.
    """
    one = sample(tmp_path / "one", books)
    two = sample(tmp_path / "two", books, workers=2)
    bytes_of_one = version_files(tmp_path / "one")
    assert one == two
    assert bytes_of_one == version_files(tmp_path / "two")
    assert sample(tmp_path / "one", books) == one
    assert bytes_of_one == version_files(tmp_path / "one")
    sample(tmp_path / "other", books, seed=8)
    assert bytes_of_one != version_files(tmp_path / "other")


def everything_in(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_folder_that_holds_something_else_is_refused_and_left_alone(
    tmp_path: Path, books: Path
) -> None:
    """A real download has the same names of files; it must not be written over."""
    target = tmp_path / "download"
    (target / "documents/2023-06/0000").mkdir(parents=True)
    (target / "documents/2023-06/0000/en_head.json.gz").write_bytes(b"dear")
    before = everything_in(target)
    with pytest.raises(BadInput, match=r"holds documents and no sample\.json"):
        sample(target, books)
    assert everything_in(target) == before
    (tmp_path / "file").write_text("here")
    with pytest.raises(BadInput, match="is a file"):
        sample(tmp_path / "file", books)


def test_another_sample_is_refused_and_left_alone(tmp_path: Path, books: Path) -> None:
    target = tmp_path / "s"
    sample(target, books)
    before = everything_in(target)
    with pytest.raises(BadInput, match=r"holds another sample \(seed 7 → 8\)"):
        sample(target, books, seed=8)
    (books / "new.txt").write_text("New\n" + "A line that was not there before. " * 20)
    with pytest.raises(BadInput, match="texts_sha256"):
        sample(target, books)
    assert everything_in(target) == before


class PowerCut(Exception):
    """What the executor below dies of."""


class OneTaskExecutor:
    """Runs one task and dies."""

    def run(
        self, function: Callable[[Any], Any], tasks: Sequence[Any], *, what: str
    ) -> Iterator[tuple[Any, Any]]:
        yield tasks[0], function(tasks[0])
        raise PowerCut(what)


def test_an_interrupted_sample_says_so_and_is_finished_by_the_next_run(
    tmp_path: Path, books: Path
) -> None:
    target = tmp_path / "s"
    with pytest.raises(PowerCut):
        write_sample(target, texts=texts_of_folder(books), executor=OneTaskExecutor())
    assert not decode_json(target / REPORT, SampleReport).finished
    assert not list(target.rglob(".staging-*"))
    assert sample(target, books).finished
    sample(tmp_path / "whole", books)
    assert everything_in(target) == everything_in(tmp_path / "whole")


def test_texts_that_are_all_skipped_make_no_sample(tmp_path: Path) -> None:
    (tmp_path / "books").mkdir()
    (tmp_path / "books/short.txt").write_text("short")
    with pytest.raises(
        BadInput, match="every text was skipped \\(1 shorter than 300 characters\\)"
    ):
        sample(tmp_path / "s", tmp_path / "books")


def test_the_report_names_what_was_read_and_what_was_not(tmp_path: Path, books: Path) -> None:
    (books / "notes.md").write_text("?")
    report = sample(tmp_path / "s", books)
    assert len(report.sources) == 11
    assert report.skipped == {"shorter than 300 characters": ["notes.md"]}
    assert decode_json(tmp_path / "s" / REPORT, SampleReport) == report
