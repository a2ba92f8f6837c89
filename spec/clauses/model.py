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
    requires: the capability without which the clause is `unsupported`.
    """

    id: str
    title: str
    statement: str
    source: str
    applies: tuple[str, ...]
    discriminators: dict[str, str]
    level: Level = "core"
    requires: str | None = None
    reports: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The letters before the dash."""
        return self.id.partition("-")[0]
