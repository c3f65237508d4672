"""OpenLineage's events of builds, as a server on this machine receives them.

Needs openlineage-python (``pip install 'lc-assets[openlineage]'``); otherwise most tests are skipped.
``LC_OPENLINEAGE_SPEC``, the folder ``spec`` of a checkout of OpenLineage, compares the events with its
schemas too, by jsonschema.
"""

import http.server
import inspect
import json
import os
import socket
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lc_assets.builds import openlineage_events
from lc_assets.builds.openlineage_events import VARIABLE
from lc_assets.errors import BadInput, Mismatch, NotPublished
from lc_assets.stages.calibrating import calibrate
from lc_assets.stages.documents import filtered_documents, raw_snapshot as raw
from lc_assets_tests.builders import SNAPSHOTS, build_all, tiny_context
from lc_assets_tests.processes import wait_until

OLD, _ = SNAPSHOTS


class Catalogue(http.server.BaseHTTPRequestHandler):
    """Keeps what it is sent."""

    events: list[dict]

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.events.append(json.loads(body))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(autouse=True)
def own_client(monkeypatch):
    for name in list(os.environ):
        if name.startswith("OPENLINEAGE"):
            monkeypatch.delenv(name)
    openlineage_events._sender.cache_clear()
    monkeypatch.setattr(openlineage_events, "WAIT_SECONDS", 60.0)  # on a busy machine, too
    yield
    if openlineage_events._sender.cache_info().currsize:
        openlineage_events._sender().client.close()
    openlineage_events._sender.cache_clear()


