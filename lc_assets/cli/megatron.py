"""``lc megatron``: what Megatron needs beside its token files: indices, blends, and a cache built before the start."""

import typer

app = typer.Typer(
    name="megatron", help="Indices, blends and caches for Megatron. Example: lc megatron index data/web --help", no_args_is_help=True
)
