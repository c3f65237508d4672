"""The published versions that a stage would read now."""

import contextlib
from collections.abc import Iterator, Mapping

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import Stage
from lc_assets.errors import LcError, Mismatch, NotPublished
from lc_assets.lake.lake import Lake
from lc_assets.lake.partition import Partition
from lc_assets.lake.versions import Published


def inputs_of(stage: Stage, lake: Lake, recipe: Recipe, key: str) -> dict[str, Published]:
    """The published versions that a stage would read now, by name. A stage that reads other
    partitions reads those that are published.

    Raises:
        NotPublished: when a stage reads its own partition only, and an input is not published.
    """
    read: list[Published] = []
    for upstream, found in stage.reads.items():
        if not found.is_needed(recipe):
            continue
        if stage.reads_others:
            read += _published(stage, lake, recipe, key, upstream)
        elif found.only is not None:
            read.append(lake.partition(upstream, found.only(key)).require())
    inputs = {published.name: published for published in read}
    return inputs | _continued(stage, lake, recipe, key, inputs) if stage.remembers else inputs


def _published(
    stage: Stage, lake: Lake, recipe: Recipe, key: str, upstream: str
) -> Iterator[Published]:
    """The published partitions of one upstream stage that are read."""
    found = stage.reads[upstream]
    for other in lake.keys(upstream) if found.only is None else [found.only(key)]:
        if not found.selects(recipe, key, other):
            continue
        partition = lake.partition(upstream, other)
        by_summary = found.by_summary and other != key
        published = partition.current_summary() if by_summary else partition.current()
        if published is not None:
            yield published


def _continued(
    stage: Stage, lake: Lake, recipe: Recipe, key: str, inputs: Mapping[str, Published]
) -> dict[str, Published]:
    """The version that a build would continue, by name: the last one if it remembers anything. But
    if that is made of these inputs, the one that it continued, so that it stays as it is.
    """
    last = _last_version(lake.partition(stage.name, key))
    if last is None:
        return {}
    made = last.receipt.fingerprint
    own = {name: digest for name, digest in made.inputs.items() if name == last.name}
    before = {published.name: published for published in lake.with_digests(own.items())}
    params = stage.resolved(recipe, key)
    if len(before) == len(own) and made == stage.fingerprint(
        params, key, stage.digests_of(inputs) | own
    ):
        return before
    return {last.name: last} if stage.remembers and stage.remembers(last) else {}


def _last_version(partition: Partition) -> Published | None:
    """The published version of a partition; if that is lost, the one that no other continues."""
    with contextlib.suppress(LcError):
        if (current := partition.current()) is not None:
            return current
    versions = list(partition.versions())
    before = {version.receipt.fingerprint.inputs.get(version.name) for version in versions}
    return next((version for version in versions if version.digest not in before), None)


def required(inputs: Mapping[str, Published], stage: str, snapshot: str) -> Published:
    """A stage's version of a snapshot whose filtered documents are published, among some inputs.

    Raises:
        NotPublished: when it is missing.
    """
    if (found := inputs.get(f"{stage}/{snapshot}")) is None:
        raise NotPublished(
            f"{stage}/{snapshot} has not been published, but "
            f"filtered_documents/{snapshot} has: materialize it first"
        )
    return found


def made_from(inputs: Mapping[str, Published], stage: str, filtered: Published) -> Published:
    """A stage's version of the current filtered documents of a snapshot, among a stage's inputs.

    Raises:
        NotPublished: when it is missing.
        Mismatch: when it is of other documents.
    """
    found = required(inputs, stage, filtered.key)
    if found.receipt.fingerprint.inputs.get(filtered.name) != filtered.digest:
        raise Mismatch(
            f"{found.name}: is of other documents than {filtered.name} now has; "
            f"materialize `{stage}` of this snapshot again"
        )
    return found
