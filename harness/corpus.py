"""A seed's corpus: the programs of a level, generated once and run on every backend."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import cast

import msgspec
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.strategies import SearchStrategy

from ..spec.capabilities import Capabilities
from ..spec.clauses import select
from ..spec.clauses.model import Clause, Level
from ..spec.facts import survey
from ..spec.program import (
    CloneThread,
    GetWorkingMemory,
    ListClones,
    Program,
    Settle,
    TitleThread,
    UpdateWorkingMemory,
)
from ..spec.reference_index import MODEL_CAPABILITIES
from ..spec.strategies import SCENARIOS, Scenario
from . import artefact

COMPLETIONS = 6
"""Rounds of completing a corpus."""

DRAWS, ADDED = 40, 8
"""Programs drawn for a rare discriminator in the first round, twice as many in each further one; at most kept."""

MOST_DRAWS = 12_000
"""Programs drawn to complete one corpus: where nearly everything is rare, more would take for ever."""

LEAST, SHARE = 8, 0.065
"""How often a discriminator is met in a complete corpus: a margin over verdicts.LEAST_MET and LEAST_SHARE."""

LEAST_OF_FEW, SHARE_OF_FEW = 6, 0.055
"""The same where so many programs were asked for: less of a margin, for more clauses."""

CASE = "case"
"""The scenario of programs that come from case files."""

SHARED = 0.5
"""Of a corpus whose size was asked for: what is the scenarios' for sure. The rest completes it, or is theirs too."""

NARROW = msgspec.structs.replace(
    MODEL_CAPABILITIES, index_types=("flat", "hnsw"), max_dimension=4_096, max_indexed_dimension=2_000
)
"""No less than most engines can do: few programs have to put clauses to the test on all of these."""

ROUNDS = 6
"""How often more is drawn where draws repeated themselves."""


OPTIONAL = (CloneThread, ListClones, GetWorkingMemory, UpdateWorkingMemory, Settle, TitleThread)
"""Calls on a memory that not every backend can answer."""

MAX_PROGRAMS = 100_000
"""Programs of one corpus; they are all held in memory."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done to programs, how many are done, and of how many."""


def _unwatched(what: str, done: int, of: int) -> None:
    """Watches nothing."""


class Entry(msgspec.Struct, frozen=True):
    """One program, where it came from, and the facts it shows."""

    program: Program
    hash: str
    scenario: str
    facts: frozenset[str]


class Corpus(msgspec.Struct, frozen=True):
    """Programs without duplicates, in the order in which they are run."""

    entries: tuple[Entry, ...]
    description: artefact.Corpus


def build(
    level: Level,
    seed_: int,
    total: int | None = None,
    *,
    scenarios: Mapping[str, Scenario] = SCENARIOS,
    progress: Progress = _unwatched,
) -> Corpus:
    """The corpus of a seed. Same seed and same memassay, Hypothesis and Python: same programs.

    The scenarios' shares are completed by programs that meet whatever discriminator chance has left rare. With
    `total` there are so many programs, as far as there are different ones; completing them goes first, so that as
    few clauses as possible are vacuous.
    """
    shares = scale({name: scenario.share[level] for name, scenario in scenarios.items()}, total)
    expected = sum(shares.values())
    generated: dict[str, list[Program]] = {}
    done = 0
    for name, share in shares.items():
        generated[name] = distinct(
            scenarios[name],
            share,
            seed_,
            drawn=lambda many, done=done, share=share: progress("generating", done + min(many, share), expected),
        )
        done += share
    surveyed_: list[Entry] = []
    different = _distinct(_interleave(generated))
    for digest, (scenario, program) in different.items():
        surveyed_.append(Entry(program, digest, scenario, survey(program)))
        progress("surveying", len(surveyed_), len(different))
    entries = tuple(surveyed_)
    sure = entries if total is None else entries[: math.ceil(SHARED * total)]
    room = MAX_PROGRAMS if total is None else total - len(sure)
    least = (LEAST, SHARE) if total is None else (LEAST_OF_FEW, SHARE_OF_FEW)
    facts = _facts if total is None else _facts_on_most
    completing = _completed(sure, entries, room, least, level, seed_, scenarios, facts)
    added = {entry.hash for entry in completing}
    others = [entry for entry in entries[len(sure) :] if entry.hash not in added]
    entries = (*sure, *_spread(completing, others[: room - len(completing)]))
    whole = hashlib.sha256("".join(entry.hash for entry in entries).encode()).hexdigest()[:16]
    return Corpus(
        entries,
        artefact.Corpus(
            seed=seed_,
            level=level,
            examples=total,
            programs=len(entries),
            hash=whole,
            scenarios=() if len(scenarios) == len(SCENARIOS) else tuple(scenarios),
        ),
    )


