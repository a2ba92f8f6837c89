"""Programs: tuples of typed operations on symbolic values. Every subsequence of a program is a program."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, cast

import msgspec
from msgspec import UNSET, UnsetType

from .forms import Fill, Form, FormError, fill, resolve, show
from .protocols import Memory
from .types import (
    DateRange,
    Include,
    MemoryConfig,
    MessageFilter,
    MessageUpdate,
    NewMessage,
    OrderBy,
    SemanticRecall,
    ThreadFilter,
)

Role = Literal["write", "read", "observe", "control"]


class Operation(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="op", omit_defaults=True, forbid_unknown_fields=True
):
    """One call on a store, or a step of the world around it. Fields are forms; an absent one is not passed.

    `client` is which client of the namespace makes the call.
    """

    client: int = 0
    role: ClassVar[Role] = "read"

    def arguments(self) -> dict[str, Any]:
        """The call's arguments, resolved afresh."""
        return {name: self.argument(name, form) for name, form in self.given().items()}

    def given(self) -> dict[str, Form]:
        """The fields that are set, as forms."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name not in ("client", "label")}
        return {name: form for name, form in fields.items() if form is not UNSET}

    def argument(self, name: str, form: Form) -> Any:
        """One argument, resolved; operations with structured arguments override this."""
        return resolve(form)

    def call(self, memory: Memory, arguments: dict[str, Any]) -> Any:
        """Make the call."""
        return getattr(memory, self.name)(**arguments)

    @property
    def name(self) -> str:
        """The operation's name, as in a case file."""
        return cast(str, self.__struct_config__.tag)

    def threads(self) -> Iterator[Any]:
        """Ids of the threads this operation names, valid or not."""
        for field in ("thread_id", "source_thread_id", "new_thread_id", "id"):
            form = getattr(self, field, UNSET)
            if form is not UNSET and form is not None:
                yield resolve(form)

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={show(form)}" for name, form in self.given().items())
        return f"{self.name}({shown})" + (f" by client {self.client}" if self.client else "")


def _struct(kind: type[Any], form: Form) -> Any:
    """A plain object as the keyword arguments of a struct; any other form as itself, for calls that are wrong."""
    if not isinstance(form, dict) or next(iter(cast("dict[str, Form]", form)), "").startswith("$"):
        return resolve(form)
    try:
        return kind(**{name: resolve(item) for name, item in cast("dict[str, Form]", form).items()})
    except TypeError as error:
        raise FormError(f"{kind.__name__}: {error}") from error


def _structs(kind: type[Any], form: Form) -> Any:
    return [_struct(kind, item) for item in cast("list[Form]", form)] if isinstance(form, list) else resolve(form)


class CreateThread(Operation, frozen=True, kw_only=True, tag="create_thread"):
    """`label` is the id the runtime gives when none is named."""

    role: ClassVar[Role] = "write"
    resource_id: Form
    id: Form | UnsetType = UNSET
    title: Form | UnsetType = UNSET
    metadata: Form | UnsetType = UNSET
    created_at: Form | UnsetType = UNSET
    label: str = "generated"

    def threads(self) -> Iterator[Any]:
        """See Operation."""
        yield self.label if self.id in (UNSET, None) else resolve(self.id)


class GetThread(Operation, frozen=True, kw_only=True, tag="get_thread"):
    """One thread by id."""

    thread_id: Form
    resource_id: Form | UnsetType = UNSET


class UpdateThread(Operation, frozen=True, kw_only=True, tag="update_thread"):
    """Title, and a merge of metadata."""

    role: ClassVar[Role] = "write"
    thread_id: Form
    title: Form | UnsetType = UNSET
    metadata: Form | UnsetType = UNSET


class ListThreads(Operation, frozen=True, kw_only=True, tag="list_threads"):
    """A page of threads."""

    filter: Form | UnsetType = UNSET
    order_by: Form | UnsetType = UNSET
    page: Form | UnsetType = UNSET
    per_page: Form | UnsetType = UNSET

    def argument(self, name: str, form: Form) -> Any:
        """See Operation."""
        kinds = {"filter": ThreadFilter, "order_by": OrderBy}
        return _struct(kinds[name], form) if name in kinds else resolve(form)


class DeleteThread(Operation, frozen=True, kw_only=True, tag="delete_thread"):
    """A thread with all that is in it."""

    role: ClassVar[Role] = "write"
    thread_id: Form


class CloneThread(Operation, frozen=True, kw_only=True, tag="clone_thread"):
    """A copy of a thread."""

    role: ClassVar[Role] = "write"
    source_thread_id: Form
    new_thread_id: Form | UnsetType = UNSET
    title: Form | UnsetType = UNSET
    message_limit: Form | UnsetType = UNSET


