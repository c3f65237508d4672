"""What pages point at: read out of the records that the index names, in every way, counted,
audited, the same for any workers.
"""

import functools
import gzip
import json
from dataclasses import replace

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.building import (
    audit,
    check_input_of,
)
from lc_assets.builds.settings.longpack import LongPackSettings, PageLinkSettings
from lc_assets.builds.shard_runs import compute
from lc_assets.builds.tables import read_all, read_lines, read_table
from lc_assets.errors import BadInput, NotPublished
from lc_assets.execution.containment import contained
from lc_assets.execution.executor import TaskPolicy
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.archives.fetching import HtmlPage
from lc_assets.formats.archives.writing import FetchedPage, write_pages
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.file_lakes import build_for, context_over_files
from lc_assets.stages.links import page_linking, page_links
from lc_assets.stages.links.html_index import INDEX_SUFFIX
from lc_assets.stages.links.link_tables import PAGE_LINKS
from lc_assets.stages.links.page_linking import LINKS, NO_ROOT, PAGES_AT_ONCE, TARGETS
from lc_assets.text.html.guard import TOO_DEEP, TOO_MANY_ATTRIBUTES
from lc_assets.text.links.links import LINKS_IN_LINKS, page_links as page_links_of
from lc_assets.text.links.page_keys import page_key
from lc_assets_tests.builders import SNAPSHOTS, tiny_context
from lc_assets_tests.reference.pages import extract_links, targets

OLD = SNAPSHOTS[0]
BEFORE = ("raw_snapshot", "filtered_documents", "html_index")
WANTED = LongPackSettings(wanted=True)


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """A context whose crawl is indexed."""
    made = tiny_context(tmp_path_factory.mktemp("page-links"), longpack_documents=WANTED)
    for name in BEFORE:
        stage_named(name).build(made, OLD)
    return made


@pytest.fixture(scope="module")
def built(context):
    return stage_named("page_links").build(context, OLD)


def test_its_receipt_names_the_draw_of_roots(context, built):
    said = (
        f"blake2b-64-le, seed {context.recipe.longpack_documents.seed}, purpose 'longpack "
        "root', key page key"
    )
    assert built.published.receipt.randomness == {"roots": said}


def test_its_receipt_names_what_read_the_pages(built):
    """Parsers and settings: another of them gives other links."""
    receipt = built.published.receipt
    assert {"ada-url", "fastwarc", "resiliparse", "selectolax"} <= receipt.libraries.keys()
    assert receipt.fingerprint.params["extractor"] == "html5"
    assert int(receipt.fingerprint.code_version) >= 3  # refuses pages by the depths of all tags


def lines_of(published):
    return read_all(page_links.page_links_files(published.folder), PAGE_LINKS).to_pylist()


def html_by_url(context):
    """The crawl's pages, read by other means: gzip and the heads of records."""
    found = {}
    for path in sorted((context.lake.root.parent / "upstream" / "crawl" / OLD).glob("*.warc.gz")):
        for record in gzip.decompress(path.read_bytes()).split(b"WARC/1.")[1:]:
            head, _, rest = record.partition(b"\r\n\r\n")
            if b"WARC-Type: response" in head:
                (url,) = (
                    line.split(b": ", 1)[1].strip(b"<> \r")
                    for line in head.splitlines()
                    if line.startswith(b"WARC-Target-URI")
                )
                found[url.decode()] = rest.partition(b"\r\n\r\n")[2].decode("utf-8", "replace")
    return found


