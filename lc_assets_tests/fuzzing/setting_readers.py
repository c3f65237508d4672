"""Readers of what people write: recipes, rules, lists, launch arguments, evaluation sets, models by
path, names.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.builds.recipe_files import read_recipe
from lc_assets.builds.sharding import ShardRecord, read_records, write_records
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.lists.evaluations import read_items
from lc_assets.formats.lists.models import read_blocklist
from lc_assets.formats.lists.rule_files import parse_threshold, read_rules
from lc_assets.formats.lists.withdrawal_lists import read_withdrawals
from lc_assets.formats.lists.word_lists import read_special_words, read_word_lists
from lc_assets.formats.megatron.launch_arguments import read_identities, read_launch
from lc_assets.formats.tokenizers.files import open_tokenizer_file
from lc_assets.lake.digests import FileFact
from lc_assets.lake.releases import note_of
from lc_assets.vocabulary import Shard, parse_document_id, parse_snapshot
from lc_assets_tests.builders import recipe_file, tiny_recipe, tokenizer_json
from lc_assets_tests.formats.test_sentencepiece_models import BYTES, CONTROLS, WORDS, model
from lc_assets_tests.fuzzing.crawl_readers import written
from lc_assets_tests.fuzzing.table import Reader

RULES = b"""name = "mine"

[lines]
edit = "c4"

[[rule]]
name = "mean_word_length"
signal = "mean_word_length"
words = "whitespace"
at_least = 3
at_most = 10.5
source = "me"