class SaveMessages(Operation, frozen=True, kw_only=True, tag="save_messages"):
    """A batch of messages; `{"$fill": …}` stands for many."""

    role: ClassVar[Role] = "write"
    messages: Form

    def argument(self, name: str, form: Form) -> Any:
        """See Operation."""
        if not isinstance(form, list):
            return resolve(form)
        batch: list[Any] = []
        for item in cast("list[Form]", form):
            if isinstance(item, dict) and "$fill" in item:
                try:
                    batch.extend(fill(msgspec.convert(item["$fill"], Fill)))
                except msgspec.ValidationError as error:
                    raise FormError(f"cannot read $fill: {error}") from error
            else:
                batch.append(_struct(NewMessage, item))
        return batch

    def threads(self) -> Iterator[Any]:
        """See Operation."""
        messages: Form = self.messages
        if isinstance(messages, list):
            for item in cast("list[Form]", messages):
                if isinstance(item, dict):
                    pairs = cast("dict[str, Form]", item)
                    yield resolve(pairs.get("$fill", pairs).get("thread_id"))


class UpdateMessages(Operation, frozen=True, kw_only=True, tag="update_messages"):
    """A batch of changes."""

    role: ClassVar[Role] = "write"
    updates: Form

    def argument(self, name: str, form: Form) -> Any:
        """See Operation."""
        return _structs(MessageUpdate, form)


class DeleteMessages(Operation, frozen=True, kw_only=True, tag="delete_messages"):
    """Messages by id."""

    role: ClassVar[Role] = "write"
    ids: Form


class ClearMessages(Operation, frozen=True, kw_only=True, tag="clear_messages"):
    """All messages of a thread."""

    role: ClassVar[Role] = "write"
    thread_id: Form


class Recall(Operation, frozen=True, kw_only=True, tag="recall"):
    """A page of messages and what is included with it."""

    thread_id: Form
    resource_id: Form | UnsetType = UNSET
    vector_search_string: Form | UnsetType = UNSET
    page: Form | UnsetType = UNSET
    per_page: Form | UnsetType = UNSET
    include: Form | UnsetType = UNSET
    filter: Form | UnsetType = UNSET
    order_by: Form | UnsetType = UNSET
    thread_config: Form | UnsetType = UNSET

    def argument(self, name: str, form: Form) -> Any:
        """See Operation."""
        match name:
            case "include":
                return _structs(Include, form)
            case "filter":
                filtered = _struct(MessageFilter, form)
                if isinstance(filtered, MessageFilter) and isinstance(form.get("date_range"), dict):
                    return msgspec.structs.replace(filtered, date_range=_struct(DateRange, form["date_range"]))
                return filtered
            case "order_by":
                return _struct(OrderBy, form)
            case "thread_config":
                return config(form)
            case _:
                return resolve(form)


class GetWorkingMemory(Operation, frozen=True, kw_only=True, tag="get_working_memory"):
    """A thread's working memory."""

    thread_id: Form


class UpdateWorkingMemory(Operation, frozen=True, kw_only=True, tag="update_working_memory"):
    """Replace a thread's working memory."""

    role: ClassVar[Role] = "write"
    thread_id: Form
    value: Form


class Tick(Operation, frozen=True, kw_only=True, tag="tick"):
    """Move the clock; negative is backwards."""

    role: ClassVar[Role] = "control"
    ms: int


class Reopen(Operation, frozen=True, kw_only=True, tag="reopen"):
    """Close every client and open anew; nothing happens on a store that is not durable."""

    role: ClassVar[Role] = "control"


class Observe(Operation, frozen=True, kw_only=True, tag="observe"):
    """Read all there is: every thread named so far, its messages oldest first, and the list of threads."""

    role: ClassVar[Role] = "observe"


Concurrent = UpdateThread | UpdateMessages | SaveMessages


class Together(Operation, frozen=True, kw_only=True, tag="together"):
    """Operations at the same time, each by a client of its own. Their effects must commute."""

    role: ClassVar[Role] = "write"
    operations: list[Concurrent]

    def given(self) -> dict[str, Form]:
        """See Operation."""
        return {}

    def threads(self) -> Iterator[Any]:
        """See Operation."""
        for operation in self.operations:
            yield from operation.threads()

    def __str__(self) -> str:
        return f"{self.name}(" + ", ".join(str(operation) for operation in self.operations) + ")"


AnyOperation = (
    CreateThread
    | GetThread
    | UpdateThread
    | ListThreads
    | DeleteThread
    | CloneThread
    | SaveMessages
    | UpdateMessages
    | DeleteMessages
    | ClearMessages
    | Recall
    | GetWorkingMemory
    | UpdateWorkingMemory
    | Tick
    | Reopen
    | Observe
    | Together
)


class Program(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What to do to an empty namespace. `options` are the store's, a form of MemoryConfig's fields."""

    operations: tuple[AnyOperation, ...]
    options: dict[str, Form] = {}

    @property
    def hash(self) -> str:
        """Hex digest of the program's JSON."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:16]

    def __str__(self) -> str:
        lines = [f"open({show(self.options)})"] if self.options else []
        return "\n".join([*lines, *(str(operation) for operation in self.operations)])


def config(form: Form) -> Any:
    """The MemoryConfig a form stands for."""
    found = _struct(MemoryConfig, form)
    if isinstance(found, MemoryConfig) and isinstance(form.get("semantic_recall"), dict):
        return msgspec.structs.replace(found, semantic_recall=_struct(SemanticRecall, form["semantic_recall"]))
    return found
