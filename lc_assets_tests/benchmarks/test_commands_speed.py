"""What `lc filter`, `signals`, `dedup`, `minhash` and `tokenize` take from a file of JSON lines to what they
publish, against what they cannot do without (`lc_assets_tests.benchmarks.command_parts`), and against
datatrove's filters. Run with ``-s`` to see the figures.

Lengths are a crawl's. The time of the same command over one document is subtracted: start-up, and
what every stage costs whatever it reads.
"""

import json
import shutil
from functools import partial

import pytest

from lc_assets.api import corpora, files
from lc_assets.builds.settings.documents import (
    DocumentSignalSettings,
    FilteringSettings,
    NearDuplicateSettings,
    RemovalSettings,
    SignatureSettings,
)
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.tables import read_table
from lc_assets.stages.deduplication.near_duplicate_pairs import TABLE
from lc_assets.vocabulary import NO_RULES
from lc_assets_tests.benchmarks.chain_parts import BPE, MINHASH, ZSTD
from lc_assets_tests.benchmarks.command_parts import (
    DIGESTS,
    GZIP,
    JSON,
    RPV2_BITS,
    RULES,
    SIGNALS,
    bare_parts,
    filtered_by_hand,
    removed_by_hand,
    tokenized_by_hand,
)
from lc_assets_tests.benchmarks.crawl import crawl_texts
from lc_assets_tests.benchmarks.timing import ROUNDS, by_turns, cpu_seconds, say

pytestmark = pytest.mark.usefixtures("as_in_a_command")

N_CHARS = 12_000_000
"""Little enough for the commands to work in this process, where their time is seen."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A file of pages, one of a single page, and bytes of text of the first."""
    folder = tmp_path_factory.mktemp("pages")
    texts = list(crawl_texts(N_CHARS))
    lines = [
        json.dumps({"id": f"d{n}", "url": f"https://example.org/{n}", "text": text}) + "\n"
        for n, text in enumerate(texts)
    ]
    (folder / "many.jsonl").write_text("".join(lines))
    (folder / "one.jsonl").write_text(lines[-1])
    return folder, sum(len(text.encode()) for text in texts) / 1e6


def filtered(path, out):
    return corpora.filter(path, out, rules="gopher-paper", workers=1)


def filtered_as_datatrove(path, out):
    return corpora.filter(path, out, rules="gopher-datatrove", workers=1)


def kept(path, out):
    """The table of all documents, in a lake that is removed again."""
    settings = FilteringSettings(rules=NO_RULES, min_words=0, compression="none")
    sections, how = {"filtered_documents": settings}, {**corpora.ANY_LANGUAGE, "workers": 1}
    files.build_over(path, out, "filtered_documents", sections, **how)
    shutil.rmtree(out)


def measured(path, out):
    sections = {
        "filtered_documents": FilteringSettings(rules=NO_RULES, min_words=0),
        "document_signals": DocumentSignalSettings(lines=True),
    }
    return files.build_over(path, out, "document_signals", sections, language="en", workers=1)


def deduplicated(path, out):
    return corpora.deduplicate(path, out, workers=1)


def removed(path, out):
    """From texts to the table of removals, of the same settings as ``lc dedup``."""
    sections = {
        "document_signatures": SignatureSettings(signatures="fast"),
        "removed_documents": RemovalSettings(exact=("digest", "text", "url"), prefer=("newest",)),
        "near_duplicate_pairs": NearDuplicateSettings(),
        **corpora.UNCOMPRESSED,
    }
    how = {**corpora.ANY_LANGUAGE, "workers": 1}
    return files.build_over(path, out, "removed_documents", sections, **how)


def tokenized(path, out):
    settings = TokenizingSettings(min_tokens=1, append_eod=True)
    return corpora.tokenize(path, out, settings, workers=1)


def signed(path, out):
    signatures = SignatureSettings(signatures="computed")
    sections = {"document_signatures": signatures, **corpora.UNCOMPRESSED}
    how = {**corpora.ANY_LANGUAGE, "workers": 1}
    return files.build_over(path, out, "document_signatures", sections, **how)


def net_seconds(command, folder, out):
    """CPU seconds of a command over many pages, without those over one; the output, and both."""
    command(folder / "many.jsonl", out / "compiled")
    one, _ = cpu_seconds(lambda n: command(folder / "one.jsonl", out / f"one{n}"))
    many, found = cpu_seconds(lambda n: command(folder / "many.jsonl", out / f"many{n}"))
    return many - one, found


TABLES = (JSON, ZSTD, DIGESTS)
"""Parts of a command that is run for its table of kept documents; others leave it uncompressed."""


