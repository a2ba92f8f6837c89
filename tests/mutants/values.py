"""VAL: instants, ids, text and metadata that do not come back as they were given."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

from memassay.spec.errors import InvalidRequest
from memassay.spec.filters import Window
from memassay.spec.reference import Row
from memassay.spec.requests import MessageRow, Recall
from memassay.spec.types import DateRange, Message, MessageUpdate, NewMessage, Thread
from memassay.spec.values import copy_message, identifier
from memassay.spec.values import metadata as check_metadata

from .adapter import Adapter, is_message, replaced
from .mutant import mutant

MILLISECOND = timedelta(milliseconds=1)


class _Instants(Adapter):
    def instant(self, at: datetime) -> datetime:
        raise NotImplementedError

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "create_thread" and isinstance(arguments["created_at"], datetime):
            arguments["created_at"] = self.instant(arguments["created_at"])

    def message(self, message: NewMessage) -> NewMessage:
        if not isinstance(message.created_at, datetime):
            return message
        return replaced(message, created_at=self.instant(message.created_at))


@mutant("VAL-1", "TanStack/db#913")
class _RoundsMilliseconds(_Instants):
    """A finer instant is rounded to the nearest millisecond instead of floored."""

    def instant(self, at: datetime) -> datetime:
        try:
            return at + MILLISECOND if at.microsecond % 1000 >= 500 else at
        except OverflowError:
            return at


@mutant("VAL-1")
class _TruncatesTowardZero(_Instants):
    """Milliseconds since 1970 are cut toward zero, so instants before 1970 move up."""

    def instant(self, at: datetime) -> datetime:
        if at.tzinfo is None or at.year < 2 or at >= datetime(1970, 1, 1, tzinfo=UTC) or not at.microsecond % 1000:
            return at
        return at + MILLISECOND


@mutant("VAL-1")
class _DropsTheOffset(_Instants):
    """The clock face is kept and the offset forgotten: 21:00+09:00 becomes 21:00 UTC."""

    def instant(self, at: datetime) -> datetime:
        return at if at.tzinfo is None else at.replace(tzinfo=UTC)


@mutant("VAL-1", "twentyhq/twenty#21083")
class _KeepsMicroseconds(Adapter):
    """Instants are stored and returned with microseconds."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        batch = list(messages) if isinstance(messages, list | tuple) else []
        self._raw = {message.id: message.created_at for message in batch if _dated(message)}
        return super().save_messages(messages, **config)

    def _save(self, row: MessageRow, now: datetime) -> set[str]:
        if row.created_at is not None and (fine := self._raw.get(row.id)):
            row = replaced(row, created_at=fine.astimezone(UTC))
        return super()._save(row, now)


@mutant("VAL-1", "elastic/elasticsearch#10005")
class _SortsByMicroseconds(Adapter):
    """Milliseconds are returned but the stored order still goes by the finer digits."""

    _fine = 0

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        batch = list(messages) if isinstance(messages, list | tuple) else []
        self._raw = {m.id: m.created_at.microsecond % 1000 for m in batch if _dated(m) and m.created_at}
        return super().save_messages(messages, **config)

    def _save(self, row: MessageRow, now: datetime) -> set[str]:
        self._fine = self._raw.get(row.id, 0)
        return super()._save(row, now)

    def _position(self) -> int:
        return super()._position() + self._fine * 10**9


@mutant("VAL-1b", "elastic/elasticsearch#78921")
class _KeepsMicrosecondsInBounds(Adapter):
    """Stored instants are floored, the bounds of a date range are not."""

    _range: DateRange | None = None

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call == "recall":
            self._range = getattr(arguments["filter"], "date_range", None)

    def matching(self, asked: Recall) -> list[Row]:
        if (fine := self._range) is not None:
            asked = replaced(asked, window=Window(fine.start, fine.end, fine.start_exclusive, fine.end_exclusive))
        return super().matching(asked)


@mutant("VAL-1")
class _ReturnsLocalTime(Adapter):
    """Instants are returned in the zone of the session."""

    def shown(self, message: Message) -> Message:
        try:
            local = message.created_at.astimezone(timezone(timedelta(hours=9)))
        except OverflowError:
            return copy_message(message)
        return replaced(copy_message(message), created_at=local)


@mutant("VAL-1a")
class _TakesNaiveForUtc(_Instants):
    """An instant without a zone is taken for UTC."""

    def instant(self, at: datetime) -> datetime:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at


@mutant("VAL-1a")
class _OverflowsTheCalendar(_Instants):
    """An instant outside the years 0001 to 9999 in UTC raises the language's own error."""

    def instant(self, at: datetime) -> datetime:
        return at if at.tzinfo is None else at.astimezone(UTC)


