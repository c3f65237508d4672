"""Facts in the documents' order: those of some, of all others; and whose text is whose, by whatever
pieces.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_assets.stages.deduplication import facts_reading
from lc_assets.stages.deduplication.facts_reading import facts_of, repeated_in
from lc_assets.stages.deduplication.index import PLACE_BITS
from lc_assets.stages.deduplication.settings import FACTS

KEYS = st.none() | st.tuples(st.integers(0, 2) | st.integers(0, 2**64 - 1), st.integers(0, 1))


def written(folder, texts, n_files):
    """Tables of facts of documents with such keys of texts, dealt to some files; and their
    numbers.
    """
    numbers, paths = [], []
    for file, part in enumerate(np.array_split(np.arange(len(texts)), n_files)):
        ours = [file << PLACE_BITS | place for place in range(len(part))]
        keys = [texts[at] or (None, None) for at in part.tolist()]
        nothing = {name: pa.nulls(len(part), FACTS.field(name).type) for name in FACTS.names}
        given = {
            "number": ours,
            "id": [f"d{at}" for at in part.tolist()],
            "text_high": [k[0] for k in keys],
            "text_low": [k[1] for k in keys],
        }
        paths.append(folder / f"{file}.parquet")
        pq.write_table(pa.table(nothing | given, schema=FACTS), paths[-1])
        numbers += ours
    return paths, numbers


@given(st.lists(KEYS, max_size=30), st.integers(1, 3), st.sampled_from([1, 4, 1 << 19]))
def test_who_repeats_a_text_is_what_a_dictionary_says(tmp_path_factory, texts, n_files, at_once):
    folder = tmp_path_factory.mktemp("facts")
    paths, numbers = written(folder, texts, n_files)
    whose = {}
    for number, text in zip(numbers, texts, strict=True):
        whose.setdefault(text, []).append(number)
    wanted = {
        number: min(found)
        for text, found in whose.items()
        if text is not None and len(found) > 1
        for number in found
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(facts_reading, "TEXTS_AT_ONCE", at_once)
        found = [
            pair
            for part in repeated_in(paths, folder)
            for pair in zip(*(column.tolist() for column in part), strict=True)
        ]
    assert sorted(found) == sorted(wanted.items())


@pytest.mark.parametrize("lines_at_once", [1, 4, 1 << 16])
def test_some_and_all_others_are_everything_once(tmp_path, monkeypatch, lines_at_once):
    monkeypatch.setattr(facts_reading, "LINES_AT_ONCE", lines_at_once)
    paths, numbers = written(tmp_path, [None] * 25, 3)
    chosen = np.array(sorted({*numbers[::4], 99 << PLACE_BITS}), np.int64)
    ours, others = (
        [
            number
            for table in facts_of(paths, chosen, ["number", "id"], others=others)
            for number in table["number"].to_pylist()
        ]
        for others in (False, True)
    )
    assert ours == numbers[::4]
    assert others == [number for number in numbers if number not in ours]
