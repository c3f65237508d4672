"""The command line: registers the commands and prints errors in one sentence.

Neither this module nor a command's module imports heavy packages at its top, so that ``lc --help``
is fast. docs/command-line.md shows each command.

=====  =========================================================================================
exit   meaning
=====  =========================================================================================
0      done
1      an error in the data or the environment
2      invalid arguments, or not found
3      `lc plan`, `lc rebuild --dry-run`: something is out of date; `lc prune --purge`: a version
       still holds withdrawn documents
130    stopped by Ctrl-C
=====  =========================================================================================
"""

import gc
import os
from typing import Any

import typer
from typer.core import TyperGroup

from lc_assets.arrow_without_pandas import keep_pandas_out
from lc_assets.cli.corpora import (
    decontaminate,
    dedup,
    filtering,
    longpack,
    pack,
    referrals,
    signals,
    tokenize,
)
from lc_assets.cli.inspect import batch, explain, show, trace
from lc_assets.cli.lakes import build, demo, plan, rebuild, releases, withdraw
from lc_assets.cli.megatron import commands as megatron
from lc_assets.cli.megatron import merge as megatron_merge
from lc_assets.cli.printing import complain
from lc_assets.errors import BadInput, LcError, NotPublished

USER_ERRORS = (BadInput, NotPublished)
INTERRUPTED = 130


class PlainGroup(TyperGroup):
    """Prints an expected error as one sentence with an exit code; a bug keeps its traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the named command."""
        try:
            return super().invoke(ctx)
        except LcError as error:
            complain(str(error))
            raise typer.Exit(2 if isinstance(error, USER_ERRORS) else 1) from error
        except KeyboardInterrupt as stop:
            raise typer.Exit(INTERRUPTED) from stop


app = typer.Typer(
    cls=PlainGroup,
    name="lc",
    help="Look at, trace and try what lc_assets builds. Building is Dagster's: `dagster dev`. "
    "Example: lc demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

COMMANDS = (
    demo.demo,
    build.build,
    demo.sample,
    show.show,
    trace.trace,
    batch.batch,
    plan.plan,
    rebuild.rebuild,
    signals.signals,
    filtering.filter_,
    explain.explain,
    dedup.minhash,
    dedup.dedup,
    decontaminate.decontaminate,
    longpack.links,
    tokenize.tokenize,
    pack.pack,
    referrals.referrals,
    longpack.longpack,
    tokenize.buckets,
    show.verify,
    withdraw.withdraw,
    releases.release,
    releases.diff,
    releases.prune,
)

for _command in COMMANDS:
    app.command(_command.__name__.strip("_").replace("_", "-"))(_command)

megatron.app.command()(megatron_merge.merge)
megatron.app.command()(megatron_merge.export)
megatron.app.command()(megatron_merge.decompose)

for _group in (megatron.app,):
    app.add_typer(_group)


def main() -> None:
    """The program ``lc``."""
    keep_pandas_out()
    # NumPy's BLAS would start a thread per core, which takes 0.1 CPU-seconds and computes nothing.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Half a million objects come with the imports; collecting among them took 0.1 CPU-seconds.
    gc.set_threshold(100_000)
    app()
