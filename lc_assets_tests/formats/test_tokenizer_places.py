"""Where tokenizers lie: files, folders, models of the hub."""

import sys
from types import SimpleNamespace

import huggingface_hub.errors
import pytest

from lc_assets.errors import BadInput, Unreachable
from lc_assets.formats.tokenizers.named import located, vocabulary_of
from lc_assets_tests.builders import tokenizer_json


def test_names_and_files_are_themselves(tmp_path):
    file = str(tokenizer_json(tmp_path / "tokenizer.json"))
    assert [
        located(named)
        for named in ("gpt2", "o200k_base", file, "absent/tokenizer.json", "nonsense")
    ] == [
        *("gpt2", "o200k_base", file, "absent/tokenizer.json", "nonsense"),
    ]


def test_a_folder_is_its_tokenizer(tmp_path):
    """The .json where there are both."""
    with pytest.raises(BadInput, match=r"holds neither tokenizer.json nor tokenizer.model"):
        located(str(tmp_path))
    (tmp_path / "tokenizer.model").write_bytes(b"")
    assert located(str(tmp_path)) == str(tmp_path / "tokenizer.model")
    tokenizer_json(tmp_path / "tokenizer.json")
    assert located(str(tmp_path)) == str(tmp_path / "tokenizer.json")


def hub_of(monkeypatch, download):
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(hf_hub_download=download))


def test_a_model_of_the_hub_is_fetched_with_its_configuration(tmp_path, monkeypatch):
    """The configuration first: it says what ends a text."""
    errors = huggingface_hub.errors
    tokenizer_json(tmp_path / "tokenizer.json")
    asked = []

    def download(model, name, *, revision):
        asked.append((model, name, revision))
        if name == "tokenizer_config.json":
            raise errors.EntryNotFoundError("404")
        return str(tmp_path / name)

    hub_of(monkeypatch, download)
    assert located("owner/model@v1") == str(tmp_path / "tokenizer.json")
    assert asked[:2] == [
        ("owner/model", "tokenizer_config.json", "v1"),
        ("owner/model", "tokenizer.json", "v1"),
    ]
    assert vocabulary_of(located("owner/model")).eot is not None


@pytest.mark.parametrize(
    ("error", "kind"),
    [("LocalEntryNotFoundError", Unreachable), ("HFValidationError", Unreachable)],
)
def test_a_hub_that_does_not_answer_is_said(monkeypatch, error, kind):
    errors = huggingface_hub.errors

    def download(model, name, *, revision):
        raise getattr(errors, error)("no network")

    hub_of(monkeypatch, download)
    with pytest.raises(kind, match="owner/model: the hub does not"):
        located("owner/model")


def test_a_model_without_a_tokenizer_is_refused(monkeypatch):
    errors = huggingface_hub.errors

    def download(model, name, *, revision):
        raise errors.EntryNotFoundError("404")

    hub_of(monkeypatch, download)
    with pytest.raises(BadInput, match="the hub has neither"):
        located("owner/model")
