"""Names and paths out of data never lead out of the folder that they belong to."""

import json

import pytest

from lc_assets.builds.recipe_files import parse_recipe
from lc_assets.builds.sharding import read_records
from lc_assets.errors import BadInput, CorruptFile, NotPublished
from lc_assets.formats.archives.captures import capture_of
from lc_assets.formats.archives.paths import is_inside, listed_paths
from lc_assets.formats.arrays.order import OrderSource
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.gram_index_files import open_index, write_index
from lc_assets.lake.digests import FileFact
from lc_assets.lake.lake import Lake
from lc_assets.lake.partition import CURRENT
from lc_assets.lake.receipts import RECEIPT, Receipt, decode_json
from lc_assets.lake.releases import note_of, read_release
from lc_assets.text.contamination.grams import GramSettings, Item, build_index
from lc_assets.vocabulary import Shard, parse_document_id, parse_snapshot
from lc_assets_tests.fuzzing.array_readers import make_lake

OUTSIDE = (
    "..",
    "../x",
    "../../x",
    "/etc/passwd",
    "a/../../x",
    "a//b",
    "./x",
    "a/.",
    "",
    "x\0y",
    "a/..",
)
"""Paths that lead, or could lead, elsewhere."""

NO_FOLDERS = ("..", ".", "", "a/b", "../x", "/x", "a\\b", "x\0y")


@pytest.mark.parametrize("name", OUTSIDE)
def test_paths_of_data_are_refused(name):
    """By the doors through which they come: archives' names, files of receipts, snapshots, shards,
    mixes, releases, orders.
    """
    assert not is_inside(name)
    said = {
        "url": "http://a/",
        "status": "200",
        "mime": "text/html",
        "length": "5",
        "offset": "7",
        "filename": name,
    }
    assert capture_of(b"a)/ 20240518015810 " + json.dumps(said).encode()) == "path outside"
    if name:
        with pytest.raises(CorruptFile, match="not a path below"):
            listed_paths(f"a.warc.gz\n{name}\n".encode(), where="list")
    with pytest.raises(BadInput, match="is not a path of a file"):
        FileFact(name, 1, "0")
    for parse in (parse_snapshot, Shard.parse, parse_document_id, note_of):
        with pytest.raises(BadInput):
            parse(name)
    with pytest.raises(BadInput):
        OrderSource(snapshot=name, version="a", digest="", train_rows=1, heldout_rows=1)
    with pytest.raises(BadInput):
        OrderSource(snapshot="a", version=name, digest="", train_rows=1, heldout_rows=1)
    with pytest.raises(BadInput):
        parse_recipe(f"[mixes.{json.dumps(name)}]\nweights = 'equal'\n", where="recipe")


@pytest.mark.parametrize("name", NO_FOLDERS)
def test_places_of_a_lake_are_folders_below_it(tmp_path, name):
    """Stages and partitions are named by releases and mixes, too."""
    lake = Lake(tmp_path)
    for stage, key in ((name, "a"), ("token_grid", name)):
        with pytest.raises(BadInput, match="not the name of a stage or a partition"):
            lake.partition(stage, key)
    with pytest.raises(BadInput):
        lake.version_of(name)
    with pytest.raises((BadInput, NotPublished)):
        lake.version_of(f"token_grid/{name}/abc")


def lake_with(tmp_path, path: str, change) -> Lake:
    """A small lake, one of whose JSON files says something else."""
    make_lake(tmp_path)
    (found,) = tmp_path.glob(path)
    found.write_text(json.dumps(change(json.loads(found.read_text()))))
    return Lake(tmp_path)


def test_a_receipt_names_no_file_outside(tmp_path):
    """Who fetches a version's files from a bucket writes them where its receipt says."""

    def elsewhere(receipt):
        receipt["files"][0]["path"] = "../../../../x"
        return receipt

    lake = lake_with(tmp_path, f"token_grid/*/*/{RECEIPT}", elsewhere)
    with pytest.raises(CorruptFile, match="is not a path of a file within a folder"):
        lake.partition("token_grid", "2023-06").current()
    (receipt,) = tmp_path.glob(f"token_grid/*/*/{RECEIPT}")
    with pytest.raises(CorruptFile):
        decode_json(receipt, Receipt)


def test_a_pointer_and_a_release_name_no_version_outside(tmp_path):
    lake = lake_with(
        tmp_path / "a", f"token_grid/*/{CURRENT}", lambda said: said | {"version": "../../x"}
    )
    with pytest.raises(BadInput, match="not a version's name"):
        lake.partition("token_grid", "2023-06").current()
    lake = lake_with(
        tmp_path / "b",
        "releases/*.json",
        lambda said: said | {"pins": {"token_grid/a": {"version": "../x", "digest": "0"}}},
    )
    with pytest.raises(CorruptFile, match="not a version's name"):
        read_release(lake, "first")


def test_a_record_of_a_shard_names_no_file_outside(tmp_path):
    line = {"shard": "a", "made_of": "0", "counts": {}, "files": [["../x", 1, "0"]]}
    (tmp_path / "shards.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(CorruptFile):
        read_records(tmp_path / "shards.jsonl")


def test_an_index_of_n_grams_opens_only_its_own_arrays(tmp_path):
    """It would map any array of the machine otherwise."""
    write_index(
        tmp_path,
        build_index(
            [Item(id="a", parts=("one two three four",))], GramSettings(ngram=3, min_words=2)
        ),
    )
    head = json.loads((tmp_path / "index.json").read_text())
    head["arrays"]["../elsewhere"] = 3
    (tmp_path / "index.json").write_text(json.dumps(head))
    with pytest.raises(CorruptFile, match="arrays of lengths"):
        open_index(tmp_path)


@pytest.mark.parametrize("name", OUTSIDE)
def test_ids_and_addresses_of_documents_become_no_paths(tmp_path, name):
    """A corpus is read, and nothing is opened or made but the file itself."""
    path = tmp_path / "in" / "x.jsonl"
    path.parent.mkdir()
    path.write_text(
        json.dumps(
            {
                "id": name,
                "url": f"file://{name}",
                "text": "x",
                "source_domain": name,
                "language": name,
            }
        )
        + "\n"
    )
    (found,) = read_corpus(path)
    assert found.text == "x"
    assert [one.relative_to(tmp_path).as_posix() for one in tmp_path.rglob("*")] == [
        "in",
        "in/x.jsonl",
    ]
