"""From counts and findings to verdicts: pure rules, the honesty of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ..spec.capabilities import Capabilities
from ..spec.clauses.model import Clause
from .artefact import RERUNS, ClauseResult, Finding, Verdict
from .corpus import CASE, Entry

LEAST_MET = 5
LEAST_SHARE = 0.05
"""A clause is vacuous unless each discriminator is met in this many, and in this share, of the applicable programs."""


class Tally(msgspec.Struct):
    """How often the programs that ran put one clause to the test."""

    applicable: int = 0
    met: Counter[str] = msgspec.field(default_factory=Counter[str])


def tally(clause: Clause, ran: Iterable[Entry]) -> Tally:
    """Count a clause's applicable programs, and those in which each discriminator was met; cases do not count."""
    counts = Tally(met=Counter(dict.fromkeys(clause.discriminators, 0)))
    for entry in ran:
        if entry.scenario == CASE or entry.facts.isdisjoint(clause.applies):
            continue
        counts.applicable += 1
        counts.met.update(words for words, fact in clause.discriminators.items() if fact in entry.facts)
    return counts


def vacuous(counts: Tally) -> str:
    """Why the clause was not put to the test; empty when it was."""
    if not counts.applicable:
        return "no program exercises it"
    for words, met in counts.met.items():
        if met < LEAST_MET or met < LEAST_SHARE * counts.applicable:
            return (
                f"{words}: in {met} of {counts.applicable} applicable programs, "
                f"at least {LEAST_MET} and {LEAST_SHARE:.0%} are needed"
            )
    return ""


def of_finding(crashed: bool, reproduced: int | None) -> Verdict:
    """The verdict on one counterexample. Only one that was rerun can be flaky."""
    if reproduced is not None and reproduced < RERUNS:
        return "flaky"
    return "error" if crashed else "fail"


def unsupported(clause: Clause, capabilities: Capabilities) -> bool:
    """Whether the clause needs a capability that the backend does not declare."""
    return not all(getattr(capabilities, need) for need in clause.needs)


def of_clause(
    clause: Clause,
    counts: Tally,
    findings: Sequence[Finding],
    capabilities: Capabilities,
    *,
    not_run: str = "",
    beyond: bool = False,
) -> ClauseResult:
    """The verdict on a clause.

    not_run: why its programs did not all run. beyond: programs exercise it, but none with these capabilities.
    """

    def result(verdict: Verdict, reason: str = "") -> ClauseResult:
        return ClauseResult(
            verdict=verdict,
            reason=reason,
            applicable=counts.applicable,
            discriminators=dict(counts.met),
            findings=list(findings),
        )

    # First what was found: a store that breaks is not excused by what it lacks.
    for verdict in ("fail", "error", "flaky", "known"):
        if any(finding.verdict == verdict for finding in findings):
            return result(verdict)
    if unsupported(clause, capabilities):
        if clause.requires == "lacking":
            return result("unsupported", "lacks nothing that it would have to refuse")
        return result("unsupported", "needs the capability " + " and ".join(clause.needs))
    if not_run:
        return result("not-run", not_run)
    if not capabilities.storage and clause.requires is None and not counts.applicable:
        return result("unsupported", "needs the capability storage")
    if beyond:
        return result("unsupported", "no program exercises it with the capabilities declared")
    reason = vacuous(counts)
    return result("vacuous", reason) if reason else result("pass")


def not_run(clauses: Mapping[str, str]) -> dict[str, ClauseResult]:
    """Clauses that were not run, each with why."""
    return {clause: ClauseResult(verdict="not-run", reason=reason) for clause, reason in clauses.items()}
