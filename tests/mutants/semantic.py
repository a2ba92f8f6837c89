"""SEM: embeddings that are stale, missing or dead, and hits that are cut before they are filtered."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from memassay.spec.errors import ConfigurationError, EmbedderError, InvalidRequest
from memassay.spec.operators import EVERYTHING
from memassay.spec.protocols import Embedder
from memassay.spec.reference import Embedded, Row
from memassay.spec.requests import Recall, overlay, parse_config
from memassay.spec.types import (
    Content,
    Hit,
    IndexConfig,
    IndexDescription,
    MemoryConfig,
    Message,
    MessageUpdate,
    NewMessage,
    ReasoningPart,
    RecallResult,
    SemanticRecall,
    TextPart,
    Thread,
)
from memassay.spec.vectors import Metric, Vector

from .adapter import Adapter, replaced
from .mutant import mutant

OFF = MemoryConfig(semantic_recall=False)


def _recall_of(config: Any) -> SemanticRecall | None:
    recall = getattr(config, "semantic_recall", None)
    return recall if isinstance(recall, SemanticRecall) else None


def _words(parts: Sequence[Any]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart | ReasoningPart))


# SEM-1


@mutant("SEM-1")
class _SearchIgnoresThreadConfig(Adapter):
    """A search is made as the store's options say, whatever thread_config says."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "recall" and arguments["vector_search_string"] and arguments["thread_config"] is not None:
            with contextlib.suppress(InvalidRequest):
                parse_config(arguments["thread_config"], "thread_config")
                arguments["thread_config"] = None


@mutant("SEM-1")
class _SearchesWhileOff(Adapter):
    """A search string turns semantic recall on."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "recall" and arguments["vector_search_string"]:
            with contextlib.suppress(InvalidRequest):
                if overlay(self.options, arguments["thread_config"]).semantic_recall in (False, msgspec.UNSET):
                    arguments["thread_config"] = MemoryConfig(semantic_recall=True)


@mutant("SEM-1")
class _ListsWithoutAnEmbedder(Adapter):
    """A search without an embedder is a recall without a search."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "recall" and self.runtime.embedder is None:
            arguments["vector_search_string"] = None


@mutant("SEM-1")
class _ScopeFallsBack(Adapter):
    """scope resource without a resource_id is scope thread."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        recall = _recall_of(arguments.get("thread_config"))
        if call == "recall" and recall and recall.scope == "resource" and arguments["resource_id"] is None:
            arguments["thread_config"] = MemoryConfig(semantic_recall=replaced(recall, scope="thread"))


@mutant("SEM-1")
class _SearchesForBlanks(Adapter):
    """A blank search string is sent to the embedder, which refuses it."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        text = arguments.get("vector_search_string")
        if call == "recall" and isinstance(text, str) and not text.strip():
            raise EmbedderError("input must not be empty")


