"""Lengths and referrals of a snapshot's document sets: counted as by hand, of the sets that stand;
every claim about them can fail.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.building import check_input_of, run_check
from lc_assets.builds.checks import SPANS_SUFFIX, documents_files
from lc_assets.builds.settings.longpack import (
    LongPackSettings,
    PackingSettings,
    ReferralReportSettings,
)
from lc_assets.builds.tables import FILTERED, read_all
from lc_assets.counts import Counts
from lc_assets.errors import BadInput, NotPublished
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.lists.word_lists import read_special_words
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.formats.tokenizers.named import text_of
from lc_assets.lake.receipts import Fingerprint, receipt_of
from lc_assets.lake.versions import write_receipt
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.deduplication.removals import removed_ids
from lc_assets.stages.links.link_tables import SPANS
from lc_assets.stages.planning import plan
from lc_assets.stages.reports import length_report as lengths, referral_report as referrals
from lc_assets.stages.reports.document_sets import DENSITIES, GROWTH, LENGTH_SHARES
from lc_assets.text.referrals.concepts import LexicalConcepts, Part
from lc_assets.text.referrals.referrals import count_referrals
from lc_assets.vocabulary import SPLITS, Shard
from lc_assets_tests.builders import TAGS, made_up_record, tiny_context, tiny_upstream, write_shard
from lc_assets_tests.faults import BEFORE_TOKENS, build_snapshot, digests
from lc_assets_tests.named_draws import rng_for

OLD = "2023-06"
REPORTS = ReferralReportSettings(
    wanted=True, sample=4, buckets=(2, 5), scope="document", max_df=0.3
)
PACKING = PackingSettings(wanted=True, row_tokens=300, min_tokens=55)
BUILT = (*BEFORE_TOKENS, "packing_tokens", "packed_rows", "length_report", "referral_report")
CHILDREN = (2, 1)
"""Of two packed documents."""


def publish(context, stage, tables, counts):
    """A version as another stage's verb would leave it."""
    partition = context.lake.partition(stage, OLD)
    fingerprint = Fingerprint(stage=stage, key=OLD, code_version="1", params={}, inputs={})
    folder = partition.folder / fingerprint.version
    folder.mkdir(parents=True)
    for name, table in tables.items():
        pq.write_table(table, folder / name)
    partition.point_at(write_receipt(folder, receipt_of(folder, fingerprint, counts)))


def pack_along_links(context):
    """Two packed documents of the first shard, as LongPack writes them: children below their anchor
    line, then the root.
    """
    path = documents_files(context.lake.partition("filtered_documents", OLD).require().folder)[0]
    found = read_all([path], FILTERED).to_pylist()
    documents, spans, n_tokens = [], [], gpt2_tokenizer().encode
    for n_children in CHILDREN:
        root, *children = [found.pop(0) for _ in range(n_children + 1)]
        texts = [
            *(f"a page\n{child['raw_content']}\n\n" for child in children),
            f"root : \n{root['raw_content']}",
        ]
        starts = np.cumsum([0, *map(len, texts)]).tolist()
        pages = [*children, root]
        documents.append(root | {"raw_content": "".join(texts)})
        spans += [
            {
                "id": root["id"],
                "part": part,
                "role": "root" if page is root else "child",
                "child_id": page["id"],
                "start": starts[part],
            }
            | {
                "depth": 0 if page is root else 1,
                "url": page["url"],
                "keys": "",
                "cluster": "",
                "stop": starts[part + 1],
            }
            | {"n_tokens": len(n_tokens(page["raw_content"]))}
            for part, page in enumerate(pages)
        ]
    tables = {
        path.name: pa.Table.from_pylist(documents, FILTERED),
        path.name.replace(".documents.parquet", SPANS_SUFFIX): pa.Table.from_pylist(spans, SPANS),
    }
    publish(context, "longpack_documents", tables, Counts(seen=2, kept=2))
    publish(context, "link_claims", {}, Counts(extra={"roots": 10}))
    return documents, spans


HEROES = ("Ada", "Bruno", "Cleo", "Dario", "Edith", "Felix", "Greta", "Hugo")
TOWNS = ("Lisbon", "Oslo", "Quito", "Riga", "Turin")
THINGS = ("lantern", "parrot", "violin", "compass", "letter", "anchor", "mirror", "garden")


