"""ORD: orders that shuffle ties, pages that lose rows, counts of the wrong rows."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from memassay.spec.errors import InvalidRequest, OwnershipMismatch, ThreadNotFound
from memassay.spec.protocols import Runtime
from memassay.spec.reference import Event, Row, State
from memassay.spec.requests import MessageRow, Recall
from memassay.spec.types import Hit, MemoryConfig, Message, MessageUpdate, NewMessage, OrderBy

from .adapter import Adapter, replaced
from .mutant import mutant

ENGINE_WINDOW = 10_000
BULK = 1_000

# ORD-1


class _Sorted(Adapter):
    def key(self, row: Row) -> Any:
        raise NotImplementedError

    def _insert(self, row: Row) -> None:
        insort(self.state.rows[row.message.thread_id], row, key=self.key)
        self.state.by_id[row.message.id] = row


@mutant("ORD-1", "mastra-ai/mastra#3654")
class _TiesById(_Sorted):
    """Messages of one instant are sorted by id."""

    def key(self, row: Row) -> Any:
        return row.message.created_at, row.message.id


@mutant("ORD-1", "mastra-ai/mastra#3603")
class _TiesByRole(_Sorted):
    """Messages of one instant are sorted by role, so that a question stands before its answer."""

    def key(self, row: Row) -> Any:
        return row.message.created_at, ("system", "user", "assistant", "tool").index(row.message.role), row.position


@mutant("ORD-1")
class _OrderOfArrival(_Sorted):
    """Messages are listed as they were saved, whatever their instant."""

    def key(self, row: Row) -> Any:
        return row.position

    def rank(self, row: Row) -> Any:
        return row.position


@mutant("ORD-1")
class _SortsInstantsAsText(_Sorted):
    """Instants are sorted as ISO text without a fraction when it is zero: 12:00:00Z after 12:00:00.001Z."""

    def key(self, row: Row) -> Any:
        at = row.message.created_at.astimezone(UTC).replace(tzinfo=None)
        return at.isoformat(timespec="milliseconds" if at.microsecond else "seconds") + "Z", row.position

    def rank(self, row: Row) -> Any:
        return self.key(row)


@mutant("ORD-1", "mastra-ai/mastra#3448")
class _BatchesArriveReversed(Adapter):
    """The messages of one batch take their positions in reverse."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        names = [getattr(message, "id", None) for message in messages] if isinstance(messages, list | tuple) else []
        if len({*map(str, names)}) < len(names) or len(names) < 2:
            return super().save_messages(messages, **config)
        saved = super().save_messages(list(messages)[::-1], **config)
        return saved[::-1]


@mutant("ORD-1")
class _SavingAgainLosesPosition(Adapter):
    """REPLACE INTO: a message saved again goes behind the others of its instant."""

    def _save(self, row: MessageRow, now: datetime) -> set[str]:
        known = row.id in self.state.by_id
        touched = super()._save(row, now)
        if known:
            self.put(self.state.by_id[row.id], position=self._position())
        return touched


@mutant("ORD-1")
class _UpdatingLosesPosition(Adapter):
    """An updated message goes behind the others of its instant."""

    def update_messages(self, updates: Sequence[MessageUpdate], **config: Any) -> tuple[Message, ...]:
        updated = super().update_messages(updates, **config)
        for message in updated:
            self.put(self.state.by_id[message.id], position=self._position())
        return updated


@mutant("ORD-1")
class _ComesBackToItsPlace(Adapter):
    """A message that was deleted or moved away takes its old position when it comes back."""

    def __init__(
        self,
        runtime: Runtime | None = None,
        config: MemoryConfig | None = None,
        state: State | None = None,
        events: list[Event] | None = None,
    ) -> None:
        super().__init__(runtime, config, state, events)
        self._left: dict[tuple[str, str], int] = {}

    def _remove(self, message_id: str) -> Row | None:
        row = super()._remove(message_id)
        if row is not None:
            self._left[row.message.thread_id, message_id] = row.position
        return row

    def _save(self, row: MessageRow, now: datetime) -> set[str]:
        place = self._left.get((row.thread_id, row.id))
        touched = super()._save(row, now)
        if place is not None:
            self.put(self.state.by_id[row.id], position=place)
        return touched


@mutant("ORD-1")
class _CountsPositionsAnew(Adapter):
    """Positions are counted by the client: after a reopen new messages stand before older ones of their instant."""

    def __init__(
        self,
        runtime: Runtime | None = None,
        config: MemoryConfig | None = None,
        state: State | None = None,
        events: list[Event] | None = None,
    ) -> None:
        super().__init__(runtime, config, state, events)
        self.state.next_position = 0


# ORD-2


