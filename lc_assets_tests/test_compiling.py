"""Compiled functions: cached where that is possible, and never from another source."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from lc_assets.compiling import borrowing, compiled, fingerprint, interpreted

CALLEE = """
from lc_assets.compiling import borrowing, compiled, inlined
STEP = {step}
@{how}
def stepped(value):
    return value + STEP
"""
CALLER = """
from callee.kernels import stepped
from lc_assets.compiling import compiled
@compiled
def twice(value):
    return stepped(stepped(value))
"""
RUN = """
from caller.kernels import twice
result = twice(0)
print(result, sum(twice.dispatcher.stats.cache_hits.values()))
"""


@compiled
def same(value):
    return value


@compiled
def twice(value):
    return same(same(value))


def total(values):
    found = 0
    for value in values:
        found += value
    return found


def test_a_folder_that_may_not_be_written_to_is_no_reason_to_fail(monkeypatch):
    """Numba refuses to make a function that it could not keep."""
    original = numba.njit

    def refusing(*args, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function 'total': no locator available for file")
        return original(*args, **options)

    monkeypatch.setattr(numba, "njit", refusing)
    assert compiled(total)(np.arange(5)) == 10


def test_a_compiled_function_is_the_function():
    assert compiled(total)(np.arange(5)) == total(range(5))


@borrowing
def first_half(values):
    return values[: len(values) // 2].sum()


def test_a_kernel_that_borrows_arrays_is_the_function():
    assert first_half(np.arange(5)) == first_half.py_func(np.arange(5)) == 1


def test_nothing_is_interpreted_where_something_was_compiled():
    """A hash of machine code is a Python integer, which machine code does not take."""
    large = np.uint64(1 << 63)
    assert (same(1), same(large)) == (1, large)
    with interpreted(True):
        assert twice(large) == large


def test_importing_kernels_does_not_import_numba():
    """A command that computes nothing starts without waiting for the compiler."""
    code = """
import importlib, pkgutil, sys, lc_assets.text
for module in pkgutil.walk_packages(lc_assets.text.__path__, "lc_assets.text."):
    importlib.import_module(module.name)
sys.exit("numba" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture
def run(tmp_path):
    """Run a kernel that calls another one, in another folder, with a constant; the result, and
    whether machine code was loaded.
    """
    for name, text in (("caller", CALLER), ("callee", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / "kernels.py").write_text(text, "utf-8")

    def run(step, how="compiled", before=""):
        source = CALLEE.format(step=step, how=how)
        (tmp_path / "callee" / "kernels.py").write_text(source, "utf-8")
        code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {before}{RUN}"
        command = [sys.executable, "-B", "-c", code]
        ended = subprocess.run(command, check=True, capture_output=True, text=True)
        return ended.stdout.split()

    return run


def test_a_cached_result_is_used_only_for_the_same_kernels_in_all_folders(run):
    """An edit to a constant or a kernel in another folder is compiled, an unchanged one is not."""
    assert run(1) == ["2", "0"]
    assert run(1) == ["2", "1"]
    assert run(3) == ["6", "0"]
    assert run(5, "inlined") == ["10", "0"]
    assert run(7, "inlined") == ["14", "0"]
    assert run(1, "borrowing") == ["2", "0"]


@pytest.mark.parametrize("most_bytes", [0, 1000])
def test_without_room_for_machine_code_it_is_compiled(run, most_bytes):
    """With room for nothing, or for the index alone; older machine code is not taken for it."""
    few = f"import resource as r; r.setrlimit(r.RLIMIT_FSIZE, ({most_bytes}, {most_bytes}))"
    assert run(1) == ["2", "0"]
    assert run(3, before=few) == ["6", "0"]
    assert run(3) == ["6", "0"]


def test_a_fingerprint_holds_for_another_process():
    """It depends on nothing but code and constants."""
    code = "from lc_assets.text.signals.scores import score_words_of_each as kernel; "
    code += "from lc_assets.compiling import fingerprint; print(fingerprint(kernel.py_func))"
    runs = {
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout
        for _ in range(2)
    }
    assert len(runs) == 1
    assert fingerprint(total) == fingerprint(total)


def test_a_cached_kernel_loads_without_what_numba_can_compile(tmp_path):
    """It would declare that first, 0.15 s; one that cannot be cached is compiled after it."""
    code = """
import sys
import numpy as np
from lc_assets.compiling import compiled
from lc_assets.text.hashing import mix64_kernel
mix64_kernel(np.uint64(3))
print("numba.np.arraymath" in sys.modules, compiled(lambda values: values.sum())(np.arange(5)))
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", code]
    runs = [
        subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        for _ in range(2)
    ]
    assert runs == ["True 10\n", "False 10\n"]


def test_one_process_compiles_and_the_others_load(tmp_path):
    """They begin together, and a compilation takes far longer than that."""
    code = """
import numpy as np
from lc_assets.text.hashing import mix64_kernel
made = mix64_kernel.compile()
input("ready\\n")
mix64_kernel(np.uint64(3))
print(sum(made.stats.cache_hits.values()))
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, **pipes) for _ in range(3)
    ]
    assert [run.stdout.readline() for run in runs] == ["ready\n"] * 3
    for run in runs:
        run.stdin.write("\n")
        run.stdin.flush()
    assert sorted(run.communicate()[0] for run in runs) == ["0\n", "1\n", "1\n"]


def test_a_kernel_compiles_without_other_packages_extensions():
    """Numba would import awkward, and with it 0.3 s of code that no kernel uses."""
    code = (
        "import sys, numpy as np; from lc_assets.text.hashing import mix64_kernel; "
        "mix64_kernel(np.uint64(3)); sys.exit('awkward' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
