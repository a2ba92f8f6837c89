"""Semantic recall over any storage and any vector index: the messages in one, their embeddings in the other.

The storage has the last word: it is opened without semantic recall and says what exists, whose it is and in
which order. The index holds one vector for each embedded message, under the message's id, with the snapshot
of SEM-5 as its metadata. Two systems share no transaction, so the order of writes keeps them in step:

- What adds or changes embeddings goes to the index first, with an image of what was there; saving to the
  storage is the commit, and when it is refused the image is put back.
- What deletes goes to the storage first. What stays behind in the index, after a crash say, is never shown:
  a recall keeps no hit that the storage does not have, and asks the index for more instead.

Within a process the writers of one namespace take turns (`turn`); those of several processes may, in the
time between the two writes, leave the embedding of one and the content of another.
"""

from __future__ import annotations

import fcntl
import hashlib
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Literal, Protocol, Unpack, cast
from weakref import WeakValueDictionary

import msgspec
import numpy as np
from msgspec import UNSET

from ..spec.capabilities import Capabilities
from ..spec.embedding import embed, snapshot, text_of
from ..spec.errors import (
    AlreadyExists,
    ConfigurationError,
    EmbedderError,
    IndexNotFound,
    OwnershipMismatch,
    ThreadNotFound,
    Unavailable,
)
from ..spec.index_requests import SEMANTIC_INDEX, NewIndex, parse_semantic_index
from ..spec.operators import MAX_CONDITIONS, conditions
from ..spec.protocols import Backend, Embedder, Memory, Runtime, VectorIndex
from ..spec.reference_index import MODEL_CAPABILITIES
from ..spec.requests import (
    CloneOptions,
    MessageRow,
    Recall,
    RecallOptions,
    embeds,
    overlay,
    parse_config,
    parse_recall,
    parse_save,
    parse_updates,
)
from ..spec.types import (
    CloneResult,
    Content,
    Hit,
    Include,
    IndexDescription,
    MemoryConfig,
    Message,
    MessageFilter,
    MessageUpdate,
    Metadata,
    NewMessage,
    NewVector,
    OrderBy,
    RecallResult,
    SemanticRecall,
    Thread,
    ThreadFilter,
    ThreadPage,
    VectorRow,
)
from ..spec.values import bounded, instant, iso
from ..spec.vectors import MAX_TOP_K, Metric, Vector, scores, tolerance
from ..spec.working_memory import WorkingOptions
from .provision import Endpoint, EngineUnavailable, Provisioner, Provisioners
from .titles import Titles

Filter = dict[str, Any]
Turn = AbstractContextManager[Any]

SPARE = 16
"""Hits asked of the index beyond top_k, for ties at the cut and for what the storage no longer has."""

BATCH = 1_000
"""Ids in one question to the index; no list in a filter may be longer."""

JOINT = " + "
"""Between the URLs of storage and index."""

OLDEST_FIRST = OrderBy(direction="ASC")


class Engine(Protocol):
    """What is used of protocols.Backend; a storage needs no open_index."""

    name: str

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        ...

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        ...

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """See protocols.Backend."""
        ...

    def drop_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend."""
        ...


@dataclass(frozen=True)
class Half:
    """A backend and the URL of its engine."""

    backend: Engine
    url: str

    @property
    def capabilities(self) -> Capabilities:
        """See protocols.Backend."""
        return self.backend.capabilities(self.url)


class ComposedBackend:
    """The messages of one backend and the vectors of another, by the name `STORE+INDEX`.

    Its URL is both engines' URLs, joined by ` + `.
    """

    def __init__(self, storage: Engine, index: Engine) -> None:
        self.name = f"{storage.name}+{index.name}"
        self.provisioners = _pairs(storage, index)
        self._storage = storage
        self._index = index

    def capabilities(self, url: str) -> Capabilities:
        """See protocols.Backend."""
        storage, index = self._halves(url)
        if not storage.capabilities.storage:
            raise EngineUnavailable(f"{self._storage.name} keeps no messages", hint="give STORE+INDEX, in this order")
        return semantic_capabilities(storage, index)

    def version(self, url: str) -> str:
        """See protocols.Backend. Of an index that comes with a store of its own only the index's, `index_version`."""
        storage, index = self._halves(url)
        first, second = cast(Backend, storage.backend), cast(Backend, index.backend)
        return first.version(storage.url) + JOINT + getattr(second, "index_version", second.version)(index.url)

    def open_memory(self, url: str, namespace: str, runtime: Runtime, config: MemoryConfig) -> Memory:
        """See protocols.Backend."""
        return compose(*self._halves(url), namespace, runtime, config)

    def open_index(self, url: str, namespace: str, runtime: Runtime) -> VectorIndex:
        """See protocols.Backend."""
        _, index = self._halves(url)
        return index.backend.open_index(index.url, namespace, runtime)

    def drop_namespace(self, url: str, namespace: str) -> None:
        """See protocols.Backend."""
        drop(*self._halves(url), namespace)

    def _halves(self, url: str) -> tuple[Half, Half]:
        storage, index = split(url)
        return Half(self._storage, storage), Half(self._index, index)


