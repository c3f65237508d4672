"""Texts of our own that measures are held to: edges first, then pages."""

SENTENCE = (
    "The keeper of the light counted the ships that have to pass, and noted each one with care."
)
LIST = "\n".join(f"- item {number}" for number in range(12))
NUMBERS = " ".join(["1 11 1 1 11 1", "11 1 1 11 1 1"] * 6)

TEXTS = (
    "",
    " ",
    "\n",
    "\n\n \n\n",
    "a",
    "to be",
    "# # #",
    "...",
    "…",
    "Wait... what…\nWell ...  \n… \nEnd....",
    "word " * 30,
    "ha" * 200,
    "one\ntwo\none\n\n\none\n \n \n",
    "\n\nleading and trailing\n\nleading and trailing\n\n",
    "  first  \n\n  first  \n\nfirst",
    "a\r\nb\r\n\r\na\r\n",
    "a\u2028b\x0bc\x1cd\x85e",
    LIST,
    "• eins\n•zwei\n  • drei\n* vier\n– fünf",
    NUMBERS,
    "a b c d e f a b c d e f g a b c d e f g h",
    "x" * 40 + " " + "x" * 40,
    "Żółw e\u0301te\u0301 naïve İstanbul ΣΑΣ 東京 한국 ﬁn",
    "नमस्ते दुनिया। यह एक वाक्य है।\nदूसरी पंक्ति।",
    "שלום עולם, זה טקסט מימין לשמאל!\nעוד שורה",
    "\x00 nul \x00the be\x00 to",
    "😀 😀 😀 the 😀 and 😀",
    "１２ ％ full-width １ marks。\nおわり。",
    f"{SENTENCE}\n{SENTENCE}\n\n{SENTENCE} {SENTENCE}",
    "\n".join(
        [
            SENTENCE,
            "short",
            "short",
            SENTENCE.upper(),
            "",
            'Ends with a quote."',
            "javascript must be on.",
            "We use cookies, see.",
        ]
    ),
    (
        "This line keeps its end.[3]\nThis one ends in [edit]\nThree little words.\nTwo "
        "words.\nTrailing off ...\nLorem ipsum dolor sit amet."
    ),
    "A fine line about code.\nint main() { return 0; } is code.\n",
    "Javascript and { in one line are spared.\nBut the page goes on to its end.",
    "\n\n".join(f"{SENTENCE} Page {number % 7}." for number in range(30)),
    "\n".join(f"{number}. {SENTENCE[number:]}" for number in range(25)),
    "Le phare s'allume à la nuit. « Où vont les bateaux ? » demande l'enfant.\n" * 3,
    (
        "Der Wärter zählte Schiffe; die größten kamen spät.\n\nEl farero contó los barcos… "
        "¿cuántos?\n\nIl guardiano contò le navi."
    ),
)
