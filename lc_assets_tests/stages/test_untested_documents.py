"""Documents that no rule tests are written by columns: the same files as one by one."""

import io
import json
from unittest import mock

import pyarrow.parquet as pq
from hypothesis import example, given, settings, strategies as st

from lc_assets.api import files
from lc_assets.builds.settings.documents import FilteringSettings, RemovalSettings
from lc_assets.stages.documents.shard_inputs import ShardTask
from lc_assets.vocabulary import NO_RULES

VALUES = st.sampled_from(["", "a", "é", "https://A.org/x", "line-3", "7.5", 7, 7.5, None, ["x"]])
NAMES = st.sampled_from(
    ["id", "url", "language", "perplexity", "date", "title", "digest", "bucket", "source_domain"]
)
LINES = st.dictionaries(NAMES, VALUES, max_size=5).map(
    lambda record: json.dumps(record | {"text": "Some wörds."}).encode()
) | st.sampled_from([b"", b"no record", b'{"id": "a"}', b'{"id": "b", "raw_content": "\xff"}'])


def written(folder, name, lines, prefer):
    """The files that a file of lines gives, and its counts."""
    source, out = folder / "x.jsonl", folder / name
    source.write_bytes(b"\n".join(lines))
    sections = {
        "filtered_documents": FilteringSettings(rules=NO_RULES, min_words=0),
        "removed_documents": RemovalSettings(exact=("text",), prefer=prefer),
    }
    built = files.build_over(source, out, "filtered_documents", sections, workers=1, language="en")
    (version,) = built.versions
    contents = {path.name: path.read_bytes() for path in version.glob("*.parquet")}
    return contents, built.counts


@given(st.lists(LINES, max_size=6), st.sampled_from([("best_perplexity",), ("longest",)]))
@example([b'{"text": "One.", "id": "a"}', b"none", b'{"text": "Two.", "id": "a"}'], ("longest",))
@settings(max_examples=15)
def test_the_same_is_written_by_columns(tmp_path_factory, lines, prefer):
    """Also of lines that cannot be read, and with the same counts."""
    folder, lines = tmp_path_factory.mktemp("untested"), [*lines, b'{"text": "Last."}']
    found = written(folder, "by-columns", lines, prefer)
    with mock.patch.object(ShardTask, "keeps_all", False):
        assert written(folder, "one-by-one", lines, prefer) == found


def test_documents_behind_one_that_cannot_be_read_keep_their_ids(tmp_path):
    lines = [
        b'{"text": "One.", "id": "a"}',
        b"none",
        b'{"text": "Two.", "id": "b"}',
        b'{"text": "3"}',
    ]
    contents, _ = written(tmp_path, "out", lines, ("longest",))
    tables = {name.split(".")[1]: pq.read_table(io.BytesIO(it)) for name, it in contents.items()}
    assert tables["documents"]["id"].to_pylist() == ["x/x/a", "x/x/b", "x/x/line-3"]
    assert tables["dropped"]["id"].to_pylist() == ["x/x/line-1"]
