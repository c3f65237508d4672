"""OpenLineage: what a build read and wrote, sent to a catalogue of data where ``LC_OPENLINEAGE`` is
``on``.

Stages are jobs and partitions are datasets, whose versions are the receipts' digests. The package
openlineage-python sends the events. It has variables of its own: ``OPENLINEAGE_URL`` for a server,
``OPENLINEAGE_CONFIG`` for a file that names any other transport, ``OPENLINEAGE_NAMESPACE`` for the
jobs. A run has two events, sent at its end; a version that is found finished has none. Where events
cannot be sent, the log says so and the build goes on.
"""

import datetime as dt
import functools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import lc_assets
from lc_assets.builds.columns import meaning, origins_of
from lc_assets.errors import BadInput, LcError, without_secrets
from lc_assets.sources.opening import upstream_of
from lc_assets.vocabulary import SnapshotId

if TYPE_CHECKING:
    from openlineage.client.client import OpenLineageClient

    from lc_assets.builds.stage import BuildContext, Built, Stage

Build = Callable[["BuildContext", "Stage", SnapshotId], "Built"]

VARIABLE = "LC_OPENLINEAGE"
NAMESPACE = "lc_assets"
PRODUCER = f"urn:lc-assets:{lc_assets.__version__}"


def reported(build: Build) -> Build:
    """A function that builds a partition, and sends the events if they are wanted; it raises
    `BadInput` when the package is missing or not configured.
    """

    @functools.wraps(build)
    def building(context: "BuildContext", stage: "Stage", key: SnapshotId) -> "Built":
        if (wanted := os.environ.get(VARIABLE, "off")) not in {"on", "off"}:
            raise BadInput(f"{VARIABLE} is {wanted!r}; expected on or off")
        if wanted == "off" or context.is_trial:
            return build(context, stage, key)
        client, started = _client(), _now()
        try:
            built = build(context, stage, key)
        except LcError as error:
            _send(client, context, events_of(context, stage, key, started, error))
            raise
        if not built.reused:
            _send(client, context, events_of(context, stage, key, started, built))
        return built

    return building


def _send(client: "OpenLineageClient", context: "BuildContext", events: Iterable[Any]) -> None:
    try:
        for event in events:
            client.emit(event)
    except OSError as error:  # of requests, too
        context.say(f"OpenLineage's events were not sent: {without_secrets(str(error))}")


@functools.cache
def _client() -> "OpenLineageClient":
    try:
        from openlineage.client import OpenLineageClient
        from openlineage.client.event_v2 import set_producer
    except ImportError:
        message = f"{VARIABLE} needs openlineage-python: pip install 'lc-assets[openlineage]'"
        raise BadInput(message) from None
    set_producer(PRODUCER)
    client = OpenLineageClient()
    if not (client.config.transport or os.environ.get("OPENLINEAGE_URL")):
        raise BadInput(
            f"{VARIABLE} is on, but OpenLineage has no transport: set OPENLINEAGE_URL to a server, "
            "or OPENLINEAGE_CONFIG to its configuration"
        )
    return client


def events_of(
    context: "BuildContext",
    stage: "Stage",
    key: str,
    started: str,
    result: "Built | LcError",
) -> Iterator[Any]:
    """The two events of a run.

    Args:
        context: of the build.
        stage: the stage.
        key: of the partition.
        started: when the build began, in ISO 8601.
        result: the version, or why there is none.
    """
    from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
    from openlineage.client.facet_v2 import (
        documentation_job,
        error_message_run,
        processing_engine_run,
    )
    from openlineage.client.uuid import generate_new_uuid

    namespace = os.environ.get("OPENLINEAGE_NAMESPACE", NAMESPACE)
    description = documentation_job.DocumentationJobFacet(description=stage.description)
    job = Job(namespace, stage.name, facets={"documentation": description})
    engine = processing_engine_run.ProcessingEngineRunFacet(
        version=lc_assets.__version__, name="lc_assets"
    )
    run = Run(str(generate_new_uuid()), facets={"processing_engine": engine})
    yield RunEvent(eventTime=started, run=run, job=job, eventType=RunState.START)
    if isinstance(result, LcError):
        message = error_message_run.ErrorMessageRunFacet(str(result), "Python")
        run = Run(run.runId, facets={"processing_engine": engine, "errorMessage": message})
        yield RunEvent(eventTime=_now(), run=run, job=job, eventType=RunState.FAIL)
        return
    yield RunEvent(
        eventTime=_now(),
        run=run,
        job=job,
        eventType=RunState.COMPLETE,
        inputs=_inputs(context, result),
        outputs=[_output(context, stage, key, result)],
    )


def _inputs(context: "BuildContext", built: "Built") -> list[Any]:
    """The versions that a version was made from, and what is outside the lake."""
    from openlineage.client.event_v2 import InputDataset

    made, found = built.published.receipt.fingerprint, []
    for name, digest in made.inputs.items():
        if name == "crawl" and context.crawl is not None:
            place = place_of(context.crawl.root, made.key)
        elif name in {"upstream", "crawl"}:
            source = upstream_of(context.recipe.sources, made.key, context.upstream)
            place = place_of(source.root, made.key)
        elif "/" in name:
            place = place_of(context.lake.url, name)
        else:
            continue  # what a stage cites of receipts
        found.append(InputDataset(*place, facets={"version": _version(digest)}))
    return found


def _output(context: "BuildContext", stage: "Stage", key: str, built: "Built") -> Any:
    """The version, with the columns of its table and what they were made from."""
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.facet_v2 import (
        DatasetFacet,
        column_lineage_dataset,
        output_statistics_output_dataset,
        schema_dataset,
    )

    receipt = built.published.receipt
    facets: dict[str, DatasetFacet] = {"version": _version(receipt.digest)}
    if stage.columns is not None:
        facets["schema"] = schema_dataset.SchemaDatasetFacet(
            [
                schema_dataset.SchemaDatasetFacetFields(
                    field.name, str(field.type), meaning(field.name), number
                )
                for number, field in enumerate(stage.columns, 1)
            ]
        )
    fields = {
        column: column_lineage_dataset.Fields(
            [
                column_lineage_dataset.InputField(*place_of(context.lake.url, name), field)
                for upstream, _, field in (origin.partition(".") for origin in origins.split())
                for name in receipt.fingerprint.inputs
                if name.startswith(f"{upstream}/")
            ]
        )
        for column, origins in origins_of(stage.name).items()
    }
    if fields:
        facets["columnLineage"] = column_lineage_dataset.ColumnLineageDatasetFacet(fields)
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=receipt.counts.kept, size=receipt.n_bytes, fileCount=len(receipt.files)
    )
    place = place_of(context.lake.url, f"{stage.name}/{key}")
    return OutputDataset(*place, facets=facets, outputFacets={"outputStatistics": statistics})


def _version(digest: str) -> Any:
    from openlineage.client.facet_v2 import dataset_version_dataset

    return dataset_version_dataset.DatasetVersionDatasetFacet(digest)


def place_of(root: str, name: str) -> tuple[str, str]:
    """Namespace and name of a dataset below a folder, in a bucket or on a server.

    >>> place_of("/data/lake", "token_grid/2023-06")
    ('file', '/data/lake/token_grid/2023-06')
    >>> place_of("gs://bucket/lake", "token_grid/2023-06")
    ('gs://bucket', 'lake/token_grid/2023-06')
    """
    found = urlsplit(without_secrets(root))
    if not found.netloc:
        return "file", f"{Path(root).absolute()}/{name}"
    return f"{found.scheme}://{found.netloc}", f"{found.path.strip('/')}/{name}".lstrip("/")


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat()
