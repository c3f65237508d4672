"""`longpack_documents`: one snapshot's packed documents, each a root after the pages it links to,
with a span per part.

A packed document has its root's id, address and digest, and its file is named like its root's
shard. Roots without children remain natural documents.
"""
# ruff: noqa: S608 - every name in these queries is this package's own

import functools
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from lc_assets.build.building import (
    build,
    run_shards,
)
from lc_assets.build.checks import (
    DOCUMENTS_SUFFIX,
    SPANS_SUFFIX,
    documents_files,
    evenly_spaced,
    tables_fit,
)
from lc_assets.build.recipe import Recipe
from lc_assets.build.stage import (
    SAME_SNAPSHOT,
    WORKERS,
    BuildContext,
    Built,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
    later,
)
from lc_assets.build.tables import FILTERED, count_lines, read_lines
from lc_assets.counts import Counts
from lc_assets.formats.key_index import KeyIndex
from lc_assets.formats.tokenizers.named import GPT2_NAMES, TIKTOKEN
from lc_assets.packing.longpack import PART_TOKENS, ROOT_LINE, part_text
from lc_assets.publishing import finished
from lc_assets.stages.deduplication.queries import parquet
from lc_assets.stages.deduplication.removed_documents import STAGE as REMOVED_DOCUMENTS
from lc_assets.stages.deduplication.removed_documents import removed_in
from lc_assets.stages.documents.filtered_documents import STAGE as FILTERED_DOCUMENTS
from lc_assets.stages.longpack.gathering import (
    pack_documents,
    packed_documents_of,
)
from lc_assets.stages.longpack.link_claims import STAGE as LINK_CLAIMS
from lc_assets.stages.longpack.link_claims import TABLE as CLAIMS_TABLE
from lc_assets.stages.longpack.link_claims import asking, how_many
from lc_assets.stages.longpack.page_index import (
    INDEX,
    PAGES_FILE,
    keys_of_pages,
    write_page_index,
)
from lc_assets.stages.longpack.pages import n_tokens_of
from lc_assets.stages.longpack.placing import Packing
from lc_assets.vocabulary import SnapshotId, parse_document_id

READ_AGAIN: Final = 12
"""Packed documents whose texts the check compares with the filtered ones: the root and
`PARTS_READ_AGAIN` children of each.
"""
PARTS_READ_AGAIN: Final = 4


