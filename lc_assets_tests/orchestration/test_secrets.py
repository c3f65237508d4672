"""Secrets that were planted where they may stand, and are found nowhere else: not on disk, not in
any log, event, setting or error.
"""

import functools
import http.server
import json
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._serdes import serialize_value

from lc_assets.definitions import from_environment
from lc_assets.errors import LcError, Unreachable, without_secrets
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.upstream import Upstream
from lc_assets_tests.builders import CRAWL, SNAPSHOTS, recipe_file, tiny_recipe, tiny_upstream

pytestmark = pytest.mark.filterwarnings(
    "ignore:Property `ScheduleDefinition.environment_vars`"
)  # of what the UI is told

PASSWORD, TOKEN, KEY = "planted-pa55word", "planted-t0ken", "planted-k3y"
SECRETS = (PASSWORD, TOKEN, KEY)
OLD = SNAPSHOTS[0]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def secret_lake(tmp_path, monkeypatch) -> Iterator[tuple[str, Path]]:
    """An upstream behind a password, a key file with a private key in it, and the environment that
    names both.
    """
    upstream = tiny_upstream(tmp_path / "upstream", snapshots=[OLD])
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(upstream))
    )
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    url = f"http://me:{PASSWORD}@127.0.0.1:{server.server_port}"
    key_file = tmp_path / "key.json"
    key_file.write_text(
        json.dumps(
            {
                "type": "service_account",
                "private_key": KEY,
                "client_email": "me@example.org",
                "token_uri": "x",
            }
        )
    )
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key_file))
    monkeypatch.setenv("LC_TEST_TOKEN", TOKEN)
    monkeypatch.setenv("LC_UPSTREAM", url)
    monkeypatch.setenv("LC_CRAWL", f"{url}/{CRAWL}")
    yield url, tmp_path
    server.shutdown()
    server.server_close()


def holding(folder: Path) -> list[str]:
    """Files below a folder that hold a secret."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [
        path.name
        for path in files
        if any(secret.encode() in path.read_bytes() for secret in SECRETS)
    ]


def test_a_whole_run_keeps_them_to_itself(secret_lake, capfd):
    """Lake, instance with runs and events, what was printed, and what the UI is told of the code
    location.
    """
    url, folder = secret_lake
    recipe = recipe_file(folder / "recipe.toml", tiny_recipe(folder))
    defs = from_environment(
        {
            "LC_ROOT": str(folder / "lake"),
            "LC_UPSTREAM": url,
            "LC_CRAWL": f"{url}/{CRAWL}",
            "LC_RECIPE": str(recipe),
            "LC_WORKERS": "1",
        }
    )
    (folder / "home").mkdir()
    with dg.DagsterInstance.local_temp(str(folder / "home")) as instance:
        for job, key in (("snapshot", OLD), ("all_snapshots", None), ("card", None)):
            assert (
                defs.resolve_job_def(job)
                .execute_in_process(partition_key=key, instance=instance)
                .success
            )
        failed = defs.resolve_job_def("snapshot").execute_in_process(
            partition_key="2014-15", instance=instance, raise_on_error=False
        )  # it has no listing
        assert not failed.success
        events = [event for event in failed.all_events if event.is_step_failure]
        assert events
        assert "127.0.0.1" in str(events)
        assert not [secret for secret in SECRETS if secret in str(events)]
    assert (folder / "lake" / "data_set_card").is_dir()
    assert holding(folder / "lake") == holding(folder / "home") == []
    told = serialize_value(RepositorySnap.from_def(defs.get_repository_def()))
    printed = "".join(capfd.readouterr())
    assert not [secret for secret in SECRETS if secret in told or secret in printed]
    assert "LC_UPSTREAM" in told


def test_tracebacks_of_what_cannot_be_reached_hold_none(secret_lake):
    """Of the whole chain of causes, and of repr; a closed port, a missing file, a lake in a bucket
    whose key is no key.
    """
    url, _ = secret_lake
    closed = f"http://me:{PASSWORD}@127.0.0.1:9"
    asked = [
        lambda: Upstream(closed).look(f"a?token={TOKEN}"),
        lambda: Upstream(f"{closed}?access_token={TOKEN}").n_bytes("a"),
        lambda: Upstream(url).n_bytes("nothing/here"),
        lambda: Upstream(url).open("nothing/here").__enter__(),
        lambda: Upstream(f"nothing://me:{PASSWORD}@there").look("a"),
        lambda: Upstream(closed).ranges([("a", 0, 1)]),
        lambda: open_lake("gs://crawl/lake").partition("raw_snapshot", OLD).current(),
    ]
    n_raised = 0
    for ask in asked:
        try:
            ask()
        except (LcError, FileNotFoundError) as error:
            said = "".join(traceback.format_exception(error)) + repr(error)
            assert not [secret for secret in SECRETS if secret in said], said
            n_raised += 1
    assert n_raised >= 6


def test_what_a_message_hides_and_what_it_leaves():
    """User and password of any URL; values whose names say that they open doors; nothing of a
    document's own address.
    """
    for words in (
        f"gs://{TOKEN}@bucket/x",
        f"https://h/x?X-Goog-Signature={TOKEN}&alt=media",
        f"ftp://me:{PASSWORD}@h:21/",
        f"https://h/?a=1&apiKey={TOKEN}",
        f"https://h/x#access_token={TOKEN}",
        f"https://h/x?pwd={PASSWORD}",
        f"https://h/x?a=1&jwt={TOKEN}",
        f"https://h/x?sig={KEY}",
        f"https://h/back?code={TOKEN}",
        f"https://h/x?sid={TOKEN}",
        f"https://h/x;token={TOKEN}",
        f'https://h/x?token="{TOKEN}"',
        f"https://me:a/{PASSWORD}@h/x",
        f"https://me:a#{PASSWORD}@h/x",
        f"Authorization: Bearer {TOKEN}",
        f"authorization: Basic {TOKEN}",
        f"hf_{TOKEN.replace('-', '')}",
    ):
        assert not [
            secret for secret in (*SECRETS, "plantedt0ken") if secret in without_secrets(words)
        ]
        assert not [
            secret
            for secret in SECRETS
            if secret in str(Unreachable(words)) + repr(Unreachable(words))
        ]
    plain = "https://example.org/@me/x?q=[a]&page=2, mail me@example.org: 3 of 4 rows"
    assert without_secrets(plain) == plain
    ported = "https://example.org:8080/@me/x?zipcode=1&inside=2"
    assert without_secrets(ported) == ported
    assert PASSWORD not in repr(Upstream(f"https://me:{PASSWORD}@h"))


@pytest.mark.parametrize("unit", ["token", "?token", "?token=", "://a:b", "a:", ";code", "hf_"])
def test_hiding_takes_time_in_proportion_to_the_message(unit):
    """A megabyte; were it the square, this would take half an hour."""
    words = "?" + unit * (1_000_000 // len(unit))
    assert len(without_secrets(words)) <= len(words)
