"""The golden page: its ids are known, compared for every shard, and a program or an end of text
that has changed keeps a data set from being published.
"""

import json
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from lc_assets.api import corpora
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.stage import CheckInput
from lc_assets.counts import Counts
from lc_assets.errors import CheckFailed, Mismatch
from lc_assets.formats.tokenizers import golden
from lc_assets.formats.tokenizers.files import _HuggingFace
from lc_assets.formats.tokenizers.golden import KNOWN, PAGE, golden_page, page_digest
from lc_assets.formats.tokenizers.named import TIKTOKEN, text_of, tokenizer_of
from lc_assets.lake.lake import Lake
from lc_assets.stages.tokens import tokenizing
from lc_assets.stages.tokens.token_checks import the_golden_page_has_the_same_ids
from lc_assets.stages.tokens.tokenizing import BY_REFERENCE
from lc_assets_tests.builders import tokenizer_json

SETTINGS = TokenizingSettings(min_tokens=1, append_eod=True)


@pytest.fixture
def file(tmp_path):
    return tokenizer_json(tmp_path / "tokenizer" / "tokenizer.json")


@pytest.fixture(autouse=True)
def folder(tmp_path):
    (tmp_path / "tokenizer").mkdir()


def tokenize(tmp_path, name, tokenizer, **more):
    """Tokenize a file of this name into the lake; the folder of its data set, and the counts."""
    source = tmp_path / f"{name}.jsonl"
    source.write_text(json.dumps({"text": f"the end of times {name}"}) + "\n")
    settings = msgspec.structs.replace(SETTINGS, tokenizer=str(tokenizer))
    made = corpora.tokenize(
        [tmp_path / f"{one}.jsonl" for one in [*more.pop("with_those_of", ""), name]],
        tmp_path / "out",
        settings,
        workers=1,
    )
    return made.versions[-1], made.counts


def test_the_page_is_text_of_every_kind(file):
    """It comes back from the ids of a vocabulary that has every byte, without a special token."""
    for setting in ("gpt2", str(file)):
        ids = tokenizer_of(setting, fast=False).encode(PAGE)
        assert text_of(setting, ids) == PAGE
        assert tokenizer_of(setting).eot not in ids.tolist()
    assert set(KNOWN) == {"gpt2", *TIKTOKEN}


def test_both_programs_give_the_known_ids(file):
    assert page_digest(tokenizer_of("gpt2")) == golden_page("gpt2") == KNOWN["gpt2"]
    assert page_digest(tokenizer_of(str(file))) == golden_page(str(file))


def test_a_digest_is_of_all_ids_and_the_end(file):
    right = tokenizer_of(str(file))
    ids = right.encode(PAGE).copy()
    other = ids.copy()
    other[-1] += 1
    kinds = [(ids, 7), (ids, None), (ids, 8), (other, 7), (np.append(7, ids), 7), (ids[:-1], 7)]
    found = {page_digest(SimpleNamespace(encode=lambda _, a=a: a, eot=e)) for a, e in kinds}
    assert len(found) == len(kinds)


def test_a_receipt_has_the_page_of_every_shard(tmp_path, file):
    _, counts = tokenize(tmp_path, "a", file)
    assert counts.extra[f"{tokenizing.PAGE}{golden_page(str(file))}"] == 1 == counts.extra["shards"]


def test_a_known_vocabulary_with_other_ids_is_refused(monkeypatch):
    monkeypatch.setitem(KNOWN, "gpt2", "0" * 12)
    with pytest.raises(Mismatch, match="gpt2: .* others than it has always had: the installed"):
        golden_page("gpt2")


def test_a_program_that_begins_texts_with_a_special_token_is_refused(tmp_path, file, monkeypatch):
    """As one that follows the file's post-processor although it is told not to."""
    encode = _HuggingFace._encode
    end = tokenizer_of(str(file)).eot
    monkeypatch.setattr(_HuggingFace, "_encode", lambda self, text: [end, *encode(self, text)])
    with pytest.raises(Mismatch, match=f"no special token, is the special token {end}: "):
        tokenize(tmp_path, "a", file)
    assert not list((tmp_path / "out").glob("token_documents/*/current.json"))


