"""Random histories of a small lake: snapshots arrive, shards and settings change, documents are
withdrawn, versions pruned and released. After every step the lake is built, audited, compared with
what the records say and, at times, with a lake built from nothing.

``LC_STEPS`` sets the number of steps of the slow form (2,000), ``LC_INVARIANTS=all`` checks all
invariants, or ``LC_INVARIANTS="…"`` those whose names contain the words, and shrinks the history
that breaks one. The slow form prints for each invariant how often it was broken, and the shortest
history.
"""

import contextlib
import os
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import ClassVar

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lc_assets.builds import tables
from lc_assets.stages.reports import data_set_card
from lc_assets_tests.random_histories import (
    INVARIANTS,
    N_COPIES,
    N_FAMILIES,
    N_VARIANTS,
    SNAPSHOTS,
    TAGS,
    Record,
    World,
)

HOLD = INVARIANTS
"""The invariants that hold. One is added when what broke it is corrected; none is ever taken out."""
STEPS = int(os.environ.get("LC_STEPS", "2000"))
PHASES = (Phase.generate, Phase.shrink) if "LC_INVARIANTS" in os.environ else (Phase.generate,)
"""Shrinking takes minutes, so only a person asks for it."""
RECORDS = st.lists(
    st.builds(
        Record,
        st.integers(0, N_FAMILIES - 1),
        st.integers(0, N_VARIANTS - 1),
        st.integers(0, N_COPIES - 1),
    ),
    min_size=5,
    max_size=15,
    unique=True,
)


def checked_invariants() -> frozenset[str]:
    """Those that hold, or that are named by LC_INVARIANTS."""
    words = os.environ.get("LC_INVARIANTS", "")
    return (
        INVARIANTS
        if words == "all"
        else frozenset(name for name in INVARIANTS if words and words in name) or HOLD
    )


class Histories(RuleBasedStateMachine):
    """One history."""

    checked = HOLD
    compared_every = 1
    root: Path | None = None
    steps = 0
    broken: ClassVar[Counter[str]] = Counter()
    shortest: ClassVar[dict[str, tuple[list[str], str]]] = {}

    @initialize(shards=st.lists(RECORDS, min_size=2, max_size=3))
    def begins(self, shards):
        """With one snapshot, and a second one where there are three shards."""
        self.folder = Path(tempfile.mkdtemp(dir=self.root))
        self.world = World(self.folder / "world")
        for snapshot, tag, records in zip(
            (SNAPSHOTS[0], SNAPSHOTS[1], SNAPSHOTS[0]),
            (TAGS[0], TAGS[0], TAGS[1]),
            shards,
            strict=False,
        ):
            self.world.put(snapshot, tag, records)
            self.world.history.append(f"{snapshot}/{tag} of {[*map(tuple, records)]}")
        self.settled("the first build")

    def teardown(self):
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def settled(self, words):
        """Build and check, after a step that is named by words, unless it was the last one too."""
        if self.world.history[-1] == words:
            return
        kind = type(self)
        kind.steps += 1
        self.world.history.append(words)
        found = self.world.settle(compare=kind.steps % kind.compared_every == 0)
        for name in {violation.invariant for violation in found}:
            kind.broken[name] += 1
            example = next(one.words for one in found if one.invariant == name)
            known = kind.shortest.get(name)
            if known is None or len(known[0]) > len(self.world.history):
                kind.shortest[name] = [*self.world.history], example
        wrong = [violation for violation in found if violation.invariant in kind.checked]
        assert not wrong, "\n".join([*self.world.history, *map(str, wrong)])

    def present(self):
        return [
            (snapshot, tag) for snapshot in SNAPSHOTS for tag in self.world.shards.get(snapshot, {})
        ]

    @rule(snapshot=st.sampled_from(SNAPSHOTS), shards=st.lists(RECORDS, min_size=1, max_size=3))
    def a_snapshot_arrives(self, snapshot, shards):
        if snapshot in self.world.shards:
            return
        for tag, records in zip(TAGS, shards, strict=False):
            self.world.put(snapshot, tag, records)
        self.settled(f"snapshot {snapshot} of {[[*map(tuple, records)] for records in shards]}")

    @precondition(lambda self: self.present())
    @rule(data=st.data(), records=RECORDS)
    def a_shard_is_added_or_replaced(self, data, records):
        snapshot = data.draw(st.sampled_from([snapshot for snapshot, _ in self.present()]))
        tag = data.draw(st.sampled_from(TAGS))
        self.world.put(snapshot, tag, records)
        self.settled(f"shard {snapshot}/{tag} of {[*map(tuple, records)]}")

    @precondition(lambda self: self.present())
    @rule(data=st.data(), family=st.integers(0, N_FAMILIES - 1))
    def a_record_comes_before_all_others_of_a_shard(self, data, family):
        record = Record(family)
        snapshot, tag = data.draw(st.sampled_from(self.present()))
        self.world.put(snapshot, tag, [record, *self.world.shards[snapshot][tag]])
        self.settled(f"{tuple(record)} at the top of {snapshot}/{tag}")

    @precondition(lambda self: self.present())
    @rule(data=st.data())
    def a_shard_is_removed(self, data):
        snapshot, tag = data.draw(st.sampled_from(self.present()))
        if len(self.world.shards[snapshot]) > 1:
            self.world.put(snapshot, tag, [])
            self.settled(f"shard {snapshot}/{tag} is gone")

    @rule(words=st.sampled_from([30, 60, 85, 105]))
    def the_filter_moves(self, words):
        self.world.change("filtered_documents", min_words=words)
        self.settled(f"min_words = {words}")

    @rule(threshold=st.sampled_from([0.7, 0.8, 0.9]))
    def the_threshold_moves(self, threshold):
        self.world.change("removed_documents", threshold=threshold)
        self.settled(f"threshold = {threshold}")

    @rule(near=st.booleans())
    def near_duplicates_are_looked_for(self, near):
        self.world.change("near_duplicate_pairs", near=near)
        self.settled(f"near = {near}")

    @rule(prefer=st.sampled_from([("oldest",), ("newest",), ("longest", "oldest")]))
    def the_preference_moves(self, prefer):
        self.world.change("removed_documents", prefer=prefer)
        self.settled(f"prefer = {prefer}")

    @rule(
        seed=st.integers(1, 3),
        sections=st.sampled_from([("token_grid",), ("token_grid", "packed_rows")]),
    )
    def the_seed_moves(self, seed, sections):
        for section in sections:
            self.world.change(section, seed=seed)
        self.settled(f"seed = {seed} of {sections}")

    @rule(replace=st.sampled_from([(), ("email",)]))
    def personal_data_are_replaced(self, replace):
        privacy = self.world.recipe.token_documents.privacy
        self.world.change("token_documents", privacy=type(privacy)(replace=replace))
        self.settled(f"replace = {replace}")

    @rule(samples=st.sampled_from([None, 300]))
    def samples_are_asked_for(self, samples):
        self.world.change("megatron_rows", samples=samples)
        self.settled(f"samples = {samples}")

    @precondition(lambda self: self.present())
    @rule(data=st.data(), kind=st.sampled_from(["document", "url", "domain", "digest"]))
    def a_document_is_withdrawn(self, data, kind):
        names = [name for name in self.world.documents() if not name.startswith("2020-05")]
        name = data.draw(st.sampled_from(names))
        self.world.withdraw(kind, name)
        self.settled(f"{kind} of {name} is withdrawn")

    @precondition(lambda self: self.world.entries)
    @rule(data=st.data())
    def an_entry_is_taken_out_of_the_list(self, data):
        number = data.draw(st.integers(0, len(self.world.entries) - 1))
        words = "the entry {} {} is taken out".format(*self.world.entries[number])
        self.world.take_out(number)
        self.settled(words)

    @precondition(lambda self: self.world.history[-1] not in ("prune", "release"))
    @rule()
    def what_nothing_needs_is_pruned(self):
        self.world.prune()
        self.settled("prune")

    @precondition(lambda self: self.world.history[-1] not in ("prune", "release"))
    @rule()
    def a_release_is_made(self):
        self.world.release()
        self.settled("release")


