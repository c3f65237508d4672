"""Rows and packed rows for torchtitan, as its data loader; and a run goes on with another number of
ranks.

In a torchtitan configuration::

    Trainer.Config(dataloader=RowLoader.Config(dataset_path="lake"), …)

A batch is ``{"input": …, "positions": …}, labels``, (row, token), int64. Positions restart with
every document, which is what torchtitan makes masks of; labels are `IGNORED` where nothing is to be
learned: in padding, and at the first token of a document in a packed row.

The state counts rows, of all ranks together, so it is the same for any number of ranks, microbatch
sizes and steps of gradient accumulation.

Source: torchtitan 0.3.0, ``torchtitan/components/dataloader.py`` and ``torchtitan/trainer.py``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.loaders.data_sets import open as open_data_set
from lc_assets.loaders.packed import PackedBatch
from lc_assets.loaders.stepping import Batch
from lc_assets.loaders.torch import require_torch

try:
    from torchtitan.components.dataloader import BaseDataLoader as _Loader

    _Config: Any = _Loader.Config
except ModuleNotFoundError as error:
    if error.name != "torchtitan":  # it is installed, but not what it imports
        raise
    _Loader = _Config = object

IGNORED = -100
"""torchtitan's ``IGNORE_INDEX``."""


class RowLoader(_Loader):  # type: ignore[misc]  # torchtitan may be absent
    """The rows of one data-parallel rank."""

    @dataclass(kw_only=True, slots=True)
    class Config(_Config):  # type: ignore[misc]
        """Which rows.

        Attributes:
            dataset: a name for logs.
            dataset_path: what `lc_assets.open` opens: a lake, a version, an array; a path or a URL.
            dataset_split: ``train`` or ``heldout``.
            release: a release of the lake.
            n_ahead: batches that a thread reads ahead.
        """

        dataset: str = "rows"
        dataset_path: str | None = None
        dataset_split: str = "train"
        release: str | None = None
        n_ahead: int = 2

    def __init__(
        self,
        config: Config,
        *,
        dp_world_size: int,
        dp_rank: int,
        seq_len: int,
        local_batch_size: int,
        **_: Any,
    ) -> None:
        """Open the rows; torchtitan passes the arguments, by ``config.build``.

        Args:
            config: which rows.
            dp_world_size: number of ranks.
            dp_rank: this one.
            seq_len: tokens of a sample, which divide a row.
            local_batch_size: rows of a batch of one rank.

        Raises:
            BadInput: if torch is not installed, or as `lc_assets.loaders.data_sets.DataSet.loader`.
        """
        require_torch()
        import torch

        if not config.dataset_path:
            raise BadInput("RowLoader.Config needs dataset_path: a lake, a version or an array")
        data = open_data_set(config.dataset_path, config.dataset_split, release=config.release)
        self.loader = data.loader(
            batch_rows=dp_world_size * local_batch_size,
            context_tokens=seq_len,
            rank=dp_rank,
            n_ranks=dp_world_size,
            prefetch=config.n_ahead,
        )
        self.positions = torch.arange(seq_len).expand(local_batch_size, seq_len)

    def __iter__(self) -> Iterator[tuple[dict[str, Any], Any]]:
        for batch in self.loader:
            yield self._tensors(batch)

    def _tensors(self, batch: Batch | PackedBatch) -> tuple[dict[str, Any], Any]:
        import torch

        text, targets = (
            torch.from_numpy(ids.astype(np.int64)) for ids in (batch.text, batch.targets)
        )
        if isinstance(batch, PackedBatch):
            targets[torch.from_numpy(~batch.mask)] = IGNORED
            return {"input": text, "positions": torch.from_numpy(batch.positions).long()}, targets
        return {"input": text, "positions": self.positions}, targets

    def state_dict(self) -> dict[str, Any]:
        """Rows that all ranks together have read, and what they are of; plain values."""
        identity, batch_rows = self.loader.identity(), self.loader.batch_rows
        if self.loader.context_tokens == self.loader.rows.row_tokens:
            del identity["batch_rows"]  # rows come in their order, whatever a batch is
        return {"rows": self.loader.step * batch_rows, **identity}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on behind the rows that were read; an empty state is the beginning.

        Raises:
            BadInput: if the state is of other rows, of another number of tokens a sample, or of a
                part of a batch; where samples are parts of rows, also of another batch.
        """
        if not state:
            return
        n_read, batch_rows = state.get("rows"), self.loader.batch_rows
        if not isinstance(n_read, int) or n_read % batch_rows:
            raise BadInput(
                f"the state is behind {n_read!r} rows, no multiple of a batch of {batch_rows:,}"
            )
        rest = {name: value for name, value in state.items() if name != "rows"}
        own = {"batch_rows": batch_rows, "step": n_read // batch_rows}
        self.loader.load_state_dict(own | rest)
