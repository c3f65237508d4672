"""Anchor texts: which say nothing of what they lead to, and which stand in a text.

Not here: where anchor texts come from (`lc_assets.text.links`).
"""

import re
from typing import Final

GENERIC: Final = frozenset(
    {
        # English
        *(
            "here",
            "click here",
            "click",
            "this",
            "this link",
            "this page",
            "link",
            "more",
            "read more",
            "more info",
            "learn more",
        ),
        *(
            "see more",
            "show more",
            "view more",
            "find out more",
            "continue",
            "continue reading",
            "details",
            "full story",
            "view",
            "go",
        ),
        *(
            "next",
            "next page",
            "prev",
            "previous",
            "previous page",
            "back",
            "up",
            "top",
            "back to top",
            "to top",
            "first",
            "last",
        ),
        *(
            "home",
            "homepage",
            "index",
            "contents",
            "table of contents",
            "menu",
            "search",
            "login",
            "log in",
            "sign in",
            "sign up",
        ),
        *(
            "register",
            "subscribe",
            "share",
            "print",
            "email",
            "e mail",
            "rss",
            "reply",
            "permalink",
            "edit",
            "download",
            "source",
        ),
        *(
            "older",
            "newer",
            "older posts",
            "newer posts",
            "website",
            "page",
            "skip to content",
            "skip to main content",
            "close",
        ),
        # German
        *(
            "hier",
            "hier klicken",
            "mehr",
            "mehr lesen",
            "mehr erfahren",
            "weiterlesen",
            "weiter",
            "zurück",
            "nach oben",
            "startseite",
        ),
        *(
            "lesen sie mehr",
            "nächste",
            "vorherige",
            "nächste seite",
            "vorherige seite",
            "inhalt",
            "suche",
            "anmelden",
            "drucken",
        ),
        # French
        *(
            "ici",
            "cliquez ici",
            "plus",
            "en savoir plus",
            "lire la suite",
            "lire plus",
            "voir plus",
            "suivant",
            "précédent",
            "retour",
        ),
        *(
            "accueil",
            "page suivante",
            "page précédente",
            "haut de page",
            "sommaire",
            "rechercher",
            "connexion",
            "imprimer",
        ),
        # Spanish
        *(
            "aquí",
            "haz clic aquí",
            "más",
            "leer más",
            "ver más",
            "seguir leyendo",
            "siguiente",
            "anterior",
            "volver",
            "inicio",
        ),
        *(
            "página siguiente",
            "página anterior",
            "arriba",
            "contenido",
            "buscar",
            "iniciar sesión",
            "imprimir",
        ),
        # Italian
        *(
            "qui",
            "clicca qui",
            "più",
            "leggi tutto",
            "leggi di più",
            "continua",
            "continua a leggere",
            "scopri di più",
            "successivo",
        ),
        *(
            "precedente",
            "indietro",
            "pagina successiva",
            "pagina precedente",
            "torna su",
            "cerca",
            "accedi",
            "stampa",
        ),
    }
)
"""Texts that name a way to go rather than what is there, in RedPajama-V2's five languages: lower
case, words apart by one space.
"""

_WORD: Final = re.compile(r"\w+")


def words_of(text: str) -> str:
    """The words of a text without case and punctuation, one space before and after each: what
    `stands_in` compares.

    >>> words_of("Read more…"), words_of("»")
    (' read more ', ' ')
    """
    return " ".join(["", *_WORD.findall(text.casefold()), ""])


def is_generic(anchor: str) -> bool:
    """Whether an anchor text says nothing of what it leads to: one of `GENERIC`, a number, or
    without any word.

    >>> [is_generic(anchor) for anchor in ("Click HERE!", "»", "[12]", "", "The next generation")]
    [True, True, True, True, False]
    """
    words = words_of(anchor).strip()
    return words in GENERIC or words.replace(" ", "").isdigit() or not words


def stands_in(anchor_words: str, text_words: str) -> bool:
    """Whether an anchor's words stand in a text's, whole and side by side; both as `words_of` gives
    them.

    >>> stands_in(words_of("a cat"), words_of("It's a *cat*.")), stands_in(words_of("cat"), words_of("cats")), stands_in(" ", " a ")
    (True, False, False)
    """
    return len(anchor_words) > 1 and anchor_words in text_words
