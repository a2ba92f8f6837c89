"""TIM, FLT: filters that cut at the wrong instant, compare loosely, or come too late."""

from __future__ import annotations

import unicodedata
from fnmatch import translate
from re import fullmatch
from typing import Any, cast

import msgspec
from memassay.spec.errors import InvalidFilter, InvalidRequest
from memassay.spec.filters import Equals, Window, kind_of
from memassay.spec.reference import Row
from memassay.spec.requests import Recall
from memassay.spec.types import MessageFilter

from .adapter import Adapter, replaced
from .mutant import mutant

# TIM-1


class _Dates(Adapter):
    def dates(self, window: Window) -> Window:
        raise NotImplementedError

    def matching(self, asked: Recall) -> list[Row]:
        return super().matching(replaced(asked, window=self.dates(asked.window)))


@mutant("TIM-1", "mastra-ai/mastra#11479")
class _EndIsExclusive(_Dates):
    """The end of a date range is never included."""

    def dates(self, window: Window) -> Window:
        return replaced(window, end_exclusive=True)


@mutant("TIM-1")
class _StartIsExclusive(_Dates):
    """The start of a date range is never included."""

    def dates(self, window: Window) -> Window:
        return replaced(window, start_exclusive=True)


@mutant("TIM-1", "mastra-ai/mastra#14014")
class _ExclusiveIsIgnored(_Dates):
    """start_exclusive and end_exclusive are not looked at."""

    def dates(self, window: Window) -> Window:
        return replaced(window, start_exclusive=False, end_exclusive=False)


@mutant("TIM-1")
class _ExclusiveFlagsSwapped(_Dates):
    """start_exclusive acts on the end, end_exclusive on the start."""

    def dates(self, window: Window) -> Window:
        return replaced(window, start_exclusive=window.end_exclusive, end_exclusive=window.start_exclusive)


@mutant("TIM-1")
class _ReversedRangeFails(_Dates):
    """start after end is an error."""

    def dates(self, window: Window) -> Window:
        if window.start and window.end and window.start > window.end:
            raise InvalidRequest("start is after end")
        return window


@mutant("TIM-1")
class _ReversedRangeIsTurned(_Dates):
    """start after end is taken for the range between them."""

    def dates(self, window: Window) -> Window:
        if window.start and window.end and window.start > window.end:
            return replaced(window, start=window.end, end=window.start)
        return window


@mutant("TIM-1")
class _EndNeedsAStart(_Dates):
    """A range with an end alone is no range."""

    def dates(self, window: Window) -> Window:
        return window if window.start else Window()


# FLT-1


@mutant("FLT-1", "headroomlabs-ai/headroom#3240")
class _TrueIsOneInFilters(Adapter):
    """Booleans compare equal to 1 and 0."""

    def holds(self, condition: Equals, metadata: dict[str, Any]) -> bool:
        stored = metadata.get(condition.key)
        if isinstance(stored, bool | int | float) and isinstance(condition.value, bool | int | float):
            return stored == condition.value
        return super().holds(condition, metadata)


@mutant("FLT-1", "headroomlabs-ai/headroom#3240")
class _ComparesAsText(Adapter):
    """JSON scalars are compared as text: 1 is "1", true is "true"."""

    def holds(self, condition: Equals, metadata: dict[str, Any]) -> bool:
        stored = metadata.get(condition.key)
        if stored is None or condition.value is None or kind_of(stored) is None:
            return super().holds(condition, metadata)
        return super().holds(condition, metadata) or _text(stored) == _text(condition.value)


@mutant("FLT-1", "mastra-ai/mastra#19991")
class _NullIsMissing(Adapter):
    """null matches rows without the key."""

    def holds(self, condition: Equals, metadata: dict[str, Any]) -> bool:
        return condition.value is metadata.get(condition.key) is None or super().holds(condition, metadata)


@mutant("FLT-1", "mastra-ai/mastra#16376")
class _NullIsText(Adapter):
    """null matches the string "null"."""

    def holds(self, condition: Equals, metadata: dict[str, Any]) -> bool:
        if condition.value is None and metadata.get(condition.key) == "null":
            return True
        return super().holds(condition, metadata)


@mutant("FLT-1", "mastra-ai/mastra#19991")
class _NullMatchesNothing(Adapter):
    """SQL's null: nothing equals it."""

    def holds(self, condition: Equals, metadata: dict[str, Any]) -> bool:
        return condition.value is not None and super().holds(condition, metadata)


