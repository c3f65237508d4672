"""Dolma's verdicts by its own tagger ``gopher_v1``, with the bounds of its mixes
(``configs/dolma-v1_5``), which are written here once more.

Needs the package dolma.
"""

from math import inf

_BOUNDS = {
    "word_count": (50, 100_000),
    "median_word_length": (3, 10),
    "symbol_to_word_ratio": (0, 0.1),
    "fraction_of_words_with_alpha_character": (0.8, 1),
    "required_word_count": (2, inf),
    "fraction_of_lines_starting_with_bullet_point": (0, 0.9),
    "fraction_of_lines_ending_with_ellipsis": (0, 0.3),
    "fraction_of_duplicate_lines": (0, 0.3),
    "fraction_of_characters_in_duplicate_lines": (0, 0.3),
    "fraction_of_characters_in_most_common_2grams": (0, 0.2),
    "fraction_of_characters_in_most_common_3grams": (0, 0.18),
    "fraction_of_characters_in_most_common_4grams": (0, 0.16),
    "fraction_of_characters_in_duplicate_5grams": (0, 0.15),
    "fraction_of_characters_in_duplicate_6grams": (0, 0.14),
    "fraction_of_characters_in_duplicate_7grams": (0, 0.13),
    "fraction_of_characters_in_duplicate_8grams": (0, 0.12),
    "fraction_of_characters_in_duplicate_9grams": (0, 0.11),
    "fraction_of_characters_in_duplicate_10grams": (0, 0.1),
}
RULE_OF = {
    "word_count": "words",
    "median_word_length": "median_word_length",
    "symbol_to_word_ratio": "symbols",
    "fraction_of_words_with_alpha_character": "words_with_letter",
    "required_word_count": "stop_words",
    "fraction_of_lines_starting_with_bullet_point": "bullets",
    "fraction_of_lines_ending_with_ellipsis": "ellipsis_lines",
    "fraction_of_duplicate_lines": "duplicate_lines",
    "fraction_of_characters_in_duplicate_lines": "duplicate_line_chars",
    **{f"fraction_of_characters_in_most_common_{n}grams": f"top_{n}gram" for n in (2, 3, 4)},
    **{f"fraction_of_characters_in_duplicate_{n}grams": f"dupe_{n}grams" for n in range(5, 11)},
}
"""The rule of the preset ``gopher-dolma`` for each of Dolma's attributes."""


def dolma_reasons(text: str) -> set[str]:
    """The rules that a text fails by Dolma's numbers, by the names that the preset gives them."""
    from dolma.taggers.gopher import get_attributes

    spans = get_attributes(text).as_spans()
    bounds = {
        span.type: (span.score, *_BOUNDS[span.type]) for span in spans if span.type in _BOUNDS
    }
    return {
        RULE_OF[name]
        for name, (score, lowest, highest) in bounds.items()
        if not lowest <= score <= highest
    }
