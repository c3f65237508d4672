"""Options that several commands share, and groups of options.

A parameter of a command that its docstring explains is an option of its name. A command may take
options in groups (`with_options`): parameters whose type is a dataclass, each field of which is an
option; and parameters whose default is `lc_assets.cli.setting_options.settings_options`, for
settings of a recipe.
"""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, field, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from lc_assets.cli.setting_options import SettingsOptions, parameters_of
from lc_assets.errors import BadInput
from lc_assets.records import record

if TYPE_CHECKING:
    from lc_assets.api.files import Output
    from lc_assets.counts import Counts
    from lc_assets.text.links.addresses import Kind

Lake = Annotated[
    str,
    Option(
        "--lake",
        envvar="LC_ROOT",
        help="The lake: the folder, gs://…, s3://… or az://… that everything is published under.",
    ),
]
Upstream = Annotated[
    str,
    Option(
        "--upstream",
        envvar="LC_UPSTREAM",
        help="RedPajama-V2, or its layout elsewhere: a folder or URL.",
    ),
]
Crawl = Annotated[
    str, Option("--crawl", envvar="LC_CRAWL", help="The crawl's own archives: a folder or a URL.")
]
Recipe = Annotated[
    Path | None,
    Option(
        "--recipe", envvar="LC_RECIPE", help="TOML file of what differs from the default recipe."
    ),
]
Withdrawn = Annotated[
    str,
    Option(
        "--withdrawn",
        envvar="LC_WITHDRAWN",
        help="Lists of withdrawals besides the recipe's, separated as in PATH.",
    ),
]
LakePath = Annotated[
    str,
    Argument(
        metavar="LAKE", envvar="LC_ROOT", help="The lake: a folder, gs://…, s3://… or az://…."
    ),
]
Snapshots = Annotated[
    list[str] | None, Option("--snapshot", help="A snapshot; may be given several times.")
]
Until = Annotated[
    list[str] | None,
    Option(
        "--to",
        metavar="STAGE",
        help="Only this stage and what it reads; may be given several times.",
    ),
]
Tokenizer = Annotated[
    str,
    Option(
        "--tokenizer",
        help="gpt2, cl100k_base, ...; a tokenizer.json or .model; a folder; owner/model of the "
        "hub.",
    ),
]
Workers = Annotated[
    int | None,
    Option(
        "--workers", envvar="LC_WORKERS", min=1, help="Processes; by default one per processor."
    ),
]
Executor = Annotated[
    str,
    Option(
        "--executor",
        envvar="LC_EXECUTOR",
        help="Where tasks run: local, or on a Ray cluster, such as ray://host:10001.",
    ),
]
TaskSeconds = Annotated[
    float,
    Option(
        "--task-seconds",
        envvar="LC_TASK_SECONDS",
        min=0.0,
        help="End a shard that takes longer; 0 means no limit.",
    ),
]
DagsterHome = Annotated[
    Path | None,
    Option(
        "--dagster-home",
        envvar="DAGSTER_HOME",
        help="Run through Dagster, with its history there.",
    ),
]
Source = Annotated[
    Path | None,
    Option(
        "--from",
        help="Folder of .txt, .md or .rst files; by default novels that come with the package.",
    ),
]
TextField = Annotated[
    str | None,
    Option(
        "--text-field",
        help="Where a record's text is; by default raw_content, text or content.",
    ),
]
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
Lang = Annotated[str, Option("--lang", help="Language of documents that do not state theirs.")]


@record
class DocumentOptions:
    """Which documents, by one of these values.

    Attributes:
        document: a document id, such as 2023-06/0000/en_head.json.gz/17 or books/part-0/line-17.
        url: a page's URL.
        domain: a domain: its pages, and those of all its subdomains.
        digest: digest of a page (sha1:...) or of a text (sha256:...).
    """

    document: Annotated[str | None, Option("--id", "--document")] = None
    url: str | None = None
    domain: str | None = None
    digest: str | None = None

    def named(self) -> "dict[Kind, str]":
        """The values that are given, by kind."""
        values: dict[Any, str | None] = asdict(self)
        return {kind: value for kind, value in values.items() if value is not None}


Split = Annotated[str, Option("--split", help="train or heldout.")]


