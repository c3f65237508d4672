r"""spaCy's English words, which datatrove counts: punctuation, contractions and units are cut off.

A run without white space is taken apart from both ends: exceptions (``don't``, ``a.m.``, ``:-)``)
first, then a prefix and a suffix at a time, until there is neither; what is left stays whole where
it is an address, and is cut at infixes else. Neighbours that make up an exception are joined again.
Time is linear in the text.

The rules are those of ``spacy.blank("en")``, but for two simplifications: letters beyond
Latin-1 have no case, and an address has at most one ``@``.

Source: spaCy 3.8 (MIT licence): ``lang/en/tokenizer_exceptions.py``, ``lang/punctuation.py``,
``lang/tokenizer_exceptions.py``, ``lang/char_classes.py``, ``tokenizer.pyx``.
"""

import re
from unicodedata import category

_CONTRACTIONS = """
ai are dare has have is was were: n't nt
ca did does do had may need ought sha wo: n't n't|'ve nt nt|ve
could might must should would: 've ve n't n't|'ve nt nt|ve
can: not
not: 've ve
gon: na
got: ta
let: 's
he: 'd 'd|'ve 'll 'll|'ve 's d d|ve ll|ve s
she: 'd 'd|'ve 'll 'll|'ve 's d|ve ll|ve s
it: 'd 'd|'ve 'll 'll|'ve 's d d|ve ll ll|ve
this that: 'd 'd|'ve 'll 'll|'ve 's d d|ve ll ll|ve s
i: 'd 'd|'ve 'll 'll|'ve 'm 'm|a 've d d|ve ll|ve m m|a ve
we: 'd 'd|'ve 'll 'll|'ve 're 've d d|ve ll|ve ve
these they those you: 'd 'd|'ve 'll 'll|'ve 're 've d d|ve ll ll|ve re ve
who: 'd 'd|'ve 'll 'll|'ve 're 's 've d d|ve ll ll|ve s ve
there what when where why: 'd 'd|'ve 'll 'll|'ve 're 's 've d d|ve ll ll|ve re s ve
how: 'd 'd|'ve 'd|'y 'll 'll|'ve 're 's 've d d|ve ll ll|ve re s ve
c'm: on
"""
"""Words and the words that follow them, in lower case."""

_ELIDED = """
' '' 'Cause 'Cos 'Coz 'Cuz 'S 'bout 'cause 'cos 'coz 'cuz 'd 'em 'll 'nuff 're 's Doin' Goin' Havin'
Lovin' Ma'am Nothin' Nuthin' O'clock Ol' Somethin' doin' goin' havin' lovin' ma'am nothin' nuthin'
o'clock ol' somethin' y'|all y|all
"""

_WHOLE = r"""
Adm. Ak. Ala. Apr. Ariz. Ark. Aug. Bros. C++ Calif. Co. Colo. Conn. Corp. D.C. Dec. Del. Doin Dr.
E.G. E.g. Feb. Fla. Ga. Gen. Goin Gov. Havin I.E. I.e. Ia. Id. Ill. Inc. Ind. Jan. Jr. Jul. Jun.
Kan. Kans. Ky. La. Lovin Ltd. Mar. Mass. Md. Messrs. Mich. Minn. Miss. Mo. Mont. Mr. Mrs. Ms. Mt.
N.C. N.D. N.H. N.J. N.M. N.Y. Neb. Nebr. Nev. Nothin Nov. Nuthin Oct. Okla. Ol Ore. Pa. Ph.D. Prof.
Rep. Rev. S.C. Sen. Sep. Sept. Somethin St. Tenn. Va. Wash. Wis. a.m. and/or co. doin e.g. em goin
havin i.e. ll lovin nothin nuff nuthin ol p.m. somethin v.s. vs. w/o ä. ö. ü. ‘S ‘s —
a. b. c. d. e. f. g. h. i. j. k. l. m. n. o. p. q. r. s. t. u. v. w. x. y. z.
(*_*) (-8 (-: (-; (-_-) (._.) (: (; (= (>_<) (^_^) (o: (¬_¬) (ಠ_ಠ) (╯°□°）╯︵┻━┻ )-: ): -_- -__- ._.
0.0 0.o 0_0 0_o 8) 8-) 8-D 8D :'( :') :'-( :'-) :( :(( :((( :() :) :)) :))) :* :-( :-(( :-((( :-)
:-)) :-))) :-* :-/ :-0 :-3 :-> :-D :-O :-P :-X :-] :-o :-p :-x :-| :-} :/ :0 :1 :3 :> :D :O :P :X
:] :o :o) :p :x :| :} :’( :’) :’-( :’-) ;) ;-) ;-D ;D ;_; <.< </3 <3 <33 <333 <space> =( =) =/ =3
=D =[ =] =| >.< >.> >:( >:o ><(((*> @_@ O.O O.o O_O O_o V.V V_V XD XDD [-: [: [= \") \n \t ]= ^_^
^__^ ^___^ o.0 o.O o.o o_0 o_O o_o v.v v_v xD xDD ¯\(ツ)/¯ ಠ_ಠ ಠ︵ಠ
"""
"""Abbreviations and emoticons that stay whole."""

