"""Asset checks: each claim of a stage, tested again on what stands published, and every file
against its digest.

A stage's audit has tested the same claims before publishing; here a person sees them in the UI,
with the numbers, and can ask for them at any time. All of them but warnings block what is
downstream in the same run. What serves text is held against the lists of withdrawals as they are
now, too (`lc_assets.stages.releases.serving`).
"""

import inspect
import warnings
from collections.abc import Iterator

import dagster as dg

from lc_assets.build.building import (
    check_input_of,
    run_check,
)
from lc_assets.build.recipe import Recipe
from lc_assets.build.stage import (
    Check,
    CheckResult,
    Stage,
)
from lc_assets.errors import LcError
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.versions import Published
from lc_assets.orchestration.resources import BuildContextResource
from lc_assets.stages.releases.serving import CLAIM as WITHDRAWN
from lc_assets.stages.releases.serving import ROSTERS_OF, nothing_withdrawn_is_served

WHOLE = "every_file_is_as_published"


def checks_of(
    stage: Stage, asset: dg.AssetKey, partitions: dg.PartitionsDefinition | None
) -> dg.AssetChecksDefinition:
    """Make the checks of one asset: one per claim of its stage, and one that reads every digest
    again.
    """
    described = {claim.__name__: _sentence(claim) for claim in stage.checks} | {
        WHOLE: "Every file has the size and digest of the receipt."
    }
    if stage.name in ROSTERS_OF:
        described[WITHDRAWN] = inspect.getdoc(nothing_withdrawn_is_served) or ""
    with warnings.catch_warnings():
        # Partitioned checks are a preview in Dagster 1.13; without them a good snapshot would hide
        # a bad one.
        warnings.simplefilter("ignore", dg.PreviewWarning)
        specs = [
            dg.AssetCheckSpec(
                name, asset=asset, description=sentence, blocking=True, partitions_def=partitions
            )
            for name, sentence in described.items()
        ]

        @dg.multi_asset_check(
            name=f"{asset.to_python_identifier()}_checks", specs=specs, can_subset=True
        )
        def check(
            context: dg.AssetCheckExecutionContext, build_context: BuildContextResource
        ) -> Iterator[dg.AssetCheckResult]:
            chosen = {key.name for key in context.selected_asset_check_keys}
            with build_context.open(context.log) as opened:
                # A run of a partition may hold an asset that has none.
                key = (
                    context.partition_key
                    if partitions is not None and context.has_partition_key
                    else GLOBAL
                )
                findings = findings_of(opened.lake, stage, key, chosen, recipe=opened.recipe)
            yield from (_result(finding, asset) for finding in findings)

    return check


def findings_of(
    lake: Lake, stage: Stage, key: str, chosen: set[str], *, recipe: Recipe
) -> list[CheckResult]:
    """Test the chosen claims on what is published, and by ``recipe`` whether it may be served
    still.
    """
    published = lake.partition(stage.name, key).require()
    wanted = [claim for claim in stage.checks if claim.__name__ in chosen]
    evidence = check_input_of(lake, published, by_summary=stage.by_summary)
    found = [run_check(claim, evidence) for claim in wanted]
    served = [_still_servable(lake, recipe, published)] if WITHDRAWN in chosen else []
    return found + served + ([every_file_is_as_published(published)] if WHOLE in chosen else [])


def _still_servable(lake: Lake, recipe: Recipe, published: Published) -> CheckResult:
    try:
        return nothing_withdrawn_is_served(lake, recipe, published)
    except LcError as error:
        return CheckResult(
            check=WITHDRAWN,
            passed=False,
            message=f"cannot be tested: {type(error).__name__}: {error}",
        )


def every_file_is_as_published(published: Published) -> CheckResult:
    """Read every file again and compare its digest with the receipt."""
    damage = published.damage()
    n_files = len(published.receipt.files)
    mend = (
        f"; to make the version again, remove the folder {published.home} and materialize this "
        "partition"
    )
    words = (
        "; ".join(damage[:5]) + mend
        if damage
        else f"{n_files:,} files, {published.receipt.n_bytes:,} bytes"
    )
    return CheckResult(
        check=WHOLE,
        passed=not damage,
        message=words,
        values={"files": n_files, "bytes": published.receipt.n_bytes},
    )


def _sentence(claim: Check) -> str:
    return inspect.getdoc(claim) or ""


def _result(finding: CheckResult, asset: dg.AssetKey) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=finding.check,
        passed=finding.passed,
        severity=dg.AssetCheckSeverity.ERROR
        if finding.severity == "error"
        else dg.AssetCheckSeverity.WARN,
        description=finding.message,
        metadata=dict(finding.values),
    )
