"""Every setting of a recipe has an effect: another value gives other bytes in the stage that it
belongs to, or is refused. The few that have none, on purpose, are listed with the reason.
"""

import json
from dataclasses import replace

import msgspec
import pytest

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import DecontaminationSettings, WithdrawalSettings
from lc_assets.builds.settings.documents import CleanDocumentsSettings
from lc_assets.builds.settings.longpack import (
    LengthBucketSettings,
    LengthReportSettings,
    LongPackSettings,
    ReferralReportSettings,
)
from lc_assets.errors import LcError
from lc_assets.formats.lists.withdrawal_lists import COLUMNS
from lc_assets.sources import redpajama_v2
from lc_assets.stages.catalogue import needed_by
from lc_assets.vocabulary import Shard
from lc_assets_tests import builders
from lc_assets_tests.builders import (
    SNAPSHOTS,
    TAGS,
    WORDS,
    build_all,
    made_up_record,
    tiny_context,
    tiny_documents,
    tiny_upstream,
    tokenizer_json,
    write_shard,
)

OLD, NEW = SNAPSHOTS
NOWHERE = "nowhere"
PERSONAL_DATA = "Write to ann@mail.org or call 030 901820 or +1 212 736-5000."
LINKED = {"longpack_documents.portals": "keep", "token_grid.heldout_fraction": 0.0}
PERSONAL = {"token_documents.privacy.replace": ["email"]}
SURROGATE = PERSONAL | {"token_documents.privacy.style": "surrogate"}
UPSAMPLED = {"packed_rows.method": "upsample", "packed_rows.upsampling.threshold": 100}

