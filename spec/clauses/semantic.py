"""SEM: semantic recall, and the embeddings it needs."""

from __future__ import annotations

from .model import Clause

CLAUSES = (
    Clause(
        id="SEM-1",
        title="semantic recall is asked for",
        statement=(
            "vector_search_string needs semantic recall on (store options overlaid by thread_config; off by "
            "default), a vector index and an embedder: else ConfigurationError; none is ever implied. True means "
            "top_k 4, message_range 2 and 2, scope thread; an object's absent fields take these. top_k is an "
            "integer from 1 to 10,000, ranges ≥ 0; scope resource needs resource_id; anything else is "
            "InvalidRequest. A blank search string counts as absent. A search asks for the thread's owner as any "
            "recall does (ORD-6); a recall that searches for nothing has no hits."
        ),
        source="recall reference: vectorSearchString, semanticRecall; semantic recall",
        level="smoke",
        requires="semantic_recall",
        applies=("search", "refused.SEM-1", "search.blank"),
        discriminators={
            "semantic recall off, or no embedder": "refused.SEM-1.configuration_error",
            "a value that is refused": "refused.SEM-1.invalid_request",
            "a blank search string": "search.blank",
            "another resource's thread, or none, searched": "refused.ORD-6.search",
        },
    ),
    Clause(
        id="SEM-2",
        title="hits: the best of all that may be",
        statement=(
            "Candidates are the live embedded messages in scope that satisfy semantic filter, date_range and "
            "metadata filter, before top_k is taken. Hits are min(top_k, candidates), highest score first, with "
            "score ≥ threshold; rows with equal stored vectors come in the order (created_at, thread_id, "
            "position); scores nearer than the tolerance may swap."
        ),
        source="recall reference: vectorSearchString; decision",
        level="smoke",
        requires="semantic_recall",
        applies=("search",),
        discriminators={
            "more candidates than top_k": "search.cut",
            "equal vectors": "search.equal_vectors",
            "a cut between equal vectors": "search.cuts_ties",
            "a date range or metadata filter that excludes candidates": "search.narrowed",
            "hits below the threshold": "search.threshold",
            "embeddings deleted or replaced before": "search.after_change",
        },
        reports=("mem0ai/mem0#7416", "mem0ai/mem0#6998", "langchain-ai/langchain#28413", "mastra-ai/mastra#6604"),
    ),
    Clause(
        id="SEM-2a",
        title="scope resource",
        statement="Scope resource searches all threads of the resource and nothing of another's.",
        source="semantic recall: scope",
        level="smoke",
        requires="resource_scope",
        applies=("search.resource",),
        discriminators={
            "a hit of another thread": "search.other_thread",
            "embeddings of another resource": "search.isolation",
        },
        reports=("mastra-ai/mastra#21863",),
    ),
    Clause(
        id="SEM-3",
        title="each hit brings its window",
        statement=(
            "Each hit brings its message_range, unfiltered, in its own thread, on every page. The result is the "
            "page, the includes and the windows, once each, in the requested order; total and has_more are as "
            "without a search."
        ),
        source="recall reference: messageRange",
        level="smoke",
        requires="semantic_recall",
        applies=("search",),
        discriminators={
            "neighbours of hits": "search.windows",
            "a page with rows outside the windows": "search.page_and_windows",
            "a page after the first": "search.later_page",
        },
    ),
    Clause(
        id="SEM-4",
        title="one embedding a message",
        statement=(
            "A message has exactly one embedding, of its string or of its text parts joined by newlines; replaced "
            "on re-save, gone on delete; blank text has none. save_messages embeds when semantic recall is on in "
            "the effective config; saving again while it is off removes the embedding. An update of content or "
            "role indexes likewise; of metadata alone it leaves the embedding."
        ),
        source="semantic recall; decision",
        level="smoke",
        requires="semantic_recall",
        applies=("embed", "embed.off", "embed.update_indexes", "embed.update_keeps", "embed.deleted"),
        discriminators={
            "a text replaced": "embed.replaced",
            "saved again while off": "embed.removed",
            "a blank text": "embed.blank",
            "text in parts": "embed.parts",
            "content or role updated": "embed.update_indexes",
            "metadata alone updated": "embed.update_keeps",
            "an embedded message deleted": "embed.deleted",
        },
        reports=("mastra-ai/mastra#6604", "mastra-ai/mastra#12225", "mastra-ai/mastra#20509"),
    ),
    Clause(
        id="SEM-4a",
        title="a failing embedder writes nothing",
        statement="The embedder runs before any write; its failure is EmbedderError, and nothing is written.",
        source="decision",
        level="smoke",
        requires="semantic_recall",
        applies=("refused.SEM-4a",),
        discriminators={
            "in a write": "refused.SEM-4a.write",
            "in a recall": "refused.SEM-4a.read",
        },
    ),
    Clause(
        id="SEM-5",
        title="the filter sees the snapshot",
        statement=(
            "The semantic filter sees the snapshot stored with the embedding: the thread's metadata at indexing, "
            "under the system keys message_id, thread_id, resource_id, role and created_at "
            "(YYYY-MM-DDTHH:MM:SS.mmmZ), which win; never message metadata. Indexing is save, clone, move, and "
            "update of content or role; updating the thread leaves the snapshot."
        ),
        source="semantic recall: metadata filtering",
        level="smoke",
        requires="semantic_recall",
        applies=("search.filter",),
        discriminators={
            "a filter that excludes candidates": "search.filter_narrows",
            "a thread updated since": "search.filter_stale",
        },
        reports=("headroomlabs-ai/headroom#2296",),
    ),
    Clause(
        id="SEM-6",
        title="index_config reaches the engine",
        statement=(
            "index_config {type flat | hnsw | ivfflat, metric, m 16, ef_construction 64, lists} of the store's "
            "options reaches the engine and is read back from it; a parameter of another type is InvalidRequest, "
            "a type the engine lacks Unsupported. The count is that of embedded messages."
        ),
        source="semantic recall: index configuration",
        requires="semantic_recall",
        applies=("embeddings",),
        discriminators={
            "a type of one's own": "embeddings.flat",
            "another metric": "embeddings.other_metric",
        },
    ),
)
