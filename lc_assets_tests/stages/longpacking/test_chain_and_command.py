"""The chain over a snapshot and the command's stages over files pack the same pages in the same
way: one set of rules, document by document.
"""

import json

import msgspec
import pytest

from lc_assets.builds.settings.longpack import HtmlIndexSettings, LongPackSettings
from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.execution.local import LocalExecutor
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.deduplication.removals import removed_in
from lc_assets.stages.file_lakes import build_for, context_over_files
from lc_assets.stages.longpack.longpack_documents import packed_documents
from lc_assets_tests.builders import CRAWL, tiny_context, tiny_upstream
from lc_assets_tests.faults import BEFORE_TOKENS, build_snapshot
from lc_assets_tests.link_builders import OLD, documents_of

SETTINGS = LongPackSettings(wanted=True, max_tokens=600, same_language=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the chain's lake is, beside its upstream."""
    folder = tmp_path_factory.mktemp("chain")
    tiny_upstream(folder / "upstream", snapshots=[OLD])
    return folder


def by_root(folder):
    """Text and parts of each packed document by the address of its root."""
    names = ("role", "url", "keys", "depth", "cluster", "start", "stop", "n_tokens")
    return {
        document["url"]: (
            document["raw_content"],
            [tuple(span[name] for name in names) for span in spans],
        )
        for document, spans in packed_documents(folder)
    }


def of_the_chain(folder, settings):
    """Documents that the chain packs, and the pages that it packs them from."""
    context = tiny_context(
        folder,
        upstream=folder / "upstream",
        longpack_documents=settings,
        token_grid=GriddingSettings(row_tokens=64, heldout_fraction=0),
    )
    stages = (*BEFORE_TOKENS, "html_index", "page_links", "link_claims", "longpack_documents")
    build_snapshot(
        context, OLD, [name for name in stages if stage_named(name).wanted(context.recipe)]
    )
    lake = context.lake
    inputs = {f"removed_documents/{OLD}": lake.partition("removed_documents", OLD).require()}
    removed = set().union(*removed_in(inputs, OLD).values())
    pages = [line for line in documents_of(lake) if line["id"] not in removed]
    return by_root(lake.partition("longpack_documents", OLD).require().folder), pages


def of_the_command(folder, pages, archives, settings):
    """Documents that ``lc longpack`` packs of the pages, which it gets in another order."""
    fields = {"url": "url", "raw_content": "text", "language": "language", "title": "title"}
    lines = [json.dumps({new: page[old] for old, new in fields.items()}) for page in pages]
    folder.mkdir()
    for number in range(2):
        (folder / f"{number}.jsonl").write_text("\n".join(lines[number::2][::-1]))
    context = context_over_files(
        [folder],
        folder.with_name("out"),
        executor=LocalExecutor(),
        settings={
            "html_index": HtmlIndexSettings(archives=(str(archives),)),
            "longpack_documents": settings,
        },
        together=True,
    )
    (built,) = build_for(context, "longpack_documents")["longpack_documents"].values()
    return by_root(built.published.folder)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"mode": "allow", "roots": 0.4, "repetitions": 2},
        {"portals": "keep", "depth": 2, "seed": 3},
    ],
    ids=str,
)
def test_chain_and_command_pack_the_same_documents(folder, tmp_path, changes):
    """Roots, order of pages, texts, spans and tokens."""
    settings = msgspec.structs.replace(SETTINGS, **changes)
    chain, pages = of_the_chain(folder, settings)
    archives = folder / "upstream" / CRAWL / OLD
    command = of_the_command(tmp_path / "pages", pages, archives, settings)
    assert command == chain
    assert len(chain) > 3
