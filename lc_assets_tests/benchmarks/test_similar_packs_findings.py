"""Are similar pages, packed, more of a long text than pages by chance? By referrals; run with
``-s`` to see the figures.

Packs of 49,152 tokens of the three manuals beside the checkout; pairs of mentions of one concept,
512 sentences apart or more, per token, in the mean of packs of 32K to 64K tokens. ``-m slow``
compares more ways of packing.
"""

import gzip
import json

import pyarrow.parquet as pq
import pytest

from lc_assets.builds.settings.longpack import (
    PackingSettings,
    ReferralReportSettings,
    SimilarSettings,
)
from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.stages.reports.document_sets import group_of
from lc_assets_tests.file_runs import run
from lc_assets_tests.named_draws import rng_for

MAX_TOKENS = 49_152


@pytest.fixture(scope="module")
def pages(shared_data):
    """Texts with their tokens, by manual."""
    files = sorted((shared_data / "hyperlinked").glob("pages_*.jsonl.gz"))
    lines = {
        file.name: [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
        for file in files
    }
    return {
        name: [(line["text"].strip(), line["gpt2_tokens"] + 2) for line in found]
        for name, found in lines.items()
    }, files


def by_chance(pages, folder, *, within_manuals):
    """Whole pages in random order, up to the limit; of one manual, or of all."""
    documents, room = [], 0
    groups = (
        pages.values() if within_manuals else [[page for found in pages.values() for page in found]]
    )
    for group in groups:
        room = 0
        for number in rng_for("pages by chance", seed=1).permutation(len(group)).tolist():
            text, n_tokens = group[number]
            if n_tokens > room:
                documents.append([])
                room = MAX_TOKENS
            documents[-1].append(text)
            room -= n_tokens
    folder.mkdir()
    (folder / "packs.jsonl").write_text(
        "".join(f"{json.dumps({'text': chr(10).join(texts)})}\n" for texts in documents)
    )
    return folder


def similar(files, folder, **similar):
    """Folder of the texts of rows of similar pages."""
    corpus = folder.with_name(f"{folder.name}-in")
    corpus.mkdir()
    for file in files:
        (corpus / file.name).symlink_to(file)
    settings = PackingSettings(
        wanted=True,
        row_tokens=MAX_TOKENS,
        similar=SimilarSettings(**similar),
        texts=True,
    )
    return (
        run(
            "packed_rows",
            [corpus],
            folder,
            packed_rows=settings,
            token_grid=GriddingSettings(heldout_fraction=0, row_tokens=1),
        )[0]
        / "texts"
    )


def far_pairs(folder):
    settings = ReferralReportSettings(wanted=True, sample=1 << 62)
    out = folder.with_name(f"{folder.name}-measured")
    report, _ = run("referral_report", [folder], out, referral_report=settings)
    figures = [
        line["figure"]
        for line in pq.read_table(report / "densities.parquet").to_pylist()
        if (line["length_group"], line["counted"]) == (group_of(MAX_TOKENS), "pairs")
    ]
    return figures[-1]


def test_similar_pages_refer_to_each_other_far_more_than_pages_by_chance(pages, tmp_path):
    texts, files = pages
    chance = far_pairs(by_chance(texts, tmp_path / "chance", within_manuals=False))
    packed = far_pairs(similar(files, tmp_path / "similar"))
    print(
        f"\npairs at 512 sentences and more, per token: by chance {chance:.3f}, three neighbours "
        f"{packed:.3f}"
    )
    assert packed > 2 * chance


@pytest.mark.slow
def test_ways_of_packing_similar_pages(pages, tmp_path):
    texts, files = pages
    found = {
        "one manual, by chance": far_pairs(
            by_chance(texts, tmp_path / "manual", within_manuals=True)
        ),
        "path": far_pairs(similar(files, tmp_path / "path", path=True)),
        **{
            f"{n} neighbours": far_pairs(similar(files, tmp_path / str(n), neighbours=n))
            for n in (1, 3, 8)
        },
        "3 neighbours, cosine 0.05 or more": far_pairs(
            similar(files, tmp_path / "alike", min_similarity=0.05)
        ),
    }
    print(
        "\npairs at 512 sentences and more, per token: "
        + ", ".join(f"{name} {pairs:.3f}" for name, pairs in found.items())
    )
    assert found["one manual, by chance"] < found["path"] < found["3 neighbours"]