CASES = {
    "target": ("token_documents", {}, None),
    "sources": ({"a": {"path": "nowhere"}}, {}, "raw_snapshot"),
    "raw_snapshot.languages": (["de"], {}, None),
    "raw_snapshot.buckets": (["middle"], {}, None),
    "raw_snapshot.shards": ([1], {}, None),
    "raw_snapshot.minhash": (True, {}, None),
    "raw_snapshot.trust_file_times": (True, {}, None),
    "document_signals.values": (True, {}, None),
    "document_signals.columns": (
        ["rps_doc_frac_unique_words"],
        {"document_signals.values": True},
        None,
    ),
    "document_signals.lines": (True, {}, None),
    "filtered_documents.rules": ("redpajama-lucie", {}, None),
    "filtered_documents.thresholds": ({"mean_word_length": {"at_most": 4.1}}, {}, None),
    "filtered_documents.bounds": ({"rps_doc_word_count": {"at_least": 100}}, {}, None),
    "filtered_documents.min_words": (100, {}, None),
    "filtered_documents.missing_signals": ("compute", {}, None),
    "filtered_documents.missing_duplicates": ("treat_as_unique", {}, None),
    "filtered_documents.corrupt_documents": ("fail", {}, None),
    "filtered_documents.killed_documents": ("skip", {}, None),
    "filtered_documents.max_line_bytes": (1100, {}, None),
    "filtered_documents.compression": ("none", {}, None),
    "filtered_documents.lists.stop_words": (
        "words.json",
        {"document_signals.lines": True},
        "document_signals",
    ),
    "filtered_documents.lists.bad_words": (
        "words.json",
        {"document_signals.lines": True},
        "document_signals",
    ),
    "filtered_documents.lists.domains": (
        "domains.json",
        {"document_signals.lines": True},
        "document_signals",
    ),
    "filtered_documents.models.language": (
        NOWHERE,
        {"filtered_documents.bounds": {"language_is": {"at_least": 0.1}}},
        None,
    ),
    "filtered_documents.models.blocklist": (
        NOWHERE,
        {"filtered_documents.bounds": {"url_blocked": {"at_most": 0}}},
        None,
    ),
    "filtered_documents.models.perplexity": (
        NOWHERE,
        {
            "filtered_documents.missing_signals": "compute",
            "filtered_documents.bounds": {"perplexity": {"at_most": 900}},
        },
        None,
    ),
    **{
        f"filtered_documents.models.quality.{name}": (
            NOWHERE,
            {
                "filtered_documents.missing_signals": "compute",
                "filtered_documents.bounds": {f"rps_doc_ml_{name}_score": {"at_most": 900}},
            },
            None,
        )
        for name in ("palm", "wikiref", "wikipedia")
    },
    "document_signatures.signatures": ("computed", {}, None),
    "document_signatures.shingle_size": (5, {}, None),
    "document_signatures.shingle_of": ("characters", {}, None),
    "near_duplicate_pairs.near": (False, {}, "removed_documents"),
    "near_duplicate_pairs.measure": (
        "containment",
        {"removed_documents.prefer": ["longest"]},
        None,
    ),
    "near_duplicate_pairs.evidence_floor": (
        0.9,
        {"removed_documents.threshold": 0.9, "removed_documents.heldout_floor": 0.9},
        None,
    ),
    "contaminated_documents.against": ([], {}, None),
    "contaminated_documents.fields": (["answer"], {}, None),
    "contaminated_documents.rule": ("edited", {}, None),
    "contaminated_documents.ngram": (5, {}, None),
    "contaminated_documents.min_words": (25, {}, None),
    "contaminated_documents.sample": (7, {}, None),
    "contaminated_documents.mode": ("any", {}, None),
    "contaminated_documents.threshold": (0.9, {}, None),
    "contaminated_documents.ignore_common": (0, {}, None),
    "contaminated_documents.max_items": (1, {}, None),
    "contaminated_documents.action": ("cut", {}, "clean_documents"),
    "contaminated_documents.margin": (
        9,
        {"contaminated_documents.action": "cut"},
        "clean_documents",
    ),
    "withdrawn_documents.lists": ([], {}, None),
    "withdrawn_documents.required_lists": (
        ["other.csv"],
        {"withdrawn_documents.lists": ["withdrawn.csv", "other.csv"]},
        None,
    ),
    "withdrawn_documents.reinstated": (["withdrawn.csv"], {}, None),
    "withdrawn_documents.same_content": ("stays", {}, "removed_documents"),
    "removed_documents.threshold": (0.95, {}, None),
    "removed_documents.heldout_floor": (0.99, {}, None),
    "removed_documents.prefer": (["longest"], {}, None),
    "removed_documents.exact": (["text"], {}, None),
    "clean_documents.wanted": (False, {}, None),
    "clean_documents.paragraphs": (10, {}, None),
    "clean_documents.file_format": ("parquet", {}, None),
    "html_index.archives": (["nowhere.warc.gz"], {}, None),
    "html_index.index": ("cdxj", {}, None),
    "html_index.links_from": ("wat", {}, None),
    "page_links.extractor": ("paper", {}, None),
    "page_links.lists": ("links", {}, None),
    "longpack_documents.wanted": (False, {}, None),
    "longpack_documents.roots": (0.5, LINKED, "link_claims"),
    "longpack_documents.seed": (5, LINKED, "link_claims"),
    "longpack_documents.mode": ("allow", LINKED, "link_claims"),
    "longpack_documents.repetitions": (
        4,
        LINKED | {"longpack_documents.mode": "allow"},
        "link_claims",
    ),
    "longpack_documents.max_tokens": (150, LINKED, None),
    "longpack_documents.depth": (2, LINKED, "link_claims"),
    "longpack_documents.paper_exact": (True, LINKED, None),
    "longpack_documents.portals": ("keep", {}, "link_claims"),
    "longpack_documents.hub_share": (0.9, {}, "link_claims"),
    "longpack_documents.nofollow": ("drop", LINKED, "link_claims"),
    "longpack_documents.anchors": ("in_text", LINKED, "link_claims"),
    "longpack_documents.redirects": (False, LINKED, "link_claims"),
    "longpack_documents.canonical": (False, LINKED, "link_claims"),
    "longpack_documents.older_snapshots": (
        True,
        LINKED | {"longpack_documents.mode": "allow"},
        "link_claims",
    ),
    "longpack_documents.same_language": (False, LINKED, "link_claims"),
    "longpack_documents.untitled": ("first_line", LINKED, "link_claims"),
    "longpack_documents.rest": (True, LINKED, None),
    "token_documents.tokenizer": ("tokenizer.json", {}, None),
    "token_documents.text_encoding": ("json_ascii", {}, None),
    "token_documents.min_tokens": (100, {}, None),
    "token_documents.first_tokens": (70, {}, None),
    "token_documents.privacy.replace": (["email"], {}, None),
    "token_documents.privacy.style": ("surrogate", PERSONAL, None),
    "token_documents.privacy.seed": (5, SURROGATE, None),
    "token_documents.privacy.phone_region": (
        "DE",
        {"token_documents.privacy.replace": ["phone"]},
        None,
    ),
    "token_documents.append_eod": (True, {}, None),
    "token_documents.dtype": ("int32", {}, None),
    "token_documents.split_sentences": ("english", {}, None),
    "token_documents.keep_newlines": (True, {}, None),
    "token_grid.row_tokens": (32, {}, None),
    "token_grid.rows_per_document": (2, {}, None),
    "token_grid.heldout_fraction": (0.7, {}, None),
    "token_grid.seed": (5, {}, None),
    "token_grid.chunk_rows": (8, {}, None),
    "token_grid.chunk_tokens": (16, {}, None),
    "token_grid.zstd_level": (19, {}, None),
    "token_grid.codec": ("ranked", {}, None),
    "longcrawl_flat.codec": ("zstd", {}, None),
    "megatron_rows.sequence_length": (32, {}, None),
    "megatron_rows.seed": (5, {}, None),
    "megatron_rows.samples": (200, {}, None),
    "packed_rows.wanted": (False, {}, None),
    "packed_rows.documents": ("longpack", {}, "packing_tokens"),
    "packed_rows.method": ("concat", {}, None),
    "packed_rows.row_tokens": (128, {}, None),
    "packed_rows.min_tokens": (120, {}, "packing_tokens"),
    "packed_rows.append_eod": (False, {}, None),
    "packed_rows.segment_tokens": (
        16,
        {"packed_rows.method": "segment", "packed_rows.segment_tokens": 64},
        None,
    ),
    "packed_rows.cut_at": (
        "anywhere",
        {"packed_rows.method": "segment", "packed_rows.segment_tokens": 32},
        None,
    ),
    "packed_rows.upsampling.threshold": (130, UPSAMPLED, None),
    "packed_rows.upsampling.keep_short": (0.9, UPSAMPLED, None),
    "packed_rows.upsampling.by": ("bucket", UPSAMPLED, None),
    "packed_rows.upsampling.budget": (2.0, UPSAMPLED, None),
    "packed_rows.megatron": ("rows", {}, None),
    "packed_rows.seed": (5, {}, None),
    "packed_rows.order_by": ("n_chars", {}, None),
    "packed_rows.group_by": ("bucket", {"packed_rows.order_by": "n_chars"}, None),
    "packed_rows.similar": ({}, {}, None),
    "packed_rows.texts": (True, {}, None),
    "packed_rows.equal_steps": (4, {}, None),
    "packed_rows.align_tokens": (4, {}, None),
    "length_buckets.wanted": (False, {}, None),
    "length_buckets.edges": ([100, 200], {}, None),
    "length_report.wanted": (False, {"referral_report.wanted": False}, None),
    "referral_report.wanted": (False, {}, None),
    "referral_report.buckets": ([3], {}, None),
    "referral_report.scope": ("document", {}, None),
    "referral_report.sample": (1, {}, None),
    "referral_report.max_df": (0.5, {}, None),
    "referral_report.words": ("list.txt", {}, None),
    "referral_report.spacy": (NOWHERE, {}, None),
    "blended_mix": ({"by-tokens": {"weights": "equal"}}, {}, None),
    **{
        f"data_set_card.{name}": (value, {}, None)
        for name, value in {
            "title": "Another",
            "summary": "A sentence.",
            "licence": "mit",
            "licence_name": "mine",
            "licence_link": "https://example.org",
            "contact": "me@example.org",
            "homepage": "https://example.org/home",
            "authors": ["Ann"],
            "terms": [],
        }.items()
    },
}
"""By setting: another value, what else is set before and after, and the stage whose bytes change,
by default that of the section.
"""


