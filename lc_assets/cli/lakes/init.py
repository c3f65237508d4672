"""``lc init``: write a folder from which Dagster, ``dg`` and ``lc`` work on one lake."""

import shlex
from importlib import resources
from pathlib import Path
from typing import Annotated

from typer import Argument

from lc_assets.builds.new_recipes import ROW_TOKENS, absolute, recipe_text, source_at
from lc_assets.cli import options
from lc_assets.cli.printing import say
from lc_assets.errors import BadInput
from lc_assets.publishing import publish_bytes, writing_in
from lc_assets.sources.settings import SourceSettings
from lc_assets.vocabulary import REDPAJAMA_V2

RECIPE = """\
# Settings that differ from the defaults, in sections named like the stages (docs/settings.md):
# [filtered_documents]
# min_words = 16000
"""

DG = """\
directory_type = "project"

[project]
root_module = "project"
code_location_name = "lc_assets"
"""

WORKSPACE = """\
load_from:
  - python_file:
      relative_path: project/definitions.py
      location_name: lc_assets
"""

DEFINITIONS = '''\
"""All assets of lc_assets; add your own by `dagster.Definitions.merge`."""

from lc_assets.definitions import defs

__all__ = ["defs"]
'''


def init(
    folder: Annotated[Path, Argument()],
    source: str = "",
    lake: str = "",
    upstream: options.Upstream = REDPAJAMA_V2,
) -> None:
    """Write a folder from which Dagster and lc work on one lake: workspace.yaml, dagster.yaml,
    dg.toml, recipe.toml, and .env with the paths.

    The recipe is for RedPajama-V2, or for the documents of --source. Files with other content are
    not overwritten.

    Args:
        folder: a new folder, or one written by this command.
        source: your own documents instead of RedPajama-V2, as for lc build.
        lake: the lake; by default the folder `lake` in it.

    Example: lc init project --source corpus
    """
    root = folder.absolute()
    places = {
        "DAGSTER_HOME": str(root),
        "LC_ROOT": absolute(lake) if lake else str(root / "lake"),
        "LC_RECIPE": str(root / "recipe.toml"),
        "LC_UPSTREAM": _existing(source or upstream),
    }
    own = source_at(source, SourceSettings(path=".")) if source else None
    files = {
        "dagster.yaml": instance_settings(),
        "workspace.yaml": WORKSPACE,
        "dg.toml": DG,
        "recipe.toml": recipe_text(own, row_tokens=ROW_TOKENS) if own else RECIPE,
        "project/__init__.py": "",
        "project/definitions.py": DEFINITIONS,
        ".env": "".join(f"{name}={shlex.quote(value)}\n" for name, value in places.items()),
    }
    for name, content in files.items():
        path = root / name
        if path.exists() and path.read_text("utf-8") != content:
            raise BadInput(f"{path} has other content: choose another folder, or remove it")
    with writing_in(root), writing_in(root / "project"):  # not below: the lake may lie there
        for name, content in files.items():
            publish_bytes(root / name, content.encode())
    say(f"{len(files):,} files in {root}. Next:")
    say(f"cd {shlex.quote(str(root))} && set -a && . ./.env && set +a")
    say("lc rebuild        # builds what is missing; or, in the UI: dg dev, or dagster dev")


def _existing(place: str) -> str:
    """The absolute path of what exists, or a URL.

    Raises:
        BadInput: when nothing is at a path.
    """
    found = absolute(place)
    if "://" not in found and not Path(found).exists():
        raise BadInput(f"{found}: no such folder or file")
    return found


def instance_settings() -> str:
    """The content of dagster.yaml: limits, pools, monitoring and retries of runs."""
    return resources.files("lc_assets").joinpath("presets/dagster.yaml").read_text("utf-8")
