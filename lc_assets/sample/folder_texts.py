r"""A person's own folder of texts as pages of a crawl.

Read are files that end in ``.txt``, ``.md`` or ``.rst``, in the folder and below, in the order of
their paths, as UTF-8. A byte order mark is an encoding's sign and not text, so it is taken off;
line ends become ``\n`` and lines lose the blanks at their ends, as CCNet's do. The first line that
holds anything is the page's title. Nothing else is
changed: blank lines and repeated lines stay.

What is not read is named with its reason in `FolderTexts.skipped`; it stops nothing.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from lc_assets.errors import BadInput
from lc_assets.sample.page import MIN_CHARS, Page
from lc_assets.vocabulary import LANGUAGES

SUFFIXES = (".txt", ".md", ".rst")

MAX_TEXT_BYTES = 64 * 1024 * 1024
"""A larger file is no text that somebody wrote; it would have to fit into memory."""

HOST = "folder.invalid"
"""Host of the pages' addresses; ``.invalid`` belongs to nobody (RFC 2606)."""


@dataclass(slots=True)
class FolderTexts:
    """The pages of a folder; a `lc_assets.sample.page.Texts`.

    Attributes:
        folder: where the files are.
        paths: the files to read, relative to ``folder``, sorted.
        language: of all of them.
        sources: SHA-256 of each file that became a page; complete once the pages have been
            iterated.
        skipped: files that did not, by reason; complete once the pages have been iterated.
    """

    folder: Path
    paths: tuple[Path, ...]
    language: str
    sources: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, list[str]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Page]:
        for path in self.paths:
            page = self._read(path)
            if page is not None:
                yield page

    def skip(self, reason: str, name: str) -> None:
        """Note a file that is not used; once, however often the pages are iterated."""
        names = self.skipped.setdefault(reason, [])
        if name not in names:
            names.append(name)

    def _read(self, path: Path) -> Page | None:
        try:
            content = (self.folder / path).read_bytes()
            title, *lines = _lines(content.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            self.skip("not UTF-8", f"{_shown(path)} (byte {error.start:,})")
            return None
        except OSError as error:
            self.skip("cannot be opened", f"{_shown(path)} ({error.strerror})")
            return None
        page = Page.whole(
            f"https://{HOST}/{quote(os.fsencode(path))}", title, lines, language=self.language
        )
        if page.n_chars < MIN_CHARS:
            self.skip(f"shorter than {MIN_CHARS} characters", _shown(path))
            return None
        self.sources[_shown(path)] = hashlib.sha256(content).hexdigest()
        return page


def texts_from_folder(folder: Path, *, language: str = "en") -> FolderTexts:
    """The texts of a folder and the folders below it.

    Args:
        folder: where to look; links that lead out of it are not followed.
        language: of all the texts.

    Raises:
        BadInput: when it is no folder, holds no text, or the language is none of RedPajama-V2's.
    """
    if language not in LANGUAGES:
        raise BadInput(f"no such language: {language!r}; RedPajama-V2 has {', '.join(LANGUAGES)}")
    if not folder.is_dir():
        raise BadInput(f"{folder}: not a folder; wanted one that holds {', '.join(SUFFIXES)} files")
    texts = FolderTexts(folder, (), language)
    texts.paths = tuple(path for path in _files(folder, texts) if _is_wanted(folder, path, texts))
    if not texts.paths:
        raise BadInput(
            f"{folder}: holds no text; wanted {', '.join(SUFFIXES)} files, found "
            f"{_counted(texts.skipped)}"
        )
    return texts


def _files(folder: Path, texts: FolderTexts) -> list[Path]:
    paths = []
    for parent, folders, files in os.walk(folder):
        here = Path(parent)
        for name in folders:
            if (here / name).is_symlink():
                texts.skip("link to a folder", _shown((here / name).relative_to(folder)))
        paths += [(here / name).relative_to(folder) for name in files]
    return sorted(paths)


def _is_wanted(folder: Path, path: Path, texts: FolderTexts) -> bool:
    reason = _reason_against(folder, path)
    if reason is not None:
        texts.skip(reason, _shown(path))
    return reason is None


def _reason_against(folder: Path, path: Path) -> str | None:
    place = folder / path
    if path.suffix.lower() not in SUFFIXES:
        return f"not {', '.join(SUFFIXES)}"
    if not place.resolve().is_relative_to(folder.resolve()):
        return "link out of the folder"
    if not place.is_file():
        return "not a file"
    return (
        f"larger than {MAX_TEXT_BYTES:,} bytes" if place.stat().st_size > MAX_TEXT_BYTES else None
    )


def _lines(text: str) -> list[str]:
    """Lines without the blanks at their ends and without the blank lines around them all; at least
    one.
    """
    lines = [
        line.strip() for line in text.replace("\r\n", "\n").replace("\r", "\n").strip().split("\n")
    ]
    return lines or [""]


def _shown(path: Path) -> str:
    return path.as_posix().encode("utf-8", "backslashreplace").decode()


def _counted(skipped: dict[str, list[str]]) -> str:
    return ", ".join(f"{len(names):,} {reason}" for reason, names in skipped.items()) or "nothing"
