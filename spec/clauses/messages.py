"""MSG: saving, replacing, updating and deleting messages."""

from __future__ import annotations

from .model import Clause

CLAUSES = (
    Clause(
        id="MSG-0",
        title="what a message is",
        statement=(
            "A message has id, thread_id, resource_id, role (user, assistant, system or tool), content, metadata "
            "(default {}) and created_at. Content is a string (the empty one too) or a non-empty list of parts "
            "(text, reasoning, file, tool). Other roles and empty lists are InvalidRequest."
        ),
        source="recall reference: messages; decision",
        level="smoke",
        applies=("save", "refused.MSG-0"),
        discriminators={
            "content of parts": "save.parts",
            "role assistant": "save.role.assistant",
            "role system": "save.role.system",
            "role tool": "save.role.tool",
            "a role or content that is refused": "refused.MSG-0",
        },
    ),
    Clause(
        id="MSG-1",
        title="save: all or nothing",
        statement=(
            "save_messages is all or nothing, whatever was refused. Unknown thread: ThreadNotFound; a resource_id "
            "other than the thread's: OwnershipMismatch; where messages of a batch are wrong in several ways, any "
            "of their errors. One row per distinct id comes back, in order of first occurrence. A missing "
            "created_at is the clock's now, one for the batch."
        ),
        source="decision",
        level="smoke",
        applies=("save", "refused.MSG-1"),
        discriminators={
            "a batch refused for one of several messages": "save.refused_batch",
            "an instant from the clock": "save.instant_default",
            "an id twice in a batch": "save.duplicate_ids",
            "an unknown thread or another's resource": "refused.MSG-1",
        },
        reports=("stac-utils/stac-fastapi-elasticsearch-opensearch#346", "langchain-ai/langchainjs#1810"),
    ),
    Clause(
        id="MSG-2",
        title="save again: replace or move",
        statement=(
            "A batch means its messages saved one by one in order. Saving an existing id replaces content, role, "
            "metadata (absent is {}) and created_at if given. Into another thread of the same resource the "
            "message moves, and the old thread shows it nowhere; into another resource is OwnershipMismatch."
        ),
        source="decision",
        level="smoke",
        applies=("resave", "resave.moved", "refused.MSG-2"),
        discriminators={
            "a message replaced": "resave",
            "metadata absent on the second save": "resave.bare",
            "created_at absent on the second save": "resave.keeps_instant",
            "a message moved": "resave.moved",
            "another resource's message": "refused.MSG-2",
        },
        reports=("mastra-ai/mastra#5286", "mastra-ai/mastra#5214"),
    ),
    Clause(
        id="MSG-3",
        title="updated_at of what is touched",
        statement=(
            "save, update, delete and clear set updated_at of every thread they touch to the later of its old "
            "value and now, and of no other thread; a move touches both. An empty batch, only unknown ids, or "
            "clearing an empty thread touch nothing."
        ),
        source="decision",
        level="smoke",
        applies=("touch",),
        discriminators={
            "a clock ahead, and a thread that is not touched": "touch.forward",
            "a clock not ahead": "touch.no_later",
            "a move": "touch.both",
            "nothing to do": "touch.nothing",
        },
    ),
    Clause(
        id="MSG-4",
        title="update messages: merge",
        statement=(
            "update_messages changes content and role if given and merges metadata shallowly; all or nothing; "
            "repeated ids apply in order; unknown ids are ignored. Every existing row named comes back once, in "
            "order of first occurrence."
        ),
        source="decision",
        level="smoke",
        applies=("update", "refused.MSG-4", "update.refused_batch"),
        discriminators={
            "a key that the merge does not name": "update.merges",
            "an unknown id": "update.unknown",
            "an id twice": "update.repeated",
            "a batch refused for one of several updates": "update.refused_batch",
        },
        reports=("mem0ai/mem0#5160", "headroomlabs-ai/headroom#2296"),
    ),
    Clause(
        id="MSG-4a",
        title="merges of a message at the same time",
        statement="Merges of one message's metadata at the same time lose nothing.",
        source="decision",
        applies=("together.update_messages",),
        discriminators={"writers at the same time": "together.update_messages"},
    ),
    Clause(
        id="MSG-5",
        title="delete messages: what existed",
        statement=(
            "delete_messages says how many of the ids existed: unknown ones are ignored, duplicates count once, "
            "an empty list deletes nothing; a bare string is InvalidRequest."
        ),
        source="message history: deleteMessages",
        level="smoke",
        applies=("delete", "refused.MSG-5"),
        discriminators={
            "existing ids": "delete.some",
            "an unknown id": "delete.unknown",
            "an id twice": "delete.duplicate",
            "an empty list": "delete.nothing",
            "a bare string": "delete.bare_string",
        },
        reports=("chroma-core/chroma#7772", "chroma-core/chroma#2841"),
    ),
    Clause(
        id="MSG-5a",
        title="clear a thread",
        statement=(
            "clear_messages deletes all messages of the thread and says how many there were; the thread stays. "
            "Unknown is ThreadNotFound."
        ),
        source="message history: deleteMessages",
        level="smoke",
        applies=("clear", "clear.empty", "refused.MSG-5a"),
        discriminators={"a thread with messages": "clear", "an unknown thread": "refused.MSG-5a"},
    ),
)
