"""Documents and signals that are damaged, displaced or outrageous: each is counted by its reason or
comes through whole.
"""

import gzip
import json
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pytest

from lc_assets.builds.checks import documents_files
from lc_assets.builds.settings.documents import FilteringSettings
from lc_assets.builds.tables import read_table
from lc_assets.errors import CorruptFile
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.redpajama.documents import DocumentRecord, write_duplicates
from lc_assets.formats.redpajama.signals import write_signals
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.lake.versions import Published
from lc_assets.tokens.tokenizers import without_surrogates
from lc_assets.vocabulary import SPLITS, Shard
from lc_assets_tests.builders import (
    SNAPSHOTS,
    TINY_ROW_TOKENS,
    build_all,
    made_up_record,
    tiny_context,
    tiny_recipe,
    tiny_upstream,
)
from lc_assets_tests.faults import (
    BEFORE_TOKENS,
    adds_up,
    build_snapshot,
    copied,
    digests,
    edit_lines,
    field_changed,
    file_of,
    finding,
    unpublished,
    with_policies,
)

SNAPSHOT = SNAPSHOTS[0]
SHARD = Shard.parse(f"{SNAPSHOT}/0000/en_head")
JUDGED = ("raw_snapshot", "filtered_documents")
CLEAN_DROPS = {"duplicate": 3, "long_enough": 3, "symbols": 3}


class Sound(NamedTuple):
    """An upstream without faults, the digests of one snapshot's stages over it, and its filtered
    documents by id.
    """

    root: Path
    digests: dict[str, str]
    kept: dict[str, dict]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    root = tiny_upstream(tmp_path_factory.mktemp("sound"), snapshots=[SNAPSHOT])
    built = build_snapshot(
        tiny_context(tmp_path_factory.mktemp("never"), upstream=root),
        SNAPSHOT,
        [*BEFORE_TOKENS, "token_documents"],
    )
    return Sound(root, digests(built), kept(built["filtered_documents"].published))


@pytest.fixture
def context(tmp_path, sound):
    """A context over a copy of the upstream that may be spoiled."""
    return tiny_context(tmp_path, upstream=copied(sound.root, tmp_path / "upstream"))


def spoil(context, part, edit, shard=SHARD):
    edit_lines(file_of(Path(context.upstream.root), part, shard.tag), edit)


def mend(context, sound):
    for part in ("documents", "signals"):
        file_of(Path(context.upstream.root), part, SHARD.tag).write_bytes(
            file_of(sound.root, part, SHARD.tag).read_bytes()
        )


def kept(filtered: Published) -> dict[str, dict]:
    return {
        line["id"]: line
        for path in documents_files(filtered.folder)
        for line in read_table(path).to_pylist()
    }


def dropped(filtered: Published) -> dict[str, dict]:
    return {
        line["id"]: line
        for line in read_table(filtered.folder / f"{SHARD.name}.dropped.parquet").to_pylist()
    }


def assert_lost_only(context, sound, lines: set[int], reason: str):
    """Of the sound build's documents, those on these lines are dropped for this reason; all others
    are the same, field by field.
    """
    built = build_snapshot(context, SNAPSHOT, JUDGED)["filtered_documents"]
    lost = {SHARD.document_id(line) for line in lines}
    assert (built.counts.seen, built.counts.kept) == (36, 27 - len(lost))
    assert built.counts.dropped == CLEAN_DROPS | {reason: len(lost)}
    assert adds_up(built)
    assert {
        line["id"] for line in dropped(built.published).values() if line["reason"] == reason
    } == lost
    assert kept(built.published) == {
        name: line for name, line in sound.kept.items() if name not in lost
    }
    mend(context, sound)
    again = build_snapshot(context, SNAPSHOT, [*BEFORE_TOKENS, "token_documents"])
    assert digests(again) == sound.digests
    return built


