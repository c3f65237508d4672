"""Every command that takes a lake says of one in a bucket what it says of one in a folder, and
fetches only what it needs.
"""

import re

import pytest

from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.settings.rows import MixSettings
from lc_assets.lake.bucket import Bucket
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.stages.lineage import tracing
from lc_assets_tests.bucket_server import bucket_server
from lc_assets_tests.builders import SNAPSHOTS, recipe_file

pytest.importorskip("gcsfs")
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

URL = "gs://crawl/lake"
SNAPSHOT = SNAPSHOTS[0]
ROW = 3


@pytest.fixture(scope="module")
def server():
    with pytest.MonkeyPatch.context() as patched, bucket_server(patched) as running:
        yield running


def go_up(lake, url):
    """Copy a lake in a folder into a bucket, file by file."""
    paths = [
        path.relative_to(lake.root).as_posix()
        for path in lake.root.rglob("*")
        if path.is_file() and path.name != ".lock"
    ]
    names = sorted(path for path in paths if "/" in path)
    for folder in {path.rpartition("/")[0] for path in names}:
        inside = [path.rpartition("/")[2] for path in names if path.rpartition("/")[0] == folder]
        Bucket(url).upload(lake.root / folder, inside, folder)


@pytest.fixture(scope="module")
def in_bucket(server, published_lake):
    """The published lake, copied into a bucket; read only."""
    go_up(published_lake.context.lake, URL)
    return published_lake


@pytest.fixture
def copies(tmp_path, monkeypatch):
    """This machine's copies; at first there are none."""
    monkeypatch.setenv("LC_CACHE", str(tmp_path / "copies"))
    return tmp_path / "copies"


def fetched(copies):
    return {
        path.name
        for path in copies.rglob("*")
        if path.is_file() and path.name != "receipt.json" and ".uses" not in path.parts
    }


def version(tiny, stage, key="all"):
    return f"{stage}/{key}/{tiny.context.lake.partition(stage, key).require().version}"


SHOWN = ["", "token_grid", f"token_grid/{SNAPSHOT}", "blended_mix/one-sided"]
ASKED = {
    "row": lambda row: ("--row", ROW, "--column", 5),
    "row of a grid": lambda row: ("--row", ROW, "--snapshot", SNAPSHOT),
    "sample": lambda row: ("--mix", "one-sided", "--sample", 7, "--position", 24),
    "id": lambda row: ("--id", row.id),
    "url": lambda row: ("--url", row.url),
    "domain": lambda row: ("--domain", "example.org"),
    "digest": lambda row: ("--digest", row.digest),
}


def of_folder(said, tiny, copies):
    """What was said, without where the lake and its copies lie, and without the widths of columns,
    which depend on that.
    """
    text = (
        said.out.replace(f"{copies}/crawl/lake", "LAKE")
        .replace(URL, "LAKE")
        .replace(str(tiny.root), "LAKE")
    )
    return " ".join(re.sub(r"[─━┄╌═]+", "", text).split())


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("part", SHOWN)
def test_show_says_the_same(lc, in_bucket, copies, part, verify):
    options = ["--verify"] if verify else []
    ours, theirs = (
        lc("show", f"{URL}/{part}".rstrip("/"), *options),
        lc("show", in_bucket.root / part, *options),
    )
    assert (ours.code, ours.err) == (0, "")
    assert of_folder(ours, in_bucket, copies) == of_folder(theirs, in_bucket, copies)
    stated = {"mix.json"} if part.startswith("blended_mix/") else set()  # names the data's prefixes
    assert verify or fetched(copies) == stated


@pytest.mark.parametrize(
    ("stage", "key", "file", "alone"),
    [
        ("raw_snapshot", SNAPSHOT, "manifest.parquet", {"manifest.parquet"}),
        ("token_grid", SNAPSHOT, "train.zarr", {"zarr.json"}),
        ("longcrawl_flat", "all", "heldout.zarr", {".zarray", ".zattrs"}),
        (
            "token_documents",
            SNAPSHOT,
            "0000-en_head",
            {"0000-en_head.bin", "0000-en_head.bin.crc32", "0000-en_head.idx"},
        ),
        ("longcrawl", "all", "train_source.npy", {"train_source.npy"}),
    ],
)
def test_what_lies_within_a_version_is_shown_by_its_own_files(
    lc, in_bucket, copies, stage, key, file, alone
):
    path = f"{version(in_bucket, stage, key)}/{file}"
    ours, theirs = lc("show", f"{URL}/{path}"), lc("show", in_bucket.root / path)
    assert (ours.code, ours.err) == (0, "")
    assert fetched(copies) <= alone
    whole, extra = lc("verify", f"{URL}/{path}"), lc("verify", in_bucket.root / path)
    assert (whole.code, whole.err) == (extra.code, extra.err) == (0, "")
    assert (
        of_folder(whole, in_bucket, copies).split()[1:]
        == of_folder(extra, in_bucket, copies).split()[1:]
    )
    assert "shape" not in theirs.out or theirs.out.split("shape")[1].split("\n")[0] in ours.out


