"""LongPack of files: archives and pages in, a lake out; the paper byte for byte, pages conserved,
real manuals.
"""

import gzip
import json
import shutil

import msgspec
import numpy as np
import pytest

from lc_assets.builds.checks import REST_SUFFIX, documents_files
from lc_assets.builds.settings.documents import RemovalSettings
from lc_assets.builds.settings.longpack import (
    HtmlIndexSettings,
    LongPackSettings,
    PageLinkSettings,
)
from lc_assets.builds.tables import read_lines
from lc_assets.errors import BadInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.archives.writing import FetchedPage, write_pages
from lc_assets.packing.longpack import ROOT_LINE
from lc_assets.stages.file_lakes import build_for, context_over_files
from lc_assets.stages.longpack.gathering import packed_documents_of
from lc_assets.stages.longpack.longpack_documents import spans_files
from lc_assets.stages.longpack.page_index import lengths_of, roots_tried
from lc_assets.text.links.page_keys import page_key
from lc_assets_tests.builders import WORDS
from lc_assets_tests.reference import longpack_paper

N_PAGES = 24
PAPER = LongPackSettings(
    wanted=True,
    untitled="first_line",
    mode="allow",
    repetitions=1000,
    portals="keep",
    same_language=False,
    paper_exact=True,
    max_tokens=10**6,
)