@pytest.mark.parametrize("same_partition", [True, False])
def test_a_changed_end_of_text_is_not_published(tmp_path, file, same_partition):
    """That of the configuration beside the same file; the version before stays."""
    document = msgspec.json.decode(file.read_bytes())
    document["added_tokens"].append({**document["added_tokens"][0], "id": 999, "content": "<eos>"})
    file.write_bytes(msgspec.json.encode(document))
    before, _ = tokenize(tmp_path, "a", file)
    (file.parent / "tokenizer_config.json").write_text('{"eos_token": "<eos>"}')
    how = {} if same_partition else {"with_those_of": "a"}
    with pytest.raises(
        CheckFailed, match=r"with end of text 999\) than when token_documents/a was"
    ):
        tokenize(tmp_path, "a" if same_partition else "b", file, **how)
    current = Lake(tmp_path / "out").partition("token_documents", "a").require()
    assert current.folder == before


def test_a_library_that_encodes_otherwise_is_not_published(tmp_path, file, monkeypatch):
    """Digits, say, which no document of the first run has; both of its programs agree."""
    before, _ = tokenize(tmp_path, "a", file)
    monkeypatch.setattr(golden, "PAGE", PAGE.replace("3.14159", "3 14159"))
    again, _ = tokenize(tmp_path, "a", file)
    assert again == before  # it is not made again
    with pytest.raises(CheckFailed, match="gives other ids of the golden page .* than when"):
        tokenize(tmp_path, "b", file, with_those_of="a")


def test_a_worker_with_another_library_ends_the_build(tmp_path, file, monkeypatch):
    """Its fast program and its reference give the same ids, but not those of the main process."""
    monkeypatch.setattr(tokenizing, "page_digest", lambda _: "0" * 12)
    with pytest.raises(Mismatch, match="than where the build began .* another version of the libr"):
        tokenize(tmp_path, "a", file)
    assert not list((tmp_path / "out").glob("token_documents/*/current.json"))


def test_a_fast_program_that_fails_the_page_is_not_used(tmp_path, file, monkeypatch):
    """Even where it would encode the beginnings of the documents rightly."""
    right, found = tokenizer_of(str(file)), tokenizer_of
    wrong = SimpleNamespace(
        name=right.name,
        vocab_size=right.vocab_size,
        eot=right.eot,
        encode=lambda text: right.encode(text)[text == PAGE :],
    )
    wanted, _ = tokenize(tmp_path, "a", file)
    content = (wanted / "a.bin").read_bytes()
    monkeypatch.setattr(
        tokenizing,
        "tokenizer_of",
        lambda name, *, fast=True: wrong if fast else found(name, fast=False),
    )
    (tmp_path / "out").rename(tmp_path / "before")
    made, counts = tokenize(tmp_path, "a", file)
    assert counts.extra[BY_REFERENCE] == 1
    assert (made / "a.bin").read_bytes() == content


@pytest.mark.parametrize(
    ("extra", "passes"),
    [
        ({"shards": 0}, True),
        ({"shards": 2, f"{tokenizing.PAGE}aa": 2}, True),
        ({"shards": 2, f"{tokenizing.PAGE}aa": 1}, False),
        ({"shards": 2, f"{tokenizing.PAGE}aa": 1, f"{tokenizing.PAGE}bb": 1}, False),
        ({"shards": 2}, False),
    ],
)
def test_shards_of_another_encoder_show(tmp_path, extra, passes):
    """Such as those that an older version holds."""
    fingerprint = SimpleNamespace(
        stage="token_documents", key="a", params={"tokenizer_sha256": "", "tokenizer": "x"}
    )
    found = the_golden_page_has_the_same_ids(
        CheckInput(
            folder=tmp_path,
            fingerprint=fingerprint,
            counts=Counts(extra=extra),
            lake=Lake(tmp_path),
            inputs={},
        )
    )
    assert found.passed == passes, found.message
