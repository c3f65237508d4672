"""`signatures`: published ones joined by id, computed ones where they lack, and files of plain
corpora.
"""

import contextlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.building import check_input_of
from lc_assets.builds.checks import documents_files
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.settings.documents import (
    NearDuplicateSettings,
    RawSettings,
    SignatureSettings,
)
from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.errors import Mismatch
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.redpajama.minhash import SignaturesWriter, read_signatures, scheme_label_of
from lc_assets.sources import redpajama_v2
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.deduplication import document_signatures as signing, facts as facts_module
from lc_assets.stages.deduplication.index import facts_path
from lc_assets.stages.deduplication.signing import MINHASH_SUFFIX
from lc_assets.stages.documents import document_keys as keying, keyed_texts
from lc_assets.stages.file_lakes import build_for, context_over_files, counts_of
from lc_assets.text.duplicates.minhash import FAST, RPV2, signature
from lc_assets.vocabulary import Shard, parse_snapshot
from lc_assets_tests.builders import (
    TAGS,
    deduplication,
    tiny_context,
    tiny_documents,
    tiny_upstream,
)
from lc_assets_tests.reference.minhash import signatures_of

SNAPSHOT = parse_snapshot("2023-06")
WITH_MINHASH = RawSettings(languages=("en",), minhash=True)


def publish_signatures(upstream, tag, *, leave_out=(), change=lambda numbers: numbers):
    """A published file, back to front: it is joined by id, not by place."""
    shard = Shard.parse(f"{SNAPSHOT}/{tag}")
    path = upstream / redpajama_v2.part_path("minhash", shard)
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(SignaturesWriter(path, RPV2.label)) as writer:
        found = {
            shard.document_id(line): signature(record.raw_content, RPV2)
            for line, record in reversed(list(enumerate(tiny_documents(shard))))
            if line not in leave_out
        }
        changed = [None if it is None else change(it) for it in found.values()]
        writer.add(signatures_of(list(found), changed), f"{shard.tag}.json.gz")
    return path


def built(tmp_path, upstream, **settings):
    context = tiny_context(
        tmp_path,
        upstream=upstream,
        raw_snapshot=WITH_MINHASH,
        **deduplication(**settings),
    )
    stage_named("raw_snapshot").build(context, SNAPSHOT)
    stage_named("filtered_documents").build(context, SNAPSHOT)
    return stage_named("document_signatures").build(context, SNAPSHOT)


def contents(made):
    return {
        path.name: path.read_bytes()
        for path in sorted(made.published.folder.glob("*.minhash.parquet"))
    }


def test_published_and_computed_signatures_are_the_same_bytes(tmp_path):
    """One shard is published whole, one lacks documents, one is not there: the tables do not show
    which.
    """
    upstream = tiny_upstream(tmp_path / "upstream")
    publish_signatures(upstream, TAGS[0])
    publish_signatures(upstream, TAGS[1], leave_out=(0, 3))
    joined = built(tmp_path / "a", upstream)
    computed = built(tmp_path / "b", upstream, signatures="computed")
    assert contents(joined) == contents(computed)
    assert len(contents(joined)) == len(TAGS)
    extra = joined.counts.extra
    assert (
        extra["signatures published"],
        extra["signatures computed"],
        extra["texts shorter than a shingle"],
    ) == (9 + 7, 2 + 9, 0)
    assert (extra["published signatures checked"], extra["published signatures that differ"]) == (
        8,
        0,
    )
    assert joined.counts.seen == 27
    assert computed.counts.extra["signatures published"] == 0
    assert all(finding.passed for finding in joined.findings)


def test_other_signatures_upstream_are_told(tmp_path):
    """Read as they are, and a warning says that they are not what the text gives."""
    upstream = tiny_upstream(tmp_path / "upstream")
    publish_signatures(upstream, TAGS[0], change=lambda numbers: numbers ^ np.uint32(1))
    made = built(tmp_path / "a", upstream)
    found = next(
        finding for finding in made.findings if finding.check == "the_published_signatures_are_ours"
    )
    assert (found.passed, found.severity) == (False, "warning")
    assert "4 of 4 that were checked differ" in found.message


def test_a_broken_file_upstream_is_counted_and_computed(tmp_path):
    upstream = tiny_upstream(tmp_path / "upstream")
    path = publish_signatures(upstream, TAGS[0])
    path.write_bytes(path.read_bytes()[:-30])
    made = built(tmp_path / "a", upstream)
    assert contents(made) == contents(built(tmp_path / "b", upstream, signatures="computed"))
    assert made.counts.extra["published files broken"] == 1


