"""The commands of ``lc``: lists them and prints errors in one sentence.

The module of a command is imported when the command is used, so that ``lc --help`` is fast.
docs/command-line.md has the table of exit statuses.
"""

import gc
import importlib
import inspect
import sys
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

import lc_assets
from lc_assets.cli.main import report_end
from lc_assets.errors import LcError

COMMAND_GROUPS = {
    "Build": {
        "demo:lakes.demo": "Build the whole chain over a sample of novels",
        "sample:lakes.demo": "Write crawl snapshots of real prose in RedPajama-V2's layout",
        "init:lakes.init": "Write a folder from which Dagster and lc work on one lake",
        "build:lakes.build": "Filter, deduplicate and tokenize your own documents",
        "plan:lakes.plan": "List what is out of date, why, and what building it takes",
        "rebuild:lakes.rebuild": "Build what is out of date, in order, and nothing else",
        "withdraw:lakes.releases": "Add an entry to a withdrawal list and show what it affects",
        "release:lakes.releases": "Pin the published global order, grids, Megatron files and mixes",
        "prune:lakes.releases": "Delete versions that are neither published nor released",
    },
    "Inspect": {
        "show:inspect.show": "Show what an artefact is, whether it is intact, and its receipt",
        "trace:inspect.trace": "Follow a row or a sample to its document upstream",
        "batch:inspect.batch": "Show the first rows of a training batch",
        "explain:inspect.explain": "Print every signal and measure of one document",
        "diff:lakes.diff": "Show which documents, rows and tokens were added, removed and moved",
        "verify:inspect.show": "Read every byte",
        "audit:lakes.audit": "Compare everything that a lake serves with its documents",
    },
    "Corpus": {
        "signals:corpora.filtering": "Compute RedPajama-V2's 29 rule signals from text",
        "filter:corpora.filtering": "Keep the documents that pass a set of rules",
        "minhash:corpora.removal": "Compute the MinHash signature of every document",
        "dedup:corpora.removal": "Remove duplicates by digest, text, address and shingles",
        "decontaminate:corpora.removal": "Remove the documents that contain evaluation items",
        "tokenize:corpora.tokens": "Tokenize documents, one sequence each",
        "pack:corpora.tokens": "Pack documents into rows, and print where all tokens are",
        "buckets:corpora.tokens": "Sort documents by their length in tokens",
    },
    "LongPack": {
        "links:corpora.longpack": "Find the pages that every page links to, and with which words",
        "longpack:corpora.longpack": "Pack pages along their links",
        "referrals:corpora.longpack": "Measure long-distance referrals",
    },
}
"""By group, the name and module of each command, and the beginning of its help."""
COMMANDS = {key: words for group in COMMAND_GROUPS.values() for key, words in group.items()}

MEGATRON_COMMANDS = {
    "index:megatron": "Write the GPT index that Megatron would build",
    "blend:megatron": "Write a blend as Megatron draws it up",
    "cache:megatron_cache": "Build the cache that a launch of Megatron looks for",
    "merge:megatron": "Merge Megatron data sets, in the order given",
    "export:megatron": "Write a data set in another loader's format",
    "decompose:megatron": "Cut every document into pieces of 256, 512, ... tokens",
}


class OneValueCommand(TyperCommand):
    """A command that refuses an option of one text or path, such as ``--source``, when it is given
    twice: the first would be ignored silently. Of numbers and choices the last one counts.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments."""
        _, _, given = self.make_parser(ctx).parse_args(args=[*args])
        for one in given:
            is_single = not getattr(one, "multiple", True) and one.type.name in ("str", "path")
            if is_single and given.count(one) > 1:
                raise typer.BadParameter("given twice; it takes one value", ctx, one)
        return super().parse_args(ctx, args)


class LazyCommand(TyperCommand):
    """A command whose module is imported when it is used."""

    def __init__(self, name: str, module: str, words: str) -> None:
        super().__init__(name, short_help=words)
        self.module = f"lc_assets.cli.{module}"

    def loaded(self) -> Any:
        """The command itself, imported."""
        from lc_assets.cli.options import with_options
        from lc_assets.cli.reports import with_reports

        module = importlib.import_module(self.module)
        function = getattr(module, f"{self.name}_", None) or getattr(module, f"{self.name}")
        words, _, example = (inspect.getdoc(function) or "").partition("\n\nExample: ")
        single = typer.Typer(
            add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
        )
        words = words.partition("\n\nArgs:\n")[0]  # as options
        single.command(
            self.name, cls=OneValueCommand, help=words, epilog=f"\b\nExample: {example}"
        )(with_reports(with_options(function)))
        return typer.main.get_command(single)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Import the command, and parse its arguments."""
        command = self.loaded()
        if "duckdb" not in sys.modules:  # it reports what is not collected at the end
            gc.freeze()  # what is imported stays: collecting it at the end took 0.1 CPU-seconds
        return command.make_context(*arguments, **options)


def lazy_commands(lines: Mapping[str, str]) -> dict[str, Any]:
    """Commands by name."""
    rows = ((*key.split(":"), words) for key, words in lines.items())
    return {name: LazyCommand(name, module, words) for name, module, words in rows}


class MainGroup(TyperGroup):
    """Prints an expected error as one sentence with an exit code; a bug keeps its traceback."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands.update(lazy_commands(COMMANDS))
        self.commands["megatron"] = TyperGroup(
            name="megatron",
            commands=lazy_commands(MEGATRON_COMMANDS),
            help="Indices, blends and caches for Megatron.",
            epilog="Example: lc megatron index data/web --help",
            no_args_is_help=True,
            rich_markup_mode=None,
        )

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Write the commands under the headings of their groups."""
        for heading, group in COMMAND_GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(key.partition(":")[0], words) for key, words in group.items()])
        with formatter.section("Megatron"):
            formatter.write_dl([("megatron", self.commands["megatron"].get_short_help_str())])

    def invoke(self, ctx: Any) -> Any:
        """Run the named command."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except LcError as error:
            from lc_assets.cli.printing import print_error
            from lc_assets.cli.reports import exit_status

            print_error(str(error))
            raise typer.Exit(exit_status(error)) from error
        except (KeyboardInterrupt, OSError, RuntimeError) as error:
            raise typer.Exit(report_end(error)) from error


app = typer.Typer(
    cls=MainGroup,
    name="lc",
    help="Turn web crawls and other corpora into long-context pre-training data. "
    "`dg dev` builds the same in the Dagster UI.",
    epilog="Example: lc demo",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lc_assets {lc_assets.__version__}")
        raise typer.Exit


@app.callback()
def _of_the_program(
    _version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options without a command."""
