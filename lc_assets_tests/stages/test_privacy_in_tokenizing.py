"""Personal data are replaced before a text is tokenized, when the recipe says so and only then."""

import pytest

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.recipe_files import parse_recipe
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.table_writer import TableWriter
from lc_assets.builds.tables import FILTERED, read_table
from lc_assets.errors import BadInput
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.stages.tokens.token_documents import STAGE
from lc_assets.stages.tokens.tokenizing import tokenize_shard
from lc_assets.stages.tokens.tokenizing_tasks import TokenizeTask

TEXTS = [
    "Ruf 030 901820 an oder schreib an ann@mail.org.",
    "Nichts ist hier zu finden, 8.8.4.4 etwa.",
]


@pytest.fixture
def documents(tmp_path):
    path = tmp_path / "0000-de_head.documents.parquet"
    writer = TableWriter(path, FILTERED)
    for line, text in enumerate(TEXTS):
        writer.add(
            dict.fromkeys(FILTERED.names, "")
            | {"id": f"2023-06/0000/de_head.json.gz/{line}", "language": "de", "raw_content": text}
        )
    writer.close()
    return path


def tokenized(documents, folder, **privacy):
    settings = TokenizingSettings(min_tokens=5, privacy=PrivacySettings(**privacy))
    counts = tokenize_shard(
        TokenizeTask(
            documents=documents,
            folder=folder,
            settings=settings,
        )
    )
    return counts, [reader.tolist() for reader in MegatronReader(folder / "0000-de_head")]


def test_ids_and_lengths_are_of_the_replaced_text(documents, tmp_path):
    counts, ids = tokenized(documents, tmp_path / "on", replace=("email", "phone"))
    replaced = ["Ruf <PHONE> an oder schreib an <EMAIL>.", TEXTS[1]]
    assert ids == [gpt2_tokenizer().encode(text).tolist() for text in replaced]
    assert {name: n for name, n in counts.extra.items() if name.startswith("personal")} == {
        "personal data replaced: email": 1,
        "personal data replaced: phone": 1,
    }
    assert read_table(tmp_path / "on" / "0000-de_head.documents.parquet")[
        "n_chars"
    ].to_pylist() == [len(text) for text in replaced]


def test_by_default_nothing_is_replaced(documents, tmp_path):
    counts, ids = tokenized(documents, tmp_path / "off")
    assert ids == [gpt2_tokenizer().encode(text).tolist() for text in TEXTS]
    assert not [name for name in counts.extra if name.startswith("personal")]


def test_the_fingerprint_knows_of_privacy_only_when_bytes_depend_on_it():
    off, on = Recipe(), parse_recipe('[token_documents.privacy]\nreplace = ["email"]', where="here")
    other = parse_recipe('[token_documents.privacy]\nstyle = "surrogate"', where="here")
    params = [STAGE.params(recipe, "2023-06") for recipe in (off, other, on)]
    assert params[0] == params[1] != params[2]
    assert params[2]["privacy"]["replace"] == ("email",)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ('replace = ["mail"]', "email"),
        ('style = "none"', "there are surrogate, tag"),
        ('phone_region = "de"', "phone_region"),
        ("on = true", "replace"),
    ],
)
def test_settings_that_cannot_be_meant(setting, words):
    with pytest.raises(BadInput, match=words):
        parse_recipe(f"[token_documents.privacy]\n{setting}", where="here")
