"""ISO, CAP, DUR: resources apart, hostile input, what a backend lacks, and what survives."""

from __future__ import annotations

from .model import Clause

CLAUSES = (
    Clause(
        id="ISO-1",
        title="resources apart",
        statement=(
            "Reads enforce ownership only where resource_id is given; then nothing of another resource ever "
            "shows. Writes never change the owner of an existing thread or message."
        ),
        source="message history: access is the application's; decision",
        level="smoke",
        applies=("isolation.read",),
        discriminators={
            "a read for a resource while another has threads": "isolation.read",
            "an include in such a read": "isolation.include",
        },
        reports=("mastra-ai/mastra#21863",),
    ),
    Clause(
        id="ISO-2",
        title="nothing can change a query",
        statement="No id, key, name or value can change a query. Refused input changes nothing.",
        source="decision",
        level="smoke",
        applies=("hostile", "refused.observed"),
        discriminators={
            "quotes, wildcards or separators in ids or values": "hostile",
            "a refused write, then an observation": "refused.observed",
        },
        reports=(
            "mastra-ai/mastra#9531",
            "mastra-ai/mastra#4244",
            "langchain-ai/langgraph#5666",
            "run-llama/llama_index#21822",
        ),
    ),
    Clause(
        id="CAP-1",
        title="Unsupported is said",
        statement=(
            "What a backend cannot do it refuses with Unsupported: never a wrong or an empty answer. One that lacks "
            "nothing has nothing to refuse."
        ),
        source="decision",
        level="smoke",
        requires="lacking",
        applies=("refused.CAP-1",),
        discriminators={"a call that needs a capability the backend lacks": "refused.CAP-1"},
    ),
    Clause(
        id="DUR-1",
        title="survives reopen",
        statement="What was acknowledged survives close and reopen.",
        source="decision",
        level="smoke",
        requires="durable",
        applies=("reopen",),
        discriminators={
            "rows of equal instants": "reopen.ties",
            "replaced or updated rows": "reopen.changed",
            "deleted rows": "reopen.deleted",
        },
    ),
    Clause(
        id="DUR-1a",
        title="survives a kill",
        statement=(
            "What was acknowledged survives kill -9, of a client's process in the middle of a call and of the engine's "
            "own. A call that had not returned happened or not: where batches are transactions, as a whole; where they "
            "are compensated, a part of it may be there. The clients that are left go on. `memassay fault` puts "
            "engines to it."
        ),
        source="decision",
        requires="other_processes",
        clients=2,
        applies=("kill",),
        discriminators={
            "a process that dies before a commit": "kill.before",
            "a process that dies after a commit": "kill.after",
            "in a batch": "kill.batch",
            "in a deletion": "kill.deletion",
        },
    ),
)