@mutant("SEM-1")
class _FindsTwoByDefault(Adapter):
    """True means top_k 2."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        config = arguments.get("thread_config")
        if call == "recall" and isinstance(config, MemoryConfig) and config.semantic_recall is True:
            arguments["thread_config"] = replaced(config, semantic_recall=SemanticRecall(top_k=2))


@mutant("SEM-1")
class _CallsEveryRowAHit(Adapter):
    """Hits come where nothing was searched: the rows of the page, at the score 1."""

    def result(self, asked: Recall, hits: Sequence[Hit]) -> RecallResult:
        result = super().result(asked, hits)
        if asked.search is not None:
            return result
        return replaced(result, hits=tuple(Hit(message.id, 1.0) for message in result.messages))


# SEM-2


class _Cut(Adapter):
    """Hits that an index gave before the rows were looked at."""

    def found(self, asked: Recall, query: Vector) -> list[Hit]:
        """The best candidates without date range, metadata filter and semantic filter."""
        assert asked.search is not None
        everything = replaced(asked.search, filter=EVERYTHING)
        plain = replaced(asked, metadata=(), window=type(asked.window)(), search=everything)
        return super().ranked(plain, query)


@mutant("SEM-2", "mem0ai/mem0#7416")
class _NarrowsAfterTopK(_Cut):
    """date_range and metadata filter are applied to the top_k hits."""

    def ranked(self, asked: Recall, query: Vector) -> list[Hit]:
        assert asked.search is not None
        wanted = {row.message.id for row in self.candidates(asked)}
        plain = replaced(asked, metadata=(), window=type(asked.window)())
        return [hit for hit in Adapter.ranked(self, plain, query)[: asked.search.top_k] if hit.id in wanted]


@mutant("SEM-2", "langchain-ai/langchain#28413")
class _RecallOverFetches(_Cut):
    """Twice top_k hits are fetched, and every filter is applied to them."""

    def ranked(self, asked: Recall, query: Vector) -> list[Hit]:
        assert asked.search is not None
        wanted = {row.message.id for row in self.candidates(asked)}
        return [hit for hit in self.found(asked, query)[: 2 * asked.search.top_k] if hit.id in wanted]


@mutant("SEM-2")
class _FindsOnThePageOnly(Adapter):
    """Only messages of the page can be hits."""

    def result(self, asked: Recall, hits: Sequence[Hit]) -> RecallResult:
        page = {row.message.id for row in self.page(asked, self.matching(asked))}
        return super().result(asked, [hit for hit in hits if hit.id in page])


@mutant("SEM-2")
class _RecallIgnoresDates(Adapter):
    """date_range narrows the page, not the hits."""

    def candidates(self, asked: Recall) -> list[Row]:
        return super().candidates(replaced(asked, window=type(asked.window)()))


@mutant("SEM-2")
class _ThresholdIsADistance(Adapter):
    """threshold is the largest distance allowed: what is closer than 1 − threshold is dropped."""

    def hits(self, asked: Recall, embedder: Embedder) -> tuple[Hit, ...]:
        assert asked.search is not None
        found = super().hits(replaced(asked, search=replaced(asked.search, threshold=None)), embedder)
        limit = asked.search.threshold
        return tuple(hit for hit in found if limit is None or 1 - hit.score >= limit)


@mutant("SEM-2")
class _HitsTieById(Adapter):
    """Equal vectors come in the order of their ids."""

    def candidates(self, asked: Recall) -> list[Row]:
        return sorted(super().candidates(asked), key=lambda row: row.message.id)


@mutant("SEM-2")
class _HitsTieNewestFirst(Adapter):
    """Of equal vectors the newest comes first."""

    def candidates(self, asked: Recall) -> list[Row]:
        return super().candidates(asked)[::-1]


@mutant("SEM-2", "symfony/ai#195")
class _FarthestFirst(Adapter):
    """Hits are sorted by a distance as if it were a score."""

    def ranked(self, asked: Recall, query: Vector) -> list[Hit]:
        return super().ranked(asked, query)[::-1]


@mutant("SEM-2", "mastra-ai/mastra#20509")
class _DeadMessagesTakeSlots(Adapter):
    """Embeddings of deleted messages are found, then dropped: fewer than top_k hits are left."""

    def ranked(self, asked: Recall, query: Vector) -> list[Hit]:
        dead = sum(thread == asked.thread_id for thread in self.__dict__.get("dead", {}).values())
        return super().ranked(asked, query)[: -dead or None]

    def delete_messages(self, ids: Sequence[str]) -> int:
        before = dict(self.state.by_id)
        deleted = super().delete_messages(ids)
        gone = {name: row.message.thread_id for name, row in before.items() if name not in self.state.by_id}
        self.__dict__.setdefault("dead", {}).update(gone)
        return deleted


@mutant("SEM-2")
class _ScopeThreadIsTheResource(Adapter):
    """Scope thread searches all threads of the resource."""

    def candidates(self, asked: Recall) -> list[Row]:
        assert asked.search is not None
        owner = self.state.threads[asked.thread_id].resource_id if asked.thread_id in self.state.threads else "nobody"
        everything = replaced(asked, resource_id=owner, search=replaced(asked.search, scope="resource"))
        return super().candidates(everything)


# SEM-2a


@mutant("SEM-2a")
class _ScopeIsAlwaysTheThread(Adapter):
    """Scope resource searches the request's thread."""

    def candidates(self, asked: Recall) -> list[Row]:
        assert asked.search is not None
        return super().candidates(replaced(asked, search=replaced(asked.search, scope="thread")))


@mutant("ISO-1", "mastra-ai/mastra#21863")
class _ScopeResourceIsEverybodys(Adapter):
    """Scope resource searches all threads there are."""

    def candidates(self, asked: Recall) -> list[Row]:
        assert asked.search is not None
        if asked.search.scope == "thread":
            return super().candidates(asked)
        owners = {thread.resource_id for thread in self.state.threads.values()}
        rows: list[Row] = []
        for owner in owners:
            rows += super().candidates(replaced(asked, resource_id=owner))
        return sorted(rows, key=lambda row: (row.message.created_at, row.message.thread_id, row.position))