UNREADABLE = {
    "no JSON": b'{"raw_content": "cut',
    "not UTF-8": b'{"raw_content": "\xff\xfe"}',
    "no text": b'{"url": "https://example.org"}',
    "text is a number": b'{"raw_content": 7}',
    "no object": b"[]",
    "nothing": b"",
    "nested deeply": b'{"raw_content": "x", "url": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "text is null": b'{"raw_content": null, "nlines": 1}',
}


def test_lines_that_are_no_documents_are_counted_and_keep_their_numbers(context, sound):
    """Eight damaged lines of a shard are eight dropped documents; the documents after them keep
    their ids, texts and signals.
    """
    spoil(
        context,
        "documents",
        lambda lines: [*(line + b"\n" for line in UNREADABLE.values()), *lines[8:]],
    )
    assert_lost_only(context, sound, set(range(8)), "unreadable line")


def test_odd_fields_that_nothing_needs_lose_no_document(context, sound):
    """A perplexity that is null and a length in a string are counted; all else is the same."""
    changes = {"perplexity": None, "original_length": "12"}
    spoil(
        context,
        "documents",
        lambda lines: [field_changed(line, **changes) for line in lines],
    )
    built = build_snapshot(context, SNAPSHOT, JUDGED)["filtered_documents"]
    assert kept(built.published) == sound.kept
    n_read = built.counts.extra["fields of another type: perplexity"]
    assert n_read == built.counts.extra["fields of another type: original_length"] == 9


def test_a_line_that_is_too_long_is_counted_and_keeps_its_number(context, sound):
    """A document beyond `max_line_bytes` is not read; its value is the limit."""
    context = with_policies(context, max_line_bytes=50_000)
    spoil(
        context,
        "documents",
        lambda lines: [*lines[:2], field_changed(lines[2], padding="x" * 50_000), *lines[3:]],
    )
    built = assert_lost_only(context, sound, {2}, "line too long")
    assert dropped(built.published)[SHARD.document_id(2)]["value"] == 50_000


def test_a_document_without_signals_is_counted(context, sound):
    """Nobody judged it, so it is not kept."""
    spoil(context, "signals", lambda lines: [*lines[:4], *lines[6:]])
    assert_lost_only(context, sound, {4, 5}, "no signals")


@pytest.mark.parametrize(
    "damage", [b"{", b"\xff", b"", b'{"id": 7}', b'{"id": "x", "quality_signals": []}']
)
def test_a_damaged_line_of_signals_costs_one_document(context, sound, damage):
    """It is counted twice: as a line of signals that cannot be read, and as a document without
    signals.
    """
    spoil(context, "signals", lambda lines: [*lines[:6], damage + b"\n", *lines[7:]])
    built = assert_lost_only(context, sound, {6}, "no signals")
    assert built.counts.extra["signals unreadable"] == 1


def test_signals_are_joined_by_id_where_upstream_skipped_a_line(context, sound):
    """The writer of the signals skipped a line that it could not decode: all behind it is offset,
    and nothing is mistaken.
    """
    spoil(context, "documents", lambda lines: [*lines[:3], b'{"raw_content\n', *lines[4:]])
    spoil(context, "signals", lambda lines: [*lines[:3], *lines[4:]])
    assert_lost_only(context, sound, {3}, "unreadable line")


def test_signals_may_come_in_any_order(context, sound):
    """The reversed file of signals gives the very same bytes."""
    spoil(context, "signals", lambda lines: lines[::-1])
    assert (
        build_snapshot(context, SNAPSHOT, JUDGED)["filtered_documents"].published.digest
        == sound.digests["filtered_documents"]
    )