@pytest.mark.parametrize(
    ("command", "parts", "least"),
    [
        (filtered, (*TABLES, RULES), 0.55),
        (measured, (JSON, SIGNALS, GZIP, DIGESTS), 0.65),
        (removed, (JSON, DIGESTS, MINHASH), 0.15),
        (deduplicated, (JSON, DIGESTS, MINHASH, GZIP), 0.2),
        (signed, (JSON, DIGESTS, RPV2_BITS), 0.6),
        (tokenized, (JSON, DIGESTS, BPE), 0.3),
    ],
    ids=[
        "filter --rules gopher-paper",
        "signals",
        "dedup, from texts to removals",
        "dedup, and the kept documents written",
        "minhash",
        "tokenize",
    ],
)
def test_a_command_against_its_bare_parts(pages, tmp_path, command, parts, least, request):
    """MB of text per CPU-second: of the command, of its parts together, and of each."""
    folder, megabytes = pages
    seconds, found = net_seconds(command, folder, tmp_path)
    (built,) = list(found.stages.values())[-1].values()
    assert built.counts.seen == len((folder / "many.jsonl").read_text().splitlines())
    bare = bare_parts(folder / "many.jsonl", found)
    alone = {name: cpu_seconds(bare[name])[0] for name in parts}
    total = sum(alone.values())
    rates = ", ".join(f"{name} {megabytes / took:,.0f}" for name, took in alone.items())
    print(
        f"\n{request.node.callspec.id}: {megabytes / seconds:.1f} MB of text per CPU-second, "
        f"{total / seconds:.2f} of the rate of its bare parts, {megabytes / total:.1f}: {rates}"
    )
    assert total > least * seconds


def turns(command, by_hand, pages, out, compare):
    """Least CPU seconds, by turns: of a command over one page, over many, and of the same by hand.

    Args:
        command, by_hand: take a file of pages and a folder.
        pages: folder of the files.
        out: folder for what they write.
        compare: takes what both return, and the folder of the turn.
    """
    command(pages / "one.jsonl", out / "compiled")

    def turn(number):
        own = out / str(number)
        own.mkdir()
        one, _ = cpu_seconds(lambda _: command(pages / "one.jsonl", own / "one"), 1)
        many, found = cpu_seconds(lambda _: command(pages / "many.jsonl", own / "many"), 1)
        hand, made = cpu_seconds(lambda _: by_hand(pages / "many.jsonl", own), 1)
        compare(found, made, own)
        return one, many, hand

    return map(min, zip(*map(turn, range(ROUNDS)), strict=True))


def test_removing_against_the_same_by_hand(pages, tmp_path):
    """As of tokenizing, below; by hand no pairs are found but of neighbours in a bucket."""
    folder, megabytes = pages

    def compare(found, pairs, _):
        (built,) = found.stages["near_duplicate_pairs"].values()
        ours = read_table(built.published.folder / TABLE, ["a", "b"]).to_pylist()
        known = {frozenset(name.rpartition("/")[2] for name in pair.values()) for pair in ours}
        assert pairs <= known
        assert len(pairs) > 0.8 * len(known)

    one, many, hand = turns(removed, removed_by_hand, folder, tmp_path, compare)
    say("dedup, from texts to removals", megabytes, "MB of text", many - one, by_hand=hand)
    assert hand > 0.35 * (many - one)


def test_tokenizing_against_the_same_by_hand(pages, tmp_path):
    """MB of text per CPU-second: of the command, and of the libraries that it uses, by turns."""
    folder, megabytes = pages

    def compare(found, _, own):
        (ids,) = found.versions[0].glob("*.bin")
        assert ids.read_bytes() == (own / "texts.bin").read_bytes()

    one, many, hand = turns(tokenized, tokenized_by_hand, folder, tmp_path, compare)
    say("tokenize", megabytes, "MB of text", many - one, by_hand=hand)
    assert hand > 0.4 * (many - one)


def test_a_table_of_documents_against_the_same_by_hand(pages, tmp_path):
    """MB of text per CPU-second, by turns: of what nearly every command begins with, without rules
    and compression. What it takes more is Python's for each document, and checks.
    """
    folder, megabytes = pages
    works = {
        name: partial(kept, folder / f"{name}.jsonl", tmp_path / name) for name in ("one", "many")
    }
    works["hand"] = partial(filtered_by_hand, folder / "many.jsonl", tmp_path)
    one, many, hand = by_turns(ROUNDS, works).values()
    say("a table of documents", megabytes, "MB of text", many - one, by_hand=hand)
    assert hand > 0.3 * (many - one)


@pytest.mark.network
def test_filtering_against_datatrove(pages, tmp_path, monkeypatch):
    """Both of its Gopher filters, which end at the first failure; reading and writing lines; words
    at white space, which costs it less than spaCy: the preset's words cost us more.
    """
    pytest.importorskip("datatrove")
    from datatrove.data import Document
    from datatrove.pipeline.filters import (
        gopher_quality_filter,
        gopher_repetition_filter,
    )

    for module in (gopher_quality_filter, gopher_repetition_filter):
        monkeypatch.setattr(module, "split_into_words", lambda text, _: text.split())
    steps = (
        gopher_repetition_filter.GopherRepetitionFilter(),
        gopher_quality_filter.GopherQualityFilter(),
    )
    folder, megabytes = pages

    def theirs(out):
        with (folder / "many.jsonl").open() as lines, out.open("w") as kept:
            for line in lines:
                record = json.loads(line)
                document = Document(text=record["text"], id=record["id"])
                if all(step.filter(document) is True for step in steps):
                    kept.write(json.dumps(record) + "\n")

    seconds, _ = net_seconds(filtered_as_datatrove, folder, tmp_path)
    slow, _ = cpu_seconds(lambda _: theirs(tmp_path / "theirs.jsonl"), rounds=1)
    say("filter --rules gopher-datatrove", megabytes, "MB of text", seconds, datatrove=slow)
    assert seconds * 2 < slow
