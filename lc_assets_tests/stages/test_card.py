"""The data-set card: complete, true, the same each time, and unmoved by what pages and settings
hold.
"""

import base64
import json
import re
from dataclasses import replace

import lxml.etree
import lxml.html
import msgspec
import pytest
import yaml
from markdown_it import MarkdownIt

from lc_assets.builds.building import (
    audit,
    check_input_of,
)
from lc_assets.builds.inputs import inputs_of
from lc_assets.builds.recipe_files import parse_recipe
from lc_assets.builds.settings.common import CardSettings, SourceTerms
from lc_assets.builds.showing import cell
from lc_assets.errors import BadInput, Mismatch
from lc_assets.lake.lake import Lake
from lc_assets.lake.receipts import decode_json
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.planning import plan
from lc_assets.stages.reports import data_set_card as card
from lc_assets.stages.reports.data_sheet import Sheet, sheet_of
from lc_assets_tests.builders import SNAPSHOTS, build_all, tiny_lake

CARD = "data_set_card"

HOSTILE = (
    "a|b\n\n# head <script>alert(1)</script> ![x](http://evil.invalid/x.png) `c` "
    "[l](javascript:x) ](("
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return tiny_lake(tmp_path_factory.mktemp("card"))


@pytest.fixture(scope="module")
def published(lake):
    return lake.built["data_set_card/all"].published


@pytest.fixture(scope="module")
def sheet(published):
    return decode_json(published.folder / card.SHEET, Sheet)


def inputs_of_card(lake):
    """What a card is made from."""
    stage = stage_named("data_set_card")
    return inputs_of(stage, lake.context.lake, lake.context.recipe, "all")


def test_the_sheet_holds_what_the_receipts_hold(lake, sheet):
    """Every number of every snapshot is the one of the version that the rows were made of."""
    for line in sheet.snapshots:
        counts = {
            stage: lake.built[f"{stage}/{line.snapshot}"].counts
            for stage in (
                "filtered_documents",
                "removed_documents",
                "token_documents",
                "token_grid",
            )
        }
        assert (line.documents, line.filtered) == (
            counts["filtered_documents"].seen,
            counts["filtered_documents"].kept,
        )
        assert line.removed == counts["removed_documents"].seen - counts["removed_documents"].kept
        assert line.tokens == counts["token_documents"].extra["tokens"]
        assert (
            line.train_rows + line.heldout_rows
            == counts["token_grid"].kept
            == sum(line.languages.values())
        )
        assert line.grid[1] == lake.built[f"token_grid/{line.snapshot}"].published.digest
    assert [line.snapshot for line in sheet.snapshots] == list(SNAPSHOTS)
    assert sheet.tokens == lake.built["longcrawl/all"].counts.kept * sheet.row_tokens
    assert sum(sheet.lengths) == sum(
        line.train_rows + line.heldout_rows for line in sheet.snapshots
    )
    assert {mix.name: mix.samples for mix in sheet.mixes} == {
        key.removeprefix("blended_mix/"): built.counts.kept
        for key, built in lake.built.items()
        if key.startswith("blended_mix/")
    }
    assert sum(sheet.reasons["filtered_documents"].values()) == sum(
        sum(lake.built[f"filtered_documents/{key}"].counts.dropped.values()) for key in SNAPSHOTS
    )
    n_dropped = sum(count for reasons in sheet.reasons.values() for count in reasons.values())
    n_rows = sum(line.train_rows + line.heldout_rows for line in sheet.snapshots)
    assert sum(line.documents for line in sheet.snapshots) == n_dropped + n_rows, (
        "each document goes once, or is a row"
    )


def test_hugging_face_can_read_the_front_matter(published, sheet):
    front = yaml.safe_load(
        (published.folder / card.README).read_text().split("\n---\n")[0].removeprefix("---\n")
    )
    assert front["license"] == "other"
    assert front["license_link"].startswith("https://")
    assert front["language"] == list(sheet.languages)
    assert front["size_categories"] == ["n<1K"]
    assert front["task_categories"] == ["text-generation"]


@pytest.mark.parametrize(
    ("n_rows", "category"),
    [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (6_661_465, "1M<n<10M"), (10**9, "n>1B")],
)
def test_size_categories_are_hugging_faces(n_rows, category):
    assert card._size_category(n_rows) == category


def test_what_pages_and_people_write_stays_text(sheet):
    """No cell ends early, no element or image of it gets into the page, and the front matter still
    reads as was meant.
    """
    spoilt = msgspec.structs.replace(
        sheet,
        samples=[{"url": HOSTILE, "n_tokens": 1, "begins": HOSTILE}],
        settings={"filtered_documents": {"rules_file": HOSTILE}},
        reasons={"filtered_documents": {HOSTILE: 1}},
        mixes=[msgspec.structs.replace(mix, name=HOSTILE) for mix in sheet.mixes],
        rules=[{**rule, "signal": HOSTILE} for rule in sheet.rules],
    )
    settings = CardSettings(
        title=HOSTILE,
        summary=HOSTILE,
        contact=HOSTILE,
        authors=(HOSTILE,),
        terms=(SourceTerms(source=HOSTILE, terms=HOSTILE, link=HOSTILE),),
    )
    markdown = card.markdown_of(spoilt, settings)
    page = card.page_of(markdown, settings.title, {})
    front, body = markdown.split("\n---\n", 1)
    assert yaml.safe_load(front.removeprefix("---\n"))["pretty_name"] == HOSTILE
    assert "<script" not in page
    assert sheet.mixes
    assert sheet.rules
    assert "\n# head" not in body
    assert f"\n{cell(HOSTILE)}\n" in body
    for table in re.findall(r"(?:^\|.*\n)+", body, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert 'src="http' not in page
    assert 'href="javascript' not in page
    (line,) = (
        line
        for line in body.splitlines()
        if line.startswith("| a\\|b") and line.count(" | ") == 2 and " 1 | " in line
    )
    assert line.endswith("|")


HOSTILES = (
    HOSTILE,
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></tr></table><iframe src=//evil.invalid></iframe>",
    "</title></style></head><body onload=alert(1)>",
    "[a](javascript:alert(1)) ![b](data:text/html,x) [c]: //evil.invalid",
    "<javascript:alert(1)> <https://evil.invalid> <me@evil.invalid>",
    "https://evil.invalid www.evil.invalid //evil.invalid mailto:me@evil.invalid",
    "``` \n\n```html\n<script>\n```",
    "` `` ~~~ <!-- <![CDATA[ <?php &lt;script&gt; &#60;b&#62;",
    "a\r\rb\r\n\n---\n\n# c\n\n| d | e |\n|---|---|\n\x85\u2028\u2029\x0b\x0c\x00\u202e",
    "\\| \\` \\<b> \\\\| | **b** __c__ ~~d~~ $e$ {{ 7 * 7 }} {% raw %}",
    "- a\n+ b\n1. c\n> d\n    e\n===\n***",
    '\'"><svg/onload=alert(1)> " onmouseover="alert(1)',
    "# a",
    "- a",
    "1. a",
    "a\n===",
    "]( ) [x][y] ![z][y] [^1] [ ]",
)


def spoilt(sheet: Sheet, value: str) -> tuple[Sheet, CardSettings]:
    """Figures and settings with this value wherever a page or a person could have written it."""
    hostile = msgspec.structs.replace(
        sheet,
        tokenizer=value,
        samples=[{"url": value, "n_tokens": 1, "begins": value}],
        settings={"filtered_documents": {"rules_file": value, "lists": {value: [value]}}},
        reasons={"filtered_documents": {value: 1}},
        mixes=[msgspec.structs.replace(mix, name=value) for mix in sheet.mixes],
        rules=[{**rule, "name": value, "signal": value, "source": value} for rule in sheet.rules],
        randomness={"token_grid: order": value},
        snapshots=[
            msgspec.structs.replace(line, languages={value: 1}) for line in sheet.snapshots[:1]
        ],
    )
    settings = CardSettings(
        title=value,
        summary=value,
        licence_link=value,
        contact=value,
        homepage=value,
        authors=(value, value),
        terms=(SourceTerms(source=value, terms=value, link=value),),
    )
    return hostile, settings


def elements(html: str) -> list[tuple[str, dict[str, str]]]:
    """All elements of a page, with their attributes, as a browser's parser sees them."""
    found = lxml.html.document_fromstring(html).iter(lxml.etree.Element)
    return [(one.tag, dict(one.attrib)) for one in found]


@pytest.mark.parametrize("value", HOSTILES)
def test_a_parser_finds_the_same_elements_whatever_is_written(sheet, value):
    """In the page, and in the card as a renderer shows it that lets HTML pass and links bare
    addresses: no element more or fewer, no other attribute, and the text is there.
    """
    pages, cards = [], []
    for words in ("plain", value):
        markdown = card.markdown_of(*spoilt(sheet, words))
        pages.append(card.page_of(markdown, words, {}))
        front, body = markdown.split("\n---\n", 1)
        assert yaml.safe_load(front.removeprefix("---\n"))["pretty_name"] == words
        cards.append(
            MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(body)
        )
    for plain, hostile in (pages, cards):
        assert elements(hostile) == elements(plain)
        (link,) = {found["href"] for _, found in elements(hostile) if "href" in found}
        assert link == "https://github.com/togethercomputer/RedPajama-Data"
        names = {name for _, found in elements(hostile) for name in found}
        assert not [name for name in names if name.startswith("on")]


def test_the_same_inputs_give_the_same_bytes(lake, published):
    again = stage_named("data_set_card").build(replace(lake.context, lake=lake.context.lake), "all")
    assert again.reused
    sheet = sheet_of(inputs_of_card(lake), "gpt2")
    assert (
        card.plots_of(sheet)["plots/yield.png"]
        == (published.folder / "plots/yield.png").read_bytes()
    )


def test_a_card_states_the_settings_of_its_data_also_when_their_bytes_are_the_same(tmp_path):
    """A threshold that drops nothing gives the same rows, and another card."""
    lake = tiny_lake(tmp_path)
    recipe = with_min_words(lake.context.recipe, 41)
    context = replace(lake.context, recipe=recipe)
    before = {name: built.published for name, built in lake.built.items()}
    for snapshot in SNAPSHOTS:
        stage_named("filtered_documents").build(context, snapshot)
    (planned,) = (made for made in plan(context.lake, recipe, SNAPSHOTS) if made.stage == CARD)
    assert planned.status == "stale"
    assert any(reason.startswith("input receipts changed") for reason in planned.reasons)
    after = {name: built.published for name, built in build_all(context, SNAPSHOTS).items()}
    assert after["longcrawl/all"].digest == before["longcrawl/all"].digest
    assert after[f"{CARD}/all"].version != before[f"{CARD}/all"].version
    sheet = decode_json(after[f"{CARD}/all"].folder / card.SHEET, Sheet)
    assert sheet.settings["filtered_documents"]["min_words"] == 41
    scratch = build_all(replace(context, lake=Lake(tmp_path / "scratch")), SNAPSHOTS)
    assert {name: built.published.digest for name, built in scratch.items()} == {
        name: published.digest for name, published in after.items()
    }


def test_a_card_of_rows_that_are_out_of_date_is_refused(tmp_path):
    lake = tiny_lake(tmp_path)
    context = replace(lake.context, recipe=with_min_words(lake.context.recipe, 90))
    stage_named("filtered_documents").build(context, SNAPSHOTS[0])
    words = f"filtered_documents/{SNAPSHOTS[0]} is not what token_documents was made from"
    with pytest.raises(Mismatch, match=words):
        stage_named(CARD).build(context, "all")


def with_min_words(recipe, n_words):
    """The recipe with another threshold."""
    changed = msgspec.structs.replace(recipe.filtered_documents, min_words=n_words)
    return msgspec.structs.replace(recipe, filtered_documents=changed)


def test_a_version_that_is_gone_is_unknown_and_not_nought(lake):
    """A sheet of rows whose documents were pruned says so."""
    left = {
        name: published
        for name, published in inputs_of_card(lake).items()
        if name.startswith(("longcrawl/", "token_grid/"))
    }
    sheet = sheet_of(left, "gpt2")
    assert [line.documents for line in sheet.snapshots] == [None, None]
    assert "| unknown | unknown |" in card.markdown_of(sheet, CardSettings())


@pytest.mark.parametrize(
    ("name", "old", "new", "claim"),
    [
        (card.SHEET, '"train_rows": ', '"train_rows": 1', "the_card_agrees_with_the_order"),
        (card.SHEET, '"digest": "', '"digest": "0', "the_card_agrees_with_the_order"),
    ],
)
def test_a_spoilt_card_is_found(lake, published, name, old, new, claim):
    path = published.folder / name
    whole = path.read_text()
    assert old in whole
    try:
        path.write_text(whole.replace(old, new))
        findings = {
            finding.check: finding.passed
            for finding in audit(card.STAGE, check_input_of(lake.context.lake, published))
        }
    finally:
        path.write_text(whole)
    assert not findings.pop(claim)


SECTIONS = (
    "Where it comes from",
    "How it was filtered",
    "What is in it",
    "How to load it",
    "Licences and terms",
    "Taking a document out",
    "How it was made",
    "Citation",
)


def test_card_and_page_have_every_section_and_load_nothing(published):
    readme, page = ((published.folder / name).read_text() for name in (card.README, card.PAGE))
    assert [section for section in SECTIONS if f"\n## {section}\n" not in readme] == []
    assert [section for section in SECTIONS if f"<h2>{section}</h2>" not in page] == []
    assert re.findall(r'<(?:img|script|link)[^>]*?(?:src|href)="(?!data:)[^"]*"', page) == []
    for name in card.PLOTS:
        picture = base64.b64encode((published.folder / name).read_bytes()).decode()
        assert f'base64,{picture}"' in page


def test_settings_that_cannot_be_meant_are_refused():
    with pytest.raises(BadInput, match=r"\$.data_set_card.licence"):
        parse_recipe('[data_set_card]\nlicence = "a\\nb: c"', where="mine.toml")
    assert (
        parse_recipe(
            '[data_set_card]\ncontact = "me@example.org"', where="mine.toml"
        ).data_set_card.contact
        == "me@example.org"
    )


def test_numbers_are_written_as_they_are(published, sheet):
    """The page holds the images; the sheet is JSON that anybody reads."""
    page = (published.folder / card.PAGE).read_text()
    assert page.count('src="data:image/png;base64,') == 3
    assert json.loads((published.folder / card.SHEET).read_text())["digest"] == sheet.digest
