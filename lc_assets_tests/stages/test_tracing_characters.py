"""The characters of a token: in every row they are the part of the upstream page that gives the
token when it is edited and tokenized alone.
"""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from lc_assets.builds.recipe_files import record_recipe
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.settings.longpack import LongPackSettings, PackingSettings
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.redpajama.documents import decode_document
from lc_assets.formats.redpajama.lines import read_lines
from lc_assets.formats.tokenizers.gpt2 import gpt2_encoding, gpt2_tokenizer
from lc_assets.formats.tokenizers.named import token_spans, tokenizer_of
from lc_assets.sources import redpajama_v2
from lc_assets.stages.lineage import tracing
from lc_assets.stages.lineage.characters import characters_of, origin
from lc_assets.stages.lineage.spans import spans_of_packed_row
from lc_assets.text.privacy.replacing import replace_personal
from lc_assets.tokens.tokenizers import escape
from lc_assets.vocabulary import Shard, parse_document_id
from lc_assets_tests import builders
from lc_assets_tests.builders import (
    SNAPSHOTS,
    TINY_ROW_TOKENS,
    recipe_file,
    tiny_lake,
    tokenizer_json,
)
from lc_assets_tests.formats.test_sentencepiece_models import BYTES, CONTROLS, WORDS, model
from lc_assets_tests.tokens.hostile_text import HOSTILE_TEXT

PERSONAL = ("ann@mail.org", "8.8.4.4", "bob.long.name@mail.example.com <ann@mail.org>")
LONGPACK = {
    "longpack_documents": LongPackSettings(wanted=True, max_tokens=400),
    "packed_rows": PackingSettings(wanted=True, documents="both", row_tokens=4 * TINY_ROW_TOKENS),
}
CASES = {
    "as it is": {"tokens": {}},
    "replaced by tags": {"tokens": {"privacy": PrivacySettings(replace=("email", "ip"))}},
    "replaced by surrogates, escaped": {
        "tokens": {
            "privacy": PrivacySettings(replace=("email", "ip"), style="surrogate"),
            "text_encoding": "json_ascii",
        }
    },
    "packed along links": {
        "tokens": {"privacy": PrivacySettings(replace=("email",))},
        "more": LONGPACK,
    },
}


