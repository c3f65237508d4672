r"""Lists of withdrawals: what must no longer be served, why, and since when. A text file kept under
version control.

UTF-8, one entry per line, in the CSV of RFC 4180; the first line that is not a comment names the
columns::

    # taken down at the owner's request
    kind,value,reason,date
    domain,example.org,"owner's request, ticket 17",2026-03-01
    url,https://example.com/private/page,personal data,2026-03-04
    document,2023-06/0000/en_head.json.gz/17,court order,2026-03-09
    digest,sha1:ZFRBHGQKZRRGXLVXHZUDJTXRDRGPNGPE,duplicate of the above,2026-03-09

============  ================================================================================
column        what
============  ================================================================================
``kind``      ``document``, ``url``, ``domain`` or ``digest``; what each matches is in
              `lc_assets.text.links.addresses`. Or ``passage``: documents that contain a text
``value``     the id, address, domain, digest or text, of at least 8 words
``reason``    in words, for people and reports; not empty
``date``      of the entry, YYYY-MM-DD
============  ================================================================================

Blank lines and lines that begin with ``#`` are skipped. An entry is one line, and no two have the
same kind and value. Anything else is an error that names the line: an entry that was silently
skipped would still be served.
"""

import csv
import datetime as dt
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Self

from lc_assets.errors import BadInput, LcError, known_names
from lc_assets.publishing import publish_bytes, writing_in
from lc_assets.records import record
from lc_assets.text.links.addresses import KINDS, Kind, host_of, is_public_suffix, normal
from lc_assets.vocabulary import parse_document_id

ENTRY_KINDS: tuple[Kind, ...] = (*KINDS, "passage")
LEAST_WORDS = 8
"""Of a passage: shorter ones stand in many documents."""
COLUMNS = ("kind", "value", "reason", "date")
MAX_LINE_CHARS = 16_384
MAX_LIST_BYTES = 64 << 20
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DIGEST = re.compile(r"[a-z0-9]+:[A-Za-z0-9]+", re.ASCII)
_TEXT_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


