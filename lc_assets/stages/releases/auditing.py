"""The audit of a lake: a last pass over everything that it serves, which shares no code with the
stages that wrote it.

==================  ==============================================================================
compared            what must hold
==================  ==============================================================================
rows                a row of a grid is the tokens of the document that it names, rolled; a packed
                    row is those of the pieces that it names, then padding; no stretch of a document
                    is taken twice, unless documents are upsampled
Megatron files      their sequences are these rows or pieces, in this order
order, flat rows    each row of each grid has one place; the flat copy has it there
mixes               samples of an epoch, of the mix, and of its epochs are as many as the rows give,
                    and each exists
train and heldout   no document and no text, token by token, is on both sides, over all grids and
                    packed rows together, which are what mixes draw from
texts               no two documents of grids have the same tokens, where near duplicates are sought
withdrawn           nothing is served that an entry names, nor a document of the digest of what any
                    version that still exists remembers as withdrawn, but for what is reinstated
documents           filtered = tokenized + left out, document by document; what is removed is left
                    out; tables hold what receipts count
==================  ==============================================================================

Versions and receipts are read through `lc_assets.lake`, tables by pyarrow, arrays by their readers,
Megatron files by numpy. Texts are compared by hashes of 64 bits, rows and documents token by token.
Memory: a snapshot's tables, 40 bytes per row of the lake, and some rows.
"""

import itertools
import json
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.arrays import Booleans, UInt64s
from lc_assets.formats.arrays.flat import FlatReader
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.lake.lake import Lake
from lc_assets.lake.versions import Published
from lc_assets.stages.releases.audited_files import (
    DOCUMENTS,
    DROPPED,
    Line,
    Sequences,
    Store,
    hash_of,
    ids_in,
    lines_of,
    rows_of,
)
from lc_assets.text.links.addresses import Kind, normal, values_of
from lc_assets.vocabulary import SPLITS

SERVED = {
    "token_grid": "rows.parquet",
    "packed_rows": "spans.parquet",
    "longpack_documents": "pages.parquet",
}
"""Stage → the table of the documents that a version serves."""


class Comparison(msgspec.Struct, kw_only=True):
    """What was compared in one partition.

    Attributes:
        what: see the module's table.
        where: the partition.
        compared: number of rows, documents, samples.
        wrong: how many of them are not as they must be.
        fault: the first of these, in words; empty if there is none.
    """

    what: str
    where: str
    compared: int = 0
    wrong: int = 0
    fault: str = ""

    @property
    def sentence(self) -> str:
        """The fault as one line."""
        return f"{self.where}: {self.what}: {self.wrong:,} wrong, such as {self.fault}"


@dataclass
class _Part:
    """Rows or pieces of one version, a line each.

    Attributes:
        where: name of the version.
        names: of the lines' documents.
        heldout: whether a line is held out.
        keys: hashes of the document's id and tokens, line × 2.
        near: whether near duplicates were sought among its documents, each of which has a row.
    """

    where: str
    names: pa.ChunkedArray
    heldout: Booleans
    keys: UInt64s
    near: bool

    def name_of(self, line: int) -> str:
        """The document of a line, for messages."""
        return str(self.names[line])


