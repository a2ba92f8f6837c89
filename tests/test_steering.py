"""Steering is what puts clauses to the test: with it none is vacuous, without it nearly all are. Model only."""

from __future__ import annotations

from functools import cache

import pytest
from memassay.harness import corpus, verdicts
from memassay.harness.corpus import Corpus
from memassay.spec.clauses import select
from memassay.spec.reference_index import MODEL_CAPABILITIES
from memassay.spec.strategies import UNSTEERED

SMOKE = [clause for clause in select("smoke") if not verdicts.unsupported(clause, MODEL_CAPABILITIES)]
"""All but CAP-1: the model lacks nothing that it could refuse."""

SEEDS = range(5)


@cache
def steered(seed: int) -> Corpus:
    return corpus.build("smoke", seed)


def vacuous(programs: Corpus) -> dict[str, str]:
    """The smoke clauses that the programs do not put to the test, and why."""
    reasons = {clause.id: verdicts.vacuous(verdicts.tally(clause, programs.entries)) for clause in SMOKE}
    return {clause: reason for clause, reason in reasons.items() if reason}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_steered_smoke_corpus_leaves_no_clause_vacuous(seed: int) -> None:
    assert vacuous(steered(seed)) == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_without_steering_as_many_programs_leave_most_clauses_vacuous(seed: int) -> None:
    count = len(steered(seed).entries)
    unsteered = corpus.build("smoke", seed, count, scenarios={"anything": UNSTEERED})
    assert len(unsteered.entries) == count

    found = vacuous(unsteered)

    discriminating = [clause.id for clause in SMOKE if clause.discriminators]
    assert len([clause for clause in discriminating if clause in found]) >= len(discriminating) / 2
    # The faults these look for were the ones that plain lists of operations missed for thousands of programs.
    assert {"MSG-2", "ORD-1", "ORD-3", "TIM-1", "FLT-1", "FLT-3", "INC-1"} <= found.keys()


def test_a_vacuous_clause_names_what_was_missing() -> None:
    unsteered = corpus.build("smoke", 0, 400, scenarios={"anything": UNSTEERED})
    assert "at least 5 and 5% are needed" in vacuous(unsteered)["FLT-1"]