@mutant("ORD-2", "mastra-ai/mastra#9991")
class _OldestFirstByDefault(Adapter):
    """Without order_by the oldest come first."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "recall" and arguments["order_by"] is None:
            arguments["order_by"] = OrderBy(direction="ASC")


@mutant("ORD-2", "mastra-ai/mastra#10543")
class _NewestPageOldestFirst(Adapter):
    """The newest rows are selected, then returned oldest first as a chat shows them."""

    def _union(self, asked: Recall, page: list[Row], hits: Sequence[Hit] = ()) -> list[Row]:
        rows = super()._union(asked, page, hits)
        return rows if asked.ascending or asked.include else rows[::-1]


@mutant("ORD-2")
class _DescendingTiesForward(Adapter):
    """ORDER BY created_at DESC, position: equal instants keep their ascending order."""

    def directed(self, asked: Recall, matching: list[Row]) -> list[Row]:
        return sorted(matching, key=lambda row: row.message.created_at, reverse=not asked.ascending)


@mutant("ORD-2")
class _AnyDirection(Adapter):
    """What is not "ASC" is descending, instead of refused."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        order = arguments.get("order_by")
        if call == "recall" and isinstance(order, OrderBy) and order.direction not in ("ASC", "DESC"):
            arguments["order_by"] = OrderBy(order.field)


# ORD-3


@mutant("ORD-3", "mastra-ai/mastra#9991")
class _LimitsTheOldest(Adapter):
    """LIMIT is applied to the ascending order: a descending page holds the oldest rows."""

    def page(self, asked: Recall, matching: list[Row]) -> list[Row]:
        limit = asked.page.limit
        if asked.ascending or limit is None:
            return super().page(asked, matching)
        return matching[asked.page.offset : asked.page.offset + limit][::-1]


@mutant("ORD-3")
class _PagesFromOne(Adapter):
    """Pages are counted from one: page 1 repeats page 0."""

    def offset(self, asked: Recall) -> int:
        return max(0, asked.page.page - 1) * int(asked.page.per_page)


@mutant("ORD-3")
class _PageIsAnOffset(Adapter):
    """The page number is passed on as the number of rows to skip."""

    def offset(self, asked: Recall) -> int:
        return asked.page.page


