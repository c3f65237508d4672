"""docs/slurm: the scripts run as Slurm runs them, by its variables; there is no Slurm here.

Two tasks of a job array over one lake at once publish what one process does. The job with Ray runs
on one machine, with an ``srun`` that runs its command (``pytest -m network``, with ray installed).
"""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from lc_assets_tests.builders import (
    SNAPSHOTS,
    recipe_file,
    tiny_recipe,
    tiny_upstream,
)

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "slurm"
SCRIPTS = sorted(FOLDER.glob("*.sh"))
PHASES = (("signature_index", "document_keys"), ("row_lineage", "megatron_rows"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_are_well_formed(script):
    subprocess.run(["bash", "-n", script], check=True)
    if checker := shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.defpath}"):
        subprocess.run([checker, script], check=True)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A folder with programs, a source, a recipe and a list of snapshots; runs what a job runs."""
    folder = tmp_path_factory.mktemp("slurm")
    programs = {
        "lc": f"exec {sys.executable} -c 'from lc_assets.cli.main import main; main()' \"$@\"",
        "ray": f'exec {sys.executable} -m ray.scripts.scripts "$@"',
        "srun": 'while [[ $1 == --* ]]; do shift; done; exec "$@"',
        "scontrol": "echo 127.0.0.1",
    }
    (folder / "bin").mkdir()
    for name, body in programs.items():
        path = folder / "bin" / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)
    tiny_upstream(folder / "upstream")
    recipe_file(folder / "recipe.toml", tiny_recipe(folder))
    (folder / "snapshots.txt").write_text("".join(f"{name}\n" for name in SNAPSHOTS))

    def run(lake, *words, **variables):
        environment = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "LC_ROOT": str(folder / lake),
            "LC_UPSTREAM": str(folder / "upstream"),
            "LC_RECIPE": str(folder / "recipe.toml"),
        }
        for name in ("NUMBA_CACHE_DIR", "DAGSTER_DISABLE_TELEMETRY"):
            environment |= {name: os.environ[name]} if name in os.environ else {}
        return subprocess.Popen(
            [str(word) for word in words],
            cwd=folder,
            env=environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    run.folder = folder
    return run


def ended(running):
    said = running.communicate()[0]
    assert running.returncode == 0, said
    return said


def published(lake):
    """What every pointer of a lake names, by partition."""
    return {
        path.relative_to(lake).as_posix(): path.read_bytes()
        for path in lake.glob("*/*/current.json")
    }


@pytest.fixture(scope="module")
def by_one(job):
    """What one process publishes of both snapshots."""
    each = [word for name in SNAPSHOTS for word in ("--snapshot", name)]
    ended(job("one", "lc", "rebuild", *each, LC_WORKERS="1"))
    return published(job.folder / "one")


def test_tasks_of_an_array_publish_what_one_process_does(job, by_one):
    for phase in PHASES:
        tasks = [
            job(
                "array",
                FOLDER / "snapshots.sh",
                "snapshots.txt",
                *phase,
                SLURM_ARRAY_TASK_ID=str(number),
                SLURM_CPUS_PER_TASK="1",
            )
            for number in (1, 2)
        ]
        said = [ended(task) for task in tasks]
        assert all("longcrawl" not in words for words in said)
    ended(job("array", "lc", "rebuild", LC_WORKERS="1"))
    assert published(job.folder / "array") == by_one


def test_a_task_says_what_it_lacks(job):
    alone = job("none", FOLDER / "snapshots.sh", "snapshots.txt")
    assert "submit it with --array" in alone.communicate()[0]
    beyond = job("none", FOLDER / "snapshots.sh", "snapshots.txt", SLURM_ARRAY_TASK_ID="9")
    assert "the file has fewer lines" in beyond.communicate()[0]
    nowhere = job("none", FOLDER / "snapshots.sh", "snapshots.txt", LC_ROOT="")
    assert "the lake: a folder" in nowhere.communicate()[0]
    assert [one.returncode for one in (alone, beyond, nowhere)] == [1, 1, 1]


@pytest.mark.network
@pytest.mark.timeout(600)
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
def test_a_job_with_ray_publishes_what_one_process_does(job, by_one):
    each = [word for name in SNAPSHOTS for word in ("--snapshot", name)]
    said = ended(
        job(
            "ray",
            FOLDER / "ray.sh",
            *each,
            SLURM_JOB_ID="4711",
            SLURM_JOB_NODELIST="here",
            SLURM_JOB_NUM_NODES="1",
            SLURM_CPUS_PER_TASK="2",
        )
    )
    assert "partitions built" in said
    assert published(job.folder / "ray") == by_one
