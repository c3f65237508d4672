"""Where a document's page is in the crawl: the right capture of several, found by every way alike,
and nothing lost or believed.
"""

import datetime as dt
import gzip
import itertools
import json
import shutil
from dataclasses import replace
from pathlib import Path

import fsspec
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.building import build, check_input_of, run_check
from lc_assets.builds.checks import documents_files
from lc_assets.builds.recipe_files import parse_recipe
from lc_assets.builds.settings.longpack import HtmlIndexSettings, LongPackSettings
from lc_assets.builds.stage import (
    BuildContext,
    Built,
    CheckInput,
)
from lc_assets.builds.tables import read_all, read_table
from lc_assets.errors import BadInput, CheckFailed, CorruptFile, Unreachable
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.archives.captures import Capture
from lc_assets.formats.archives.fetching import HtmlPage
from lc_assets.formats.archives.wat import WatPage, wat_pages_at
from lc_assets.formats.archives.writing import index_lines
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.links.html_index import (
    FILES_TABLE,
    REDIRECTS_FILE,
    STAGE,
    index_files,
    look_at_crawl,
)
from lc_assets.stages.links.link_tables import HTML_INDEX
from lc_assets.stages.planning import plan
from lc_assets.text.links.page_keys import page_key, surt
from lc_assets.vocabulary import parse_snapshot
from lc_assets_tests.builders import SNAPSHOTS, tiny_context
from lc_assets_tests.faults import cut_short, flipped
from lc_assets_tests.formats.archives.warc_bytes import http, record
from lc_assets_tests.killing import Killer
from lc_assets_tests.loaders.range_server import RangeHandler, served
from lc_assets_tests.named_draws import rng_for
from lc_assets_tests.reference.pages import page_at

SNAPSHOT = parse_snapshot(SNAPSHOTS[0])
WANTED = LongPackSettings(wanted=True)
WAYS = ("scan", "cdxj", "columnar")


@pytest.fixture(scope="module")
def filtered(tmp_path_factory) -> BuildContext:
    """A context whose documents are filtered; each test takes a copy of the lake."""
    context = tiny_context(tmp_path_factory.mktemp("filtered_documents"), longpack_documents=WANTED)
    for name in ("raw_snapshot", "filtered_documents"):
        stage_named(name).build(context, SNAPSHOT)
    return context


def over(context: BuildContext, folder: Path, crawl: Path | str, **web) -> BuildContext:
    """The same documents over another crawl, into a lake of its own."""
    if not (folder / "lake").exists():
        shutil.copytree(context.lake.root, folder / "lake")
    recipe = msgspec.structs.replace(context.recipe, html_index=HtmlIndexSettings(**web))
    return replace(context, lake=Lake(folder / "lake"), crawl=Upstream(str(crawl)), recipe=recipe)


def documents_of(context: BuildContext) -> list[dict]:
    folder = context.lake.partition("filtered_documents", SNAPSHOT).require().folder
    return [line for path in documents_files(folder) for line in pq.read_table(path).to_pylist()]


def index_of(built: Built) -> list[dict]:
    return read_all(index_files(built.published.folder), HTML_INDEX).to_pylist()


def page_record(
    url: str, *, day: int, status: str = "200 OK", mime: str = "text/html", body: str = "x"
) -> bytes:
    block = http(body.encode(), f"Content-Type: {mime}".encode(), status=status.encode())
    return record(
        b"response",
        block,
        url=url.encode(),
        more=b"WARC-Payload-Digest: sha1:%s\r\n" % body.encode(),
    ).replace(b"2024-01-01T00:00:00Z", f"2023-02-{day:02}T04:05:06Z".encode())


