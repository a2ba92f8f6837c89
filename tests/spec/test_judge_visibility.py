"""Late or lost: a stale answer is CON-1's only when the write is known to have arrived."""

from __future__ import annotations

import msgspec
from memassay.mutants import MUTANTS
from memassay.spec.interpreter import Returned, Transcript, run
from memassay.spec.judge import expect, judge
from memassay.spec.program import CreateThread, Observe, Program, Recall, SaveMessages

SAVE = SaveMessages(messages=[{"id": "a", "thread_id": "t1", "content": "x"}])
LISTING = Recall(thread_id="t1", per_page=False)


def blamed(program: Program, transcript: Transcript) -> list[tuple[int, str]]:
    """Where the judge finds what."""
    return [(found.index, found.clause) for found in judge(program, transcript)]


def with_outcome_of(program: Program, index: int, other: int) -> Transcript:
    """The model's transcript, but operation `index` answers as `other` did."""
    right = list(expect(program))
    right[index] = right[other]
    return tuple(right)


def test_an_older_answer_is_late_when_the_same_question_is_answered_later() -> None:
    program = Program(operations=(CreateThread(id="t1", resource_id="r1"), LISTING, SAVE, LISTING, LISTING, Observe()))
    assert blamed(program, with_outcome_of(program, 3, 1)) == [(3, "CON-1")]


def test_an_observation_that_the_next_one_corrects_is_late() -> None:
    program = Program(operations=(CreateThread(id="t1", resource_id="r1"), Observe(), SAVE, Observe(), Observe()))
    assert blamed(program, with_outcome_of(program, 3, 1)) == [(3, "CON-1")]


def test_a_write_that_never_shows_is_lost() -> None:
    program = Program(operations=(CreateThread(id="t1", resource_id="r1"), Observe(), SAVE, Observe(), Observe()))
    right = list(expect(program))
    right[3] = right[4] = right[1]
    assert {clause for _, clause in blamed(program, tuple(right))} <= {"MSG-1", "MSG-3"}


def test_an_answer_that_was_never_right_is_not_late() -> None:
    program = Program(operations=(CreateThread(id="t1", resource_id="r1"), SAVE, Observe(), LISTING, LISTING))
    right = list(expect(program))
    shown = right[3]
    assert isinstance(shown, Returned)
    right[3] = Returned(msgspec.structs.replace(shown.value, total=7))
    assert blamed(program, tuple(right)) == [(3, "ORD-5")]


def test_a_refreshing_store_is_blamed_on_nothing_else() -> None:
    program = Program(operations=(CreateThread(id="t1", resource_id="r1"), SAVE, LISTING, LISTING, Observe()))
    assert blamed(program, run(program, MUTANTS["refreshes_late"].namespace())) == [(2, "CON-1")]