def story(rng) -> str:
    """Sentences about a few people, towns and things, so that they come back to each."""
    own = [rng.choice(names, 3, replace=False) for names in (HEROES, TOWNS, THINGS)]
    said = (
        "Then {} took the {} to {}.",
        "In {2} there was no {1} that {0} liked.",
        "She said {} had a {} from {}.",
    )
    lines = [
        str(rng.choice(said)).format(*(rng.choice(names) for names in (own[0], own[2], own[1])))
        for _ in range(rng.integers(9, 30))
    ]
    return " ".join(lines)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    folder = tiny_upstream(tmp_path_factory.mktemp("upstream"), snapshots=[OLD])
    rng = rng_for("stories", seed=0)
    for tag in TAGS:
        shard = Shard.parse(f"{OLD}/{tag}")
        write_shard(folder, shard, [made_up_record(shard, line, story(rng)) for line in range(8)])
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory, upstream):
    """A snapshot with all three sets, and its reports."""
    recipe = {
        "referral_report": REPORTS,
        "packed_rows": PACKING,
        "longpack_documents": LongPackSettings(wanted=True),
    }
    context = tiny_context(tmp_path_factory.mktemp("reports"), upstream=upstream, **recipe)
    build_snapshot(context, OLD, BEFORE_TOKENS)
    packed = pack_along_links(context)
    return context, build_snapshot(context, OLD, BUILT[len(BEFORE_TOKENS) :]), packed


def natural_of(context) -> dict[str, str]:
    """Texts of the filtered documents that go on."""
    filtered = context.lake.partition("filtered_documents", OLD).require().folder
    texts = read_all(documents_files(filtered), FILTERED, ["id", "raw_content"])
    found = dict(zip(texts["id"].to_pylist(), texts["raw_content"].to_pylist(), strict=True))
    gone = removed_ids(context.lake.partition("removed_documents", OLD).require().folder)
    return {name: text for name, text in found.items() if name not in gone}


def lines_of(folder: Path, pattern: str) -> list[dict]:
    return [
        line for path in sorted(folder.glob(pattern)) for line in pq.read_table(path).to_pylist()
    ]


def test_lengths_are_those_of_the_texts_and_pieces(made):
    """By GPT-2's tokenizer of each text that goes on; of packed rows by their spans."""
    context, built, (documents, _) = made
    folder = built["length_report"].published.folder
    natural = natural_of(context)
    for document_set, texts in (
        ("natural", natural),
        ("longpack", {line["id"]: line["raw_content"] for line in documents}),
    ):
        found = {
            line["id"]: (line["n_tokens"], line["n_chars"])
            for line in lines_of(folder, f"{document_set}-*.lengths.parquet")
        }
        assert found == {
            name: (len(gpt2_tokenizer().encode(text)), len(text)) for name, text in texts.items()
        }
    pieces = lines_of(context.lake.partition("packed_rows", OLD).require().folder, "spans.parquet")
    found = [
        (line["id"], line["n_tokens"])
        for split in SPLITS
        for line in lines_of(folder, f"packed-{split}.lengths.parquet")
    ]
    assert sorted(found) == sorted(
        (piece["id"], piece["row_stop"] - piece["row_start"]) for piece in pieces
    )
    counts = built["length_report"].counts
    assert counts.seen == len(natural) + sum(counts.dropped.values()) + len(documents) + len(pieces)
    assert all(finding.passed for finding in built["length_report"].findings)


def test_shares_sum_up(made):
    """Each set's documents and tokens are in one group each; what is as long as the first is
    all.
    """
    lines = pq.read_table(
        made[1]["length_report"].published.folder / lengths.SHARES_FILE
    ).to_pylist()
    assert list(dict.fromkeys(line["document_set"] for line in lines)) == [
        "natural",
        "longpack",
        "packed",
    ]
    for document_set in ("natural", "longpack", "packed"):
        own = [line for line in lines if line["document_set"] == document_set]
        assert sum(line["document_share"] for line in own) == pytest.approx(1)
        assert sum(line["token_share"] for line in own) == pytest.approx(1)
        assert own[0]["documents_from"] == sum(line["documents"] for line in own)
        assert own[0]["token_share_from"] == 1
    assert pq.read_table(
        made[1]["length_report"].published.folder / lengths.SHARES_FILE
    ).schema.equals(LENGTH_SHARES)