def test_signals_of_another_address_speak_for_nobody(context, sound):
    """Ids that were given out by position, one too low behind a skipped line: every document behind
    it is refused, none is misjudged.
    """

    def renumbered(lines):
        moved = zip(lines[4:], lines[3:], strict=False)
        return [
            *lines[:3],
            *(field_changed(line, id=msgspec.json.decode(place)["id"]) for line, place in moved),
        ]

    spoil(context, "signals", renumbered)
    built = build_snapshot(context, SNAPSHOT, JUDGED)["filtered_documents"]
    assert {
        line["id"]
        for line in dropped(built.published).values()
        if line["reason"] == "signals of another url"
    } == {SHARD.document_id(line) for line in (3, 4, 5, 6, 7, 10)}
    assert adds_up(built)
    assert kept(built.published).items() <= sound.kept.items()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            f"{SNAPSHOT}/0001/en_head.json.gz/5",
            (
                "found id '2023-06/0001/en_head.json.gz/5', expected ids such as "
                "2023-06/0000/en_head.json.gz/17"
            ),
        ),
        (
            f"{SNAPSHOT}/0000/en_head.json.gz/4",
            "line 5: the signals of 2023-06/0000/en_head.json.gz/4 a second time",
        ),
        ("../../etc/passwd", "found id '../../etc/passwd'"),
        (f"{SNAPSHOT}/0000/en_head.json.gz/-5", "found id .*-5"),
        (f"{SNAPSHOT}/0000/en_head.json.gz/99999999999999999999", "found id .*99999"),
    ],
    ids=["another shard", "twice", "a path", "negative", "beyond any file"],
)
def test_signals_with_a_wrong_id_are_another_files(context, sound, name, words):
    """The whole file is refused: stopped at, or its shard is left out; repaired, all is whole."""
    spoil(
        context,
        "signals",
        lambda lines: [*lines[:5], field_changed(lines[5], id=name), *lines[6:]],
    )
    strict = with_policies(context, missing_signals="fail")
    build_snapshot(strict, SNAPSHOT, ["raw_snapshot"])
    with pytest.raises(CorruptFile, match=words):
        build_snapshot(strict, SNAPSHOT, ["filtered_documents"])
    assert unpublished(strict.lake, "filtered_documents")
    built = build_snapshot(context, SNAPSHOT, JUDGED)["filtered_documents"]
    assert (built.counts.seen, built.counts.kept) == (24, 18)
    assert built.counts.extra["shards skipped: signals missing or broken"] == 1
    mend(context, sound)
    assert (
        build_snapshot(context, SNAPSHOT, JUDGED)["filtered_documents"].published.digest
        == sound.digests["filtered_documents"]
    )


def one_word(n_chars: int) -> str:
    """Printable ASCII without a space, like nothing that a tokenizer has seen."""
    return "".join(map(chr, np.random.default_rng(7).integers(33, 127, n_chars)))


WORDS = "alder birch cedar elm hazel maple oak willow "
HOSTILE = {
    "a megabyte without a space": one_word(1_000_000),
    "one letter a million times": "a" * 1_000_000,
    "a million spaces": " " * 1_000_000,
    "a million ends of lines": "\n" * 1_000_000,
    "lone surrogates": "\ud800 and \udfff within " * 40,
    "surrogates that make a pair": "\ud83d\ude00 " * 100,
    "NUL": "nothing\0at all\0" * 60,
    "from right to left": "\u202eשלום עולם مرحبا بالعالم\u202c " * 40,
    "half a million marks on one letter": "a" + "\u0301" * 500_000,
    "end of text": "<|endoftext|> " * 80,
    "every control character": "".join(map(chr, range(32))) * 20,
    "beyond the basic plane": "\U0001f469\u200d\U0001f680" * 200,
    "noncharacters and a byte order mark": "\ufeff\ufffe\uffff\U0010ffff" * 100,
    "quotes and backslashes": '\\"\\\\u0000{{}}' * 100,
}


