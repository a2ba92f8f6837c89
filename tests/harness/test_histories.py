"""Transcripts of races as JSON: what is read back is judged as what was kept."""

from __future__ import annotations

import json

import msgspec
import pytest
from memassay.harness import histories
from memassay.harness.corpus import distinct
from memassay.spec.interpreter import Returned, run
from memassay.spec.judge import judge
from memassay.spec.program import CreateThread, GetThread, Program, Race
from memassay.spec.reference import ModelNamespace
from memassay.spec.strategies import SCENARIOS

RACE = Program((Race(branches=[[CreateThread(id="t", resource_id="r")], [GetThread(thread_id="t")]]),))


@pytest.mark.parametrize("scenario", ["races", "embedded-races", "index-races", "kills"])
def test_a_transcript_comes_back_as_it_was(scenario: str) -> None:
    for program in distinct(SCENARIOS[scenario], 12, 3):
        transcript = run(program, ModelNamespace())
        kept = histories.encode(transcript)
        assert kept is not None
        assert histories.decode(program, json.loads(json.dumps(kept))) == transcript


def test_a_kept_transcript_is_judged_again() -> None:
    program, transcript = RACE, run(RACE, ModelNamespace())
    kept = histories.encode(transcript)
    assert kept is not None
    kept[0]["history"][0]["outcome"]["returned"]["title"] = "another"
    wrong = histories.decode(program, kept)
    assert [str(found.signature) for found in judge(program, wrong)] == ["CON-2 / outcome / race"]


@pytest.mark.parametrize(
    "kept",
    [
        [{"returned": 1}],
        [{"history": [{"branch": 7, "number": 0, "began": 0, "ended": 1, "outcome": {"returned": None}}]}],
        [{"history": [{"branch": 0, "number": 0, "began": 0, "ended": 1, "outcome": {"returned": 5}}]}],
        [{"lost": "here"}],
        [{}],
        [{"returned": None}, {"returned": None}],
    ],
)
def test_what_is_no_transcript_of_the_program_is_refused(kept: list[object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        histories.decode(RACE, kept)


def test_what_has_no_form_in_json_is_not_kept() -> None:
    assert histories.encode((Returned(object()),)) is None