OTHER_DATA = {
    "filtered_documents.killed_documents": "no worker is killed",
    "longpack_documents.hub_share": "no page of the made-up crawl is linked to that often",
    "longpack_documents.nofollow": "its only links with nofollow lead out of it",
    "longpack_documents.redirects": "none of its addresses redirects",
    "longpack_documents.canonical": "none of its pages names another address as its own",
    "longpack_documents.older_snapshots": "the lake has one snapshot",
    "longpack_documents.same_language": "its pages are of one language",
    "longpack_documents.untitled": "its pages have titles",
}
"""Settings that give another version with the same bytes, as there is nothing that they concern."""


def names_of(settings, stem=""):
    """Names of all settings, those of nested ones with dots."""
    for field in msgspec.structs.fields(type(settings)):
        value = getattr(settings, field.name)
        if isinstance(value, msgspec.Struct):
            yield from names_of(value, f"{stem}{field.name}.")
        else:
            yield f"{stem}{field.name}"


def changed(recipe, settings):
    """The recipe with other values, as its file would have them."""
    values = msgspec.to_builtins(recipe)
    for name, value in settings.items():
        *sections, last = name.split(".")
        place = values
        for section in sections:
            place = place[section]
        place[last] = value
    return msgspec.convert(values, Recipe)


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """Of a lake with something for every setting."""
    folder = tmp_path_factory.mktemp("settings")
    with pytest.MonkeyPatch.context() as patched:
        plain = builders.made_up_text
        patched.setattr(
            builders,
            "made_up_text",
            lambda rng, *, n_words: f"{plain(rng, n_words=n_words)} {PERSONAL_DATA}",
        )
        upstream = write_variants(tiny_upstream(folder / "upstream"))
    for name, content in files().items():
        (folder / name).write_text(content)
    tokenizer_json(folder / "tokenizer.json")
    lists = WithdrawalSettings(lists=(str(folder / "withdrawn.csv"),))
    items = DecontaminationSettings(against=(str(folder / "items.jsonl"),))
    return tiny_context(
        folder,
        upstream=upstream,
        contaminated_documents=items,
        withdrawn_documents=lists,
        clean_documents=CleanDocumentsSettings(wanted=True),
        longpack_documents=LongPackSettings(wanted=True),
        length_buckets=LengthBucketSettings(wanted=True, edges=(90, 120)),
        length_report=LengthReportSettings(wanted=True),
        referral_report=ReferralReportSettings(wanted=True, sample=5, buckets=(2, 5), max_df=0.3),
    )