def test_every_page_has_the_targets_of_its_html(context, built):
    """Line by line, what `targets` makes of the page's own HTML and text."""
    pages = html_by_url(context)
    texts = {}
    for path in (context.lake.partition("filtered_documents", OLD).require().folder).glob(
        "*.documents.parquet"
    ):
        texts |= {
            line["id"]: line["raw_content"] for line in read_lines(path, ["id", "raw_content"])
        }
    index = [
        line
        for path in page_links.index_files(
            context.lake.partition("html_index", OLD).require().folder
        )
        for line in read_lines(path)
    ]
    found = {}
    for line in lines_of(built.published):
        found.setdefault(line["id"], []).append(line)
    assert len(index) == built.counts.kept > 10
    n_links = 0
    for page in index:
        html = pages[page["captured_url"]]
        base = html.partition('<base href="')[2].partition('"')[0]
        links = extract_links(html)
        n_links += len(links)
        wanted = targets(links, page["captured_url"], base=base, text=texts[page["id"]])
        ours = found.get(page["id"], [])
        assert [
            (line["target_key"], line["keys"], line["position"], line["in_text"]) for line in ours
        ] == [(target.key, target.keys, target.position, target.in_text) for target in wanted]
        assert {line["page_key"] for line in ours} <= {page["page_key"]}
    assert n_links == built.counts.extra[LINKS]
    assert sum(map(len, found.values())) == built.counts.extra[TARGETS]


def test_links_lead_to_other_documents_of_the_crawl(context, built):
    """Relative links among them: most targets of the made-up crawl are pages of it."""
    lines = lines_of(built.published)
    known = {page_key(url) for url in html_by_url(context)}
    assert sum(line["target_key"] in known for line in lines) > len(lines) / 2


def other(context, tmp_path, **changes):
    """The same inputs, another lake for what is made of them."""
    for name in BEFORE:
        (tmp_path / "lake").mkdir(exist_ok=True)
        (tmp_path / "lake" / name).symlink_to(context.lake.root / name)
    return replace(context, lake=Lake(tmp_path / "lake"), **changes)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_bytes_for_any_number_of_workers_and_batches(
    context, built, tmp_path, workers, monkeypatch
):
    if workers == 1:
        monkeypatch.setattr("lc_assets.stages.links.page_linking.PAGES_AT_ONCE", 3)
    again = stage_named("page_links").build(
        other(context, tmp_path, executor=LocalExecutor(workers=workers)), OLD
    )
    assert again.published.digest == built.published.digest
    assert PAGES_AT_ONCE > 3


def test_only_roots_are_looked_at_unless_packing_goes_on(context, built, tmp_path):
    """A share of the pages, the others counted; with a depth of two, or where portals are dropped,
    all of them again.
    """
    few = msgspec.structs.replace(
        context.recipe,
        longpack_documents=LongPackSettings(wanted=True, roots=0.4, portals="keep"),
    )
    some = stage_named("page_links").build(other(context, tmp_path, recipe=few), OLD)
    assert 0 < some.counts.kept < built.counts.kept
    assert some.counts.dropped == {NO_ROOT: built.counts.kept - some.counts.kept}
    looked_at = {line["id"] for line in lines_of(some.published)}
    assert looked_at < {line["id"] for line in lines_of(built.published)}
    for setting in ({"depth": 2, "portals": "keep"}, {"portals": "drop"}):
        deep = LongPackSettings(wanted=True, roots=0.4, **setting)
        recipe = msgspec.structs.replace(context.recipe, longpack_documents=deep)
        found = stage_named("page_links").build(replace(context, recipe=recipe), OLD)
        assert found.published.digest == built.published.digest


def test_the_papers_extractor_resolves_nothing(context, built, tmp_path):
    paper = msgspec.structs.replace(context.recipe, page_links=PageLinkSettings(extractor="paper"))
    found = stage_named("page_links").build(other(context, tmp_path, recipe=paper), OLD)
    assert found.counts.extra["links left out: relative address"] > 0
    assert found.counts.extra[TARGETS] < built.counts.extra[TARGETS]


def test_without_an_index_or_a_crawl_it_says_so(context, tmp_path):
    with pytest.raises(NotPublished, match="html_index"):
        stage_named("page_links").build(replace(context, lake=Lake(tmp_path)), OLD)
    with pytest.raises(BadInput, match="LC_CRAWL"):
        stage_named("page_links").build(other(context, tmp_path, crawl=None), OLD)


def _rewrite(path, change):
    table = pq.read_table(path)
    pq.write_table(change(table), path)


