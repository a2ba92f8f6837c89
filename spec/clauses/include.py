"""INC: messages included with their neighbours."""

from __future__ import annotations

from .model import Clause

CLAUSES = (
    Clause(
        id="INC-1",
        title="a message and its neighbours",
        statement=(
            "An include selects the message and its n previous and m next in the order of its thread (ORD-1), "
            "filters ignored. n and m default to 0 (2 with a vector search); an explicit value wins. thread_id "
            "defaults to the request's. An unknown id, or one not in that thread, is skipped; past the ends the "
            "window is clipped; with resource_id a thread of another resource is never entered. Negative or "
            "non-integer: InvalidRequest. An empty list is no include."
        ),
        source="recall reference: include",
        level="smoke",
        applies=("include", "refused.INC-1"),
        discriminators={
            "a window that cuts between equal instants": "include.cuts_ties",
            "a window clipped at an end": "include.clipped",
            "an unknown id": "include.unknown",
            "an id of another thread, not named": "include.elsewhere",
            "a message of another thread, named": "include.other_thread",
            "a neighbour that the filter excludes": "include.unfiltered",
            "a thread of another resource": "include.foreign",
        },
        reports=(
            "mastra-ai/mastra#14022",
            "mastra-ai/mastra#20303",
            "mastra-ai/mastra#11150",
            "mastra-ai/mastra#11365",
        ),
    ),
    Clause(
        id="INC-2",
        title="page and windows, once each",
        statement=("The result is the page and the included windows, each message once, in the requested order."),
        source="recall reference: include",
        level="smoke",
        applies=("include",),
        discriminators={
            "windows that overlap": "union.windows_overlap",
            "a window that overlaps the page": "union.page_overlaps",
            "a page and rows beyond it": "union.page_and_more",
            "ascending": "union.asc",
            "descending": "union.desc",
        },
        reports=("mastra-ai/mastra#19576",),
    ),
    Clause(
        id="INC-3",
        title="include alone",
        statement=(
            "With include, per_page absent and no vector search, only the included messages come back, as per_page 0."
        ),
        source="message history: one message by id",
        level="smoke",
        applies=("include.alone",),
        discriminators={"include without per_page": "include.alone"},
    ),
)