def write_variants(upstream):
    """Add shards to the newer snapshot: one each without signals, without duplicates and cut short,
    and one of near duplicates of an older one.
    """
    shards = [Shard.parse(f"{NEW}/000{number}/en_head") for number in (2, 3, 4, 5)]
    for shard in shards:
        older = TAGS[1] if shard == shards[-1] else TAGS[0]
        texts = [one.raw_content for one in tiny_documents(Shard.parse(f"{OLD}/{older}"))[:8]]
        records = [
            made_up_record(shard, number, variant(text, number))
            for number, text in enumerate(texts)
        ]
        write_shard(upstream, shard, records)
    every = [*(Shard.parse(f"{NEW}/{tag}") for tag in TAGS), *shards]
    redpajama_v2.write_listing(upstream / redpajama_v2.listing_path(NEW, "en"), sorted(every))
    parts = zip(("signals", "duplicates", "documents"), shards, strict=False)
    signals, duplicates, cut = (upstream / redpajama_v2.part_path(*part) for part in parts)
    signals.unlink()
    duplicates.unlink()
    cut.write_bytes(cut.read_bytes()[:-200])
    return upstream


def variant(text, number):
    """A text without its end, the shorter the higher the number, with three words more."""
    words = text.split(" ")
    more = [WORDS[(5 * place + number) % len(WORDS)] for place in range(3)]
    return " ".join([*words[: len(words) * (100 - 6 * number) // 100], *more])


def files():
    """Contents of lists by name."""
    texts = [one.raw_content.split(" ") for one in tiny_documents(Shard.parse(f"{OLD}/{TAGS[0]}"))]
    items = [
        {"id": "1", "question": " ".join(texts[1][5:45])},
        {
            "id": "2",
            "question": " ".join(texts[2][5:20]),
            "answer": " ".join(texts[3][:20]),
        },
        {"id": "3", "question": " ".join([*texts[4][5:25], "zebra", "quagga", *texts[4][30:50]])},
        {"id": "4", "question": " ".join(texts[1][5:30])},
    ]
    return {
        "items.jsonl": "".join(f"{json.dumps(item)}\n" for item in items),
        "withdrawn.csv": f"{','.join(COLUMNS)}\ndocument,{OLD}/{TAGS[1]}.json.gz/0,asked for,2026-03-01\n",
        "other.csv": f"{','.join(COLUMNS)}\nurl,https://nowhere.example.org/,asked for,2026-03-01\n",
        "words.json": json.dumps({"en": ["the", "of", "water"]}),
        "domains.json": json.dumps({"example.org": 3}),
        "list.txt": "[stop]\nwater\n",
    }


@pytest.fixture(scope="module")
def outcome(context):
    """Digests of a stage's partitions by a recipe with some settings, and their versions; or why
    they are refused. Each is found once.
    """
    found = {}

    def of(stage, settings):
        key = repr((stage, settings))
        if key not in found:
            found[key] = outcome_in(context, stage, settings)
        return found[key]

    return of


def outcome_in(context, stage, settings):
    folder = context.lake.root.parent
    here = {
        name: str(folder / value) if value in (NOWHERE, *files(), "tokenizer.json") else value
        for name, value in settings.items()
        if not isinstance(value, list | dict)
    } | {
        name: [str(folder / one) if str(one).endswith(".csv") else one for one in value]
        for name, value in settings.items()
        if isinstance(value, list)
    }
    try:
        recipe = changed(context.recipe, {"target": stage} | settings | here)
        built = build_all(replace(context, recipe=recipe))
    except (LcError, msgspec.ValidationError) as error:
        return str(error), None
    found = [one.published for name, one in built.items() if name.startswith(f"{stage}/")]
    return [one.digest for one in found], [one.version for one in found]


def test_every_setting_is_tried():
    """Those of Dagster are in no version: orchestration/test_chain_in_dagster.py. Nor are the lakes
    that are reused: test_several_vocabularies.py.
    """
    names = names_of(Recipe())
    assert {name for name in names if not name.startswith(("dagster.", "reuses"))} == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_setting_has_an_effect_or_is_refused(context, outcome, name):
    value, given, stage = CASES[name]
    if name == "target" or name.endswith(".wanted"):
        recipes = [changed(context.recipe, given | more) for more in ({}, {name: value})]
        before, after = map(needed_by, recipes)
        assert before != after
        return
    stage = stage or name.partition(".")[0]
    before = outcome(stage, given)
    after = outcome(stage, given | {name: value})
    if name in OTHER_DATA:
        assert (before[0], before[1] != after[1]) == (after[0], True)
    else:
        assert before[0] != after[0]