def hostile_upstream(folder: Path, texts: list[str]) -> Path:
    """One shard of these texts; their urls and titles are hostile too. Signals are sound and few,
    so that the rules let all pass.
    """
    for part in ("documents", "signals", "duplicates"):
        file_of(folder, part, SHARD.tag).parent.mkdir(parents=True)
    (folder / "listings").mkdir()
    (folder / f"listings/en-{SNAPSHOT}-head_middle.txt").write_text(f"{SHARD.tag}\n")
    records = [
        msgspec.structs.replace(made_up_record(SHARD, line, text), title=text[:200])
        for line, text in enumerate(texts)
    ]
    # The standard library writes lone surrogates as escapes, where msgspec would refuse.
    lines = b"".join(json.dumps(msgspec.to_builtins(record)).encode() + b"\n" for record in records)
    file_of(folder, "documents", SHARD.tag).write_bytes(gzip.compress(lines, 1, mtime=0))
    scores = {
        "rps_doc_mean_word_length": 5.0,
        "rps_doc_symbol_to_word_ratio": 0.0,
        "rps_doc_word_count": 1e6,
    }
    judged = [
        (line, DocumentRecord(raw_content="", url=record.url), scored(scores))
        for line, record in enumerate(records)
    ]
    write_signals(file_of(folder, "signals", SHARD.tag), SHARD, judged)
    write_duplicates(file_of(folder, "duplicates", SHARD.tag), SHARD, [])
    return folder


def scored(scores: dict[str, float]) -> dict[str, list]:
    return {name: [(0, 1, score)] for name, score in scores.items()}


def assert_comes_through(context, texts: list[str]) -> None:
    """Each text is in `filtered` as it was and a row of the grid, whose tokens are the reference's;
    the whole chain stands.
    """
    built = build_all(context, [SNAPSHOT])
    filtered, grid = built[f"filtered_documents/{SNAPSHOT}"], built[f"token_grid/{SNAPSHOT}"]
    assert (
        filtered.counts.kept
        == grid.counts.kept
        == built[f"megatron_rows/{SNAPSHOT}"].counts.kept
        == len(texts)
    )
    assert [line["raw_content"] for line in kept(filtered.published).values()] == [
        without_surrogates(text) for text in texts
    ]
    assert finding(built[f"token_documents/{SNAPSHOT}"], "the_fast_tokenizer_agreed").passed
    plan = read_table(grid.published.folder / "rows.parquet").to_pylist()
    reference = gpt2_tokenizer(fast=False)
    for row in plan:
        found = GridReader(grid.published.folder / f"{row['split']}.zarr").read(
            slice(row["row"], row["row"] + 1)
        )
        text = texts[int(row["id"].rpartition("/")[2])]
        np.testing.assert_array_equal(
            np.roll(found[0], -row["shift"]),
            reference.encode(text[:2000])[:TINY_ROW_TOKENS],
        )
    assert {row["split"] for row in plan} <= set(SPLITS)
    assert built["blended_mix/by-tokens"].counts.kept > 0


def hostile_context(tmp_path: Path, texts: list[str], **filtering):
    mixes = {
        name: mix for name, mix in tiny_recipe(tmp_path).blended_mix.items() if name == "by-tokens"
    }
    settings = FilteringSettings(rules=str(tmp_path / "lenient.toml"), min_words=0, **filtering)
    return tiny_context(
        tmp_path,
        upstream=hostile_upstream(tmp_path / "upstream", texts),
        blended_mix=mixes,
        filtered_documents=settings,
    )


def test_outrageous_texts_come_through_the_whole_chain(tmp_path):
    """A megabyte in one word, a million spaces, surrogates, NUL, text from right to left: each is a
    document like others.
    """
    texts = list(HOSTILE.values())
    assert_comes_through(hostile_context(tmp_path, texts), texts)


@pytest.mark.parametrize("n_chars", [5_000_000, pytest.param(50_000_000, marks=pytest.mark.slow)])
def test_a_long_document_comes_through_the_whole_chain(tmp_path, n_chars):
    """It is read, judged, tokenized and laid out as any other; nothing is cut but what a row does
    not hold.
    """
    texts = [
        (WORDS * (n_chars // len(WORDS) + 1))[:n_chars],
        " ".join(reversed(WORDS.split())) * 20,
    ]
    context = hostile_context(tmp_path, texts)
    assert_comes_through(context, texts)
    tokens = context.lake.partition("token_documents", SNAPSHOT).require().folder
    assert read_table(tokens / f"{SHARD.name}.documents.parquet")["n_chars"].to_pylist() == [
        n_chars,
        len(texts[1]),
    ]