@record
class Withdrawal:
    """One entry: what is withdrawn, why, and since when.

    Attributes:
        where: its file and line, for messages.
    """

    kind: Kind
    value: str
    reason: str
    date: str
    where: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name in COLUMNS:
            cell = getattr(self, name)
            if not cell or cell != cell.strip():
                problem = "surrounded by spaces" if cell.strip() else "empty"
                raise BadInput(f"{name} is {problem}: {cell!r}")
            if not cell.isprintable():
                raise BadInput(f"{name} contains unprintable characters: {cell!r}")
        try:
            is_day = bool(_DATE.fullmatch(self.date) and dt.date.fromisoformat(self.date))
        except ValueError:
            is_day = False
        if not is_day:
            raise BadInput(f"{self.date!r} is not a date; expected a day such as 2026-03-01")
        _require_sound(self.kind, self.value)

    @classmethod
    def of(cls, cells: Sequence[str], where: str = "") -> Self:
        """An entry from the cells of its line.

        Raises:
            BadInput: when they are not an entry; states what was expected.
        """
        if len(cells) != len(COLUMNS):
            raise BadInput(
                f"{len(cells)} cells, expected {len(COLUMNS)}: {','.join(COLUMNS)}; put a cell "
                "with a comma in quotes"
            )
        named, value, reason, date = cells
        kind = next((known for known in ENTRY_KINDS if known == named), None)
        if kind is None:
            raise BadInput(f"no kind {named!r}; there are {known_names(ENTRY_KINDS, named)}")
        return cls(kind=kind, value=value, reason=reason, date=date, where=where)

    @property
    def sought(self) -> tuple[Kind, str]:
        """Kind and value in the form that is looked up."""
        return self.kind, normal(self.kind, self.value)

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The cells of its line."""
        return self.kind, self.value, self.reason, self.date


def parse_withdrawals(text: str, *, where: str) -> list[Withdrawal]:
    """The entries of a list, in order; ``where`` names it in errors.

    Raises:
        BadInput: when it is not such a list; names the line.
    """
    found: list[Withdrawal] = []
    lines: dict[tuple[Kind, str], int] = {}
    for place, (number, line) in enumerate(_lines(text)):
        at = f"{where}, line {number}"
        cells = _cells(line, at)
        if not place:
            if tuple(cells) != COLUMNS:
                raise BadInput(
                    f"{at}: the first line names the columns: expected {','.join(COLUMNS)}, got "
                    f"{','.join(cells)[:200]}"
                )
            continue
        try:
            entry = Withdrawal.of(cells, at)
        except LcError as error:
            raise BadInput(f"{at}: {error}") from error
        if entry.sought in lines:
            raise BadInput(
                f"{at}: repeats {entry.kind} {entry.value} of line {lines[entry.sought]}; "
                "keep one of them"
            )
        lines[entry.sought] = number
        found.append(entry)
    return found


def read_withdrawals(path: Path) -> list[Withdrawal]:
    """The entries of a list's file, in order.

    Raises:
        BadInput: when there is no such file, it is too large, not UTF-8, or not such a list; names
            the line.
    """
    if not path.is_file():
        raise BadInput(f"{path}: no such list of withdrawals")
    return parse_withdrawals(_text_of(path), where=str(path))


def entries_of(paths: Iterable[str]) -> list[Withdrawal]:
    """Entries of some lists, in order; of several with the same kind and value, the first.

    Raises:
        BadInput: if a list cannot be read; names the line.
    """
    found: dict[tuple[Kind, str], Withdrawal] = {}
    for path in paths:
        for entry in read_withdrawals(Path(path)):
            found.setdefault(entry.sought, entry)
    return list(found.values())


def append_withdrawal(path: Path, entry: Withdrawal) -> None:
    """Append an entry to a list, which is created if it does not exist; its present bytes are
    unchanged.

    Raises:
        BadInput: when the list cannot be read, or has this kind and value already.
    """
    with writing_in(path.parent):
        text = _text_of(path) if path.is_file() else ""
        if text and not text.endswith("\n"):
            text += "\n"
        if not any(_lines(text)):
            text += f"{','.join(COLUMNS)}\n"
        text += f"{line_of(entry)}\n"
        parse_withdrawals(text, where=str(path))
        publish_bytes(path, text.encode())


def _text_of(path: Path) -> str:
    if path.stat().st_size > MAX_LIST_BYTES:
        raise BadInput(
            f"{path}: larger than {MAX_LIST_BYTES:,} bytes; split the list into several files"
        )
    content = path.read_bytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}, line {line}: not UTF-8: {error}") from error


def line_of(entry: Withdrawal) -> str:
    """An entry as a line of a list.

    >>> day = "2026-03-01"
    >>> line_of(Withdrawal(kind="domain", value="example.org", reason="request, by mail", date=day))
    'domain,example.org,"request, by mail",2026-03-01'
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(entry.cells)
    return line.getvalue()


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are neither blank nor comments, with their numbers from 1."""
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        bare = line.removesuffix("\r")
        if bare.strip() and not bare.lstrip().startswith("#"):
            yield number, bare


def _cells(line: str, at: str) -> list[str]:
    if len(line) > MAX_LINE_CHARS:
        raise BadInput(f"{at}: longer than {MAX_LINE_CHARS:,} characters")
    try:
        (cells,) = csv.reader([line], strict=True)
    except (csv.Error, ValueError) as error:
        raise BadInput(
            f"{at}: quotes do not match; a quote within quotes is written twice: {error}"
        ) from error
    return cells


def _require_sound(kind: Kind, value: str) -> None:
    if kind == "document":
        parse_document_id(value)
    elif kind == "domain":
        _require_domain(value)
    elif kind == "url":
        if "." not in host_of(value):
            raise BadInput(
                f"not a page's address: {value!r}; expected such as https://example.org/page"
            )
    elif kind == "passage":
        if len(value.split()) < LEAST_WORDS:
            raise BadInput(
                f"a passage of fewer than {LEAST_WORDS} words stands in many documents: {value!r}"
            )
    elif kind == "digest":
        expected = _TEXT_DIGEST if value.startswith("sha256:") else _DIGEST
        if not expected.fullmatch(value):
            raise BadInput(
                f"not a digest: {value!r}; expected a page's, such as sha1:ZFRB..., or sha256: and "
                "64 hexadecimal digits of a text"
            )


def _require_domain(value: str) -> None:
    host = normal("domain", value)
    if "." not in host or set(value) & set("/?#@ "):
        raise BadInput(f"not a domain: {value!r}; expected such as example.org")
    if is_public_suffix(host):
        raise BadInput(
            f"{value!r} is a public suffix: the domains below it have many owners; name the "
            "domains to withdraw"
        )
