"""Four vocabularies from one reading, against the same four each by itself. Run with ``-s`` to see
the figures.

With TIKTOKEN_CACHE_DIR, three are OpenAI's; else three are trained here. The fourth is trained in
either case. The time over one document is subtracted, as in `test_commands_speed`. Words were seen
before.
"""

import itertools
import json
import os
from functools import partial

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from lc_assets.api import corpora
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.execution import local
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets_tests.benchmarks.command_parts import tokenized_by_hand
from lc_assets_tests.benchmarks.crawl import crawl_texts, prose
from lc_assets_tests.benchmarks.timing import by_turns

N_CHARS, ROUNDS = 12_000_000, 5
SETTINGS = TokenizingSettings(min_tokens=1, append_eod=True)
OPENAI = ("cl100k_base", "o200k_base")


def trained(path, n_ids):
    """A byte-level BPE, split as GPT-2's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=n_ids,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([prose()[1][:4_000_000]], trainer)
    tokenizer.save(str(path))
    return str(path)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers")
    others = OPENAI if "TIKTOKEN_CACHE_DIR" in os.environ else None
    others = others or [trained(folder / f"{n}.json", n) for n in (16_000, 24_000)]
    return ["gpt2", *others, trained(folder / "32000.json", 32_000)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A file of pages of a crawl's lengths, and one of a single page."""
    folder = tmp_path_factory.mktemp("pages")
    lines = [json.dumps({"id": f"d{n}", "text": t}) for n, t in enumerate(crawl_texts(N_CHARS))]
    assert N_CHARS < local.LARGE_BYTES  # so that the work is done, and timed, in this process
    for name, chosen in (("many", lines), ("one", lines[-1:])):
        (folder / f"{name}.jsonl").write_text("\n".join(chosen))
    return folder


def test_four_vocabularies_cost_little_more_than_two(pages, tmp_path, tokenizers):
    numbers = itertools.count()
    wanted = {name: [name] for name in tokenizers} | {"together": tokenizers}
    encoders = [tokenizer_of(name, fast=True) for name in tokenizers]
    contents = [text.encode() for text in crawl_texts(N_CHARS)]

    def tokenize(names, pages_of):
        out = tmp_path / str(next(numbers))
        corpora.tokenize_each(pages / f"{pages_of}.jsonl", out, names, SETTINGS, workers=1)

    works = {
        (name, pages_of): partial(tokenize, names, pages_of)
        for pages_of in ("many", "one")
        for name, names in wanted.items()
    }
    works["encoders"] = lambda: [one.encode(text) for one in encoders for text in contents]
    for n in (1, len(tokenizers)):
        by_hand = (pages / "many.jsonl", tmp_path, tokenizers[-n:])
        works[n] = partial(tokenized_by_hand, *by_hand)
    for work in works.values():  # each word is seen once
        work()
    seconds = by_turns(ROUNDS, works)
    net = {name: seconds[name, "many"] - seconds[name, "one"] for name in wanted}
    together = net.pop("together")
    mean = sum(net.values()) / len(net)
    print(
        f"\nfour vocabularies from one reading ({prose()[0]}): {together / mean:.2f} × the mean of "
        f"each alone, {together / min(net.values()):.2f} × the cheapest, "
        f"{sum(net.values()) / together:.2f} × faster than one after the other; the four encoders "
        f"alone {seconds['encoders'] / mean:.2f} × the mean; by hand "
        f"{seconds[len(tokenizers)] / seconds[1]:.2f} × one"
    )
    assert together < 2.5 * mean
