"""TIM, FLT: narrowing by date and by metadata."""

from __future__ import annotations

from .model import Clause

CLAUSES = (
    Clause(
        id="TIM-1",
        title="date ranges",
        statement=(
            "date_range bounds are inclusive; start_exclusive and end_exclusive cut exactly the equal instant "
            "(and are ignored without their bound). Either side may be absent. start after end is empty, not an "
            "error."
        ),
        source="recall reference: filter.dateRange",
        level="smoke",
        applies=("date", "refused.TIM-1"),
        discriminators={
            "a start at a row's instant": "date.start_inclusive",
            "an exclusive start at a row's instant": "date.start_exclusive",
            "an end at a row's instant": "date.end_inclusive",
            "an exclusive end at a row's instant": "date.end_exclusive",
            "one bound alone": "date.one_sided",
            "start after end": "date.reversed",
        },
        reports=("mastra-ai/mastra#11479", "mastra-ai/mastra#14014"),
    ),
    Clause(
        id="FLT-1",
        title="exact by type and value",
        statement=(
            'A metadata filter is shallow, AND, exact including type: 1 = 1.0, but not "1" nor true; strings '
            "exact (no folding, trimming, wildcards, normalising); null matches explicit null only; a missing key "
            "matches nothing; stored arrays and objects match nothing."
        ),
        source="recall reference: metadata filtering",
        level="smoke",
        applies=("filter",),
        discriminators={
            "some rows match and some do not": "filter.narrows",
            "a value of another type that reads the same": "filter.other_type",
            "null where the key is also missing": "filter.null_and_missing",
            "a string alike but for case, space or form": "filter.string_near_miss",
            "an integer and an equal float": "filter.integral_float",
            "the value inside an array or object": "filter.inside_container",
            "a row that meets one of two conditions": "filter.some_conditions",
        },
        reports=("mastra-ai/mastra#19991", "mastra-ai/mastra#16376", "headroomlabs-ai/headroom#3240"),
    ),
    Clause(
        id="FLT-2",
        title="bad filters are refused",
        statement=(
            "Filter keys are [A-Za-z_][A-Za-z0-9_]* of at most 128 characters, not __proto__, constructor or "
            "prototype; values are strings up to 1 MiB, finite numbers (integers within ±(2^53 − 1)), booleans or "
            "null; anything else is InvalidFilter naming the key. {} is no filter."
        ),
        source="recall reference: metadata filtering",
        level="smoke",
        applies=("refused.FLT-2", "filter.empty"),
        discriminators={"a filter that is refused": "refused.FLT-2", "an empty filter": "filter.empty"},
        reports=(
            "mastra-ai/mastra#9531",
            "mastra-ai/mastra#4244",
            "langchain-ai/langgraph#5666",
            "langchain-ai/langgraphjs#2504",
            "langchain-ai/langgraph#8829",
            "run-llama/llama_index#21822",
        ),
    ),
    Clause(
        id="FLT-3",
        title="filter before page and count",
        statement=(
            "Filtering precedes paging and counting; the answer never depends on indexes, mappings, what was "
            "written first, how long a string is, or how many distinct keys exist."
        ),
        source="message history: metadata filtering; decision",
        level="smoke",
        applies=("filter",),
        discriminators={
            "a page whose rows lie beyond the unfiltered page": "filter.before_page",
            "a key first written with another type": "filter.first_of_another_type",
            "a string of 255 characters or more": "filter.long_string",
        },
        reports=("elastic/elasticsearch#24256", "huridocs/uwazi#7524", "elastic/elasticsearch#63530"),
    ),
)