[[rule]]
name = "symbols"
signal = "rps_doc_symbol_to_word_ratio"
at_most = 0.1
"""
WITHDRAWALS = b'''# taken down
kind,value,reason,date
domain,example.org,"owner's request, ticket ""17""",2026-03-01
url,https://example.com/private/page?a=1,personal data,2026-03-04
document,2023-06/0000/en_head.json.gz/17,court order,2026-03-09
digest,sha1:ZFRBHGQKZRRGXLVXHZUDJTXRDRGPNGPE,duplicate,2026-03-09
'''
LAUNCH = b"""--seq-length 24  # words of a shell
--data-path 0.7 web '0.3' "books"
--split 98,2,0 --seed 7 --train-iters 1000 --global-batch-size 8 --eval-interval 100 --eval-iters 10
--mid-level-dataset-surplus 0.005 --data-cache-path cache
"""
PER_SPLIT = (
    b"--seq-length 24 --per-split-data-args-path x.json --train-samples 80 --global-batch-size 8\n"
)
QUESTIONS = [
    {"question": "What is tea?", "choices": ["a", {"text": "b"}], "answer": "a", "id": 7},
    {"text": "One"},
]
NAMES = b"2023-06\n2023-06/0000/en_head\n2023-06/0000/en_head.json.gz/17\nsymbols.at_most=0.2\n"


def recipe(folder: Path) -> Any:
    return read_recipe(folder / "x.toml")


def make_recipe(folder: Path) -> None:
    recipe_file(folder / "x.toml", tiny_recipe(folder))


def launch(folder: Path) -> Any:
    found, cache = read_launch(folder / "x.args")
    return found, cache, found.bounds


def make_split_launch(folder: Path) -> None:
    (folder / "x.args").write_bytes(PER_SPLIT)
    (folder / "x.json").write_bytes(
        json.dumps({"train": ["1", "a"], "valid": "b c", "test": None}).encode()
    )


def make_identities(folder: Path) -> None:
    (folder / "x.json").write_bytes(
        json.dumps({"old": {"class": "GPT2", "merges": [1]}, "new": {"class": "GPT2"}}).encode()
    )


def make_words(folder: Path) -> None:
    (folder / "stop.json").write_bytes(json.dumps({"en": ["the", "a"], "de": ["der"]}).encode())
    (folder / "domains.json").write_bytes(json.dumps({"a.org": 1}).encode())
    (folder / "bad").mkdir()
    (folder / "bad" / "en.txt").write_bytes(b"one\ntwo words\n")
    (folder / "bad" / "de.json").write_bytes(b'["eins"]')


def words(folder: Path) -> Any:
    found = read_word_lists(
        stop_words=folder / "stop.json", bad_words=folder / "bad", domains=folder / "domains.json"
    )
    return found.stop_words, found.bad_words, found.domains


def make_questions(folder: Path) -> None:
    (folder / "x.jsonl").write_bytes(
        b"".join(json.dumps(one).encode() + b"\n" for one in QUESTIONS)
    )
    (folder / "y.json").write_bytes(json.dumps(QUESTIONS).encode())
    pq.write_table(
        pa.table({"question": ["a", "b"], "choices": [["x"], ["y", "z"]]}), folder / "z.parquet"
    )
    (folder / "w.txt").write_bytes("caf\u00e9\n\ntea\n".encode())


def questions(folder: Path) -> Any:
    found, refused = [], 0
    for name in ("x.jsonl", "y.json", "z.parquet", "w.txt"):
        try:
            found += list(read_items(folder / name))
        except BadInput:
            refused += 1
    return found, refused


def tokenizer(folder: Path) -> Any:
    found = open_tokenizer_file(folder / "tokenizer.json").vocabulary
    return found.n_ids, found.eot


def make_tokenizer(folder: Path) -> None:
    tokenizer_json(folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_bytes(b'{"eos_token": {"content": "</s>"}}')


def pieces(folder: Path) -> Any:
    found = open_tokenizer_file(folder / "x.model").vocabulary
    return found.n_ids, found.eot


def names(folder: Path) -> Any:
    """Each name is one that can be a path's, or is refused by every reader."""
    found = []
    for line in (folder / "x.txt").read_bytes().decode("utf-8", "replace").split("\n"):
        for parse in (parse_snapshot, Shard.parse, parse_document_id, parse_threshold, note_of):
            try:
                found.append(str(parse(line)))
            except BadInput:
                found.append("refused")
    return found


def make_shards(folder: Path) -> None:
    made = [
        ShardRecord(
            shard=f"000{n}",
            made_of="0" * 64,
            counts=Counts(seen=1, kept=1),
            files=(FileFact("a", 1, "0"),),
        )
        for n in range(3)
    ]
    write_records(folder, made)


TEXT, JSON, TOML = {"": ("text",)}, {"": ("json",)}, {"": ("toml",)}
READERS = (
    Reader(name="recipe", make=make_recipe, read=recipe, layers=TOML),
    Reader(
        name="rule file",
        make=written("x.toml", RULES),
        read=lambda at: read_rules(str(at / "x.toml")),
        layers=TOML,
    ),
    Reader(
        name="withdrawals",
        make=written("x.csv", WITHDRAWALS),
        read=lambda at: read_withdrawals(at / "x.csv"),
        layers=TEXT,
    ),
    Reader(name="launch arguments", make=written("x.args", LAUNCH), read=launch, layers=TEXT),
    Reader(
        name="launch arguments, per split",
        make=make_split_launch,
        read=launch,
        layers={".json": ("json",), ".args": ("text",)},
    ),
    Reader(
        name="tokenizer identities",
        make=make_identities,
        read=lambda at: read_identities(at / "x.json"),
        layers=JSON,
    ),
    Reader(
        name="word lists",
        make=make_words,
        read=words,
        layers={".json": ("json",), ".txt": ("text",)},
    ),
    Reader(
        name="blocklist",
        make=written("x.txt", b"# a\nexample.org\nhttps://b.org/page/\n10.0.0.1\n"),
        read=lambda at: read_blocklist(at / "x.txt").domains,
        layers=TEXT,
    ),
    Reader(
        name="referral words",
        make=written("x.txt", b"[stop]\na an\n[pronouns]\nhe\n"),
        read=lambda at: read_special_words(at / "x.txt"),
        layers=TEXT,
    ),
    Reader(
        name="evaluation sets",
        make=make_questions,
        read=questions,
        layers={".parquet": ("parquet",), ".txt": ("text",), "": ("json",)},
    ),
    Reader(name="tokenizer.json", make=make_tokenizer, read=tokenizer, layers=JSON),
    Reader(
        name="SentencePiece model",
        make=written("x.model", model(*CONTROLS, *BYTES, *dict.fromkeys(WORDS))),
        read=pieces,
    ),
    Reader(name="names", make=written("x.txt", NAMES), read=names, layers=TEXT),
    Reader(
        name="shards.jsonl",
        make=make_shards,
        read=lambda at: read_records(at / "shards.jsonl"),
        layers=JSON,
    ),
)
"""Doors for settings, lists, models and names."""