@mutant("ORD-3")
class _RepeatsTheLastPage(Adapter):
    """A page past the end is the last page."""

    def offset(self, asked: Recall) -> int:
        size, total = int(asked.page.per_page), len(self.matching(asked))
        return min(asked.page.offset, max(0, (total - 1) // size * size)) if size else 0


@mutant("ORD-3")
class _OffsetsOverflow(Adapter):
    """page times per_page beyond 64 bits raises the driver's error."""

    def offset(self, asked: Recall) -> int:
        if asked.page.offset >= 2**63:
            raise OverflowError("Python int too large to convert to SQLite INTEGER")
        return asked.page.offset


@mutant("ORD-3a", "mastra-ai/mastra#19562")
class _KeysetSkipsTies(Adapter):
    """A later page begins after the last instant of the page before, and loses the rest of its ties."""

    def page(self, asked: Recall, matching: list[Row]) -> list[Row]:
        ordered, size = self.directed(asked, matching), int(asked.page.per_page)
        if not asked.page.offset or not size or asked.page.offset > len(ordered):
            return super().page(asked, matching)
        for _ in range(asked.page.page):
            if len(ordered) < size:
                return []
            last = ordered[size - 1].message.created_at
            ordered = [row for row in ordered[size:] if row.message.created_at != last]
        return ordered[:size]


@mutant("ORD-3b", "mastra-ai/mastra#19562")
class _CutsAtTheWindow(Adapter):
    """Whatever lies beyond the engine's 10,000 rows is not seen, nor counted."""

    def matching(self, asked: Recall) -> list[Row]:
        return super().matching(asked)[:ENGINE_WINDOW]


@mutant("ORD-3b", "docarray/docarray#430")
class _RefusesDeepPages(Adapter):
    """from + size beyond 10,000 is the engine's error."""

    def offset(self, asked: Recall) -> int:
        if ENGINE_WINDOW < asked.page.offset + int(asked.page.per_page) < 2 * ENGINE_WINDOW:
            raise RuntimeError("Result window is too large, from + size must be less than or equal to: [10000]")
        return asked.page.offset


@mutant("ORD-3b", "mastra-ai/mastra#19550")
class _SavesOneBulk(Adapter):
    """Of a batch of more than 1,000 messages the first 1,000 are saved."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        saved = super().save_messages(messages, **config)
        for message in saved[BULK:]:
            self._remove(message.id)
        return saved


# ORD-4


@mutant("ORD-4")
class _ZeroIsAbsent(Adapter):
    """per_page 0 is falsy, so the default is used."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "recall" and type(arguments["per_page"]) is int and not arguments["per_page"]:
            arguments["per_page"] = 10


@mutant("ORD-4")
class _FortyByDefault(Adapter):
    """The default page holds 40 messages."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        configured = arguments.get("thread_config") or self.options
        plain = call == "recall" and arguments["per_page"] is None and not arguments["include"]
        if plain and configured == MemoryConfig():
            arguments["per_page"] = 40


@mutant("ORD-4")
class _IgnoresThreadConfig(Adapter):
    """last_messages of thread_config is not looked at."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        config = arguments.get("thread_config")
        if isinstance(config, MemoryConfig) and config.last_messages in (None, False, 0, 1, 2, 3, 11):
            arguments["thread_config"] = replaced(config, last_messages=msgspec.UNSET)


@mutant("ORD-4", "mastra-ai/mastra#9991")
class _OffIsEverything(Adapter):
    """last_messages False brings every message."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        config = arguments.get("thread_config")
        last = config.last_messages if isinstance(config, MemoryConfig) else msgspec.UNSET
        last = self.options.last_messages if last is msgspec.UNSET else last
        alone = call == "recall" and arguments["per_page"] is None and not arguments["include"]
        if alone and last is False and arguments["page"] == 0:
            arguments["per_page"] = False


@mutant("ORD-4")
class _NegativeIsEverything(Adapter):
    """LIMIT -1: a negative per_page brings every message."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "recall" and type(arguments["per_page"]) is int and arguments["per_page"] < 0:
            arguments["per_page"] = False


@mutant("ORD-4")
class _TrueIsOne(Adapter):
    """True counts as the integer 1."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        for name in ("page", "per_page"):
            if call == "recall" and arguments[name] is True:
                arguments[name] = 1


# ORD-5


@mutant("ORD-5", "mastra-ai/mastra#19576")
class _IncludesCountAsPaged(Adapter):
    """has_more is worked out from all rows returned, included ones too."""

    def more(self, asked: Recall, matching: list[Row], page: list[Row], shown: list[Row]) -> bool:
        right = super().more(asked, matching, page, shown)
        return right and asked.page.offset + len(shown) < len(matching)


@mutant("ORD-5")
class _AFullPageMeansMore(Adapter):
    """has_more is whether the page is full."""

    def more(self, asked: Recall, matching: list[Row], page: list[Row], shown: list[Row]) -> bool:
        return bool(asked.page.per_page) and len(page) == asked.page.per_page


@mutant("ORD-5", "mastra-ai/mastra#19562")
class _TotalOfThePage(Adapter):
    """total is counted after paging."""

    def total(self, asked: Recall, matching: list[Row], page: list[Row], shown: list[Row]) -> int:
        return len(page)


@mutant("ORD-5")
class _TotalOfTheThread(Adapter):
    """total ignores the filter."""

    def total(self, asked: Recall, matching: list[Row], page: list[Row], shown: list[Row]) -> int:
        return len(self.state.rows.get(asked.thread_id, ()))


@mutant("ORD-5")
class _TotalCountsIncludes(Adapter):
    """total counts included rows beyond those that match."""

    def total(self, asked: Recall, matching: list[Row], page: list[Row], shown: list[Row]) -> int:
        return len({row.message.id for row in (*matching, *shown)})


@mutant("ORD-5")
class _NoRowsHaveMore(Adapter):
    """has_more is True for per_page 0."""

    def more(self, asked: Recall, matching: list[Row], page: list[Row], shown: list[Row]) -> bool:
        no_rows = asked.page.per_page is not False and asked.page.per_page == 0
        return bool(matching) if no_rows else super().more(asked, matching, page, shown)


# ORD-6


@mutant("ORD-6", "mastra-ai/mastra#21863")
class _OwnersAreNotChecked(Adapter):
    """resource_id is ignored by recall."""

    def own(self, asked: Recall) -> None:
        if asked.thread_id not in self.state.threads:
            super().own(asked)


@mutant("ORD-6")
class _SearchesOpenEveryThread(Adapter):
    """The owner is checked but where a recall searches."""

    def own(self, asked: Recall) -> None:
        if asked.search is None:
            super().own(asked)


@mutant("ORD-6")
class _OthersSeeAnEmptyThread(Adapter):
    """Another resource's thread is empty instead of refused: the error is swallowed."""

    def recall(self, thread_id: str, **given: Any) -> Any:
        try:
            return super().recall(thread_id, **given)
        except OwnershipMismatch:
            given["resource_id"] = None
            return super().recall("\ufffd", **given)


@mutant("ORD-6")
class _UnknownThreadFails(Adapter):
    """recall of an unknown thread raises without a resource_id too."""

    def own(self, asked: Recall) -> None:
        if asked.thread_id not in self.state.threads and asked.resource_id is None:
            raise ThreadNotFound(f"thread {asked.thread_id!r} does not exist")
        super().own(asked)


@mutant("ORD-6")
class _UnknownThreadIsEmptyForAll(Adapter):
    """recall of an unknown thread is empty with a resource_id too."""

    def own(self, asked: Recall) -> None:
        if asked.thread_id in self.state.threads:
            super().own(asked)


@mutant("ORD-3")
class _PastTheEndFails(Adapter):
    """A page past the end is refused."""

    def page(self, asked: Recall, matching: list[Row]) -> list[Row]:
        if matching and asked.page.offset >= len(matching) and asked.page.per_page:
            raise InvalidRequest("page is past the end")
        return super().page(asked, matching)
