"""What happens during a run, as a stream of values; progress displays consume it and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..spec.divergence import Signature
from .artefact import BackendResult, Corpus, Finding


class CorpusGrew(msgspec.Struct, frozen=True):
    """Programs are being generated, then surveyed for what they show: `done` of `of`."""

    what: str
    done: int
    of: int


class CorpusReady(msgspec.Struct, frozen=True):
    """The programs are fixed."""

    corpus: Corpus
    to_run: int
    """How many of them exercise a selected clause."""


class EngineStarting(msgspec.Struct, frozen=True):
    """A backend's engine is being started or reached."""

    backend: str


class EngineReady(msgspec.Struct, frozen=True):
    """It answers."""

    backend: str
    engine: str
    method: str
    detail: str


class ProgramRan(msgspec.Struct, frozen=True):
    """One more program ran: `done` of `of`, with `signatures` found so far."""

    backend: str
    done: int
    of: int
    signatures: int


class SignatureFound(msgspec.Struct, frozen=True):
    """A deviation that was not seen before."""

    backend: str
    signature: Signature


class Shrinking(msgspec.Struct, frozen=True):
    """A counterexample is being rerun and made small: the `number`th of `of`."""

    backend: str
    signature: Signature
    number: int
    of: int


class Shrank(msgspec.Struct, frozen=True):
    """It is as small as it gets."""

    backend: str
    finding: Finding


class Notice(msgspec.Struct, frozen=True):
    """Something to tell that changes no verdict."""

    backend: str
    text: str


class BackendDone(msgspec.Struct, frozen=True):
    """A backend's verdicts are in."""

    result: BackendResult


class MutantRan(msgspec.Struct, frozen=True):
    """One more mutant was put to the test: `done` of `of`, of which `survivors` are not caught."""

    mutant: str
    done: int
    of: int
    survivors: int


class Interrupted(msgspec.Struct, frozen=True):
    """The user stopped the run; engines are being stopped."""


Event = (
    CorpusGrew
    | CorpusReady
    | EngineStarting
    | EngineReady
    | ProgramRan
    | SignatureFound
    | Shrinking
    | Shrank
    | Notice
    | BackendDone
    | MutantRan
    | Interrupted
)
Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Consumes nothing."""
