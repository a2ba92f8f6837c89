"""OPR: operator filters, on vector indices and in semantic recall."""

from __future__ import annotations

from .model import Clause

CLAUSES = (
    Clause(
        id="OPR-1",
        title="operators: exactly these ten",
        statement=(
            "The operators are exactly $and $or $eq $ne $gt $gte $lt $lte $in $nin. A field's value is a scalar "
            "(= $eq) or a non-empty object of operators, all of which must hold; several keys must all hold, "
            "inside $or too; $in and $nin take lists of scalars, $and and $or lists of filters. Anything else (an "
            "unknown operator, $not, an empty object, field-level $and) is InvalidFilter at any depth, never "
            "ignored. Keys as FLT-2. At most 8 levels (the filter itself is the first), 100 conditions, 1,000 "
            "values a list, 1,024 characters in a range's operand."
        ),
        source="semantic recall: metadata filtering; decision",
        level="smoke",
        requires="vectors",
        applies=("opr", "refused.OPR-1"),
        discriminators={
            "a filter that is refused": "refused.OPR-1",
            "two conditions on one key": "opr.one_key_twice",
            "$and or $or around others": "opr.nested",
        },
        reports=(
            "langchain-ai/langchain-postgres#216",
            "langchain-ai/langgraphjs#2504",
            "langchain-ai/langgraph#8829",
        ),
    ),
    Clause(
        id="OPR-2",
        title="$eq $in exact, ranges within a type",
        statement=(
            "$eq and $in compare as FLT-1. $gt $gte $lt $lte compare numbers with numbers and strings with "
            "strings, by code point; any other pairing is false, never an error. A boolean is not a number."
        ),
        source="semantic recall: metadata filtering; decision",
        level="smoke",
        requires="vectors",
        applies=("opr.equal", "opr.range.number", "opr.range.string"),
        discriminators={
            "$eq or $in among values of several types": "opr.equal_among_types",
            "a range of numbers": "opr.range.number",
            "a range of strings": "opr.range.string",
            "a range among values of several types": "opr.range_among_types",
            "a range whose operand is stored": "opr.range_at_a_value",
            "more than 1,024 values in a filter": "opr.many_values",
        },
        reports=("mastra-ai/mastra#18466",),
    ),
    Clause(
        id="OPR-2a",
        title="ranges of strings by code point",
        statement="Strings order by code point: U+FF5E comes before U+1F600, upper case before lower.",
        source="decision",
        requires="vectors",
        applies=("opr.range.string",),
        discriminators={"strings whose UTF-16 order is another": "opr.code_points"},
    ),
    Clause(
        id="OPR-3",
        title="$ne is not $eq, $nin is not $in",
        statement=(
            "$ne is not $eq and $nin is not $in: rows without the key satisfy them, and so do stored arrays and "
            "objects. For filters of $eq $ne $in $nin under $and and $or, a filter and its De Morgan complement "
            "split the rows."
        ),
        source="decision",
        level="smoke",
        requires="vectors",
        applies=("opr.negated",),
        discriminators={
            "rows without the key": "opr.negated_missing",
            "rows with an array or object": "opr.negated_container",
            "values of several types": "opr.negated_among_types",
        },
        reports=("mastra-ai/mastra#18466", "run-llama/llama_index#21792", "run-llama/llama_index#21750"),
    ),
    Clause(
        id="OPR-4",
        title="empty filters are constants",
        statement="{} and $and [] are all rows; $or [] none; $in [] none; $nin [] all; nested anywhere.",
        source="decision",
        level="smoke",
        requires="vectors",
        applies=("opr.empty_and", "opr.empty_or", "opr.empty_in", "opr.empty_nin"),
        discriminators={
            "{} or $and []": "opr.empty_and",
            "$or []": "opr.empty_or",
            "$in []": "opr.empty_in",
            "$nin []": "opr.empty_nin",
            "beside conditions that rows decide": "opr.narrows",
        },
        reports=("deepset-ai/haystack-core-integrations#590",),
    ),
)