def with_cases(corpus: Corpus, programs: Iterable[Program]) -> Corpus:
    """The corpus after these programs, each once."""
    first = {program.hash: program for program in programs}
    entries = (
        *(Entry(program, digest, CASE, survey(program)) for digest, program in first.items()),
        *(entry for entry in corpus.entries if entry.hash not in first),
    )
    return Corpus(entries, msgspec.structs.replace(corpus.description, cases=len(first)))


def _completed(
    sure: Sequence[Entry],
    drawn_: Sequence[Entry],
    room: int,
    least: tuple[int, float],
    level: Level,
    seed_: int,
    scenarios: Mapping[str, Scenario],
    facts: Callable[[Entry], frozenset[str]],
) -> tuple[Entry, ...]:
    """At most `room` programs to add to those that are sure, so that each discriminator is met well above what a
    verdict needs (verdicts.vacuous).

    They are drawn from scenarios that meet the discriminator most often, and only those kept that do.
    """
    known = {entry.hash: entry for entry in sure}
    draws = 0
    for number in range(COMPLETIONS):
        rare = {
            fact: (clause, many)
            for clause in select(level)
            for fact, many in _rare(clause, known.values(), *least, facts)
        }
        if not rare:
            break
        for fact, (clause, many) in rare.items():
            wanted = min(many, ADDED, len(sure) + room - len(known))
            if wanted == 0:
                return tuple(known.values())[len(sure) :]
            # A fact that nothing shows yet is looked for where its clause is put to the test at all.
            shown = _shown_by({fact}, drawn_, known.values()) or _shown_by({*clause.applies}, drawn_, known.values())
            if not shown:
                continue
            # Of few programs that show it the rate says little, so the next best scenarios have their rounds too.
            best = sorted(shown, key=lambda name: shown[name] / scenarios[name].share[level], reverse=True)
            name = best[number % len(best)]
            draws += DRAWS << number
            if draws > MOST_DRAWS:
                return tuple(known.values())[len(sure) :]
            drawn = generate(scenarios[name].strategy, DRAWS << number, derive(seed_, f"{name}/{fact}/{number}"))
            fresh = {program.hash: program for program in drawn if program.hash not in known}
            # One by one, as surveying takes long where programs are long.
            found = (Entry(program, digest, name, survey(program)) for digest, program in fresh.items())
            meeting = (entry for entry in found if _meets(entry, fact, clause, facts))
            known |= {entry.hash: entry for entry in itertools.islice(meeting, wanted)}
    return tuple(known.values())[len(sure) :]


def _shown_by(facts: set[str], *parts: Iterable[Entry]) -> Counter[str]:
    """How many programs of each scenario show any of these facts."""
    return Counter(entry.scenario for part in parts for entry in part if not facts.isdisjoint(entry.facts))


def _facts(entry: Entry) -> frozenset[str]:
    return entry.facts


def _facts_on_most(entry: Entry) -> frozenset[str]:
    return _survey(entry.program, NARROW) if depends(entry.program) else entry.facts


def _meets(entry: Entry, fact: str, clause: Clause, facts: Callable[[Entry], frozenset[str]]) -> bool:
    """Whether a program shows a fact of a clause; a variant may be one of few engines, so on any of them."""
    return fact in (entry.facts if fact in clause.variants else facts(entry))


def _rare(
    clause: Clause,
    entries: Iterable[Entry],
    least: int,
    share: float,
    facts: Callable[[Entry], frozenset[str]] = _facts,
) -> Iterator[tuple[str, int]]:
    """The clause's discriminators and variants that are not met often enough, and how many programs are lacking."""
    applicable = [entry for entry in entries if not entry.facts.isdisjoint(clause.applies)]
    for fact in (*clause.discriminators.values(), *clause.variants):
        met = sum(_meets(entry, fact, clause, facts) for entry in applicable)
        wanted = least if fact in clause.variants else max(least, math.ceil(share * len(applicable)))
        if met < wanted:
            yield fact, wanted - met


