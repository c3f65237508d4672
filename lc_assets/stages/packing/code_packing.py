"""Packs of a repository's files, what is imported before what imports it.

::

    OUT/documents/00000.jsonl.gz …  packed documents with their spans (`joined_texts`); the root,
    which imports, comes last
    OUT/summary.json                what was counted

A file is written as a line with its path, its text and a blank line. Records say ``repo`` and
``path``, under these names or those of the usual sets; a path is a name, and nothing is opened by
it. Repositories may be scattered over all files of a corpus.

Two passes: files are laid down and their imports read off them, a task per file of the corpus; then
repository by repository files are put in order and written. The result does not depend on files,
their order, or workers. A file whose repository, path and text came before is left out. Memory:
some 300 bytes a file, and the imports of one repository.

Here: reading and writing. Not here: imports and their order (`lc_assets.packing.imports`).
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from lc_assets.engines.engine import Engine
from lc_assets.formats.corpora.reading import corpus_files, read_corpus
from lc_assets.formats.corpora.records import CorpusDocument
from lc_assets.formats.source_folders import read_folder
from lc_assets.packing.imports.ordering import cut_into_packs, in_import_order, scan_file
from lc_assets.packing.imports.scanned import Scanned
from lc_assets.packing.imports.tree import normalised
from lc_assets.stages.packing.joined_texts import (
    PART_END,
    PART_TOKENS,
    Packed,
    Part,
    publish_packed,
)
from lc_assets.stages.packing.spooling import (
    Looked,
    Source,
    SpooledText,
    SpoolTask,
    read_spooled,
    spool,
    spool_beside,
)
from lc_assets.tally import Tally

COLUMNS: Final = pa.schema([("repo", pa.string()), ("path", pa.string()), ("said", pa.binary())])
REPO_FIELDS: Final = ("repo", "repo_name", "max_stars_repo_name", "repository")
PATH_FIELDS: Final = ("path", "max_stars_repo_path", "file_path", "filename")
NO_PATH: Final = "no path"
EMPTY: Final = "empty"
AGAIN: Final = "the same file again"


class CodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How files are packed.

    Attributes:
        max_tokens: of a pack; a longer file is a pack of its own.
        folders: whether the sources are folders, each a repository as it lies there, and not files
            of records.
        tokenizer: that counts tokens.
        text_field: where a record's text is.
        repo_field: where its repository's name is; None for the usual places. ``path_field``: its
            path.
    """

    max_tokens: int
    folders: bool = False
    tokenizer: str = "gpt2"
    text_field: str | None = None
    repo_field: str | None = None
    path_field: str | None = None


class _File(NamedTuple):
    """A file: where it stands in its repository, and where its text is. Sorted by name, then by
    what it says.
    """

    repo: str
    path: str
    content: str
    id: str
    place: int


def pack_code(
    sources: Sequence[Path], out: Path, settings: CodeSettings, *, engine: Engine
) -> Packed:
    """Pack repositories and write the results below ``out``.

    Raises:
        BadInput: when the sources, the tokenizer or a number cannot be meant.
        CorruptFile: when a file of records is damaged.
        StorageFull, NotWritable: when the place cannot be written to.
    """
    cut_into_packs([], settings.max_tokens)
    look = partial(look_at_file, repo_field=settings.repo_field, path_field=settings.path_field)
    with spool_beside(out) as folder:
        tasks = [
            SpoolTask(
                read=read,
                where=where,
                folder=folder,
                number=number,
                look=look,
                columns=COLUMNS,
                tokenizer=settings.tokenizer,
            )
            for number, (where, read) in enumerate(_readers(sources, settings))
        ]
        tally = spool(tasks, engine=engine)
        documents, counted = _documents(folder, settings.max_tokens)
        n_files = sum(map(len, documents))
        again = {AGAIN: tally.kept - n_files} if tally.kept > n_files else {}
        read = Tally(
            seen=tally.seen, kept=n_files, dropped=tally.dropped | again, also=tally.also | counted
        )
        return publish_packed(
            out, folder, documents, read, root="last", max_tokens=settings.max_tokens, engine=engine
        )


