"""The command line as a whole: help, examples, errors in one sentence, exit codes."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lc_assets
from lc_assets.cli import app as main
from lc_assets.cli.inspect import in_lake

ALONE = sorted(key.partition(":")[0] for key in main.COMMANDS)
GROUPS = {"megatron": main.MEGATRON_COMMANDS}
COMMANDS = [
    *ALONE,
    *sorted(f"{name} {key.partition(':')[0]}" for name in GROUPS for key in GROUPS[name]),
]
PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
PROGRAM = "from lc_assets.cli.main import main; main()"
EXAMPLE = re.compile(r"Example: (lc [^\n]*)")


def squeezed(text):
    """Help on one line."""
    return re.sub(r"\s+", " ", text)


def test_help_names_every_command_and_an_example(lc):
    said = lc("--help")
    assert said.code == 0
    assert ALONE == [
        "audit",
        "batch",
        "buckets",
        "build",
        "decontaminate",
        "dedup",
        "demo",
        "diff",
        "explain",
        "filter",
        "init",
        "links",
        "longpack",
        "minhash",
        "pack",
        "plan",
        "prune",
        "rebuild",
        "referrals",
        "release",
        "sample",
        "show",
        "signals",
        "tokenize",
        "trace",
        "verify",
        "withdraw",
    ]
    assert all(f" {name} " in squeezed(said.out) for name in (*ALONE, *GROUPS))
    assert "Example: lc demo" in squeezed(said.out)


@pytest.mark.parametrize("key", [*main.COMMANDS, *main.MEGATRON_COMMANDS])
def test_the_list_of_commands_begins_their_help(lc, key):
    name = key.partition(":")[0]
    words = {**main.COMMANDS, **main.MEGATRON_COMMANDS}[key]
    group = ["megatron"] if key in main.MEGATRON_COMMANDS else []
    assert f"lc {' '.join([*group, name])} [OPTIONS]" in squeezed(lc(*group, name, "--help").out)
    assert f" {words}" in squeezed(lc(*group, name, "--help").out)


def test_help_lists_every_command_once_under_its_group(lc):
    lines = lc("--help").out.splitlines()
    headings = [line[:-1] for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Options", *main.COMMAND_GROUPS, "Megatron"]
    listed = [line.split()[0] for line in lines if re.match(r"  [a-z]+  ", line)]
    assert sorted(listed) == sorted([*ALONE, "megatron"])


def test_the_version_is_the_packages(lc):
    assert lc("--version").out == f"lc_assets {lc_assets.__version__}\n"


@pytest.mark.parametrize(
    ("line", "completed"), [("lc withd", "withdraw"), ("lc plan --la", "--lake")]
)
def test_the_shell_completes_commands_and_their_options(line, completed):
    asked = {
        "_LC_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
    }
    said = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.argv = ['lc']; {PROGRAM}"],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stdout.split() == [completed]


def test_help_imports_no_command():
    code = (
        "import sys; from lc_assets.cli.app import app; app(['--help'], standalone_mode=False); "
        "sys.exit(any(name.startswith('lc_assets.cli.') and name[14:] not in {'app', 'main'} "
        "for name in sys.modules) or 'rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_a_command_help_is_shown(lc):
    assert "Usage: lc" in lc().err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_help_has_a_purpose_and_an_example_that_parses(lc, name):
    """The example names the command, and every option in it exists: an unknown one would end with 2
    before the help.
    """
    said = lc(*name.split(), "--help")
    assert said.code == 0
    example = EXAMPLE.search(said.out)
    assert example is not None
    words = shlex.split(example.group(1).strip())
    assert " ".join(words).startswith(f"lc {name}")
    assert lc(*words[1:], "--help").code == 0
    assert lc(*name.split(), "--no-such-option", "--help").code == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_shows_every_command(name):
    page = PAGE.read_text("utf-8")
    assert f"## `lc {name}`" in page
    assert re.search(rf"^lc {name}\b", page, re.MULTILINE)


def test_what_is_not_there_is_one_sentence_and_2(lc, tmp_path):
    said = lc("show", tmp_path / "nowhere")
    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines() == [f"{tmp_path}/nowhere: nothing is there"]


@pytest.mark.parametrize("option", ["--source", "--rules", "--text-field"])
def test_what_takes_one_value_and_is_given_two_is_refused(lc, option):
    """Else the first source, rules or field would be dropped without a word."""
    said = lc("build", "--lake", "lake", "--source", "corpus", option, "title", option, "body")
    assert said.code == 2
    assert f"'{option}': given twice; it takes one value" in said.err


def test_what_is_broken_is_one_sentence_and_1(lc, tmp_path):
    broken = tmp_path / "rows.parquet"
    broken.write_bytes(b"PAR1 but no more")
    said = lc("show", broken)
    assert said.code == 1
    assert said.err.startswith(f"{broken}: not a readable Parquet file")
    assert "Traceback" not in said.err + said.out


def test_a_stop_by_hand_is_one_line_and_130(lc, monkeypatch, tmp_path):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(in_lake, "recognize", stopped)
    said = lc("show", tmp_path)
    assert (said.code, said.out, said.err) == (130, "", STOPPED)


STOPPED = "stopped; run the command again to finish\n"
PROGRAM = "from lc_assets.cli.main import main; main()"
STOPPING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in background
module, number = sys.argv.pop(1), int(sys.argv.pop(1))
class Stopping:
    def find_spec(self, name, *_):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), number)
def stopping(event, arguments):
    if event == "open" and str(arguments[0]).endswith(module):
        try:
            os.kill(os.getpid(), number)
        except KeyboardInterrupt:
            if module[0] == "/":  # as a query does
                raise RuntimeError("interrupted") from None
            raise
sys.addaudithook(stopping)
sys.meta_path.insert(0, Stopping())
"""