def test_growth_is_of_the_roots_that_hold_something(made):
    _, built, (documents, spans) = made
    (line,) = pq.read_table(
        built["length_report"].published.folder / lengths.GROWTH_FILE, schema=GROWTH
    ).to_pylist()
    after = [len(gpt2_tokenizer().encode(document["raw_content"])) for document in documents]
    before = [span["n_tokens"] for span in spans if span["role"] == "root"]
    assert (line["n_roots"], line["n_packed"], line["hit_rate"]) == (10, 2, 0.2)
    assert line["mean_of_ratios"] == pytest.approx(np.mean(np.array(after) / before))
    assert line["ratio_of_sums"] == pytest.approx(sum(after) / sum(before))


def test_referrals_are_those_of_the_texts(made):
    """Of each set, by the words that are no concepts, with a packed document's pages and a row's
    documents told apart.
    """
    context, built, (documents, spans) = made
    folder = built["referral_report"].published.folder
    common = frozenset(pq.read_table(folder / "common_words.parquet")["word"].to_pylist())
    assert common
    finder = LexicalConcepts(replace(read_special_words(), common=common))
    texts = {("natural", name): (text, ()) for name, text in natural_of(context).items()}
    for document in documents:
        own = [span for span in spans if span["id"] == document["id"]]
        texts["longpack", document["id"]] = (
            document["raw_content"],
            [Part(span["start"], number) for number, span in enumerate(own)],
        )
    texts |= {("packed", name): found for name, found in rows_of(context).items()}
    seen = {"natural": 0, "longpack": 0, "packed": 0}
    for document_set in seen:
        for line in lines_of(folder, f"{document_set}-*.referrals.parquet"):
            seen[document_set] += 1
            text, parts = texts[document_set, line["id"]]
            counts = count_referrals(finder.mentions(text, parts), (2, 5))
            assert (line["n_parts"], line["n_chars"], line["n_mentions"]) == (
                len(parts),
                len(text),
                counts.n_mentions,
            )
            assert tuple(map(tuple, (line["pairs"], line["neighbours"], line["concepts"]))) == (
                counts.pairs,
                counts.neighbours,
                counts.concepts,
            )
    assert seen == {"natural": 4, "longpack": 2, "packed": 4}
    assert all(finding.passed for finding in built["referral_report"].findings)


def rows_of(context) -> dict[str, tuple[str, list[Part]]]:
    """Texts and parts of the packed rows, piece by piece, without the ends of text."""
    folder = context.lake.partition("packed_rows", OLD).require().folder
    found: dict[str, tuple[str, list[Part]]] = {}
    for split in SPLITS:
        rows = GridReader(folder / f"{split}.zarr").read()
        owners: dict[str, dict[str, int]] = {}
        for piece in [line for line in lines_of(folder, "spans.parquet") if line["split"] == split]:
            name = f"{split}/{piece['row']}"
            ids = rows[piece["row"]][piece["row_start"] : piece["row_stop"]]
            before, parts = found.get(name, ("", []))
            start = len(before) + bool(parts)
            numbers = owners.setdefault(name, {})
            part = Part(start, numbers.setdefault(piece["id"], len(numbers)))
            found[name] = (
                f"{before}{chr(10) * bool(parts)}{text_of('gpt2', ids[ids != 50_256])}",
                [*parts, part],
            )
    return found


