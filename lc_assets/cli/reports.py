"""``--json`` and ``--quiet`` of every command: what it prints as one JSON object, or only errors.

The functions of `lc_assets.cli.printing` add what they would print to the report that is open here.
"""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
import typer
from typer import Option

from lc_assets.errors import BadInput, LcError, NotPublished

FORMAT = 1
"""Version of the shape of ``--json``: raised when a field changes its meaning or goes."""

_open: list["Report"] = []
"""The report of the command that runs, if there is one."""


class Section(msgspec.Struct):
    """What a command prints from one heading to the next.

    Attributes:
        title: the heading; the first section has none.
        messages: sentences.
        facts: names with their values, an object for each list of them.
        tables: their titles, and their rows by column.
    """

    title: str = ""
    messages: list[str] = []
    facts: list[dict[str, Any]] = []
    tables: list[dict[str, Any]] = []


class Report(msgspec.Struct):
    """What ``--json`` prints, with the command's own ``results`` as further fields.

    Attributes:
        command: its name.
        status: the exit status.
        sections: what it prints without ``--json``.
        errors: what it says on standard error.
        results: values that have a shape of their own, by name.
    """

    command: str
    status: int = 0
    sections: list[Section] = msgspec.field(default_factory=lambda: [Section()])
    errors: list[str] = []
    results: dict[str, Any] = {}

    def say(self, sentence: str) -> None:
        """Add a sentence."""
        if sentence:
            self.sections[-1].messages.append(sentence)

    def open_section(self, title: str) -> None:
        """Begin a section."""
        self.sections.append(Section(title))

    def add_facts(self, facts: Mapping[str, Any]) -> None:
        """Add names with their values."""
        self.sections[-1].facts.append(dict(facts))

    def add_table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add a table."""
        lines = [dict(zip(columns, row, strict=True)) for row in rows]
        self.sections[-1].tables.append({"title": title, "rows": lines})

    def encoded(self) -> bytes:
        """The report as JSON."""
        shown = {"format": FORMAT, **msgspec.structs.asdict(self), **self.results}
        del shown["results"]
        content = msgspec.json.encode(shown, enc_hook=_plain)
        return msgspec.json.format(content, indent=2) + b"\n"


class Quantity(str):
    """A number in words, for people; ``number`` is in the report."""

    number: float

    def __new__(cls, words: str, number: float) -> "Quantity":
        """Make it."""
        made = super().__new__(cls, words)
        made.number = number
        return made


def report() -> Report | None:
    """The report that is open, if there is one."""
    return _open[-1] if _open else None


def add_results(**results: Any) -> None:
    """Add values to the report, if one is open, that have a shape of their own."""
    if found := report():
        found.results |= results


def with_reports(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options ``--json`` and ``--quiet``."""
    options = {
        "json": Annotated[bool, Option("--json", help="Print one JSON object instead.")],
        "quiet": Annotated[bool, Option("--quiet", help="Print errors only.")],
    }

    @functools.wraps(command)
    def run(*, json: bool = False, quiet: bool = False, **given: Any) -> None:
        if not json and not quiet:
            command(**given)
            return
        if quiet:
            os.environ["TQDM_DISABLE"] = "1"
        with _reporting(command.__name__.strip("_"), prints=json):
            command(**given)

    signature = inspect.signature(command)
    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in options.items()
    ]
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *own]
    )
    run.__annotations__ = command.__annotations__ | options
    return run


def exit_status(error: LcError) -> int:
    """The exit status of a command that ends with an error."""
    return 2 if isinstance(error, BadInput | NotPublished) else 1


@contextlib.contextmanager
def _reporting(command: str, *, prints: bool) -> Iterator[None]:
    """Collect what a command prints, and print it at the end as JSON."""
    made = Report(command)
    ended: Exception | None = None
    _open.append(made)
    try:
        yield
    except typer.Exit as end:
        made.status, ended = end.exit_code, end
    except LcError as error:
        made.status, ended = exit_status(error), error
        made.errors.append(str(error))
    finally:
        _open.remove(made)
    if prints:
        typer.echo(made.encoded().decode(), nl=False)
    if ended is not None:
        raise ended


def _plain(value: Any) -> Any:
    """A value that JSON does not know: a quantity's number, NumPy's scalars, paths in words."""
    if isinstance(value, Quantity):
        return value.number
    return value.item() if hasattr(value, "item") else str(value)