def split(url: str) -> tuple[str, str]:
    """The URLs of storage and index. ConfigurationError unless there are two, or none at all."""
    parts = url.split(JOINT) if url else ["", ""]
    if len(parts) != 2:
        raise ConfigurationError("the url does not name two engines", hint=f"write STORE-URL{JOINT}INDEX-URL")
    return parts[0], parts[1]


class Pair:
    """Both engines, by the same way; one for both if they are of one kind."""

    def __init__(self, storage: Provisioner | None, index: Provisioner | None) -> None:
        self._both = storage, index

    def missing(self) -> str | None:
        """See provision.Provisioner."""
        reasons = (way.missing() for way in self._both if way is not None)
        return next((reason for reason in reasons if reason is not None), None)

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        """See provision.Provisioner."""
        try:
            urls = (None, None) if url is None else split(url)
        except ConfigurationError as error:
            raise EngineUnavailable(error.message, hint=error.hint) from None
        storage, index = self._both
        with ExitStack() as stack:
            first = stack.enter_context(_started(storage, urls[0]))
            same = storage is index and url is None
            second = first if same else stack.enter_context(_started(index, urls[1]))
            yield Endpoint(
                JOINT.join((first.url, second.url)),
                first.method or second.method,
                JOINT.join((first.detail, second.detail)),
            )


def _started(way: Provisioner | None, url: str | None) -> AbstractContextManager[Endpoint]:
    return nullcontext(Endpoint(url or "", "", "no engine needed")) if way is None else way.start(url)


def _pairs(storage: Engine, index: Engine) -> Provisioners:
    """The ways that both engines can be had by; a backend without any needs no engine."""
    first, second = (cast("Provisioners", getattr(each, "provisioners", {})) for each in (storage, index))
    return {
        method: Pair(first.get(method), second.get(method))
        for method in (first or second)
        if (not first or method in first) and (not second or method in second)
    }


def semantic_capabilities(storage: Half, index: Half) -> Capabilities:
    """What a storage and an index can do together."""
    one, other = storage.capabilities, index.capabilities
    return msgspec.structs.replace(
        other,
        storage=True,
        durable=one.durable and other.durable,
        atomicity="compensated",
        clone=one.clone,
        working_memory=one.working_memory,
        titles=one.titles,
        semantic_recall=other.vectors,
        resource_scope=other.vectors,
        concurrent_clients=one.concurrent_clients and other.concurrent_clients,
        other_processes=one.other_processes and other.other_processes,
    )


def embeddings_of(namespace: str) -> str:
    """The index's namespace for a memory's embeddings, apart from that of the user's own indices."""
    return "e_" + hashlib.sha256(namespace.encode()).hexdigest()[:32]


def compose(
    storage: Half, index: Half, namespace: str, runtime: Runtime, config: MemoryConfig, *, lock: Path | None = None
) -> ComposedMemory:
    """Open a namespace in both.

    Writers of this process take turns, so that storage and index tell the same; by a lock file those of other
    processes do, too (CON-2a).
    """
    options = parse_config(config, "config")
    clock = PinnedClock(runtime.clock)
    alone = replace(runtime, clock=clock, embedder=None)
    alone_options = msgspec.structs.replace(options, semantic_recall=UNSET, generate_title=UNSET, threads=UNSET)
    with ExitStack() as opened:
        messages = storage.backend.open_memory(storage.url, namespace, alone, alone_options)
        opened.callback(messages.close)
        vectors = index.backend.open_index(index.url, embeddings_of(namespace), alone)
        opened.callback(vectors.close)
        memory = ComposedMemory(
            messages,
            vectors,
            replace(runtime, clock=clock),
            options,
            capabilities=semantic_capabilities(storage, index),
            turn=_turn((storage.backend.name, storage.url, namespace), lock),
        )
        opened.pop_all()
    return memory


