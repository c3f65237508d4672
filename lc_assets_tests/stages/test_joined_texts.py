"""Packs of a plain corpus: spans are the whole text, parts are the pages, nothing is lost, and
nothing but the content matters.
"""

import gzip
import json
from itertools import pairwise

import numpy as np
import pytest

from lc_assets.counts import Counts
from lc_assets.errors import BadInput, CorruptFile, Mismatch
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.packing.similarity import Similarity
from lc_assets.stages.packing import joined_texts
from lc_assets.stages.packing.joined_texts import publish_packed
from lc_assets.stages.packing.similar_packing import SimilarSettings, pack_similar
from lc_assets_tests.builders import WORDS

ONE = LocalExecutor(workers=1)
SIMILAR = SimilarSettings(max_tokens=400, similarity=Similarity(max_similarity=1.0))


def lines_of(out):
    return [
        json.loads(line)
        for path in sorted((out / "documents").glob("*.gz"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]


def topics(n_pages=40):
    """Pages of four topics, each of words of its own and some of all."""
    drawn = np.random.default_rng(2)
    kinds = [[f"{word}{kind}" for word in WORDS[20:60]] for kind in ("ing", "ness", "able", "ful")]
    return [
        {
            "id": f"t{n % 4}/{n}",
            "url": f"https://example.org/{n}",
            "text": (
                "\n "
                f"Page.\n{' '.join([*drawn.choice(kinds[n % 4], 30), *drawn.choice(WORDS[:20], 10)])} "
                "\n"
            ),
        }
        for n in range(n_pages)
    ]


def write(path, records):
    data = "".join(f"{json.dumps(record)}\n" for record in records).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def assert_sound(documents, texts, *, root):
    """Spans touch and are the whole text; one root, whose id is the document's; each part is its
    page.
    """
    for document in documents:
        spans = document["spans"]
        assert [span["start"] for span in spans] == [0, *(span["stop"] for span in spans[:-1])]
        assert spans[-1]["stop"] == len(document["text"])
        (chosen,) = [span for span in spans if span["role"] == "root"]
        assert chosen is (spans[0] if root == "first" else spans[-1])
        assert (document["id"], document["url"]) == (chosen["child_id"], chosen["url"])
        assert document["n_tokens"] == sum(span["n_tokens"] for span in spans)
        for span in spans:
            assert (
                document["text"][span["start"] : span["stop"]].removesuffix("\n\n")
                == texts[span["child_id"]]
            )


@pytest.fixture
def pages(tmp_path):
    """Forty pages in three files, one of them twice, one without words; and a line that is none."""
    records = topics()
    folder = tmp_path / "pages"
    write(folder / "a.jsonl", [*records[:11], records[3]])
    write(folder / "b.jsonl.gz", records[11:30])
    path = write(folder / "c.jsonl", [*records[30:], {"id": "blank", "text": " \n "}])
    path.write_bytes(path.read_bytes() + b"no json\n")
    return folder, records


def test_similar_pages_are_packed_whole_and_everything_is_accounted_for(pages, tmp_path):
    folder, records = pages
    packed = pack_similar([folder], tmp_path / "out", SIMILAR, executor=ONE)
    documents = lines_of(tmp_path / "out")
    assert (packed.seen, packed.kept, packed.packs) == (43, 40, len(documents))
    assert packed.dropped == {"the same page again": 1, "empty": 1, "not JSON": 1}
    assert sorted(
        span["child_id"] for document in documents for span in document["spans"]
    ) == sorted(record["id"] for record in records)
    assert_sound(
        documents, {record["id"]: record["text"].strip() for record in records}, root="first"
    )
    tokenizer = gpt2_tokenizer(True)
    assert all(len(tokenizer.encode(document["text"])) <= 400 for document in documents)
    assert json.loads((tmp_path / "out/summary.json").read_text())["kept"] == 40


def test_each_pack_is_of_one_topic(pages, tmp_path):
    """And full, as far as whole pages go: ten pages of a topic, of some sixty tokens."""
    pack_similar([pages[0]], tmp_path / "out", SIMILAR, executor=ONE)
    documents = lines_of(tmp_path / "out")
    assert all(
        len({span["child_id"][:2] for span in document["spans"]}) == 1 for document in documents
    )
    assert len(documents) <= 12


def test_neither_files_nor_their_order_nor_workers_matter(pages, tmp_path):
    """The same bytes from one file turned round, by two workers, and where a run was killed
    before.
    """
    folder, records = pages
    write(tmp_path / "other/z.jsonl", [records[3], *reversed(records)])
    (tmp_path / ".staging-spool-two").mkdir()
    (tmp_path / ".staging-spool-two" / "000009.parquet").write_text("of a killed run")
    first = pack_similar([folder], tmp_path / "one", SIMILAR, executor=ONE)
    second = pack_similar(
        [tmp_path / "other"], tmp_path / "two", SIMILAR, executor=LocalExecutor(workers=2)
    )
    assert (tmp_path / "one/documents/00000.jsonl.gz").read_bytes() == (
        tmp_path / "two/documents/00000.jsonl.gz"
    ).read_bytes()
    assert first.after == second.after
    assert not list(tmp_path.glob(".staging*"))


def test_ids_that_two_pages_share_are_two_pages(tmp_path):
    """Records without ids are named by their files, and files of one name may lie in two
    folders.
    """
    for name in ("x", "y"):
        write(tmp_path / "in" / name / "part.jsonl", [{"text": f"alpha beta gamma {name}"}])
    packed = pack_similar([tmp_path / "in"], tmp_path / "out", SIMILAR, executor=ONE)
    assert packed.kept == 2


def test_packs_fill_several_files_and_old_ones_go(pages, tmp_path, monkeypatch):
    """Of a run before, with smaller packs."""
    monkeypatch.setattr(joined_texts, "DOCUMENTS_PER_FILE", 3)
    few = SimilarSettings(max_tokens=200)
    pack_similar([pages[0]], tmp_path / "out", few, executor=ONE)
    before = len(list((tmp_path / "out/documents").glob("*")))
    pack_similar([pages[0]], tmp_path / "out", SimilarSettings(max_tokens=10**6), executor=ONE)
    after = list((tmp_path / "out/documents").glob("*"))
    assert len(after) < before
    assert len({document["id"] for document in lines_of(tmp_path / "out")}) == len(
        lines_of(tmp_path / "out")
    )


def test_a_path_packs_all_pages_too(pages, tmp_path):
    settings = SimilarSettings(max_tokens=400, similarity=Similarity(path=True, max_similarity=1.0))
    assert pack_similar([pages[0]], tmp_path / "out", settings, executor=ONE).kept == 40


def test_an_unknown_tokenizer_is_refused_and_nothing_is_left(pages, tmp_path):
    settings = SimilarSettings(max_tokens=10, tokenizer="no-such")
    with pytest.raises(BadInput, match="no tokenizer 'no-such'"):
        pack_similar([pages[0]], tmp_path / "out", settings, executor=ONE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pages"]


def test_a_damaged_file_is_named_and_nothing_is_left(pages, tmp_path):
    path = pages[0] / "b.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorruptFile, match="b.jsonl.gz"):
        pack_similar([pages[0]], tmp_path / "out", SIMILAR, executor=ONE)
    assert not (tmp_path / "out").exists()


def test_a_lost_part_is_noticed(tmp_path):
    with pytest.raises(Mismatch, match="2 parts were kept, and packs hold 0"):
        publish_packed(
            tmp_path, tmp_path, [], Counts(seen=2, kept=2), root="first", max_tokens=5, executor=ONE
        )


def test_real_pages_are_packed_closer_than_by_chance(shared_data, tmp_path):
    """Manuals of three programs: by chance, two pages in a row are of one manual in 45 cases of
    100.
    """
    sources = sorted((shared_data / "hyperlinked").glob("pages_*.jsonl.gz"))
    packed = pack_similar(
        sources, tmp_path / "out", SimilarSettings(max_tokens=16_384), executor=ONE
    )
    assert packed.kept == packed.seen == 1252
    assert sum(count.n_tokens for count in packed.before) == sum(
        count.n_tokens for count in packed.after
    )
    documents = [document for document in lines_of(tmp_path / "out") if len(document["spans"]) > 1]
    manuals = [
        [span["child_id"].partition("/")[0] for span in document["spans"]] for document in documents
    ]
    pairs = [first == second for names in manuals for first, second in pairwise(names)]
    assert np.mean(pairs) > 0.8
    tokenizer = gpt2_tokenizer(True)
    assert max(len(tokenizer.encode(document["text"])) for document in documents) <= 16_384
