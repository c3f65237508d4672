"""Kill a run with SIGKILL at any call that changes a file or at any moment, or shift its clock.

A small library (``kill_points.c``, compiled by the machine's C compiler) is preloaded into one
process that imports everything once and forks for each run. It counts every create, write,
truncation, fsync, rename, link, unlink, mkdir and rmdir below one folder, from Python, pyarrow and
zarr alike. At the chosen call, half of a write is done before the kill. Calls are logged, so that
`lc_assets_tests.lost_writes` can undo those that no fsync had made durable.
"""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import pytest

from lc_assets.builds.stage import BuildContext
from lc_assets_tests.builders import recipe_file

FORKING = """
import contextlib, ctypes, gc, json, os, signal, sys, time
from multiprocessing import util
from pathlib import Path
import pandera.errors, pandera.pyarrow
import numba
from lc_assets.execution.local import LocalExecutor
from lc_assets.errors import LcError
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.builds.stage import BuildContext
from lc_assets.stages.catalogue import stage_named
from lc_assets.builds.recipe_files import read_recipe
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.upstream import Upstream
from lc_assets.cli.main import main
from lc_assets.stages import file_lakes

file_lakes._INTERPRETED_BYTES = 0  # one process does not mix compiled kernels with interpreted ones
gpt2_tokenizer(fast=True), gpt2_tokenizer(fast=False)
points = ctypes.CDLL(None)
# SIGINT is ignored where tests run in background, and then Dagster, in a test before, ignores SIGTERM
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)

def do(words=None, cwd=None, printed=None, below=None, output=None, patience=None, **work):
    for module in [module for module in sys.modules.values() if patience and hasattr(module, "BUSY_SECONDS")]:
        module.BUSY_SECONDS = patience
    return build(**work) if words is None else command(words, cwd, printed, output)

def opened(output):
    if output != "| true":
        return open(output, "wb")
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "wb")

def command(words, cwd, printed, output):
    os.chdir(cwd)
    before = [os.dup(number) for number in (1, 2)]
    for number, path in ((1, output or f"{printed}.out"), (2, f"{printed}.err")):
        with opened(path) as file:
            os.dup2(file.fileno(), number)
    sys.argv = ["lc", *words]
    try:
        main()
    except SystemExit as ended:
        return str(ended.code or 0)
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush(), sys.stderr.flush()
        for number, kept in zip((1, 2), before):
            os.dup2(kept, number), os.close(kept)

def build(lake, upstream, crawl, recipe, stage, key):
    places = {"lake": open_lake(lake), "upstream": Upstream(upstream), "crawl": Upstream(crawl) if crawl else None}
    context = BuildContext(**places, recipe=read_recipe(Path(recipe)), executor=LocalExecutor())
    stage_named(stage).build(context, key)
    return ""

def child(answering, armed, work, environment):
    os.environ.update(environment)
    points.kill_points_arm(*(value.encode() if isinstance(value, str) else ctypes.c_long(value) for value in armed))
    os.setpgid(0, 0)
    try:
        said = do(**work)
    except LcError as error:
        said = type(error).__name__
    util._exit_function()  # as at a program's end: no semaphore is left to the resource tracker
    os.write(answering, json.dumps([points.kill_points_calls(), said, time.time()]).encode())
    os._exit(0)

def begin(run):
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        child(writing, **run)
    with contextlib.suppress(OSError):  # done by the child already, or it has ended
        os.setpgid(pid, pid)
    os.close(writing)
    return pid, reading

def ended(pid, reading):
    _, status = os.waitpid(pid, 0)
    calls, said, clock = json.loads(os.read(reading, 200) or "[0, null, 0]")
    os.close(reading)
    return {"code": os.waitstatus_to_exitcode(status), "calls": calls, "said": said, "clock": clock}

def waits_for_the_lock(pid, log):
    while not os.path.exists(log) or "\\nK" not in "\\n" + open(log).read():
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return
        time.sleep(0.005)

def goes_on(first, second, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until and not os.waitid(os.P_PID, second[0], os.WEXITED | os.WNOHANG | os.WNOWAIT):
        time.sleep(0.01)
    os.kill(first[0], signal.SIGCONT)

def answers_of(asked):
    first = begin(asked["runs"][0])
    print(json.dumps([first[0]]), flush=True)
    if asked["after"] is not None:
        time.sleep(asked["after"])
        os.kill(first[0], signal.SIGKILL)
    for run in asked["runs"][1:]:  # while the first one has come to its call, and is held there
        if os.waitid(os.P_PID, first[0], os.WEXITED | os.WSTOPPED | os.WNOWAIT).si_code != os.CLD_STOPPED:
            return [ended(*first)]
        second = begin(run)
        if asked["goes_on"] is not None:
            goes_on(first, second, asked["goes_on"])
            return [ended(*first), ended(*second)]
        waits_for_the_lock(second[0], run["armed"][2])
        os.kill(first[0], signal.SIGKILL)
        return [ended(*first), ended(*second)]
    return [ended(*first)]

for line in sys.stdin:
    asked = json.loads(line)
    if "warm" in asked:
        do(**asked["warm"])
        gc.collect(), gc.freeze()  # what forks share stays shared
        print("warm", flush=True)
    else:
        print(json.dumps(answers_of(asked)), flush=True)
os._exit(0)  # frozen objects would be reported as leaks
"""


