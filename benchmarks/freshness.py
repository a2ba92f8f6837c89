"""Freshness: how long after a write was acknowledged another client finds its row by id, in a listing and by search.

Each row is looked for in one way, again and again from its acknowledgement on, and the ways take turns row by row: so
no look waits for another, and what the engine does meanwhile meets all ways alike. It is one writer and one reader, in
one thread: the time between two looks is the time that a look takes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from rich.table import Table

from ..harness.engine import Engine, EngineFailed, Namespaces
from ..harness.plain import bounded
from ..spec.embedders import LiteralEmbedder
from ..spec.errors import Unsupported
from ..spec.forms import unit_vector
from ..spec.protocols import Memory, Runtime, VectorIndex
from ..spec.types import Include, MemoryConfig, NewMessage, NewVector, SemanticRecall
from .artefact import WAYS, Freshness, Lag, Way

ROWS = 800
"""Enough for a p95 of each way."""

PATIENCE = 10.0
"""Seconds after which a row that was not seen counts as never seen."""

ENOUGH = 5
"""Rows never seen in one way after which nothing is looked for in it any more."""

ERROR_LENGTH = 160

NAME = "fresh"
RESOURCE = "freshness"
DIMENSION = 16
NEWEST = 10
FOUND = 4
"""Rows asked of a search; the one looked for is the closest."""

ROLES = ("user", "assistant")


class Subject(NamedTuple):
    """Rows of one kind: how one is written, deleted, looked for, and how many the engine has."""

    kind: Literal["messages", "vectors"]
    write: Callable[[int], None]
    delete: Callable[[int], None]
    total: Callable[[], int]
    looks: Mapping[Way, Callable[[int, int], bool]]
    """Whether a row is there; also given how many rows there are with it."""


def measure(engine: Engine, *, rows: int = ROWS, patience: float = PATIENCE) -> list[Freshness]:
    """Messages and vectors, as far as the engine has them, in a namespace of their own.

    The reader is a second client where the engine may have one. Raises EngineFailed.
    """
    found: list[Freshness] = []
    with Namespaces(engine) as namespaces, namespaces.fresh() as namespace:
        if engine.capabilities.storage:
            with _told(engine, "messages"), _clients(engine, lambda: _memory(engine, namespace)) as (writer, reader):
                subject = messages(writer, reader, semantic=engine.capabilities.semantic_recall)
                found.append(observe(subject, rows, patience, engine.redactor.text))
        if engine.capabilities.vectors:
            with _told(engine, "vectors"), _clients(engine, lambda: _index(engine, namespace)) as (writer, reader):
                found.append(observe(vectors(writer, reader), rows, patience, engine.redactor.text))
    return found


@contextmanager
def _told(engine: Engine, kind: str) -> Generator[None]:
    """Raises EngineFailed for whatever a driver raises where there is nothing to count."""
    try:
        yield
    except Exception as error:
        said = _said(error, engine.redactor.text)
        raise EngineFailed(f"how fresh {kind} are could not be measured: {said}") from error


def observe(subject: Subject, rows: int, patience: float, told: Callable[[str], str] = str) -> Freshness:
    """Write every row and look for it, then delete every row and look again, the newest first.

    told: what of an error's text may be written down.
    """
    rejected = Counter[str]()
    shown, honoured = Eyes(subject, patience, told), Eyes(subject, patience, told)
    took: list[int] = []
    there: list[int] = []
    for number in range(rows):
        called = time.perf_counter_ns()
        if _accepted(lambda number=number: subject.write(number), rejected, told):
            acknowledged = time.perf_counter_ns()
            took.append(acknowledged - called)
            there.append(number)
            shown.watch(number, len(there), acknowledged, there=True)
    visible, deleted, kept = subject.total(), 0, 0
    for place, number in reversed([*enumerate(there, 1)]):
        if _accepted(lambda number=number: subject.delete(number), rejected, told):
            deleted += 1
            honoured.watch(number, place + kept, time.perf_counter_ns(), there=False)
        else:
            kept += 1
    return Freshness(
        kind=subject.kind,
        given=rows,
        acknowledged=len(took),
        visible=visible,
        deleted=deleted,
        left=subject.total(),
        rejected=dict(rejected),
        failed=dict(shown.failed + honoured.failed),
        unsupported=[way for way in WAYS if way not in subject.looks or way in shown.lacking | honoured.lacking],
        acknowledged_ns=took,
        shown=shown.lags(),
        honoured=honoured.lags(),
    )


class Eyes:
    """Looks for one row after another, each in one way, until it is there (or gone)."""

    def __init__(self, subject: Subject, patience: float, told: Callable[[str], str]) -> None:
        self._subject = subject
        self._ways: list[Way] = [way for way in WAYS if way in subject.looks]
        self._patience = int(patience * 1e9)
        self._told = told
        self._found: dict[Way, list[tuple[int, int] | None]] = {way: [] for way in self._ways}
        self.failed = Counter[str]()
        self.lacking: set[Way] = set()

    def watch(self, number: int, many: int, since: int, *, there: bool) -> None:
        """Look for a row, of so many that are there with it, until looks agree, or patience ends."""
        way = self._ways[number % len(self._ways)]
        found = self._found[way]
        if way in self.lacking or sum(each is None for each in found) >= ENOUGH:
            return
        look, blind = self._subject.looks[way], 0
        while True:
            began = time.perf_counter_ns()
            try:
                agrees = look(number, many) == there
            except Unsupported:
                self.lacking.add(way)
                return
            except Exception as error:  # noqa: BLE001 - whatever a driver raises; a look that fails shows nothing
                self.failed[_said(error, self._told)] += 1
                agrees = False
            ended = time.perf_counter_ns()
            if agrees:
                found.append((blind, ended - since))
                return
            blind = began - since
            if ended - since > self._patience:
                found.append(None)
                return

    def lags(self) -> dict[Way, Lag]:
        """By way, of those that the store has."""
        return {
            way: Lag(
                blind_ns=[each[0] for each in found if each is not None],
                seen_ns=[each[1] for each in found if each is not None],
                never=sum(each is None for each in found),
            )
            for way, found in self._found.items()
            if way not in self.lacking
        }


def _accepted(call: Callable[[], None], rejected: Counter[str], told: Callable[[str], str]) -> bool:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever a driver raises is a result, and counted
        rejected[_said(error, told)] += 1
        return False
    return True


def _said(error: Exception, told: Callable[[str], str]) -> str:
    return bounded(told(f"{type(error).__name__}: {error}"), ERROR_LENGTH)


# Kinds of rows


def messages(writer: Memory, reader: Memory, *, semantic: bool) -> Subject:
    """Messages of one thread, which is made; found by meaning too where the store can do that."""
    config = MemoryConfig(semantic_recall=SemanticRecall(top_k=FOUND, message_range=0)) if semantic else None
    writer.create_thread(resource_id=RESOURCE, id=NAME)

    def write(number: int) -> None:
        saved = writer.save_messages(
            [NewMessage(_id(number), NAME, _text(number), role=ROLES[number % 2])], thread_config=config
        )
        if [message.id for message in saved] != [_id(number)]:
            raise Unacknowledged(f"saved {len(saved)} messages instead of the one given")

    def delete(number: int) -> None:
        if (many := writer.delete_messages([_id(number)])) != 1:
            raise Unacknowledged(f"deleted {many} messages instead of the one given")

    def by_id(number: int, many: int) -> bool:
        answer = reader.recall(NAME, per_page=0, include=[Include(_id(number))])
        return any(message.id == _id(number) for message in answer.messages)

    def listed(number: int, many: int) -> bool:
        return any(message.id == _id(number) for message in reader.recall(NAME, per_page=NEWEST).messages)

    def search(filter: Mapping[str, Any] | None, number: int) -> bool:
        asked = MemoryConfig(semantic_recall=SemanticRecall(top_k=FOUND, message_range=0, filter=filter))
        answer = reader.recall(NAME, vector_search_string=_text(number), per_page=0, thread_config=asked)
        return any(hit.id == _id(number) for hit in answer.hits)

    looks: dict[Way, Callable[[int, int], bool]] = {"id": by_id, "listing": listed}
    if semantic:
        looks["search"] = lambda number, many: search(None, number)
        looks["filtered search"] = lambda number, many: search({"role": ROLES[number % 2]}, number)
    return Subject("messages", write, delete, lambda: reader.recall(NAME, per_page=1).total, looks)


def vectors(writer: VectorIndex, reader: VectorIndex) -> Subject:
    """Vectors of one index of the engine's default type, which is made."""
    writer.create_index(NAME, dimension=DIMENSION)

    def write(number: int) -> None:
        row = NewVector(_id(number), unit_vector(number, DIMENSION), {"half": number % 2})
        if (many := writer.upsert_vectors(NAME, [row])) != 1:
            raise Unacknowledged(f"stored {many} vectors instead of the one given")

    def delete(number: int) -> None:
        if (many := writer.delete_vectors(NAME, ids=[_id(number)])) != 1:
            raise Unacknowledged(f"deleted {many} vectors instead of the one given")

    def search(filter: Mapping[str, Any] | None, number: int) -> bool:
        hits = reader.query_vectors(NAME, unit_vector(number, DIMENSION), top_k=FOUND, filter=filter)
        return any(hit.id == _id(number) for hit in hits)

    def count() -> int:
        return reader.describe_index(NAME).count

    looks: dict[Way, Callable[[int, int], bool]] = {
        "id": lambda number, many: bool(reader.get_vectors(NAME, [_id(number)])),
        "listing": lambda number, many: count() >= many,
        "search": lambda number, many: search(None, number),
        "filtered search": lambda number, many: search({"half": number % 2}, number),
    }
    return Subject("vectors", write, delete, count, looks)


