"""Any corpus into packed rows: what `packing_tokens` and `packed_rows` do in a lake, for files and
folders of documents.

Each file is tokenized in a process of its own, then all documents are planned together, then rows
are written by groups. What comes of it is laid out as a version of `packed_rows` is, with all rows
in ``train``, and the rows' texts beside them; nothing is written into a folder that holds something
already. Ids of a corpus may repeat, so documents are drawn for by file and number.

Here: one corpus. Not here: the plan (`stages.packing_plans`), the files (`stages.packing_writing`),
    texts
(`stages.packing_texts`).
"""

import functools
import math
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from lc_assets.build.checks import DOCUMENTS_SUFFIX
from lc_assets.build.settings.longpack import PackingSettings
from lc_assets.build.tables import TableWriter, read_table
from lc_assets.counts import Counts
from lc_assets.errors import BadInput, Mismatch
from lc_assets.execution.executor import Executor
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.formats.corpora.containers import MAX_DOCUMENT_BYTES, without_suffix
from lc_assets.formats.corpora.reading import corpus_files, read_corpus
from lc_assets.formats.corpora.records import CorpusDocument, Unread, as_float
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.lake.receipts import SCRATCH
from lc_assets.packing.methods import CUT_AT_ENDS, KEEP_ORDER
from lc_assets.packing.pieces import Balance, balance, covered_as_often
from lc_assets.publishing import publish
from lc_assets.stages.megatron.megatron_settings import Settled
from lc_assets.stages.megatron.megatron_writing import EMPTY
from lc_assets.stages.packing.packing_documents import (
    DOCUMENTS,
    NO_SOURCE,
    PackingDocuments,
    read_documents,
)
from lc_assets.stages.packing.packing_ends import ends_tasks, find_ends, read_ends
from lc_assets.stages.packing.packing_plans import (
    UPSAMPLE,
    DocumentGroups,
    ended_lengths,
    held_out,
    plan_packing,
    taken,
)
from lc_assets.stages.packing.packing_texts import write_texts
from lc_assets.stages.packing.packing_writing import Vocabulary, run_tasks, write_plan
from lc_assets.stages.tokens.checked_tokenizing import GAVE_UP, SpotCheck, tokenize_checked
from lc_assets.tokens.dtypes import megatron_dtype
from lc_assets.tokens.tokenizers import Tokenizer

