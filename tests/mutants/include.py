"""INC: windows that cut wrongly, reach into other threads, or come back twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from memassay.spec.errors import InvalidRequest
from memassay.spec.reference import Row
from memassay.spec.requests import Inclusion, Recall
from memassay.spec.types import Hit, Include

from .adapter import Adapter, replaced
from .mutant import mutant


def _around(rows: list[Row], index: int, before: int, after: int) -> list[Row]:
    return rows[max(0, index - before) : index + after + 1]


class _Windows(Adapter):
    def around(self, asked: Recall, rows: list[Row], index: int, before: int, after: int) -> list[Row]:
        raise NotImplementedError

    def window(self, asked: Recall, entry: Inclusion) -> list[Row]:
        if not super().window(asked, entry):
            return []
        rows, index = self.state.place(self.state.by_id[entry.id])
        return self.around(asked, rows, index, entry.before, entry.after)


@mutant("INC-1", "mastra-ai/mastra#14022")
class _WindowsByTimeAlone(_Windows):
    """previous are rows at or before the instant, next are rows after it: ties count as previous."""

    def around(self, asked: Recall, rows: list[Row], index: int, before: int, after: int) -> list[Row]:
        target = rows[index]
        at = target.message.created_at
        earlier = [row for row in rows if row is not target and row.message.created_at <= at]
        later = [row for row in rows if row.message.created_at > at]
        return [*earlier[max(0, len(earlier) - before) :], target, *later[:after]]


@mutant("INC-1", "mastra-ai/mastra#14022")
class _WindowsById(_Windows):
    """Within a window messages of one instant are neighbours by id."""

    def around(self, asked: Recall, rows: list[Row], index: int, before: int, after: int) -> list[Row]:
        target = rows[index]
        rows = sorted(rows, key=lambda row: (row.message.created_at, row.message.id))
        return _around(rows, rows.index(target), before, after)


@mutant("INC-1")
class _WindowsWithinTheFilter(_Windows):
    """Neighbours are taken from the rows that the filter lets through."""

    def around(self, asked: Recall, rows: list[Row], index: int, before: int, after: int) -> list[Row]:
        target = rows[index]
        kept = self.matching(replaced(asked, thread_id=target.message.thread_id))
        rows = [row for row in rows if row is target or row in kept]
        return _around(rows, rows.index(target), before, after)


@mutant("INC-1")
class _WindowsSwapped(_Windows):
    """with_previous_messages and with_next_messages are taken for each other."""

    def around(self, asked: Recall, rows: list[Row], index: int, before: int, after: int) -> list[Row]:
        return _around(rows, index, after, before)


@mutant("INC-1")
class _WindowsWrapAround(_Windows):
    """A window that would begin before the first row is empty: a negative index."""

    def around(self, asked: Recall, rows: list[Row], index: int, before: int, after: int) -> list[Row]:
        return rows[index - before : index + after + 1]


@mutant("INC-1")
class _TwoNeighboursByDefault(Adapter):
    """Two neighbours on each side without a vector search too."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "recall" and isinstance(arguments["include"], list):
            entries = cast("list[Any]", arguments["include"])
            arguments["include"] = [_with_neighbours(entry) for entry in entries]


def _with_neighbours(entry: Any) -> Any:
    if not isinstance(entry, Include):
        return entry
    before, after = entry.with_previous_messages, entry.with_next_messages
    return replaced(
        entry,
        with_previous_messages=2 if before is None else before,
        with_next_messages=2 if after is None else after,
    )


@mutant("INC-1", "mastra-ai/mastra#20303")
class _IncludesFromAnyThread(Adapter):
    """A message is included by its id, whatever thread it is in."""

    def window(self, asked: Recall, entry: Inclusion) -> list[Row]:
        row = self.state.by_id.get(entry.id)
        if row is None or asked.resource_id not in (None, row.message.resource_id):
            return []
        return super().window(asked, replaced(entry, thread_id=row.message.thread_id))


@mutant("INC-1", "mastra-ai/mastra#20303")
class _IncludesFromThisThreadAlone(Adapter):
    """thread_id of an entry is ignored: messages of other threads are never included."""

    def window(self, asked: Recall, entry: Inclusion) -> list[Row]:
        return super().window(asked, entry) if entry.thread_id == asked.thread_id else []


@mutant("INC-1")
class _UnknownIncludeFails(Adapter):
    """An unknown id among the included is an error."""

    def window(self, asked: Recall, entry: Inclusion) -> list[Row]:
        if entry.id not in self.state.by_id:
            raise InvalidRequest(f"message {entry.id!r} does not exist")
        return super().window(asked, entry)


@mutant("INC-2")
class _RepeatsIncludedRows(Adapter):
    """A message in the page and in a window, or in two windows, comes back twice."""

    def _union(self, asked: Recall, page: list[Row], hits: Sequence[Hit] = ()) -> list[Row]:
        rows = [*page, *(row for entry in asked.include for row in self.window(asked, entry))]
        if not asked.include:
            return super()._union(asked, page, hits)
        return sorted(rows, key=self.rank, reverse=not asked.ascending)


@mutant("INC-2")
class _AppendsIncludedRows(Adapter):
    """Included rows come after the page, not in their place."""

    def _union(self, asked: Recall, page: list[Row], hits: Sequence[Hit] = ()) -> list[Row]:
        rows = {row.message.id: row for row in super()._union(asked, page, hits)}
        first = {row.message.id: row for row in page}
        return list((first | rows).values())


@mutant("INC-2")
class _IncludesComeOldestFirst(Adapter):
    """With include the result is always ascending."""

    def _union(self, asked: Recall, page: list[Row], hits: Sequence[Hit] = ()) -> list[Row]:
        return super()._union(replaced(asked, ascending=True) if asked.include else asked, page, hits)


@mutant("INC-2")
class _IncludesReplaceThePage(Adapter):
    """With include the page is left out."""

    def _union(self, asked: Recall, page: list[Row], hits: Sequence[Hit] = ()) -> list[Row]:
        return super()._union(asked, [] if asked.include else page, hits)


@mutant("INC-3")
class _IncludesBringTheDefaultPage(Adapter):
    """include without per_page brings the default page as well."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "recall" and arguments["include"] and arguments["per_page"] is None:
            arguments["per_page"] = 10
