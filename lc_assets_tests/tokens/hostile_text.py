"""Text where tokenizers go wrong."""

from hypothesis import strategies as st

PIECES = (
    *("<|endoftext|>", "<|endoftext", "|>", '{"a": 1}', "\\n", "a" * 40, "....", "—"),
    *(
        " ",
        "  ",
        " " * 17,
        "\n",
        "\n\n",
        "\r\n",
        "\t",
        "\x00",
        "\x1c",
        "\x1f",
        "\x85",
        "\xa0",
        "\u2003",
        "\u2028",
        "\u3000",
    ),
    *(
        "'ll",
        "'LL",
        "'s",
        "\u2019s",
        "don't",
        "the",
        " The",
        "1234567",
        "½",
        "²",
        "٣",
        "naïve",
        "nai\u0308ve",
        "Straße",
        "ﬁ",
        "e\u0301",
    ),
    *(
        "漢字",
        "ไทย",
        "العربية",
        "\U0001f600",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0010ffff",
    ),
    *("\ufeff", "\ufffd", "\ud800", "\udc00", "\ud83d\ude00"),
)
"""Where tokenizers go wrong: special tokens as text, white space of every kind, contractions,
digits, surrogates, marks.
"""

HOSTILE_TEXT = st.lists(
    st.sampled_from(PIECES) | st.text(st.characters(codec=None), max_size=6), max_size=12
).map("".join)
"""Text of such pieces and of any characters at all, lone surrogates included."""
