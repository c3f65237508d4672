"""Four vocabularies from one reading, against the same four each by itself. Run with ``-s`` to see
the figures.

With TIKTOKEN_CACHE_DIR, three are OpenAI's; else three are trained here. The fourth is trained in
either case. The time over one document is subtracted, as in `test_commands_speed`. Words were seen
before.
"""

import json
import os

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from lc_assets.api import corpora
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.execution import local
from lc_assets_tests.benchmarks.crawl import crawl_texts, prose
from lc_assets_tests.benchmarks.timing import cpu_seconds

N_CHARS, ROUNDS = 12_000_000, 3
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


def net_seconds(pages, out, tokenizers):
    """Processor seconds over many pages, without those over one."""
    one, many = (
        cpu_seconds(
            lambda n, name=name: corpora.tokenize_each(
                pages / f"{name}.jsonl", out / f"{name}{n}", tokenizers, SETTINGS, workers=1
            ),
            rounds=ROUNDS,
        )[0]
        for name in ("one", "many")
    )
    return many - one


def test_four_vocabularies_cost_little_more_than_two(pages, tmp_path, tokenizers):
    for number, name in enumerate(tokenizers):  # each word is seen once
        corpora.tokenize_each(
            pages / "many.jsonl", tmp_path / f"seen{number}", [name], SETTINGS, workers=1
        )
    alone = [
        net_seconds(pages, tmp_path / str(number), [name]) for number, name in enumerate(tokenizers)
    ]
    together = net_seconds(pages, tmp_path / "together", tokenizers)
    mean = sum(alone) / len(alone)
    print(
        f"\nfour vocabularies from one reading ({prose()[0]}): {together / mean:.2f} × the mean of "
        f"each alone, {together / min(alone):.2f} × the cheapest, {sum(alone) / together:.2f} × "
        "faster than one after the other"
    )
    assert together < 2.7 * mean