@functools.cache
def kill_points() -> Path:
    """Compile the library; skip the test where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler and Linux")
    made = Path(tempfile.mkdtemp(prefix="kill-points-")) / "kill_points.so"
    source = Path(__file__).with_name("kill_points.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(made), str(source), "-ldl"],
        check=True,
        capture_output=True,
    )
    return made


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: its exit code (-9 when killed), the number of its calls, the name of the
    package's error ("" for none) or the exit status of a command, and its clock.
    """

    code: int
    calls: int
    said: str | None
    clock: float

    @property
    def killed(self) -> bool:
        """Whether it was killed."""
        return self.code == -9


class KillableRunner:
    """Runs work in forked processes that can be killed at a chosen call; a context manager.

    Attributes:
        log: calls of the last run, one a line, if it ran with ``logged=True``.
        journal: where that run kept copies of what it removed.
    """

    def __init__(
        self, folder: Path, work: Mapping[str, Any], environment: Mapping[str, str] | None = None
    ) -> None:
        self.folder, self._work, self._environment = folder, dict(work), dict(environment or {})
        self.log, self.journal = (
            folder.with_name(f"{folder.name}.log"),
            folder.with_name(f"{folder.name}.kept"),
        )
        self._process = _forking()

    @classmethod
    def over(cls, context: BuildContext) -> Self:
        """Return a runner that builds partitions of a context, whose lake is a folder."""
        path = recipe_file(context.lake.root.parent / "killed.toml", context.recipe)
        crawl = context.crawl.root if context.crawl else ""
        return cls(
            context.lake.root,
            {
                "lake": context.lake.url,
                "upstream": context.upstream.root,
                "crawl": crawl,
                "recipe": str(path),
            },
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def restart(self) -> None:
        """End the process that forks, and start another."""
        self._process.communicate()
        self._process = _forking()

    def warm(self, **work: Any) -> None:
        """Run some work in the process that forks, so that its forks need not import, load or
        compile anything.
        """
        print(json.dumps({"warm": self._work | work}), file=self._stdin, flush=True)
        assert self._stdout.readline() == "warm\n"

    def run(
        self,
        *,
        kill_at: int = 0,
        after: float | None = None,
        logged: bool = False,
        jump: int = 0,
        shift: int = 0,
        number: int = signal.SIGKILL,
        **work: Any,
    ) -> Ended:
        """Run some work in a process.

        Args:
            kill_at: kill it at this call; 0 for never.
            after: kill it after so many seconds.
            logged: log its calls.
            jump: seconds by which the clock jumps ahead and back.
            shift: seconds by which the clock is ahead.
            number: the signal at that call; or, below 0, the error of that call and of all others
                behind it that need room on the disk.
            work: what to build; or the ``words`` of a command, its ``cwd``, the path, less
                ``.out`` and ``.err``, of what it has ``printed``, the folder ``below`` which its
                calls are counted, and a file as its ``output``, or ``| true`` for a closed pipe.
        """
        run = self._run(kill_at, work, logged=logged, jump=jump, shift=shift, number=number)
        return self._ask([run], after)[0]

    def two(self, *, kill_at: int, **work: str) -> list[Ended]:
        """Run the same work twice at once: the first run stops at a call until the second waits for
        the lock, and is then killed.

        Returns one result if the first run never reached that call.
        """
        self.log.unlink(missing_ok=True)
        return self._ask(
            [self._run(kill_at, work, number=signal.SIGSTOP), self._run(0, work, logged=True)], None
        )

    def race(
        self, first: Mapping[str, Any], second: Mapping[str, Any], *, stop_at: int, seconds: float
    ) -> list[Ended]:
        """Run some work that stops at a call, and other work meanwhile; the first goes on when the
        second has ended, at the latest after some seconds.

        Returns one result if the first never reached that call.
        """
        runs = [self._run(stop_at, first, number=signal.SIGTSTP), self._run(0, second)]
        return self._ask(runs, None, goes_on=seconds)

    def begin(self, *, environment: Mapping[str, str] | None = None, **work: Any) -> int:
        """Start some work and return its process id, which is its group's, for the caller to kill; then call `wait`."""
        (pid,) = self._send([self._run(0, work, environment=environment)], None)
        return pid

    def wait(self) -> Ended:
        """Wait for the work that `begin` started; return how it ended."""
        (ended,) = json.loads(self._stdout.readline())
        return Ended(**ended)

    def _run(
        self,
        kill_at: int,
        work: Mapping[str, Any],
        *,
        logged: bool = False,
        number: int = signal.SIGKILL,
        jump: int = 0,
        shift: int = 0,
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        if logged:
            shutil.rmtree(self.journal, ignore_errors=True)
            self.journal.mkdir(parents=True)
        armed = [
            f"{work.get('below', self.folder)}/",
            kill_at,
            str(self.log) if logged else "",
            str(self.journal),
            jump,
            int(number),
            shift,
        ]
        return {
            "armed": armed,
            "work": self._work | work,
            "environment": self._environment | dict(environment or {}),
        }

    def _ask(
        self, runs: list[dict[str, Any]], after: float | None, goes_on: float | None = None
    ) -> list[Ended]:
        self._send(runs, after, goes_on)
        return [Ended(**ended) for ended in json.loads(self._stdout.readline())]

    def _send(
        self, runs: list[dict[str, Any]], after: float | None, goes_on: float | None = None
    ) -> list[int]:
        print(
            json.dumps({"runs": runs, "after": after, "goes_on": goes_on}),
            file=self._stdin,
            flush=True,
        )
        return json.loads(self._stdout.readline())  # type: ignore[no-any-return]

    @property
    def _stdin(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _stdout(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout


def _forking() -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", FORKING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
        bufsize=1,
        env=os.environ | {"LD_PRELOAD": str(kill_points())},
    )
