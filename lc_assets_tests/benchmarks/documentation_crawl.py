"""A linked corpus out of installed packages: a page per module, class and function with a
docstring, a site per package; packed along its links, with the figures of docs/longpack.md.

::

    python -m lc_assets_tests.benchmarks.documentation_crawl FOLDER

FOLDER has afterwards, in the form of the LongPack paper, `figure1.png` and `figure4.md` (how a
document is put together), and all figures as tables in `figures.json`.

Docstrings are the text. What a definition uses is linked to: in the words of its docstring where
these name it, else in a list. As on the web, addresses vary: names that a package exports from
where they are not defined redirect, and a tenth of the pages was captured at an address with a
query, and names its plain one as canonical.
"""

import ast
import hashlib
import html
import json
import random
import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lc_assets.builds.checks import documents_files
from lc_assets.builds.settings.documents import RemovalSettings
from lc_assets.builds.settings.longpack import LongPackSettings, ReferralReportSettings
from lc_assets.builds.showing import as_table
from lc_assets.builds.stage import BuildContext, Built
from lc_assets.builds.tables import read_lines
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.lists.word_lists import read_special_words
from lc_assets.publishing import gzip_member
from lc_assets.stages.file_lakes import build_for, context_over_files
from lc_assets.stages.longpack.longpack_documents import example_of, spans_files
from lc_assets.stages.longpack.page_index import lengths_of, roots_tried
from lc_assets.stages.reports.referral_report import DENSITIES_FILE
from lc_assets.stages.shown import reports as shown_reports
from lc_assets.text.referrals.concepts import Background, LexicalConcepts, pieces_of
from lc_assets.text.referrals.referrals import bucket_names, count_referrals

LEAST_WORDS = 20
MOST_PAGES = 30_000
EDGES = (32, 128, 512)
SKIPPED = re.compile(r"(^|/)(tests?|_vendor|test_[^/]*|lib2to3|idlelib)(/|$)")


@dataclass
class Definition:
    """What has a page: its qualified name, docstrings, and the names that it uses."""

    name: str
    text: str
    uses: dict[str, None] = field(default_factory=dict)


def sources() -> Iterator[tuple[str, Path]]:
    """Module names and files of the standard library and the installed packages."""
    paths = sysconfig.get_paths()
    for root in (Path(paths["stdlib"]), Path(paths["purelib"])):
        for path in sorted(root.rglob("*.py")):
            inside = path.relative_to(root).with_suffix("").as_posix()
            if inside.startswith("site-packages") or SKIPPED.search(inside):
                continue
            yield inside.removesuffix("/__init__").replace("/", "."), path


def imported(tree: ast.Module, module: str, *, is_package: bool) -> dict[str, str]:
    """What a module's names mean, by its imports."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                found[name.asname or name.name.partition(".")[0]] = (
                    name.name if name.asname else name.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            above = parts[: len(parts) - node.level + is_package] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {
                name.asname or name.name: f"{base}.{name.name}"
                for name in node.names
                if name.name != "*"
            }
    return found


def definitions() -> tuple[dict[str, Definition], dict[str, str]]:
    """Everything with a docstring, by name; and names that are exported from elsewhere."""
    found: dict[str, Definition] = {}
    exported: dict[str, str] = {}
    for module, path in sources():
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (SyntaxError, ValueError):
            continue
        names = imported(tree, module, is_package=path.name == "__init__.py")
        exported |= {f"{module}.{name}": target for name, target in names.items()}
        own = {
            node.name: node
            for node in tree.body
            if isinstance(node, ast.ClassDef | ast.FunctionDef)
        }
        names |= {name: f"{module}.{name}" for name in own}
        found[module] = Definition(
            module, ast.get_docstring(tree) or "", dict.fromkeys(names.values())
        )
        for name, node in own.items():
            parts = [ast.get_docstring(node) or ""]
            parts += [
                f"{below.name}: {text}"
                for below in (node.body if isinstance(node, ast.ClassDef) else ())
                if isinstance(below, ast.FunctionDef) and (text := ast.get_docstring(below))
            ]
            uses = dict.fromkeys(filter(None, (meaning(one, names) for one in ast.walk(node))))
            found[f"{module}.{name}"] = Definition(f"{module}.{name}", "\n\n".join(parts), uses)
    long = {name: one for name, one in found.items() if len(one.text.split()) >= LEAST_WORDS}
    kept = dict(sorted(long.items(), key=lambda item: keyed(item[0]))[:MOST_PAGES])
    return kept, {name: target for name, target in exported.items() if target in kept}


def meaning(node: ast.AST, names: dict[str, str]) -> str:
    """The qualified name that an expression means; empty when it is none."""
    rest = []
    while isinstance(node, ast.Attribute):
        rest.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return ""
    return ".".join([names[node.id], *reversed(rest)])


def keyed(name: str) -> int:
    """A number that depends on a name alone."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())