WORK: Final = ".tokens"
TOO_SHORT: Final = "too few tokens"
SOURCE: Final = "source"
ORDER: Final = "order"
GROUP: Final = "group"
TOKENS: Final = pa.schema(
    [*DOCUMENTS, (SOURCE, pa.string()), (ORDER, pa.float64()), (GROUP, pa.string())]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusPacking:
    """How a corpus is to be packed.

    Attributes:
        settled: its tokenizer, looked up; ``settled.ids.eod`` ends documents.
        settings: of packing; ``documents``, ``wanted`` and what is held out play no part.
        source_field: field of a record that names its source, for upsampling; nothing: all are of
            one.
        texts: whether the rows' texts are written too.
        order_field: field of a record with a number; documents are packed in this order, not in
            that of their hashes.
        group_field: field of a record that names its group, such as a repository; documents of a
            group are packed together, and rows are shuffled. None: all are one group, in order.

    Raises:
        BadInput: if there is a group field without an order field, or the method keeps no order.
    """

    settled: Settled
    settings: PackingSettings
    source_field: str | None = None
    texts: bool = True
    order_field: str | None = None
    group_field: str | None = None

    def __post_init__(self) -> None:
        if self.group_field is not None and self.order_field is None:
            raise BadInput("a group column needs an order column: give --order-by with --group-by")
        if self.order_field is not None and self.settings.method not in KEEP_ORDER:
            raise BadInput(
                f"method {self.settings.method} does not keep the order of documents: with "
                f"--order-by take {' or '.join(KEEP_ORDER)}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedCorpus:
    """What was made of a corpus.

    Attributes:
        read: documents seen, those with tokens enough, and why the others are left out.
        balance: where the tokens are.
        texts: rows whose texts were written.
    """

    read: Counts
    balance: Balance
    texts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusTask:
    """One file of a corpus to be tokenized into ``folder`` under ``name``."""

    file: Path
    folder: Path
    name: str
    packing: CorpusPacking

    def __str__(self) -> str:
        return str(self.file)


def pack_corpus(
    sources: Sequence[Path], out: Path, packing: CorpusPacking, *, executor: Executor
) -> PackedCorpus:
    """Pack a corpus into rows.

    Args:
        sources: files and folders of documents.
        out: a folder that is not there, or empty.
        packing: how.
        executor: what runs the work.

    Raises:
        BadInput: when a source or a setting cannot be meant, ``out`` holds something, or no
            document is left.
        CorruptFile: when a file's container is damaged.
        NotWritable, StorageFull: when ``out`` cannot be written to.
    """
    files = corpus_files(sources)
    work = _begin(out)
    tasks = [
        CorpusTask(file=file, folder=work, name=_name(number, file), packing=packing)
        for number, file in enumerate(files)
    ]
    read = Counts.total(found for _, found in executor.run(tokenize_file, tasks, what="tokenize"))
    settings, ids = packing.settings, packing.settled.ids
    documents = read_documents(
        work,
        source=SOURCE if packing.source_field and settings.method == UPSAMPLE else NO_SOURCE,
        named=False,
    )
    if not len(documents):
        raise BadInput(
            f"no document to pack of {read.seen:,} seen: "
            f"{', '.join(f'{n:,} {why}' for why, n in read.dropped.items()) or 'none'}"
        )
    ends = None
    if settings.method in CUT_AT_ENDS and settings.cut_at == "ends":
        tokenizer, most = packing.settled.setting, settings.segment_tokens
        at_ends = ends_tasks(
            documents.shards, work, work, tokenizer=tokenizer, n_ids=ids.n_ids, segment_tokens=most
        )
        read += Counts.total(
            found for _, found in executor.run(find_ends, at_ends, what="find ends")
        )
        ends = read_ends(at_ends)
    groups = _groups(work, documents, packing)
    plans = {"train": plan_packing(documents, settings, ends, groups=groups)["train"]}
    lengths = ended_lengths(documents, settings)
    if not covered_as_often(
        plans["train"].pieces, lengths, taken(documents, settings, held_out(documents, settings))
    ):
        raise Mismatch("the plan lost tokens or has some twice: nothing is written")
    vocabulary = Vocabulary(tokenizer=ids.tokenizer, n_ids=ids.n_ids, eot=ids.eod)
    about = {"packing": settings.method, "documents_end": settings.append_eod}
    writing = write_plan(
        plans, documents, work, out, vocabulary, about=about, whole_rows=settings.megatron == "rows"
    )
    run_tasks(writing, executor=executor, what="write rows")
    texts = (
        write_texts(out, work, packing.settled.setting, vocabulary, executor=executor)
        if packing.texts
        else Counts()
    )
    for done in (work, out / SCRATCH):
        shutil.rmtree(done)
    return PackedCorpus(read=read, balance=balance(plans["train"], lengths), texts=texts)


def _groups(
    work: Path, documents: PackingDocuments, packing: CorpusPacking
) -> DocumentGroups | None:
    """Read the order and group of every document, where a record's field gives the order."""
    if packing.order_field is None:
        return None
    paths = [work / f"{shard}{DOCUMENTS_SUFFIX}" for shard in documents.shards]
    table = pa.concat_tables([read_table(path, [ORDER, GROUP]) for path in paths])
    return DocumentGroups(
        order_by=np.asarray(table[ORDER], np.float64),
        names=table[GROUP].to_pylist() if packing.group_field else None,
    )


def _begin(out: Path) -> Path:
    """Make the folders; what a run that was stopped left of its own work goes.

    Raises:
        BadInput: when the folder holds something else.
    """
    if (out / WORK).is_dir():
        shutil.rmtree(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out}: is there already and holds something; name a new folder")
    with os_errors_as_lc_errors(out):
        (out / WORK).mkdir(parents=True)
    return out / WORK


def _name(number: int, file: Path) -> str:
    return f"{number:05d}-{without_suffix(file.name)}"


def tokenize_file(task: CorpusTask) -> Counts:
    """Tokenize one file."""
    work = functools.partial(_tokenize, task)
    return tokenize_checked(task.packing.settled.setting, task.file.name, work)


def _tokenize(task: CorpusTask, tokenizer: Tokenizer, check: SpotCheck) -> Counts:
    dropped, n_kept, settled = Counter[str](), 0, task.packing.settled
    with (
        MegatronWriter.publishing(
            task.folder / task.name, megatron_dtype(settled.ids.n_ids)
        ) as writer,
        publish(task.folder / f"{task.name}{DOCUMENTS_SUFFIX}") as draft,
    ):
        table = TableWriter(draft, TOKENS)
        for document in read_corpus(
            task.file, text_field=settled.writing.text_field, max_document_bytes=MAX_DOCUMENT_BYTES
        ):
            ids = (
                document.why
                if isinstance(document, Unread)
                else _ids(task, tokenizer, check, document)
            )
            if isinstance(document, Unread) or isinstance(ids, str):
                dropped[str(ids)] += 1
                continue
            writer.add(ids)
            table.add(_line(task, document, n_kept, len(ids)))
            n_kept += 1
        table.close()
    return Counts(
        seen=n_kept + dropped.total(),
        kept=n_kept,
        dropped=dict(dropped),
        failed_rules=dict(dropped),
        extra={"files": 1},
    )


def _ids(
    task: CorpusTask, tokenizer: Tokenizer, check: SpotCheck, document: CorpusDocument
) -> np.ndarray | str:
    """Ids of a document, or why it is left out."""
    check.see(document.text)
    try:
        ids = tokenizer.encode(document.text)
    except BadInput:
        return GAVE_UP
    if not len(ids):
        return EMPTY
    return ids if len(ids) >= task.packing.settings.min_tokens else TOO_SHORT


def _line(
    task: CorpusTask, document: CorpusDocument, number: int, n_tokens: int
) -> dict[str, object]:
    packing = task.packing
    named = packing.source_field, packing.group_field
    fields = msgspec.json.decode(document.rest) if any((*named, packing.order_field)) else {}
    source, group = (str(fields.get(field) or "") if field else "" for field in named)
    order = as_float(fields.get(packing.order_field)) if packing.order_field else 0.0
    if order is None or not math.isfinite(order):
        raise BadInput(
            f"{task.file}: document {document.id}: field {packing.order_field!r} holds no number; "
            f"wanted one in every record to order by; fields: {', '.join(sorted(fields))}"
        )
    return {
        "id": document.id,
        "url": document.url,
        "digest": "",
        "document": number,
        "n_tokens": n_tokens,
        SOURCE: source,
        ORDER: order,
        GROUP: group,
    }
