"""The recipe: every setting of every stage, in one value, from one TOML file.

Assets, planner, command line and tests read the same recipe, so what the planner calls current is
what an asset would build. A file needs only what differs from the defaults below::

    [filtered_documents]
    min_words = 12000
    [filtered_documents.thresholds]
    no_alphabetic_words = { at_most = 0.4 }

Unknown names, wrong types and impossible sizes are rejected; the error names the position in the
file and the valid values.
"""

from typing import Any

import msgspec

from lc_assets.builds.settings.common import (
    CardSettings,
    DagsterSettings,
    DecontaminationSettings,
    Settings,
    WithdrawalSettings,
)
from lc_assets.builds.settings.documents import (
    SOURCE,
    CleanDocumentsSettings,
    DocumentSignalSettings,
    FilteringSettings,
    NearDuplicateSettings,
    RawSettings,
    RemovalSettings,
    SignatureSettings,
)
from lc_assets.builds.settings.longpack import (
    HtmlIndexSettings,
    LengthBucketSettings,
    LengthReportSettings,
    LongPackSettings,
    PackingSettings,
    PageLinkSettings,
    ReferralReportSettings,
)
from lc_assets.builds.settings.rows import (
    FlatteningSettings,
    GriddingSettings,
    MegatronSettings,
    MixSettings,
    TokenizingSettings,
)
from lc_assets.errors import BadInput
from lc_assets.sources.settings import SourceSettings, require_sources, source_name
from lc_assets.vocabulary import parse_snapshot

PACKED = "packed_rows"
WHOLE_ROWS = "rows"
"""The name of packed rows in a mix, and the required content of their Megatron files."""


