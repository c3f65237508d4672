"""What other packages add, by entry points in the groups ``lc_assets.rules``: rule sets, as TOML
text; ``lc_assets.readers``: functions that read files of documents; and ``lc_assets.exporters``:
functions that write token files. docs/plugins.md shows them.
"""

import functools
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Literal

from lc_assets.errors import BadInput, known_names

Group = Literal["rules", "readers", "exporters"]


@functools.cache
def plugins(group: Group) -> Mapping[str, EntryPoint]:
    """The installed entry points of a group, by name.

    Raises:
        BadInput: when two packages add the same name.
    """
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"lc_assets.{group}"):
        other = found.setdefault(entry.name, entry)
        if package_of(other) != package_of(entry):
            raise BadInput(
                f"{package_of(other)} and {package_of(entry)} both add {group} named {entry.name}: "
                "uninstall one"
            )
    return found


def plugin(group: Group, name: str) -> EntryPoint:
    """One entry point.

    Raises:
        BadInput: when there is none.
    """
    if name not in plugins(group):
        known = known_names(sorted(plugins(group)), name) or "none"
        raise BadInput(f"no installed package adds {group} named {name!r}; there are {known}")
    return plugins(group)[name]


def package_of(entry: EntryPoint) -> str:
    """The package that adds it, and its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
