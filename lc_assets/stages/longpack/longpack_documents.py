"""`longpack_documents`: one snapshot's packed documents, each a root after the pages it links to,
with a span per part.

A packed document has its root's id, address and digest, and its file is named like its root's
shard. Roots without children remain natural documents.
"""
# ruff: noqa: S608 - every name in these queries is this package's own

import functools
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lc_assets.builds.building import run_shards
from lc_assets.builds.checks import (
    DOCUMENTS_SUFFIX,
    SPANS_SUFFIX,
    documents_files,
    evenly_spaced,
    tables_fit,
)
from lc_assets.builds.lookups import keys_in
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import FILTERED, Line, count_lines, read_lines
from lc_assets.counts import Counts
from lc_assets.formats.key_index import KeyIndex
from lc_assets.formats.tokenizers.named import GPT2_NAMES, TIKTOKEN
from lc_assets.packing.longpack import PART_TOKENS, ROOT_LINE, part_text
from lc_assets.publishing import finished
from lc_assets.stages.deduplication.queries import Tables, check_by_queries
from lc_assets.stages.deduplication.removals import removed_in
from lc_assets.stages.links.link_tables import LINK_CLAIMS as LINK_CLAIMS_SCHEMA, SPANS
from lc_assets.stages.longpack.gathering import (
    pack_documents,
    packed_documents_of,
)
from lc_assets.stages.longpack.link_claims import (
    TABLE as CLAIMS_TABLE,
    WITH_TARGETS,
    inputs_from,
    older_documents,
)
from lc_assets.stages.longpack.page_index import (
    INDEX,
    KEY_COLUMNS,
    PAGES,
    PAGES_FILE,
    write_page_index,
)
from lc_assets.stages.longpack.pages import n_tokens_of
from lc_assets.stages.longpack.placing import Packing
from lc_assets.vocabulary import parse_document_id

READ_AGAIN = 12
"""Packed documents whose texts the check compares with the filtered ones: the root and
`PARTS_READ_AGAIN` children of each.
"""
PARTS_READ_AGAIN = 4
EXAMPLES, EXAMPLE_PARTS, EXAMPLE_CHARS = 20, 8, 60
"""Documents that `example_of` chooses from, the parts that it shows, and characters of each."""


