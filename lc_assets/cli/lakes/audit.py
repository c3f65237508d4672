"""``lc audit``: a last, independent pass over everything that a lake serves."""

import msgspec
import typer

from lc_assets.builds.recipe_files import read_recipe, recorded_recipe
from lc_assets.cli import options
from lc_assets.cli.printing import print_error, say, table
from lc_assets.cli.reports import add_results
from lc_assets.lake.located import existing_lake
from lc_assets.lake.releases import lake_of_release

FAULTY = 1


def audit(
    lake: options.LakePath,
    release: str | None = None,
    recipe: options.Recipe = None,
    withdrawn: options.Withdrawn = "",
) -> None:
    """Compare everything that a lake serves with its documents, by code that no stage shares; exit
    with 1 if there is a fault.

    Every row, packed row and Megatron sequence is compared token by token; both sides of the split,
    withdrawn documents, counts and mixes over all of them. See docs/reliability.md.

    Args:
        release: a release of the lake instead of what is published.

    Example: lc audit lake
    """
    from lc_assets.stages.releases.auditing import Audit
    from lc_assets.stages.withdrawal.matching import named_by

    opened = existing_lake(lake)
    settings = read_recipe(recipe or recorded_recipe(lake), withdrawn=withdrawn)
    named = named_by(settings.withdrawn_documents)
    found = Audit(opened if release is None else lake_of_release(opened, release), *named).run()
    faults = [one.sentence for one in found if one.wrong]
    add_results(comparisons=found)
    columns = ("what", "where", "compared", "wrong")
    table(columns, [msgspec.structs.astuple(one)[: len(columns)] for one in found])
    say(f"{len(found):,} comparisons, {len(faults):,} with faults")
    for sentence in faults:
        print_error(sentence)
    raise typer.Exit(FAULTY if faults else 0)
