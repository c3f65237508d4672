"""A workplace: the folders and settings of `lc demo`, so that everything it makes lies in one place
and can be removed.
"""

import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from lc_assets.vocabulary import ROW_TOKENS

HELDOUT_FRACTION = 0.1
"""One row in ten, not LongCrawl64's one in 128: the sample has too few rows for that."""

MIN_WORDS = 16_000
SEQUENCE_LENGTH = 8192

SETTINGS = {
    "dagster.yaml": """\
# The instance of `lc demo`: Dagster's history of it. What is built, and from what, stands in the lake's receipts.
telemetry:
  enabled: false
nux:
  enabled: false
""",
    "in_process.yaml": """\
# The same instance for the runs of `lc demo` itself, without capture of what steps print: the processes that
# Dagster starts for that, two per step, would answer Ctrl-C with tracebacks.
telemetry:
  enabled: false
compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
""",
}
"""Files of Dagster's home."""

QUIET_YAML = "in_process.yaml"


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where the demo works; all of it below ``root``, but for a lake that lies elsewhere."""

    root: Path
    lake_elsewhere: str | None = None

    @property
    def sample(self) -> Path:
        """The upstream."""
        return self.root / "sample"

    @property
    def lake(self) -> str:
        """What is published: a folder, or a bucket's URL."""
        return self.lake_elsewhere or str((self.root / "lake").absolute())

    @property
    def dagster_home(self) -> Path:
        """Dagster's history."""
        return self.root / "dagster_home"

    @property
    def recipe(self) -> Path:
        """The settings."""
        return self.root / "recipe.toml"

    def set_up(self, recipe: str) -> None:
        """Make the folders, the instance's settings and the recipe; files of the same content stay
        untouched.
        """
        self.dagster_home.mkdir(parents=True, exist_ok=True)
        wanted = {self.dagster_home / name: content for name, content in SETTINGS.items()} | {
            self.recipe: recipe
        }
        for path, content in wanted.items():
            if not path.is_file() or path.read_text("utf-8") != content:
                path.write_text(content, "utf-8")

    @property
    def ui_command(self) -> str:
        """The line that opens Dagster's UI on this workplace."""
        variables = {
            "DAGSTER_HOME": self.dagster_home,
            "LC_UPSTREAM": self.sample,
            "LC_CRAWL": self.sample / "crawl",
            "LC_RECIPE": self.recipe,
        }
        places = {name: str(path.absolute()) for name, path in variables.items()} | {
            "LC_ROOT": self.lake
        }
        settings = " ".join(f"{name}={shlex.quote(place)}" for name, place in places.items())
        dagster = (
            "dagster"
            if shutil.which("dagster")
            else shlex.quote(str(Path(sys.executable).with_name("dagster")))
        )
        return f"{settings} {dagster} dev -m lc_assets.definitions"


def recipe_text(row_tokens: int) -> str:
    """The demo's recipe: rows of ``row_tokens``, and what must be smaller when rows are.

    >>> "min_words = 256" in recipe_text(1024)
    True
    """
    min_words = MIN_WORDS if row_tokens >= ROW_TOKENS else min(MIN_WORDS, row_tokens // 4)
    return f"""\
# Settings of `lc demo` that differ from the default recipe, or might.
[filtered_documents]
min_words = {min_words}

[token_documents]
min_tokens = {row_tokens}

[token_grid]
row_tokens = {row_tokens}
heldout_fraction = {HELDOUT_FRACTION}  # the default is 1/128; a sample has few rows

[megatron_rows]
sequence_length = {min(SEQUENCE_LENGTH, row_tokens)}
"""
