"""Two benchmarks against each other: refused where they are not alike, their runs paired, every figure judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from ..harness.artefact import own_version
from ..harness.exits import UsageProblem
from . import bundle
from .artefact import FORMAT, DataSet, Manifest
from .bundle import Bundle
from .changes import Absence, Place, Run, Spot, changes_of, distrusted, where
from .comparison import Change, Comparison, Side
from .machine import DRIFT, Machine
from .samples import Samples
from .statistics import CONFIDENCE, EFFECT

MEANING = (
    *("data", "memory", "arrivals", "load_workers"),
    *("warmup_seconds", "closed_seconds", "open_seconds", "open_most_seconds"),
)
"""What of a profile decides what a figure means. How many rounds, shares and workloads there are does not."""


class Given(NamedTuple):
    """A bundle, and the file it was read from."""

    path: Path
    bundle: Bundle

    @property
    def manifest(self) -> Manifest:
        """Its manifest."""
        return self.bundle.manifest


# Reading


def read(path: Path) -> list[Given]:
    """The bundle of a file, or those of all files in a folder, by when they began. Raises UsageProblem."""
    if not path.is_dir():
        return [Given(path, bundle.read(path))]
    found = [Given(file, bundle.read(file)) for file in sorted(path.glob("*.json")) if _is_bundle(file)]
    if not found:
        raise UsageProblem(f"there is no bundle of a benchmark in {path}", hint=bundle.HINT)
    return sorted(found, key=lambda each: each.manifest.started)


def _is_bundle(path: Path) -> bool:
    class Head(msgspec.Struct):
        format: Any = None

    try:
        return msgspec.json.decode(path.read_bytes(), type=Head).format == FORMAT
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return False


# Whether they may be compared


def refuse_unlike(manifests: Sequence[Manifest]) -> None:
    """Raises UsageProblem where runs have other data sets, k, seeds, payloads, consistency or load, or are the same."""
    first = manifests[0]
    for other in manifests[1:]:
        for what, one, two in _meaning(first, other):
            if one != two:
                raise UsageProblem(
                    f"these runs cannot be compared: {what} is {one} in one and {two} in another",
                    hint="measure both with the same options",
                )
    files = [manifest.samples.sha256 for manifest in manifests]
    if len({*files}) < len(files):
        raise UsageProblem("the same run is given twice", hint="compare it with another one")


def _meaning(one: Manifest, two: Manifest) -> Iterator[tuple[str, object, object]]:
    yield "k", one.k, two.k
    yield "the seed", one.seed, two.seed
    yield "the payload", repr(one.payload), repr(two.payload)
    yield "the consistency", repr(one.consistency), repr(two.consistency)
    for name in DataSet.__struct_fields__:
        # A file may have been moved: what is in it is what counts.
        if name not in ("spec", "memory"):
            yield f"the data set ({name})", getattr(one.data, name), getattr(two.data, name)
    for name in MEANING:
        yield f"the profile ({name})", getattr(one.profile, name), getattr(two.profile, name)


def refuse_other_machines(manifests: Sequence[Manifest]) -> str:
    """Raises UsageProblem where runs were made on several machines. Why nothing can be decided on the same, or ''."""
    hint = "numbers of two machines say nothing about a change; --across-machines compares them all the same"
    machines = [_machine(manifest, hint) for manifest in manifests]
    paces = [1.0]
    for other in machines[1:]:
        if unlike := machines[0].other_than(other):
            raise UsageProblem(f"these runs are of different machines: {'; '.join(unlike)}", hint=hint)
        paces.append(machines[0].pace(other))
    apart = max(paces) / min(paces) - 1
    return f"a fixed piece of work took {apart:.0%} longer in one run than in another" if apart > DRIFT else ""


def _machine(manifest: Manifest, hint: str) -> Machine:
    try:
        return msgspec.convert(manifest.machine, Machine)
    except msgspec.ValidationError:
        raise UsageProblem(f"the run of {manifest.started} does not say on which machine it was", hint=hint) from None


# Comparing


def compare(
    a: Sequence[Given],
    b: Sequence[Given],
    *,
    effect: float = EFFECT,
    across_machines: bool = False,
    contenders: Sequence[str] = (),
    workloads: Sequence[str] = (),
) -> Comparison:
    """What became of every figure from A to B; of these contenders and workloads alone where some are named.

    Floors, behind which is no store, are controls, unless they are named. A side of one bundle is compared round by
    round, one of several bundle by bundle, as the rounds of a bundle share an engine and are more alike than runs are.
    Raises UsageProblem where the sides are not alike.
    """
    manifests = [given.manifest for given in (*a, *b)]
    refuse_unlike(manifests)
    distrust = "" if across_machines else refuse_other_machines(manifests)
    unit: Literal["round", "run"] = "round" if len(a) == len(b) == 1 else "run"
    sides = [_runs(side, unit) for side in (a, b)]
    why = Absence([given.manifest for given in a], [given.manifest for given in b])
    floors = {engine.name for manifest in manifests for engine in manifest.engines if engine.kind == "floor"}
    changes: list[Change] = []
    controls: list[Change] = []
    for place in _places(sides[0], sides[1], contenders, workloads):
        kept = controls if place[0] in floors and place[0] not in contenders else changes
        kept += [distrusted(change, distrust) for change in changes_of(place, sides[0], sides[1], effect, why)]
    return Comparison(
        memassay=own_version(),
        effect=effect,
        confidence=CONFIDENCE,
        unit=unit,
        a=_side(a),
        b=_side(b),
        differences=[*_differences(a, b)],
        notes=[
            *_notes(a, b, unit, across_machines, distrust),
            *_uneven(unit, len(sides[0]), len(sides[1])),
            *_moved(controls),
        ],
        changes=changes,
        controls=controls,
    )


def _runs(side: Sequence[Given], unit: Literal["round", "run"]) -> list[Run]:
    """What figures are taken from: whole rounds alone, or whole bundles."""
    runs: dict[int, dict[tuple[Place, Spot], list[Samples]]] = {}
    for number, given in enumerate(side):
        for block in given.bundle.blocks:
            if block.phase in ("closed", "open") and len(block) and block.round <= _whole(given.manifest, block):
                own = runs.setdefault(block.round if unit == "round" else number, {})
                own.setdefault(where(block), []).append(block)
    return [Run(runs[number]) for number in sorted(runs)]


def _whole(manifest: Manifest, block: Samples) -> int:
    return manifest.finished.get(block.contender, 0)


def _places(
    old: Sequence[Run], new: Sequence[Run], contenders: Sequence[str], workloads: Sequence[str]
) -> dict[Place, None]:
    """What was measured on either side. Raises UsageProblem for a name that is nowhere."""
    places = dict.fromkeys(place for run in (*old, *new) for place, _ in run.blocks)
    for part, what, wanted in ((0, "contender", contenders), (1, "workload", workloads)):
        there = dict.fromkeys(place[part] for place in places)
        for name in wanted:
            if name not in there:
                raise UsageProblem(f"neither run has the {what} {name!r}", hint="they have " + ", ".join(there))
        if wanted:
            places = {place: None for place in places if place[part] in wanted}
    return places


def _side(side: Sequence[Given]) -> Side:
    manifests = [given.manifest for given in side]
    return Side(
        files=tuple(str(given.path) for given in side),
        started=tuple(manifest.started for manifest in manifests),
        memassay=", ".join(dict.fromkeys(manifest.memassay for manifest in manifests)),
        rounds=sum(manifest.rounds_done for manifest in manifests),
        partial=any(manifest.partial for manifest in manifests),
    )


# What a reader has to know


def _differences(a: Sequence[Given], b: Sequence[Given]) -> Iterator[str]:
    """What is not the same on both sides: versions, how engines were set up."""
    one, two = a[0].manifest, b[0].manifest
    if one.memassay != two.memassay:
        yield f"memassay: {one.memassay} and {two.memassay}"
    for name in sorted({*one.versions} | {*two.versions}):
        if (old := one.versions.get(name, "none")) != (new := two.versions.get(name, "none")):
            yield f"{name}: {old} and {new}"
    others = {engine.name: engine for engine in two.engines}
    for engine in one.engines:
        other = others.get(engine.name)
        if other is None or engine.error or other.error:
            continue
        for part in ("engine", "method", "index", "settings", "plan"):
            old, new = getattr(engine, part), getattr(other, part)
            if old != new:
                yield f"{engine.name}, {part}: {_told(old)} and {_told(new)}"


def _told(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _notes(
    a: Sequence[Given], b: Sequence[Given], unit: Literal["round", "run"], across_machines: bool, distrust: str
) -> Iterator[str]:
    if distrust:
        yield f"{distrust}: the machine was not itself, and nothing is decided"
    if across_machines:
        yield "the machines were not compared: what changed may be theirs"
    if not _in_turn(a, b):
        yield "A and B were not measured in turn: what the machine did meanwhile counts as a change"
    told: dict[str, list[str]] = {}
    for name, side in (("A", a), ("B", b)):
        for note in _notes_of(side, unit):
            told.setdefault(note, []).append(name)
    yield from (f"{' and '.join(names)}: {note}" for note, names in told.items())


def _notes_of(side: Sequence[Given], unit: Literal["round", "run"]) -> Iterator[str]:
    """What is true of one side, or of both."""
    manifests = [given.manifest for given in side]
    profile = manifests[0].profile
    if any(manifest.partial for manifest in manifests):
        yield "partial, as it was interrupted: only whole rounds count"
    if unit == "round" and profile.starts < profile.rounds:
        yield f"engines were started {profile.starts} times for all rounds: how starts differ is not in the intervals"
    if any(manifest.profile.indicative for manifest in manifests):
        yield f"the profile {profile.name} is indicative"


def _uneven(unit: str, a: int, b: int) -> Iterator[str]:
    if a != b:
        yield f"A has {a} {unit}s and B {b}: what has no partner is left out"


def _moved(controls: Sequence[Change]) -> Iterator[str]:
    """What became faster or slower though no store is behind it."""
    for change in controls:
        if change.judgement.verdict in ("regressed", "improved"):
            yield f"{change.contender}, a floor, {change.judgement.verdict} ({change.workload}, {change.name})"


def _in_turn(a: Sequence[Given], b: Sequence[Given]) -> bool:
    """Whether of every two runs, in the order in which they were made, one is A's and one B's."""
    made = sorted([(given.manifest.started, "A") for given in a] + [(given.manifest.started, "B") for given in b])
    order = [side for _, side in made]
    return len(order) > 2 and all({*order[first : first + 2]} == {"A", "B"} for first in range(0, len(order), 2))