def test_the_fast_scheme_is_named_in_the_files(tmp_path):
    made = built(tmp_path / "a", tiny_upstream(tmp_path / "upstream"), signatures="fast")
    path = made.published.folder / "0000-en_head.minhash.parquet"
    assert scheme_label_of(path, where="here") == FAST.label
    assert next(
        finding for finding in made.findings if finding.check == "one_scheme_signed_all"
    ).passed


@pytest.mark.parametrize(("minhash", "label"), [(False, FAST.label), (True, RPV2.label)])
def test_signatures_are_the_fast_ones_unless_published_ones_are_read(tmp_path, minhash, label):
    """Every recipe has one scheme: also the files that upstream lacks are signed by its own."""
    upstream = tiny_upstream(tmp_path / "upstream")
    publish_signatures(upstream, TAGS[0])
    context = tiny_context(
        tmp_path / "lake", upstream=upstream, raw_snapshot=RawSettings(minhash=minhash)
    )
    for stage in ("raw_snapshot", "filtered_documents", "document_signatures"):
        made = stage_named(stage).build(context, SNAPSHOT)
    paths = made.published.folder.glob("*.minhash.parquet")
    assert {scheme_label_of(path, where="here") for path in paths} == {label}


def counted(work, n_texts):
    """A function of texts that lie one behind the other, which says how many they are."""

    def count(*args):
        ends = args[-1] if len(args) > 1 else args[0].raw[1]
        n_texts.append(len(ends))
        return work(*args)

    return count


def test_a_text_is_sketched_and_digested_once(tmp_path, monkeypatch):
    """As it is signed: `document_keys` reads the sketches and digests, except for its check; it
    makes the same ones itself where nothing is signed.
    """
    upstream, made_of, again = tiny_upstream(tmp_path / "upstream"), {}, []
    for name in ("sketched", "digests_of"):
        plain = getattr(keyed_texts, name)
        monkeypatch.setattr(keyed_texts, name, counted(plain, again))
    for near in (False, True):
        context = tiny_context(
            tmp_path / f"lake-{near}",
            upstream=upstream,
            near_duplicate_pairs=NearDuplicateSettings(near=near),
        )
        signed = ["document_signatures"] if near else []
        for name in ("raw_snapshot", "filtered_documents", *signed, "document_keys"):
            made = stage_named(name).build(context, SNAPSHOT)
        folder = made.published.folder
        made_of[near] = (
            pq.read_table(folder / keying.DOCUMENTS_FILE),
            (folder / keying.SKETCHES_FILE).read_bytes(),
        )
        n_again, n_made = keying.DIGESTS_AGAIN, made.counts.kept
        assert sum(again) == (n_again if near else 2 * (n_again + n_made))
        again.clear()
    assert made_of[False] == made_of[True]


def test_every_digest_and_sketch_is_compared_with_those_of_signing(tmp_path, monkeypatch):
    """Also those of a text that is not read again."""
    monkeypatch.setattr(keying, "DIGESTS_AGAIN", 0)
    context = tiny_context(tmp_path, upstream=tiny_upstream(tmp_path / "upstream"))
    for name in ("raw_snapshot", "filtered_documents", "document_signatures", "document_keys"):
        made = stage_named(name).build(context, SNAPSHOT).published
    checked = check_input_of(context.lake, made)
    assert keying.the_documents_are_those_filtered(checked).passed
    listed, sketched = (
        made.folder / name for name in (keying.DOCUMENTS_FILE, keying.SKETCHES_FILE)
    )
    table, sketches = pq.read_table(listed), np.load(sketched)
    digests = table["tokenized_digest"].to_pylist()
    middle = len(digests) // 2
    other = [*digests[:middle], digests[0], *digests[middle + 1 :]]
    place = table.schema.get_field_index("tokenized_digest")
    listed.unlink()
    pq.write_table(table.set_column(place, "tokenized_digest", pa.array(other)), listed)
    assert not keying.the_documents_are_those_filtered(checked).passed
    pq.write_table(table, listed)
    assert keying.the_documents_are_those_filtered(checked).passed
    sketches[middle, 0] += 1
    sketched.unlink()
    np.save(sketched, sketches)
    assert not keying.the_documents_are_those_filtered(checked).passed


