"""Asset checks: every check of a stage, run again on the published version, and every file compared
with its digest.

The same checks ran before publishing; these can be run at any time, and the UI shows their values.
All but warnings block what is downstream in the same run. Stages that serve text are also compared
with the present lists of withdrawals (`lc_assets.stages.withdrawal.contents`).
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
    CheckResult,
    Stage,
)
from lc_assets.errors import LcError
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.versions import Published
from lc_assets.orchestration.resources import BuildContextResource
from lc_assets.stages.withdrawal.contents import CHECK as WITHDRAWN
from lc_assets.stages.withdrawal.contents import SERVED, nothing_withdrawn_is_served

WHOLE = "every_file_is_as_published"


def checks_of(
    stage: Stage, asset: dg.AssetKey, partitions: dg.PartitionsDefinition | None
) -> dg.AssetChecksDefinition:
    """Make the checks of one asset."""
    described = {check.__name__: inspect.getdoc(check) or "" for check in stage.checks}
    described[WHOLE] = "Every file has the size and digest of the receipt."
    if stage.name in SERVED:
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
                # A run of a partition may contain an asset without partitions.
                has_key = partitions is not None and context.has_partition_key
                key = context.partition_key if has_key else GLOBAL
                for found in findings_of(opened.lake, stage, key, chosen, recipe=opened.recipe):
                    is_error = found.severity == "error"
                    yield dg.AssetCheckResult(
                        asset_key=asset,
                        check_name=found.check,
                        passed=found.passed,
                        severity=getattr(dg.AssetCheckSeverity, "ERROR" if is_error else "WARN"),
                        description=found.message,
                        metadata=dict(found.values),
                    )

    return check


def findings_of(
    lake: Lake, stage: Stage, key: str, chosen: set[str], *, recipe: Recipe
) -> list[CheckResult]:
    """Run the chosen checks on what is published, by ``recipe`` as far as withdrawals go."""
    published = lake.partition(stage.name, key).require()
    check_input = check_input_of(lake, published, by_summary=stage.by_summary)
    found = [run_check(check, check_input) for check in stage.checks if check.__name__ in chosen]
    if WITHDRAWN in chosen:
        try:
            found.append(nothing_withdrawn_is_served(lake, recipe, published))
        except LcError as error:
            message = f"cannot be checked: {type(error).__name__}: {error}"
            found.append(CheckResult(check=WITHDRAWN, passed=False, message=message))
    return found + ([every_file_is_as_published(published)] if WHOLE in chosen else [])


def every_file_is_as_published(published: Published) -> CheckResult:
    """Read every file again and compare its digest with the receipt."""
    damage, n_files = published.damage(), len(published.receipt.files)
    message = f"{n_files:,} files, {published.receipt.n_bytes:,} bytes"
    if damage:
        message = (
            f"{'; '.join(damage[:5])}; to build the version again, remove the folder "
            f"{published.home} and materialize this partition"
        )
    return CheckResult(
        check=WHOLE,
        passed=not damage,
        message=message,
        values={"files": n_files, "bytes": published.receipt.n_bytes},
    )
