"""Write datatrove.json: what datatrove's own filters measure of our texts; run it where datatrove
0.10.1 is installed.

python -m lc_assets_tests.golden.measures.make_golden
"""

import json
from pathlib import Path

from lc_assets.text.measures.words import WORD_KINDS
from lc_assets_tests.golden.measures.texts import TEXTS
from lc_assets_tests.reference.datatrove_values import c4_values, values_of
from lc_assets_tests.reference.measures import words_of

GOLDEN = Path(__file__).with_name("datatrove.json")


def main() -> None:
    """Measure every text with every kind of words."""
    from datatrove.utils.text import split_into_sentences, split_into_words

    entries = [
        {
            "text": text,
            "c4": c4_values(text),
            "words": split_into_words(text, "eng"),
            "sentences": [
                len(split_into_sentences(line, "eng"))
                for line in map(str.strip, text.splitlines())
                if line
            ],
            "values": {kind: values_of(text, words_of(text, kind)) for kind in WORD_KINDS},
        }
        for text in TEXTS
    ]
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
    GOLDEN.write_text(f"[\n{lines}\n]\n", "utf-8")


if __name__ == "__main__":
    main()
