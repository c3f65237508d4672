"""LongPack outside of a lake: archives and pages in, lines of JSON out; the paper byte for byte,
pages conserved, real manuals.
"""

import gzip
import json
import shutil

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from lc_assets.build.settings.longpack import LongPackSettings
from lc_assets.build.tables import read_lines
from lc_assets.errors import BadInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.archives.writing import FetchedPage, write_pages
from lc_assets.packing.longpack import ROOT_LINE
from lc_assets.stages.longpack.outside import Crawl, pack_crawl
from lc_assets.text.links.page_keys import page_key
from lc_assets_tests.builders import WORDS
from lc_assets_tests.reference import longpack_paper

N_PAGES = 24
PAPER = LongPackSettings(
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
    lines = [{"url": url, "text": text} for url, text in texts.items()]
    lines += [
        {"url": "no address", "text": "x"},
        {"url": url_of(3), "text": "again"},
        {"url": url_of(40), "text": "  "},
    ]
    (folder / "pages.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
    )
    return folder, html, texts


def packed(crawl, out, *, with_pages=True, workers=1, **settings):
    shutil.rmtree(out, ignore_errors=True)
    more = {name: settings.pop(name) for name in ("rest", "extractor") if name in settings}
    pages = [crawl[0] / "pages.jsonl.gz"] if with_pages else []
    given = msgspec.structs.replace(PAPER, **settings)
    outcome = pack_crawl(
        Crawl(
            archives=[crawl[0]],
            pages=pages,
            out=out,
            settings=given,
            executor=LocalExecutor(workers=workers),
            **more,
        )
    )
    return outcome, {line["id"]: line for line in lines_of(out / "documents")}


def lines_of(folder):
    return [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl.gz"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]


def test_the_pseudo_code_byte_for_byte_from_archives(crawl, tmp_path):
    """The paper's expressions over real archives, the paper's layout: every document is what
    appendix D's loop makes of it.
    """
    _, html, texts = crawl
    outcome, found = packed(crawl, tmp_path / "out", extractor="paper")
    plain = {page_key(url): longpack_paper.longpack(texts[url], url, html, texts) for url in texts}
    assert {name: line["text"] for name, line in found.items()} == {
        name: text for name, text in plain.items() if not text.startswith(ROOT_LINE)
    }
    assert outcome.packed.kept == len(found) > N_PAGES / 2


def test_spans_tables_and_lines_agree(crawl, tmp_path):
    _, _, texts = crawl
    outcome, found = packed(crawl, tmp_path, paper_exact=False, depth=2, max_tokens=400)
    spans = pq.read_table(tmp_path / "spans.parquet").to_pylist()
    assert [
        {name: value for name, value in span.items() if name not in ("id", "part")}
        for span in spans
    ] == [span for line in found.values() for span in line["spans"]]
    for line in found.values():
        for span in line["spans"]:
            part = line["text"][span["start"] : span["stop"]]
            assert part == (
                f"{ROOT_LINE}{texts[span['url']]}"
                if span["role"] == "root"
                else f"{span['keys']}\n{texts[span['url']]}\n\n"
            )
        assert line["n_tokens"] == sum(span["n_tokens"] for span in line["spans"])
    assert len(list(read_lines(tmp_path / "claims.parquet"))) == outcome.links.kept
    assert {span["depth"] for span in spans} == {0, 1, 2}
    assert not (tmp_path / ".longpack").exists()


def test_consumed_pages_and_the_rest_are_all_pages_once(crawl, tmp_path):
    _, _, texts = crawl
    outcome, found = packed(
        crawl, tmp_path, paper_exact=False, mode="consume", repetitions=1, roots=0.6, rest=True
    )
    inside = [span["url"] for line in found.values() for span in line["spans"]]
    rest = [line["url"] for line in lines_of(tmp_path / "rest")]
    assert sorted(inside + rest) == sorted(texts)
    assert rest
    assert sum(count.n_tokens for count in outcome.together) == sum(
        count.n_tokens for count in outcome.before
    )
    assert sum(count.n_docs for count in outcome.together) == len(rest) + len(found)


def test_what_is_read_is_counted(crawl, tmp_path):
    """Pages: one without address, one without text, one address twice. Archives: a first record
    each, two captures of one page.
    """
    outcome, found = packed(crawl, tmp_path)
    assert (outcome.pages.seen, outcome.pages.kept) == (N_PAGES + 3, N_PAGES)
    assert outcome.pages.dropped == {
        "no address of the web": 1,
        "no text": 1,
        "address met elsewhere": 1,
    }
    assert (outcome.archives.seen, outcome.archives.kept) == (N_PAGES + 3, N_PAGES + 1)
    assert "old" not in [span["keys"] for line in found.values() for span in line["spans"]]
    assert found[page_key(url_of(3))]["text"].endswith(crawl[2][url_of(3)])
    assert json.loads((tmp_path / "summary.json").read_text())["packed"]["kept"] == len(found)


def test_without_cleaned_pages_texts_come_from_the_archives(crawl, tmp_path):
    outcome, found = packed(crawl, tmp_path, with_pages=False, paper_exact=False)
    assert outcome.pages.kept == N_PAGES
    assert outcome.pages.dropped == {"warcinfo record": 2, "address met elsewhere": 1}
    one = found[page_key(url_of(5))]
    assert crawl[2][url_of(5)] in one["text"]


def test_other_files_and_orders_give_the_same_documents(crawl, tmp_path):
    """Pages backwards in several files, archives by other names: the same documents."""
    settings = {"paper_exact": False, "mode": "consume", "repetitions": 1, "max_tokens": 300}
    outcome, found = packed(crawl, tmp_path / "plain", **settings)
    other = tmp_path / "other"
    other.mkdir()
    for name, new in (("one", "z"), ("two", "a")):
        shutil.copy(crawl[0] / f"{name}.warc.gz", other / f"{new}.warc.gz")
    lines = gzip.decompress((crawl[0] / "pages.jsonl.gz").read_bytes()).splitlines(keepends=True)
    kept = [line for line in lines if b'"again"' not in line][::-1]
    for number in range(3):
        (other / f"pages{number}.jsonl").write_bytes(b"".join(kept[number::3]))
    again = Crawl(
        archives=[other],
        pages=sorted(other.glob("*.jsonl")),
        out=tmp_path / "again",
        settings=outcome.settings,
        executor=LocalExecutor(),
    )
    moved = pack_crawl(again)
    assert {line["id"]: line for line in lines_of(tmp_path / "again/documents")} == found
    assert moved.growth == outcome.growth
    assert moved.links == outcome.links


def test_without_archives_there_are_no_links(crawl, tmp_path):
    with pytest.raises(BadInput, match="name WARC files"):
        pack_crawl(
            Crawl(
                archives=[crawl[0] / "pages.jsonl.gz"],
                pages=[],
                out=tmp_path,
                settings=PAPER,
                executor=LocalExecutor(),
            )
        )


def test_a_real_manual_grows_as_the_paper_says(shared_data, tmp_path):
    """Apache's manual, 244 pages: more repetitions give more hits, portals dropped fewer; every
    child is its cleaned page.
    """
    folder = shared_data / "hyperlinked"
    pages = gzip.decompress((folder / "pages_apachedoc.jsonl.gz").read_bytes()).splitlines()
    texts = {page_key(line["url"]): line["text"] for line in map(json.loads, pages)}
    found = {}
    for name, changes in {
        "1": {"repetitions": 1},
        "all": {},
        "filtered_documents": {"portals": "drop"},
        "consume": {"mode": "consume", "repetitions": 1},
    }.items():
        settings = msgspec.structs.replace(
            PAPER, **({"paper_exact": False, "roots": 0.3, "max_tokens": 131_072} | changes)
        )
        found[name] = pack_crawl(
            Crawl(
                archives=[folder / "warc/apachedoc.warc.gz"],
                pages=[folder / "pages_apachedoc.jsonl.gz"],
                out=tmp_path / name,
                settings=settings,
                executor=LocalExecutor(),
            )
        )
    hits = {name: outcome.growth.hit_rate for name, outcome in found.items()}
    assert hits["1"] <= hits["all"]
    assert hits["filtered_documents"] < hits["all"]
    assert found["filtered_documents"].links.kept < found["all"].links.kept
    assert found["1"].growth.mean_of_ratios > found["1"].growth.ratio_of_sums > 1
    consumed = found["consume"]
    assert sum(count.n_tokens for count in consumed.together) == sum(
        count.n_tokens for count in consumed.before
    )
    for line in lines_of(tmp_path / "consume/documents"):
        assert line["text"].endswith(ROOT_LINE + texts[line["id"]])
        for span in line["spans"][:-1]:
            assert (
                line["text"][span["start"] : span["stop"]]
                == f"{span['keys']}\n{texts[span['child_id']].strip()}\n\n"
            )
