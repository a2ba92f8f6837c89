"""Judging observations: all that the store shows after some writes, against all there should be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from . import judge_vectors
from . import program as ops
from .compare import equal
from .divergence import Divergence
from .facts import ENGINE_WINDOW
from .interpreter import Outcome, Refused, Returned, Snapshot
from .judge_errors import Errors
from .judge_known import EVENT_CLAUSE, Known, deviation
from .judge_texts import confusion
from .judge_values import Values
from .reference import Event
from .types import Message, RecallResult


class Observations:
    """Blames what is there and should not be, what is not, and what is other than it should."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.errors = Errors(known)
        self.values = Values(known)

    def observation(self, index: int, expected: Outcome, got: Outcome) -> Iterator[Divergence]:
        """What is wrong with what the store shows; the model is set to it."""
        if not isinstance(expected, Returned):  # opening it as the program wants it is to be refused
            if not isinstance(got, Refused) or got.code != cast(Refused, expected).code:
                yield deviation("CAP-1", "error", "observe", index, expected, got)
            return
        if not isinstance(got, Returned):
            clause = self.errors.unobservable(cast(Snapshot, expected.value), got)
            yield deviation(clause, "error", "observe", index, expected, got)
            self.known.reset()
            self.known.synced = False
            self.known.dirty = True
            return
        snapshot = cast(Snapshot, got.value)
        if not self.known.dirty:
            yield from _distinct(self._snapshot(index, cast(Snapshot, expected.value), snapshot))
            yield from judge_vectors.snapshot(
                index, cast(Snapshot, expected.value), snapshot, self.known.segment, reopened=self.known.reopened()
            )
        if not equal(expected.value, snapshot):
            self.known.load(snapshot)
        self.known.observed()

    def _snapshot(self, index: int, expected: Snapshot, got: Snapshot) -> Iterator[Divergence]:
        for thread_id, thread in expected.threads.items():
            shown = got.threads.get(thread_id)
            if (thread is None) != (shown is None):
                clause = self._thread_clause(thread_id, gone=shown is None)
                yield Divergence(clause, "threads", "observe", index, thread, shown)
            elif thread is not None and shown is not None:
                yield from self.values.thread_values(
                    index, "observe", thread, shown, self._last_thread_event(thread_id)
                )
            yield from self._rows(index, thread_id, expected.rows[thread_id], got.rows[thread_id])
        if expected.listed is None or got.listed is None:
            return
        if expected.embeddings is not None and not equal(expected.embeddings, got.embeddings):
            same_config = got.embeddings is not None and equal(
                expected.embeddings, msgspec.structs.replace(got.embeddings, count=expected.embeddings.count)
            )
            clause = "DUR-1" if self.known.reopened() else self._embedding_clause() if same_config else "SEM-6"
            yield Divergence(clause, "embeddings", "observe", index, expected.embeddings, got.embeddings)
        wanted = [thread.id for thread in expected.listed.threads if got.threads.get(thread.id)]
        listed = [thread.id for thread in got.listed.threads if thread.id not in self.known.strangers]
        if wanted != listed and not self.known.reopened():
            # A thread that is found under another's id was blamed above.
            seen = [thread for name, thread in got.threads.items() if thread is not None and thread.id == name]
            own = [thread.id for thread in sorted(seen, key=lambda thread: (thread.created_at, thread.id))]
            if own != listed:
                yield Divergence("THR-4", "rows", "observe", index, own, listed)

    def _embedding_clause(self) -> str:
        """The clause of a wrong number of embeddings."""
        return "CLN-3" if any(event.kind == "cloned" for event in self.known.events) else "SEM-4"

    def _thread_clause(self, thread_id: str, *, gone: bool) -> str:
        if self.known.reopened():
            return "DUR-1"
        if not gone and any(isinstance(operation, ops.Settle | ops.TitleThread) for operation in self.known.segment):
            return "TTL-1a"
        if self.known.related(thread_id):
            return "CLN-4"
        if (clause := confusion(thread_id, [*self.known.state.threads])) is not None:
            return clause
        kinds = [event.kind for event in self.known.events if event.thread_id == thread_id and event.message_id is None]
        if kinds:
            return EVENT_CLAUSE[kinds[-1]]
        return self.known.collateral("THR-5" if gone else "ISO-2")

    def _last_thread_event(self, thread_id: str) -> Event | None:
        events = [event for event in self.known.events if event.thread_id == thread_id and event.message_id is None]
        return next((event for event in reversed(events) if event.kind in ("thread_created", "thread_updated")), None)

    def _rows(self, index: int, thread_id: str, expected: RecallResult, got: RecallResult) -> Iterator[Divergence]:
        if got.hits:
            yield Divergence("SEM-1", "hits unasked", "observe", index, (), tuple(got.hits))
        wanted = {message.id: message for message in expected.messages}
        ghosts = self.known.ghosts.get(thread_id, set()) - wanted.keys()
        if ghosts:
            messages = tuple(message for message in got.messages if message.id not in ghosts)
            got = msgspec.structs.replace(got, messages=messages, total=got.total - len(got.messages) + len(messages))
        shown = [message.id for message in got.messages]
        listed = {message.id: message for message in got.messages}
        name = "observe"
        if len(listed) < len(shown):
            yield Divergence("MSG-2", "rows", name, index, [*wanted], shown)
        elif got.total > len(shown) and len(shown) < len(wanted):
            clause = "ORD-3b" if len(wanted) >= 1000 else "ORD-4"
            yield Divergence(clause, "rows", name, index, f"{len(wanted)} rows", f"{len(shown)} rows")
        elif len(wanted) >= 1000 and len(shown) != len(wanted):
            yield Divergence("ORD-3b", "rows", name, index, f"{len(wanted)} rows", f"{len(shown)} rows")
        elif wanted.keys() != listed.keys():
            missing, extra = wanted.keys() - listed.keys(), listed.keys() - wanted.keys()
            clause = self._row_clause(thread_id, min(missing or extra), gone=bool(missing))
            yield Divergence(clause, "rows", name, index, [*wanted], shown)
        else:
            if shown != [*wanted]:
                clause = self._order_clause(wanted, listed, shown)
                if clause is not None:
                    yield Divergence(clause, "order", name, index, [*wanted], shown)
            elif got.total != len(shown) or got.has_more:
                clause = "ORD-3b" if len(shown) >= ENGINE_WINDOW else "ORD-5"
                yield Divergence(clause, "total", name, index, len(shown), (got.total, got.has_more))
            for message_id, message in wanted.items():
                yield from self.values.message_values(index, name, message, listed[message_id])

    def _order_clause(self, wanted: dict[str, Message], listed: dict[str, Message], shown: list[str]) -> str | None:
        """The clause of rows in a wrong order; None when it follows from instants that are blamed themselves."""
        if self.known.reopened():
            return "DUR-1"
        if any(event.kind == "cloned" and event.thread_id == wanted[shown[0]].thread_id for event in self.known.events):
            return "CLN-1"
        if any(not equal(wanted[key].created_at, listed[key].created_at) for key in wanted):
            # With the instants it shows, the store must sort as it does.
            resorted = sorted(wanted, key=lambda key: listed[key].created_at)
            if resorted == shown or _ends_differ(resorted, shown, listed):
                return None
            return "ORD-1"
        if shown == self._position_lost(wanted):
            # Whatever the instants' finer digits are: a row that was saved again or updated went to the end.
            return "ORD-1"
        fine = {name: message.created_at for name, message in self.known.saves() if message.created_at is not None}
        by_fine = sorted(wanted, key=lambda key: (wanted[key].created_at, fine.get(key, wanted[key].created_at)))
        return "VAL-1" if by_fine == shown else "ORD-1"

    def _position_lost(self, wanted: dict[str, Message]) -> list[str]:
        """The order if rows lost their position when they were saved again or updated."""
        moved = [event.message_id for event in self.known.events if event.kind in ("replaced", "updated")]
        last = {name: number for number, name in enumerate(moved, 1)}
        return sorted(wanted, key=lambda name: (wanted[name].created_at, last.get(name, 0)))

    def _row_clause(self, thread_id: str, message_id: str, *, gone: bool) -> str:
        if self.known.reopened():
            return "DUR-1"
        written = [event.message_id for event in self.known.events if event.message_id is not None]
        entered = [event.thread_id for event in self.known.events]
        confused = confusion(message_id, written) if gone else None
        if (clause := confused or confusion(thread_id, entered)) is not None:
            return clause
        kinds = [event.kind for event in self.known.events if event.message_id == message_id]
        about_thread = [e.kind for e in self.known.events if e.thread_id == thread_id and e.message_id is None]
        if kinds and kinds[-1] != "inserted":
            return EVENT_CLAUSE[kinds[-1]]
        if "thread_deleted" in about_thread or (not gone and "thread_created" in about_thread):
            return "THR-5"
        if kinds:
            return "MSG-1"
        if "cleared" in about_thread:
            return "MSG-5a"
        return "CLN-4" if self.known.related(thread_id) else self.known.collateral("MSG-1")


def _distinct(found: Iterator[Divergence]) -> Iterator[Divergence]:
    """One divergence a signature: the first row that shows a fault stands for the rest."""
    seen: set[Any] = set()
    for divergence in found:
        if divergence.signature not in seen:
            seen.add(divergence.signature)
            yield divergence


def _ends_differ(resorted: list[str], shown: list[str], listed: dict[str, Message]) -> bool:
    """Whether two orders differ within equal instants only."""
    return [listed[key].created_at for key in resorted] == [listed[key].created_at for key in shown]
