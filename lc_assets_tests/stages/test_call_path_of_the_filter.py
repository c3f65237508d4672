"""How many modules a document's text passes through while it is filtered."""

import json
import sys

import numpy as np

from lc_assets.stages.documents import filtered_documents
from lc_assets.text.texts import Texts
from lc_assets_tests.builders import WORDS
from lc_assets_tests.filtering import filter_files

MARK = "zebrafish"
MOST_MODULES = 18


def holds_the_text(value) -> bool:
    """Whether a value is the text, a record of it, an object that has it, or a batch of these."""
    if isinstance(value, Texts):
        value = getattr(value, "texts", ())  # none while it is made
    if isinstance(value, list | tuple):
        return any(map(holds_the_text, value))
    if isinstance(value, dict):
        value = value.get("raw_content")
    if isinstance(value, bytes):
        return MARK.encode() in value
    texts = (value, getattr(value, "text", None), getattr(value, "raw_content", None))
    return any(isinstance(text, str) and MARK in text for text in texts)


def test_a_text_passes_through_few_modules(tmp_path, monkeypatch):
    """From its line of JSON to the table of kept documents, by rules that need signals and
    measures.
    """
    drawn, modules = np.random.default_rng(5), set()
    sentences = (" ".join(drawn.choice(WORDS, 20)).capitalize() + "." for _ in range(12))
    source = tmp_path / "pages.jsonl"
    source.write_text(json.dumps({"id": "a", "text": "\n".join([*sentences, f"{MARK}."])}))

    def note(frame, event, _):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("lc_assets."):
            modules.update({name} if any(map(holds_the_text, frame.f_locals.values())) else ())

    def profiled(task):
        sys.setprofile(note)
        try:
            return filter_shard(task)
        finally:
            sys.setprofile(None)

    filter_shard = filtered_documents.filter_shard
    monkeypatch.setattr(filtered_documents, "filter_shard", profiled)
    found = filter_files(source, tmp_path / "out", "gopher-paper")
    assert found.counts.kept == 1
    assert "lc_assets.text.signals.signals" in modules
    assert len(modules) <= MOST_MODULES, sorted(modules)
