"""OpenLineage: what a build read and wrote, sent to a catalogue of data where ``LC_OPENLINEAGE`` is
``on``.

Stages are jobs and partitions are datasets, whose versions are the receipts' digests. The package
openlineage-python sends the events. It has variables of its own: ``OPENLINEAGE_URL`` for a server,
``OPENLINEAGE_CONFIG`` for a file that names any other transport, ``OPENLINEAGE_NAMESPACE`` for the
jobs. A run has an event when it begins to write and one when it ends; a version that is found
finished has none. A thread sends them, so that builds go on where a catalogue does not answer; the
log of each build names its events that were not sent by its end.
"""

import datetime as dt
import functools
import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import lc_assets
from lc_assets.builds.columns import meaning, origins_of
from lc_assets.errors import BadInput, without_secrets
from lc_assets.lake.receipts import Fingerprint, Receipt
from lc_assets.sources.opening import upstream_of
from lc_assets.vocabulary import SnapshotId

if TYPE_CHECKING:
    from openlineage.client.client import OpenLineageClient

    from lc_assets.builds.stage import BuildContext, Built, Stage

Began = Callable[[Fingerprint], object]

VARIABLE = "LC_OPENLINEAGE"
NAMESPACE = "lc_assets"
PRODUCER = f"urn:lc-assets:{lc_assets.__version__}"
WAIT_SECONDS = 2.0
"""How long a build that has ended waits for its events to be sent, where `Sender.is_prompt`."""
MOST_WAITING = 10_000
"""Events of all builds that wait for a catalogue to answer; further ones are not sent."""


def reported(
    build: Callable[["BuildContext", "Stage", SnapshotId, Began], "Built"],
) -> Callable[["BuildContext", "Stage", SnapshotId], "Built"]:
    """A function that builds a partition, and sends the events if they are wanted; it raises
    `BadInput` when the package is missing or not configured.

    Args:
        build: builds it, and calls its last argument before it begins to write.
    """

    @functools.wraps(build)
    def building(context: "BuildContext", stage: "Stage", key: SnapshotId) -> "Built":
        if (wanted := os.environ.get(VARIABLE, "off")) not in {"on", "off"}:
            raise BadInput(f"{VARIABLE} is {wanted!r}; expected on or off")
        if wanted == "off" or context.is_trial:
            return build(context, stage, key, lambda _made: None)
        with ReportedRun(_sender(), context, stage, key) as run:
            built = build(context, stage, key, run.begin)
        if not built.reused:
            run.complete(built.published.receipt)
        return built

    return building