@pytest.mark.parametrize("asked", ASKED)
def test_trace_says_the_same(lc, in_bucket, copies, asked):
    row = tracing.row_of_order(in_bucket.context.lake, "train", ROW)
    words = ASKED[asked](row)
    ours, theirs = lc("trace", URL, *words), lc("trace", in_bucket.root, *words)
    assert (ours.code, ours.err) == (0, "")
    assert of_folder(ours, in_bucket, copies) == of_folder(theirs, in_bucket, copies)
    names = fetched(copies)
    assert not [name for name in names if name.endswith(".bin")]
    # Only the text of a traced token's document is read, for its characters.
    assert sum(name.endswith(".documents.parquet") for name in names) <= 1


def test_a_batch_is_the_same_and_needs_no_rows_on_this_machine(lc, in_bucket, copies):
    for options in (
        ["--step", 2, "--rows", 3, "--context", 16],
        ["--split", "heldout", "--rows", 1],
    ):
        ours, theirs = lc("batch", URL, *options), lc("batch", in_bucket.root, *options)
        assert (ours.code, ours.err) == (0, "")
        assert ours.out == theirs.out
    flat = version(in_bucket, "longcrawl_flat")
    assert lc("batch", f"{URL}/{flat}").out == lc("batch", in_bucket.root / flat).out
    assert not (copies / "crawl/lake/token_grid" / SNAPSHOT / "train.zarr").exists()


def test_explain_plan_and_diff_say_the_same(lc, in_bucket, copies, tmp_path):
    row = tracing.row_of_order(in_bucket.context.lake, "train", ROW)
    recipe = recipe_file(tmp_path / "recipe.toml", in_bucket.context.recipe)
    upstream = in_bucket.context.upstream.root
    grid = version(in_bucket, "token_grid", SNAPSHOT)
    for before, after in (
        (
            ["explain", URL, row.id, "--upstream", upstream],
            ["explain", in_bucket.root, row.id, "--upstream", upstream],
        ),
        (
            ["plan", "--lake", URL, "--recipe", recipe, "--all"],
            ["plan", "--lake", in_bucket.root, "--recipe", recipe, "--all"],
        ),
        (
            ["diff", f"{URL}/{grid}", "now", "--lake", URL],
            ["diff", in_bucket.root / grid, "now", "--lake", in_bucket.root],
        ),
    ):
        ours, theirs = lc(*before), lc(*after)
        assert (ours.code, ours.err) == (theirs.code, theirs.err) == (0, "")
        assert of_folder(ours, in_bucket, copies) == of_folder(theirs, in_bucket, copies)


def test_what_is_not_there_is_said(lc, in_bucket, copies):
    for words in (
        ("show", f"{URL}/nowhere"),
        ("show", "gs://crawl/other"),
        ("verify", f"{URL}/nowhere"),
        ("trace", URL, "--id", "x/1"),
    ):
        said = lc(*words)
        assert said.code == 2, said
        assert said.err


def test_a_document_is_withdrawn_and_purged_in_a_bucket(lc, server, copies, tmp_path):
    """Released, withdrawn, rebuilt, given up, purged: nothing in the bucket, nor of its copies,
    holds it; all else is whole.
    """
    from lc_assets.lake.releases import release_names
    from lc_assets_tests.withdrawing import ALONE_OLD, OLD, id_of, withdrawing_lake

    few = {"packed_rows": PackingSettings(), "blended_mix": {"mine": MixSettings()}}
    url, one = "gs://crawl/other", withdrawing_lake(tmp_path / "one", [OLD], **few)
    go_up(one.lake, url)
    recipe = recipe_file(tmp_path / "recipe.toml", one.context.recipe)
    built = ("--upstream", one.context.upstream.root, "--recipe", recipe, "--workers", 1)
    assert lc("release", url, "v1", "--recipe", recipe).code == 0
    assert release_names(open_lake(url)) == ["v1"]
    assert lc("release", url, "v1", "--verify").code == 0
    assert lc("trace", url, "--row", 0, "--release", "v1").code == 0
    name = id_of(OLD, ALONE_OLD)
    said = lc(
        "withdraw",
        url,
        "--id",
        name,
        "--reason",
        "asked for",
        "--list",
        one.list_file,
        "--recipe",
        recipe,
    )
    assert said.code == 0
    assert f"token_grid/{OLD}" in said.out
    assert lc("rebuild", "--lake", url, "--snapshot", OLD, *built).code == 0
    assert f"token_grid/{OLD}/" in lc("withdraw", url, "--report", "--recipe", recipe).out
    assert "0 rows added, 1 removed" in lc("diff", "v1", "now", "--lake", url).out
    assert lc("prune", url, "--purge").code == 3
    before = server.names()
    assert lc("prune", url, "--purge", "--give-up", "v1", "--dry-run").code == 0
    assert server.names() == before
    grids = {
        name.split("/")[3]
        for name in before
        if name.startswith(f"other/token_grid/{OLD}/") and name.count("/") > 3
    }
    said = lc("prune", url, "--purge", "--give-up", "v1")
    assert said.code == 0
    current = open_lake(url).partition("token_grid", OLD).require()
    left = {
        name.split("/")[3]
        for name in server.names()
        if name.startswith(f"other/token_grid/{OLD}/") and name.count("/") > 3
    }
    assert (len(grids), left) == (2, {current.version})
    assert {
        path.name for path in current.home.parent.iterdir() if not path.name.startswith(".")
    } == left
    assert lc("prune", url).code == 0
    assert "0 folders" in lc("prune", url).out
    assert lc("plan", "--lake", url, "--recipe", recipe).code == 0
    assert lc("show", url, "--verify").code == 0
