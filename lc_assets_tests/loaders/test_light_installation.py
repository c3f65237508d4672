"""A training node installs the package without extras: numpy and five small packages."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from lc_assets.formats.arrays.grid import GridLayout, create_grid, plan_bands, write_band
from lc_assets.formats.megatron.indexed import MegatronWriter

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LIGHT = {re.match(r"[\w.-]+", line)[0] for line in PROJECT["dependencies"]}


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    """Runs a program where only the dependencies without extras are installed."""
    packages = tmp_path_factory.mktemp("light")
    (packages / "lc_assets").symlink_to(ROOT / "lc_assets")
    for name in {*LIGHT, "typing_extensions"}:  # numcodecs requires the latter
        distribution = metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files if ".." not in file.parts}:
            (packages / top).symlink_to(distribution.locate_file(top))

    def run(code, *arguments):
        return subprocess.run(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                f"import sys; sys.path.append({str(packages)!r})\n{code}",
            ]
            + [str(argument) for argument in arguments],
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_the_dependencies_without_extras_are_few(light):
    assert {"google-crc32c", "msgspec", "numcodecs", "numpy", "zlib-ng", "zstandard"} == LIGHT
    assert light("import pyarrow").returncode == 1


def test_rows_are_read(light, tmp_path):
    layout = GridLayout(n_rows=8, row_tokens=64, vocab_size=1000)
    create_grid(tmp_path / "train.zarr", layout)
    (block,) = plan_bands(layout)
    write_band(tmp_path / "train.zarr", block, np.arange(512).reshape(8, 64))
    code = (
        "from lc_assets.loaders.grid import GridLoader\n"
        "from lc_assets.loaders.rows import open_rows\n"
        "loader = GridLoader(open_rows(sys.argv[1]), batch_rows=2, context_tokens=16, first_token=0)\n"
        "print(loader[0].targets.tolist())"
    )
    said = light(code, tmp_path)
    assert said.stdout == f"{[list(range(16)), list(range(64, 80))]}\n", said.stderr


def test_windows_of_token_files_are_read(light, tmp_path):
    with MegatronWriter.publishing(tmp_path / "web", np.dtype(np.uint16)) as written:
        written.add(np.arange(33, dtype=np.uint16))
    code = (
        "from pathlib import Path\n"
        "from lc_assets.loaders.windows import WindowLoader\n"
        "loader = WindowLoader(\n"
        "    Path(sys.argv[1]), batch_windows=2, context_tokens=16, shuffled=False\n"
        ")\n"
        "print(loader[0].targets.tolist())"
    )
    said = light(code, tmp_path / "web")
    assert said.stdout == f"{[list(range(1, 17)), list(range(17, 33))]}\n", said.stderr


@pytest.mark.parametrize("module", ["packed", "provenance", "sliding", "torch"])
def test_every_loader_is_imported(light, module):
    said = light(f"import lc_assets.loaders.{module}")
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "from lc_assets.loaders.rows import open_rows; open_rows('https://127.0.0.1/rows')",
            "rows behind a URL need fsspec and tenacity: pip install 'lc-assets[http]'",
        ),
        (
            "from lc_assets.cli.main import main; main()",
            "only the loaders are installed; commands need pip install 'lc-assets[chain]'",
        ),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(light, code, message):
    said = light(code)
    assert said.returncode == 1
    assert said.stderr.splitlines()[-1].endswith(message)