class Sent(Future[None]):
    """Whether an event was sent: what its block raises, of any transport, is its exception."""

    def __enter__(self) -> None:
        """Begin to send."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        """Keep the error, if there is one."""
        if error is None:
            self.set_result(None)
        else:
            self.set_exception(error)
        return True


class Sender:
    """Sends events in order, by a thread of its own.

    Attributes:
        client: sends an event, or raises after its own retries.
        is_prompt: whether the last event was sent within half of `WAIT_SECONDS`, and no build has
            waited in vain since; true before the first one.
    """

    def __init__(self, client: "OpenLineageClient") -> None:
        self.client, self.is_prompt = client, True
        self._waiting: queue.Queue[tuple[Any, float, Sent]] = queue.Queue(MOST_WAITING)
        threading.Thread(target=self._send_all, name="openlineage", daemon=True).start()

    def send(self, event: Any) -> Sent:
        """Send an event, when those before it are sent or have failed."""
        sent = Sent()
        try:
            self._waiting.put_nowait((event, time.monotonic(), sent))
        except queue.Full:
            sent.set_exception(OSError(f"{MOST_WAITING:,} events wait for the catalogue"))
        return sent

    def _send_all(self) -> None:
        while True:
            event, since, sent = self._waiting.get()
            with sent:
                self.client.emit(event)
                self.is_prompt = time.monotonic() - since < WAIT_SECONDS / 2


class ReportedRun:
    """The events of one build: START, and then COMPLETE, or FAIL or ABORT by an error in its
    block.
    """

    def __init__(
        self, sender: Sender, context: "BuildContext", stage: "Stage", key: SnapshotId
    ) -> None:
        from openlineage.client.uuid import generate_new_uuid

        self.sender, self.context, self.stage, self.key = sender, context, stage, key
        self.run_id = str(generate_new_uuid())
        self.sent: dict[str, Sent] = {}

    def begin(self, made: Fingerprint | None = None) -> None:
        """Send that it has begun, and what it reads and writes if that is known."""
        self._send("START", made)

    def __enter__(self) -> Self:
        """Before it is known whether there is something to build."""
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Send that it has failed or, by Ctrl-C or a signal, was ended."""
        from openlineage.client.facet_v2 import error_message_run

        if error is None:
            return
        if not self.sent:
            self.begin()
        message = without_secrets(str(error)) or type(error).__name__
        facet = error_message_run.ErrorMessageRunFacet(message, "Python")
        self._send("FAIL" if isinstance(error, Exception) else "ABORT", errorMessage=facet)
        self._say_what_was_not_sent()

    def complete(self, receipt: Receipt) -> None:
        """Send the version that it has published."""
        self._send("COMPLETE", receipt.fingerprint, receipt)
        self._say_what_was_not_sent()

    def _send(
        self,
        state: str,
        made: Fingerprint | None = None,
        receipt: Receipt | None = None,
        **facets: Any,
    ) -> None:
        from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
        from openlineage.client.facet_v2 import documentation_job, processing_engine_run

        namespace = os.environ.get("OPENLINEAGE_NAMESPACE", NAMESPACE)
        description = documentation_job.DocumentationJobFacet(description=self.stage.description)
        engine = processing_engine_run.ProcessingEngineRunFacet(
            version=lc_assets.__version__, name="lc_assets"
        )
        event = RunEvent(
            eventTime=dt.datetime.now(dt.UTC).isoformat(),
            run=Run(self.run_id, facets={"processing_engine": engine, **facets}),
            job=Job(namespace, self.stage.name, facets={"documentation": description}),
            eventType=RunState[state],
            inputs=_inputs(self.context, made) if made else [],
            outputs=[_output(self.context, self.stage, made, receipt)] if made else [],
        )
        self.sent[state] = self.sender.send(event)

    def _say_what_was_not_sent(self) -> None:
        _, late = wait(self.sent.values(), WAIT_SECONDS if self.sender.is_prompt else 0)
        why = {
            state: "no answer yet" if one in late else one.exception()
            for state, one in self.sent.items()
        }
        not_sent = [
            f"{state}: {without_secrets(str(error))}" for state, error in why.items() if error
        ]
        if not_sent:
            self.sender.is_prompt = False
            name = f"{self.stage.name}/{self.key}"
            self.context.say(f"OpenLineage's events of {name} were not sent: {'; '.join(not_sent)}")


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


@functools.cache
def _sender() -> Sender:
    return Sender(_client())


def _inputs(context: "BuildContext", made: Fingerprint) -> list[Any]:
    """The versions that a version was made from, and what is outside the lake."""
    from openlineage.client.event_v2 import InputDataset

    found = []
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


def _output(
    context: "BuildContext", stage: "Stage", made: Fingerprint, receipt: Receipt | None
) -> Any:
    """The version, once it has a receipt, with the columns of its table and what they are made
    from.
    """
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.facet_v2 import (
        DatasetFacet,
        column_lineage_dataset,
        output_statistics_output_dataset,
        schema_dataset,
    )

    facets: dict[str, DatasetFacet] = {}
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
                for name in made.inputs
                if name.startswith(f"{upstream}/")
            ]
        )
        for column, origins in origins_of(stage.name).items()
    }
    if fields:
        facets["columnLineage"] = column_lineage_dataset.ColumnLineageDatasetFacet(fields)
    place = place_of(context.lake.url, f"{stage.name}/{made.key}")
    if receipt is None:
        return OutputDataset(*place, facets=facets)
    facets["version"] = _version(receipt.digest)
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=receipt.counts.kept, size=receipt.n_bytes, fileCount=len(receipt.files)
    )
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