_ICONS = (
    r"\xa6\xa9\xae\xb0\u0482\u058d-\u058e\u060e-\u060f\u2100-\u2101\u2103-\u2106\u2108-\u2109\u2114"
    r"\u2116-\u2117\u211e-\u2123\u2125\u2127\u2129\u212e\u213a-\u213b\u214a\u214c-\u214d\u214f"
    r"\u2195-\u2199\u219c-\u219f\u21a1-\u21a2\u21a4-\u21a5\u21a7-\u21ad\u21af-\u21cd\u21d0-\u21d1"
    r"\u21d3\u21d5-\u21f3\u2300-\u2307\u230c-\u231f\u2322-\u2328\u232b-\u237b\u237d-\u239a"
    r"\u23b4-\u23db\u23e2-\u2426\u2440-\u244a\u249c-\u24e9\u2500-\u25b6\u25b8-\u25c0\u25c2-\u25f7"
    r"\u2600-\u266e\u2670-\u2767\u2794-\u27bf\u2800-\u28ff\u2b00-\u2b2f\u2b45-\u2b46\u2b4d-\u2bfe"
    r"\u2ce5-\u2cea\u2e80-\u2fd5\u2ff0-\u2ffb\u3004\u3012-\u3013\u3020\u3036-\u3037\u303e-\u303f"
    r"\u3190-\u3191\u3196-\u319f\u31c0-\u31e3\u3200-\u33ff\u4dc0-\u4dff\ua490-\ua4c6\ufdfd\uffe4"
    r"\uffe8\uffed-\uffee\ufffc-\ufffd\U0001f000-\U0001f0f5\U0001f110-\U0001f3fa"
    r"\U0001f400-\U0001fa6d"
)
"""Pictures and symbols that are words: Unicode's category So of living scripts."""

_QUOTES = "'\"”“`‘´’‚,„»«「」『』（）〔〕【】《》〈〉⟦⟧"
_MARKS = "…,:;!?¿؟¡()\\[\\]{}<>_#*&。？！，、；：～·।،۔؛٪"
_CURRENCY = "$£€¥฿₠-₿﷼"
_UNITS = (
    "km²|km³|km/h|kmh|km|m/s|mph|mbar|m²|m³|mm²|mm³|mm|mg|mb|mB|MB|m|dm²|dm³|dm|cm²|cm³|cm|ha|hPa"
    "|µm|µg|nm|yd|in|ft|kg|kPa|kb|KB|lb|oz|Pa|g|t|gb|GB|tb|TB|T|G|M|K|%"
)
_LETTER = r"[^\W\d_]"
_UPPER, _LOWER = "A-ZÀ-ÖØ-Þ", "a-zß-öø-ÿ"

_PREFIX = re.compile(rf"\.\.+|(?:US|C|A)\$|\+(?![0-9])|[§%=—–{_MARKS}{_QUOTES}{_CURRENCY}{_ICONS}]")
_SUFFIX = re.compile(
    rf"(?:[{_MARKS}{_QUOTES}{_ICONS}—–]|\.\.+|['’][sS]|(?<=[0-9])(?:\+|[{_CURRENCY}]|{_UNITS})"
    rf"|(?<=°[FfCcKk])\.|(?<=[0-9%²+\-|{_MARKS}{_QUOTES}])\.|(?<={_LETTER})(?<![{_UPPER}])\."
    rf"|(?<={_LETTER}{_LETTER})(?<![{_LOWER}].)(?<![{_LOWER}])\.)\Z"
)
_INFIX = re.compile(
    rf"\.\.+|[…{_ICONS}]|(?<=[0-9])[+\-*^](?=[0-9-])"
    rf"|(?:(?<={_LETTER})(?<![{_UPPER}])|(?<=[{_QUOTES}]))\.(?=(?![{_LOWER}]){_LETTER}|[{_QUOTES}])"
    rf"|(?<={_LETTER}),(?={_LETTER})"
    rf"|(?:(?<={_LETTER})|(?<=[0-9]))(?:---?|——?|[-–~:<>=/])(?={_LETTER})"
)
_LABEL = "[A-Za-z0-9\xa1-\uffff](?:[A-Za-z0-9\xa1-\uffff_-]{0,62}[A-Za-z0-9\xa1-\uffff])?"
_ADDRESS = re.compile(
    rf"(?:[\w+.-]{{2,}}://)?(?:[^@]+@)?(?:{_LABEL}\.)+(?:(?![{_UPPER}]){_LETTER}){{2,63}}"
    r"(?::\d{2,5})?(?:[/?#].*)?"
)
_WINDOW = 16
"""Characters that hold the longest exception or suffix, a run of dots aside."""