@record
class Corpus:
    """Documents to read, and the lake to write.

    Attributes:
        paths: files and folders of documents, or lakes; and a folder for the lake to write.
        broken: what to do about a file that cannot be read.
        killed: what to do about a document that needs more memory than there is.
        shard_size: cut larger uncompressed files of JSON lines into shards of this size, such as
            256MB, which workers share; by default a file is one.
        log_interval: print shards and documents on standard error every so many seconds, rather
            than draw a bar on a terminal; 0 means never.
    """

    paths: Annotated[list[Path], Argument(metavar="IN... OUT")]
    text_field: TextField = None
    broken: Literal["skip", "fail"] = "skip"
    killed: Literal["fail", "skip"] = "fail"
    shard_size: str = "0"
    log_interval: Annotated[float, Option(min=0.0)] = 0.0
    workers: Workers = None
    notes: list[str] = field(default_factory=list, init=False)
    """What is printed when the command ends."""

    @property
    def out(self) -> Path:
        """The lake."""
        return self.paths[-1]

    def run(self, function: "Callable[..., Output]", *given: Any, **how: Any) -> "Output":
        """Call a function of `lc_assets.api` on the documents; note how many files were skipped;
        see `call`.
        """
        output: Output = self.call(function, *given, **how)
        return self.noted(output)

    def call(self, function: "Callable[..., Any]", *given: Any, **how: Any) -> Any:
        """Call a function of `lc_assets.api` on the documents.

        Args:
            function: what is called.
            given: its arguments after the input and the output.
            how: its other arguments.

        Raises:
            BadInput: when nothing is left to read, or an input is unusable.
        """
        *inputs, out = self.paths
        if not inputs:
            raise BadInput("name what to read and where to write: IN... OUT")
        return function(
            inputs,
            out,
            *given,
            text_field=self.text_field,
            broken=self.broken,
            killed=self.killed,
            shard_bytes=bytes_of(self.shard_size),
            workers=self.workers,
            log_seconds=self.log_interval,
            **how,
        )

    def noted(self, output: "Output") -> "Output":
        """Note how many files were skipped."""
        n_skipped, n_files = output.skipped_files
        if n_skipped:
            self.notes.append(
                f"{n_skipped:,} of {n_files:,} files could not be read and were skipped; "
                "--broken fail ends at the first one and names it"
            )
        return output

    def build(self, target: str, settings: Mapping[str, Any], **how: Any) -> "Output":
        """Build a stage and all that it reads over the documents."""
        from lc_assets.api.files import build_over

        return self.run(build_over, target, settings, **how)


def require_documents(n_left: int, counts: "Counts") -> None:
    """Fail when no document is left.

    Raises:
        BadInput: says why each document was dropped.
    """
    if not n_left:
        dropped = ", ".join(f"{n:,} {why}" for why, n in counts.dropped.items()) or "IN is empty"
        raise BadInput(f"no document is left of {counts.seen:,} seen: {dropped}")


def numbers_of(option: str, words: str) -> tuple[int, ...]:
    """Whole numbers with commas between them.

    >>> numbers_of("--edges", "4096,16384")
    (4096, 16384)

    Raises:
        BadInput: when they are not numbers.
    """
    try:
        return tuple(map(int, words.split(",")))
    except ValueError as error:
        raise BadInput(f"{option} {words}: expected whole numbers, such as 32,128") from error


def bytes_of(size: str) -> int:
    """A number of bytes with a unit, in powers of 1,000.

    >>> bytes_of("30GB"), bytes_of("1.5 kB"), bytes_of("512")
    (30000000000, 1500, 512)

    Raises:
        BadInput: if it is not a number of bytes.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)B?\s*", size, re.IGNORECASE)
    if found is None:
        raise BadInput(f"{size!r} is not a size; write it as 30GB or 500 MB")
    return int(float(found[1]) * UNITS[found[2].upper()])


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command for typer in which each option of a group is an option of its own.

    >>> from dataclasses import dataclass
    >>> @dataclass(kw_only=True)
    ... class Size:
    ...     rows: int = 2
    ...     columns: int = 3
    >>> @with_options
    ... def area(name: str, size: Size) -> None:
    ...     print(name, size.rows * size.columns)
    >>> area(name="grid", rows=4, columns=5), inspect.signature(area)
    grid 20
    (None, <Signature (*, name: str, rows: int = 2, columns: int = 3)>)
    """
    groups: dict[str, tuple[Any, list[str]]] = {}
    found: list[inspect.Parameter] = []
    for parameter in parameters_of(command):
        kind = parameter.annotation
        if isinstance(parameter.default, SettingsOptions):
            kind = parameter.default
            own = kind.parameters()
        elif isinstance(kind, type) and is_dataclass(kind):
            own = parameters_of(kind)
        else:
            found.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = kind, [one.name for one in own]
        found += own

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, (make, own) in groups.items():
            given[name] = make(**{option: given.pop(option) for option in own})
        from lc_assets.cli.printing import print_error

        command(**given)
        for group in given.values():
            for words in group.notes if isinstance(group, Corpus) else ():
                print_error(words)

    run.__signature__ = inspect.Signature(found)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in found}
    return run