class _Ids(Adapter):
    def fold(self, name: str) -> str:
        raise NotImplementedError

    def _existing(self, name: Any, names: Mapping[str, Any]) -> Any:
        """The name that the engine takes this one for."""
        if not isinstance(name, str) or name in names:
            return name
        return next((other for other in names if self.fold(other) == self.fold(name)), name)

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        for field in ("thread_id", *(("id",) if call == "create_thread" else ())):
            if field in arguments:
                arguments[field] = self._existing(arguments[field], self.state.threads)
        if call == "delete_messages" and isinstance(arguments["ids"], list):
            named = cast("list[Any]", arguments["ids"])
            arguments["ids"] = [self._existing(name, self.state.by_id) for name in named]
        if call == "recall" and isinstance(arguments["include"], list):
            entries = cast("list[Any]", arguments["include"])
            arguments["include"] = [replaced(e, id=self._existing(e.id, self.state.by_id)) for e in entries]

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        if not isinstance(messages, list | tuple):
            return super().save_messages(messages, **config)
        known: dict[str, Any] = dict(self.state.by_id)
        batch: list[Any] = []
        for message in messages:
            if is_message(message):
                message = replaced(
                    message,
                    id=self._existing(message.id, known),
                    thread_id=self._existing(message.thread_id, self.state.threads),
                )
                known[message.id] = True
            batch.append(message)
        return super().save_messages(batch, **config)

    def change(self, update: MessageUpdate) -> MessageUpdate:
        return replaced(update, id=self._existing(update.id, self.state.by_id))


@mutant("VAL-2")
class _FoldsTheCaseOfIds(_Ids):
    """Ids are compared without regard to case."""

    def fold(self, name: str) -> str:
        return name.casefold()


@mutant("VAL-2")
class _IgnoresTrailingSpaceInIds(_Ids):
    """Ids are compared as a padded column compares them: trailing spaces do not count."""

    def fold(self, name: str) -> str:
        return name.rstrip(" ")


@mutant("VAL-2")
class _NormalisesIds(_Ids):
    """Ids of one Unicode normal form are one id."""

    def fold(self, name: str) -> str:
        return unicodedata.normalize("NFC", name)


@mutant("VAL-2b", "elastic/elasticsearch#24256")
class _ComparesTheStartOfIds(_Ids):
    """Only the first 191 characters of an id are indexed and compared."""

    def fold(self, name: str) -> str:
        return name[:191]


class _Content(Adapter):
    def stored(self, content: str) -> str:
        raise NotImplementedError

    def message(self, message: NewMessage) -> NewMessage:
        if not isinstance(message.content, str):
            return message
        return replaced(message, content=self.stored(message.content))


@mutant("VAL-2")
class _StripsContent(_Content):
    """White space around content is lost."""

    def stored(self, content: str) -> str:
        return content.strip()


@mutant("VAL-2")
class _NormalisesContent(_Content):
    """Content is stored in Unicode normal form C."""

    def stored(self, content: str) -> str:
        return content if "\0" in content else unicodedata.normalize("NFC", content)


@mutant("VAL-2", "mastra-ai/mastra#11563")
class _CutsContentAtAstral(_Content):
    """Three-byte UTF-8: content ends before its first character beyond U+FFFF."""

    def stored(self, content: str) -> str:
        astral = next((i for i, character in enumerate(content) if character > "\uffff"), len(content))
        return content[:astral]


@mutant("VAL-2a", "mastra-ai/mastra#21726")
class _CutsContentAtNul(_Content):
    """U+0000 is taken, and ends the content."""

    def stored(self, content: str) -> str:
        return content.partition("\0")[0]


@mutant("VAL-2a", "mastra-ai/mastra#21726")
class _ReplacesSurrogates(_Content):
    """A lone surrogate is stored as a question mark."""

    def stored(self, content: str) -> str:
        return content.encode(errors="replace").decode()


@mutant("VAL-2a")
class _CutsLongIds(Adapter):
    """An id of more than 255 characters is cut to 255."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        for name, value in arguments.items():
            if name.endswith("id") and isinstance(value, str):
                arguments[name] = value[:255]


@mutant("VAL-2a")
class _ReadsAnyId(Adapter):
    """A read with an id that cannot exist finds nothing instead of refusing it."""

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call in ("get_thread", "recall"):
            try:
                identifier(arguments["thread_id"], "thread_id")
            except InvalidRequest:
                arguments["thread_id"] = "\ufffd"


@mutant("VAL-2b")
class _CutsLongContent(_Content):
    """Content is cut at 65,535 characters."""

    def stored(self, content: str) -> str:
        return content[:65_535]


class _Metadata(Adapter):
    """Changes metadata on its way in; `checked` leaves alone what is to be refused."""

    checked = True

    def stored(self, value: Any) -> Any:
        raise NotImplementedError

    def _stored(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if self.checked:
            try:
                check_metadata(cast(object, value))
            except InvalidRequest:
                return cast(object, value)
        return self.stored(value)

    def given(self, call: str, arguments: dict[str, Any]) -> None:
        if call in ("create_thread", "update_thread"):
            arguments["metadata"] = self._stored(arguments["metadata"])

    def message(self, message: NewMessage) -> NewMessage:
        return replaced(message, metadata=self._stored(message.metadata))

    def change(self, update: MessageUpdate) -> MessageUpdate:
        return replaced(update, metadata=self._stored(update.metadata))


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A JSON value with its scalars changed."""
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in cast("list[Any]", value)]
    return change(value)


