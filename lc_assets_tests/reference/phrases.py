"""The phrases of concepts that `lc_assets.text.referrals.concepts.LexicalConcepts` finds."""

from lc_assets.text.referrals.concepts import FoundConcepts
from lc_assets.text.referrals.words import spelling


def phrase(text: str, found: FoundConcepts, concept: int) -> str:
    """A concept as it is compared."""
    gram = found.concepts[concept]
    first, size = found.grams.first[gram], found.grams.sizes[gram]
    kinds = found.words.words[first : first + size]
    return " ".join(spelling(text, *span) for span in found.words.spellings[kinds].tolist())


def by_phrase(text: str, found: FoundConcepts) -> dict[str, list[int]]:
    """Sentences by concept."""
    ends = found.mentions.ends.tolist()
    return {
        phrase(text, found, number): found.mentions.sentences[
            ends[number] : ends[number + 1]
        ].tolist()
        for number in range(len(ends) - 1)
    }
