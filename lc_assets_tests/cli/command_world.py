"""Every command that writes, with small inputs for it: for tests that take away room or rights."""

import json
from hashlib import sha256
from pathlib import Path

import numpy as np

from lc_assets.formats.archives.writing import FetchedPage, write_pages
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets_tests.builders import WORDS

OVER_FILES = {
    "signals": "signals corpus.jsonl {out}",
    "filter": "filter corpus.jsonl {out} --rules gopher-paper --all-signals",
    "minhash": "minhash corpus.jsonl {out}",
    "dedup": "dedup corpus.jsonl {out} --threshold 0.8 --paragraphs 2",
    "decontaminate": "decontaminate corpus.jsonl {out} --against items.jsonl",
    "links": "links crawl.warc.gz {out} --jsonl links",
    "longpack": "longpack pages.jsonl {out} --warc crawl.warc.gz --any-language --rest",
    "referrals": "referrals corpus.jsonl {out} --max-df 1",
    "buckets": "buckets corpus.jsonl {out} --edges 16,64",
    "tokenize": "tokenize corpus.jsonl {out} --append-eod",
    "pack": "pack corpus.jsonl {out} --length 256 --texts",
    "pack concat": "pack corpus.jsonl {out} --length 256 --method concat",
    "pack segment": "pack corpus.jsonl {out} --length 256 --method segment --segment 64",
    "pack reorder": "pack corpus.jsonl {out} --length 256 --method reorder --segment 64",
    "pack upsample": "pack corpus.jsonl {out} --length 256 --method upsample --threshold 64",
    "pack similar": "pack corpus.jsonl {out} --length 1500 --similar --path",
    "megatron index": "megatron index web --seq-length 8 --samples 100 --out {out}",
    "megatron blend": "megatron blend --weights 0.7 0.3 --size 9999 --out {out}",
    "megatron cache": "megatron cache --launch launch.args --tokenizer-identity id.json --cache {out}",
    "megatron merge": "megatron merge web other --output {out}/all",
    "megatron export": "megatron export web --to nanogpt --output {out}/train.bin",
    "megatron export datasets": "megatron export web --to datasets --output {out}",
    "megatron decompose": "megatron decompose web --output {out} --shortest 4 --longest 16",
    "sample": "sample {out} --from texts --snapshot 2023-06",
    "build": "build --source corpus.jsonl --lake {out} --language en --row-tokens 64 --min-words 1",
}
"""Commands that write ``{out}`` from the files of `files_to_read`, by name."""

WITHOUT_WORKERS = ("index", "blend", "merge", "export", "decompose")


def files_to_read(folder: Path) -> None:
    """Write the inputs of `OVER_FILES`, which are paths relative to ``folder``."""
    rng = np.random.default_rng(7)
    texts = [" ".join(WORDS[k] for k in rng.integers(len(WORDS), size=90)) + "." for _ in range(12)]
    texts.append(texts[0])
    lines = [json.dumps({"id": f"d{n}", "text": text}) for n, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "items.jsonl").write_text(json.dumps({"text": texts[3][:200]}) + "\n")
    urls = [f"http://a.org/{number}/x" for number in range(len(texts) - 1)]
    pages = []
    for number, text in enumerate(texts[:-1]):
        links = "".join(
            f"<a href='{urls[(number + step) % len(urls)]}'>page {number + step}</a>"
            for step in (1, 2)
        )
        pages.append(FetchedPage(urls[number], "2023-02-02T00:00:00Z", f"<p>{text}</p>{links}"))
    write_pages(folder / "crawl.warc.gz", pages, filename="crawl.warc.gz")
    (folder / "pages.jsonl").write_text(
        "".join(
            json.dumps({"url": url, "text": text}) + "\n"
            for url, text in zip(urls, texts, strict=False)
        )
    )
    (folder / "texts").mkdir()
    for number, text in enumerate(texts[:3]):
        (folder / "texts" / f"{number}.txt").write_text(f"{text}\n" * 9)
    for name in ("web", "other"):
        with MegatronWriter.publishing(folder / name, np.dtype("<u2")) as writer:
            for length in [5, 3, 9, 1, 12, 7] * 200:
                writer.add(np.arange(length))
    (folder / "id.json").write_text(json.dumps({"class": "Mine", "path": "here"}))
    (folder / "launch.args").write_text(
        "--data-path 1 web 2 other --seq-length 8 --seed 1234 --split 90,10,0 --train-samples 60 "
        "--global-batch-size 4 --eval-iters 1\n"
    )


def words_of(name: str, out: Path) -> list[str]:
    """The words of a command of `OVER_FILES`, in this process alone."""
    words = OVER_FILES[name].format(out=out).split()
    return words + ([] if set(words) & set(WITHOUT_WORKERS) else ["--workers", "1"])


def tree(folder: Path) -> dict[str, str]:
    """Digests of all files below a folder, by path; of receipts, which hold times, the names."""
    return {
        f"{path.relative_to(folder)}": sha256(path.read_bytes()).hexdigest()
        if path.name not in ("receipt.json", "summary.json", "current.json")
        else ""
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