def test_densities_are_means_beside_the_paper(made, tmp_path):
    """By other buckets than the paper's nothing stands beside them; by the paper's, its figures
    do.
    """
    context, built, _ = made
    table = pq.read_table(built["referral_report"].published.folder / referrals.DENSITIES_FILE)
    assert table.schema.equals(DENSITIES)
    own = lines_of(built["referral_report"].published.folder, "natural-*.referrals.parquet")
    (line,) = [
        line
        for line in table.to_pylist()
        if (line["document_set"], line["counted"], line["distance"]) == ("natural", "pairs", "1-2")
        and line["length_group"] == "0-4K"
    ]
    assert line["figure"] == pytest.approx(
        np.mean([line["pairs"][1] / line["n_tokens"] for line in own])
    )
    assert table["paper"].null_count == table.num_rows
    recipe = msgspec.structs.replace(
        context.recipe, referral_report=ReferralReportSettings(wanted=True, sample=2)
    )
    again = build_snapshot(replace(context, recipe=recipe), OLD, ["referral_report"])[
        "referral_report"
    ]
    lines = pq.read_table(again.published.folder / referrals.DENSITIES_FILE).to_pylist()
    paper = {
        (line["document_set"], line["distance"]): line["paper"]
        for line in lines
        if line["counted"] == "concepts"
    }
    assert (paper["natural", "1-32"], paper["longpack", "1-32"], paper["packed", "1-32"]) == (
        49.8,
        57.2,
        None,
    )
    assert paper["natural", "same sentence"] is None


def test_a_sample_depends_on_ids_alone(made):
    """A larger one holds the smaller; other shards do not move it."""
    context, built, _ = made
    inputs = check_input_of(context.lake, built["referral_report"].published).inputs
    shards = referrals.shards_of_sets(inputs, OLD, context.recipe)
    folder = built["length_report"].published.folder
    few, more = (
        {name for own in referrals.sampled(shards, folder, n).values() for name in own}
        for n in (2, 3)
    )
    assert few < more
    natural = [shard for shard in shards if shard.document_set == "natural"]
    alone = {name for own in referrals.sampled(natural[::-1], folder, 3).values() for name in own}
    assert alone == {name for name in more if name in natural_of(context)} - {
        line["id"]
        for line in lines_of(folder, "longpack-*.lengths.parquet")
        if line["id"] not in alone
    }


def test_sets_that_a_recipe_does_not_want_are_passed_over(tmp_path, upstream):
    """Natural documents alone: nothing of LongPack or of rows is asked for; what is wanted must be
    there.
    """
    context = tiny_context(
        tmp_path, upstream=upstream, referral_report=REPORTS, packed_rows=PackingSettings()
    )
    built = build_snapshot(context, OLD, [*BEFORE_TOKENS, "length_report", "referral_report"])
    assert list(built["length_report"].published.receipt.fingerprint.inputs) == [
        f"filtered_documents/{OLD}",
        f"removed_documents/{OLD}",
    ]
    assert list(built["referral_report"].published.receipt.fingerprint.inputs) == [
        f"length_report/{OLD}",
        f"filtered_documents/{OLD}",
    ]
    shares = lengths.shares_of(built["length_report"].published.folder)
    assert {line["document_set"] for line in shares} == {"natural"}
    assert (
        pq.read_table(built["length_report"].published.folder / lengths.GROWTH_FILE).num_rows == 0
    )
    planned = {one.name: one.status for one in plan(context.lake, context.recipe, [OLD])}
    assert planned[f"length_report/{OLD}"] == planned[f"referral_report/{OLD}"] == "current"
    wanting = msgspec.structs.replace(
        context.recipe, longpack_documents=LongPackSettings(wanted=True)
    )
    with pytest.raises(NotPublished, match=f"longpack_documents/{OLD} is not published"):
        stage_named("length_report").build(replace(context, recipe=wanting), OLD)


def test_other_orders_and_workers_give_the_same_bytes(made, tmp_path):
    """Every file of both versions."""
    context, built, _ = made
    before = digests({name: built[name] for name in ("length_report", "referral_report")})
    shutil.copytree(context.lake.root, tmp_path / "lake")
    there = replace(context, lake=type(context.lake)(tmp_path / "lake"), executor=Backwards())
    for name in ("length_report", "referral_report"):
        shutil.rmtree(tmp_path / "lake" / name)
    assert digests(build_snapshot(there, OLD, ["length_report", "referral_report"])) == before


class Backwards:
    """Runs tasks in reverse order."""

    def run(self, function, tasks, *, what):
        assert what
        for task in reversed(tasks):
            yield task, function(task)


