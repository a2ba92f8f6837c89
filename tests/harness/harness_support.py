"""What several tests of the harness build: programs, corpora, results, environments."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

from memassay.harness import artefact
from memassay.harness.corpus import Corpus, Entry
from memassay.spec.facts import survey
from memassay.spec.program import CreateThread, Observe, Program, Recall, SaveMessages

Hold = Callable[..., artefact.Result]
"""The fixture `hold`."""

Done = CompletedProcess[str]
Cli = Callable[..., Done]
"""The fixture `memassay`."""

HERE = str(Path(__file__).parent)


def page(size: int, i: int = 0) -> Program:
    """Three messages, all observed, then a page; `i` makes programs different."""
    messages = [{"id": f"m{n}", "thread_id": "t1", "content": f"{i}"} for n in range(3)]
    return Program(
        operations=(
            CreateThread(id="t1", resource_id="r1"),
            SaveMessages(messages=messages),
            Observe(),
            Recall(thread_id="t1", per_page=size),
        )
    )


def entry(program: Program) -> Entry:
    return Entry(program, program.hash, "by hand", survey(program))


def corpus_of(*programs: Program) -> Corpus:
    return Corpus(
        tuple(entry(program) for program in programs),
        artefact.Corpus(seed=0, level="core", examples=None, programs=len(programs), hash="by hand"),
    )


def process_environment(**more: str) -> dict[str, str]:
    """The environment without what would change a run's output."""
    kept = {key: value for key, value in os.environ.items() if key not in ("CI", "COLUMNS", "FORCE_COLOR", "TZ")}
    return {**kept, "PYTHONPATH": HERE, **more}