class Unacknowledged(Exception):
    """The store did not raise, and did not say that it did what it was asked to."""


def _id(number: int) -> str:
    return f"row-{number:06}"


def _text(number: int) -> str:
    return f"row {number}"


# Clients


def _memory(engine: Engine, namespace: str) -> Memory:
    embedder = LiteralEmbedder(DIMENSION) if engine.capabilities.semantic_recall else None
    return engine.backend.open_memory(engine.endpoint.url, namespace, Runtime(embedder=embedder), MemoryConfig())


def _index(engine: Engine, namespace: str) -> VectorIndex:
    return engine.backend.open_index(engine.endpoint.url, namespace, Runtime())


@contextmanager
def _clients(engine: Engine, open_one: Callable[[], Any]) -> Generator[tuple[Any, Any]]:
    """A writer and a reader: one client where the engine cannot have two."""
    writer = open_one()
    try:
        reader = open_one() if engine.capabilities.concurrent_clients else writer
        try:
            yield writer, reader
        finally:
            reader.close()
    finally:
        writer.close()


# Showing


def table(found: Mapping[str, Sequence[Freshness]]) -> Table:
    """By contender: a line for the acknowledgement, and for each way in which a row was looked for."""
    shown = Table(box=None, pad_edge=False)
    for name in ("store", "rows", "from acknowledged to"):
        shown.add_column(name, no_wrap=True)
    for name in ("p50 ms", "p95 ms", "stale", "never", "of"):
        shown.add_column(name, justify="right", no_wrap=True)
    for contender, kinds in found.items():
        for each in kinds:
            took = Lag(blind_ns=[0] * len(each.acknowledged_ns), seen_ns=each.acknowledged_ns, never=0)
            _add(shown, contender, each.kind, "(call to acknowledged)", took)
            for way, lag in each.shown.items():
                _add(shown, contender, each.kind, f"there, by {way}", lag)
            for way, lag in each.honoured.items():
                _add(shown, contender, each.kind, f"gone, by {way}", lag)
    return shown


def _add(shown: Table, contender: str, kind: str, what: str, lag: Lag) -> None:
    of = len(lag.seen_ns) + lag.never
    times = ("n/a" if (value := lag.at(q)) is None else f"{value:.2f}" for q in (50, 95))
    shown.add_row(contender, kind, what, *times, str(lag.stale), str(lag.never), str(of))


def counts(contender: str, found: Freshness) -> str:
    """Rows given, acknowledged, visible, rejected, in a line."""
    errors = [f"{many} × {error}" for error, many in (*found.rejected.items(), *found.failed.items())]
    return "; ".join(
        [
            f"{contender}, {found.kind}: {found.given:,} given, {found.acknowledged:,} acknowledged,"
            f" {found.visible:,} visible, {sum(found.rejected.values()):,} rejected; {found.deleted:,} deleted,"
            f" {found.left:,} left",
            *errors,
        ]
    )