def test_without_common_words_none_are_looked_for(made):
    context, *_ = made
    recipe = msgspec.structs.replace(
        context.recipe, referral_report=msgspec.structs.replace(REPORTS, max_df=1.0, scope="text")
    )
    again = build_snapshot(replace(context, recipe=recipe), OLD, ["referral_report"])[
        "referral_report"
    ]
    assert pq.read_table(again.published.folder / "common_words.parquet").num_rows == 0
    assert {
        line["n_parts"] for line in lines_of(again.published.folder, "*.referrals.parquet")
    } == {0}
    assert all(finding.passed for finding in again.findings)


def test_other_words_are_another_version(made, tmp_path):
    """A file of words counts by its content."""
    context, built, _ = made
    words = tmp_path / "words.txt"
    words.write_text("[stop]\nthe\n")
    recipe = msgspec.structs.replace(
        context.recipe, referral_report=msgspec.structs.replace(REPORTS, words=str(words))
    )
    again = build_snapshot(replace(context, recipe=recipe), OLD, ["referral_report"])[
        "referral_report"
    ]
    assert again.published.digest != built["referral_report"].published.digest
    missing = msgspec.structs.replace(
        recipe, referral_report=msgspec.structs.replace(REPORTS, words=str(tmp_path / "nowhere"))
    )
    with pytest.raises(BadInput, match="no readable file of words"):
        build_snapshot(replace(context, recipe=missing), OLD, ["referral_report"])


def test_buckets_that_cannot_be_meant_are_refused():
    with pytest.raises(BadInput, match="ascending"):
        ReferralReportSettings(buckets=(5, 2))


def edit(folder: Path, pattern: str, change) -> None:
    """Change the lines of the first table that has any."""
    path = next(path for path in sorted(folder.glob(pattern)) if pq.read_metadata(path).num_rows)
    table = pq.read_table(path)
    pq.write_table(pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema), path)


def first_changed(**change):
    """The first line with other values: given, or made from the old one."""

    def changed(lines):
        return [
            lines[0]
            | {
                name: value(lines[0][name]) if callable(value) else value
                for name, value in change.items()
            },
            *lines[1:],
        ]

    return changed


def more(number):
    return number + 1


SPOILS = [
    ("length_report", "every_document_has_a_length", "natural-*", lambda lines: lines[1:]),
    ("length_report", "every_document_has_a_length", "packed-*", first_changed(n_tokens=more)),
    (
        "length_report",
        "every_document_has_a_length",
        "natural-*",
        first_changed(length_group="4K-8K"),
    ),
    (
        "referral_report",
        "every_sample_has_the_requested_size",
        "natural-*",
        lambda lines: lines[1:],
    ),
    (
        "referral_report",
        "every_sample_has_the_requested_size",
        "longpack-*",
        lambda lines: [*lines, lines[0]],
    ),
    ("referral_report", "every_sample_has_the_requested_size", "packed-*", lambda lines: lines[1:]),
    (
        "referral_report",
        "every_sample_has_the_requested_size",
        "longpack-*",
        first_changed(n_tokens=more),
    ),
]


@pytest.mark.parametrize(
    ("stage", "claim", "pattern", "change"),
    SPOILS,
    ids=[f"{stage}-{claim}-{number}" for number, (stage, claim, *_) in enumerate(SPOILS)],
)
def test_a_claim_says_when_it_does_not_hold(made, tmp_path, stage, claim, pattern, change):
    context, built, _ = made
    published = built[stage].published
    folder = Path(shutil.copytree(published.folder, tmp_path / "copy"))
    evidence = replace(check_input_of(context.lake, published), folder=folder)
    test = {
        found.__name__: found
        for found in {"length_report": lengths, "referral_report": referrals}[stage].STAGE.checks
    }[claim]
    assert test(evidence).passed
    edit(folder, pattern, change)
    found = run_check(test, evidence)
    assert not found.passed
    assert found.check == claim
    assert found.message


def test_every_claim_is_put_to_this_test():
    claims = {
        (stage.name, claim.__name__)
        for stage in (lengths.STAGE, referrals.STAGE)
        for claim in stage.checks
    }
    assert {(stage, claim) for stage, claim, *_ in SPOILS} == claims