def look_at_file(
    document: CorpusDocument, *, repo_field: str | None = None, path_field: str | None = None
) -> Looked | str:
    """A file as it is to be written, and what it imports."""
    fields = msgspec.json.decode(document.rest, type=dict[str, msgspec.Raw])
    path = normalised(_named(fields, (path_field,) if path_field else PATH_FIELDS))
    if not path:
        return NO_PATH
    if not document.text.strip():
        return EMPTY
    said = msgspec.json.encode(scan_file(path, document.text))
    columns = {
        "repo": _named(fields, (repo_field,) if repo_field else REPO_FIELDS),
        "path": path,
        "said": said,
    }
    return Looked(
        text=f"{one_line(path)}\n{document.text.strip(chr(10)).rstrip()}{PART_END}", columns=columns
    )


def one_line(path: str) -> str:
    r"""A path as it is written above its file: whatever ends a line or commands a terminal is
    U+FFFD.

    >>> one_line("a/b c.py"), one_line("a\nb")
    ('a/b c.py', 'a\ufffdb')
    """
    return "".join(character if character.isprintable() else "\ufffd" for character in path)


def _named(fields: dict[str, msgspec.Raw], names: Sequence[str]) -> str:
    """The first of some fields that is a text, or a list that begins with one; empty when there is
    none.
    """
    for name in names:
        found: Any = msgspec.json.decode(fields[name]) if name in fields else None
        found = found[0] if isinstance(found, list) and found else found
        if isinstance(found, str) and found:
            return found
    return ""


def _readers(sources: Sequence[Path], settings: CodeSettings) -> Iterator[tuple[str, Source]]:
    if settings.folders:
        yield from ((str(folder), partial(read_folder, folder)) for folder in sources)
    else:
        yield from (
            (str(file), partial(read_corpus, file, text_field=settings.text_field))
            for file in corpus_files(sources)
        )


def _documents(folder: Path, max_tokens: int) -> tuple[list[tuple[Part, ...]], dict[str, int]]:
    """Every pack of every repository, by the repositories' names."""
    texts, said = list[SpooledText](), list[bytes]()
    files = list[_File]()
    for place, (text, line) in enumerate(read_spooled(folder, COLUMNS.names)):
        texts.append(text)
        said.append(line["said"])
        files.append(_File(line["repo"], line["path"], line["content"], text.id, place))
    documents, also = (
        list[tuple[Part, ...]](),
        {"repositories": 0, "imports": 0, "imports the wrong way round": 0},
    )
    for _, group in groupby(sorted(files), key=lambda file: file.repo):
        own = [next(same) for _, same in groupby(group, key=lambda file: (file.path, file.content))]
        order, n_edges, n_cut = _ordered(own, said)
        also = {
            name: also[name] + more for name, more in zip(also, (1, n_edges, n_cut), strict=True)
        }
        lengths = [texts[file.place].n_tokens + PART_TOKENS for file, _ in order]
        documents += [
            tuple(
                Part(text=texts[file.place], keys=one_line(file.path), depth=depth)
                for file, depth in order[pack.start : pack.stop]
            )
            for pack in cut_into_packs(lengths, max_tokens)
        ]
    return documents, also


def _ordered(
    files: Sequence[_File], said: Sequence[bytes]
) -> tuple[list[tuple[_File, int]], int, int]:
    """Files of a repository in order, with their depths; of several with one path the first is what
    that path means.
    """
    first, others = dict[str, _File](), dict[str, list[_File]]()
    for file in files:
        if file.path in first:
            others.setdefault(file.path, []).append(file)
        else:
            first[file.path] = file
    scanned = {
        path: msgspec.json.decode(said[file.place], type=Scanned) for path, file in first.items()
    }
    order = in_import_order(scanned)
    placed = zip(order.paths, order.depths, strict=True)
    return (
        [(file, depth) for path, depth in placed for file in (first[path], *others.get(path, ()))],
        order.n_edges,
        order.n_cut,
    )