class _Loose(Adapter):
    def same(self, stored: str, wanted: str) -> bool:
        raise NotImplementedError

    def holds(self, condition: Equals, metadata: dict[str, Any]) -> bool:
        stored = metadata.get(condition.key)
        if isinstance(stored, str) and isinstance(condition.value, str):
            return self.same(stored, condition.value)
        return super().holds(condition, metadata)


@mutant("FLT-1")
class _FoldsCaseInFilters(_Loose):
    """Strings are compared without regard to case."""

    def same(self, stored: str, wanted: str) -> bool:
        return stored.casefold() == wanted.casefold()


@mutant("FLT-1")
class _TrimsInFilters(_Loose):
    """Trailing spaces do not count."""

    def same(self, stored: str, wanted: str) -> bool:
        return stored.rstrip(" ") == wanted.rstrip(" ")


@mutant("FLT-1")
class _NormalisesInFilters(_Loose):
    """Strings of one Unicode normal form are equal."""

    def same(self, stored: str, wanted: str) -> bool:
        return unicodedata.normalize("NFC", stored) == unicodedata.normalize("NFC", wanted)


@mutant("FLT-1")
class _ValuesArePatterns(_Loose):
    """LIKE: % and _ in a value are wildcards."""

    def same(self, stored: str, wanted: str) -> bool:
        if wanted in ("%", "_"):
            return fullmatch(translate(wanted.replace("%", "*").replace("_", "?")), stored) is not None
        return stored == wanted


@mutant("FLT-1")
class _ArraysMatchTheirElements(Adapter):
    """A stored array matches each of its elements."""

    def holds(self, condition: Equals, metadata: dict[str, Any]) -> bool:
        stored = metadata.get(condition.key)
        items = cast("list[Any]", stored if isinstance(stored, list) else [])
        return super().holds(condition, metadata) or any(condition.matches({condition.key: item}) for item in items)


@mutant("FLT-1")
class _IntegersAreNotFloats(Adapter):
    """1 and 1.0 are different."""

    def holds(self, condition: Equals, metadata: dict[str, Any]) -> bool:
        right = super().holds(condition, metadata)
        return right and type(metadata[condition.key]) is type(condition.value)


@mutant("FLT-1", "langchain-ai/langchain-postgres#216")
class _LastConditionWins(Adapter):
    """Of several conditions the last one counts."""

    def matching(self, asked: Recall) -> list[Row]:
        return super().matching(replaced(asked, metadata=asked.metadata[-1:]))


@mutant("FLT-1")
class _AnyConditionWill(Adapter):
    """Conditions are joined by OR."""

    def matching(self, asked: Recall) -> list[Row]:
        if not asked.metadata:
            return super().matching(asked)
        rows = super().matching(replaced(asked, metadata=()))
        return [r for r in rows if any(self.holds(condition, r.message.metadata) for condition in asked.metadata)]


# FLT-2


class _Conditions(Adapter):
    def conditions(self, metadata: dict[Any, Any]) -> dict[Any, Any]:
        raise NotImplementedError

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        narrowed = arguments.get("filter")
        if call == "recall" and isinstance(narrowed, MessageFilter) and isinstance(narrowed.metadata, dict):
            changed = self.conditions(cast("dict[Any, Any]", narrowed.metadata))
            arguments["filter"] = replaced(narrowed, metadata=changed)


@mutant("FLT-2", "langchain-ai/langgraphjs#2504")
class _IgnoresBadKeys(_Conditions):
    """A key that cannot be asked for is left out of the query."""

    def conditions(self, metadata: dict[Any, Any]) -> dict[Any, Any]:
        return {key: item for key, item in metadata.items() if isinstance(key, str) and key.isidentifier()}


@mutant("FLT-2", "langchain-ai/langgraph#8829")
class _BadFiltersMatchNothing(Adapter):
    """A filter that is not allowed finds nothing: the error is swallowed."""

    def recall(self, thread_id: str, **given: Any) -> Any:
        try:
            return super().recall(thread_id, **given)
        except InvalidFilter:
            given["filter"] = None
            return super().recall("\ufffd", **given)