class Recipe(Settings):
    """All settings of all stages: a section per stage that has some, named like the stage; and what
    Dagster says of them.

    A setting that several stages read is in the section of the stage it belongs to.

    Attributes:
        target: a stage; only it and the stages that it reads are planned. Empty: all stages.
        reuses: lakes: a version that one of them has, by the same inputs, settings and code, is not
            made again but published here too. So several vocabularies share what leads to them.
        sources: of documents, by name; none means RedPajama-V2 at ``LC_UPSTREAM``.
        blended_mix: by the name of the mix, which is the name of a folder too.
    """

    target: str = ""
    reuses: tuple[str, ...] = ()
    sources: dict[str, SourceSettings] = msgspec.field(default_factory=dict)
    raw_snapshot: RawSettings = RawSettings()
    document_signals: DocumentSignalSettings = DocumentSignalSettings()
    filtered_documents: FilteringSettings = FilteringSettings()
    document_signatures: SignatureSettings = SignatureSettings()
    near_duplicate_pairs: NearDuplicateSettings = NearDuplicateSettings()
    contaminated_documents: DecontaminationSettings = DecontaminationSettings()
    withdrawn_documents: WithdrawalSettings = WithdrawalSettings()
    removed_documents: RemovalSettings = RemovalSettings()
    clean_documents: CleanDocumentsSettings = CleanDocumentsSettings()
    html_index: HtmlIndexSettings = HtmlIndexSettings()
    page_links: PageLinkSettings = PageLinkSettings()
    longpack_documents: LongPackSettings = LongPackSettings()
    token_documents: TokenizingSettings = TokenizingSettings()
    token_grid: GriddingSettings = GriddingSettings()
    longcrawl_flat: FlatteningSettings = FlatteningSettings()
    megatron_rows: MegatronSettings = MegatronSettings()
    packed_rows: PackingSettings = PackingSettings()
    length_buckets: LengthBucketSettings = LengthBucketSettings()
    length_report: LengthReportSettings = LengthReportSettings()
    referral_report: ReferralReportSettings = ReferralReportSettings()
    blended_mix: dict[str, MixSettings] = msgspec.field(
        default_factory=lambda: {"by-tokens": MixSettings(), "equal": MixSettings(weights="equal")}
    )
    data_set_card: CardSettings = CardSettings()
    dagster: DagsterSettings = DagsterSettings()

    def __post_init__(self) -> None:
        require_sources(self.sources)
        if self.contaminated_documents.action == "cut" and not self.clean_documents.wanted:
            raise BadInput(
                'contaminated_documents.action = "cut" edits the texts that clean_documents '
                "publishes: set clean_documents.wanted = true"
            )
        self._require_preferences_that_decide()
        self._require_rows_that_documents_fill()
        self._require_pairs_that_are_written_down()
        if self.html_index.links_from == "wat" and self.page_links.extractor == "paper":
            raise BadInput(
                "html_index.links_from = wat with page_links.extractor = paper: the crawl's lists "
                "of links were not made by the paper's expressions; take html5 (--preset longpack)"
            )
        for name, mix in self.blended_mix.items():
            _require_name(name)
            if PACKED in mix.kinds:
                require_whole_rows(name, self.packed_rows.megatron)

    def require_uncut_texts(self) -> None:
        """Reject tokenizing the filtered documents when evaluation items are cut out of
        `clean_documents`.

        Raises:
            BadInput: names the documents to tokenize instead.
        """
        if self.contaminated_documents.action == "cut":
            raise BadInput(
                'contaminated_documents.action = "cut" edits the texts of clean_documents alone: '
                "tokenize these, as a source of files"
            )

    def _require_preferences_that_decide(self) -> None:
        removal = self.removed_documents
        if "best_perplexity" in removal.prefer and not removal.exact:
            raise BadInput(
                "removed_documents.prefer names best_perplexity, which is compared only where "
                "removed_documents.exact names something"
            )
        contained = self.near_duplicate_pairs.measure == "containment"
        if contained and removal.prefer[:1] != ("longest",):
            raise BadInput(
                'near_duplicate_pairs.measure = "containment" needs removed_documents.prefer to '
                "begin with longest: else a document would go for a part of it"
            )
        named = [key.removeprefix(SOURCE) for key in removal.prefer if key.startswith(SOURCE)]
        for name in named if len(self.sources) > 1 else ():
            source_name(self.sources, name)

    def _require_rows_that_documents_fill(self) -> None:
        tokens, grid = self.token_documents, self.token_grid
        if tokens.min_tokens < grid.row_tokens:
            raise BadInput(
                f"token_documents.min_tokens ({tokens.min_tokens:,}) is below "
                f"token_grid.row_tokens ({grid.row_tokens:,}): shorter documents would not fill a "
                "row"
            )
        if tokens.split_sentences and (grid.row_tokens > 1 or self.packed_rows.wanted):
            raise BadInput(
                "token_documents.split_sentences is for lc tokenize: rows are cut of documents "
                "that are one sequence"
            )
        kept, wanted = tokens.first_tokens, grid.row_tokens * grid.rows_per_document
        if kept is not None and kept < wanted:
            raise BadInput(
                f"token_documents.first_tokens ({kept:,}) is below what token_grid may take of a "
                f"document: {grid.rows_per_document:,} rows of {grid.row_tokens:,} tokens"
            )

    def _require_pairs_that_are_written_down(self) -> None:
        floor = self.near_duplicate_pairs.evidence_floor
        for name in ("threshold", "heldout_floor"):
            if (value := getattr(self.removed_documents, name)) < floor:
                raise BadInput(
                    f"removed_documents.{name} ({value}) is below "
                    f"near_duplicate_pairs.evidence_floor ({floor}): such pairs would not be "
                    "written down"
                )


def require_whole_rows(mix: str, megatron: str) -> None:
    """Reject a mix over packed rows whose Megatron documents are spans: its samples would cross
    rows.

    Raises:
        BadInput: when ``megatron``, as `PackingSettings` has it, is not ``rows``.
    """
    if megatron != WHOLE_ROWS:
        raise BadInput(
            f"the mix {mix!r} takes packed rows, whose Megatron files hold {megatron}: its "
            "samples would join and cut these anew; "
            'set packed_rows.megatron = "rows" and make the rows again'
        )


def _require_name(mix: str) -> None:
    try:
        parse_snapshot(mix)
    except BadInput as error:
        raise BadInput(
            f"a mix cannot be called {mix!r}: expected at most 40 letters, digits, '-' and '_', "
            "such as 'by-tokens'"
        ) from error


def plain(settings: Settings) -> dict[str, Any]:
    """Settings as JSON-like values, for a fingerprint."""
    values: dict[str, Any] = msgspec.to_builtins(settings)
    return values
