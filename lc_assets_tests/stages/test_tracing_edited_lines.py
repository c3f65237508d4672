"""The characters of a token are those of the source's file, also where rules edit lines."""

import json

import numpy as np
import pytest

from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.settings.documents import CleanDocumentsSettings, FilteringSettings
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.lists.rule_files import read_rules
from lc_assets.formats.tokenizers.gpt2 import gpt2_encoding
from lc_assets.lake.lake import Lake
from lc_assets.stages.documents.kept_lines import schema_of
from lc_assets.stages.lineage.characters import characters_of
from lc_assets.stages.lineage.spans import spans_of_packed_row
from lc_assets_tests.file_runs import run, version_in

LINES = (
    "It was late in the day when {} came home.",
    "  A line[2] with marks[edit], and {} with white space at its ends.\t ",
    "Menu",
    "",
    "SIGN IN TO READ ALL OF THIS",
    "Sign in and write to {} about it now.",
    "We use cookies, and javascript, on every page here.",
    "1,204 likes",
    "Read more about the great house of {} here. read more",
)
EDITING = """
name = "edits"
[[rule]]
name = "words"
signal = "rps_doc_word_count"
at_least = 1
source = "none"
[lines]
edit = "{}"
"""
PERSONAL = ("Ann", "ann@mail.org", "8.8.4.4")
BREAKS = ("\n", "\n", "\n", "\r\n", "\n\n", "\u2028")


def page(rng):
    """A text of lines that some rules remove, in part or whole."""
    lines, persons, breaks = (
        [of[place] for place in rng.integers(len(of), size=16)] for of in (LINES, PERSONAL, BREAKS)
    )
    return "".join(
        line.format(person) + end for line, person, end in zip(lines, persons, breaks, strict=True)
    )


@pytest.mark.parametrize(
    ("name", "replace"), [("c4", ("email",)), ("fineweb", ()), ("refinedweb", ("email", "ip"))]
)
def test_every_character_of_a_row_is_one_of_the_file(tmp_path, name, replace):
    """Of every token: its parts in the file are its text, but for other kinds of line breaks, and
    give the token unless personal data were replaced there.
    """
    rng = np.random.default_rng(7)
    texts = [page(rng), page(rng), f"{LINES[0]}\nMenu\n\n\n{LINES[0]}"]
    rules = tmp_path / "rules.toml"
    rules.write_text(EDITING.format(name))
    source = tmp_path / "pages.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    sections = {
        "filtered_documents": FilteringSettings(rules=str(rules), min_words=0),
        "token_documents": TokenizingSettings(privacy=PrivacySettings(replace=replace)),
        "packed_rows": PackingSettings(wanted=True, row_tokens=256, min_tokens=1),
        "clean_documents": CleanDocumentsSettings(wanted=True, paragraphs=20),
    }
    for stage in ("clean_documents", "packed_rows"):
        run(stage, [source], tmp_path / "lake", **sections)
    lake = Lake(tmp_path / "lake")
    (packed,) = lake.published("packed_rows").values()
    rows, n_apart, seen = GridReader(packed.folder / "train.zarr").read(), 0, set()
    for row in range(len(rows)):
        for span in spans_of_packed_row(packed, "train", row):
            for column in range(span.row_start, span.row_stop) if span.id else ():
                found = characters_of(lake, span, column)
                if found is None:
                    continue
                text = texts[int(found.id.rpartition("-")[2])]
                given = "".join(text[start:stop] for start, stop in found.parts)
                assert (
                    given if name == "refinedweb" else given.replace("\u2028", "\n")
                ) == found.text
                assert (found.begin, found.end) == (found.parts[0][0], found.parts[-1][1])
                token = gpt2_encoding().decode_single_token_bytes(int(rows[row, column]))
                assert token in found.text.encode() or any(
                    value in found.text for value in PERSONAL
                )
                n_apart += len(found.parts) > 1
                seen.update(range(found.begin, found.end) if len(found.parts) == 1 else ())
    assert seen
    assert n_apart or name != "refinedweb"


def test_only_rules_that_edit_lines_add_the_column(tmp_path):
    """Documents of other rules are as they were; written documents have no such column."""
    assert "source_places" not in schema_of(read_rules("gopher-paper")).names
    assert "source_places" in schema_of(read_rules("c4")).names
    source = tmp_path / "pages.jsonl"
    source.write_text(json.dumps({"text": f"{LINES[0]}\nMenu\n" * 9}) + "\n")
    clean = CleanDocumentsSettings(wanted=True, file_format="parquet", paragraphs=20)
    rules = FilteringSettings(rules="c4", min_words=0)
    sections = {"filtered_documents": rules, "clean_documents": clean}
    run("clean_documents", [source], tmp_path / "lake", **sections)
    written = list(version_in(tmp_path / "lake", "clean_documents").glob("*.parquet"))
    assert written
    for path in written:
        assert b"source_places" not in path.read_bytes()
