"""Software-defined assets that turn web crawls into long-context pre-training data.

``import lc_assets as lc`` gives the names of `__all__`; they are stable: a minor release does not
change what they mean. Everything else may change. Each is imported when it is first used.
"""

from typing import Any

__version__ = "0.2.0"

_PUBLIC = {
    "DataSet": "loaders.data_sets",
    "open": "loaders.data_sets",
    "Output": "api.files",
    "filter": "api.corpora",
    "deduplicate": "api.corpora",
    "decontaminate": "api.corpora",
    "tokenize": "api.corpora",
    "tokenize_each": "api.corpora",
    "pack": "api.corpora",
    "build": "api.lakes",
    "plan": "api.lakes",
}
"""Name → the module that defines it."""
__all__ = [
    "DataSet",
    "Output",
    "__version__",
    "decontaminate",
    "deduplicate",
    "filter",
    "open",
    "pack",
    "plan",
    "tokenize",
    "tokenize_each",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
