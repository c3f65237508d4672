"""Megatron's ``tools/preprocess_data.py``, row by row: JSON, tiktoken, lists of ints, an index of
Python numbers.

Source: Megatron-LM ``tools/preprocess_data.py`` and ``IndexedDatasetBuilder`` (core 0.16.1),
    without torch. An empty document
keeps its boundary there; ours is dropped, so that no test may hold one.
"""

import json
import struct

import numpy as np


def preprocess(
    source, prefix, encode, *, key="text", eod=None, dtype=np.uint16, split=lambda text: [text]
):
    """Write ``{prefix}.bin`` and ``.idx`` of a file of JSON lines, a sequence for each part that
    ``split`` makes of a text.
    """
    lengths, ends = [], [0]
    with (
        source.open(encoding="utf-8") as lines,
        prefix.with_name(f"{prefix.name}.bin").open("wb") as out,
    ):
        for line in lines:
            ids, own = [], []
            for part in split(json.loads(line)[key]):
                if found := encode(part):
                    ids.extend(found)
                    own.append(len(found))
            if ids and eod is not None:
                ids.append(eod)
                own[-1] += 1
            tokens = np.array(ids, dtype=dtype)
            out.write(tokens.tobytes(order="C"))
            lengths.extend(own)
            ends.append(len(lengths))
    with prefix.with_name(f"{prefix.name}.idx").open("wb") as out:
        write_index(out, lengths, dtype, ends)


def write_index(out, lengths, dtype, ends=None):
    """As ``_IndexWriter.write``, the loop over Python numbers included."""
    itemsize, ends = np.dtype(dtype).itemsize, ends or list(range(len(lengths) + 1))
    out.write(
        b"MMIDIDX\x00\x00"
        + struct.pack("<QBQQ", 1, {2: 8, 4: 4}[itemsize], len(lengths), len(ends))
    )
    pointers, at = [], 0
    for length in lengths:
        pointers.append(at)
        at += length * itemsize
    out.write(np.array(lengths, dtype=np.int32).tobytes(order="C"))
    out.write(np.array(pointers, dtype=np.int64).tobytes(order="C"))
    out.write(np.array(ends, dtype=np.int64).tobytes(order="C"))
