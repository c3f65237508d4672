"""A GPT index on disk: three ``.npy`` files beside each other, named after what they index.

===========================  =================================================================
file                         array
===========================  =================================================================
``{name}_document_index``    int32, place in the line of documents → document
``{name}_sample_index``      int32 or int64, boundary × (place, token within that document)
``{name}_shuffle_index``     uint32 or int64, order of training → sample
===========================  =================================================================

Source: Megatron-LM ``megatron/core/datasets/gpt_dataset.py``; the arrays are those that it caches,
    the names
are ours (its cache names the files by a hash of its settings).
"""

from pathlib import Path

from lc_assets.errors import CorruptFile
from lc_assets.formats.npy import read_npy, write_npy
from lc_assets.mixing.gpt_index import GptIndex

ARRAYS = ("document_index", "sample_index", "shuffle_index")


def write_gpt_index(prefix: Path, index: GptIndex) -> None:
    """Write an index as ``{prefix}_….npy``, each file whole."""
    for name in ARRAYS:
        write_npy(index_path(prefix, name), getattr(index, name))


def read_gpt_index(prefix: Path) -> GptIndex:
    """Map an index into memory.

    Raises:
        CorruptFile: when an array is missing, cut short, or the three do not belong together.
    """
    index = GptIndex(*(read_npy(index_path(prefix, name)) for name in ARRAYS))
    if index.sample_index.shape != (index.n_samples + 1, 2):
        wanted = f"{index.n_samples:,} samples need {index.n_samples + 1:,} × 2"
        raise CorruptFile(f"{prefix}: sample_index has shape {index.sample_index.shape}, {wanted}")
    return index


def index_path(prefix: Path, name: str) -> Path:
    """Where one of the arrays lies."""
    return prefix.with_name(f"{prefix.name}_{name}.npy")
