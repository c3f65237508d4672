"""Signatures that lie there already: the same result as computing them, and what does not fit is
refused.
"""

import contextlib
from dataclasses import replace

import pytest

from lc_assets.errors import BadInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.redpajama.minhash import SignaturesWriter
from lc_assets.stages.deduplication.asking import Search
from lc_assets.stages.deduplication.document_signatures import sign_corpus
from lc_assets.stages.deduplication.running import deduplicate, read_summary
from lc_assets.stages.deduplication.settings import Decision
from lc_assets.stages.deduplication.signing import BANDS, OWN, ROWS, stored_signing
from lc_assets.stages.deduplication.stored_signatures import StoredSignatures
from lc_assets.text.duplicates.minhash import FAST, RPV2, signature
from lc_assets_tests.stages.deduplication.corpora import planted, write

TABLES = ("pairs", "clusters", "removed", "kept")


def search(source, out, signing, workers=1):
    return deduplicate(
        Search(
            sources=[source],
            out=out,
            signing=signing,
            executor=LocalExecutor(workers=workers),
            decision=Decision(),
        )
    )


def tables(out):
    return {name: (out / f"{name}.parquet").read_bytes() for name in TABLES}


def signed_by_redpajama(text):
    numbers = signature(text, RPV2)
    return None if numbers is None else numbers[: BANDS * ROWS].reshape(BANDS, ROWS)


COMPUTED = {
    FAST.label: OWN,
    RPV2.label: replace(
        OWN, name=f"{RPV2.label}, {BANDS} bands of {ROWS}", sign=signed_by_redpajama
    ),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder in folders; one document is too short to be signed."""
    folder = tmp_path_factory.mktemp("corpus")
    documents = [*planted(5, n=60), {"id": "short", "text": "too few words"}]
    (folder / "deep").mkdir()
    write(folder / "deep" / "a.jsonl", documents[:30])
    write(folder / "b.jsonl", documents[30:])
    return folder


@pytest.mark.parametrize(("scheme", "workers"), [(FAST, 1), (RPV2, 2)])
def test_stored_signatures_give_what_computed_ones_give(corpus, tmp_path, scheme, workers):
    """Evidence and decision to the last byte, by name of the scheme too: an index of one can be
    gone on from with the other.
    """
    sign_corpus([corpus], tmp_path / "signatures", executor=LocalExecutor(), scheme=scheme)
    search(corpus, tmp_path / "computed", COMPUTED[scheme.label])
    search(corpus, tmp_path / "stored", stored_signing(tmp_path / "signatures"), workers)
    assert tables(tmp_path / "stored") == tables(tmp_path / "computed")
    one, two = (read_summary(tmp_path / name) for name in ("stored", "computed"))
    assert one == two
    assert one.counts.dropped["near duplicate"] > 0
    assert one.work["too few words to be signed"] >= 1


def write_signatures(path, documents, scheme):
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(SignaturesWriter(path, scheme.label)) as writer:
        for document in documents:
            writer.add(document["id"], "shard", signature(document["text"], scheme))


@pytest.mark.parametrize("below", ["", "minhash/"])
def test_published_signatures_are_found_by_the_shards_that_ids_name(tmp_path, below):
    """The documents of two shards in one file of another name; each shard's signatures in another
    order.
    """
    shards = [f"2023-06/000{n}/en_head" for n in (0, 1)]
    documents = [d | {"id": f"{shards[n % 2]}.json.gz/{n}"} for n, d in enumerate(planted(6, n=40))]
    write(tmp_path / "mine.jsonl", documents)
    for shard in shards:
        own = [document for document in documents if document["id"].startswith(shard)]
        write_signatures(tmp_path / f"published/{below}{shard}.minhash.parquet", own[::-1], RPV2)
    search(tmp_path / "mine.jsonl", tmp_path / "computed", COMPUTED[RPV2.label])
    search(tmp_path / "mine.jsonl", tmp_path / "stored", stored_signing(tmp_path / "published"))
    assert tables(tmp_path / "stored") == tables(tmp_path / "computed")


def test_the_same_bands_as_signing(tmp_path):
    text = " ".join(f"word{number}" for number in range(50))
    write_signatures(
        tmp_path / "a.minhash.parquet",
        [{"id": "x", "text": text}, {"id": "short", "text": "short"}],
        FAST,
    )
    stored = StoredSignatures(tmp_path, "a", BANDS)
    assert stored.of("x").tolist() == OWN.sign(text).tolist()
    assert stored.of("short") is None


def test_what_does_not_fit_is_refused(tmp_path):
    documents = planted(8, n=10)
    write(tmp_path / "a.jsonl", documents)
    out, folder = tmp_path / "out", tmp_path / "signatures"
    folder.mkdir()
    with pytest.raises(BadInput, match="signatures: holds no .*; make them: lc minhash IN"):
        stored_signing(folder)
    write_signatures(folder / "a.minhash.parquet", documents[:-1], FAST)
    with pytest.raises(
        BadInput, match=f"{documents[-1]['id']}: has no signature in .*; sign its file"
    ):
        search(tmp_path / "a.jsonl", out, stored_signing(folder))
    write_signatures(folder / "a.minhash.parquet", [*documents, documents[0]], FAST)
    with pytest.raises(BadInput, match=f"signs two documents called {documents[0]['id']}"):
        search(tmp_path / "a.jsonl", out, stored_signing(folder))
    write_signatures(folder / "b.minhash.parquet", documents, RPV2)
    with pytest.raises(BadInput, match="made by several schemes, which do not compare"):
        stored_signing(folder)


def test_an_index_of_another_scheme_is_not_gone_on_from(corpus, tmp_path):
    sign_corpus([corpus], tmp_path / "signatures", executor=LocalExecutor(), scheme=RPV2)
    search(corpus / "deep", tmp_path / "older", OWN)
    signing = stored_signing(tmp_path / "signatures")
    newer = Search(
        sources=[corpus / "b.jsonl"],
        out=tmp_path / "out",
        signing=signing,
        executor=LocalExecutor(),
        against=tmp_path / "older",
    )
    with pytest.raises(BadInput, match="evidence of the two cannot be joined"):
        deduplicate(newer)
