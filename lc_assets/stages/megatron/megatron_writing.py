"""Any corpus to Megatron's ``.bin`` and ``.idx``: what ``tools/preprocess_data.py`` and NeMo
Curator's ``MegatronTokenizerWriter`` do.

Each file of the corpus becomes a part, a whole data set of its own, in a process of its own. The
parts are then put together in the order of their files' names, or kept (Curator's layout). A run
that was killed finds its finished parts again.

* One sequence per document. A document without ids is dropped and counted: Megatron keeps a
  boundary for it that nobody reads, Curator a sequence of length 0, or of nothing but the end of
  document.
* A file without documents has no part: nobody could map its ``.bin``.
* Ids are checked as `lc_assets.stages.tokens.checked_tokenizing` says.
* Text that spells a special token is text.

Here: tokenizing a corpus. Not here: joining data sets
    (`lc_assets.stages.megatron.megatron_merging`), the lake's own shards
(`lc_assets.stages.tokens.token_documents`).
Source: Megatron-LM ``tools/preprocess_data.py``; NeMo Curator
    ``nemo_curator/stages/text/io/writer/megatron_tokenizer.py``.
"""

import contextlib
import functools
import glob
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.formats.corpora.reading import corpus_files, read_corpus
from lc_assets.formats.corpora.records import Unread
from lc_assets.formats.megatron.idx import bin_path, idx_path
from lc_assets.formats.megatron.indexed import MegatronWriter, put_in_place
from lc_assets.lake.receipts import decode_json, encode_json
from lc_assets.publishing import STAGING_PREFIX, publish_bytes, remove_staging_files
from lc_assets.stages.megatron.megatron_merging import join
from lc_assets.stages.megatron.megatron_receipts import (
    DataSetReceipt,
    read_receipt,
    receipt_path,
    write_receipt,
)
from lc_assets.stages.megatron.megatron_settings import Settled, part_name
from lc_assets.stages.tokens.checked_tokenizing import GAVE_UP, SpotCheck, tokenize_checked
from lc_assets.tokens.tokenizers import Tokenizer

_MOST_IDS: Final = 1 << 22
"""A batch of so many ids is written even when it has few documents: 8 or 16 MiB."""
EMPTY: Final = "empty"
TOKENS: Final = "tokens"
CHARACTERS: Final = "characters"
FILES: Final = "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTask:
    """One file of a corpus, to become ``{folder}/{name}.bin`` and ``.idx``."""

    file: Path
    folder: Path
    memos: Path
    settled: Settled

    @property
    def name(self) -> str:
        """Of the part, as Curator makes it from its sources' names."""
        return part_name([self.file.as_posix()], self.settled.label)

    @property
    def prefix(self) -> Path:
        """Of the part's files."""
        return self.folder / self.name

    def __str__(self) -> str:
        return str(self.file)