# SEM-3


@mutant("SEM-3")
class _WindowsAreFiltered(Adapter):
    """Neighbours of hits that the filters exclude are left out."""

    def hit_window(self, asked: Recall, hit: Hit) -> list[Row]:
        return [
            row
            for row in super().hit_window(asked, hit)
            if row.message.id == hit.id
            or (
                asked.window.holds(row.message.created_at)
                and all(condition.matches(row.message.metadata) for condition in asked.metadata)
            )
        ]


@mutant("SEM-3", "mastra-ai/mastra#14022")
class _WindowsCutOnInstants(Adapter):
    """Neighbours are those of an earlier and a later instant: rows of the hit's own instant are none."""

    def hit_window(self, asked: Recall, hit: Hit) -> list[Row]:
        assert asked.search is not None
        target = self.state.by_id[hit.id]
        rows = self.state.rows[target.message.thread_id]
        earlier = [row for row in rows if row.message.created_at < target.message.created_at]
        later = [row for row in rows if row.message.created_at > target.message.created_at]
        return [*earlier[len(earlier) - min(asked.search.before, len(earlier)) :], target, *later[: asked.search.after]]


@mutant("SEM-3")
class _WindowsOnTheFirstPage(Adapter):
    """Later pages bring no hits' windows."""

    def hit_window(self, asked: Recall, hit: Hit) -> list[Row]:
        return [] if asked.page.page else super().hit_window(asked, hit)


@mutant("SEM-3", "mastra-ai/mastra#20303")
class _WindowsOfTheRequestsThread(Adapter):
    """A hit of another thread comes without its neighbours."""

    def hit_window(self, asked: Recall, hit: Hit) -> list[Row]:
        window = super().hit_window(asked, hit)
        own = self.state.by_id[hit.id].message.thread_id == asked.thread_id
        return window if own else [row for row in window if row.message.id == hit.id]


@mutant("SEM-3")
class _RangesAreSymmetric(Adapter):
    """message_range {before, after} uses the larger for both sides."""

    def hit_window(self, asked: Recall, hit: Hit) -> list[Row]:
        assert asked.search is not None
        most = max(asked.search.before, asked.search.after)
        return super().hit_window(replaced(asked, search=replaced(asked.search, before=most, after=most)), hit)


@mutant("SEM-3")
class _HitsReplaceThePage(Adapter):
    """With hits the page is left out."""

    def _union(self, asked: Recall, page: list[Row], hits: Sequence[Hit] = ()) -> list[Row]:
        return super()._union(asked, [] if hits else page, hits)


@mutant("SEM-3")
class _ResultsComeByScore(Adapter):
    """With hits the messages come in the order of the hits."""

    def _union(self, asked: Recall, page: list[Row], hits: Sequence[Hit] = ()) -> list[Row]:
        rows = {row.message.id: row for row in super()._union(asked, page, hits)}
        return list({name: rows[name] for name in (*(hit.id for hit in hits), *rows) if name in rows}.values())


# SEM-4


@mutant("SEM-4", "mastra-ai/mastra#6604")
class _DeletingLeavesEmbeddings(Adapter):
    """delete_messages leaves the embeddings."""

    def delete_messages(self, ids: Sequence[str]) -> int:
        before = dict(self.state.embedded)
        deleted = super().delete_messages(ids)
        self.state.embedded |= before
        return deleted


@mutant("SEM-4", "mastra-ai/mastra#12225")
class _ClearingLeavesEmbeddings(Adapter):
    """clear_messages and delete_thread leave the embeddings."""

    def _forget(self, message_id: str) -> None:
        kept = self.state.embedded.get(message_id)
        super()._forget(message_id)
        if kept is not None:
            self.state.embedded[message_id] = kept


