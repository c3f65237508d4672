"""Options that several commands share, declared once: their names, their variables, their help."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

from typer import Argument, Option

from lc_assets.errors import BadInput

Choice = TypeVar("Choice", bound=str)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lc_assets.build.settings.common import ModelSettings
    from lc_assets.build.settings.documents import ListSettings
    from lc_assets.build.stage import Built
    from lc_assets.text.links.addresses import Kind

Lake = Annotated[
    str,
    Option(
        "--lake",
        envvar="LC_ROOT",
        help="The lake: the folder, or gs://bucket/folder, that everything is published under.",
    ),
]
Upstream = Annotated[
    str,
    Option(
        "--upstream", envvar="LC_UPSTREAM", help="RedPajama-V2, or its shape: a folder or a URL."
    ),
]
Crawl = Annotated[
    str,
    Option("--crawl", envvar="LC_CRAWL", help="The crawl's own archives: a folder or a URL."),
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
    Argument(metavar="LAKE", envvar="LC_ROOT", help="The lake: a folder, or gs://bucket/folder."),
]
Snapshots = Annotated[
    list[str] | None, Option("--snapshot", help="A snapshot; may be given several times.")
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
        help="Who works: local, or a Ray cluster's address, such as ray://host:10001.",
    ),
]
TaskSeconds = Annotated[
    float,
    Option(
        "--task-seconds",
        envvar="LC_TASK_SECONDS",
        min=0.0,
        help="End a shard that takes longer; 0 is for ever.",
    ),
]
Source = Annotated[
    Path | None,
    Option(
        "--from",
        help="Folder of .txt, .md or .rst files; by default the documentation of installed "
        "packages.",
    ),
]
Sources = Annotated[
    list[Path],
    Argument(
        metavar="IN... OUT",
        help="Files and folders of documents, or lakes; and a folder for the lake to write.",
    ),
]
TextField = Annotated[
    str | None,
    Option(
        "--text-field",
        help="Where a record's text is; by default raw_content, text or content.",
    ),
]
Lang = Annotated[str, Option("--lang", help="Language of documents that do not name theirs.")]
Url = Annotated[str | None, Option("--url", help="A page's URL.")]
Domain = Annotated[
    str | None,
    Option("--domain", help="A domain: its pages, and those of all its subdomains."),
]
Digest = Annotated[
    str | None,
    Option("--digest", help="Digest of a page (sha1:...) or of a text (sha256:...)."),
]


@dataclass(frozen=True, kw_only=True)
class DocumentOptions:
    """Which documents, by one of these values."""

    identity: Annotated[
        str | None,
        Option(
            "--id",
            "--document",
            help="A document id, such as 2023-06/0000/en_head.json.gz/17 or books/part-0/line-17.",
        ),
    ] = None
    url: Url = None
    domain: Domain = None
    digest: Digest = None

    def named(self) -> "dict[Kind, str]":
        """The values that are given, by kind."""
        found: dict[Kind, str | None] = {
            "document": self.identity,
            "url": self.url,
            "domain": self.domain,
            "digest": self.digest,
        }
        return {kind: value for kind, value in found.items() if value is not None}


Split = Annotated[str, Option("--split", help="train or heldout.")]


@dataclass(kw_only=True)
class Lists:
    """Lists that some signals need."""

    stop_words: Annotated[
        Path | None,
        Option("--stop-words", help="Stop words: JSON by language, or a folder of en.txt, ..."),
    ] = None
    bad_words: Annotated[
        Path | None,
        Option("--bad-words", help="Bad words: LDNOOBW's folder, or JSON by language."),
    ] = None
    domains: Annotated[
        Path | None,
        Option(
            "--domains", help="Categories of domains: ut1_domain_categories.json, or UT1's folder."
        ),
    ] = None

    def settings(self) -> "ListSettings":
        """As a recipe has them."""
        from lc_assets.build.settings.documents import ListSettings

        return ListSettings(
            stop_words=str(self.stop_words or ""),
            bad_words=str(self.bad_words or ""),
            domains=str(self.domains or ""),
        )


@dataclass(kw_only=True)
class Models:
    """Models and lists of addresses that some rules need."""

    language_model: Annotated[
        Path | None,
        Option(
            "--language-model",
            help="fastText model of languages; by default the packaged lid.176.ftz.",
        ),
    ] = None
    blocklist: Annotated[
        Path | None,
        Option("--blocklist", help="Domains and addresses: a text file, or UT1's folder."),
    ] = None
    perplexity_model: Annotated[
        Path | None,
        Option("--perplexity-model", help="KenLM model; by default the published perplexity."),
    ] = None
    quality_model: Annotated[
        list[str] | None,
        Option(
            "--quality-model",
            metavar="NAME=PATH",
            help="fastText model: palm, wikiref or wikipedia, and its path.",
        ),
    ] = None

    def settings(self) -> "ModelSettings":
        """As a recipe has them.

        Raises:
            BadInput: when one is not ``NAME=PATH``, names no such model, or a name is given twice.
        """
        from lc_assets.build.settings.common import ModelSettings, QualityModelSettings
        from lc_assets.formats.lists.models import require_known

        paths: dict[str, str] = {}
        for given in self.quality_model or ():
            name, _, path = given.partition("=")
            if not path or name in paths:
                raise BadInput(
                    f"--quality-model {given}: "
                    f"{'is given twice' if path else 'expected NAME=PATH, such as palm=palm.bin'}"
                )
            paths[name] = path
        require_known(paths)
        return ModelSettings(
            language=str(self.language_model or ""),
            blocklist=str(self.blocklist or ""),
            perplexity=str(self.perplexity_model or ""),
            quality=QualityModelSettings(**paths),
        )


def one_of(option: str, given: str, known: tuple[Choice, ...]) -> Choice:
    """The given value, if it is one of the known ones.

    >>> one_of("--quality", "fast", ("fast", "high"))
    'fast'

    Raises:
        BadInput: when it is none of them; lists them.
    """
    for choice in known:
        if given == choice:
            return choice
    raise BadInput(f"{option} {given}: there are {' and '.join(known)}")


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command for typer in which each field of a dataclass parameter is an option of its own.

    Commands with many options take them in groups: a dataclass with ``kw_only=True``, whose fields
    are annotated as typer's parameters are.

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
    groups: dict[str, Any] = {}
    found: list[inspect.Parameter] = []
    kinds = get_type_hints(command, include_extras=True)
    for parameter in inspect.signature(command).parameters.values():
        kind: Any = kinds[parameter.name]
        if not is_dataclass(kind):
            found.append(parameter.replace(annotation=kind, kind=parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = kind
        types = get_type_hints(kind, include_extras=True)
        of_group = inspect.signature(groups[parameter.name]).parameters.values()
        found += [one.replace(annotation=types[one.name]) for one in of_group]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    signature = inspect.Signature(found)
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in found}
    return run


def inputs_and_out(sources: list[Path], command: str) -> tuple[list[Path], Path]:
    """Split `Sources` into what is read and where to write.

    Raises:
        BadInput: when nothing is left to read.
    """
    *inputs, out = sources
    if not inputs:
        raise BadInput(f"name what to read and where to write: lc {command} IN... OUT")
    return inputs, out


def built_over_files(
    command: str,
    sources: list[Path],
    target: str,
    settings: "Mapping[str, Any]",
    *,
    workers: int | None,
    **how: Any,
) -> "tuple[dict[str, dict[str, Built]], Path]":
    """Build a stage and all that it reads over `Sources`; return what was built, and the lake.

    Args:
        command: name of the command.
        sources: what to read, and where to write.
        target: the stage.
        settings: sections of the recipe.
        workers: processes.
        how: further arguments of `lc_assets.stages.file_lakes.context_over_files`.

    Raises:
        BadInput: when nothing is left to read, or an input is unusable.
    """
    from lc_assets.execution.local import executor_of
    from lc_assets.stages.file_lakes import build_for, context_over_files

    inputs, out = inputs_and_out(sources, command)
    context = context_over_files(
        inputs, out, executor=executor_of(workers), settings=settings, **how
    )
    return build_for(context, target), out
