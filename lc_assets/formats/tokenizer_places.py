"""Where a tokenizer lies that a person named: a file, a folder, a model of the Hugging Face hub.

============================  ==============================================================================
named                         means
============================  ==============================================================================
a name or a file              itself; see `lc_assets.formats.named_tokenizers`
a folder                      its ``tokenizer.json``, else its ``tokenizer.model``
``owner/model``, also with    the same two files of that model on the hub, fetched once and kept by the package
``@revision``                 ``huggingface_hub`` (an extra: ``pip install 'lc-assets[hf]'``)
============================  ==============================================================================

Here: from what was named to a path. Not here: what the file means.
"""

import re
from pathlib import Path
from typing import Final

from lc_assets.errors import BadInput, Unreachable
from lc_assets.formats.named_tokenizers import GPT2_NAMES, TIKTOKEN

FILES: Final = ("tokenizer.json", "tokenizer.model")
CONFIG: Final = "tokenizer_config.json"
_ON_THE_HUB: Final = re.compile(r"(?P<model>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w.-]+))?")


def located(named: str) -> str:
    """A setting for `lc_assets.formats.named_tokenizers`, with every file on this machine.

    >>> located("gpt2")
    'gpt2'

    Raises:
        BadInput: when a folder, or a model of the hub, holds no tokenizer; or the hub's package is
            not installed.
        Unreachable: when the hub does not answer, or does not hand the file out.
    """
    path = Path(named)
    if named in GPT2_NAMES or named in TIKTOKEN or path.is_file():
        return named
    if path.is_dir():
        found = next((path / name for name in FILES if (path / name).is_file()), None)
        if found is None:
            raise BadInput(f"{named}: holds neither {' nor '.join(FILES)}")
        return str(found)
    on_hub = _ON_THE_HUB.fullmatch(named)
    if on_hub is None or path.suffix in (".json", ".model"):
        return named
    return _fetched(on_hub["model"], on_hub["revision"])


def _fetched(model: str, revision: str | None) -> str:
    try:
        import huggingface_hub  # noqa: PLC0415 - an extra
        from huggingface_hub.errors import (  # noqa: PLC0415
            EntryNotFoundError,
            HfHubHTTPError,
            LocalEntryNotFoundError,
        )
    except ImportError as error:
        raise BadInput(
            f"{model}: no such file, and the hub needs the package huggingface_hub: pip install "
            "'lc-assets[hf]'"
        ) from error

    def fetch(name: str) -> str | None:
        try:
            return str(huggingface_hub.hf_hub_download(model, name, revision=revision))
        except LocalEntryNotFoundError as error:  # its own word for: no network, and nothing kept
            raise Unreachable(
                f"{model}: the hub does not answer, and {name} was not fetched before: {error}"
            ) from error
        except EntryNotFoundError:
            return None
        except (HfHubHTTPError, OSError, ValueError) as error:
            raise Unreachable(f"{model}: the hub does not hand out {name}: {error}") from error

    fetch(CONFIG)  # beside the file it says what ends a text
    found = next((path for path in map(fetch, FILES) if path), None)
    if found is None:
        raise BadInput(f"{model}: the hub has neither {' nor '.join(FILES)} for it")
    return found