def url_of(number):
    return f"http://example{number % 3}.org/{number}/p.html"


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """Archives of pages that point at each other, two captures of one of them, and cleaned pages;
    HTML and texts by address.
    """
    folder = tmp_path_factory.mktemp("crawl")
    rng = np.random.default_rng(2)
    texts = {
        url_of(n): " ".join(
            WORDS[k] for k in rng.integers(len(WORDS), size=int(rng.integers(8, 50)))
        )
        for n in range(N_PAGES)
    }
    html = {}
    for number, url in enumerate(texts):
        others = [n for n in rng.permutation(N_PAGES + 3).tolist() if n != number][:6]
        links = [
            f'<li><a class="x" href="{url_of(n)}">{WORDS[n]} {k}</a>'
            for k, n in enumerate([*others, others[0]])
        ]
        html[url] = (
            f"<html><p>{texts[url]}</p><ul>{''.join(links)}<a href='/relative'>no</a></ul></html>"
        )
    old = FetchedPage(
        url_of(0),
        "2023-01-01T00:00:00Z",
        "<p>older</p><a class=x href='http://example1.org/1/p.html'>old</a>",
    )
    new = [FetchedPage(url, "2023-02-02T00:00:00Z", page) for url, page in html.items()]
    for name, some in (("one", [old, *new[: N_PAGES // 2]]), ("two", new[N_PAGES // 2 :])):
        write_pages(folder / f"{name}.warc.gz", some, filename=f"{name}.warc.gz")
    lines = [{"url": url, "text": text, "date": "2023-02-02"} for url, text in texts.items()]
    lines += [
        {"url": "no address", "text": "x"},
        {"url": url_of(3), "text": "again", "date": "2022"},
        {"url": url_of(40), "text": "  "},
    ]
    (folder / "pages.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
    )
    return folder, html, texts


def built_of(pages, archives, out, settings, *, workers=1, extractor="html5"):
    """What ``lc longpack`` builds, by stage."""
    context = context_over_files(
        pages,
        out,
        executor=LocalExecutor(workers=workers),
        settings={
            "html_index": HtmlIndexSettings(archives=tuple(map(str, archives))),
            "page_links": PageLinkSettings(extractor=extractor),
            "removed_documents": RemovalSettings(exact=("url",), prefer=("newest",)),
            "longpack_documents": settings,
        },
        together=True,
    )
    built = build_for(context, "longpack_documents")
    return {stage: next(iter(found.values())) for stage, found in built.items()}


def packed(crawl, out, *, with_pages=True, extractor="html5", **settings):
    """What was built, and the packed documents with their spans by page key."""
    shutil.rmtree(out, ignore_errors=True)
    pages, archives = (
        ([crawl[0] / "pages.jsonl.gz"], [crawl[0]]) if with_pages else (warcs_of(crawl[0]), [])
    )
    given = msgspec.structs.replace(PAPER, **settings)
    built = built_of(pages, archives, out, given, extractor=extractor)
    return built, documents_of(built)


def warcs_of(folder):
    return sorted(folder.glob("*.warc.gz"))


def documents_of(built):
    return {
        page_key(document["url"]): document | {"spans": spans}
        for path in documents_files(built["longpack_documents"].published.folder)
        for document, spans in packed_documents_of(path)
    }


def rest_of(built):
    folder = built["longpack_documents"].published.folder
    return [line for path in sorted(folder.glob(f"*{REST_SUFFIX}")) for line in read_lines(path)]


def growth_of(built):
    spans = spans_files(built["longpack_documents"].published.folder)
    return lengths_of(spans, n_roots=roots_tried(built["link_claims"].counts)).growth


def test_the_pseudo_code_byte_for_byte_from_archives(crawl, tmp_path):
    """The paper's expressions over real archives, the paper's layout: every document is what
    appendix D's loop makes of it.
    """
    _, html, texts = crawl
    built, found = packed(crawl, tmp_path / "out", extractor="paper")
    plain = {page_key(url): longpack_paper.longpack(texts[url], url, html, texts) for url in texts}
    assert {name: line["raw_content"] for name, line in found.items()} == {
        name: text for name, text in plain.items() if not text.startswith(ROOT_LINE)
    }
    assert built["longpack_documents"].counts.kept == len(found) > N_PAGES / 2


def test_spans_and_texts_agree(crawl, tmp_path):
    _, _, texts = crawl
    built, found = packed(crawl, tmp_path / "out", paper_exact=False, depth=2, max_tokens=400)
    for line in found.values():
        for span in line["spans"]:
            part = line["raw_content"][span["start"] : span["stop"]]
            assert part == (
                f"{ROOT_LINE}{texts[span['url']]}"
                if span["role"] == "root"
                else f"{span['keys']}\n{texts[span['url']]}\n\n"
            )
    spans = [span for line in found.values() for span in line["spans"]]
    assert {span["depth"] for span in spans} == {0, 1, 2}
    assert len(spans) - len(found) == built["link_claims"].counts.kept


@pytest.mark.parametrize("roots", [1.0, 0.4, 0.1])
def test_a_hub_is_one_for_any_share_of_roots(tmp_path, roots):
    """What every page of a host links to is no child, though few of them are roots."""
    pages = [
        FetchedPage(
            f"http://e.org/{n}",
            "2023-02-02T00:00:00Z",
            f"<title>t{n}</title><p>{WORDS[n]} page {n}. <a href=/0>the hub of it</a> "
            f"<a href=/{n % 39 + 1}>its neighbour {n}</a>",
        )
        for n in range(40)
    ]
    write_pages(tmp_path / "x.warc.gz", pages, filename="x.warc.gz")
    settings = LongPackSettings(wanted=True, roots=roots, mode="allow", same_language=False)
    found = documents_of(built_of([tmp_path / "x.warc.gz"], [], tmp_path / "out", settings))
    keys = [span["keys"] for document in found.values() for span in document["spans"]]
    assert any("its neighbour" in key for key in keys)
    assert "the hub of it" not in keys


def response(url, html, status="200 OK", *headers):
    """A record of what a server sent."""
    head = [f"HTTP/1.1 {status}", "Content-Type: text/html; charset=utf-8", *headers]
    body = ("\r\n".join(head) + "\r\n\r\n" + html).encode()
    fields = {
        "WARC-Type": "response",
        "WARC-Target-URI": url,
        "WARC-Date": "2023-02-03T04:05:06Z",
        "WARC-Record-ID": f"<urn:{url}>",
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(body)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return gzip.compress(f"WARC/1.0\r\n{lines}\r\n".encode() + body + b"\r\n\r\n", mtime=0)


def test_redirects_and_canonical_addresses_are_followed(tmp_path):
    """Links to an address that redirected, twice, or that a page of the host names as its own, lead
    to the page; to a page of another host that claims it they do not; on request none do.
    """
    links = {
        "moved": "http://b.org/old",
        "canonical": "http://c.org/true",
        "claimed": "http://d.org/mine",
        "endless": "http://e.org/1",
        "itself": "/me",
    }
    anchors = "".join(f"<a href='{url}'>{name}</a> " for name, url in links.items())
    pages = [
        response("http://a.org/", f"<link rel=canonical href=me><p>The root. {anchors}"),
        response("http://b.org/old", "", "301 Moved", "Location: /older"),
        response("http://b.org/older", "", "302 Found", "location: https://www.b.org/new"),
        response("http://b.org/new", "<p>Moved page."),
        response("http://c.org/copy", "<link rel='Canonical x' href='true'><p>Canonical page."),
        response("http://d2.org/x", "<link rel=canonical href='http://d.org/mine'><p>Thief."),
        response("http://e.org/1", "", "301 Moved", "Location: /2"),
        response("http://e.org/2", "", "301 Moved", "Location: /1"),
    ]
    (tmp_path / "x.warc.gz").write_bytes(b"".join(pages))
    for following, wanted in (
        ({}, ["moved", "canonical"]),
        ({"redirects": False}, ["canonical"]),
        ({"canonical": False}, ["moved"]),
    ):
        settings = LongPackSettings(
            wanted=True, portals="keep", same_language=False, mode="allow", **following
        )
        out = tmp_path / "-".join(["out", *following])
        built = built_of([tmp_path / "x.warc.gz"], [], out, settings)
        (found,) = documents_of(built).values()
        assert [span["keys"] for span in found["spans"]] == [*wanted, ""]
    assert built["link_claims"].counts.dropped["no such page"] == 4


def test_targets_are_searched_in_older_snapshots(tmp_path):
    """On request, a link that leads to no page of its snapshot leads to the newest older one, which
    stays where it is; every check passes.
    """
    links = "".join(f"<a href=/{name}>the {name} page</a> " for name in ("own", "old", "oldest"))
    crawls = {
        "y1": {"own": "An own page, first.", "old": "Oldish.", "oldest": "Oldest page."},
        "y2": {"own": "An own page, second.", "old": "Old page."},
        "y3": {"own": "An own page, third.", "": f"The root. {links}"},
        "y4": {"oldest": "A newer page."},
    }
    for name, texts in crawls.items():
        pages = [
            FetchedPage(f"http://a.org/{path}", "2023-02-02T00:00:00Z", f"<p>{text}")
            for path, text in texts.items()
        ]
        write_pages(tmp_path / f"{name}.warc.gz", pages, filename=f"{name}.warc.gz")
    found = {}
    for older in (False, True):
        context = context_over_files(
            warcs_of(tmp_path),
            tmp_path / f"out{older}",
            executor=LocalExecutor(),
            settings={
                "longpack_documents": LongPackSettings(
                    wanted=True, mode="allow", same_language=False, older_snapshots=older
                )
            },
        )
        built = build_for(context, "longpack_documents")
        (one,) = documents_of({"longpack_documents": built["longpack_documents"]["y3"]}).values()
        found[older] = [line.strip() for line in one["raw_content"].splitlines() if line.strip()]
        assert not any(built["longpack_documents"][key].counts.kept for key in ("y1", "y2", "y4"))
    own = ["the own page", "An own page, third."]
    old = ["the old page", "Old page.", "the oldest page", "Oldest page."]
    assert found[False][:2] == own
    assert found[True][:6] == own + old
    assert found[True][6:] == found[False][2:]


def test_consumed_pages_and_the_rest_are_all_pages_once(crawl, tmp_path):
    _, _, texts = crawl
    built, found = packed(
        crawl,
        tmp_path / "out",
        paper_exact=False,
        mode="consume",
        repetitions=1,
        roots=0.6,
        rest=True,
    )
    inside = [span["url"] for line in found.values() for span in line["spans"]]
    rest = [line["url"] for line in rest_of(built)]
    assert sorted(inside + rest) == sorted([*texts, "no address", url_of(40)])
    assert len(rest) > 1
    assert built["longpack_documents"].counts.extra["documents in none"] == len(rest)


def test_what_is_read_is_counted(crawl, tmp_path):
    """Pages: one without address, one without text, one address twice. Archives: a first record
    each, two captures of one page.
    """
    built, found = packed(crawl, tmp_path / "out")
    assert built["filtered_documents"].counts.seen == N_PAGES + 3
    assert built["html_index"].counts.dropped["no address of the web"] == 1
    assert built["removed_documents"].counts.dropped == {"same url": 1}
    extra = built["html_index"].counts.extra
    assert (extra["records read"], extra["captures"]) == (N_PAGES + 3, N_PAGES + 1)
    assert "old" not in [span["keys"] for line in found.values() for span in line["spans"]]
    assert found[page_key(url_of(3))]["raw_content"].endswith(crawl[2][url_of(3)])


def test_without_cleaned_pages_texts_come_from_the_archives(crawl, tmp_path):
    built, found = packed(crawl, tmp_path / "out", with_pages=False, paper_exact=False)
    assert built["filtered_documents"].counts.kept == N_PAGES + 1
    assert built["removed_documents"].counts.dropped == {"same url": 1}
    assert crawl[2][url_of(5)] in found[page_key(url_of(5))]["raw_content"]


def test_other_files_and_orders_give_the_same_documents(crawl, tmp_path):
    """Pages backwards in several files, archives by other names: the same documents."""
    settings = {"paper_exact": False, "mode": "consume", "repetitions": 1, "max_tokens": 300}
    built, found = packed(crawl, tmp_path / "plain", **settings)
    other = tmp_path / "other"
    other.mkdir()
    for name, new in (("one", "z"), ("two", "a")):
        shutil.copy(crawl[0] / f"{name}.warc.gz", other / f"{new}.warc.gz")
    lines = gzip.decompress((crawl[0] / "pages.jsonl.gz").read_bytes()).splitlines(keepends=True)
    kept = [line for line in lines if b'"again"' not in line][::-1]
    for number in range(3):
        (other / f"pages{number}.jsonl").write_bytes(b"".join(kept[number::3]))
    moved = built_of(
        sorted(other.glob("*.jsonl")),
        warcs_of(other),
        tmp_path / "again",
        msgspec.structs.replace(PAPER, **settings),
    )
    assert {name: line["raw_content"] for name, line in documents_of(moved).items()} == {
        name: line["raw_content"] for name, line in found.items()
    }
    assert growth_of(moved) == growth_of(built)


def test_without_archives_there_are_no_links(crawl, tmp_path):
    with pytest.raises(BadInput, match="name WARC files"):
        built_of([crawl[0] / "pages.jsonl.gz"], [], tmp_path / "out", PAPER)


def test_its_documents_and_the_rest_are_read_by_the_next_command(crawl, tmp_path):
    built, found = packed(crawl, tmp_path / "out", mode="consume", repetitions=1, rest=True)
    context = context_over_files(
        [tmp_path / "out"], tmp_path / "next", executor=LocalExecutor(), settings={}
    )
    (read,) = build_for(context, "filtered_documents")["filtered_documents"].values()
    assert read.counts.kept == len(found) + len(rest_of(built))


def test_a_real_manual_grows_as_the_paper_says(shared_data, tmp_path):
    """Apache's manual, 244 pages: more repetitions give more hits, portals dropped fewer; every
    child is its cleaned page.
    """
    folder = shared_data / "hyperlinked"
    source = folder / "pages_apachedoc.jsonl.gz"
    pages = gzip.decompress(source.read_bytes()).splitlines()
    texts = {line["url"]: line["text"] for line in map(json.loads, pages)}
    found = {}
    for name, changes in {
        "1": {"repetitions": 1},
        "all": {},
        "portals": {"portals": "drop"},
        "consume": {"mode": "consume", "repetitions": 1, "rest": True},
    }.items():
        settings = msgspec.structs.replace(
            PAPER, **({"paper_exact": False, "roots": 0.3, "max_tokens": 131_072} | changes)
        )
        archives = [folder / "warc/apachedoc.warc.gz"]
        found[name] = built_of([source], archives, tmp_path / "out", settings)
    growth = {name: growth_of(built) for name, built in found.items()}
    assert growth["1"].hit_rate <= growth["all"].hit_rate
    assert growth["portals"].hit_rate < growth["all"].hit_rate
    assert found["portals"]["link_claims"].counts.kept < found["all"]["link_claims"].counts.kept
    assert growth["1"].mean_of_ratios > growth["1"].ratio_of_sums > 1
    consumed = documents_of(found["consume"])
    inside = [span["url"] for line in consumed.values() for span in line["spans"]]
    assert sorted(inside + [line["url"] for line in rest_of(found["consume"])]) == sorted(texts)
    for line in consumed.values():
        assert line["raw_content"].endswith(ROOT_LINE + texts[line["url"]])
        for span in line["spans"][:-1]:
            assert (
                line["raw_content"][span["start"] : span["stop"]]
                == f"{span['keys']}\n{texts[span['url']].strip()}\n\n"
            )