@pytest.mark.parametrize(
    "module", ["typer", "inspect", "lc_assets.cli.inspect.show", "rich.table", "x.npy", "/x.npy"]
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_at_any_time_is_one_line(tmp_path, module, number):
    """Before the command is known, while modules are imported, and while it reads."""
    np.save(tmp_path / "x.npy", np.arange(3))
    code = [sys.executable, "-c", STOPPING + PROGRAM, module, str(int(number))]
    ended = subprocess.run(
        [*code, "show", tmp_path / "x.npy"], check=False, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + number, "", STOPPED)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("method", ["make_context", "invoke"])
def test_a_stop_beside_a_command_is_one_line(method, number):
    """Before it is known and after it has ended, where typer would end without a word."""
    code = (
        "import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); "
        "from lc_assets.cli import app, main; "
        f"app.MainGroup.{method} = lambda *_, **__: os.kill(os.getpid(), {int(number)}); "
        "main.main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, "show", "x.npy"], check=False, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (128 + number, STOPPED)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_that_dagster_takes_has_its_own_exit_status(tmp_path, number):
    """Its handler, which replaces ours during a run, takes SIGTERM for SIGINT."""
    code = (
        "import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "from dagster._utils.interrupts import raise_interrupts_as\n"
        "from lc_assets.cli import main\n"
        "from lc_assets.cli.inspect import in_lake\n"
        "def stopped(*_, **__):\n"
        "    with raise_interrupts_as(KeyboardInterrupt):\n"
        f"        os.kill(os.getpid(), {int(number)})\n"
        "in_lake.recognize = stopped\n"
        "main.main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, "show", tmp_path], check=False, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (128 + number, STOPPED)


@pytest.mark.parametrize("compiler", ["llvmlite", "numba"])
def test_a_stop_in_a_callback_of_the_compiler_is_one_line(compiler):
    """Where an exception is printed and forgotten."""
    code = (
        "import os, signal; from lc_assets.cli import main; "
        "signal.signal(signal.SIGTERM, main._stop); "
        f"exec(compile('os.kill(os.getpid(), signal.SIGTERM)', '{compiler}/x.py', 'exec'))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGTERM, STOPPED)


@pytest.mark.parametrize("words", [["show", "x.npy"], ["show", "--help"]])
@pytest.mark.parametrize(
    ("redirected", "why"),
    [
        (">&-", "Bad file descriptor"),
        ("> /dev/full", "No space left on device"),
        ("| true", "Broken pipe"),
    ],
)
def test_output_that_cannot_be_written_is_one_line_and_1(tmp_path, words, redirected, why):
    """Closed, full, or a pipe that nobody reads."""
    np.save(tmp_path / "x.npy", np.arange(3))
    script = f'(sleep 0.1; exec "$@") {redirected}; exit ${{PIPESTATUS[0]}}'
    ended = subprocess.run(
        ["bash", "-c", script, "bash", sys.executable, "-c", PROGRAM, *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PAGE.parents[1])},
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"standard output: {why}\n")


def test_a_bug_keeps_its_traceback(lc, monkeypatch, tmp_path):
    """Only deliberate errors are made pretty."""

    def wrong(*_, **__):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(in_lake, "recognize", wrong)
    with pytest.raises(ZeroDivisionError):
        lc("show", tmp_path)