def with_personal_data(rng, *, n_words):
    """A made-up text with addresses at some places, also at both ends."""
    words = ORDINARY(rng, n_words=n_words).split(" ")
    for place in (0, len(words) // 2, len(words) // 3, len(words)):
        words.insert(place, PERSONAL[int(rng.integers(len(PERSONAL)))])
    return " ".join(words)


ORDINARY = builders.made_up_text


@pytest.fixture(scope="module", params=CASES, ids=lambda name: name)
def traced(request, tmp_path_factory):
    """A lake, its settings, and the upstream texts by id."""
    case, folder = CASES[request.param], tmp_path_factory.mktemp("characters")
    tokens = TokenizingSettings(min_tokens=TINY_ROW_TOKENS, **case["tokens"])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(builders, "made_up_text", with_personal_data)
        lake = tiny_lake(folder, token_documents=tokens, **case.get("more", {}))
    texts = {}
    for shard in (Shard.parse(f"{key}/{tag}") for key in SNAPSHOTS for tag in builders.TAGS):
        path = folder / "upstream" / redpajama_v2.part_path("documents", shard)
        for line, text in texts_of(path).items():
            texts[shard.document_id(line)] = text
    return lake.context.lake, tokens, texts


def texts_of(path):
    """Texts of a shard upstream, by line."""
    with path.open("rb") as stream:
        return {
            number: decode_document(line, where=str(path)).raw_content
            for number, line in read_lines(stream, where=str(path), max_line_bytes=1 << 20)
        }


def edited(text, settings):
    """What the tokenizer was given of a text."""
    privacy = settings.privacy
    replaced = replace_personal(text, privacy.replace, style=privacy.style, seed=privacy.seed)
    return escape(replaced.text, settings.text_encoding)


def gives(text, token, settings):
    """Whether a text, tokenized alone, has a token; or, for a part of a character, its bytes."""
    content = edited(text, settings)
    part = gpt2_encoding().decode_single_token_bytes(token)
    return token in gpt2_tokenizer().encode(content) or part in content.encode()


def every_token(lake, found, ids):
    """Column, token and characters of the columns of some spans."""
    for span in found:
        for column in range(span.row_start, span.row_stop) if span.id else ():
            yield span, column, int(ids[column]), characters_of(lake, span, column)


def test_the_characters_of_every_token_of_a_grid_give_the_token(traced):
    lake, settings, texts = traced
    grid = lake.partition("token_grid", SNAPSHOTS[0]).require()
    rows = GridReader(grid.folder / "train.zarr").read()
    for row in range(2):
        span = tracing.find_row(lake, grid, "train", row)
        found = list(every_token(lake, [span], rows[row]))
        assert len(found) == TINY_ROW_TOKENS
        for _, _, token, characters in found:
            assert characters.id == span.id
            assert characters.text == texts[span.id][characters.begin : characters.end]
            assert gives(characters.text, token, settings)
        in_order = sorted(found, key=lambda one: span.token_at(one[1]))
        assert in_order[0][3].begin == 0
        for (*_, one), (*_, other) in itertools.pairwise(in_order):
            assert one.begin <= other.begin <= one.end <= other.end


def test_the_characters_of_every_token_of_packed_rows_give_the_token(traced):
    """Of a document that was packed along links, in the page that the token is of."""
    lake, settings, texts = traced
    packed = lake.partition("packed_rows", SNAPSHOTS[0]).require()
    rows = GridReader(packed.folder / "train.zarr").read()
    ids = set()
    for span, column, token, characters in every_token(
        lake, spans_of_packed_row(packed, "train", 0), rows[0]
    ):
        if span.token_at(column) == span.n_tokens:
            assert characters is None
            continue
        assert gives(characters.text, token, settings)
        ids.add((span.id, characters.id))
        if not characters.id.startswith("longpack-"):
            assert characters.text == texts[characters.id][characters.begin : characters.end]
    assert ids


def test_a_sample_of_a_mix_leads_to_characters(traced):
    lake, settings, texts = traced
    sample = tracing.sample_of_mix(lake, "one-sided", 3)
    for position in (0, 11, 24):
        piece, column = sample.column_of(position)
        characters = characters_of(lake, piece.span, column)
        rows = GridReader(piece.span.published.folder / "train.zarr").read()
        assert characters.text == texts[piece.span.id][characters.begin : characters.end]
        assert gives(characters.text, int(rows[piece.span.row, column]), settings)


def test_the_whole_of_a_replaced_value_is_what_its_tokens_were_made_from(traced):
    lake, settings, _ = traced
    grid = lake.partition("token_grid", SNAPSHOTS[0]).require()
    rows = GridReader(grid.folder / "train.zarr").read()
    found = {
        characters.text
        for row in range(6)
        for *_, characters in every_token(
            lake, [tracing.find_row(lake, grid, "train", row)], rows[row]
        )
    }
    of_personal = {text.strip(" <>") for text in found if "@" in text or ".8." in text} - {"@"}
    values = {"email": "ann@mail.org", "ip": "8.8.4.4"}
    assert of_personal == {values[kind] for kind in settings.privacy.replace}


@given(
    text=st.text("abc", max_size=30),
    cuts=st.lists(st.integers(0, 30), unique=True, max_size=8).map(sorted),
    lengths=st.lists(st.integers(0, 5), min_size=4, max_size=4),
)
def test_every_character_leads_back_through_edits(text, cuts, lengths):
    """Marked one by one: a kept character to itself, one of a replacement to all it replaced."""
    edits = [
        (start, stop, length)
        for (start, stop), length in zip(
            zip(cuts[::2], cuts[1::2], strict=False), lengths, strict=False
        )
        if stop <= len(text)
    ]
    marks, at = [], 0
    for start, stop, length in edits:
        marks += [(place, place + 1) for place in range(at, start)] + [(start, stop)] * length
        at = stop
    marks += [(place, place + 1) for place in range(at, len(text))]
    assert [origin(edits, place) for place in range(len(marks))] == marks


@pytest.fixture(scope="module")
def settings_of_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers")
    pieces = folder / "small.model"
    pieces.write_bytes(model(*CONTROLS, *BYTES, *dict.fromkeys(WORDS)))
    return ["gpt2", str(pieces), str(tokenizer_json(folder / "tokenizer.json"))]


@given(text=HOSTILE_TEXT)
@example(text="hello \u65e5\u672c  \U0001f600\u0301 hell nk\n")
def test_spans_cover_the_text_in_order(settings_of_files, text):
    """One for each token; nothing is left out, and none goes back."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for setting in settings_of_files:
        spans = token_spans(setting, text)
        assert len(spans) == len(tokenizer_of(setting, fast=False).encode(text))
        if not len(spans):
            continue
        begins, ends = spans.T
        assert begins[0] == 0
        assert ends[-1] <= len(text)
        assert (np.diff(begins) >= 0).all()
        assert (begins[1:] <= ends[:-1]).all()


def test_a_tokenizer_of_ones_own_is_found_by_the_lakes_recipe(tmp_path):
    file = tokenizer_json(tmp_path / "tokenizer.json")
    tokens = TokenizingSettings(tokenizer=str(file), min_tokens=TINY_ROW_TOKENS)
    lake = tiny_lake(tmp_path, token_documents=tokens)
    record_recipe(lake.root, recipe_file(tmp_path / "recipe.toml", lake.context.recipe))
    span = tracing.row_of_order(lake.context.lake, "train", 0)
    column = (span.shift + 5) % TINY_ROW_TOKENS
    found = characters_of(lake.context.lake, span, column)
    shard, line = parse_document_id(span.id)
    path = tmp_path / "upstream" / redpajama_v2.part_path("documents", shard)
    text = texts_of(path)[line]
    ids = tokenizer_of(str(file), fast=False).encode(text)
    assert found.text == text[found.begin : found.end]
    assert ids[5] in tokenizer_of(str(file), fast=False).encode(found.text)
