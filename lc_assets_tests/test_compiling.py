"""Compiled functions: cached where that is possible, compiled anyway where it is not."""

import numba
import numpy as np
import pytest

from lc_assets.compiling import COMPILED, compiled


def total(values):
    found = 0
    for value in values:
        found += value
    return found


@pytest.mark.skipif(not COMPILED, reason="numba is not installed")
def test_a_folder_that_may_not_be_written_to_is_no_reason_to_fail(monkeypatch):
    """Numba refuses to make a function that it could not keep."""
    honest = numba.njit

    def refusing(*args, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function 'total': no locator available for file")
        return honest(*args, **options)

    monkeypatch.setattr(numba, "njit", refusing)
    assert compiled(total)(np.arange(5)) == 10


def test_a_compiled_function_is_the_function():
    assert compiled(total)(np.arange(5)) == total(range(5))