class Memo(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of a finished part: which file it was made of, as it was then, and what
    was counted.
    """

    n_bytes: int
    modified_ns: int
    counts: Counts


def write_data_set(
    sources: Sequence[Path], prefix: Path, settled: Settled, *, executor: Executor
) -> tuple[Counts, DataSetReceipt]:
    """Write a whole corpus as one data set, its files in the order of their names.

    While it is written the parts lie in the hidden folder ``.{prefix}.parts``: as many bytes again,
    until the end. After a failure the finished ones stay there, and the next run goes on with them.

    Returns:
        What was counted, and the receipt beside the data set.

    Raises:
        BadInput: when a source cannot be meant, or no document was left to write; nothing is
            replaced then.
        CorruptFile: when a file's container is damaged.
        NotWritable, StorageFull: when the place cannot be written to.
    """
    folder = prefix.with_name(f".{prefix.name}.parts")
    try:
        tasks = _tasks(sources, folder, folder, settled)
        _remove_staging_files(folder, prefix)
        counts = Counts.total(
            found for _, found in executor.run(write_part, tasks, what="tokenize")
        )
        _require_documents(counts, prefix)
        _join([task.prefix for task in tasks if idx_path(task.prefix).is_file()], prefix)
        shutil.rmtree(folder)
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()  # when nothing was finished
    return counts, write_receipt(prefix, made_by="write", ids=settled.ids, dropped=counts.dropped)


def write_parts(
    sources: Sequence[Path], folder: Path, settled: Settled, *, executor: Executor
) -> tuple[Counts, dict[tuple[Path, Path], DataSetReceipt]]:
    """Write each file of a corpus as a data set of its own, ``{folder}/{hash of its name}``, as
    Curator does.

    Returns:
        What was counted, and the receipt of every file that has documents, by the file and the
        prefix.

    Raises:
        BadInput, CorruptFile, NotWritable, StorageFull: as `write_data_set`; what was finished
        stays.
    """
    tasks = _tasks(sources, folder, folder / ".parts", settled)
    for task in tasks:
        _remove_staging_files(task.memos, task.prefix)
    counts = Counts.total(found for _, found in executor.run(write_part, tasks, what="tokenize"))
    receipts = {
        (task.file, task.prefix): found for task in tasks if (found := read_receipt(task.prefix))
    }
    return counts, receipts


def _tasks(sources: Sequence[Path], folder: Path, memos: Path, settled: Settled) -> list[PartTask]:
    files = corpus_files(sources)
    with os_errors_as_lc_errors(folder):
        memos.mkdir(parents=True, exist_ok=True)
    return [PartTask(file=file, folder=folder, memos=memos, settled=settled) for file in files]


def _remove_staging_files(folder: Path, prefix: Path) -> None:
    """Remove what a killed run of the same work left."""
    remove_staging_files(folder)
    for path in (bin_path(prefix), idx_path(prefix), receipt_path(prefix)):
        for draft in prefix.parent.glob(f"{STAGING_PREFIX}????????-{glob.escape(path.name)}"):
            draft.unlink(missing_ok=True)


def _join(parts: Sequence[Path], prefix: Path) -> None:
    with os_errors_as_lc_errors(prefix):
        if len(parts) == 1:
            put_in_place(parts[0], prefix)
        else:
            join(parts, prefix)


def write_part(task: PartTask) -> Counts:
    """Tokenize one file, unless that was done before and the file has not changed since."""
    memo_path, now = task.memos / f"{task.name}.json", task.file.stat()
    if memo_path.is_file():
        memo = decode_json(memo_path, Memo)
        whole = not memo.counts.kept or (
            bin_path(task.prefix).is_file() and idx_path(task.prefix).is_file()
        )
        if whole and (memo.n_bytes, memo.modified_ns) == (now.st_size, now.st_mtime_ns):
            return memo.counts
    work = functools.partial(_tokenize, task)
    counts = tokenize_checked(task.settled.setting, task.file.name, work)
    if task.folder != task.memos and counts.kept:
        write_receipt(task.prefix, made_by="write", ids=task.settled.ids, dropped=counts.dropped)
    publish_bytes(
        memo_path,
        encode_json(Memo(n_bytes=now.st_size, modified_ns=now.st_mtime_ns, counts=counts)),
    )
    return counts


def _tokenize(task: PartTask, tokenizer: Tokenizer, check: SpotCheck) -> Counts:
    dropped, n_characters, writing, ids = Counter[str](), 0, task.settled.writing, task.settled.ids
    with (
        MegatronWriter.publishing(task.prefix, np.dtype(ids.dtype)) as writer,
        _Batch(writer, writing.batch_size, eod=ids.eod) as batch,
    ):
        for document in read_corpus(
            task.file, text_field=writing.text_field, max_document_bytes=writing.max_document_bytes
        ):
            if isinstance(document, Unread):
                dropped[document.why] += 1
                continue
            check.see(document.text)
            reason = _add(batch, tokenizer, document.text)
            if reason:
                dropped[reason] += 1
            else:
                n_characters += len(document.text)
    extra = {TOKENS: writer.n_tokens, CHARACTERS: n_characters, FILES: 1}
    n_kept = writer.n_documents
    return Counts(
        seen=n_kept + dropped.total(),
        kept=n_kept,
        dropped=dict(dropped),
        failed_rules=dict(dropped),
        extra=extra,
    )


class _Batch:
    """Collects documents and writes them together: one cast, one range check, one write."""

    def __init__(self, writer: MegatronWriter, n_documents: int, *, eod: int | None) -> None:
        self._writer, self._most = writer, n_documents
        self._eod = (
            None
            if eod is None
            else np.array([eod], np.int64 if eod < 0 else np.min_scalar_type(eod))
        )
        self._parts, self._lengths, self._n_ids = list[NDArray[Any]](), list[int](), 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if kind is None:
            self.flush()

    def add(self, ids: NDArray[Any]) -> None:
        """Add the ids of one document, at least one, and the end of document where one is
        wanted.
        """
        self._parts.append(ids)
        if self._eod is not None:
            self._parts.append(self._eod)
        length = len(ids) + (self._eod is not None)
        self._lengths.append(length)
        self._n_ids += length
        if len(self._lengths) >= self._most or self._n_ids >= _MOST_IDS:
            self.flush()

    def flush(self) -> None:
        """Write what was collected.

        Raises:
            Mismatch: when an id does not fit the data set's dtype.
        """
        self._writer.add_documents(self._parts, self._lengths)
        self._parts, self._lengths, self._n_ids = [], [], 0


def _add(batch: _Batch, tokenizer: Tokenizer, text: str) -> str | None:
    """Add a document's ids, or say why there are none."""
    try:
        ids = tokenizer.encode(text) if text else None
    except BadInput:
        return GAVE_UP
    if ids is None or not len(ids):
        return EMPTY
    batch.add(ids)
    return None


def _require_documents(counts: Counts, prefix: Path) -> None:
    if not counts.kept:
        reasons = ", ".join(f"{n:,} {why}" for why, n in counts.dropped.items()) or "none"
        raise BadInput(
            f"{prefix}: no document to write of {counts.seen:,} seen ({reasons}); Megatron cannot "
            "open an empty data set"
        )