def write_longpack_documents(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write one snapshot's packed documents.

    Raises:
        Mismatch: when a claimed document is not among the filtered ones.
    """
    snapshot = staging.key
    recipe = context.recipe.longpack_documents
    packing = Packing(
        claims=staging.own("link_claims").folder / CLAIMS_TABLE,
        documents=documents_files(staging.own("filtered_documents").folder),
        older=older_documents(staging),
        folder=staging.folder,
        paper_exact=recipe.paper_exact,
    )
    removed = removed_in(staging.inputs, snapshot) if recipe.rest else None
    run = functools.partial(run_shards, context, staging)
    counts = pack_documents(packing, run, removed)
    return counts + Counts(
        extra={"keys of pages": write_page_index(staging.folder, spans_files(staging.folder))}
    )


def spans_files(folder: Path) -> list[Path]:
    """The tables of spans of a version, sorted by shard."""
    return finished(folder.glob(f"*{SPANS_SUFFIX}"))


def packed_documents(folder: Path) -> Iterator[tuple[Line, list[Line]]]:
    """Every packed document with its spans, shard by shard."""
    for path in documents_files(folder):
        yield from packed_documents_of(path)


def first_documents(folder: Path, most: int) -> list[tuple[Line, list[Line]]]:
    """The first packed documents of a version with their spans, for display."""
    return list(itertools.islice(packed_documents(folder), most))


def example_of(folder: Path) -> list[Line]:
    """Parts of one of the first packed documents, as in the paper's figure 4: the anchor text, the
    page that it leads to, tokens, and how the page begins. The first `EXAMPLE_PARTS`, and the root.
    """
    found = first_documents(folder, EXAMPLES)
    longest = sorted(found, key=lambda one: -min(len(one[1]), EXAMPLE_PARTS))[:1]
    return [
        {
            "anchor_text": span["keys"],
            "page": span["url"],
            "tokens": span["n_tokens"],
            "begins": part.partition("\n")[2][:EXAMPLE_CHARS],  # below the anchor text's line
        }
        for document, spans in longest
        for span in [*spans[:-1][:EXAMPLE_PARTS], spans[-1]]
        for part in [document["raw_content"][span["start"] : span["stop"]]]
    ]


def documents_are_made_of_their_spans(check_input: CheckInput) -> CheckResult:
    """A document's spans touch from its first character to its last; they are numbered, and the
    last one is the root's.
    """
    n_docs = check_input.counts.kept
    errors = {
        "documents more or fewer than counted": (
            f"SELECT unnest(range(abs(count(*) - {n_docs}))) FROM documents"
        ),
        "spans that are not where the one before ends, or not numbered, or of another role": """
            SELECT * FROM (
                SELECT start, part, role, lag(stop, 1, 0) OVER own AS stop_before,
                    lag(part, 1, -1) OVER own AS part_before, lead(part) OVER own AS part_after
                FROM (SELECT *, row_number() OVER () AS place FROM spans)
                WINDOW own AS (PARTITION BY id ORDER BY place))
            WHERE start != stop_before OR part != part_before + 1
                OR role != CASE WHEN part_after IS NULL THEN 'root' ELSE 'child' END""",
        "documents that are longer or shorter than their spans": """
            SELECT id FROM documents
            LEFT JOIN (SELECT id, max(stop) AS stop FROM spans GROUP BY id) USING (id)
            WHERE length(raw_content) IS DISTINCT FROM stop""",
    }
    return check_by_queries(_tables(check_input), errors, f"{n_docs:,} documents")


def every_claim_is_packed(check_input: CheckInput) -> CheckResult:
    """The spans are exactly the claims, with their places and tokens, and one root per document:
    tokens are conserved.
    """
    claimed = (
        "SELECT root_id AS id, place AS part, child_id, depth, cluster, n_tokens FROM claims "
        "UNION ALL SELECT root_id, count(*), root_id, 0, '', any_value(root_tokens) FROM claims "
        "GROUP BY root_id"
    )
    spans = "SELECT id, part, child_id, depth, cluster, n_tokens FROM spans"
    n_tokens = check_input.counts.extra.get("tokens of parts", 0)
    errors = {
        "claims that are not packed": f"{claimed} EXCEPT ALL {spans}",
        "parts without a claim": f"{spans} EXCEPT ALL ({claimed})",
        "sums of tokens that are not the counted one": (
            f"SELECT sum(n_tokens) AS n FROM ({claimed}) HAVING coalesce(n, 0) != {n_tokens}"
        ),
    }
    message = f"{{:,}} parts, {n_tokens:,} tokens claimed and packed"
    return check_by_queries(_tables(check_input), errors, message, "SELECT count(*) FROM spans")


def _tables(check_input: CheckInput) -> Tables:
    claims = check_input.only_input("link_claims").folder / CLAIMS_TABLE
    return {
        "claims": ([claims], LINK_CLAIMS_SCHEMA),
        "documents": (documents_files(check_input.folder), FILTERED),
        "spans": (spans_files(check_input.folder), SPANS),
        "pages": ([check_input.folder / PAGES_FILE], PAGES),
    }


def parts_are_the_cleaned_pages(check_input: CheckInput) -> CheckResult:
    """Of an even choice of documents, the root and some children are, character for character, the
    filtered documents' texts.
    """
    exact = check_input.params["paper_exact"]
    filtered = {
        published.key: published.folder
        for published in inputs_from(check_input.inputs, "filtered_documents")
    }
    n_parts = n_wrong = 0
    first = ""
    for document, spans in _chosen(check_input):
        chosen = [
            spans[place] for place in evenly_spaced(len(spans) - 1, PARTS_READ_AGAIN)
        ] + spans[-1:]
        for span in chosen:
            text = _text_of(filtered, span["child_id"])
            part = document["raw_content"][span["start"] : span["stop"]]
            right = text is not None and part == (
                ROOT_LINE + text
                if span["role"] == "root"
                else part_text(span["keys"], text, paper_exact=exact)
            )
            n_parts += 1
            n_wrong += not right
            first = first or ("" if right else f"{span['child_id']} in {document['id']}")
    return CheckResult(
        passed=not n_wrong,
        message=f"{n_parts:,} parts read again, {n_wrong:,} differ from their pages"
        + (f", such as {first}" if first else ""),
        values={"read again": n_parts, "differ": n_wrong},
    )


def packed_documents_keep_the_limit(check_input: CheckInput) -> CheckResult:
    """No document's parts are more tokens than it may have; an even choice of texts, and the
    longest, are counted again as a whole.
    """
    params = check_input.only_input("link_claims").params
    limit = params["longpack"]["max_tokens"]
    counted: list[int] = []
    # A tokenizer setting that is a path is not recorded in receipts.
    if params["tokenizer"] in (*GPT2_NAMES, *TIKTOKEN):
        counted = [
            n_tokens_of(text, params["tokenizer"], params["text_encoding"]) or 0
            for text in _texts_to_count(check_input)
        ]
    n_longer = sum(n_tokens > limit for n_tokens in counted)
    errors = {
        "documents with parts of too many tokens": "SELECT id FROM spans GROUP BY id HAVING "
        f"sum(n_tokens + strlen(keys) + {PART_TOKENS}) > {limit}",
        "documents that are too long when counted again": f"SELECT * FROM range({n_longer})",
    }
    longest = max(counted, default=0)
    message = f"{len(counted):,} counted again, the longest has {longest:,} of {limit:,} tokens"
    return check_by_queries(_tables(check_input), errors, message)


def every_page_is_found_in_its_documents(check_input: CheckInput) -> CheckResult:
    """The table of pages is that of the spans, and its index has the keys of all of its lines and
    no other.
    """
    listed, spans = "SELECT * FROM pages", "SELECT id, child_id, url FROM spans"
    keys = keys_in(check_input.folder / PAGES_FILE, KEY_COLUMNS)
    is_indexed = KeyIndex(check_input.folder / INDEX).holds(*keys)
    errors = {
        "parts that are not listed": f"{spans} EXCEPT ALL {listed}",
        "pages of no document": f"{listed} EXCEPT ALL {spans}",
        "indexes of other keys": f"SELECT * FROM range({int(not is_indexed)})",
    }
    count = "SELECT count(*) FROM pages"
    return check_by_queries(_tables(check_input), errors, "{:,} parts listed", count)


def _chosen(check_input: CheckInput) -> Iterator[tuple[Line, list[Line]]]:
    n_docs = sum(count_lines(path) for path in documents_files(check_input.folder))
    places = set(evenly_spaced(n_docs, READ_AGAIN))
    for place, found in enumerate(packed_documents(check_input.folder)):
        if place in places:
            yield found


def _texts_to_count(check_input: CheckInput) -> list[str]:
    """An even choice of texts, and the longest."""
    texts = (
        line["raw_content"]
        for path in documents_files(check_input.folder)
        for line in read_lines(path, ["raw_content"], batch_lines=4)
    )
    longest = max(texts, key=len, default="")
    return [*(document["raw_content"] for document, _ in _chosen(check_input)), longest]


def _text_of(filtered: Mapping[str, Path], document_id: str) -> str | None:
    """The text of a filtered document, of its snapshot's version; None when it is not there."""
    shard = parse_document_id(document_id)[0]
    path = filtered.get(shard.snapshot, Path()) / f"{shard.name}{DOCUMENTS_SUFFIX}"
    lines = read_lines(path, ["id", "raw_content"]) if path.is_file() else iter(())
    return next((line["raw_content"] for line in lines if line["id"] == document_id), None)


STAGE = Stage(
    name="longpack_documents",
    description=(
        "Documents packed along links: each a root after the pages it links to, with a "
        "span per part."
    ),
    code_version="3",
    reads={
        "link_claims": SAME_SNAPSHOT,
        "filtered_documents": WITH_TARGETS,
        "removed_documents": SAME_SNAPSHOT.only_if(lambda recipe: recipe.longpack_documents.rest),
    },
    params=lambda recipe, _: _params(recipe),
    checks=(
        tables_fit(FILTERED),
        documents_are_made_of_their_spans,
        every_claim_is_packed,
        parts_are_the_cleaned_pages,
        packed_documents_keep_the_limit,
        every_page_is_found_in_its_documents,
    ),
    columns=FILTERED,
    wanted=lambda recipe: recipe.longpack_documents.wanted,
    group="links",
    job="snapshot_longpack",
    write=write_longpack_documents,
)
"""Packed documents and their spans."""


def _params(recipe: Recipe) -> dict[str, Any]:
    settings = recipe.longpack_documents
    return {"paper_exact": settings.paper_exact} | ({"rest": True} if settings.rest else {})