_PIECES = 5
"""Words of which an exception is made up at most where it is joined again."""

_CACHED = 1 << 16
"""Runs of which the words are remembered."""


def _exceptions() -> dict[str, str]:
    """Exceptions, and their words with spaces between."""
    words = {*_ELIDED.split()}
    for line in _CONTRACTIONS.strip().splitlines():
        bases, endings = line.split(": ")
        for base in bases.split():
            pairs = {f"{base}|{ending}" for ending in endings.split()}
            words |= pairs | {pair.capitalize() for pair in pairs}
    words |= {word.replace("'", "’") for word in words}
    words |= {f"{hour}|{half}" for hour in range(1, 13) for half in ("am", "pm", "a.m.", "p.m.")}
    words |= {f"°|{unit}|." for unit in "CFKcfk"}
    found = {word.replace("|", ""): word.replace("|", " ") for word in words}
    return found | {emoticon: emoticon for emoticon in _WHOLE.split()}


_EXCEPTIONS = _exceptions()
_CUTTABLE = frozenset(
    exception
    for exception in _EXCEPTIONS
    if _PREFIX.match(exception) or _SUFFIX.search(exception) or _INFIX.search(exception)
)


_STOPS = frozenset(".!?‼‽⁇⁈⁉։؟۔।॥。｡！．？﹒﹖﹗")
"""Words that end a sentence."""


class _Runs(dict[str, str]):
    """Runs without white space, with spaces between their words; computed when first asked for."""

    def __missing__(self, run: str) -> str:
        spaced = _EXCEPTIONS.get(run) or (run if run.isalpha() else " ".join(_cut(run)))
        if len(self) >= _CACHED:
            self.clear()
        if len(run) <= 4 * _WINDOW:
            self[run] = spaced
        return spaced


_runs = _Runs()


def spaced(text: str) -> str:
    """Put a space between the words of a text, in place of its white space.

    >>> spaced("We don't pay US$5 (at 10am), e.g. in well-known shops.")
    "We do n't pay US$ 5 ( at 10 am ) , e.g. in well - known shops ."
    """
    return " ".join(map(_runs.__getitem__, text.split()))


def count_sentences(text: str) -> int:
    r"""Count sentences as datatrove's filter of C4 does: by spaCy's rule, line by line.

    A sentence ends after one of `_STOPS` and the words of punctuation that follow it.

    >>> count_sentences("Mr. Wu came. (Late.) Why?\nNo reply")
    4
    """
    n_sentences = 0
    for line in text.splitlines():
        words, ended = spaced(line).split(), False
        n_sentences += bool(words)
        for word in words:
            if word in _STOPS:
                ended = True
            elif ended and not all(category(character)[0] == "P" for character in word):
                n_sentences += 1
                ended = False
    return n_sentences


def _cut(run: str) -> list[str]:
    """The words of a run without white space."""
    start, end = 0, len(run)
    words: list[str] = []
    suffixes: list[str] = []
    while start < end and not _exception(run, start, end):
        prefix = _PREFIX.match(run, start, end)
        after = prefix.end() if prefix else start
        if prefix and _exception(run, after, end):
            words.append(prefix.group())
            start = after
            break
        before = _suffix_start(run, after, end)
        if not prefix and before == end:
            break
        if prefix:
            words.append(prefix.group())
        if before < end:
            suffixes.append(run[before:end])
        start, end = after, before
    if start < end:
        words += _middle(run[start:end])
    return _rejoined(words + suffixes[::-1])


def _rejoined(words: list[str]) -> list[str]:
    """Words, those that together are an exception replaced by its words, the longest first."""
    joined: list[str] = []
    at = 0
    while at < len(words):
        for after in range(min(at + _PIECES, len(words)), at, -1):
            whole = "".join(words[at:after])
            if after == at + 1 or whole in _CUTTABLE:
                break
        joined.append(_EXCEPTIONS[whole] if after > at + 1 else whole)
        at = after
    return joined


def _exception(run: str, start: int, end: int) -> str | None:
    """The words of an exception that lies there, with spaces between."""
    return _EXCEPTIONS.get(run[start:end]) if end - start <= _WINDOW else None


def _suffix_start(run: str, start: int, end: int) -> int:
    """Where the suffix of a part begins; its end where it has none."""
    window = run[max(start, end - _WINDOW) : end]
    if not window.strip("."):
        window = run[start:end]
    suffix = _SUFFIX.search(window)
    return end - len(suffix.group()) if suffix else end


def _middle(part: str) -> list[str]:
    """The words of a part that has neither prefix nor suffix."""
    if part in _EXCEPTIONS:
        return _EXCEPTIONS[part].split()
    if _ADDRESS.fullmatch(part):
        return [part]
    words: list[str] = []
    start = 0
    for infix in _INFIX.finditer(part):
        if infix.start():
            words += [part[start : infix.start()], infix.group()]
            start = infix.end()
    return [word for word in (*words, part[start:]) if word]