@mutant("VAL-3", "headroomlabs-ai/headroom#3240")
class _BooleansBecomeIntegers(_Metadata):
    """A column without booleans: true comes back as 1."""

    def stored(self, value: Any) -> Any:
        return _mapped(value, lambda item: int(item) if isinstance(item, bool) else item)


@mutant("VAL-3", "mastra-ai/mastra#19991")
class _DropsNulls(_Metadata):
    """Keys whose value is null are not stored."""

    def stored(self, value: Any) -> Any:
        return {key: item for key, item in value.items() if item is not None}


@mutant("VAL-3", "elastic/elasticsearch#63530")
class _DotsBecomeObjects(_Metadata):
    """A dot in a key means an object inside an object."""

    def stored(self, value: Any) -> Any:
        nested: dict[str, Any] = {}
        for key, item in value.items():
            outer, dot, inner = key.partition(".")
            nested[outer] = {inner: item} if dot else item
        return nested


@mutant("VAL-3")
class _DropsEmptyContainers(_Metadata):
    """Empty arrays and objects are not stored."""

    def stored(self, value: Any) -> Any:
        return {key: item for key, item in value.items() if item not in ([], {})}


@mutant("VAL-3")
class _FifteenDigits(_Metadata):
    """Numbers go through fifteen significant digits."""

    def stored(self, value: Any) -> Any:
        return _mapped(value, lambda item: float(f"{item:.15g}") if type(item) is float else item)


@mutant("VAL-3")
class _NestedBecomesText(_Metadata):
    """Arrays and objects inside metadata come back as text."""

    def stored(self, value: Any) -> Any:
        return {k: repr(cast(object, v)) if isinstance(v, dict | list) else v for k, v in value.items()}


@mutant("VAL-3a")
class _NanBecomesNull(_Metadata):
    """NaN and infinities are stored as null."""

    checked = False

    def stored(self, value: Any) -> Any:
        return _mapped(value, lambda item: None if isinstance(item, float) and item - item != 0 else item)


@mutant("VAL-3a")
class _TuplesBecomeArrays(_Metadata):
    """A tuple is stored as an array."""

    checked = False

    def stored(self, value: Any) -> Any:
        return _mapped(value, lambda item: [*cast("tuple[Any, ...]", item)] if isinstance(item, tuple) else item)


@mutant("VAL-3a")
class _BigIntegersBecomeFloats(_Metadata):
    """Integers beyond 2^53 − 1 are stored as the nearest float."""

    checked = False

    def stored(self, value: Any) -> Any:
        return _mapped(value, lambda item: float(item) if type(item) is int and abs(item) >= 2**53 else item)


@mutant("VAL-3a")
class _DatesBecomeText(_Metadata):
    """A datetime is stored as text."""

    checked = False

    def stored(self, value: Any) -> Any:
        return _mapped(value, lambda item: item.isoformat() if isinstance(item, datetime) else item)


@mutant("VAL-4")
class _KeepsTheCallersObject(Adapter):
    """The metadata object that was passed in becomes the store's own."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        batch = list(messages) if isinstance(messages, list | tuple) else []
        self._passed = {m.id: m.metadata for m in batch if is_message(m)}
        return super().save_messages(messages, **config)

    def _save(self, row: MessageRow, now: datetime) -> set[str]:
        passed = self._passed.get(row.id)
        return super()._save(replaced(row, metadata=passed) if passed else row, now)


@mutant("VAL-4")
class _ReturnsItsOwnThread(Adapter):
    """get_thread returns the stored object itself, which the caller may then change."""

    def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        found = super().get_thread(thread_id, resource_id=resource_id)
        return found and self.state.threads[found.id]


@mutant("VAL-4")
class _ReturnsItsOwnMessages(Adapter):
    """recall returns the stored objects themselves."""

    def shown(self, message: Message) -> Message:
        return message


def _dated(message: Any) -> bool:
    return is_message(message) and isinstance(message.created_at, datetime)