@mutant("FLT-2", "mastra-ai/mastra#4244")
class _BadKeysBreakTheQuery(_Conditions):
    """A key is pasted into the query, which then does not parse."""

    def conditions(self, metadata: dict[Any, Any]) -> dict[Any, Any]:
        for key in metadata:
            if isinstance(key, str) and any(mark in key for mark in "'\"- $"):
                raise RuntimeError(f"syntax error near {key!r}")
        return metadata


@mutant("FLT-2")
class _ReservedKeysAreKeys(_Conditions):
    """__proto__, constructor and prototype are taken as any key."""

    def conditions(self, metadata: dict[Any, Any]) -> dict[Any, Any]:
        reserved = ("__proto__", "constructor", "prototype")
        return {f"reserved{key}" if key in reserved else key: item for key, item in metadata.items()}


@mutant("FLT-2")
class _NanMatchesNothing(_Conditions):
    """NaN and infinities are taken as values that no row has."""

    def conditions(self, metadata: dict[Any, Any]) -> dict[Any, Any]:
        return {k: "\ufffd" if isinstance(v, float) and v - v != 0 else v for k, v in metadata.items()}


@mutant("FLT-2")
class _NoFilterMatchesNothing(Adapter):
    """The empty filter matches no row."""

    _empty = False

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        narrowed = arguments.get("filter")
        self._empty = call == "recall" and isinstance(narrowed, MessageFilter) and narrowed.metadata == {}

    def matching(self, asked: Recall) -> list[Row]:
        return [] if self._empty else super().matching(asked)


# FLT-3


@mutant("FLT-3")
class _FiltersThePage(Adapter):
    """The metadata filter is applied to the rows of the page, after it was cut."""

    def page(self, asked: Recall, matching: list[Row]) -> list[Row]:
        if asked.page.limit is None:
            return super().page(asked, matching)
        page = super().page(asked, self.matching(replaced(asked, metadata=())))
        return [row for row in page if row in matching]


@mutant("FLT-3", "elastic/elasticsearch#24256")
class _IgnoresLongStrings(Adapter):
    """ignore_above 256: longer strings are not indexed, so nothing equals them."""

    def holds(self, condition: Equals, metadata: dict[str, Any]) -> bool:
        if isinstance(condition.value, str) and len(condition.value) > 256:
            return False
        return super().holds(condition, metadata)


@mutant("FLT-3", "huridocs/uwazi#7524")
class _ComparesTheStartOfStrings(Adapter):
    """Strings are compared by their first 256 characters."""

    def holds(self, condition: Equals, metadata: dict[str, Any]) -> bool:
        stored = metadata.get(condition.key)
        if isinstance(stored, str) and isinstance(condition.value, str):
            return stored[:256] == condition.value[:256]
        return super().holds(condition, metadata)


@mutant("FLT-3", "elastic/elasticsearch#63530")
class _TheFirstTypeWins(Adapter):
    """A key has the type of the first value written; values of other types are not indexed."""

    def holds(self, condition: Equals, metadata: dict[str, Any]) -> bool:
        rows = sorted(self.state.by_id.values(), key=lambda row: row.position)
        values = (row.message.metadata[condition.key] for row in rows if condition.key in row.message.metadata)
        first = next((kind for value in values if (kind := kind_of(value)) not in (None, "null")), condition.kind)
        return condition.kind in (first, "null") and super().holds(condition, metadata)


@mutant("FLT-3", "headroomlabs-ai/headroom#2296")
class _FiltersTheFirstSave(Adapter):
    """The index behind the filter is written on save and forgotten on update."""

    def matching(self, asked: Recall) -> list[Row]:
        rows = super().matching(replaced(asked, metadata=()))
        return [
            row
            for row in rows
            if all(self.holds(c, self._indexed.get(row.message.id, row.message.metadata)) for c in asked.metadata)
        ]

    def update_messages(self, updates: Any, **config: Any) -> Any:
        before = {name: row.message.metadata for name, row in self.state.by_id.items()}
        updated = super().update_messages(updates, **config)
        for message in updated:
            self._indexed.setdefault(message.id, before[message.id])
        return updated

    def _save(self, row: Any, now: Any) -> set[str]:
        self._indexed.pop(row.id, None)
        return super()._save(row, now)

    @property
    def _indexed(self) -> dict[str, dict[str, Any]]:
        return self.__dict__.setdefault("indexed", {})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