def url_of(name: str) -> str:
    """The address of a definition's page."""
    site, _, rest = name.partition(".")
    return (
        f"https://{site.replace('_', '-').lower()}.example/{rest.replace('.', '/') or 'start'}.html"
    )


def page_of(one: Definition, targets: list[str]) -> str:
    """The HTML of a definition's page."""
    body = "".join(
        f"<p>{html.escape(part)}</p>\n" for part in re.split(r"\n\s*\n", one.text) if part.strip()
    )
    listed = []
    for target in targets:
        word, url = target.rpartition(".")[2], url_of(target)
        pattern = re.compile(rf"(?<![\w.>/]){re.escape(word)}(?![\w<])")
        body, n_linked = pattern.subn(f'<a href="{url}">{word}</a>', body, count=1)
        listed += [] if n_linked else [f'<li><a href="{url}">{html.escape(target)}</a>']
    home = url_of(one.name.partition(".")[0])
    canonical = f'<link rel=canonical href="{url_of(one.name)}">'
    return (
        f"<!doctype html><title>{one.name}</title>{canonical}\n<nav><a href='{home}'>Start</a></nav>\n"
        f"<main><h1>{one.name}</h1>\n{body}<ul>{''.join(listed)}</ul></main>"
    )


def record(url: str, content: str, status: str = "200 OK", location: str = "") -> bytes:
    """A record of what a server sent."""
    more = f"Location: {location}\r\n" if location else ""
    block = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n{more}\r\n{content}"
    body = block.encode("utf-8", "replace")
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2026-01-01T00:00:00Z"
        f"\r\nWARC-Record-ID: <urn:md5:{hashlib.md5(url.encode(), usedforsecurity=False).hexdigest()}>"
        f"\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return gzip_member(head.encode() + body + b"\r\n\r\n")