def drop(storage: Half, index: Half, namespace: str) -> None:
    """Remove a namespace from both."""
    storage.backend.drop_namespace(storage.url, namespace)
    index.backend.drop_namespace(index.url, namespace)
    index.backend.drop_namespace(index.url, embeddings_of(namespace))


class PinnedClock:
    """A clock that stands still for a thread within `still`: storage and snapshot get one and the same now."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._pinned = threading.local()

    def __call__(self) -> datetime:
        """The current instant, or the one it stands at."""
        return getattr(self._pinned, "at", None) or self._clock()

    @contextmanager
    def still(self) -> Generator[None]:
        """Stop it, for this thread."""
        self._pinned.at = self._clock()
        try:
            yield
        finally:
            self._pinned.at = None


class ComposedMemory:
    """A storage's memory with semantic recall over an index; implements protocols.Memory.

    storage: a client opened without semantic recall. index: a client of a namespace of its own.
    runtime: its clock, if a PinnedClock, is the storage's too. turn: held while both are written.
    """

    def __init__(
        self,
        storage: Memory,
        index: VectorIndex,
        runtime: Runtime,
        options: MemoryConfig,
        *,
        capabilities: Capabilities = MODEL_CAPABILITIES,
        turn: Turn | None = None,
    ) -> None:
        self._storage = storage
        self._index = index
        self._runtime = runtime
        self._clock = runtime.clock if isinstance(runtime.clock, PinnedClock) else PinnedClock(runtime.clock)
        self._options = parse_config(options, "config")
        self._turn = turn or threading.RLock()
        self._titles = Titles(self, runtime, self._options, supported=capabilities.titles)
        self._left: list[tuple[Sequence[str] | None, Filter | None]] = []
        """Embeddings of messages that are gone, which the index did not delete: by ids or by filter."""
        self._wanted = self._create_index(capabilities) if capabilities.semantic_recall else None

    def _create_index(self, capabilities: Capabilities) -> NewIndex | None:
        embedder = self._runtime.embedder
        if embedder is None:
            return None
        wanted = parse_semantic_index(self._options, embedder.dimension, capabilities)
        try:
            self._index.create_index(
                wanted.name, dimension=wanted.dimension, metric=wanted.metric, config=wanted.config
            )
        except AlreadyExists as error:
            raise ConfigurationError(
                f"the embedder {embedder.name} does not fit what is stored: {error.message}",
                hint="open with the embedder and metric of before, or another namespace",
                clause="SEM-6",
            ) from error
        return wanted

    def close(self) -> None:
        """See protocols.Memory."""
        self._titles.close()
        try:
            self._storage.close()
        finally:
            self._index.close()

    def settle(self, *, timeout: float = 60.0) -> None:
        """See protocols.Memory."""
        self._titles.settle(timeout)

    # What the storage does alone

    def create_thread(
        self,
        *,
        resource_id: str,
        id: str | None = None,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | None = None,
    ) -> Thread:
        """See protocols.Memory."""
        return self._storage.create_thread(
            resource_id=resource_id, id=id, title=title, metadata=metadata, created_at=created_at
        )

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """See protocols.Memory."""
        return self._storage.get_thread(thread_id, resource_id=resource_id)

    def update_thread(
        self, thread_id: str, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Thread:
        """See protocols.Memory. Snapshots stay as they are (SEM-5)."""
        return self._storage.update_thread(thread_id, title=title, metadata=metadata)

    def title_thread(self, thread_id: str, title: str) -> bool:
        """See protocols.Memory."""
        return self._storage.title_thread(thread_id, title)

    def list_threads(
        self,
        *,
        filter: ThreadFilter | None = None,
        order_by: OrderBy | None = None,
        page: int = 0,
        per_page: int | Literal[False] | None = None,
    ) -> ThreadPage:
        """See protocols.Memory."""
        return self._storage.list_threads(filter=filter, order_by=order_by, page=page, per_page=per_page)

    def list_clones(self, source_thread_id: str, *, resource_id: str | None = None) -> tuple[Thread, ...]:
        """See protocols.Memory."""
        return self._storage.list_clones(source_thread_id, resource_id=resource_id)

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        """See protocols.Memory."""
        return self._storage.get_working_memory(thread_id, **options)

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        """See protocols.Memory."""
        self._storage.update_working_memory(thread_id, value, **options)

    # Deletes: the storage first

    def delete_thread(self, thread_id: str) -> bool:
        """See protocols.Memory."""
        with self._turn:
            deleted = self._storage.delete_thread(thread_id)
            self._discard(filter={"thread_id": thread_id})
            return deleted

    def delete_messages(self, ids: Sequence[str]) -> int:
        """See protocols.Memory."""
        with self._turn:
            deleted = self._storage.delete_messages(ids)
            self._discard(ids=ids)
            return deleted

    def clear_messages(self, thread_id: str) -> int:
        """See protocols.Memory."""
        with self._turn:
            cleared = self._storage.clear_messages(thread_id)
            self._discard(filter={"thread_id": thread_id})
            return cleared

    def _discard(self, *, ids: Sequence[str] | None = None, filter: Filter | None = None) -> None:
        """Delete the embeddings of messages that are gone.

        The call has had its effect already, so it cannot fail any more; what stays behind is never shown, and is
        deleted when the index answers again.
        """
        with suppress(Exception):
            self._sweep()
        try:
            self._index.delete_vectors(SEMANTIC_INDEX, ids=ids, filter=filter)
        except Unavailable:
            self._left.append((ids, filter))
        except Exception:  # noqa: BLE001 - where nothing is embedded there is no index
            return

    def _sweep(self) -> None:
        """Delete the embeddings that could not be when their messages were, as far as these are still gone."""
        while self._left:
            ids, filter = self._left[0]
            if ids is None:
                probe = [1.0] + [0.0] * (self._index.describe_index(SEMANTIC_INDEX).dimension - 1)
                hits = self._index.query_vectors(SEMANTIC_INDEX, probe, top_k=MAX_TOP_K, filter=filter, exact=True)
                ids = [hit.id for hit in hits]
            there = self._locate(ids)
            self._index.delete_vectors(SEMANTIC_INDEX, ids=[each for each in ids if each not in there])
            self._left.pop(0)

    # Writes: the index first

    def save_messages(
        self, messages: Sequence[NewMessage], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """See protocols.Memory."""
        titling = self._titles.wanted(thread_config)
        saved = self._saved(messages, embed=embeds(self._options, thread_config))
        self._titles.begin(titling, saved)
        return saved

    def _saved(self, messages: Sequence[NewMessage], *, embed: bool) -> tuple[Message, ...]:
        if not embed:
            return self._save_alone(messages)
        batch = parse_save(messages)
        ids = [*dict.fromkeys(row.id for row in batch)]
        embedder = self._embedder()
        self._check(batch, self._locate(ids))
        try:
            vectors = self._embed(embedder, {row.id: row.content for row in batch})
        except EmbedderError:
            self._check(batch, self._locate(ids, everywhere=True))  # what is wrong with the batch comes first
            raise
        with self._turn, self._clock.still():
            threads = self._check(batch, located := self._locate(ids))
            drafts = self._drafts(batch, threads, located)
            put = [NewVector(id, vectors[id].tolist(), snapshot(*drafts[id])) for id in ids if id in vectors]
            with self._indexing(put, [id for id in ids if id not in vectors]):
                saved = self._storage.save_messages(messages)
            for vector, message in ((vector, each) for vector in put for each in saved if each.id == vector.id):
                true = snapshot(threads[message.thread_id], message)
                if true != vector.metadata:  # the message was there without an embedding, and kept its created_at
                    self._index.update_vector(SEMANTIC_INDEX, vector.id, metadata=true)
            return saved

    def _save_alone(self, messages: Sequence[NewMessage]) -> tuple[Message, ...]:
        """Save messages and embed none; those that were embedded lose their embedding (SEM-4)."""
        with self._turn:
            # Mostly no client has had an embedder yet. Then there is nothing to lose, and the storage alone checks all.
            if SEMANTIC_INDEX not in self._index.list_indexes():
                return self._storage.save_messages(messages)
            with self._indexing((), [*dict.fromkeys(row.id for row in parse_save(messages))]):
                return self._storage.save_messages(messages)

    def _check(self, batch: Sequence[MessageRow], located: Mapping[str, Message]) -> dict[str, Thread]:
        """Refuse the batch as the storage would, as far as is known here (MSG-1, MSG-2); its threads by id."""
        threads: dict[str, Thread] = {}
        for thread_id in {row.thread_id for row in batch}:
            thread = self._storage.get_thread(thread_id)
            if thread is not None:
                threads[thread_id] = thread
        owners = {id: message.resource_id for id, message in located.items()}
        errors: list[ThreadNotFound | OwnershipMismatch] = []
        for row in batch:
            thread = threads.get(row.thread_id)
            if thread is None:
                errors.append(ThreadNotFound(f"thread {row.thread_id!r} does not exist", clause="MSG-1"))
                continue
            if row.resource_id not in (None, thread.resource_id):
                errors.append(OwnershipMismatch(f"thread {thread.id!r} is another resource's", clause="MSG-1"))
            if owners.setdefault(row.id, thread.resource_id) != thread.resource_id:
                errors.append(OwnershipMismatch(f"message {row.id!r} is another resource's", clause="MSG-2"))
        if errors:
            errors[0].also = tuple(sorted({error.code for error in errors}))
            raise errors[0]
        return threads

    def _drafts(
        self, batch: Sequence[MessageRow], threads: Mapping[str, Thread], located: Mapping[str, Message]
    ) -> dict[str, tuple[Thread, Message]]:
        """The messages as the storage will have them, each with its thread."""
        now = instant(self._clock(), "the clock")
        drafts: dict[str, tuple[Thread, Message]] = {}
        for row in batch:
            thread = threads[row.thread_id]
            old = drafts[row.id][1] if row.id in drafts else located.get(row.id)
            created_at = row.created_at or (old.created_at if old else now)
            drafts[row.id] = (
                thread,
                Message(row.id, thread.id, thread.resource_id, row.role, row.content, row.metadata, created_at),
            )
        return drafts

    def update_messages(
        self, updates: Sequence[MessageUpdate], *, thread_config: MemoryConfig | None = None
    ) -> tuple[Message, ...]:
        """See protocols.Memory."""
        changes = parse_updates(updates)
        on = embeds(self._options, thread_config)
        embedder = self._embedder() if on else None
        indexed = [change.id for change in changes if change.content is not None or change.role is not None]
        if not indexed:
            return self._storage.update_messages(updates)
        if embedder is None:
            with self._indexing((), [*dict.fromkeys(indexed)]):
                return self._storage.update_messages(updates)
        ids = [*dict.fromkeys(change.id for change in changes)]
        while True:
            old = self._locate(ids, everywhere=True)
            new = dict(old)
            for change in changes:
                if change.id in new:
                    new[change.id] = change.apply(new[change.id])
                    bounded(new[change.id].metadata)
            contents = {id: new[id].content for id in indexed if id in new}
            vectors = self._embed(embedder, contents)
            with self._turn:
                threads = {message.thread_id: self._storage.get_thread(message.thread_id) for message in old.values()}
                if self._read({id: message.thread_id for id, message in old.items()}) != old:
                    continue  # changed while the embedder was at work
                put = [
                    NewVector(id, vector.tolist(), snapshot(thread, new[id]))
                    for id, vector in vectors.items()
                    if (thread := threads[new[id].thread_id]) is not None
                ]
                with self._indexing(put, [id for id in contents if id not in vectors]):
                    return self._storage.update_messages([update for update in updates if update.id in old])

    def clone_thread(self, source_thread_id: str, **options: Unpack[CloneOptions]) -> CloneResult:
        """See protocols.Memory. The storage goes first here, as it names what the embeddings belong to."""
        with self._turn:
            result = self._storage.clone_thread(source_thread_id, **options)
            try:
                clones = {message.id: message for message in result.cloned_messages}
                self._put(
                    NewVector(new_id, row.vector, snapshot(result.thread, clones[new_id]))
                    for row in self._stored([*result.id_map])
                    if (new_id := result.id_map[row.id]) in clones
                )
            except BaseException:
                self.delete_thread(result.thread.id)
                raise
            return result

    @contextmanager
    def _indexing(self, put: Sequence[NewVector], remove: Sequence[str]) -> Generator[None]:
        """The index with these embeddings and without those; as it was, when what follows is refused."""
        with self._turn:
            before = {row.id: row for row in self._stored([*(vector.id for vector in put), *remove])}
            try:
                self._put(put)
                self._remove([id for id in remove if id in before])
                yield
            except BaseException:
                self._put(NewVector(row.id, row.vector, row.metadata) for row in before.values())
                self._remove([vector.id for vector in put if vector.id not in before])
                raise

    def _put(self, vectors: Iterable[NewVector]) -> None:
        if given := [*vectors]:
            self._index.upsert_vectors(SEMANTIC_INDEX, given)

    def _remove(self, ids: Sequence[str]) -> None:
        if ids:
            self._index.delete_vectors(SEMANTIC_INDEX, ids=ids)

    def _stored(self, ids: Sequence[str]) -> list[VectorRow]:
        """The embeddings of these messages; none where no client has had an embedder yet."""
        try:
            return [row for some in _batches(ids) for row in self._index.get_vectors(SEMANTIC_INDEX, some)]
        except IndexNotFound:
            return []

    # Embedding

    def semantic_index(self) -> IndexDescription | None:
        """See protocols.Memory."""
        if self._wanted is None:
            return None
        if self._left:
            with self._turn:
                self._sweep()
        return self._index.describe_index(SEMANTIC_INDEX)

    def _embedder(self) -> Embedder:
        if self._runtime.embedder is None or self._wanted is None:
            raise ConfigurationError("no vector index and embedder", clause="SEM-1")
        return self._runtime.embedder

    def _embed(self, embedder: Embedder, contents: Mapping[str, Content]) -> dict[str, Vector]:
        """The vectors of the messages that have a text, by id."""
        texts = {id: words for id, given in contents.items() if (words := text_of(given)) is not None}
        return dict(zip(texts, embed(embedder, [*texts.values()], "document", self._metric), strict=True))

    @property
    def _metric(self) -> Metric:
        return "cosine" if self._wanted is None else self._wanted.metric

    # Finding messages by id

    def _locate(self, ids: Sequence[str], *, everywhere: bool = False) -> dict[str, Message]:
        """The existing messages of these ids.

        A storage is asked for a message in a thread. An embedding tells its thread; one without is found only by
        looking `everywhere`, which takes a question a thread.
        """
        found = self._read({row.id: str(row.metadata["thread_id"]) for row in self._stored(ids)})
        lost = [id for id in ids if id not in found] if everywhere else []
        for thread in self._storage.list_threads(per_page=False).threads if lost else ():
            found |= self._read(dict.fromkeys(lost, thread.id))
        return found

    def _read(self, threads: Mapping[str, str]) -> dict[str, Message]:
        """Those of the messages (id → thread) that are there, in the order of ORD-1."""
        if not threads:
            return {}
        places = [Include(id, thread_id, 0, 0) for id, thread_id in threads.items()]
        result = self._storage.recall(next(iter(threads.values())), per_page=0, include=places, order_by=OLDEST_FIRST)
        return {message.id: message for message in result.messages}

    # Recall

    def recall(self, thread_id: str, **options: Unpack[RecallOptions]) -> RecallResult:
        """See protocols.Memory."""
        asked = parse_recall(thread_id, self._options, **options)
        filter = options.get("filter")
        if asked.search is None:
            return self._result(asked, filter, ())
        embedder = self._embedder()
        self._check_owner(asked)
        query = embed(embedder, [asked.search.text], "query", self._metric)[0]
        search = Search(asked, query, _semantic_filter(self._options, options.get("thread_config")), filter)
        while True:
            hits = self._hits(search)
            result = self._result(asked, filter, hits)
            shown = {message.id for message in result.messages}
            if all(hit.id in shown for hit in hits):  # else it was deleted between the two questions
                return result

    def _check_owner(self, asked: Recall) -> None:
        """Refuse a request that names a resource which does not own the thread (ORD-6)."""
        if asked.resource_id is None:
            return
        thread = self._storage.get_thread(asked.thread_id)
        if thread is None:
            raise ThreadNotFound(f"thread {asked.thread_id!r} does not exist", clause="ORD-6")
        if thread.resource_id != asked.resource_id:
            raise OwnershipMismatch(f"thread {thread.id!r} is another resource's", clause="ORD-6")

    def _result(self, asked: Recall, filter: MessageFilter | None, hits: Sequence[Found]) -> RecallResult:
        """The storage's page, the windows of the hits included (SEM-3)."""
        windows = [Include(each.id, each.thread_id, each.before, each.after) for each in asked.include]
        if asked.search is not None:
            around = asked.search.before, asked.search.after
            windows += [Include(hit.id, hit.thread_id, *around) for hit in hits]
        result = self._storage.recall(
            asked.thread_id,
            resource_id=asked.resource_id,
            page=asked.page.page,
            per_page=asked.page.per_page,
            include=windows or None,
            filter=filter,
            order_by=OrderBy(direction="ASC" if asked.ascending else "DESC"),
        )
        return msgspec.structs.replace(result, hits=tuple(Hit(hit.id, hit.score) for hit in hits))

    def _hits(self, search: Search) -> list[Found]:
        """The best candidates (SEM-2): by the index, or by a scan where its answer would leave doubt."""
        narrowed = search.narrowed()
        if narrowed is None:
            return self._scan(search)
        filters = [narrowed]
        if search.asked.metadata:
            ids = [message.id for message in self._candidates(search)]
            filters = [_both(narrowed, {"message_id": {"$in": some}}) for some in _batches(ids)]
        wanted = search.top_k + SPARE
        while wanted < MAX_TOP_K:
            found, beyond = self._closest(search, filters, wanted)
            if len(found) < search.top_k:
                sure = beyond is None
            else:
                sure = beyond is None or found[search.top_k - 1].score > beyond
            if sure:
                return search.cut(found)
            wanted *= 8
        return self._scan(search)

    def _closest(self, search: Search, filters: Sequence[Filter], wanted: int) -> tuple[list[Found], float | None]:
        """Live candidates, best first, and what may be the score of one that is not among them."""
        threads: dict[str, str] = {}
        beyond: float | None = None
        for filter in filters:
            hits = self._index.query_vectors(SEMANTIC_INDEX, search.query.tolist(), top_k=wanted, filter=filter)
            threads |= {hit.id: str(hit.metadata["thread_id"]) for hit in hits}
            if len(hits) == wanted:
                beyond = hits[-1].score if beyond is None else max(beyond, hits[-1].score)
        live = self._read(threads)
        stored = {row.id: row for row in self._stored([*live])}
        found = self._scored(search, [(message, stored[id]) for id, message in live.items() if id in stored])
        if beyond is not None:
            vectors = (np.array(row.vector, np.float32) for row in stored.values())
            beyond += 2 * max((tolerance(self._metric, search.query, vector) for vector in vectors), default=0.0)
        return found, beyond

    def _scored(self, search: Search, rows: Sequence[tuple[Message, VectorRow]]) -> list[Found]:
        """The rows, given in the order of ORD-1, best first. A vector is scored once, so that equal ones tie."""
        distinct = [*dict.fromkeys(row.vector for _, row in rows)]
        if not distinct:
            return []
        found = scores(self._metric, search.query, np.array(distinct, np.float32)).tolist()
        score = dict(zip(distinct, found, strict=True))
        ranked = [Found(message.id, message.thread_id, score[row.vector]) for message, row in rows]
        return sorted(ranked, key=lambda each: -each.score)

    def _scan(self, search: Search) -> list[Found]:
        """Score every candidate."""
        candidates = {message.id: message for message in self._candidates(search)}
        return search.cut(
            self._scored(
                search,
                [
                    (candidates[row.id], row)
                    for row in self._stored([*candidates])
                    if row.metadata["thread_id"] == candidates[row.id].thread_id and search.matches(row.metadata)
                ],
            )
        )

    def _candidates(self, search: Search) -> list[Message]:
        """The messages in scope that satisfy date_range and metadata filter, in the order of ORD-1."""
        asked = search.asked
        if search.of_resource:
            owned = self._storage.list_threads(filter=ThreadFilter(resource_id=asked.resource_id), per_page=False)
            threads = sorted(thread.id for thread in owned.threads)
        else:
            threads = [asked.thread_id]
        rows = [
            message
            for thread_id in threads
            for message in self._storage.recall(
                thread_id, per_page=False, filter=search.filter, order_by=OLDEST_FIRST
            ).messages
        ]
        return sorted(rows, key=lambda message: message.created_at)


