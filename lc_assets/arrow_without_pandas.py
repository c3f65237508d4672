"""Arrow without pandas, for processes of our own: commands and workers.

Arrow imports pandas, where it is installed, at its first conversion of Python values; that takes
0.3 CPU-seconds and 40 MB, and nothing here uses it. Dagster's integration with Google Cloud and
pandera install pandas and still get it when they import it.
"""

import sys
from importlib.abc import MetaPathFinder
from types import SimpleNamespace
from typing import Any

_USERS = {"dagster", "pandera"}


class _NoPandas(MetaPathFinder):
    """Refuses to import pandas unless a library that needs it is loaded."""

    def find_spec(self, name: str, *_: object) -> None:
        """Never finds anything; raises for pandas."""
        if name == "pandas" and not _USERS & sys.modules.keys():
            raise ModuleNotFoundError("pandas is not imported for Arrow alone", name=name)


def keep_pandas_out() -> None:
    """Let Arrow work without pandas from now on in this process, which must not be a user's."""
    if not any(isinstance(finder, _NoPandas) for finder in sys.meta_path):
        sys.meta_path.insert(0, _NoPandas())
    # With it `pyarrow.compute` writes docstrings, for half of the time of its import.
    docscrape: Any = SimpleNamespace(NumpyDocString=lambda _words: {"Parameters": []})
    sys.modules.setdefault("pyarrow.vendored.docscrape", docscrape)
