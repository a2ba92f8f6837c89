"""What a clause is."""

from __future__ import annotations

from typing import Literal

import msgspec

Level = Literal["smoke", "core", "extended"]
LEVELS: tuple[Level, ...] = ("smoke", "core", "extended")


class Clause(msgspec.Struct, frozen=True, kw_only=True):
    """One normative statement. The id is stable for good: a change of meaning is a new id.

    title: a few words for tables.

    applies: facts (facts.py) any of which makes a program exercise the clause.
    discriminators: what a program must contain for the clause to be put to the test, in words → the
    fact that shows it. A clause whose discriminators are met too rarely is vacuous, not passed.
    variants: facts that a corpus meets often enough too, so that an engine that can do only one of them is not left
    with too few programs.
    requires: the capability, or capabilities, without which the clause is `unsupported`.
    clients: how many clients of a namespace it takes; several need the capability concurrent_clients.
    """

    id: str
    title: str
    statement: str
    source: str
    applies: tuple[str, ...]
    discriminators: dict[str, str]
    level: Level = "core"
    requires: str | tuple[str, ...] | None = None
    clients: int = 1
    variants: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The capabilities without which the clause is `unsupported`."""
        several = ("concurrent_clients",) if self.clients > 1 else ()
        required = (self.requires,) if isinstance(self.requires, str) else self.requires or ()
        return (*several, *required)

    @property
    def family(self) -> str:
        """The letters before the dash."""
        return self.id.partition("-")[0]