def _spread(some: Sequence[Entry], others: Sequence[Entry]) -> list[Entry]:
    """Both, each evenly over the whole."""
    placed = [((place + 1) / len(part), entry) for part in (some, others) for place, entry in enumerate(part)]
    return [entry for _, entry in sorted(placed, key=lambda item: item[0])]


def distinct(
    scenario: Scenario, count: int, seed_: int, *, drawn: Callable[[int], None] = lambda many: None
) -> list[Program]:
    """`count` different programs, or fewer when a few rounds of drawing do not give that many.

    `drawn` is called with how many draws were made.
    """
    draws = itertools.count(1)
    found: dict[str, Program] = {}
    for number in range(ROUNDS):
        missing = count - len(found)
        if missing <= 0:
            break
        # One more, as every round begins with the same simplest program.
        purpose = f"{scenario.name}/{number}"
        drawing = generate(scenario.strategy, missing + 1, derive(seed_, purpose), each=lambda: drawn(next(draws)))
        for program in drawing:
            found.setdefault(program.hash, program)
    return list(found.values())[:count]


def generate(
    strategy: SearchStrategy[Program], count: int, seed_: int, *, each: Callable[[], None] = lambda: None
) -> list[Program]:
    """`count` draws; `each` is called after every one.

    Every setting is explicit: a user's profile, or the automatic CI profile, must not leak in.
    """
    drawn: list[Program] = []
    if count == 0:
        return drawn

    @seed(seed_)
    @settings(
        max_examples=count,
        phases=(Phase.generate,),
        derandomize=False,
        database=None,
        verbosity=Verbosity.quiet,
        stateful_step_count=50,
        report_multiple_bugs=False,
        suppress_health_check=cast("list[HealthCheck]", list(HealthCheck)),
        deadline=None,
        print_blob=False,
        backend="hypothesis",
    )
    @given(strategy)
    def collect(program: Program) -> None:
        drawn.append(program)
        each()

    collect()
    return drawn


def derive(seed_: int, purpose: str) -> int:
    """A seed of its own for each purpose."""
    return int.from_bytes(hashlib.sha256(f"{seed_}/{purpose}".encode()).digest()[:8])


def scale(shares: Mapping[str, int], total: int | None) -> dict[str, int]:
    """Shares in proportion that sum up to `total`: the largest remainders get what rounding left."""
    whole = sum(shares.values())
    if total is None or whole == 0:
        return dict(shares)
    exact = {name: Fraction(share * total, whole) for name, share in shares.items()}
    scaled = {name: int(share) for name, share in exact.items()}
    short = total - sum(scaled.values())
    for name in sorted(exact, key=lambda name: scaled[name] - exact[name])[:short]:
        scaled[name] += 1
    return scaled


def _interleave(generated: Mapping[str, list[Program]]) -> list[tuple[str, Program]]:
    """Every scenario spread evenly over the run, so that a part of the run has a part of each."""
    placed = [
        (Fraction(2 * i + 1, 2 * len(programs)), order, (name, program))
        for order, (name, programs) in enumerate(generated.items())
        for i, program in enumerate(programs)
    ]
    return [item for _, _, item in sorted(placed, key=lambda place: place[:2])]


def _distinct(programs: Iterable[tuple[str, Program]]) -> dict[str, tuple[str, Program]]:
    found: dict[str, tuple[str, Program]] = {}
    for scenario, program in programs:
        found.setdefault(program.hash, (scenario, program))
    return found


def keep_hypothesis_tidy(folder: str) -> None:
    """Hypothesis keeps a cache of constants in the working directory unless told otherwise."""
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", folder)


def surveyed(entries: Sequence[Entry], capabilities: Capabilities) -> tuple[Entry, ...]:
    """The entries with the facts they show on a store that can do what `capabilities` say."""
    return tuple(
        msgspec.structs.replace(entry, facts=_survey(entry.program, capabilities))
        if depends(entry.program) or not capabilities.storage
        else entry
        for entry in entries
    )


_surveys: dict[tuple[str, Capabilities], frozenset[str]] = {}


def _survey(program: Program, capabilities: Capabilities) -> frozenset[str]:
    key = program.hash, capabilities
    if key not in _surveys:
        _surveys[key] = survey(program, capabilities)
    return _surveys[key]


def depends(program: Program) -> bool:
    """Whether what a program shows depends on what the store can do."""
    return (
        bool(program.embedder)
        or program.titler
        or any(operation.target == "index" or isinstance(operation, OPTIONAL) for operation in program.operations)
    )