@dataclass
class Audit:
    """An audit; `run` compares everything.

    Attributes:
        lake: the lake.
        entries: of the withdrawal lists: kinds and normal values.
        reinstated: of the lists of reinstated documents.
        found: the comparisons, by what and where.
        parts: grids and packed rows.
        rows: hash of each row of the grids, by split and the grid's digest.
    """

    lake: Lake
    entries: Set[tuple[Kind, str]] = frozenset()
    reinstated: Set[tuple[Kind, str]] = frozenset()
    found: dict[tuple[str, str], Comparison] = field(default_factory=dict)
    parts: list[_Part] = field(default_factory=list)
    rows: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def run(self) -> list[Comparison]:
        """Compare everything that the published versions of the lake serve.

        Raises:
            NotPublished: if a version that another one was made from is gone.
            CorruptFile: if an array is damaged.
        """
        for stage, compare in (
            ("token_grid", self._rows),
            ("packed_rows", self._rows),
            ("megatron_rows", self._megatron),
            ("longcrawl", self._order),
            ("blended_mix", self._mix),
        ):
            for published in self.lake.published(stage).values():
                compare(published)
        if self.parts:
            self._split()
            self._withdrawn()
        return list(self.found.values())

    def expect(
        self,
        what: str,
        where: str,
        holds: Any,
        fault: Callable[[int], str] | str,
        n: int | None = None,
    ) -> None:
        """Note what was found: whether each of some things is as it must be, or all ``n`` are."""
        one = self.found.setdefault((what, where), Comparison(what=what, where=where))
        wrong = np.flatnonzero(~np.atleast_1d(np.asarray(holds, np.bool_)))
        one.compared += np.size(holds) if n is None else n
        one.wrong += len(wrong)
        if len(wrong) and not one.fault:
            one.fault = fault if isinstance(fault, str) else fault(int(wrong[0]))

    def _rows(self, rows: Published) -> None:
        is_grid, params = rows.stage == "token_grid", rows.params
        tokens = self.lake.require_input(rows, "token_documents" if is_grid else "packing_tokens")
        store, keys, taken = Store(tokens), list[list[int]](), set[tuple[Any, ...]]()
        path = rows.folder / SERVED[rows.stage]
        for split in SPLITS:
            array, pieces, same = GridReader(rows.folder / f"{split}.zarr"), list[int](), []
            hashes = self.rows[split, rows.digest] = []
            lines = (line for line in lines_of(path) if line["split"] == split)
            by_row = (list(of) for _, of in itertools.groupby(lines, lambda line: line["row"]))
            empty: Any = ()
            for of, row in itertools.zip_longest(by_row, rows_of(array), fillvalue=empty):
                expected = np.full(params["row_tokens"], array.attributes.get("pad", 0), np.int64)
                for line in of:
                    if is_grid:
                        line.update(_as_piece(line["stretch"], params["row_tokens"]))
                    store.put(line, expected)
                    pieces.append(hash_of(row[line["row_start"] : line["row_stop"]]))
                    keys.append(store.keys_of(line))
                    taken.add((line["token_shard"], line["document"], line["document_start"]))
                right = np.roll(expected, of[0]["shift"] if is_grid and of else 0)
                same.append(np.array_equal(right, row) and of[0]["row"] == len(hashes))
                hashes.append(hash_of(row))
            self.expect("rows", rows.name, same, f"{split} row {{}}".format)
            if not is_grid:
                data = hashes if params["megatron"] == "rows" else pieces
                self._sequences(rows, split, data)
        once = len(taken) == len(keys) or params.get("method") == "upsample"
        self.expect("rows", rows.name, once, "a stretch of a document is in two rows", 0)
        removed = self.lake.inputs_of(tokens, "removed_documents")
        near = is_grid and any(of.params["near"] for of in removed)
        table = pq.read_table(path, columns=["id", "split"])
        heldout = np.asarray(table["split"]) == "heldout"
        part = np.array(keys, np.uint64).reshape(-1, 2)
        self.parts.append(_Part(rows.name, table["id"], heldout, part, near))
        if is_grid:
            self._documents(tokens)

    def _sequences(self, published: Published, split: str, hashes: list[int]) -> None:
        """Compare a Megatron file with rows or pieces."""
        data = Sequences(published.folder / split)
        same = list(map(hash_of, data)) == hashes
        self.expect("Megatron files", published.name, same, f"{split}.bin", len(hashes))

    def _megatron(self, megatron: Published) -> None:
        digest = self.lake.require_input(megatron, "token_grid").digest
        for split in SPLITS:
            self._sequences(megatron, split, self.rows.get((split, digest), []))

    def _order(self, order: Published) -> None:
        sources = json.loads((order.folder / "sources.json").read_bytes())["sources"]
        grids = {grid.digest for grid in self.lake.published("token_grid").values()}
        same = grids == {source["digest"] for source in sources}
        self.expect("order", order.name, same, "it is not over the published grids", 0)
        flat = self.lake.partition("longcrawl_flat").current()
        for split in SPLITS if same else ():
            source, row = (read_npy(order.folder / f"{split}_{of}.npy") for of in ("source", "row"))
            ordered = np.zeros(len(source), np.uint64)
            for number, of in enumerate(sources):
                mine, rows = source == number, self.rows[split, of["digest"]]
                once = np.array_equal(np.sort(row[mine]), np.arange(len(rows)))
                self.expect("order", order.name, once, f"{split} of {of['snapshot']}", len(rows))
                ordered[mine] = np.array(rows, np.uint64)[row[mine]] if once else 0
            if flat:
                stored = list(map(hash_of, rows_of(FlatReader(flat.folder / f"{split}.zarr"))))
                right = stored == ordered.tolist()
                self.expect("flat rows", flat.name, right, f"{split}.zarr", len(stored))

    def _mix(self, mix: Published) -> None:
        described = json.loads((mix.folder / "mix.json").read_bytes())
        epochs = mix.params["epochs"]
        chosen, samples = (
            read_npy(mix.folder / f"{of}.npy") for of in ("dataset_index", "dataset_sample_index")
        )
        for number, source in enumerate(described["sources"]):
            version, own = self.lake.version_of(source["prefix"]), samples[chosen == number]
            current = self.lake.partition(version.stage, version.key).require()
            data, snapshot = Sequences(version.folder / "train"), source["snapshot"]
            in_epoch = max(int(data.lengths.sum()) - 1, 0) // described["sequence_length"]
            due = len(own)
            if snapshot in epochs and not described["after"]:
                due = max(1, round(epochs[snapshot] * in_epoch))
            right = (
                current.digest == version.digest
                and (source["available"], source["used"], due) == (in_epoch, len(own), len(own))
                and np.array_equal(own, np.arange(len(own)))
            )
            fault = f"{version.name}: {len(own):,} samples, {in_epoch:,} in an epoch, not {source}"
            self.expect("mixes", mix.name, right, fault, len(own))

    def _split(self) -> None:
        """Compare both sides of the split, and the texts of grids with each other."""
        out = np.concatenate([part.keys[part.heldout] for part in self.parts]).ravel()
        grids = [part for part in self.parts if part.near]
        texts = np.concatenate([np.empty((0, 2), np.uint64), *(part.keys for part in grids)])
        values, counts = np.unique(np.unique(texts, axis=0)[:, 1], return_counts=True)
        for part in self.parts:
            right = part.heldout | ~np.isin(part.keys, out).any(axis=1)
            self.expect("train and heldout", part.where, right, part.name_of)
        for part in grids:
            once = ~np.isin(part.keys[:, 1], values[counts > 1])
            self.expect("texts", part.where, once, part.name_of)

    def _withdrawn(self) -> None:
        """Look for withdrawn documents, and documents of their digests, in all that is served."""
        ids, digests = self._listed()
        for keys in self.lake.published("document_keys").values() if digests else ():
            lines = lines_of(keys.folder / "documents.parquet")
            ids |= {line["id"] for line in lines if digests & {*values_of("digest", line)}}
        for stage, name in SERVED.items():
            for published in self.lake.published(stage).values():
                served = list(lines_of(published.folder / name, "id", "url", "digest"))
                right = [
                    self._is_named(line, self.reinstated)
                    or not (line["id"] in ids or self._is_named(line, self.entries))
                    for line in served
                ]
                names = [line["id"] for line in served]
                self.expect("withdrawn", published.name, right, names.__getitem__)

    @staticmethod
    def _is_named(line: Line, entries: Set[tuple[Kind, str]]) -> bool:
        kinds = {kind for kind, _ in entries}
        return any((kind, of) in entries for kind in kinds for of in values_of(kind, line))

    def _listed(self) -> tuple[set[str], set[str]]:
        """Ids of the documents that are withdrawn, and digests of what was ever withdrawn, unless
        it is reinstated.
        """
        ids, digests = set[str](), {value for kind, value in self.entries if kind == "digest"}
        partition = self.lake.partition("withdrawn_documents")
        current = partition.current()
        if current is not None:
            ids = {line["id"] for line in lines_of(current.folder / "withdrawn.parquet")}
        for version in partition.versions():
            path = version.folder / "remembered.parquet"
            copies = version.params.get("same_content") != "stays"
            for line in lines_of(path) if copies and path.is_file() else ():
                entry = line["kind"], normal(line["kind"], line["value"])
                if entry not in self.reinstated and not self._is_named(line, self.reinstated):
                    digests.update(values_of("digest", line))
        return ids, digests

    def _documents(self, tokens: Published) -> None:
        """Compare filtered documents with those that were tokenized and left out."""
        ids = list[UInt64s]()
        for of in (self.lake.require_input(tokens, "filtered_documents"), tokens):
            ids += [ids_in(of, DOCUMENTS), ids_in(of, DROPPED)]
            found, counts = (len(ids[-2]), len(ids[-1])), of.counts
            right = found == (counts.kept, counts.seen - counts.kept)
            self.expect("documents", of.name, right, f"{found}, not {counts}", counts.seen)
        filtered, _, kept, left_out = ids
        same = np.array_equal(filtered, np.sort(np.concatenate([kept, left_out])))
        fault = f"{len(filtered):,} filtered, {len(kept):,} tokenized, {len(left_out):,} left out"
        self.expect("documents", tokens.name, same, fault, 0)
        for removed in self.lake.inputs_of(tokens, "removed_documents"):
            decided = ids_in(removed, "decisions.parquet")
            gone, counts = ids_in(removed, "decisions.parquet", "reason"), removed.counts
            right = len(gone) == counts.seen - counts.kept and np.array_equal(decided, filtered)
            known = right and np.isin(gone, left_out).all()
            self.expect("documents", removed.name, known, f"{len(gone):,} removed", len(gone))


def _as_piece(stretch: int, n_tokens: int) -> Line:
    """Where a row of a grid is in its document, and in itself."""
    start = stretch * n_tokens
    places = {"document_start": start, "document_stop": start + n_tokens}
    return places | {"row_start": 0, "row_stop": n_tokens}
