"""ORD: the one order of messages, and paging through it."""

from __future__ import annotations

from .model import Clause

CLAUSES = (
    Clause(
        id="ORD-1",
        title="one total order",
        statement=(
            "Messages of a thread have one total order: (created_at, position). A position is taken when an id "
            "enters a thread and lost when it leaves (move, delete, clear); coming back appends. Re-save, update "
            "and reopen keep it: equal instants never reorder. Rows of several threads: (created_at, thread_id, "
            "position). Ids compare by code point."
        ),
        source="message history; decision",
        level="smoke",
        applies=("order",),
        discriminators={
            "equal instants whose ids sort the other way": "order.ties_against_ids",
            "a re-saved message before another of its instant": "order.resaved_tie",
            "an updated message before another of its instant": "order.updated_tie",
            "a message that came back behind another of its instant": "order.returned_tie",
            "a message saved after younger ones": "order.late_arrival",
        },
        reports=("mastra-ai/mastra#3654", "mastra-ai/mastra#3603", "mastra-ai/mastra#3448"),
    ),
    Clause(
        id="ORD-2",
        title="DESC is ASC reversed",
        statement=(
            "The default direction is DESC; results come back in the direction asked for; DESC is exactly the "
            "reverse of ASC, among equal instants too. Any other field or direction is InvalidRequest."
        ),
        source="recall reference: orderBy",
        level="smoke",
        applies=("everything.desc", "page.desc", "refused.ORD-2"),
        discriminators={
            "everything, descending, with equal instants": "everything.desc.ties",
            "a descending page of a thread with equal instants": "page.desc",
            "a direction or field that is refused": "refused.ORD-2",
        },
        reports=("mastra-ai/mastra#9991", "mastra-ai/mastra#10543"),
    ),
    Clause(
        id="ORD-3",
        title="a page is a slice",
        statement=("Page p of size n is the slice [p·n, (p+1)·n) of that sequence. Past the end: empty, total right."),
        source="recall reference: page, perPage",
        level="smoke",
        applies=("page",),
        discriminators={
            "a cut between equal instants": "page.cuts_ties",
            "a page after the first": "page.later",
            "a page past the end": "page.past_end",
            "a last page that is not full": "page.partial",
            "ascending": "page.asc",
            "descending": "page.desc",
        },
        reports=("mastra-ai/mastra#9991", "mastra-ai/mastra#10543", "mastra-ai/mastra#19562"),
    ),
    Clause(
        id="ORD-3a",
        title="pages joined are the list",
        statement="All pages joined, with no write between, are the full list, for any page size.",
        source="recall reference: page, perPage",
        applies=("walk",),
        discriminators={"a walk through all pages of a thread with equal instants": "walk.ties"},
        reports=("mastra-ai/mastra#19562",),
    ),
    Clause(
        id="ORD-3b",
        title="past an engine's window",
        statement="Pages and full lists hold also past an engine's window (10,000 rows, 1,000-row bulks).",
        source="decision",
        applies=("window.deep_page", "window.everything"),
        discriminators={
            "a page beyond 10,000 rows": "window.deep_page",
            "everything of more than 10,000 rows": "window.everything",
        },
        reports=(
            "mastra-ai/mastra#19562",
            "mastra-ai/mastra#19550",
            "docarray/docarray#430",
            "iDigBio/idigbio-search-api#18",
        ),
    ),
    Clause(
        id="ORD-4",
        title="per_page and its defaults",
        statement=(
            "per_page absent (or None) is the effective last_messages, default 10; False is everything, with page "
            "0; 0 is no page rows. last_messages is an integer ≥ 0, None (10), or False (as per_page 0 unless "
            "per_page is given); thread_config overlays the store's options. page is an integer from 0 to 2^53 − "
            "1. Negative, non-integer, True and strings are InvalidRequest."
        ),
        source="recall reference: perPage, page, lastMessages",
        level="smoke",
        applies=("default", "nothing", "refused.ORD-4"),
        discriminators={
            "more rows than the default ten": "default.ten",
            "more rows than a configured last_messages": "default.configured",
            "last_messages False": "default.off",
            "per_page False": "everything",
            "per_page 0": "nothing",
            "a value that is refused": "refused.ORD-4",
        },
        reports=("mastra-ai/mastra#9991",),
    ),
    Clause(
        id="ORD-5",
        title="total and has_more",
        statement=(
            "total counts the rows matching thread, resource and filter, whatever page or include. has_more holds "
            "exactly when matching rows remain after this page's slice; it is False for per_page 0 or False. "
            "include changes neither. page and per_page say what was effective."
        ),
        source="message history: hasMore; decision",
        level="smoke",
        applies=("total",),
        discriminators={
            "a page with more behind it": "total.has_more",
            "a page without": "total.no_more",
            "a page that ends exactly at the last row": "total.exact_end",
            "a request with include": "total.with_include",
            "a request for no rows": "total.no_rows",
        },
        reports=("mastra-ai/mastra#19576",),
    ),
    Clause(
        id="ORD-6",
        title="the thread's owner",
        statement=(
            "resource_id, when given, must own the thread, else OwnershipMismatch. An unknown thread has an empty "
            "page (what is included from other threads still comes); with resource_id it is ThreadNotFound. Where a "
            "recall is wrong in several ways, any of its errors is right."
        ),
        source="recall reference: resourceId",
        level="smoke",
        applies=("owner.right", "owner.unknown_thread", "refused.ORD-6"),
        discriminators={
            "the owner": "owner.right",
            "another resource, or an unknown thread with a resource": "refused.ORD-6",
            "an unknown thread without one": "owner.unknown_thread",
        },
        reports=("mastra-ai/mastra#21863",),
    ),
)
