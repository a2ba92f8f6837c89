"""The operations on threads and messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from .forms import Fill, Form, FormError, fill, resolve
from .operation import Operation, Role, struct, structs
from .types import (
    DateRange,
    Include,
    IndexConfig,
    MemoryConfig,
    MessageFilter,
    MessageRange,
    MessageUpdate,
    NewMessage,
    OrderBy,
    SemanticRecall,
    ThreadFilter,
    ThreadsConfig,
    TitleGeneration,
    WorkingMemory,
)


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


class TitleThread(Operation, frozen=True, kw_only=True, tag="title_thread"):
    """A title where there is none."""

    role: ClassVar[Role] = "write"
    thread_id: Form
    title: Form


class Settle(Operation, frozen=True, kw_only=True, tag="settle"):
    """Let the titles that the client's saves have begun be made, and wait for them."""

    role: ClassVar[Role] = "write"


class ListThreads(Operation, frozen=True, kw_only=True, tag="list_threads"):
    """A page of threads."""

    filter: Form | UnsetType = UNSET
    order_by: Form | UnsetType = UNSET
    page: Form | UnsetType = UNSET
    per_page: Form | UnsetType = UNSET

    def argument(self, name: str, form: Form) -> Any:
        """See Operation."""
        kinds = {"filter": ThreadFilter, "order_by": OrderBy}
        return struct(kinds[name], form) if name in kinds else resolve(form)


class DeleteThread(Operation, frozen=True, kw_only=True, tag="delete_thread"):
    """A thread with all that is in it."""

    role: ClassVar[Role] = "write"
    thread_id: Form


class CloneThread(Operation, frozen=True, kw_only=True, tag="clone_thread"):
    """A copy of a thread. The runtime gives the ids `label`, `label-2`, …"""

    role: ClassVar[Role] = "write"
    source_thread_id: Form
    new_thread_id: Form | UnsetType = UNSET
    resource_id: Form | UnsetType = UNSET
    title: Form | UnsetType = UNSET
    metadata: Form | UnsetType = UNSET
    message_limit: Form | UnsetType = UNSET
    start: Form | UnsetType = UNSET
    end: Form | UnsetType = UNSET
    message_ids: Form | UnsetType = UNSET
    label: str = "clone"

    def threads(self) -> Iterator[Any]:
        """See Operation."""
        yield resolve(self.source_thread_id)
        yield self.label if self.new_thread_id in (UNSET, None) else resolve(self.new_thread_id)


class ListClones(Operation, frozen=True, kw_only=True, tag="list_clones"):
    """The clones of a thread."""

    source_thread_id: Form
    resource_id: Form | UnsetType = UNSET


class SaveMessages(Operation, frozen=True, kw_only=True, tag="save_messages"):
    """A batch of messages; `{"$fill": …}` stands for many."""

    role: ClassVar[Role] = "write"
    messages: Form
    thread_config: Form | UnsetType = UNSET

    def argument(self, name: str, form: Form) -> Any:
        """See Operation."""
        if name == "thread_config":
            return config(form)
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
                batch.append(struct(NewMessage, item))
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
    thread_config: Form | UnsetType = UNSET

    def argument(self, name: str, form: Form) -> Any:
        """See Operation."""
        return config(form) if name == "thread_config" else structs(MessageUpdate, form)


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
                return structs(Include, form)
            case "filter":
                filtered = struct(MessageFilter, form)
                if isinstance(filtered, MessageFilter) and isinstance(form.get("date_range"), dict):
                    return msgspec.structs.replace(filtered, date_range=struct(DateRange, form["date_range"]))
                return filtered
            case "order_by":
                return struct(OrderBy, form)
            case "thread_config":
                return config(form)
            case _:
                return resolve(form)


class GetWorkingMemory(Operation, frozen=True, kw_only=True, tag="get_working_memory"):
    """The working memory of a thread or of its resource."""

    thread_id: Form
    resource_id: Form | UnsetType = UNSET
    thread_config: Form | UnsetType = UNSET

    def argument(self, name: str, form: Form) -> Any:
        """See Operation."""
        return config(form) if name == "thread_config" else resolve(form)


class UpdateWorkingMemory(Operation, frozen=True, kw_only=True, tag="update_working_memory"):
    """Replace the working memory of a thread or of its resource."""

    role: ClassVar[Role] = "write"
    thread_id: Form
    value: Form
    resource_id: Form | UnsetType = UNSET
    thread_config: Form | UnsetType = UNSET

    def argument(self, name: str, form: Form) -> Any:
        """See Operation."""
        return config(form) if name == "thread_config" else resolve(form)


def config(form: Form) -> Any:
    """The MemoryConfig a form stands for."""
    found = struct(MemoryConfig, form)
    if isinstance(found, MemoryConfig) and isinstance(form.get("working_memory"), dict):
        found = msgspec.structs.replace(found, working_memory=struct(WorkingMemory, form["working_memory"]))
    if isinstance(found, MemoryConfig) and isinstance(form.get("generate_title"), dict):
        found = msgspec.structs.replace(found, generate_title=struct(TitleGeneration, form["generate_title"]))
    if isinstance(found, MemoryConfig) and isinstance(form.get("threads"), dict):
        threads, title = struct(ThreadsConfig, form["threads"]), form["threads"].get("generate_title")
        if isinstance(title, dict):
            threads = ThreadsConfig(struct(TitleGeneration, title))
        found = msgspec.structs.replace(found, threads=threads)
    if not isinstance(found, MemoryConfig) or not isinstance(form.get("semantic_recall"), dict):
        return found
    given = form["semantic_recall"]
    recall = struct(SemanticRecall, given)
    if isinstance(recall, SemanticRecall):
        if isinstance(given.get("message_range"), dict):
            recall = msgspec.structs.replace(recall, message_range=struct(MessageRange, given["message_range"]))
        if isinstance(given.get("index_config"), dict):
            recall = msgspec.structs.replace(recall, index_config=struct(IndexConfig, given["index_config"]))
    return msgspec.structs.replace(found, semantic_recall=recall)