class Archives:
    """Archives of a crawl in the making, with what the crawl's indexes would say of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.captures: list[Capture] = []
        self.contents: dict[str, bytes] = {}

    def add(
        self,
        filename: str,
        url: str,
        *,
        day: int,
        status: str = "200 OK",
        mime: str = "text/html",
        body: str = "x",
    ) -> None:
        content = self.contents.get(filename, gzip.compress(record(b"warcinfo", b"x"), mtime=0))
        packed = gzip.compress(
            page_record(url, day=day, status=status, mime=mime, body=body), mtime=0
        )
        is_page = status.startswith("200") and mime == "text/html"
        self.captures.append(
            Capture(
                url,
                f"202302{day:02}040506",
                is_page,
                f"sha1:{body}",
                filename,
                len(content),
                len(packed),
            )
        )
        self.contents[filename] = content + packed

    def write(self) -> Path:
        """Write archives and both indexes, sorted as they must be."""
        for filename, content in self.contents.items():
            (self.root / filename).parent.mkdir(parents=True, exist_ok=True)
            (self.root / filename).write_bytes(content)
        pages = [one for one in self.captures if one.is_page]
        others = [
            line.replace(b'"200"', b'"404"')
            for line in index_lines(one for one in self.captures if not one.is_page)
        ]
        folder = self.root / SNAPSHOT
        folder.mkdir(parents=True, exist_ok=True)
        lines = sorted([*index_lines(pages), *others])
        (folder / "a.cdxj").write_bytes(b"".join(lines[: len(lines) // 2]))
        (folder / "b.cdxj.gz").write_bytes(gzip.compress(b"".join(lines[len(lines) // 2 :])))
        write_columns(folder / "c.parquet", self.captures)
        return self.root


def write_columns(path: Path, captures: list[Capture]) -> None:
    times = [dt.datetime.strptime(one.timestamp, "%Y%m%d%H%M%S") for one in captures]  # noqa: DTZ007
    table = {
        "url_surtkey": [surt(one.url) for one in captures],
        "url": [one.url for one in captures],
        "fetch_time": pa.array(times, pa.timestamp("ms")),
        "fetch_status": pa.array([200 if one.is_page else 404 for one in captures], pa.int16()),
        "content_mime_type": ["text/html"] * len(captures),
        "content_digest": [one.digest.removeprefix("sha1:") for one in captures],
        "warc_filename": [one.filename for one in captures],
        "warc_record_offset": pa.array([one.offset for one in captures], pa.int32()),
        "warc_record_length": pa.array([one.length for one in captures], pa.int32()),
    }
    pq.write_table(pa.table(table), path, row_group_size=10)


def chosen(document: dict, captures: list[Capture]) -> Capture | None:
    """The slow reference: look at every capture, and take the best by the rules as they are written
    down.
    """

    def seconds(timestamp: str) -> float:
        return dt.datetime.strptime(timestamp, "%Y%m%d%H%M%S").timestamp()  # noqa: DTZ007

    batch = Path(document["cc_segment"]).name.removesuffix(".warc.wet.gz")
    date = "".join(filter(str.isdigit, document["date_download"]))
    found = [
        one for one in captures if one.is_page and page_key(one.url) == page_key(document["url"])
    ]

    def rank(one: Capture) -> tuple:
        is_of_batch = Path(one.filename).name.removesuffix(".warc.gz") == batch
        apart = abs(seconds(one.timestamp) - seconds(date))
        return (
            not is_of_batch,
            one.digest != document["digest"],
            apart,
            -int(one.timestamp),
            one.filename,
            one.offset,
        )

    return min(found, key=rank, default=None)


@pytest.fixture(scope="module")
def crowded(filtered, tmp_path_factory) -> Archives:
    """No to eight captures of each page: in the batch that the text came from or not, of its digest
    or not, pages or not, at many times.
    """
    archives = Archives(tmp_path_factory.mktemp("crowded"))
    rng = rng_for("captures", seed=7)
    for number, document in enumerate(documents_of(filtered)):
        batch = Path(document["cc_segment"]).name.removesuffix(".warc.wet.gz")
        for _ in range(int(rng.integers(9)) if number else 0):
            name = batch if rng.random() < 0.1 else f"other-{rng.integers(3)}"
            url = (
                document["url"]
                if rng.random() < 0.7
                else document["url"].replace("https://", "HTTP://www.") + "#part"
            )
            archives.add(
                f"crawl-data/CC-MAIN-{SNAPSHOT}/segments/0/warc/{name}.warc.gz",
                url,
                day=int(rng.integers(1, 6)),
                status="200 OK" if rng.random() < 0.8 else "404 Not Found",
                mime="text/html" if rng.random() < 0.9 else "image/png",
                body=document["digest"].removeprefix("sha1:") if rng.random() < 0.1 else "OTHER",
            )
    archives.write()
    return archives


@pytest.mark.parametrize("way", WAYS)
def test_of_several_captures_it_is_the_one_that_the_rules_name(filtered, crowded, tmp_path, way):
    """By the archives themselves and by both indexes, against a search through all captures;
    documents without one are counted.
    """
    built = stage_named("html_index").build(
        over(filtered, tmp_path, crowded.root, index=way), SNAPSHOT
    )
    documents = documents_of(filtered)
    expected = {
        document["id"]: one for document in documents if (one := chosen(document, crowded.captures))
    }
    found = {line["id"]: line for line in index_of(built)}
    assert found.keys() == expected.keys()
    for name, one in expected.items():
        line = found[name]
        place = (
            line["captured_url"],
            line["timestamp"],
            line["digest"],
            line["filename"],
            line["offset"],
            line["length"],
        )
        assert place == (one.url, one.timestamp, one.digest, one.filename, one.offset, one.length)
    assert len(expected) < built.counts.seen == len(documents)
    captured = {page_key(one.url) for one in crowded.captures}
    n_without = sum(page_key(document["url"]) not in captured for document in documents)
    assert built.counts.dropped["no capture"] == n_without
    assert built.counts.dropped.get("no capture with status 200 and HTML", 0) == len(
        documents
    ) - n_without - len(expected)
    assert all(finding.passed for finding in built.findings)
    order = [line["id"] for line in index_of(built)]
    assert order == [document["id"] for document in documents if document["id"] in expected]


def test_the_tiny_crawl_holds_every_page(filtered, tmp_path):
    """What tests build upstream comes with its crawl: each document's own page, by scan and by
    index the same tables.
    """
    tables = []
    for way in ("scan", "cdxj"):
        context = over(filtered, tmp_path, filtered.crawl.root, index=way)
        built = stage_named("html_index").build(context, SNAPSHOT)
        assert built.counts.kept == built.counts.seen == len(documents_of(filtered))
        tables.append([path.read_bytes() for path in index_files(built.published.folder)])
        texts = {document["id"]: document["raw_content"] for document in documents_of(filtered)}
        for line in index_of(built)[::5]:
            page = page_at(context.crawl, line["filename"], line["offset"], line["length"])
            assert page.url == line["captured_url"] == line["url"]
            assert texts[line["id"]].split("\n")[0].split()[0] in page.html
    assert tables[0] == tables[1]


def wat_of(page: dict, status: str = "200", **headers: str) -> bytes:
    response = {
        "Response-Message": {"Status": status},
        "Headers": {"Content-Type": "text/html"} | headers,
        "HTML-Metadata": {"Links": [{"path": "A@/href", "url": "/b", "text": page["id"]}]},
    }
    warc = {"WARC-Target-URI": page["url"], "WARC-Date": page["date_download"]}
    said = {
        "Envelope": {
            "WARC-Header-Metadata": warc,
            "Payload-Metadata": {"HTTP-Response-Metadata": response},
        }
    }
    return gzip.compress(record(b"metadata", json.dumps(said).encode()), mtime=0)


def test_lists_of_links_are_indexed_without_any_html(filtered, tmp_path):
    """The record of a page is then its list of links."""
    documents = documents_of(filtered)
    crawl = tmp_path / "crawl"
    (crawl / SNAPSHOT).mkdir(parents=True)
    (crawl / SNAPSHOT / "a.warc.wat.gz").write_bytes(b"".join(map(wat_of, documents[3:])))
    context = over(filtered, tmp_path, crawl, links_from="wat")
    built = stage_named("html_index").build(context, SNAPSHOT)
    assert built.counts.dropped == {"no capture": 3}
    lines = index_of(built)
    pages = list(
        wat_pages_at(
            context.crawl,
            [(line["filename"], line["offset"], line["length"]) and _spot(line) for line in lines],
        )
    )
    assert [page.links[0].text for page in pages if isinstance(page, WatPage)] == [
        line["id"] for line in lines
    ]
    with pytest.raises(
        BadInput,
        match="has no warc files .1 wat., which html_index.index and html_index.links_from ask for",
    ):
        stage_named("html_index").build(over(filtered, tmp_path, crawl), SNAPSHOT)


@pytest.mark.parametrize("way", [*WAYS, "wat"])
def test_redirects_are_read_wherever_pages_are_looked_up(filtered, tmp_path, way):
    """In archives, lists of links and both indexes, which name archives that are not listed; the
    newest capture decides, relative addresses are resolved.
    """
    document = documents_of(filtered)[0]
    moves = [
        ("https://a.example.net/old", "/older", 1),
        ("https://a.example.net/old", "/new?x=1", 2),
        ("http://b.example.net/x", document["url"], 1),
        (document["url"], "https://c.example.net/", 1),
        ("https://d.example.net/", "http://www.d.example.net", 1),
    ]
    folder = tmp_path / "crawl" / SNAPSHOT
    folder.mkdir(parents=True)
    page = page_record(document["url"], day=3)
    records = [
        page_record(url, day=day, status="301 Moved", mime=f"text/html\r\nLocation: {target}")
        for url, target, day in moves
    ]
    one = Capture(
        document["url"],
        "20230203040506",
        True,
        "",
        f"{SNAPSHOT}/x.warc.gz",
        0,
        len(gzip.compress(page)),
    )
    captures = [one] + [
        msgspec.structs.replace(
            one, url=url, timestamp=f"202302{day:02}040506", is_page=False, filename="diagnostics"
        )
        for url, _, day in moves
    ]
    if way == "wat":
        seen = [wat_of(document)] + [
            wat_of(
                {"url": url, "date_download": f"2023-02-{day:02}T00:00:00Z", "id": ""},
                status="301",
                Location=target,
            )
            for url, target, day in moves
        ]
        (folder / "a.warc.wat.gz").write_bytes(b"".join(seen))
    else:
        pages = [page, *(records if way == "scan" else [])]
        (folder / "x.warc.gz").write_bytes(
            b"".join(gzip.compress(content, mtime=0) for content in pages)
        )
        (folder / "warc.paths").write_text(f"{SNAPSHOT}/x.warc.gz\n")
    lines = index_lines(captures[:1])
    for capture, (_, target, _) in zip(captures[1:], moves, strict=True):
        said = f'"status":"301","redirect":{json.dumps(target)}'.encode()
        lines += [line.replace(b'"status":"200"', said) for line in index_lines([capture])]
    (folder / "a.cdxj").write_bytes(b"".join(sorted(lines)))
    for subset, some, targets in (
        ("warc", captures[:1], [None]),
        ("crawldiagnostics", captures[1:], [target for _, target, _ in moves]),
    ):
        path = folder / f"subset={subset}" / "c.parquet"
        path.parent.mkdir()
        write_columns(path, some)
        table = pq.read_table(path).append_column("fetch_redirect", [targets])
        pq.write_table(table, path)
    looked_up = {"links_from": "wat"} if way == "wat" else {"index": way}
    context = over(filtered, tmp_path, tmp_path / "crawl", **looked_up)
    built = stage_named("html_index").build(context, SNAPSHOT)
    assert [line["id"] for line in index_of(built)] == [document["id"]]
    found = pq.read_table(built.published.folder / REDIRECTS_FILE).to_pylist()
    assert {line["page_key"]: line["target_key"] for line in found} == {
        "a.example.net/old": "a.example.net/new?x=1",
        "b.example.net/x": page_key(document["url"]),
        page_key(document["url"]): "c.example.net",
    }
    assert all(finding.passed for finding in built.findings)


def _spot(line):
    from lc_assets.formats.archives.fetching import Spot

    return Spot(line["filename"], line["offset"], line["length"])


class Backwards:
    """An executor that does the last task first."""

    def run(self, function, tasks, *, what):
        return LocalExecutor().run(function, list(tasks)[::-1], what=what)


def with_lists(crawl: Path, folder: Path) -> Path:
    """A copy of a crawl that is named by Common Crawl's lists, without a folder that can be looked
    through.
    """
    shutil.copytree(crawl, folder)
    place = folder / f"crawl-data/CC-MAIN-{SNAPSHOT}"
    place.mkdir(parents=True, exist_ok=True)
    for name, pattern in (
        ("warc", "*.warc.gz"),
        ("cc-index", "*.cdxj*"),
        ("cc-index-table", "*.parquet"),
    ):
        paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob(pattern))
        (place / f"{name}.paths.gz").write_bytes(
            gzip.compress("".join(f"{path}\n" for path in paths).encode())
        )
    return folder


@pytest.mark.parametrize("way", WAYS)
def test_the_same_crawl_gives_the_same_bytes_from_anywhere(filtered, crowded, tmp_path, way):
    """With two workers, tasks backwards, from a server by lists, from a bucket that can be
    listed.
    """
    plainly = (
        stage_named("html_index")
        .build(over(filtered, tmp_path, crowded.root, index=way), SNAPSHOT)
        .published
    )
    executor = (
        LocalExecutor(workers=2, preload=("lc_assets.stages.catalogue",))
        if way == "scan"
        else Backwards()
    )
    context = replace(
        over(filtered, tmp_path / "other", crowded.root, index=way), executor=executor
    )
    assert stage_named("html_index").build(context, SNAPSHOT).published.digest == plainly.digest
    with served(with_lists(crowded.root, tmp_path / "listed")) as (url, *_):
        from_server = (
            stage_named("html_index")
            .build(over(filtered, tmp_path / "server", url, index=way), SNAPSHOT)
            .published
        )
    assert from_server.digest == plainly.digest
    files = fsspec.filesystem("memory")
    files.put(str(crowded.root), f"/crawl-{way}-{tmp_path.name}", recursive=True)
    bucket = stage_named("html_index").build(
        over(filtered, tmp_path / "bucket", f"memory://crawl-{way}-{tmp_path.name}", index=way),
        SNAPSHOT,
    )
    assert [line["id"] for line in index_of(bucket)] == [
        line["id"] for line in read_all(index_files(plainly.folder), HTML_INDEX).to_pylist()
    ]


def test_a_changed_file_of_the_crawl_makes_the_index_out_of_date(filtered, crowded, tmp_path):
    """Its content is an input: unchanged, the same version is found; changed, another is built. The
    planner keeps what it cannot see.
    """
    crawl = Path(shutil.copytree(crowded.root, tmp_path / "crawl"))
    context = over(filtered, tmp_path, crawl)
    first = stage_named("html_index").build(context, SNAPSHOT)
    again = stage_named("html_index").build(context, SNAPSHOT)
    assert again.reused
    made = {found.name: found.status for found in plan(context.lake, context.recipe, [SNAPSHOT])}
    assert made[f"html_index/{SNAPSHOT}"] == "current"
    made = plan(
        context.lake,
        context.recipe,
        [SNAPSHOT],
        upstream_digests={SNAPSHOT: raw_digest(context)},
    )
    assert {found.name: found.status for found in made}[f"html_index/{SNAPSHOT}"] == "current"
    changed = min(crawl.rglob("*.warc.gz"))
    changed.write_bytes(changed.read_bytes() + gzip.compress(record(b"metadata", b"new"), mtime=0))
    looked = plan(
        context.lake,
        context.recipe,
        [SNAPSHOT],
        crawl_digests={SNAPSHOT: look_at_crawl(context, SNAPSHOT)},
    )
    (behind,) = (found for found in looked if found.stage == "html_index")
    second = stage_named("html_index").build(context, SNAPSHOT)
    assert not second.reused
    assert (behind.status, behind.target) == ("stale", second.published.version)
    assert second.published.folder != first.published.folder
    assert [path.read_bytes() for path in index_files(second.published.folder)] == [
        path.read_bytes() for path in index_files(first.published.folder)
    ]


def raw_digest(context: BuildContext) -> str:
    return (
        context.lake.partition("raw_snapshot", SNAPSHOT)
        .require()
        .receipt.fingerprint.inputs["upstream"]
    )


def test_documents_whose_address_is_none_are_counted(filtered, crowded, tmp_path):
    """And shards of which no document has a page have an empty table."""
    context = over(filtered, tmp_path, crowded.root)
    folder = context.lake.partition("filtered_documents", SNAPSHOT).require().folder
    first, second, _ = documents_files(folder)
    for path, urls in (
        (first, ["ftp://a.org/x", "", "mailto:a@b.org"]),
        (second, ["no address"] * 20),
    ):
        table = pq.read_table(path)
        place = table.schema.get_field_index("url")
        pq.write_table(
            table.set_column(
                place, "url", [[*urls, *table["url"].to_pylist()[len(urls) :]][: table.num_rows]]
            ),
            path,
        )
    built = build(context, stage_named("html_index"), SNAPSHOT)  # does not verify the input
    assert built.counts.dropped["no address of the web"] == 3 + pq.read_table(second).num_rows
    assert [read_table(path).num_rows for path in index_files(built.published.folder)][1] == 0
    assert len(index_files(built.published.folder)) == 3


@pytest.mark.parametrize("way", WAYS)
def test_damaged_and_missing_files_stop_the_stage(filtered, crowded, tmp_path, way):
    """Nothing is published of a crawl of which a part cannot be read."""
    ends = {"scan": "*.warc.gz", "cdxj": "*.cdxj.gz", "columnar": "*.parquet"}
    for fault in (cut_short, flipped):
        crawl = Path(shutil.copytree(crowded.root, tmp_path / fault.__name__))
        context = over(filtered, tmp_path / f"lake-{fault.__name__}", crawl, index=way)
        damaged = max(crawl.rglob(ends[way]), key=lambda path: path.stat().st_size)
        fault(damaged)
        if (fault, way) == (flipped, "columnar"):
            continue  # Parquet's pages have no checksums: a flipped bit may be another value
        with pytest.raises(CorruptFile, match=damaged.name):
            stage_named("html_index").build(context, SNAPSHOT)
        assert context.lake.partition("html_index", SNAPSHOT).current() is None
    listed = with_lists(crowded.root, tmp_path / "listed")
    missing = max(listed.rglob(ends[way]))
    missing.unlink()
    with served(listed) as (url, *_):
        for root in (listed, url):
            with pytest.raises(
                CorruptFile, match=f"{missing.name}: is missing, but the crawl lists it"
            ):
                stage_named("html_index").build(
                    over(filtered, tmp_path / "missing", root, index=way), SNAPSHOT
                )


def test_a_server_in_trouble_stops_the_stage_after_it_was_asked_again(
    filtered, crowded, tmp_path, monkeypatch
):
    monkeypatch.setattr("lc_assets.lake.upstream.PAUSES_SECONDS", (0.0, 0.0))

    class Broken(RangeHandler):
        def send_response(self, code, message=None):
            super().send_response(503 if ".warc.gz" in self.path else code, message)

    with served(with_lists(crowded.root, tmp_path / "listed"), Broken) as (url, *_):
        context = over(filtered, tmp_path, url)
        with pytest.raises(Unreachable, match="503"):
            stage_named("html_index").build(context, SNAPSHOT)
    assert context.lake.partition("html_index", SNAPSHOT).current() is None


def test_lines_of_an_index_that_lie_are_counted_and_left_out(filtered, crowded, tmp_path):
    """Junk, places that cannot be, paths that lead elsewhere, archives that nobody lists: none
    becomes a place of a page.
    """
    crawl = Path(shutil.copytree(crowded.root, tmp_path / "crawl"))
    victim = next(
        document
        for document in documents_of(filtered)
        if chosen(document, crowded.captures) is None
    )
    good = {
        "url": victim["url"],
        "status": "200",
        "mime": "text/html",
        "length": "5",
        "offset": "0",
        "filename": "x.warc.gz",
    }
    lies = [
        {"filename": "../../secret.warc.gz"},
        {"filename": "/etc/passwd"},
        {"filename": "https://b.org/x"},
        {"offset": "-1"},
        {"length": "0"},
    ]
    key = surt(victim["url"])
    lines = [f"{key} 20230203000000 {json.dumps(good | lie)}" for lie in [*lies, {}]] + [
        f"{key} 20230203000000 {{junk"
    ]
    (crawl / SNAPSHOT / "lies.cdxj").write_text("".join(f"{line}\n" for line in sorted(lines)))
    write_columns(
        crawl / SNAPSHOT / "lies.parquet",
        [Capture(victim["url"], "20230203000000", True, "", "../x.warc.gz", 0, 5)],
    )
    expected = {
        "cdxj": {
            "path outside": 3,
            "impossible place": 2,
            "archive not listed": 1,
            "line not read": 1,
        },
        "columnar": {"path outside": 1},
    }
    for way, counts in expected.items():
        built = stage_named("html_index").build(
            over(filtered, tmp_path, crawl, index=way), SNAPSHOT
        )
        extra = built.counts.extra
        assert {
            name.removeprefix("left out: "): n
            for name, n in extra.items()
            if name.startswith("left out: ")
        } == counts
        assert victim["id"] not in {line["id"] for line in index_of(built)}
        assert extra["records read"] == extra["captures"] + sum(counts.values())


def test_an_index_of_other_archives_is_not_published(filtered, tmp_path):
    """Its places hold other pages than it says: the audit looks, and refuses."""
    crawl = Path(shutil.copytree(filtered.crawl.root, tmp_path / "crawl"))
    path = crawl / SNAPSHOT / "pages.cdxj"
    lines = [line.split(" ", 2) for line in path.read_text().splitlines()]
    places = [json.loads(said) for *_, said in lines]
    moved = [
        said | {name: other[name] for name in ("offset", "length")}
        for said, other in zip(places, places[1:] + places[:1], strict=True)
    ]
    path.write_text(
        "".join(
            f"{key} {time} {json.dumps(said)}\n"
            for (key, time, _), said in zip(lines, moved, strict=True)
        )
    )
    with pytest.raises(
        CheckFailed,
        match="records_hold_the_pages_they_should: 20 records fetched again: 20 hold another page",
    ):
        stage_named("html_index").build(over(filtered, tmp_path, crawl, index="cdxj"), SNAPSHOT)


def test_what_cannot_be_meant_is_said(filtered, tmp_path):
    with pytest.raises(BadInput, match="set LC_CRAWL"):
        stage_named("html_index").build(replace(filtered, crawl=None), SNAPSHOT)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="no files of crawl 2023-06: neither a list"):
        stage_named("html_index").build(over(filtered, tmp_path, tmp_path / "empty"), SNAPSHOT)
    for lies in (b"../../etc/passwd\n", b"/etc/passwd\n", b"https://b.org/x.warc.gz\n"):
        place = tmp_path / "listed" / SNAPSHOT
        place.mkdir(parents=True, exist_ok=True)
        (place / "warc.paths.gz").write_bytes(gzip.compress(lies))
        with pytest.raises(CorruptFile, match="not a path below the crawl's root"):
            stage_named("html_index").build(over(filtered, tmp_path, tmp_path / "listed"), SNAPSHOT)
    for settings in ('index = "cdxj"', '[page_links]\nextractor = "paper"'):
        with pytest.raises(BadInput, match=r"links_from = wat with (html_index.index|page_links)"):
            parse_recipe(f'[html_index]\nlinks_from = "wat"\n{settings}\n', where="x")


def test_a_build_killed_here_and_there_goes_on(filtered, crowded, tmp_path):
    """Whenever it dies, nothing half is published, and the next run ends with the same bytes."""
    whole = (
        stage_named("html_index")
        .build(over(filtered, tmp_path / "whole", crowded.root), SNAPSHOT)
        .published
    )
    context = over(filtered, tmp_path, crowded.root)
    partition = context.lake.partition("html_index", SNAPSHOT)
    with Killer(context) as killer:
        last = killer.count("html_index", SNAPSHOT)
        for kill_at in (5, last // 2, last - 1):
            shutil.rmtree(partition.folder)
            assert killer.kill("html_index", SNAPSHOT, kill_at)
            now = partition.current() if partition.folder.exists() else None
            assert now is None or now.digest == whole.digest
            assert (
                stage_named("html_index").build(context, SNAPSHOT).published.digest == whole.digest
            )
            assert not [*partition.folder.rglob(".staging-*"), *partition.folder.rglob(".scratch")]


@pytest.fixture(scope="module")
def stood(filtered, crowded, tmp_path_factory) -> tuple[BuildContext, Built]:
    context = over(filtered, tmp_path_factory.mktemp("stood"), crowded.root)
    return context, stage_named("html_index").build(context, SNAPSHOT)


def edit(path: Path, name: str, change) -> None:
    table = pq.read_table(path)
    place = table.schema.get_field_index(name)
    pq.write_table(
        table.set_column(place, table.schema.field(name), [change(table[name].to_pylist())]), path
    )


def extra(check_input: CheckInput, **counts: int) -> CheckInput:
    named = {name.replace("_", " "): count for name, count in counts.items()}
    return replace(
        check_input,
        counts=msgspec.structs.replace(check_input.counts, extra=check_input.counts.extra | named),
    )


def lose_a_line(check_input: CheckInput) -> CheckInput:
    path = next(path for path in index_files(check_input.folder) if pq.read_table(path).num_rows)
    pq.write_table(pq.read_table(path).slice(1), path)
    return check_input


def spoil_first(name: str, value):
    def spoil(check_input: CheckInput) -> CheckInput:
        path = next(
            path for path in index_files(check_input.folder) if pq.read_table(path).num_rows > 1
        )
        edit(path, name, lambda values: [value, *values[1:]])
        return check_input

    return spoil


def repeat_an_id(check_input: CheckInput) -> CheckInput:
    path = next(
        path for path in index_files(check_input.folder) if pq.read_table(path).num_rows > 1
    )
    edit(path, "id", lambda ids: [ids[1], *ids[1:]])
    return check_input


def lose_an_archive(check_input: CheckInput) -> CheckInput:
    edit(check_input.folder / FILES_TABLE, "path", lambda paths: [f"{path}.gone" for path in paths])
    return check_input


def see_one_more(check_input: CheckInput) -> CheckInput:
    counts = check_input.counts
    return replace(
        check_input,
        counts=msgspec.structs.replace(counts, seen=counts.seen + 1, kept=counts.kept + 1),
    )


def drop_for_another_reason(check_input: CheckInput) -> CheckInput:
    counts = check_input.counts
    dropped = {
        "lost" if reason == "no capture" else reason: count
        for reason, count in counts.dropped.items()
    }
    return replace(check_input, counts=msgspec.structs.replace(counts, dropped=dropped))


SPOILS = [
    ("reads_all_upstream_documents", see_one_more),
    ("the_index_adds_up", lose_a_line),
    ("the_index_adds_up", drop_for_another_reason),
    ("the_index_adds_up", lambda check_input: extra(check_input, captures=1)),
    ("every_place_is_in_the_crawl", spoil_first("id", "../../etc/passwd")),
    ("every_place_is_in_the_crawl", spoil_first("url", "https://elsewhere.org/")),
    ("every_place_is_in_the_crawl", spoil_first("page_key", "elsewhere.org")),
    ("every_place_is_in_the_crawl", spoil_first("captured_url", "https://elsewhere.org/")),
    ("every_place_is_in_the_crawl", spoil_first("filename", "../x.warc.gz")),
    ("every_place_is_in_the_crawl", spoil_first("filename", "another.warc.gz")),
    ("every_place_is_in_the_crawl", spoil_first("offset", -1)),
    ("every_place_is_in_the_crawl", spoil_first("length", 0)),
    ("every_place_is_in_the_crawl", spoil_first("timestamp", "2023")),
    ("every_place_is_in_the_crawl", repeat_an_id),
    ("every_place_is_in_the_crawl", lose_an_archive),
    (
        "records_hold_the_pages_they_should",
        lambda check_input: extra(check_input, records_of_another_page=1),
    ),
    (
        "records_hold_the_pages_they_should",
        lambda check_input: extra(check_input, records_that_hold_no_page=20),
    ),
    (
        "records_hold_the_pages_they_should",
        lambda check_input: extra(check_input, records_looked_at_again=0),
    ),
]


@pytest.mark.parametrize(
    ("claim", "spoil"),
    SPOILS,
    ids=[f"{claim}-{number}" for number, (claim, _) in enumerate(SPOILS)],
)
def test_a_claim_says_when_it_does_not_hold(stood, tmp_path, claim, spoil):
    """Each way of being wrong is found by the claim that is there to find it, and was not there
    before.
    """
    context, built = stood
    test = {found.__name__: found for found in STAGE.checks}[claim]
    folder = Path(shutil.copytree(built.published.folder, tmp_path / "copy"))
    check_input = replace(check_input_of(context.lake, built.published), folder=folder)
    assert test(check_input).passed
    found = run_check(test, spoil(check_input))
    assert not found.passed
    assert found.check == claim
    assert found.message


def test_every_claim_is_put_to_this_test():
    assert {claim for claim, _ in SPOILS} == {claim.__name__ for claim in STAGE.checks}


def test_common_crawls_own_layout_is_read(filtered, crowded, tmp_path):
    """Lists win over what lies in a folder; an index names archives by paths below the root; other
    files are passed over.
    """
    listed = with_lists(crowded.root, tmp_path / "listed")
    place = listed / f"crawl-data/CC-MAIN-{SNAPSHOT}/cc-index.paths.gz"
    paths = (
        gzip.decompress(place.read_bytes()).decode()
        + f"cc-index/collections/CC-MAIN-{SNAPSHOT}/indexes/cluster.idx\n"
    )
    place.write_bytes(gzip.compress(paths.encode()))
    (listed / SNAPSHOT / "stray.cdxj").write_bytes(b"z\na\n")
    built = stage_named("html_index").build(
        over(filtered, tmp_path, listed, index="cdxj"), SNAPSHOT
    )
    plainly = stage_named("html_index").build(
        over(filtered, tmp_path / "plain", crowded.root, index="cdxj"), SNAPSHOT
    )
    assert index_of(built) == index_of(plainly)
    files = read_table(built.published.folder / FILES_TABLE).to_pylist()
    assert {line["kind"] for line in files} == {"warc", "cdxj"}
    assert all((line["identity"] is None) == (line["kind"] == "warc") for line in files)
    assert len(list(itertools.chain(index_files(built.published.folder)))) == 3
    assert isinstance(page_at(Upstream(str(listed)), *_spot(index_of(built)[0])), HtmlPage)