def write_longpack_documents(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish one snapshot's packed documents.

    Raises:
        NotPublished: when claims or documents are not published.
        Mismatch: when a claimed document is not among the filtered ones.
    """

    def fill(staging: StagingFolder) -> Counts:
        packing = Packing(
            claims=staging.inputs[f"link_claims/{snapshot}"].folder / CLAIMS_TABLE,
            documents=documents_files(staging.inputs[f"filtered_documents/{snapshot}"].folder),
            folder=staging.folder,
            paper_exact=context.recipe.longpack_documents.paper_exact,
            run=functools.partial(run_shards, context, staging),
            removed=removed_in(staging.inputs, snapshot)
            if context.recipe.longpack_documents.rest
            else None,
        )
        counts = pack_documents(packing)
        return counts + Counts(
            extra={"keys of pages": write_page_index(staging.folder, spans_files(staging.folder))}
        )

    return build(context, STAGE, snapshot, fill)


def spans_files(folder: Path) -> list[Path]:
    """The tables of spans of a version, sorted by shard."""
    return finished(folder.glob(f"*{SPANS_SUFFIX}"))


def packed_documents(folder: Path) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Every packed document with its spans, shard by shard."""
    for path in documents_files(folder):
        yield from packed_documents_of(path)


def first_documents(folder: Path, most: int) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The first packed documents of a version with their spans, for display."""
    return list(itertools.islice(packed_documents(folder), most))


def documents_are_made_of_their_spans(check_input: CheckInput) -> CheckResult:
    """A document's spans touch from its first character to its last; they are numbered, and the
    last one is the root's.
    """
    n_docs = n_wrong = 0
    first = ""
    for document, spans in packed_documents(check_input.folder):
        n_docs += 1
        ends = [0, *(span["stop"] for span in spans)]
        touch = ends[:-1] == [span["start"] for span in spans] and ends[-1] == len(
            document["raw_content"]
        )
        named = [(span["part"], span["role"]) for span in spans]
        right = touch and named == [
            *((part, "child") for part in range(len(spans) - 1)),
            (len(spans) - 1, "root"),
        ]
        n_wrong += not right
        first = first or ("" if right else document["id"])
    agrees = n_docs == check_input.counts.kept and not n_wrong
    return CheckResult(
        passed=agrees,
        message=f"{n_docs:,} documents of {check_input.counts.kept:,} counted, {n_wrong:,} are not"
        + (f", such as {first}" if first else ""),
        values={"documents": n_docs, "wrong": n_wrong},
    )


def every_claim_is_packed(check_input: CheckInput) -> CheckResult:
    """The spans are exactly the claims, with their places and tokens, and one root per document:
    tokens are conserved.
    """
    claims, spans = (
        check_input.only_input("link_claims").folder / CLAIMS_TABLE,
        spans_files(check_input.folder),
    )
    claimed = (
        "SELECT root_id AS id, place AS part, child_id, depth, keys, cluster, n_tokens FROM claims"
    )
    roots = (
        "SELECT root_id, count(*), root_id, 0, '', '', any_value(root_tokens) FROM claims "
        "GROUP BY root_id"
    )
    with asking(claims) as asked:
        wanted = f"({claimed} UNION ALL {roots})"
        found = (
            f"(SELECT id, part, child_id, depth, keys, cluster, n_tokens FROM {parquet(spans)})"
            if spans
            else f"({claimed} LIMIT 0)"
        )
        names = "USING (id, part, child_id, depth, cluster, n_tokens)"
        n_missing = how_many(asked, f"SELECT * FROM {wanted} ANTI JOIN {found} {names}")
        n_strange = how_many(asked, f"SELECT * FROM {found} ANTI JOIN {wanted} {names}")
        n_spans = how_many(asked, f"SELECT * FROM {found}")
        n_tokens = asked.number(f"SELECT sum(n_tokens) FROM {wanted}")
    agrees = (
        not n_missing
        and not n_strange
        and n_tokens == check_input.counts.extra.get("tokens of parts", 0)
    )
    return CheckResult(
        passed=agrees,
        message=f"{n_spans:,} parts, {n_missing:,} claims in none, {n_strange:,} of no claim; "
        f"{n_tokens:,} tokens claimed, "
        f"{check_input.counts.extra.get('tokens of parts', 0):,} packed",
        values={"parts": n_spans, "missing": n_missing, "strange": n_strange, "tokens": n_tokens},
    )


def parts_are_the_cleaned_pages(check_input: CheckInput) -> CheckResult:
    """Of an even choice of documents, the root and some children are, character for character, the
    filtered documents' texts.
    """
    exact, filtered = (
        check_input.fingerprint.params["paper_exact"],
        check_input.only_input("filtered_documents").folder,
    )
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
    claims = check_input.only_input("link_claims")
    params = claims.receipt.fingerprint.params
    limit, spans = params["longpack"]["max_tokens"], spans_files(check_input.folder)
    size = (
        f"SELECT sum(n_tokens + strlen(keys) + {PART_TOKENS}) AS n FROM {parquet(spans)} GROUP "
        "BY id"
    )
    with asking(claims.folder / CLAIMS_TABLE) as asked:
        n_long = how_many(asked, f"SELECT * FROM ({size}) WHERE n > {limit}") if spans else 0
    # A tokenizer setting that is a path is not recorded in receipts.
    known = params["tokenizer"] in (*GPT2_NAMES, *TIKTOKEN)
    counted = (
        [
            n_tokens_of(text, params["tokenizer"], params["text_encoding"]) or 0
            for text in _texts_to_count(check_input)
        ]
        if known
        else []
    )
    n_longer = sum(n_tokens > limit for n_tokens in counted)
    return CheckResult(
        passed=not n_long and not n_longer,
        message=f"{n_long:,} documents have parts of more than {limit:,} tokens; of "
        f"{len(counted):,} counted again {n_longer:,} are longer, "
        f"the longest has {max(counted, default=0):,}",
        values={
            "longer by parts": n_long,
            "counted": len(counted),
            "longer": n_longer,
            "longest": max(counted, default=0),
        },
    )


def every_page_is_found_in_its_documents(check_input: CheckInput) -> CheckResult:
    """The table of pages is that of the spans, and its index has the keys of all of its lines and
    no other.
    """
    path, spans = check_input.folder / PAGES_FILE, spans_files(check_input.folder)
    listed, within = (
        f"SELECT * FROM {parquet([path])}",
        f"SELECT id, child_id, url FROM {parquet(spans)}",
    )
    with asking(check_input.only_input("link_claims").folder / CLAIMS_TABLE) as asked:
        n_pages = how_many(asked, listed)
        n_strange = how_many(asked, f"{listed} EXCEPT ALL {within}") if spans else n_pages
        n_missing = how_many(asked, f"{within} EXCEPT ALL {listed}") if spans else 0
    indexed = KeyIndex(check_input.folder / INDEX).holds(*keys_of_pages(path))
    return CheckResult(
        passed=not n_strange and not n_missing and indexed,
        message=f"{n_pages:,} parts listed, {n_missing:,} missing, {n_strange:,} of no document"
        + ("" if indexed else "; the index is not theirs"),
        values={"pages": n_pages, "missing": n_missing, "strange": n_strange},
    )


def _chosen(check_input: CheckInput) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    n_docs = sum(count_lines(path) for path in documents_files(check_input.folder))
    places = set(evenly_spaced(n_docs, READ_AGAIN))
    for place, found in enumerate(packed_documents(check_input.folder)):
        if place in places:
            yield found


def _texts_to_count(check_input: CheckInput) -> Iterator[str]:
    longest = ""
    n_docs = sum(count_lines(path) for path in documents_files(check_input.folder))
    places = set(evenly_spaced(n_docs, READ_AGAIN))
    for place, (document, _) in enumerate(packed_documents(check_input.folder)):
        longest = max(longest, document["raw_content"], key=len)
        if place in places:
            yield document["raw_content"]
    yield longest


def _text_of(filtered: Path, document_id: str) -> str | None:
    """The text of a filtered document; None when it is not there."""
    path = filtered / f"{parse_document_id(document_id)[0].name}{DOCUMENTS_SUFFIX}"
    lines = read_lines(path, ["id", "raw_content"]) if path.is_file() else iter(())
    return next((line["raw_content"] for line in lines if line["id"] == document_id), None)


STAGE = Stage(
    name="longpack_documents",
    description=(
        "Documents packed along links: each a root after the pages it links to, with a "
        "span per part."
    ),
    code_version="2",
    reads={
        LINK_CLAIMS: SAME_SNAPSHOT,
        FILTERED_DOCUMENTS: SAME_SNAPSHOT,
        REMOVED_DOCUMENTS: SAME_SNAPSHOT.only_if(lambda recipe: recipe.longpack_documents.rest),
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
    wanted=lambda recipe: recipe.longpack_documents.wanted,
    group="links",
    job="snapshot_longpack",
    pool=WORKERS,
    kinds=("parquet",),
    write=write_longpack_documents,
    show=later("lc_assets.stages.shown.reports:longpack_documents"),
)
"""Packed documents and their spans."""


def _params(recipe: Recipe) -> dict[str, Any]:
    settings = recipe.longpack_documents
    return {"paper_exact": settings.paper_exact} | ({"rest": True} if settings.rest else {})