def test_texts_are_keyed_once(tmp_path, monkeypatch):
    """As they are signed; where nothing is signed, the index reads the texts, for the same facts."""
    upstream, facts, read = tiny_upstream(tmp_path / "upstream"), {}, []
    plain, digested = facts_module.text_facts, []
    monkeypatch.setattr(
        keying,
        "with_digests",
        lambda *args, **how: (
            digested.extend([] if how else [args]) or keyed_texts.with_digests(*args, **how)
        ),
    )
    monkeypatch.setattr(facts_module, "text_facts", lambda *args: read.append(args) or plain(*args))
    for near in (False, True):
        sections = deduplication(near=near, exact=("text",))
        sections["token_grid"] = GriddingSettings(
            heldout_fraction=0, row_tokens=64
        )  # so nothing is sketched
        context = tiny_context(tmp_path / f"lake-{near}", upstream=upstream, **sections)
        signed = ["document_signatures"] if near else []
        for name in ("raw_snapshot", "filtered_documents", *signed, "document_keys"):
            keys = stage_named(name).build(context, SNAPSHOT)
        made = stage_named("signature_index").build(context, SNAPSHOT)
        paths = facts_path(made.published.folder, 0), keys.published.folder / keying.DOCUMENTS_FILE
        facts[near] = [path.read_bytes() for path in paths]
        assert bool(digested) == (not near)
        digested.clear()
        assert len(read) == (0 if near else len(TAGS))
        read.clear()
    assert facts[False] == facts[True]


def test_keys_of_other_documents_are_refused(tmp_path):
    context = tiny_context(tmp_path, **deduplication(exact=("text",)))
    for name in ("raw_snapshot", "filtered_documents", "document_signatures"):
        made = stage_named(name).build(context, SNAPSHOT)
    path = made.published.folder / f"{TAGS[0].replace('/', '-')}{MINHASH_SUFFIX}"
    pq.write_table(pq.read_table(path)[:1], path)
    signed = context.lake.partition("document_signatures", SNAPSHOT).require()
    check_input = check_input_of(context.lake, signed)
    assert path.name in signing.every_document_is_signed_or_short(check_input).message
    documents = documents_files(check_input.only_input("filtered_documents").folder)
    with pytest.raises(Mismatch, match="1 have keys"):
        facts_module.write_facts(tmp_path / "f", documents, PrivacySettings(), signed.folder)


def test_a_file_that_lost_a_document_is_found(tmp_path):
    """The claim reads what lies there, not what the counts says."""
    made = built(tmp_path / "a", tiny_upstream(tmp_path / "upstream"))
    path = made.published.folder / "0000-en_head.minhash.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    check_input = signing.CheckInput(
        folder=made.published.folder,
        fingerprint=made.published.receipt.fingerprint,
        counts=made.counts,
        lake=(context := tiny_context(tmp_path / "a", upstream=tmp_path / "upstream")).lake,
        inputs={
            f"filtered_documents/{SNAPSHOT}": context.lake.partition(
                "filtered_documents", SNAPSHOT
            ).require()
        },
    )
    assert "names other documents" in signing.every_document_is_signed_or_short(check_input).message


def corpus(folder):
    folder.mkdir(parents=True)
    lines = [json.dumps({"text": f"{number} " * 20}) for number in range(5)]
    (folder / "a.jsonl").write_text(
        "\n".join([*lines, "{not json", json.dumps({"no": "text"}), json.dumps({"text": "short"})])
    )
    (folder / "b.jsonl").write_text(json.dumps({"id": "mine", "text": "a b c d e f g h i j k l m"}))
    return folder


@pytest.mark.parametrize("workers", [1, 2])
def test_files_are_signed_and_everything_is_counted(tmp_path, workers):
    context = context_over_files(
        [corpus(tmp_path / "in")],
        tmp_path / "out",
        executor=LocalExecutor(workers=workers),
        settings={"document_signatures": SignatureSettings(signatures="computed")},
    )
    built = build_for(context, "document_signatures")
    counts = counts_of(built)
    assert (counts.seen, counts.kept, counts.dropped) == (9, 7, {"no text": 1, "not JSON": 1})
    assert counts.extra["signatures computed"] == 6
    assert counts.extra["texts shorter than a shingle"] == 1
    folder = built["document_signatures"]["in"].published.folder
    (part,) = read_signatures(folder / "a.minhash.parquet", where="a")
    assert part.ids == [*(f"in/a/line-{number}" for number in range(5)), "in/a/line-7"]
    assert np.array_equal(part.numbers[1], signature("1 " * 20, RPV2))
    shard_ids = pq.read_table(folder / "a.minhash.parquet")["shard_id"]
    assert shard_ids.unique().to_pylist() == ["in/a"]
