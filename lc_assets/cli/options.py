"""Options that several commands share, declared once: their names, their variables, their help."""

from pathlib import Path
from typing import Annotated

import typer

Lake = Annotated[Path, typer.Option("--lake", envvar="LC_ROOT", help="The lake: the folder everything is published under.")]
Upstream = Annotated[str, typer.Option("--upstream", envvar="LC_UPSTREAM", help="RedPajama-V2, or its shape: a folder or a URL.")]
Recipe = Annotated[Path | None, typer.Option("--recipe", envvar="LC_RECIPE", help="TOML file of what differs from the default recipe.")]
Snapshots = Annotated[list[str] | None, typer.Option("--snapshot", help="A snapshot; may be given several times.")]
Workers = Annotated[int | None, typer.Option("--workers", envvar="LC_WORKERS", min=1, help="Processes; by default one per processor.")]
Source = Annotated[
    Path | None, typer.Option("--from", help="Folder of .txt, .md or .rst files; by default the documentation of installed packages.")
]
Split = Annotated[str, typer.Option("--split", help="train or heldout.")]

REDPAJAMA_V2 = "https://data.together.xyz/redpajama-data-v2/v1.0.0"
"""Where RedPajama-V2 is published."""
