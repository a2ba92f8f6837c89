"""VAL: what a value is, and that it comes back as it was given."""

from __future__ import annotations

from .model import Clause

CLAUSES = (
    Clause(
        id="VAL-1",
        title="instants: UTC, floored to the millisecond",
        statement=(
            "Instants are aware UTC datetimes of millisecond precision. Finer input is floored (toward minus "
            "infinity, also before 1970) on write: what is returned, sorted and filtered is one value. The time "
            "zone of process, session or server changes nothing."
        ),
        source="decision; documents: createdAt is a Date",
        level="smoke",
        applies=("instant",),
        discriminators={
            "an instant finer than a millisecond": "instant.submillisecond",
            "one before 1970": "instant.submillisecond_before_1970",
            "an instant given in another zone": "instant.other_zone",
            "year 1 or 9999": "instant.extreme",
        },
        reports=(
            "TanStack/db#913",
            "twentyhq/twenty#21083",
            "elastic/elasticsearch#10005",
            "elastic/elasticsearch#78921",
        ),
    ),
    Clause(
        id="VAL-1a",
        title="instants without zone or out of range",
        statement="An instant without a zone, or outside the years 0001 to 9999 in UTC, is InvalidRequest.",
        source="decision",
        applies=("refused.VAL-1a",),
        discriminators={
            "an instant without zone": "refused.naive",
            "an instant outside the years": "refused.out_of_range",
            "one in a read": "refused.VAL-1a.read",
        },
    ),
    Clause(
        id="VAL-1b",
        title="filter bounds floored like instants",
        statement="A filter bound finer than a millisecond is floored as a written instant is.",
        source="decision",
        applies=("date",),
        discriminators={"a bound finer than a millisecond": "date.submillisecond"},
        reports=("TanStack/db#913", "twentyhq/twenty#21083"),
    ),
    Clause(
        id="VAL-2",
        title="strings and ids round-trip exactly",
        statement=(
            "Ids and names are distinct exactly when their code points are: `A` is not `a`, no prefix is cut, "
            "nothing is trimmed or normalised. Every well-formed string (id, title, content, metadata) "
            "round-trips exactly."
        ),
        source="decision",
        level="smoke",
        applies=("text",),
        discriminators={
            "a character beyond U+FFFF": "text.astral",
            "a decomposed character": "text.decomposed",
            "surrounding white space": "text.padded",
            "two ids that differ by case or Unicode form only": "id.confusable_pair",
        },
        reports=("mastra-ai/mastra#21726", "mastra-ai/mastra#11563"),
    ),
    Clause(
        id="VAL-2a",
        title="bad strings and ids are refused",
        statement=(
            "Ids are non-empty strings of at most 255 characters, in reads too. U+0000 and lone surrogates "
            "anywhere (id, title, content, metadata) are InvalidRequest, and nothing changes."
        ),
        source="decision",
        applies=("refused.VAL-2a",),
        discriminators={
            "U+0000": "refused.nul",
            "a lone surrogate": "refused.surrogate",
            "an empty id": "refused.empty_id",
            "an id of 256 characters": "refused.long_id",
            "a bad id in a read": "refused.VAL-2a.read",
        },
        reports=("mastra-ai/mastra#21726",),
    ),
    Clause(
        id="VAL-2b",
        title="long strings, ids alike to the end",
        statement=(
            "Strings of any length round-trip: ids that share their first 254 characters are two ids; content of 1 MiB."
        ),
        source="decision",
        applies=("text.long", "id.prefix_pair"),
        discriminators={
            "a string of 64 KiB or more": "text.long",
            "two ids alike in their first 200 characters": "id.prefix_pair",
        },
        reports=("elastic/elasticsearch#24256",),
    ),
    Clause(
        id="VAL-3",
        title="metadata comes back as stored",
        statement=(
            "Any JSON object may be stored as metadata and comes back equal by JSON type, numbers by value (an "
            "integral float may return as int), key order free; null stays null, missing stays missing; keys are "
            "opaque (a dot or a dollar sign means nothing). −0.0 equals 0."
        ),
        source="documents: metadata is a record of JSON values; decision",
        level="smoke",
        applies=("metadata",),
        discriminators={
            "a nested value": "metadata.nested",
            "an empty container": "metadata.empty_container",
            "a null": "metadata.null",
            "a boolean": "metadata.bool",
            "a float of 1e16 or more": "metadata.big_float",
            "a key with a dot or a dollar sign": "metadata.odd_key",
        },
        reports=("elastic/elasticsearch#63530", "headroomlabs-ai/headroom#3240"),
    ),
    Clause(
        id="VAL-3a",
        title="metadata beyond the limits is refused",
        statement=(
            "Metadata that is not a JSON object is InvalidRequest, as are tuples, datetimes, NaN, infinities, "
            "ints beyond ±(2^53 − 1), nesting deeper than 64 levels (the object itself is the first) and more "
            "than 1 MiB of compact JSON in UTF-8, after a merge too; nothing changes."
        ),
        source="decision",
        applies=("refused.VAL-3a",),
        discriminators={
            "NaN or an infinity": "refused.not_finite",
            "an integer beyond 2^53 − 1": "refused.big_integer",
            "a tuple or a datetime": "refused.not_json",
        },
    ),
    Clause(
        id="VAL-4",
        title="nothing returned is shared",
        statement="Nothing returned aliases what was passed in or returned elsewhere.",
        source="decision",
        applies=("alias.input", "alias.output"),
        discriminators={
            "an argument changed by the caller after the call, then observed": "alias.input",
            "a result changed by the caller, then read again": "alias.output",
        },
    ),
)