@pytest.fixture
def events(monkeypatch):
    """The events that a catalogue has received."""
    pytest.importorskip("openlineage.client")
    handler = type("Receiver", (Catalogue,), {"events": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    monkeypatch.setenv(VARIABLE, "on")
    monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{server.server_port}")
    yield handler.events
    server.shutdown()
    server.server_close()


def versions_of(datasets: list[dict]) -> dict[str, str]:
    return {one["name"]: one["facets"]["version"]["datasetVersion"] for one in datasets}


def require_known(value: dict, known: type, path: str = "event") -> None:
    """A part of an event has the fields of the client's class, and all that have no default."""
    import attr

    fields = {field.name.lstrip("_"): field for field in attr.fields(known)}
    extra = {name.lstrip("_") for name in value} - fields.keys()
    assert not extra, f"{path}: {extra}"
    for name, field in fields.items():
        assert field.default is not attr.NOTHING or name in value, f"{path}.{name}"


def require_valid(event: dict) -> None:
    """An event is what the classes say that OpenLineage generates from its schemas."""
    from openlineage.client import event_v2, facet_v2

    require_known(event, event_v2.RunEvent)
    require_known(event["run"], event_v2.Run)
    require_known(event["job"], event_v2.Job)
    found = [*event["run"]["facets"].values(), *event["job"]["facets"].values()]
    for kind, known in (("inputs", event_v2.InputDataset), ("outputs", event_v2.OutputDataset)):
        for one in event.get(kind, []):
            require_known(one, known)
            found += one["facets"].values()
            found += one.get("outputFacets", {}).values()
    classes = {
        name: known
        for module in vars(facet_v2).values()
        if inspect.ismodule(module)
        for name, known in vars(module).items()
        if name.endswith("Facet")
    }
    for facet in found:
        require_known(facet, classes[facet["_schemaURL"].rpartition("/")[2]])


def test_every_version_is_an_event_with_its_receipts_digests(events, tmp_path):
    """A pair of events per partition; inputs and outputs have the digests of receipts, so that what one
    job writes is what the next one reads; the columns are the published table's.
    """
    context = tiny_context(tmp_path)
    built = build_all(context)
    starts, ends = events[::2], events[1::2]
    assert [one["eventType"] for one in starts] == ["START"] * len(built)
    assert [one["eventType"] for one in ends] == ["COMPLETE"] * len(built)
    assert [one["run"]["runId"] for one in starts] == [one["run"]["runId"] for one in ends]
    written = {}
    for (name, one), start, event in zip(built.items(), starts, ends, strict=True):
        require_valid(event)
        require_valid(start)
        assert {one["name"] for one in start["inputs"]} == {one["name"] for one in event["inputs"]}
        assert versions_of(start["inputs"]) == versions_of(event["inputs"])
        assert [one["name"] for one in start["outputs"]] == [f"{context.lake.root}/{name}"]
        assert "version" not in start["outputs"][0]["facets"]
        stage, receipt = name.partition("/")[0], one.published.receipt
        place = f"{context.lake.root}/{name}"
        assert event["job"] == event["job"] | {"namespace": "lc_assets", "name": stage}
        assert versions_of(event["outputs"]) == {place: receipt.digest}
        read = versions_of(event["inputs"])
        digests = {key for key in receipt.fingerprint.inputs if key != "receipts"}
        assert sorted(read.values()) == sorted(receipt.fingerprint.inputs[key] for key in digests)
        assert {key: value for key, value in read.items() if key in written} == {
            key: written[key] for key in read if key in written
        }
        assert read.keys() - written.keys() <= {
            f"{context.upstream.root}/{receipt.fingerprint.key}"
        }
        written |= versions_of(event["outputs"])
        (output,) = event["outputs"]
        assert output["outputFacets"]["outputStatistics"]["size"] == receipt.n_bytes
        for column in output["facets"].get("columnLineage", {"fields": {}})["fields"].values():
            assert {field["name"] for field in column["inputFields"]} <= read.keys()
    schemas = {
        event["job"]["name"]: event["outputs"][0]["facets"]["schema"]["fields"]
        for event in ends
        if "schema" in event["outputs"][0]["facets"]
    }
    assert [one["name"] for one in schemas["raw_snapshot"]] == raw.STAGE.columns.names
    assert all(one["description"] for one in schemas["raw_snapshot"])
    n_events = len(events)
    build_all(context)
    assert len(events) == n_events, "nothing was computed"
    require_published_schemas(events)


def require_published_schemas(events: list[dict]) -> None:
    """The events fit OpenLineage's own JSON schemas, where they are."""
    if "LC_OPENLINEAGE_SPEC" not in os.environ:
        return
    from jsonschema import Draft202012Validator
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    folder = Path(os.environ["LC_OPENLINEAGE_SPEC"])
    read = [
        json.loads(path.read_bytes()) for path in folder.rglob("*.json") if "test" not in path.parts
    ]
    read = [one for one in read if "$id" in one]
    registry = Registry().with_resources(
        (one["$id"], DRAFT202012.create_resource(one)) for one in read
    )

    def check(value: dict, url: str) -> None:
        Draft202012Validator(
            {"$ref": url},
            registry=registry,
            format_checker=Draft202012Validator.FORMAT_CHECKER,
        ).validate(value)

    n_facets = 0
    for event in events:
        check(event, event["schemaURL"])
        parts = [event["run"], event["job"], *event.get("inputs", []), *event.get("outputs", [])]
        for part in parts:
            for facet in (*part["facets"].values(), *part.get("outputFacets", {}).values()):
                check(facet, facet["_schemaURL"])
                n_facets += 1
    print(f"{len(events):,} events and {n_facets:,} facets fit the schemas")


def test_a_failed_build_is_an_event_with_its_message(events, tmp_path):
    def refuse(_context, _staging):
        raise Mismatch("https://me:open@data.org is not what it was")

    context = tiny_context(tmp_path)
    with pytest.raises(Mismatch):
        replace(raw.STAGE, write=refuse).build(context, OLD)
    start, end = events
    assert (start["eventType"], end["eventType"]) == ("START", "FAIL")
    require_valid(end)
    message = end["run"]["facets"]["errorMessage"]["message"]
    assert "is not what it was" in message
    assert "open" not in message
    require_published_schemas(events)


def test_a_running_build_is_an_event(events, tmp_path):
    """START is sent before the stage writes."""

    def write(context, staging):
        wait_until(lambda: events, what="START")
        assert [one["eventType"] for one in events] == ["START"]
        return raw.STAGE.write(context, staging)

    replace(raw.STAGE, write=write).build(tiny_context(tmp_path), OLD)
    assert [one["eventType"] for one in events] == ["START", "COMPLETE"]


@pytest.mark.parametrize(
    ("error", "state", "message"),
    [(KeyboardInterrupt(), "ABORT", "KeyboardInterrupt"), (ValueError("odd"), "FAIL", "odd")],
)
def test_a_build_that_is_ended_is_no_running_one(events, tmp_path, error, state, message):
    """By Ctrl-C, a signal, or an error of a library."""

    def end(_context, _staging):
        raise error

    with pytest.raises(type(error)):
        replace(raw.STAGE, write=end).build(tiny_context(tmp_path), OLD)
    assert [one["eventType"] for one in events] == ["START", state]
    assert events[1]["run"]["facets"]["errorMessage"]["message"] == message
    require_published_schemas(events)


def test_a_build_that_cannot_begin_is_an_event(events, tmp_path):
    """Its START has no inputs, which are not known."""
    with pytest.raises(NotPublished):
        filtered_documents.STAGE.build(tiny_context(tmp_path), OLD)
    start, end = events
    assert (start["eventType"], end["eventType"]) == ("START", "FAIL")
    assert start["run"]["runId"] == end["run"]["runId"]
    require_published_schemas(events)


def test_a_catalogue_that_refuses_stops_no_build(events, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__RETRY", '{"total": 0}')
    said = []
    built = raw.STAGE.build(replace(tiny_context(tmp_path), say=said.append), OLD)
    assert not built.reused
    (line,) = (line for line in said if "OpenLineage" in line)
    assert line.startswith(f"OpenLineage's events of raw_snapshot/{OLD} were not sent: START: ")
    assert "COMPLETE: " in line
    assert events == []


def test_a_catalogue_that_hangs_delays_one_build(events, tmp_path, monkeypatch):
    """A server that takes connections and does not answer: the first build waits, and no other; each
    names what was not sent.
    """
    waited = []
    bare_wait = openlineage_events.wait
    monkeypatch.setattr(openlineage_events, "WAIT_SECONDS", 0.5)
    monkeypatch.setattr(
        openlineage_events,
        "wait",
        lambda sent, seconds: waited.append(seconds) or bare_wait(sent, seconds),
    )
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{deaf.getsockname()[1]}")
        said = []
        context = replace(tiny_context(tmp_path), say=said.append)
        for snapshot in SNAPSHOTS:
            raw.STAGE.build(context, snapshot)
    lines = [line for line in said if "OpenLineage" in line]
    assert lines == [
        f"OpenLineage's events of raw_snapshot/{snapshot} were not sent: START: no answer yet; "
        "COMPLETE: no answer yet"
        for snapshot in SNAPSHOTS
    ]
    assert waited == [0.5, 0]
    assert events == []


class Gate:
    """A client whose catalogue answers when the gate opens."""

    def __init__(self):
        self.opened, self.got = threading.Event(), []

    def emit(self, event):
        assert self.opened.wait(60)
        self.got.append(event)


def test_what_waits_is_sent_in_order_when_a_catalogue_answers_again(monkeypatch):
    monkeypatch.setattr(openlineage_events, "MOST_WAITING", 4)
    monkeypatch.setattr(openlineage_events, "WAIT_SECONDS", 0.2)
    gate = Gate()
    sender = openlineage_events.Sender(gate)
    first = sender.send(0)
    wait_until(sender._waiting.empty, what="the first event")
    others = [sender.send(number) for number in range(1, 6)]
    assert "4 events wait for the catalogue" in str(others[-1].exception(0))
    time.sleep(0.2)
    gate.opened.set()
    for sent in (first, *others[:-1]):
        assert sent.result(60) is None
    assert gate.got == [0, 1, 2, 3, 4]
    assert not sender.is_prompt
    monkeypatch.setattr(openlineage_events, "WAIT_SECONDS", 60.0)
    sender.send(6).result(60)
    assert sender.is_prompt


def test_events_go_to_a_file_by_the_clients_own_configuration(events, tmp_path, monkeypatch):
    target, settings = tmp_path / "events.jsonl", tmp_path / "openlineage.yml"
    settings.write_text(f"transport:\n  type: file\n  log_file_path: {target}\n  append: true\n")
    monkeypatch.delenv("OPENLINEAGE_URL")
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(settings))
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "team")
    raw.STAGE.build(tiny_context(tmp_path), OLD)
    found = [json.loads(line) for line in target.read_text().splitlines()]
    assert [one["eventType"] for one in found] == ["START", "COMPLETE"]
    assert {one["job"]["namespace"] for one in found} == {"team"}
    assert events == []


def test_a_trial_is_not_reported(events, tmp_path):
    calibrate(tiny_context(tmp_path), [OLD], at_once=1, seconds=0)
    assert events == []


def test_on_without_a_transport_is_refused(events, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENLINEAGE_URL")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(BadInput, match="set OPENLINEAGE_URL"):
        raw.STAGE.build(tiny_context(tmp_path), OLD)


def test_a_wrong_value_and_a_missing_package_are_refused(tmp_path, monkeypatch):
    context = tiny_context(tmp_path)
    monkeypatch.setenv(VARIABLE, "yes")
    with pytest.raises(BadInput, match="LC_OPENLINEAGE is 'yes'; expected on or off"):
        raw.STAGE.build(context, OLD)
    monkeypatch.setenv(VARIABLE, "on")
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    with pytest.raises(BadInput, match=r"pip install 'lc-assets\[openlineage\]'"):
        raw.STAGE.build(context, OLD)
    monkeypatch.delenv(VARIABLE)
    assert not raw.STAGE.build(context, OLD).reused
