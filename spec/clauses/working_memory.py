"""WM: working memory, a note that a thread or a resource keeps beside its messages."""

from __future__ import annotations

from .model import Clause

CLAUSES = (
    Clause(
        id="WM-1",
        title="working memory is replaced whole",
        statement=(
            "get_working_memory is None until the first update, then the value of the last one, exactly; the empty "
            "string is a value. An update replaces the value whole and changes nothing else: not updated_at, not "
            "metadata. A template is not a value. A thread that is unknown has none, and updating it is "
            "ThreadNotFound."
        ),
        source="recall reference: workingMemory",
        level="smoke",
        requires="working_memory",
        applies=("working.get", "working.update", "refused.WM-1"),
        discriminators={
            "a thread whose working memory was never updated": "working.none",
            "a value": "working.value",
            "the empty string": "working.empty",
            "a value that replaced a longer one": "working.shorter",
            "an unknown thread read": "working.unknown",
            "an unknown thread updated": "refused.WM-1",
        },
    ),
    Clause(
        id="WM-1a",
        title="a schema is kept to",
        statement=(
            "With a JSON Schema the value is the JSON text of what satisfies it, and comes back as it was given. "
            "Any other is InvalidRequest, and the old value stays. A schema is of draft 7 unless $schema names "
            "another; it may refer to nothing outside of itself."
        ),
        source="recall reference: workingMemory; decision",
        level="smoke",
        requires="working_memory",
        applies=("working.schema", "refused.WM-1a"),
        discriminators={
            "a value that satisfies a schema": "working.schema",
            "a value that does not, or is no JSON": "refused.WM-1a",
            "the old value, read after a refusal": "working.kept",
        },
    ),
    Clause(
        id="WM-1b",
        title="of a thread or of a resource",
        statement=(
            "Scope thread, the default, is the thread's own value; scope resource is one for all threads of the "
            "resource that owns the thread, and is apart from those of the threads; both are kept. With "
            "resource_id, both calls demand that it owns the thread: OwnershipMismatch, or ThreadNotFound for an "
            "unknown one."
        ),
        source="recall reference: workingMemory; decision",
        level="smoke",
        requires="working_memory",
        applies=("working.get", "refused.WM-1b"),
        discriminators={
            "a resource's value read through another of its threads": "working.shared",
            "a thread without a value beside one with": "working.apart",
            "a thread and its resource both with a value": "working.both",
            "another resource's thread": "refused.WM-1b.ownership_mismatch",
        },
    ),
    Clause(
        id="WM-1c",
        title="a thread's dies with it",
        statement=(
            "delete_thread removes the thread's own value: a thread created anew under the id has none. The "
            "resource's stays, even when its last thread is gone. clear_messages leaves both."
        ),
        source="recall reference: workingMemory; decision",
        level="smoke",
        requires="working_memory",
        applies=("working.get",),
        discriminators={
            "a thread created anew after one with a value": "working.recreated",
            "a resource's value after the thread that wrote it": "working.outlives",
            "a value after its thread was cleared": "working.cleared",
        },
    ),
    Clause(
        id="WM-1d",
        title="a thread's is cloned with it",
        statement=(
            "clone_thread copies the thread's own value, whichever messages it selects, to a clone for another "
            "resource too; later updates of one never show in the other. The resource's is not copied."
        ),
        source="recall reference: workingMemory; decision",
        level="smoke",
        requires=("working_memory", "clone"),
        applies=("working.cloned",),
        discriminators={
            "a clone of a thread with a value": "working.cloned",
            "an update of source or clone afterwards": "working.cloned_apart",
        },
    ),
    Clause(
        id="WM-1e",
        title="working memory is asked for",
        statement=(
            "Both calls need working memory enabled (store options overlaid by thread_config; off by default): else "
            "ConfigurationError. So are a template and a schema together, and what is no JSON Schema. Fields of "
            "other types, and other scopes than thread and resource, are InvalidRequest."
        ),
        source="recall reference: workingMemory; decision",
        level="smoke",
        requires="working_memory",
        applies=("working.get", "refused.WM-1e"),
        discriminators={
            "working memory off, or wrongly configured": "refused.WM-1e.configuration_error",
            "a field of the wrong type": "refused.WM-1e.invalid_request",
            "enabled by the call": "working.by_call",
        },
    ),
    Clause(
        id="WM-1f",
        title="working memory survives reopen",
        statement="Working memory that was acknowledged survives close and reopen.",
        source="decision",
        level="smoke",
        requires=("durable", "working_memory"),
        applies=("working.reopened",),
        discriminators={"a value read after a reopen": "working.reopened"},
    ),
)
