"""THR: threads."""

from __future__ import annotations

from .model import Clause

CLAUSES = (
    Clause(
        id="THR-1",
        title="create a thread",
        statement=(
            "create_thread needs resource_id; the id is given or generated, title defaults to the empty string, "
            "metadata to {}; created_at is given or the clock's now, and updated_at starts equal to it. An "
            "existing id is AlreadyExists and changes nothing."
        ),
        source="message history: threads and resources; decision",
        level="smoke",
        applies=("create", "refused.THR-1"),
        discriminators={
            "a generated id": "create.generated",
            "a given instant": "create.instant_given",
            "the clock's instant": "create.instant_default",
            "an id that exists": "refused.THR-1",
        },
        reports=("mastra-ai/mastra#16216",),
    ),
    Clause(
        id="THR-2",
        title="get a thread",
        statement="get_thread is None when the thread is unknown, or another resource's than the one given.",
        source="message history: getThreadById",
        level="smoke",
        applies=("get",),
        discriminators={
            "an unknown thread": "get.unknown",
            "a thread of another resource": "get.foreign",
            "one's own thread, with resource_id": "get.own",
        },
    ),
    Clause(
        id="THR-3",
        title="update a thread: merge",
        statement=(
            "update_thread sets the title if given and merges metadata shallowly: keys not named stay, nested "
            "values are replaced whole. Unknown is ThreadNotFound. created_at never changes; updated_at becomes "
            "the later of its old value and now."
        ),
        source="decision",
        level="smoke",
        applies=("update_thread", "refused.THR-3"),
        discriminators={
            "a key that the merge does not name": "update_thread.merges",
            "a nested value replaced": "update_thread.replaces_nested",
            "no metadata given where there is some": "update_thread.keeps",
            "a clock ahead of updated_at": "update_thread.later",
            "a clock not ahead": "update_thread.no_later",
            "an unknown thread": "refused.THR-3",
        },
        reports=("mastra-ai/mastra#16216",),
    ),
    Clause(
        id="THR-3a",
        title="merges of a thread at the same time",
        statement=("Merges of one thread's metadata at the same time lose nothing: 20 writers, 20 keys, 20 kept."),
        source="decision",
        applies=("together.update_thread",),
        discriminators={"writers at the same time": "together.update_thread"},
    ),
    Clause(
        id="THR-4",
        title="list threads",
        statement=(
            "list_threads takes filter {resource_id, metadata}, order_by {created_at | updated_at, ASC | DESC}, "
            "page and per_page, and returns threads, total, page, per_page, has_more. Default created_at DESC, "
            "per_page 100. Order is (field, id), ids by code point; ORD-2 to ORD-5 apply, per_page 0 and False "
            "included; the metadata filter is that of FLT."
        ),
        source="message history: listThreads",
        level="smoke",
        applies=("threads",),
        discriminators={
            "a page that cuts between equal instants": "threads.cut_ties",
            "a resource that owns some threads": "threads.by_resource",
            "metadata that some threads have": "threads.by_metadata",
            "updated_at order unlike created_at order": "threads.by_update",
            "per_page 0": "threads.none",
            "a page past the end": "threads.past_end",
            "a page with more behind it": "threads.has_more",
        },
    ),
    Clause(
        id="THR-5",
        title="delete a thread",
        statement=(
            "delete_thread removes the thread and its messages, and says True; an unknown id is False. A thread "
            "created anew under the id is empty."
        ),
        source="decision",
        level="smoke",
        applies=("delete_thread", "delete_thread.unknown"),
        discriminators={
            "a thread with messages": "delete_thread.with_messages",
            "an unknown thread": "delete_thread.unknown",
            "the id created anew": "delete_thread.recreated",
        },
        reports=("mastra-ai/mastra#6604",),
    ),
)
