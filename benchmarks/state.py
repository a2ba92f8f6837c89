"""What a benchmark knows so far: becomes the manifest, and comes back from it when a run is resumed."""

from __future__ import annotations

from collections import Counter

import msgspec

from . import artefact
from .artefact import Freshness, Gate, Peak
from .bundle import Bundle
from .measure import Measured
from .samples import Samples
from .summary import Aside, Key, Warmth, key_of


class State(msgspec.Struct):
    """By contender, or by contender and workload."""

    engines: dict[str, artefact.Engine] = msgspec.field(default_factory=dict[str, artefact.Engine])
    gates: dict[tuple[str, str], Gate] = msgspec.field(default_factory=dict[tuple[str, str], Gate])
    unsupported: dict[str, dict[str, str]] = msgspec.field(default_factory=dict[str, dict[str, str]])
    peaks: dict[tuple[str, str], Peak] = msgspec.field(default_factory=dict[tuple[str, str], Peak])
    blocks: list[Samples] = msgspec.field(default_factory=list[Samples])
    asides: dict[Key, Aside] = msgspec.field(default_factory=dict[Key, Aside])
    warmths: dict[tuple[str, str], Warmth] = msgspec.field(default_factory=dict[tuple[str, str], Warmth])
    notes: list[str] = msgspec.field(default_factory=list[str])
    freshness: dict[str, list[Freshness]] = msgspec.field(default_factory=dict[str, list[Freshness]])
    finished: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    """By contender, how many rounds are whole."""

    def add(self, measured: Measured) -> None:
        """Keep a phase that was measured."""
        samples, errors, elapsed, cpu = measured
        self.blocks.append(samples)
        key = key_of(samples)
        before = self.asides.get(key, Aside(Counter(), 0, 0))
        self.asides[key] = Aside(before.errors + errors, before.elapsed + elapsed, before.cpu + cpu)

    def note(self, line: str) -> None:
        """Say something once."""
        if line not in self.notes:
            self.notes.append(line)


def resumed(read: Bundle) -> State:
    """What an interrupted run left: its whole rounds. What was begun is measured again."""
    manifest = read.manifest
    state = State(
        engines={engine.name: engine for engine in manifest.engines if not engine.error},
        gates={(each.contender, each.workload): each for each in manifest.gates},
        unsupported=manifest.unsupported,
        peaks={(peak.contender, peak.workload): peak for peak in manifest.peaks},
        blocks=[block for block in read.blocks if block.round <= manifest.finished.get(block.contender, 0)],
        notes=manifest.notes,
        freshness=manifest.freshness,
        finished=manifest.finished,
    )
    for row in manifest.rows:
        key = row.contender, row.workload
        state.warmths[key] = Warmth(row.discarded, row.stationary)
        state.asides[*key, row.phase, row.share, row.rate] = Aside(Counter(row.errors), 0, 0)
    return state
