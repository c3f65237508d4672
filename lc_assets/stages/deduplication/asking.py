"""What one search for duplicates is asked to do."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lc_assets.execution.executor import Executor
from lc_assets.stages.deduplication.facts import Signer
from lc_assets.stages.deduplication.settings import Decision, Means, Scheme

WORK = "work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signing:
    """How documents are signed.

    Attributes:
        name: says it in words and numbers; indexes with another name cannot be matched.
        bands: of a signature.
        sign: a module-level function.
        stored: folder of signatures that are looked up instead, see `stored_signatures`; None:
            nothing is stored.
    """

    name: str
    bands: int
    sign: Signer
    stored: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search for duplicates.

    Attributes:
        sources: files and folders; their order is the documents', as far as an order matters.
        out: the folder to write into.
        signing: how documents are signed.
        decision: what is removed.
        scheme: what is evidence.
        means: memory.
        executor: where the work runs.
        against: index folder, or the output, of an older search.
        text_field: see `read_corpus`.
        workers: how many tasks the executor runs at once.
    """

    sources: Sequence[Path]
    out: Path
    signing: Signing
    executor: Executor
    decision: Decision = field(default_factory=Decision)
    scheme: Scheme = field(default_factory=Scheme)
    means: Means = field(default_factory=Means)
    against: Path | None = None
    text_field: str | None = None
    workers: int = 1

    @property
    def work(self) -> Path:
        """Scratch, removed in the end."""
        return self.out / WORK
