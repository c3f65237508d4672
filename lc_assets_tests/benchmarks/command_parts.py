"""The parts of a command over a file of JSON lines that nothing spares: each by itself, in memory,
without tables, checks and objects around it; and what `lc tokenize` and `lc dedup` do, as a few lines.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from isal import igzip

from lc_assets.api.files import Output
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.settings.documents import NearDuplicateSettings
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.formats.corpora.containers import CorpusDocument
from lc_assets.formats.lists.rule_files import read_rules
from lc_assets.formats.redpajama.signals import signals_lines
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.lake.digests import FileFact, crc32_of_file, fact_of
from lc_assets.publishing import gzipped
from lc_assets.stages.deduplication.index import BANDS, ROWS
from lc_assets.stages.tokens.tokenized_text import read_texts, text_digest
from lc_assets.text.duplicates.keys import (
    PUBLISHED_SHINGLES,
    ascending,
    band_keys,
    jaccard,
    shingles_each,
)
from lc_assets.text.duplicates.minhash import FAST, RPV2, signatures_each
from lc_assets.text.folding import normalized_each
from lc_assets.text.links.addresses import keys_of_columns
from lc_assets.text.rules.columns import values_of_each
from lc_assets.text.rules.models import Offered
from lc_assets.text.signals.signals import signals_of_each
from lc_assets.text.texts import Texts, parts, together
from lc_assets.tokens.dtypes import stored_dtype
from lc_assets_tests.benchmarks.chain_parts import (
    BPE,
    MINHASH,
    ZSTD,
    compress_texts,
    encode_texts,
    sign_texts,
)

JSON, RULES, SIGNALS, RPV2_BITS, GZIP, DIGESTS = (
    *("JSON", "kernels of rules", "kernels of signals", "MinHash, RPv2's bits"),
    *("gzip of lines", "SHA-256 and CRC-32 of files"),
)


class Line(msgspec.Struct):
    """What a command reads of a record."""

    text: str
    id: str = ""
    url: str = ""


def bare_parts(path: Path, found: Output) -> dict[str, Callable[[object], object]]:
    """Each part, by name.

    Args:
        path: the file of JSON lines.
        found: what a command made of it; every file is digested.
    """
    lines, decoder = path.read_bytes(), msgspec.json.Decoder(Line)
    batches = list(together((line.text for line in decoder.decode_lines(lines)), len))
    utf8 = [Texts(texts).utf8 for texts in batches]
    columns = sorted(read_rules("gopher-paper").columns)
    files = [path, *(file for file in found.folder.rglob("*") if file.is_file())]
    contents = [igzip.decompress(file.read_bytes()) for file in files if file.suffix == ".gz"]

    def signals(_: object) -> None:
        for texts in batches:
            measured, none = signals_of_each(Texts(texts), [""] * len(texts)), [""] * len(texts)
            documents = [CorpusDocument(id="", text=text) for text in texts]
            signals_lines(documents, measured, none, language="en")

    def compress(_: object) -> None:
        for content in contents:
            with gzipped(path.with_suffix(".gz")) as out:
                out.write(content)

    return {
        JSON: lambda _: decoder.decode_lines(lines),
        RULES: lambda _: [values_of_each(list(map(Offered, it)), columns) for it in batches],
        SIGNALS: signals,
        MINHASH: lambda _: sign_texts(utf8),
        RPV2_BITS: lambda _: sign_texts(utf8, RPV2),
        BPE: lambda _: encode_texts(utf8, TokenizingSettings(min_tokens=1)),
        ZSTD: lambda _: compress_texts(utf8),
        GZIP: compress,
        DIGESTS: lambda _: [fact_of(file.parent, file.name) for file in files],
    }


def filtered_by_hand(path: Path, out: Path) -> list[FileFact]:
    """What the table of kept documents needs of the libraries that write it, where none may be
    broken, dropped or too large: the lines, the table of them, and the digests of both files.
    """
    lines = msgspec.json.Decoder(Line).decode_lines(path.read_bytes())
    columns = {name: [getattr(line, name) for line in lines] for name in ("id", "url", "text")}
    return _written(columns, out / "texts.parquet", path)


def tokenized_by_hand(path: Path, out: Path, names: Sequence[str] = ("gpt2",)) -> list[FileFact]:
    """The same of ``lc tokenize --append-eod``, by which the table is read and verified: ids of its
    texts by each tokenizer, and the digests of texts and files.
    """
    facts = filtered_by_hand(path, out)
    table = out / "texts.parquet"
    assert crc32_of_file(table) == facts[0].crc32
    column = pq.read_table(table, columns=["text"], use_threads=False)["text"].combine_chunks()
    texts = column.view(pa.binary()).to_pylist()
    digests = [hashlib.sha256(text).hexdigest() for text in texts]
    assert len(digests) == len(texts)
    for number, tokenizer in enumerate(map(tokenizer_of, names)):
        program, end = tokenizer._encoding, np.array([tokenizer.eot], np.uint32)
        parts = [part for text in texts for part in (program.encode(text), end)]
        ids = out / f"texts{number or ''}.bin"
        ids.write_bytes(np.concatenate(parts).astype(stored_dtype(tokenizer.vocab_size)).data)
        facts.append(fact_of(out, ids.name))
    return facts


def removed_by_hand(path: Path, out: Path) -> set[frozenset[str]]:
    """What ``lc dedup`` needs of the libraries and kernels that it uses, from lines to pairs of near
    duplicates, of documents that nothing withdraws: each table written, digested, verified and read
    once for every stage that needs its texts; no rows, checks, decisions and receipts.
    """
    lines = msgspec.json.Decoder(Line).decode_lines(path.read_bytes())
    names = [line.id for line in lines]
    kept = {"id": names, "url": [it.url for it in lines], "raw_content": [it.text for it in lines]}
    table = _published(kept, out / "texts.parquet", path)
    signed: dict[str, list[Any]] = {"digest": [], "text": [], "numbers": []}
    for some in read_texts(table, ["id"], PrivacySettings()):
        normalized = normalized_each(*some.tokenized)
        numbers, _ = signatures_each(*normalized, FAST)
        signed["digest"] += [text_digest(text.data) for text in parts(*some.raw)]
        signed["text"] += [hashlib.sha256(text.data).digest() for text in parts(*normalized)]
        signed["numbers"] += [own.tobytes() for own in numbers]
    signatures = _published({"id": names, **signed}, out / "signatures.parquet")
    read = pq.read_table(signatures, use_threads=False)
    numbers = np.frombuffer(b"".join(read["numbers"].to_pylist()), np.uint32)
    bands = band_keys(numbers.reshape(len(names), -1)[:, : BANDS * ROWS].reshape(-1, BANDS, ROWS))
    keys = keys_of_columns(
        {name: kept.get(name) or signed[name] for name in ("id", "url", "digest")}
    )
    _published({"key": np.sort(keys[0])}, out / "keys.parquet")
    pairs = {
        (order[at], order[at + 1])
        for band in bands.T
        for order in [np.argsort(band, kind="stable").tolist()]
        for at in np.flatnonzero(np.diff(band[order]) == 0)
    }
    only = np.zeros(len(names), np.bool_)
    only[[place for pair in pairs for place in pair]] = True
    sets: list[Any] = []
    for some in read_texts(table, [], PrivacySettings(), only):
        each = shingles_each(*normalized_each(*some.tokenized), PUBLISHED_SHINGLES)
        sets += map(ascending, parts(*each))
    at, floor = np.cumsum(only) - 1, NearDuplicateSettings().evidence_floor
    alike = {pair for pair in pairs if jaccard(*(sets[at[place]] for place in pair)) >= floor}
    _published({"a": [a for a, _ in alike], "b": [b for _, b in alike]}, out / "pairs.parquet")
    return {frozenset(names[place] for place in pair) for pair in alike}


def _written(columns: Mapping[str, Sequence[Any]], path: Path, *inputs: Path) -> list[FileFact]:
    """Write a table; digest it, and its inputs."""
    how = {"use_dictionary": False, "write_statistics": False}
    pq.write_table(pa.table(dict(columns)), path, compression="none", **how)
    return [fact_of(file.parent, file.name) for file in (path, *inputs)]


def _published(columns: Mapping[str, Sequence[Any]], path: Path, *inputs: Path) -> Path:
    """A table, written, digested as its inputs are, and verified."""
    facts = _written(columns, path, *inputs)
    assert crc32_of_file(path) == facts[0].crc32
    return path
