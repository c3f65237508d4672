"""The documents of a shard of files, numbered and named."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from lc_assets.errors import CorruptFile
from lc_assets.formats.corpora.batches import Batch
from lc_assets.formats.corpora.containers import CorpusDocument, Unread
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.upstream import UpstreamFile
from lc_assets.records import record
from lc_assets.sources.files import FileSource, usable_id
from lc_assets.stages.documents.raw_snapshot import ShardFiles, require_unchanged
from lc_assets.vocabulary import DocumentId

BROKEN = "documents missing or broken"

Record = CorpusDocument | Unread


@record
class NamedBatch:
    """Some documents of a shard.

    Attributes:
        begin: number of the first in the shard.
        names: the id of each, also of those that cannot be read.
        batch: the documents.
    """

    begin: int
    names: list[DocumentId]
    batch: Batch

    @property
    def numbers(self) -> range:
        """Of all documents, in the shard."""
        return range(self.begin, self.begin + len(self.names))

    @property
    def readable(self) -> list[int]:
        """Numbers of those that can be read."""
        return [self.begin + at for at in self.batch.positions]

    def records(self) -> Iterator[tuple[int, DocumentId, Record]]:
        """The documents, one by one, with their numbers and ids; see `Batch.documents`."""
        return zip(self.numbers, self.names, self.batch.documents(), strict=True)


def file_batches(
    source: FileSource, files: ShardFiles, folder: Path, fields: frozenset[str] | None = None
) -> Iterator[NamedBatch]:
    """The documents of a shard; see `FileSource.batches`.

    Of small files that share the shard, one that is missing or broken gives one document that
    cannot be read, for the reason `BROKEN`.
    """
    begin, shard = 0, files.shard
    tag, prefix = f"{shard.tag}/", shard.document_id("")
    for name, file in files.documents.items():
        seen, first = set[str](), begin
        batches = _batches(source, file, folder, fields)
        for batch in _whole(batches) if name else batches:
            own = [usable_id(it, seen, tag, name) for it in batch.columns["own_id"]]
            for position in sorted(batch.unread):
                own.insert(position, "")
            names = [
                DocumentId(f"{prefix}{name}{it}")
                if it
                else shard.document_id(f"{name}line-{line}" if name else line)
                for line, it in enumerate(own, begin - first)
            ]
            yield NamedBatch(begin=begin, names=names, batch=batch)
            begin += len(names)
            del batch


def file_records(
    source: FileSource, files: ShardFiles, folder: Path, fields: frozenset[str] | None = None
) -> Iterator[tuple[int, DocumentId, Record]]:
    """The documents of `file_batches`, one by one, with their numbers and ids."""
    for batch in file_batches(source, files, folder, fields):
        yield from batch.records()


def _batches(
    source: FileSource, file: UpstreamFile | None, folder: Path, fields: frozenset[str] | None
) -> Iterator[Batch]:
    if file is None:
        raise CorruptFile(f"{source.settings.path}: a file of it is missing")
    require_unchanged(source.upstream, file)
    yield from source.batches(file.path, folder / SCRATCH, fields)


def _whole(batches: Iterator[Batch]) -> Sequence[Batch]:
    """All documents of a small file; of one that cannot be read, a single unread document."""
    try:
        return list(batches)
    except CorruptFile as error:
        return [Batch.of([Unread(id="", where=str(error), why=BROKEN)])]