@mutant("SEM-4")
class _SavingWhileOffKeepsEmbeddings(Adapter):
    """Saving again while semantic recall is off leaves the embedding of the old text."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        before = dict(self.state.embedded)
        saved = super().save_messages(messages, **config)
        if overlay(self.options, config.get("thread_config")).semantic_recall is False:
            self.state.embedded |= {m.id: before[m.id] for m in saved if m.id in before}
        return saved


@mutant("SEM-4")
class _EmbedsOnce(Adapter):
    """A message that has an embedding keeps it when it is saved again."""

    def _reindex(self, ids: Iterable[str], vectors: Mapping[str, Vector]) -> None:
        before = dict(self.state.embedded)
        super()._reindex(ids, vectors)
        self.state.embedded |= {name: kept for name, kept in before.items() if name in vectors}


@mutant("SEM-4")
class _EmbedsBlanks(Adapter):
    """A blank text is embedded too."""

    def _embed(self, embedder: Embedder | None, contents: Mapping[str, Content]) -> dict[str, Vector]:
        blank = {name: "[1, 0, 0]" for name, given in contents.items() if isinstance(given, str) and not given.strip()}
        return super()._embed(embedder, {**contents, **blank})


@mutant("SEM-4")
class _EmbedsReasoning(Adapter):
    """The text of reasoning parts is embedded with the rest."""

    def _embed(self, embedder: Embedder | None, contents: Mapping[str, Content]) -> dict[str, Vector]:
        texts = {name: given if isinstance(given, str) else _words(given) for name, given in contents.items()}
        return super()._embed(embedder, texts)


@mutant("SEM-4")
class _EmbedsTheFirstPart(Adapter):
    """Only the first text part is embedded."""

    def _embed(self, embedder: Embedder | None, contents: Mapping[str, Content]) -> dict[str, Vector]:
        texts = {
            name: given
            if isinstance(given, str)
            else next((part.text for part in given if isinstance(part, TextPart)), "")
            for name, given in contents.items()
        }
        return super()._embed(embedder, texts)


@mutant("SEM-4")
class _UpdatingDoesNotEmbed(Adapter):
    """update_messages leaves the embedding of the old text."""

    def update_messages(self, updates: Sequence[MessageUpdate], **config: Any) -> tuple[Message, ...]:
        before = dict(self.state.embedded)
        updated = super().update_messages(updates, **config)
        self.state.embedded = before
        return updated


@mutant("SEM-4")
class _UpdatingMetadataUnembeds(Adapter):
    """An update of metadata alone drops the embedding."""

    def update_messages(self, updates: Sequence[MessageUpdate], **config: Any) -> tuple[Message, ...]:
        updated = super().update_messages(updates, **config)
        for update in updates:
            if update.content is None and update.role is None:
                self.state.embedded.pop(update.id, None)
        return updated


@mutant("SEM-4")
class _EmbedsWhateverTheConfig(Adapter):
    """save_messages embeds although thread_config turns semantic recall off."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        with contextlib.suppress(InvalidRequest):
            if overlay(self.options, config.get("thread_config")) != self.options:
                config = {}
        return super().save_messages(messages, **config)


# SEM-4a


@mutant("SEM-4a")
class _SwallowsTheEmbeddersFailure(Adapter):
    """When the embedder fails, the messages are saved without embeddings."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        try:
            return super().save_messages(messages, **config)
        except EmbedderError:
            return super().save_messages(messages, thread_config=OFF)


@mutant("SEM-4a")
class _EmbedsAfterWriting(Adapter):
    """The embedder runs when the messages are written: its failure comes too late."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        try:
            return super().save_messages(messages, **config)
        except EmbedderError:
            super().save_messages(messages, thread_config=OFF)
            raise


@mutant("SEM-4a")
class _FailedSearchesFindNothing(Adapter):
    """When the embedder fails, a recall has no hits."""

    def hits(self, asked: Recall, embedder: Embedder) -> tuple[Hit, ...]:
        try:
            return super().hits(asked, embedder)
        except EmbedderError:
            return ()


# SEM-5


class _Snapshots(Adapter):
    """Sees other snapshots than those stored."""

    def seen(self, message: Message, stored: dict[str, Any]) -> dict[str, Any]:
        """What a semantic filter sees of a message."""
        raise NotImplementedError

    def candidates(self, asked: Recall) -> list[Row]:
        stored = self.state.embedded
        self.state.embedded = {
            name: Embedded(kept.vector, self.seen(self.state.by_id[name].message, kept.snapshot))
            for name, kept in stored.items()
            if name in self.state.by_id
        }
        try:
            return super().candidates(asked)
        finally:
            self.state.embedded = stored


@mutant("SEM-5")
class _FiltersThreadsAsTheyAre(_Snapshots):
    """The semantic filter joins the thread as it is now."""

    def seen(self, message: Message, stored: dict[str, Any]) -> dict[str, Any]:
        system = ("message_id", "thread_id", "resource_id", "role", "created_at")
        kept = {key: item for key, item in stored.items() if key in system}
        return self.state.threads[message.thread_id].metadata | kept


