"""CLN: clones of threads."""

from __future__ import annotations

from .model import Clause

CLAUSES = (
    Clause(
        id="CLN-1",
        title="what is cloned",
        statement=(
            "clone_thread copies message_ids ∩ [start, end], then the newest message_limit of them (0 and [] "
            "clone nothing; unknown ids are ignored), under new ids, with the same created_at and in the same "
            "order, among equal instants too. An existing new id is AlreadyExists, an unknown source "
            "ThreadNotFound, a limit that is no integer ≥ 0 InvalidRequest."
        ),
        source="message history: cloneThread",
        level="smoke",
        requires="clone",
        applies=("clone", "refused.CLN-1"),
        discriminators={
            "the newest few": "clone.limit",
            "none": "clone.nothing",
            "a range of instants": "clone.range",
            "some ids": "clone.ids",
            "equal instants": "clone.ties",
            "a call that is refused": "refused.CLN-1",
        },
        reports=("mastra-ai/mastra#12811", "mastra-ai/mastra#11517"),
    ),
    Clause(
        id="CLN-2",
        title="the clone's own fields",
        statement=(
            "The title is given or `Clone of ` and the source's; metadata is the source's overlaid by the given; "
            "resource_id is given or the source's, for the messages too; created_at and updated_at are now. The "
            "lineage is the field clone {source_thread_id, cloned_at, last_message_id}, the last being the newest "
            "source message cloned, and never in metadata."
        ),
        source="message history: cloneThread",
        level="smoke",
        requires="clone",
        applies=("clone",),
        discriminators={
            "the default title": "clone.title_default",
            "a title given": "clone.title_given",
            "metadata over the source's": "clone.overlays",
            "another resource": "clone.other_resource",
        },
    ),
    Clause(
        id="CLN-3",
        title="embeddings are copied",
        statement=(
            "Embeddings are copied under the clone's ids and metadata without calling the embedder, and a message "
            "that has none stays without; semantic recall in the clone gives the clone's ids."
        ),
        source="message history: cloneThread; decision",
        level="smoke",
        requires="clone",
        applies=("clone.embedded",),
        discriminators={
            "an embedded message cloned": "clone.embedded",
            "beside one with a text and no embedding": "clone.unembedded",
        },
        reports=("mastra-ai/mastra#12811",),
    ),
    Clause(
        id="CLN-4",
        title="clones live apart",
        statement=(
            "The source is untouched by cloning; later changes to one never show in the other, and deleting the "
            "source leaves the clone. A clone can be cloned. list_clones gives the clones of a thread, oldest "
            "first, of one resource if given."
        ),
        source="message history: cloneThread",
        level="smoke",
        requires="clone",
        applies=("clone",),
        discriminators={
            "a change to source or clone afterwards": "clone.changed_after",
            "a clone of a clone": "clone.of_clone",
            "clones listed": "clones.listed",
        },
    ),
)
