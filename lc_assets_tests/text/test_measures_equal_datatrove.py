"""Our measures are datatrove's, to the last bit, of the same words."""

import gzip
import json
from itertools import islice
from pathlib import Path

import pytest

from lc_assets.formats.lists.rule_files import read_rules
from lc_assets.text.measures.measures import MEASURES, measure
from lc_assets.text.measures.words import WORD_KINDS
from lc_assets.text.rules.line_rules import C4, edit
from lc_assets_tests.reference.measures import words_of

GOLDEN = Path(__file__).parents[1] / "golden" / "measures" / "datatrove.json"
ENTRIES = json.loads(GOLDEN.read_text("utf-8"))


def ours(text: str, names, kind: str) -> dict[str, float | None]:
    """Our values by measure, without the kind of words."""
    columns = {f"{name}:{kind}" if MEASURES[name] else name: name for name in names}
    return {columns[column]: value for column, value in measure(text, list(columns)).items()}


@pytest.mark.parametrize("kind", WORD_KINDS)
def test_every_number_is_the_one_that_datatrove_compared(kind):
    """Bit for bit; the golden file names some two dozen measures."""
    seen = set()
    for entry in ENTRIES:
        theirs = entry["values"][kind]
        assert ours(entry["text"], theirs, kind) == theirs, entry["text"]
        seen |= theirs.keys()
    assert len(seen) == 25


def test_c4_leaves_the_same_text():
    """And condemns the same documents for the same reason."""
    for entry in ENTRIES:
        edited, theirs = edit(entry["text"], C4), entry["c4"]
        assert edited.condemned == theirs["condemned"], entry["text"]
        assert theirs["condemned"] or edited.text == theirs["text"]
    assert {entry["c4"]["condemned"] for entry in ENTRIES} == {None, "lorem_ipsum", "curly_bracket"}


@pytest.mark.network
@pytest.mark.parametrize("kind", WORD_KINDS)
def test_books_measure_what_datatrove_measures(kind, shared_data):
    """A book of each language, and many pages cut out of them, against the installed datatrove."""
    pytest.importorskip("datatrove")
    from lc_assets_tests.reference.datatrove_values import c4_values, values_of

    for folder in sorted(shared_data.glob("books_*")):
        book = next(iter(sorted(folder.glob("*.txt")))).read_text("utf-8")
        for text in (
            book[:300_000],
            *(book[start : start + 3000] for start in range(0, 60_000, 3000)),
        ):
            theirs = values_of(text, words_of(text, kind))
            assert ours(text, theirs, kind) == theirs
            left = c4_values(text)
            assert left["condemned"] or edit(text, C4).text == left["text"]


@pytest.mark.network
@pytest.mark.parametrize("preset", ["gopher-datatrove", "c4", "fineweb"])
def test_presets_judge_as_datatrove_judges(preset, shared_data):
    """Pages of documentation and of books: at least 995 of 1,000 verdicts are alike."""
    pytest.importorskip("datatrove")
    pytest.importorskip("spacy")
    from lc_assets_tests.reference.datatrove_verdicts import differences

    texts = texts_of(shared_data, "pages_sqlitedoc.jsonl.gz")
    assert len(differences(preset, texts)) <= 0.005 * len(texts)


def texts_of(shared_data: Path, pages: str) -> list[str]:
    """Pages of manuals, and stretches of novels."""
    texts = list[str]()
    for path in sorted((shared_data / "hyperlinked").glob(pages)):
        with gzip.open(path, "rt") as lines:
            texts += [json.loads(line)["text"] for line in islice(lines, 150)]
    for path in sorted((shared_data / "books_en").glob("*.txt")):
        book = path.read_text("utf-8")
        texts += [book[start : start + 1500] for start in range(20_000, 35_000, 3000)]
    return texts


@pytest.mark.network
def test_gopher_as_dolma_judges(shared_data):
    """Every verdict, and every reason: most of these pages fail, by all but a few of the rules."""
    pytest.importorskip("dolma.taggers.gopher", exc_type=ImportError)
    from lc_assets_tests.reference.datatrove_verdicts import our_reasons
    from lc_assets_tests.reference.dolma_verdicts import RULE_OF, dolma_reasons

    texts = ["", "one", *texts_of(shared_data, "pages_*.jsonl.gz")]
    theirs = [dolma_reasons(text) for text in texts]
    ours = [set(our_reasons("gopher-dolma", text)) for text in texts]
    assert ours[2:] == theirs[2:]
    assert len(set().union(*theirs)) >= 10
    assert {rule.name for rule in read_rules("gopher-dolma").rules} == set(RULE_OF.values())
