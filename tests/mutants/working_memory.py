"""WM: working memory that is merged, unchecked, everybody's, or left behind."""

from __future__ import annotations

from typing import Any, Unpack

import msgspec
from memassay.spec.errors import InvalidRequest, OwnershipMismatch, ThreadNotFound
from memassay.spec.reference import Model, Owner
from memassay.spec.requests import Clone
from memassay.spec.types import CloneResult, MemoryConfig, WorkingMemory
from memassay.spec.values import identifier
from memassay.spec.working_memory import WorkingOptions, WorkingRequest, working
from msgspec import UNSET

from .adapter import Adapter, replaced
from .mutant import mutant


def _with(options: WorkingOptions, model: Model, **changed: Any) -> WorkingOptions:
    """The options of a call whose effective configuration is another, if it has one that is right."""
    given = options.get("thread_config")
    found = UNSET if given is None or not isinstance(given.working_memory, WorkingMemory) else given.working_memory
    found = model.options.working_memory if found is UNSET else found
    config = replaced(found, **changed) if isinstance(found, WorkingMemory) else WorkingMemory(True, **changed)
    return {**options, "thread_config": MemoryConfig(working_memory=config)}


# WM-1


@mutant("WM-1")
class _TemplateIsTheValue(Adapter):
    """Before the first update the template is returned."""

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        value = super().get_working_memory(thread_id, **options)
        return working(self.options, options.get("thread_config")).template if value is None else value


@mutant("WM-1")
class _EmptyIsNone(Adapter):
    """An empty value is falsy, and reads as None."""

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        return super().get_working_memory(thread_id, **options) or None


@mutant("WM-1")
class _NoneIsEmpty(Adapter):
    """What was never written reads as the empty string."""

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        return super().get_working_memory(thread_id, **options) or ""


@mutant("WM-1")
class _Appends(Adapter):
    """An update is added to the old value."""

    def remember(self, owner: Owner, value: str) -> None:
        old = self.state.working.get(owner)
        super().remember(owner, value if old is None else f"{old}\n{value}")


@mutant("WM-1")
class _KeepsTheTail(Adapter):
    """A shorter value is written over the beginning of the old one."""

    def remember(self, owner: Owner, value: str) -> None:
        super().remember(owner, value + self.state.working.get(owner, "")[len(value) :])


@mutant("WM-1")
class _TrimsTheValue(Adapter):
    """A value loses the space at its ends."""

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        trimmed = value.strip() if isinstance(value, str) else value  # pyright: ignore[reportUnnecessaryIsInstance]
        super().update_working_memory(thread_id, trimmed, **options)


@mutant("WM-1")
class _RemembersOnce(Adapter):
    """INSERT OR IGNORE: the first value stays."""

    def remember(self, owner: Owner, value: str) -> None:
        super().remember(owner, self.state.working.get(owner, value))


@mutant("WM-1")
class _UpdatesTouchTheThread(Adapter):
    """An update sets the thread's updated_at."""

    def remember(self, owner: Owner, value: str) -> None:
        super().remember(owner, value)
        if owner[0] == "thread":
            self._touch([owner[1]], self._now())


@mutant("WM-1")
class _KeptInTheMetadata(Adapter):
    """A thread's value is kept in its metadata, where everybody sees it."""

    def remember(self, owner: Owner, value: str) -> None:
        super().remember(owner, value)
        if owner[0] == "thread":
            thread = self.state.threads[owner[1]]
            metadata = thread.metadata | {"workingMemory": value}
            self.state.threads[thread.id] = replaced(thread, metadata=metadata)


@mutant("WM-1")
class _UpdatesOfNothingSucceed(Adapter):
    """UPDATE … WHERE thread_id: no row is no error."""

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        try:
            super().update_working_memory(thread_id, value, **options)
        except ThreadNotFound:
            if options.get("resource_id") is not None:
                raise


# WM-1a


@mutant("WM-1a")
class _SchemaIsIgnored(Adapter):
    """The schema is for the model's prompt alone."""

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        working(self.options, options.get("thread_config"))
        super().update_working_memory(thread_id, value, **_with(options, self, schema=None))


@mutant("WM-1a")
class _ChecksAfterTheWrite(Adapter):
    """The value is written, then checked."""

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        try:
            super().update_working_memory(thread_id, value, **options)
        except InvalidRequest:
            if isinstance(value, str) and working(self.options, options.get("thread_config")).schema is not None:  # pyright: ignore[reportUnnecessaryIsInstance]
                super().update_working_memory(thread_id, value, **_with(options, self, schema=None))
            raise


