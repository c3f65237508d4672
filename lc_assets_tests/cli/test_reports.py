"""``--json`` and ``--quiet`` of every command."""

import json

import numpy as np
import pytest
import typer

from lc_assets.cli.app import COMMANDS, MEGATRON_COMMANDS
from lc_assets.cli.printing import facts, heading, lasted, print_error, say, sized, table
from lc_assets.cli.reports import with_reports
from lc_assets.errors import BadInput, CorruptFile, StorageFull


def command(*, fails: Exception | None = None) -> None:
    say("begins")
    facts([("size", sized(1_500)), ("name", None)])
    heading("Rows")
    table(("row", "took"), [(np.int64(1), lasted(75.0)), (2, None)], title="all")
    print_error("one is odd")
    if fails is not None:
        raise fails


def reported(capsys, **given) -> dict:
    with_reports(command)(json=True, **given)
    return json.loads(capsys.readouterr().out)


def test_a_report_has_what_is_printed_with_plain_numbers(capsys):
    assert reported(capsys) == {
        "format": 1,
        "command": "command",
        "status": 0,
        "sections": [
            {
                "title": "",
                "messages": ["begins"],
                "facts": [{"size": 1500, "name": None}],
                "tables": [],
            },
            {
                "title": "Rows",
                "messages": [],
                "facts": [],
                "tables": [
                    {"title": "all", "rows": [{"row": 1, "took": 75.0}, {"row": 2, "took": None}]}
                ],
            },
        ],
        "errors": ["one is odd"],
    }


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (typer.Exit(3), 3, []),
        (BadInput("no such row"), 2, ["no such row"]),
        (CorruptFile("cut short"), 1, ["cut short"]),
        (StorageFull("full"), 1, ["full"]),
    ],
)
def test_a_report_has_the_exit_status_and_the_error(capsys, error, status, words):
    with pytest.raises(type(error)):
        with_reports(command)(json=True, fails=error)
    found = json.loads(capsys.readouterr().out)
    assert (found["status"], found["errors"]) == (status, ["one is odd", *words])


def test_an_interrupted_command_prints_no_report(capsys):
    with pytest.raises(KeyboardInterrupt):
        with_reports(command)(json=True, fails=KeyboardInterrupt())
    assert capsys.readouterr().out == ""


def test_quiet_prints_errors_only(capsys, monkeypatch):
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    with_reports(command)(quiet=True)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "one is odd\n")


def test_nothing_of_a_report_is_left_for_the_next_one(capsys):
    reported(capsys)
    assert len(reported(capsys)["sections"]) == 2
    with_reports(command)()
    assert "begins" in capsys.readouterr().out


def test_every_command_has_both_options(lc):
    names = [key.partition(":")[0] for key in COMMANDS]
    names += [f"megatron {key.partition(':')[0]}" for key in MEGATRON_COMMANDS]
    for name in names:
        said = lc(*name.split(), "--help").out
        assert "--json" in said, name
        assert "--quiet" in said, name


def test_show_prints_a_report(lc, whole):
    said = lc("show", whole / "lake", "--json")
    (lines,) = json.loads(said.out)["sections"][0]["tables"]
    assert {"partition", "version", "size", "state"} <= set(lines["rows"][0])
    assert isinstance(lines["rows"][0]["size"], int)


def test_signals_on_standard_output_leave_no_place_for_a_report(lc, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "a page of words"}\n')
    said = lc("signals", tmp_path / "in.jsonl", "-", "--json")
    assert (said.code, json.loads(said.out)["errors"]) == (
        2,
        ["OUT - is for signals alone: leave out --json and --quiet"],
    )
