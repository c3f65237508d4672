"""The data of a launch of Megatron, written as it reads them.

Source: Megatron-LM ``megatron/training/utils.py`` (``get_blend_and_blend_per_split``).
"""

import json
from pathlib import Path

from lc_assets.errors import BadInput
from lc_assets.mixing.cache_names import SPLITS, Launch, Sources
from lc_assets.publishing import publish_bytes, writing_in


def write_data_arguments(launch: Launch, folder: Path) -> str:
    """Write the data of a launch into a file; return the arguments that name it.

    Raises:
        BadInput: if a path has a space, at which Megatron would cut it.
    """
    each = dict(zip(SPLITS, map(words_of, launch.sources), strict=True))
    if launch.split is None:
        path, option = folder / "per_split_data_args.json", "--per-split-data-args-path"
        content = json.dumps(each, indent=1)
    else:
        path, option = folder / "data_args.txt", "--data-args-path"
        content = " ".join(each[SPLITS[0]] or [])
    with writing_in(folder):
        publish_bytes(path, f"{content}\n".encode())
    return f"{option} {path}"


def words_of(sources: Sources | None) -> list[str] | None:
    """Weights and prefixes as on Megatron's command line; None without sources.

    Raises:
        BadInput: if a path has a space.
    """
    if sources is None:
        return None
    if spaced := [prefix for prefix in sources.prefixes if len(prefix.split()) != 1]:
        raise BadInput(
            f"{spaced[0]!r} has a space, at which Megatron would cut it: choose another folder"
        )
    if sources.weights is None:
        return list(sources.prefixes)
    pairs = zip(map(repr, sources.weights), sources.prefixes, strict=True)
    return [word for pair in pairs for word in pair]
