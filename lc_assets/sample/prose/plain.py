"""From documentation markup to lines of plain prose, as a crawler sees a rendered page: one
paragraph, one line.

Here: reStructuredText, Markdown, NumPy, Google and Sphinx docstrings, all by the same few rules,
    because packages
mix them. Not here: where the text comes from (`docstrings`, `packages`), which lines repeat
(`repeats`).

Nothing is rendered. A paragraph ends at a blank line, at a bullet, at a field and where the
indentation changes (but for the lines that hang below a bullet or a field). What is left is dropped
when it does not read like a sentence: program code, tables, signatures, headings.
"""

import re
from collections.abc import Iterator

MIN_WORDS = 6
"""Words that a paragraph must have: headings, signatures and labels have fewer."""

MIN_LETTERS_SHARE = 0.8
"""Share of letters and spaces that a paragraph must have: sentences have 0.92 or more, lines of
code 0.5 to 0.8.
"""

_BULLET = re.compile(r"(?:[-*+•]|\(?\d{1,3}[.)]|#\.)\s+")
_FIELD = re.compile(
    r":(?:param|parameter|arg|key|keyword|kwarg|returns?|raises?|except|yields?|ivar|var|cvar)\b[^:]{0,80}:\s*"
)
_GOOGLE_ITEM = re.compile(r"\*{0,2}[A-Za-z_][\w.]{0,60} ?(?:\([^()]{0,120}\))?:(?:\s+|$)")
_NUMPY_ITEM = re.compile(r"[*\w`.][*\w`., ]{0,80} : ")
_NOT_TEXT = re.compile(r">>>|\.\.\. |\.\. |:(?:type|rtype|vartype)\b|\$ |[|{%]|(\W)\1{2,}\s*$")
_CONTAINER = re.compile(
    r"\.\. (?:note|warning|tip|important|caution|versionadded|versionchanged|deprecated|admonition)::\s*v?[\d.]*"
)

_MARKUP = (
    (re.compile(r"!\[[^\]]{0,200}\](?:\([^)]{0,500}\)|\[[^\]]{0,100}\])"), ""),  # Markdown image
    (
        re.compile(r"\[([^\[\]]{0,300})\](?:\([^)]{0,500}\)|\[[^\]]{0,100}\])"),
        r"\1",
    ),  # Markdown link
    (
        re.compile(r"`([^`<]{0,300}?)\s*<[^`>]{0,500}>`_{0,2}"),
        r"\1",
    ),  # reST link or role with a target
    (re.compile(r":[a-zA-Z][\w:+-]{0,40}:`[~!]?([^`]{0,300})`"), r"\1"),  # reST role
    (re.compile(r"`+([^`]{0,300})`+_{0,2}"), r"\1"),  # code, or reST reference
    (re.compile(r"</?[A-Za-z!][^<>]{0,300}>"), ""),  # HTML tag
    (re.compile(r"\*{1,3}([^*\s][^*]{0,300}?)\*{1,3}"), r"\1"),  # emphasis
    (re.compile(r"\|(\w{1,60})\|"), r"\1"),  # reST substitution
    (re.compile(r"::(?=\s|$)"), ":"),  # reST literal block follows
)
_SIGNS_OF_MARKUP = re.compile(r"[`*|<\[]|::")


def prose_lines(text: str) -> list[str]:
    """The paragraphs of ``text`` that read like sentences, one line each, without markup.

    >>> prose_lines('''Return the ``mean`` of all values
    ... that were given, or None.
    ...
    ... >>> mean([1, 2])
    ... 1.5
    ...
    ... :param values: numbers whose mean is wanted, in any order''')
    ['Return the mean of all values that were given, or None.', 'numbers whose mean is wanted, in any order']
    """
    lines = (without_markup(paragraph) for paragraph in _paragraphs(text))
    return [line for line in lines if is_prose(line)]


def without_markup(paragraph: str) -> str:
    """Take inline markup off a paragraph.

    >>> without_markup("See :func:`~os.path.join` and `the manual <https://a.example/x>`_, *please*.")
    'See os.path.join and the manual, please.'
    """
    paragraph = " ".join(paragraph.split())
    if _SIGNS_OF_MARKUP.search(
        paragraph
    ):  # half of all paragraphs have none, and nine patterns take their time
        for pattern, replacement in _MARKUP:
            paragraph = pattern.sub(replacement, paragraph)
    return " ".join(paragraph.split())


def is_prose(line: str) -> bool:
    """Whether a line reads like a sentence rather than code, a heading or a table.

    >>> is_prose("Values outside the interval are clipped to the interval edges."), is_prose("def clip(a, a_min, a_max, out=None):")
    (True, False)
    """
    if len(line.split(None, MIN_WORDS)) < MIN_WORDS:
        return False
    return sum(map(str.isalpha, line)) + line.count(" ") >= MIN_LETTERS_SHARE * len(line)


def _paragraphs(text: str) -> Iterator[str]:
    words: list[str] = []
    margin = 0
    doctest = fenced = hanging = False
    for line in text.expandtabs().split("\n"):
        content = line.strip()
        if content.startswith(("```", "~~~")):
            fenced = not fenced
        doctest = bool(content) and (doctest or content.startswith(">>>"))
        indent = len(line) - len(line.lstrip())
        begins, content = _opening(content, indented=indent > 0)
        if words and (
            begins or not content or indent < margin or (indent > margin and not hanging)
        ):
            yield " ".join(words)
            words = []
        margin, hanging = indent, begins
        if content and not doctest and not fenced:
            words.append(content)
    if words:
        yield " ".join(words)


def _opening(content: str, *, indented: bool) -> tuple[bool, str]:
    """Whether a line opens a paragraph, and the line without the sign that says so."""
    container = _CONTAINER.match(content)
    if container:
        return True, content[container.end() :].strip()
    if _NOT_TEXT.match(content) or _NUMPY_ITEM.match(content):
        return True, ""
    sign = (
        _BULLET.match(content)
        or _FIELD.match(content)
        or (indented and _GOOGLE_ITEM.match(content))
    )
    return (
        (True, content[sign.end() :])
        if sign
        else (False, content.lstrip("# ") if content.startswith("#") else content)
    )