def _set(column, value):
    def change(table):
        values = table[column].to_pylist()
        values[0] = value(table.slice(0, 1).to_pylist()[0])
        return table.set_column(
            table.schema.get_field_index(column),
            table.schema.field(column),
            pa.array(values, table.schema.field(column).type),
        )

    return change


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        ("the_links_add_up", lambda table: table.slice(1)),
        ("the_links_add_up", _set("n_links", lambda line: line["n_links"] + 1)),
        ("the_links_add_up", _set("target_key", lambda line: line["page_key"])),
        (
            "pages_and_targets_have_their_keys",
            _set("target_url", lambda _: "https://elsewhere.invalid/x"),
        ),
        (
            "pages_and_targets_have_their_keys",
            _set("id", lambda line: line["id"].replace("0/", "1/")),
        ),
    ],
)
def test_a_spoilt_table_is_found(context, built, claim, change):
    (path, *_) = [
        path
        for path in page_links.page_links_files(built.published.folder)
        if read_table(path).num_rows
    ]
    whole = path.read_bytes()
    try:
        _rewrite(path, change)
        findings = {
            finding.check: finding.passed
            for finding in audit(page_links.STAGE, check_input_of(context.lake, built.published))
        }
    finally:
        path.write_bytes(whole)
    assert not findings[claim]


