"""The documents of a shard of files, numbered and named."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from lc_assets.errors import CorruptFile
from lc_assets.formats.corpora.containers import CorpusDocument, Unread
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.upstream import UpstreamFile
from lc_assets.sources.files import FileSource, own_id
from lc_assets.stages.documents.raw_snapshot import ShardFiles, require_unchanged
from lc_assets.vocabulary import DocumentId

BROKEN = "documents missing or broken"

Record = CorpusDocument | Unread


def file_records(
    source: FileSource, files: ShardFiles, folder: Path, fields: frozenset[str] | None = None
) -> Iterator[tuple[int, DocumentId, Record]]:
    """The documents of a shard with their numbers in it and ids; see `FileSource.documents`.

    Of small files that share the shard, one that is missing or broken gives one document that
    cannot be read, for the reason `BROKEN`.
    """
    begin, shard = 0, files.shard
    tag, prefix = f"{shard.tag}/", shard.document_id("")
    for name, file in files.documents.items():
        seen, line = set[str](), -1
        records = _records(source, file, folder, fields)
        for line, document in _whole(records) if name else records:
            own = own_id(document, seen, tag, name)
            number = f"{name}line-{line}" if name else line
            named = DocumentId(f"{prefix}{name}{own}") if own else shard.document_id(number)
            yield begin + line, named, document
        begin += line + 1


def _records(
    source: FileSource, file: UpstreamFile | None, folder: Path, fields: frozenset[str] | None
) -> Iterator[tuple[int, Record]]:
    if file is None:
        raise CorruptFile(f"{source.settings.path}: a file of it is missing")
    require_unchanged(source.upstream, file)
    yield from source.documents(file.path, folder / SCRATCH, fields)


def _whole(records: Iterator[tuple[int, Record]]) -> Sequence[tuple[int, Record]]:
    """All documents of a small file; of one that cannot be read, a single unread document."""
    try:
        return list(records)
    except CorruptFile as error:
        return [(0, Unread(id="", where=str(error), why=BROKEN))]
