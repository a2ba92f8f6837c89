"""CON: near-real-time indices, caches of a client, refreshes that only some calls make."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar, cast

from memassay.spec.reference import State
from memassay.spec.reference_index import IndexState
from memassay.spec.requests import Recall
from memassay.spec.types import MessageUpdate, RecallResult, Thread, ThreadPage, VectorHit, VectorRow

from .adapter import Adapter
from .engine import Engine
from .mutant import mutant

NEVER = 1_000_000


class _Late(Adapter):
    """Clients that for some reads still see what there was before another's write."""

    calls: ClassVar[int] = 1
    """Reads until a client catches up."""
    writes: ClassVar[tuple[str, ...]] = ("save", "update", "delete", "clear", "create_thread", "clone")
    """The calls, by how their names begin, after which the others are behind."""
    writer_too: ClassVar[bool] = False
    """Whether the writer itself is behind too."""
    earlier: State | None = None
    behind: int = 0

    def sees_late(self, call: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a read is answered from what is late."""
        return True

    @contextmanager
    def _sight(self, call: str, arguments: Mapping[str, Any]) -> Generator[None]:
        if not self.behind or self.earlier is None or not self.sees_late(call, arguments):
            yield
            return
        self.behind -= 1
        now, self.state = self.state, self.earlier
        try:
            yield
        finally:
            self.state = now

    def _written(self, call: str, before: State) -> None:
        for peer in self.peers:
            if isinstance(peer, _Late) and (peer is not self or self.writer_too) and call.startswith(self.writes):
                peer.earlier = peer.earlier if peer.behind else before
                peer.behind = self.calls

    def get_thread(self, thread_id: str, **options: Any) -> Thread | None:
        with self._sight("get_thread", options):
            return super().get_thread(thread_id, **options)

    def recall(self, thread_id: str, **options: Any) -> RecallResult:
        with self._sight("recall", options):
            return super().recall(thread_id, **options)

    def list_threads(self, **options: Any) -> ThreadPage:
        with self._sight("list_threads", options):
            return super().list_threads(**options)


def _copy(state: State) -> State:
    rows = {thread_id: list(rows) for thread_id, rows in state.rows.items()}
    return State(
        threads=dict(state.threads),
        rows=rows,
        by_id=dict(state.by_id),
        embedded=dict(state.embedded),
        untitled=list(state.untitled),
        notes={scope: dict(notes) for scope, notes in state.notes.items()},
        next_position=state.next_position,
    )


def _noting(name: str) -> Callable[..., Any]:
    """A write that leaves the other clients behind."""

    def write(self: _Late, *arguments: Any, **options: Any) -> Any:
        before = _copy(self.state)
        result = getattr(Adapter, name)(self, *arguments, **options)
        self._written(name, before)  # pyright: ignore[reportPrivateUsage]
        return result

    return write


for _name in (
    *("create_thread", "update_thread", "delete_thread", "clone_thread"),
    *("save_messages", "update_messages", "delete_messages", "clear_messages"),
):
    setattr(_Late, _name, _noting(_name))


# CON-1


@mutant("CON-1", "deepset-ai/haystack-core-integrations#2605")
class _OthersSeeItOneCallLater(_Late):
    """The first read of another client after a write does not see it; it makes the index refresh."""


@mutant("CON-1", "deepset-ai/haystack-core-integrations#2605")
class _OthersSeeItThreeCallsLater(_Late):
    """The first three reads of another client after a write do not see it."""

    calls = 3


@mutant("CON-1")
class _OneSnapshotForEver(_Late):
    """A client reads in a transaction that it never ends: it sees nothing that others wrote since."""

    calls = NEVER


@mutant("CON-1", "deepset-ai/haystack-core-integrations#2605")
class _RefreshesLate(_Late):
    """A near-real-time index: the first read after a save does not see it yet, not even the saver's own."""

    writes = ("save",)
    writer_too = True

    def sees_late(self, call: str, arguments: Mapping[str, Any]) -> bool:
        return call == "recall"


@mutant("CON-1", "run-llama/llama_index#22286")
class _FilteredListsAreLate(_Late):
    """Lists come from the table, filtered lists from a search index that is refreshed a little later."""

    def sees_late(self, call: str, arguments: Mapping[str, Any]) -> bool:
        return call == "recall" and arguments.get("filter") is not None


@mutant("CON-1", "deepset-ai/haystack-core-integrations#2605")
class _DeletedRowsLinger(_Late):
    """Another client's next read still shows what was deleted."""

    writes = ("delete", "clear")


@mutant("CON-1", "run-llama/llama_index#22286")
class _RefreshesAfterSavesOnly(_Late):
    """Saves make the index refresh; updates leave it to the next second."""

    writes = ("update",)


@mutant("CON-1")
class _ThreadsAreCached(_Late):
    """A client keeps threads in a cache, and gets them anew on every other call."""

    def sees_late(self, call: str, arguments: Mapping[str, Any]) -> bool:
        return call == "get_thread"


@mutant("CON-1")
class _ThreadListsAreLate(_Late):
    """The list of threads comes from a search index, a thread by id from the table."""

    def sees_late(self, call: str, arguments: Mapping[str, Any]) -> bool:
        return call == "list_threads"


@mutant("CON-1")
class _TotalsAreLate(_Late):
    """Rows are read at once; how many there are is counted by an index that is refreshed later."""

    def sees_late(self, call: str, arguments: Mapping[str, Any]) -> bool:
        return False

    def result(self, asked: Recall, hits: Any) -> RecallResult:
        shown = super().result(asked, hits)
        if not self.behind or self.earlier is None:
            return shown
        self.behind -= 1
        rows = self.earlier.rows.get(asked.thread_id, ())
        total = sum(all(condition.matches(row.message.metadata) for condition in asked.metadata) for row in rows)
        return RecallResult(shown.messages, total, shown.page, shown.per_page, shown.has_more, shown.hits)


@mutant("CON-1", "deepset-ai/haystack-core-integrations#2605")
class _DeletesBySearching(_Late):
    """Another client deletes what a search finds, and the search does not see yet what was just saved."""

    def sees_late(self, call: str, arguments: Mapping[str, Any]) -> bool:
        self.behind = 0
        return False

    def delete_messages(self, ids: Sequence[str]) -> int:
        if self.behind and self.earlier is not None and isinstance(cast(object, ids), list):
            ids = [name for name in ids if name in self.earlier.by_id]
        self.behind = 0
        return super().delete_messages(ids)


@mutant("CON-1", "deepset-ai/haystack-core-integrations#2605")
class _UpdatesBySearching(_Late):
    """Another client updates what a search finds, and the search does not see yet what was just saved."""

    def sees_late(self, call: str, arguments: Mapping[str, Any]) -> bool:
        self.behind = 0
        return False

    def update_messages(self, updates: Sequence[MessageUpdate], **config: Any) -> Any:
        if self.behind and self.earlier is not None and isinstance(cast(object, updates), list):
            known = self.earlier.by_id
            updates = [u for u in updates if not isinstance(cast(object, u), MessageUpdate) or u.id in known]
        self.behind = 0
        return super().update_messages(updates, **config)


# CON-1a


class _LateSearch(_Late):
    def sees_late(self, call: str, arguments: Mapping[str, Any]) -> bool:
        return call == "recall" and bool(arguments.get("vector_search_string"))


@mutant("CON-1a", "deepset-ai/haystack-core-integrations#2605")
class _SearchesAreLate(_LateSearch):
    """Lists are right at once; the index of embeddings is refreshed by the first search."""


@mutant("CON-1a", "run-llama/llama_index#22286")
class _DeletedMessagesAreStillFound(_LateSearch):
    """A deleted message is found by another client's next search."""

    writes = ("delete", "clear")


@mutant("CON-1a")
class _TheGraphIsReadOnce(_LateSearch):
    """A client loads the index of embeddings when it first searches, and never again."""

    calls = NEVER


# CON-1b


class _LateIndex(Engine):
    """Clients of indices that for some calls still see what there was before another's write."""

    calls: ClassVar[int] = 1
    writes: ClassVar[tuple[str, ...]] = ("upsert", "update", "delete")
    earlier: IndexState | None = None
    behind: int = 0

    @contextmanager
    def sight(self) -> Generator[None]:
        """What is seen late."""
        if not self.behind or self.earlier is None:
            yield
            return
        self.behind -= 1
        now, self.state = self.state, self.earlier
        try:
            yield
        finally:
            self.state = now

    def noted(self, call: str, write: Callable[[], Any]) -> Any:
        """A write that leaves the other clients behind."""
        before = IndexState(dict(self.state.indexes), {name: dict(rows) for name, rows in self.state.rows.items()})
        result = write()
        for peer in self.peers:
            if isinstance(peer, _LateIndex) and peer is not self and call.startswith(self.writes):
                peer.earlier = peer.earlier if peer.behind else before
                peer.behind = self.calls
        return result

    def upsert_vectors(self, *arguments: Any, **options: Any) -> int:
        upsert = super().upsert_vectors
        return self.noted("upsert", lambda: upsert(*arguments, **options))

    def update_vector(self, *arguments: Any, **options: Any) -> bool:
        update = super().update_vector
        return self.noted("update", lambda: update(*arguments, **options))

    def delete_vectors(self, *arguments: Any, **options: Any) -> int:
        delete = super().delete_vectors
        return self.noted("delete", lambda: delete(*arguments, **options))


class _LateQueries(_LateIndex):
    def query_vectors(self, *arguments: Any, **options: Any) -> tuple[VectorHit, ...]:
        with self.sight():
            return super().query_vectors(*arguments, **options)


@mutant("CON-1b", "deepset-ai/haystack-core-integrations#2605")
class _QueriesSeeItLater(_LateQueries):
    """Another client's first query after an upsert does not see it; it makes the index refresh."""


@mutant("CON-1b", "run-llama/llama_index#22286")
class _QueriesFindDeletedRows(_LateQueries):
    """Another client's next query finds what was deleted."""

    writes = ("delete",)


@mutant("CON-1b")
class _UpdatesDoNotRefresh(_LateQueries):
    """Upserts and deletions make the index refresh, updates of one row do not."""

    writes = ("update",)


@mutant("CON-1b", "run-llama/llama_index#22286")
class _RowsByIdAreLate(_LateIndex):
    """Rows by id are looked up with a search, which does not see yet what was just upserted."""

    def get_vectors(self, *arguments: Any, **options: Any) -> tuple[VectorRow, ...]:
        with self.sight():
            return super().get_vectors(*arguments, **options)


@mutant("CON-1b", "deepset-ai/haystack-core-integrations#2605")
class _DeletesByAnOldFilter(_LateIndex):
    """Deletion by filter is a search, which does not see yet what another client just upserted."""

    writes = ("upsert",)

    def get_vectors(self, *arguments: Any, **options: Any) -> tuple[VectorRow, ...]:
        self.behind = 0
        return super().get_vectors(*arguments, **options)

    def delete_vectors(self, name: str, **options: Any) -> int:
        with self.sight() if options.get("filter") is not None else nullcontext():
            found = list(self.state.rows.get(name, {}))
        unseen = {row_id: self.state.rows[name].pop(row_id) for row_id in {*self.state.rows.get(name, {})} - {*found}}
        try:
            return super().delete_vectors(name, **options)
        finally:
            self.state.rows.get(name, {}).update(unseen)