def lines_in(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def listed(sources, out, executor=None, **settings):
    """What ``lc links`` builds, by stage, and the lines of JSON."""
    context = context_over_files(
        sources,
        out,
        executor=executor or LocalExecutor(workers=1),
        settings={"page_links": PageLinkSettings(**settings)},
        together=True,
    )
    built = {
        stage: next(iter(found.values()))
        for stage, found in build_for(context, "page_links").items()
    }
    files = sorted(built["page_links"].published.folder.glob(f"*{page_linking.LISTS_SUFFIX}"))
    lines = [line for path in files for line in lines_in(path)]
    return built["html_index"], built["page_links"], lines


def test_archives_are_listed_as_they_are(context, tmp_path):
    """`lc links`: one line per page, addresses and texts as written; records add up."""
    crawl = context.lake.root.parent / "upstream" / "crawl" / OLD
    _, found, lines = listed([crawl], tmp_path / "out", lists="links")
    pages = html_by_url(context)
    assert len(lines) == found.counts.kept > 10
    assert {line["url"]: line["html5"] for line in lines} == {
        line["url"]: [[link.href, link.text] for link in extract_links(pages[line["url"]])]
        for line in lines
    }
    assert sum(len(line["html5"]) for line in lines) == found.counts.extra[LINKS]


def test_targets_are_listed_as_the_table_has_them(context, tmp_path):
    crawl = context.lake.root.parent / "upstream" / "crawl" / OLD
    _, found, lines = listed([crawl], tmp_path / "out", lists="targets")
    assert sorted(target["key"] for line in lines for target in line["targets"]) == sorted(
        line["target_key"] for line in lines_of(found.published)
    )


def test_lists_of_a_manual_are_those_that_were_published(shared_data, tmp_path):
    """Byte for byte, out of the archive; and what most pages of the host point at."""
    hyperlinked = shared_data / "hyperlinked"
    archive = hyperlinked / "warc" / "sqlitedoc.warc.gz"
    _, _, ours = listed([archive], tmp_path, extractor="paper", lists="links")
    published = lines_in(hyperlinked / "links_sqlitedoc.jsonl.gz")
    assert {line["url"]: line["paper_regex"] for line in ours} == {
        line["url"]: line["paper_regex"] for line in published
    }
    index, found, _ = listed([archive], tmp_path)
    most = page_links.most_pointed_at(found.published, index.published, 10)
    assert {line["page"] for line in most} >= {
        "sqlite.org",
        "sqlite.org/about.html",
        "sqlite.org/download.html",
    }
    assert all(0.9 < line["share"] <= 1 for line in most[:7])


HOSTILE = {
    TOO_DEEP: "<div>" * 2000,
    TOO_MANY_ATTRIBUTES: "<p " + "a " * 2000 + ">",
    LINKS_IN_LINKS: "<p>Words.</p><svg>" + "<a href=x>" * 300 + "y" * 400_000,
}


def crawl_of(tmp_path, pages):
    """An archive of pages, each of its own address."""
    fetched = [
        FetchedPage(url=f"http://example.org/{number}", html=html, date="2023-02-01T00:00:00Z")
        for number, html in enumerate(pages)
    ]
    write_pages(tmp_path / "hostile.warc.gz", fetched, filename="hostile.warc.gz")
    return tmp_path / "hostile.warc.gz"


def test_hostile_pages_are_counted_by_what_they_are(tmp_path):
    """They have no links, and their neighbours have theirs; an archive's pages and others make its
    records.
    """
    archive = crawl_of(
        tmp_path, ["<a href=0>x</a>", *HOSTILE.values(), "<a href=0>home</a><a href=9>y</a>"]
    )
    index, found, lines = listed([archive], tmp_path / "out", lists="links")
    assert index.counts.extra["records read"] == len(HOSTILE) + 3
    assert found.counts.dropped == {LINKS_IN_LINKS: 1}
    assert [line["html5"] for line in lines] == [[["0", "x"]], [["0", "home"], ["9", "y"]]]
    most = page_links.most_pointed_at(found.published, index.published, 10)
    assert [(line["page"], line["pages"], line["keys"]) for line in most] == [
        ("example.org/0", 1, "home"),
        ("example.org/9", 1, "y"),
    ]


@pytest.mark.parametrize("why", HOSTILE)
def test_a_hostile_page_of_the_chain_is_counted(why):
    page = HtmlPage(url="http://example.org/", html=HOSTILE[why])
    assert page_linking._links_of(page, "html5") == why
    assert page_linking._links_of(page, "paper") == page_links_of(HOSTILE[why], "paper")


ENDLESS = "<p>Endless"


@contained
def find_links_endlessly(task):
    """Read the links of a task's pages, of one of them for ever; runs in a worker."""

    def read(html, extractor):
        while html == ENDLESS:
            pass
        return page_links_of(html, extractor)

    page_linking.page_links = read
    return page_linking.find_links(task)


def test_a_page_of_the_chain_that_takes_too_long_is_skipped_and_counted(tmp_path):
    """The worker that has it is killed; its neighbours have their lines, as without it."""
    pages = [
        FetchedPage(url=f"http://example.org/{number}", html=html, date="2023-02-01T00:00:00Z")
        for number, html in enumerate(["<a href=8>x</a>", ENDLESS, "<a href=9>y</a>"])
    ]
    captures = write_pages(tmp_path / "crawl.warc.gz", pages, filename="crawl.warc.gz")
    lines = [
        {
            "id": str(number),
            "page_key": f"example.org/{number}",
            "captured_url": capture.url,
            "filename": "crawl.warc.gz",
            "offset": capture.offset,
            "length": capture.length,
        }
        for number, capture in enumerate(captures)
    ]
    pq.write_table(pa.Table.from_pylist(lines), tmp_path / f"a{INDEX_SUFFIX}")
    texts = [{"id": line["id"], "raw_content": "text"} for line in lines]
    pq.write_table(pa.Table.from_pylist(texts), tmp_path / "a.documents.parquet")
    task = page_linking.LinksTask(
        crawl=Upstream(str(tmp_path)),
        index=tmp_path / f"a{INDEX_SUFFIX}",
        documents=tmp_path / "a.documents.parquet",
        folder=tmp_path / "out",
        source="warc",
        settings=PageLinkSettings(),
        seed=0,
        share=1.0,
    )
    executor = LocalExecutor(policy=TaskPolicy(document_seconds=2))
    function = functools.partial(compute, find_links_endlessly, (page_linking.LINKS_SUFFIX,))
    ((_, done),) = executor.run(function, [task], what="links")
    assert done.counts.dropped == {"skipped: took more than 2 s": 1}
    found = read_all(page_links.page_links_files(tmp_path / "out"), PAGE_LINKS).to_pylist()
    assert [line["target_key"] for line in found] == ["example.org/8", "example.org/9"]


def test_only_archives_are_listed(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n')
    with pytest.raises(BadInput, match="WARC"):
        listed([tmp_path / "a.jsonl"], tmp_path / "out")
