"""Queries to an installed megatron-core in a separate environment: that of ``LC_MEGATRON_PYTHON``,
or one created here.

An environment is made once per machine, under pytest's cache, by the lines of
``golden/megatron/README.md``.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

PEER = Path(__file__).parent / "golden" / "megatron" / "peer.py"
LINES = (["torch==2.13.0", "numpy", "packaging"], ["--no-deps", "megatron-core==0.16.1"])


class Peer:
    """A running megatron-core."""

    def __init__(self, python: str) -> None:
        self._meeting = tempfile.mkdtemp()
        command = [python, str(PEER), str(Path(self._meeting) / "meeting")]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, **question):
        """Send a request and return the response."""
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("answer "):
                return json.loads(line.removeprefix("answer "))
        pytest.fail(f"megatron-core ended with {self._process.wait()}")

    def close(self):
        """Stop the process."""
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()
        shutil.rmtree(self._meeting, ignore_errors=True)


def interpreter(config: pytest.Config) -> str:
    """A Python that has megatron-core; skips the test where there is none and none can be made."""
    if given := os.environ.get("LC_MEGATRON_PYTHON"):
        return given
    place = config.cache.mkdir("peers") / "megatron-core-0.16.1"
    python = place / "bin" / "python"
    if not (place / "ready").is_file():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        for line in LINES:
            if subprocess.run(
                [str(python), "-m", "pip", "install", "-q", *line], check=False
            ).returncode:
                pytest.skip("megatron-core cannot be installed here")
        (place / "ready").touch()
    return str(python)


def digest(array) -> str:
    """As the peer makes it."""
    found = np.ascontiguousarray(array)
    return hashlib.sha256(f"{found.dtype.str}{found.shape}".encode() + found.tobytes()).hexdigest()