class Found(msgspec.Struct, frozen=True):
    """A hit and the thread it is in."""

    id: str
    thread_id: str
    score: float


class Search:
    """What one recall searches for, and among what."""

    def __init__(self, asked: Recall, query: Vector, semantic: Filter, filter: MessageFilter | None) -> None:
        assert asked.search is not None
        self.asked = asked
        self.query = query
        self.filter = filter
        self.top_k = asked.search.top_k
        self.of_resource = asked.search.scope == "resource"
        self._threshold = asked.search.threshold
        self._node = asked.search.filter
        self._semantic = semantic

    def matches(self, snapshot: Metadata) -> bool:
        """Whether the semantic filter holds."""
        return self._node.matches(snapshot)

    def cut(self, found: Sequence[Found]) -> list[Found]:
        """The hits among candidates that are given best first."""
        return [each for each in found if self._threshold is None or each.score >= self._threshold][: self.top_k]

    def narrowed(self) -> Filter | None:
        """Scope, date_range and semantic filter as one filter on snapshots; None when it would be too long.

        A snapshot's created_at is the message's: to change it takes a save, which indexes anew.
        """
        asked = self.asked
        ours: Filter = {"resource_id": asked.resource_id} if self.of_resource else {"thread_id": asked.thread_id}
        bounds: Filter = {}
        if asked.window.start is not None:
            bounds["$gt" if asked.window.start_exclusive else "$gte"] = iso(asked.window.start)
        if asked.window.end is not None:
            bounds["$lt" if asked.window.end_exclusive else "$lte"] = iso(asked.window.end)
        if bounds:
            ours["created_at"] = bounds
        room = MAX_CONDITIONS - 1 - len(bounds) - (1 if asked.metadata else 0)
        return _both(self._semantic, ours) if sum(1 for _ in conditions(self._node)) <= room else None