@mutant("SEM-5", "headroomlabs-ai/headroom#2296")
class _FiltersMessageMetadata(_Snapshots):
    """The semantic filter sees the message's metadata too."""

    def seen(self, message: Message, stored: dict[str, Any]) -> dict[str, Any]:
        return message.metadata | stored


@mutant("SEM-5")
class _ThreadMetadataWins(_Snapshots):
    """Thread metadata hides the system keys of the same name."""

    def seen(self, message: Message, stored: dict[str, Any]) -> dict[str, Any]:
        return (
            stored | self.state.threads[message.thread_id].metadata.copy() if "role" in self._own(message) else stored
        )

    def _own(self, message: Message) -> dict[str, Any]:
        return self.state.threads[message.thread_id].metadata


@mutant("SEM-5")
class _SnapshotsLackSystemKeys(_Snapshots):
    """The snapshot is the thread's metadata alone."""

    def seen(self, message: Message, stored: dict[str, Any]) -> dict[str, Any]:
        system = ("message_id", "thread_id", "resource_id", "role", "created_at")
        return {key: item for key, item in stored.items() if key not in system}


@mutant("SEM-5")
class _SnapshotsHoldSeconds(_Snapshots):
    """created_at stands in the snapshot as seconds since 1970."""

    def seen(self, message: Message, stored: dict[str, Any]) -> dict[str, Any]:
        return stored | {"created_at": message.created_at.timestamp()}


@mutant("SEM-5")
class _UpdatingAThreadIndexes(Adapter):
    """update_thread writes the new metadata beside the embeddings of its messages."""

    def update_thread(self, thread_id: str, **given: Any) -> Thread:
        updated = super().update_thread(thread_id, **given)
        for name, kept in list(self.state.embedded.items()):
            row = self.state.by_id.get(name)
            if row is not None and row.message.thread_id == thread_id:
                self.state.embedded[name] = Embedded(kept.vector, {**kept.snapshot, **(given.get("metadata") or {})})
        return updated


@mutant("SEM-5")
class _MovingKeepsTheSnapshot(Adapter):
    """A message saved into another thread keeps the snapshot of the old one."""

    def _reindex(self, ids: Iterable[str], vectors: Mapping[str, Vector]) -> None:
        before = dict(self.state.embedded)
        super()._reindex(ids, vectors)
        for name, kept in list(self.state.embedded.items()):
            old = before.get(name)
            if old is not None and old.snapshot.get("thread_id") != kept.snapshot.get("thread_id"):
                self.state.embedded[name] = Embedded(kept.vector, old.snapshot)


@mutant("SEM-5")
class _UpdatingARoleDoesNotIndex(Adapter):
    """An update of the role leaves the snapshot's."""

    def _reindex(self, ids: Iterable[str], vectors: Mapping[str, Vector]) -> None:
        before = dict(self.state.embedded)
        super()._reindex(ids, vectors)
        for name, kept in list(self.state.embedded.items()):
            if name in before and before[name].vector == kept.vector:
                role = before[name].snapshot["role"]
                self.state.embedded[name] = Embedded(kept.vector, {**kept.snapshot, "role": role})


# SEM-6


@mutant("SEM-6")
class _IgnoresTheIndexType(Adapter):
    """The type of index_config does not reach the engine."""

    def semantic_index(self) -> IndexDescription | None:
        described = super().semantic_index()
        if described is None or described.config.type != "flat":
            return described
        return replaced(described, config=IndexConfig(type="ivfflat", lists=100))


@mutant("SEM-6")
class _IgnoresTheMetric(Adapter):
    """Embeddings are compared by the cosine whatever index_config says."""

    @property
    def metric(self) -> Metric:
        return "cosine"


@mutant("SEM-6")
class _CountsAllMessages(Adapter):
    """The count of the index of embeddings is that of messages."""

    def semantic_index(self) -> IndexDescription | None:
        described = super().semantic_index()
        return None if described is None else replaced(described, count=len(self.state.by_id))


@mutant("SEM-6")
class _DescribesTheDefault(Adapter):
    """semantic_index says cosine whatever the engine's index has."""

    def semantic_index(self) -> IndexDescription | None:
        described = super().semantic_index()
        return None if described is None else replaced(described, metric="cosine")


@mutant("SEM-1")
class _DisabledIsEmpty(Adapter):
    """A search while semantic recall is off, or without an embedder, has no hits instead of failing."""

    def recall(self, thread_id: str, **given: Any) -> RecallResult:
        try:
            return super().recall(thread_id, **given)
        except ConfigurationError:
            given["vector_search_string"] = None
            return super().recall(thread_id, **given)