def write_crawl(path: Path, older: Path) -> None:
    """Write an archive of all pages; and two of snapshots, of the first three tenths of those that
    `is_older`, and of the others and all redirects. Print how many there are.
    """
    found, exported = definitions()
    sites = {name.partition(".")[0] for name in found}
    used: set[str] = set()
    newer = older.with_name("newer.warc.gz")
    snapshots: dict[bool, list[bytes]] = {True: [], False: []}
    redirects = []
    with path.open("wb") as out:
        for name, one in found.items():
            targets = [use for use in one.uses if use != name and (use in found or use in exported)]
            used.update(use for use in targets if use not in found)
            address = url_of(name) + ("?view=print" if keyed(name) % 10 == 0 else "")
            content = record(address, page_of(one, targets))
            out.write(content)
            snapshots[is_older(name)].append(content)
        for name in sorted(used):
            content = record(url_of(name), "", "301 Moved Permanently", url_of(exported[name]))
            out.write(content)
            redirects.append(content)
    for file, pages, more in ((older, snapshots[True], []), (newer, snapshots[False], redirects)):
        file.write_bytes(b"".join(pages[: len(pages) * 3 // 10] + more))
    print(f"{len(found):,} pages of {len(sites):,} sites, {len(used):,} redirects", flush=True)


def is_older(name: str) -> bool:
    """Whether a page was captured by the older snapshot alone: three in ten are."""
    return keyed(name) // 10 % 10 < 3


def context_of(archives: list[Path], out: Path, **settings: object) -> BuildContext:
    """LongPack's stages over archives; each is a snapshot, older than the next."""
    return context_over_files(
        archives,
        out,
        executor=LocalExecutor(workers=2),
        settings={
            "removed_documents": RemovalSettings(exact=("url",), prefer=("newest",)),
            "longpack_documents": LongPackSettings(wanted=True, untitled="first_line", **settings),
            "referral_report": ReferralReportSettings(wanted=True),
        },
    )


def newest(context: BuildContext, target: str) -> dict[str, Built]:
    """What a target needs, built of the last archive, by stage."""
    return {stage: list(found.values())[-1] for stage, found in build_for(context, target).items()}


def packed(context: BuildContext, **settings: object) -> dict[str, object]:
    """Pack; print and return how roots grew."""
    built = newest(context, "longpack_documents")
    claims = built["link_claims"].counts
    spans = spans_files(built["longpack_documents"].published.folder)
    growth = lengths_of(spans, n_roots=roots_tried(claims)).growth
    n_roots = claims.extra["roots"]
    found = settings | {
        "roots tried": n_roots,
        "roots that hold something": growth.n_packed,
        "hit rate": round(growth.n_packed / n_roots, 4),
        "links": claims.seen,
        "links packed": claims.kept,
        "links of no page": claims.dropped.get("no such page", 0),
        "mean of ratios": round(growth.mean_of_ratios, 1),
        "ratio of sums": round(growth.ratio_of_sums, 1),
    }
    print(found, flush=True)
    return found


def densities(
    built: dict[str, Built], n_chars: int, n_documents: int = 60
) -> list[dict[str, object]]:
    """Print and return pairs per 1,000 characters by distance, of texts of one length."""
    pages = [
        line["raw_content"]
        for path in documents_files(built["filtered_documents"].published.folder)
        for line in read_lines(path, ["raw_content"])
    ]
    documents = [
        line["raw_content"]
        for path in documents_files(built["longpack_documents"].published.folder)
        for line in read_lines(path, ["raw_content"])
    ]
    chosen = random.Random(64)  # noqa: S311 - made-up text is no secret
    chosen.shuffle(pages)

    def joined() -> Iterator[str]:
        rest = iter(pages)
        for _ in range(n_documents):
            text = ""
            while len(text) < n_chars:
                text += next(rest, "The end. ") + "\n\n"
            yield text[:n_chars]

    sets = {
        "packed": [text[:n_chars] for text in documents if len(text) >= n_chars][:n_documents],
        "natural": [text[:n_chars] for text in pages if len(text) >= n_chars][:n_documents],
        "concatenated": list(joined()),
    }
    sets["shuffled"] = []
    for text in sets["packed"]:
        lines = text.split("\n")
        chosen.shuffle(lines)
        sets["shuffled"].append("\n".join(lines))
    special = read_special_words()
    plain, background = LexicalConcepts(special), Background()
    for page in pages[:3000]:
        background.add([plain.words_in(piece) for piece in pieces_of(page)])
    special = type(special)(
        special.stop, special.pronouns, special.abbreviations, background.common(0.05)
    )
    finder = LexicalConcepts(special)
    print(
        f"pairs per 1,000 characters of {n_chars:,}, by sentences between: {bucket_names(EDGES)[1:]}"
    )
    found = []
    for name, texts in sets.items():
        counted = [count_referrals(finder.mentions(text), EDGES).pairs[1:] for text in texts]
        means = np.array(counted or [[0] * (len(EDGES) + 1)]).mean(axis=0) * 1000 / n_chars
        print(
            f"{name:12} {len(texts):3} documents",
            " ".join(f"{one:.3f}" for one in means),
            flush=True,
        )
        line = {"characters": n_chars, "text": name, "documents": len(texts)}
        found.append(line | dict(zip(bucket_names(EDGES)[1:], means.tolist(), strict=True)))
    return found


def as_in_the_paper(folder: Path, context: BuildContext) -> list[dict[str, object]]:
    """Draw figure 1 and write figure 4; print table 4 beside the paper's, and return all lines of
    the tables.
    """
    built = newest(context, "referral_report")
    plot = shown_reports.referral_report(context, built["referral_report"]).values["by_distance"]
    (folder / "figure1.png").write_bytes(plot.png())
    parts = example_of(built["longpack_documents"].published.folder)
    (folder / "figure4.md").write_text(as_table(parts) + "\n")
    lines = list(read_lines(built["referral_report"].published.folder / DENSITIES_FILE))
    rows: dict[tuple[str, str, int], list[str]] = {}
    for line in lines:
        if line["counted"] == "pairs" and line["distance"] != bucket_names(EDGES)[0]:
            key = (line["document_set"], line["length_group"], line["documents"])
            paper = "" if line["paper"] is None else f" ({line['paper']:g})"
            rows.setdefault(key, []).append(f"{line['figure']:.3g}{paper}")
    for key, cells in rows.items():
        print("|", " | ".join([*map(str, key), *cells]), "|", flush=True)
    return lines


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    archive, older = folder / "documentation.warc.gz", folder / "a_older.warc.gz"
    if not archive.is_file():
        write_crawl(archive, older)
    common = {"mode": "allow", "same_language": False}
    steps = ({"redirects": False, "canonical": False}, {"canonical": False}, {})
    growth = []
    for roots in (0.05, 1.0):
        for number, step in enumerate(steps):
            settings = {"roots": roots, **common, **step}
            context = context_of([archive], folder / f"lake-{roots}-{number}", **settings)
            growth.append(packed(context, **settings))
    two = [older, folder / "newer.warc.gz"]
    for step in (*steps, {"older_snapshots": True}):
        settings = {"roots": 0.05, **common, **step}
        growth.append(packed(context_of(two, folder / "lake-of-two", **settings), **settings))
    built = newest(context, "longpack_documents")
    figures = {
        "growth": growth,
        "equal_lengths": [line for n in (16_000, 64_000) for line in densities(built, n)],
        "tables_4_to_6": as_in_the_paper(folder, context),
    }
    (folder / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