@mutant("WM-1a")
class _ChecksTypesAlone(Adapter):
    """Of the schema only the types count: what is required, or forbidden, is not looked at."""

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        schema = working(self.options, options.get("thread_config")).schema
        if schema is not None:
            loose = {key: item for key, item in schema.items() if key in ("$schema", "type", "properties")}
            options = _with(options, self, schema=loose)
        super().update_working_memory(thread_id, value, **options)


@mutant("WM-1a")
class _StoresOtherJson(Adapter):
    """Under a schema the value is stored as parsed, and written anew when it is read."""

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        super().update_working_memory(thread_id, value, **options)
        if working(self.options, options.get("thread_config")).schema is not None:
            anew = msgspec.json.encode(msgspec.json.decode(value)).decode()
            super().update_working_memory(thread_id, anew, **options)


@mutant("WM-1a")
class _RefusalsForget(Adapter):
    """The old value is deleted before the new one is checked."""

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        try:
            super().update_working_memory(thread_id, value, **options)
        except InvalidRequest as error:
            if error.clause == "WM-1a":
                self.state.note(("thread", thread_id), None)
            raise


# WM-1b


@mutant("WM-1b")
class _ScopeIsThread(Adapter):
    """Scope resource is not looked at."""

    def working_owner(self, asked: WorkingRequest) -> Owner | None:
        return super().working_owner(replaced(asked, scope="thread"))


@mutant("WM-1b")
class _ScopeIsResource(Adapter):
    """All threads of a resource share their values, whatever the scope is."""

    def working_owner(self, asked: WorkingRequest) -> Owner | None:
        return super().working_owner(replaced(asked, scope="resource"))


@mutant("WM-1b")
class _OneForAllResources(Adapter):
    """Values of scope resource are keyed by their scope alone."""

    def working_owner(self, asked: WorkingRequest) -> Owner | None:
        owner = super().working_owner(asked)
        return ("resource", "") if owner is not None and owner[0] == "resource" else owner


@mutant("WM-1b")
class _FallsBackToTheResource(Adapter):
    """A thread without a value shows its resource's."""

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        value = super().get_working_memory(thread_id, **options)
        if value is None:
            value = super().get_working_memory(thread_id, **_with(options, self, scope="resource"))
        return value


@mutant("WM-1b", "mastra-ai/mastra#21863")
class _OwnersAreNotAsked(Adapter):
    """resource_id is not compared with the thread's."""

    def working_owner(self, asked: WorkingRequest) -> Owner | None:
        return super().working_owner(replaced(asked, resource_id=None))


@mutant("WM-1b")
class _StrangersReadNothing(Adapter):
    """For another resource's thread there is an empty answer instead of an error."""

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        try:
            return super().get_working_memory(thread_id, **options)
        except (OwnershipMismatch, ThreadNotFound):
            return None


# WM-1c


@mutant("WM-1c")
class _OutlivesItsThread(Adapter):
    """Deleting a thread leaves its value, which a thread of the same id finds."""

    def delete_thread(self, thread_id: str) -> bool:
        identifier(thread_id, "thread_id")
        kept = self.state.working.get(("thread", thread_id))
        deleted = super().delete_thread(thread_id)
        if kept is not None:
            self.state.note(("thread", thread_id), kept)
        return deleted


@mutant("WM-1c")
class _TakesTheResourcesAlong(Adapter):
    """Deleting a thread deletes the value of its resource, too."""

    def delete_thread(self, thread_id: str) -> bool:
        identifier(thread_id, "thread_id")
        thread = self.state.threads.get(thread_id)
        if thread is not None:
            self.state.note(("resource", thread.resource_id), None)
        return super().delete_thread(thread_id)


@mutant("WM-1c")
class _DiesWithTheLastThread(Adapter):
    """The resource's value goes when no thread of the resource is left."""

    def delete_thread(self, thread_id: str) -> bool:
        identifier(thread_id, "thread_id")
        thread = self.state.threads.get(thread_id)
        deleted = super().delete_thread(thread_id)
        if thread is not None and all(each.resource_id != thread.resource_id for each in self.state.threads.values()):
            self.state.note(("resource", thread.resource_id), None)
        return deleted


@mutant("WM-1c")
class _ClearedWithTheMessages(Adapter):
    """clear_messages deletes the thread's value."""

    def clear_messages(self, thread_id: str) -> int:
        cleared = super().clear_messages(thread_id)
        self.state.note(("thread", thread_id), None)
        return cleared