def _semantic_filter(options: MemoryConfig, thread_config: MemoryConfig | None) -> Filter:
    """The semantic filter as it was given."""
    recall = overlay(options, thread_config).semantic_recall
    return dict(recall.filter or {}) if isinstance(recall, SemanticRecall) else {}


def _both(filter: Filter, more: Filter) -> Filter:
    """Both filters as one that nests no deeper."""
    apart = {key: value for key, value in filter.items() if key not in more and key != "$and"}
    rest = [*filter.get("$and", ()), *({key: filter[key]} for key in filter if key in more)]
    return {**apart, **more, **({"$and": rest} if rest else {})}


def _batches(ids: Sequence[str]) -> Generator[list[str]]:
    for start in range(0, len(ids), BATCH):
        yield [*ids[start : start + BATCH]]


_TURNS: WeakValueDictionary[tuple[str, ...], Any] = WeakValueDictionary()
_TURNS_TURN = threading.Lock()


def _turn(key: tuple[str, ...], lock: Path | None) -> Turn:
    """The lock of a namespace's writers, in this process and, by a file, in others."""
    with _TURNS_TURN:
        turn = _TURNS.get(key)
        if turn is None:
            turn = _TURNS[key] = threading.RLock() if lock is None else FileTurn(lock)
        return turn


class FileTurn:
    """A lock that a thread may take again while it has it, and no other thread or process may: a locked file.

    The system lets go of it when the process that has it dies.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.RLock()
        self._depth = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            if not self._depth:
                file = self._path.open("ab")
                try:
                    fcntl.flock(file, fcntl.LOCK_EX)
                except BaseException:
                    file.close()
                    raise
                self._file = file
            self._depth += 1
        except BaseException:
            self._threads.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth and self._file is not None:
            self._file.close()
        self._threads.release()
