"""Documents that follow one another in a file, by columns.

A loop over one column takes a tenth of the time of a step per document that handles all its fields.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from lc_assets.formats.corpora.containers import CorpusDocument, Unread
from lc_assets.records import record

COLUMNS = CorpusDocument.__struct_fields__


@record
class Batch:
    """Some documents.

    Attributes:
        columns: by the names of `CorpusDocument`'s attributes, a value for each document.
        unread: those that cannot be read, by their positions among all.
    """

    columns: dict[str, list[Any]]
    unread: dict[int, Unread] = field(default_factory=dict)

    @classmethod
    def of(cls, documents: Sequence[CorpusDocument | Unread]) -> "Batch":
        """The batch of some documents."""
        found = [document for document in documents if isinstance(document, CorpusDocument)]
        columns = {name: [getattr(it, name) for it in found] for name in COLUMNS}
        unread = {at: it for at, it in enumerate(documents) if isinstance(it, Unread)}
        return cls(columns=columns, unread=unread)

    @property
    def positions(self) -> Sequence[int]:
        """Where the documents of the columns stand among all."""
        every = range(len(self.columns["id"]) + len(self.unread))
        return [at for at in every if at not in self.unread] if self.unread else every

    def documents(self) -> Iterator[CorpusDocument | Unread]:
        """All documents, in order; the columns are emptied: the caller alone holds a text."""
        made = list(map(CorpusDocument, *(self.columns[name] for name in COLUMNS)))
        n_documents = len(made) + len(self.unread)
        self.columns.clear()
        made.reverse()
        for at in range(n_documents):
            yield self.unread[at] if at in self.unread else made.pop()


def one_by_one(documents: Iterable[CorpusDocument | Unread]) -> Iterator[Batch]:
    """A batch for each document."""
    for document in documents:
        yield Batch.of([document])
        del document