@contextlib.contextmanager
def without_fixed_costs():
    """Plots are their values, and footers of tables are taken as sound: two fifths of a step."""
    with pytest.MonkeyPatch.context() as patched:
        for name in ("timeline", "bars"):
            patched.setattr(
                data_set_card.drawing, name, lambda *values, **more: repr((values, more)).encode()
            )
        patched.setattr(tables, "require_sound_footer", lambda _path: None)
        yield


@without_fixed_costs()
def run(n_steps, *, compared_every, root=None):
    """Run histories in a folder until there were so many steps; return the machine."""
    how = {"checked": checked_invariants(), "compared_every": compared_every, "root": root}
    kind = type("Run", (Histories,), how)
    kind.broken, kind.shortest = Counter(), {}
    per_history = 12
    for number in range(50):
        if kind.steps >= n_steps:
            break
        run_state_machine_as_test(
            kind,
            settings=settings(
                max_examples=max(2, (n_steps - kind.steps) // per_history),
                stateful_step_count=per_history,
                deadline=None,
                database=None,
                derandomize=number == 0,
                phases=PHASES,
                suppress_health_check=list(HealthCheck),
                print_blob=False,
            ),
        )
    return kind


def test_some_histories(tmp_path):
    """Twelve steps; every sixth is compared with a build from nothing."""
    assert run(12, compared_every=6, root=tmp_path).steps >= 12


@pytest.mark.slow
@pytest.mark.timeout(900 + 20 * STEPS)  # a step takes one CPU-second
def test_many_histories(tmp_path):
    """Every third step is compared with a build from nothing."""
    started = time.process_time()
    found = run(STEPS, compared_every=3, root=tmp_path)
    print(f"\n{found.steps:,} steps, {time.process_time() - started:,.0f} CPU-seconds")
    for name in sorted(INVARIANTS):
        print(
            f"{found.broken[name]:6,} broken: {name}{'' if name in HOLD else ' (not yet required)'}"
        )
        history, example = found.shortest.get(name, ([], ""))
        print("".join(f"         {line}\n" for line in [*history, example] if line), end="")
