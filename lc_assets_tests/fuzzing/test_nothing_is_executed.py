"""No file that is read can run anything: the package has no code for it, and pickles that are fed
to readers stay shut.
"""

import ast
import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from lc_assets.errors import LcError
from lc_assets.formats.lists.models import open_line_model
from lc_assets.formats.tokenizers.files import open_tokenizer_file
from lc_assets_tests.fuzzing.readers import READERS
from lc_assets_tests.fuzzing.table import files_of

ROOT = Path(__file__).parents[2] / "lc_assets"

MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "cloudpickle",
    "dill",
    "joblib",
    "marshal",
    "shelve",
    "jsonpickle",
    "yaml",
    "code",
    "codeop",
    "runpy",
}
"""What runs, or makes, code or objects of what it reads."""

CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "system",
    "popen",
    "execv",
    "execve",
    "execvp",
    "spawnl",
    "spawnv",
    "getoutput",
}
EXEMPT = {("execution/executor.py", "ForkingPickler")}
"""Transport between our own processes: how large an answer would be."""


def trapdoors(tree: ast.AST) -> list[str]:
    """What in a module could run what it reads."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module] if node.module.split(".")[0] in MODULES else []
            found += [alias.name for alias in node.names if "ickle" in alias.name]
        elif isinstance(node, ast.Call):
            found += _calls(node)
    return found


def _calls(node: ast.Call) -> list[str]:
    named = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    owner = (
        node.func.value.id
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
        else ""
    )
    found = [named] if named in CALLS and not (named == "compile" and owner) else []
    for keyword in node.keywords:
        is_false = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        if keyword.arg in {"allow_pickle", "shell", "trust_remote_code"} and not is_false:
            found.append(f"{keyword.arg}=")
    is_numpy_load = named == "load" and owner in {"np", "numpy", "torch"}
    return found + ([f"{owner}.load"] if is_numpy_load else [])


def test_no_module_has_a_trapdoor():
    """No pickle, marshal, YAML, eval, exec, shell; arrays are read by `read_npy`, which takes no
    objects.
    """
    found = {
        (source.relative_to(ROOT).as_posix(), one)
        for source in ROOT.rglob("*.py")
        for one in trapdoors(ast.parse(source.read_text("utf-8")))
    }
    assert found == EXEMPT


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "import yaml",
        "eval('1')",
        "import os; os.system('x')",
        "import subprocess; subprocess.run('x', shell=True)",
        "import numpy as np; np.load('x', allow_pickle=True)",
        "import numpy as np; np.load('x')",
        "import torch; torch.load('x')",
        "import marshal",
        "__import__('x')",
        "compile('x', 'y', 'exec')",
    ],
)
def test_trapdoors_are_found(code):
    assert trapdoors(ast.parse(code))


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def pickles(mark: Path) -> dict[str, bytes]:
    """The ways in which objects travel: bare, in ``.npy``, in ``.npz``, and as PyTorch saves
    them.
    """
    bare = pickle.dumps(Bomb(mark))
    npy, npz = io.BytesIO(), io.BytesIO()
    np.save(npy, np.array([Bomb(mark)], dtype=object), allow_pickle=True)
    np.savez(npz, keys=np.array([Bomb(mark)], dtype=object))
    torch = io.BytesIO()
    with zipfile.ZipFile(torch, "w") as file:
        file.writestr("archive/data.pkl", bare)
        file.writestr("archive/version", "3")
    return {
        "bare": bare,
        ".npy": npy.getvalue(),
        ".npz": npz.getvalue(),
        "PyTorch": torch.getvalue(),
    }


def test_the_bombs_work(tmp_path):
    """So that silence means something."""
    for name, content in pickles(tmp_path / "mark").items():
        if name in {"bare", ".npy"}:
            (tmp_path / "mark").unlink(missing_ok=True)
            pickle.loads(content) if name == "bare" else np.load(  # noqa: S301
                io.BytesIO(content), allow_pickle=True
            )
            assert (tmp_path / "mark").exists()


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_pickle_stays_shut(reader, tmp_path):
    """In the place of each file of each reader."""
    (tmp_path / "sound").mkdir()
    reader.make(tmp_path / "sound")
    sound, mark = files_of(tmp_path / "sound"), tmp_path / "mark"
    for content in pickles(mark).values():
        for name in sound:
            place = tmp_path / "sound" / name
            place.write_bytes(content)
            try:
                reader.read(tmp_path / "sound")
            except LcError:
                pass
            finally:
                place.write_bytes(sound[name])
            assert not mark.exists()


@pytest.mark.parametrize("open_model", [open_line_model, open_tokenizer_file])
def test_a_pickle_is_no_model(open_model, tmp_path):
    """Models by path are told by their own formats."""
    for content in pickles(tmp_path / "mark").values():
        for name in ("x.ftz", "tokenizer.json", "x.model"):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(LcError):
                open_model(tmp_path / name)
    assert not (tmp_path / "mark").exists()
