"""The phrases of concepts that `lc_assets.text.referrals.concepts.LexicalConcepts` finds."""

from lc_assets.text.referrals.concepts import FoundConcepts
from lc_assets.text.referrals.words import spelling


def phrase(text: str, found: FoundConcepts, concept: int) -> str:
    """A concept as it is compared."""
    numbers, gram, n_kinds = list[int](), int(found.concepts[concept]), len(found.words.weights)
    while gram >= n_kinds:
        numbers.append(int(found.grams.right[gram - n_kinds]))
        gram = int(found.grams.left[gram - n_kinds])
    return " ".join(
        spelling(text, *found.words.spellings[number].tolist())
        for number in [gram, *reversed(numbers)]
    )


def by_phrase(text: str, found: FoundConcepts) -> dict[str, list[int]]:
    """Sentences by concept."""
    ends = found.mentions.ends.tolist()
    return {
        phrase(text, found, number): found.mentions.sentences[
            ends[number] : ends[number + 1]
        ].tolist()
        for number in range(len(ends) - 1)
    }