# WM-1d


class _Clones(Adapter):
    def copied(self, asked: Clone, clone: str) -> None:
        """What a clone gets."""

    def _clone(self, asked: Clone) -> CloneResult:
        result = super()._clone(asked)
        self.copied(asked, result.thread.id)
        return result


@mutant("WM-1d")
class _ClonesForget(_Clones):
    """A clone has no value."""

    def copied(self, asked: Clone, clone: str) -> None:
        self.state.note(("thread", clone), None)


@mutant("WM-1d")
class _ClonesOfNothingForget(_Clones):
    """A clone has the value only if it has messages."""

    def copied(self, asked: Clone, clone: str) -> None:
        if not self.state.rows[clone]:
            self.state.note(("thread", clone), None)


@mutant("WM-1d")
class _ClonesKeepReading(Adapter):
    """A clone that was not updated yet reads its source's value, whatever that is now."""

    def remembered(self, owner: Owner) -> str | None:
        thread = self.state.threads.get(owner[1]) if owner[0] == "thread" else None
        if thread is None or thread.clone is None or _own(owner) in self.state.working:
            return super().remembered(owner)
        return super().remembered(("thread", thread.clone.source_thread_id))

    def remember(self, owner: Owner, value: str) -> None:
        self.state.note(_own(owner), "")
        super().remember(owner, value)


def _own(owner: Owner) -> Owner:
    """Where it is noted that a clone was updated."""
    return "resource", f"\0{owner}"


@mutant("WM-1d")
class _ClonesMoveTheValue(_Clones):
    """The value moves to the clone."""

    def copied(self, asked: Clone, clone: str) -> None:
        self.state.note(("thread", asked.source), None)


# WM-1e


@mutant("WM-1e")
class _OnByDefault(Adapter):
    """Working memory is on unless it is switched off."""

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        return super().get_working_memory(thread_id, **self._on(options))

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        super().update_working_memory(thread_id, value, **self._on(options))

    def _on(self, options: WorkingOptions) -> WorkingOptions:
        given = options.get("thread_config")
        unset = self.options.working_memory is UNSET and (given is None or given.working_memory is UNSET)
        return _with(options, self) if unset else options


@mutant("WM-1e")
class _OffReadsAsNone(Adapter):
    """Where working memory is off it reads as None."""

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        given = options.get("thread_config")
        own = self.options.working_memory if given is None or given.working_memory is UNSET else given.working_memory
        if own is UNSET or (isinstance(own, WorkingMemory) and own.enabled is False):  # pyright: ignore[reportUnnecessaryIsInstance]
            identifier(thread_id, "thread_id")
            return None
        return super().get_working_memory(thread_id, **options)


@mutant("WM-1e")
class _TemplateBeatsSchema(Adapter):
    """A template and a schema together are taken, and the schema is not looked at."""

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        return super().get_working_memory(thread_id, **self._one(options))

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        super().update_working_memory(thread_id, value, **self._one(options))

    def _one(self, options: WorkingOptions) -> WorkingOptions:
        given = options.get("thread_config")
        found = UNSET if given is None else given.working_memory
        both = isinstance(found, WorkingMemory) and found.template is not None and found.schema is not None
        return _with(options, self, schema=None) if both else options


@mutant("WM-1e")
class _CallsCannotEnable(Adapter):
    """thread_config is not looked at: the store's options alone count."""

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        working(self.options)
        return super().get_working_memory(thread_id, **options)


# WM-1f, CON-1c


@mutant("WM-1f")
class _NotesAreNotFlushed(Adapter):
    """Values that a client wrote are gone when it closes."""

    _written: tuple[Owner, ...] = ()

    def remember(self, owner: Owner, value: str) -> None:
        super().remember(owner, value)
        self._written += (owner,)

    def close(self) -> None:
        for owner in self._written:
            self.state.note(owner, None)


@mutant("CON-1c")
class _NotesAreCached(Adapter):
    """A client keeps the value it has read or written, until the next time but one that it is asked."""

    def get_working_memory(self, thread_id: str, **options: Unpack[WorkingOptions]) -> str | None:
        value = super().get_working_memory(thread_id, **options)
        seen = self.__dict__.setdefault("seen", {})
        key = thread_id, str(options)
        found = seen.get(key, value)
        seen[key] = value
        return found

    def update_working_memory(self, thread_id: str, value: str, **options: Unpack[WorkingOptions]) -> None:
        super().update_working_memory(thread_id, value, **options)
        self.__dict__.setdefault("seen", {}).clear()
