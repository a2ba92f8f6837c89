"""What a deviation needs: the least aspect of its program without which it vanishes names the family to look in.

The judge blames by what went wrong where it showed. In a program in which everything meets, that may be far from the
cause; taking away one aspect after another, the smallest first, is a second opinion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec

from ..spec.program import Program
from .artefact import Cause
from .shrink import read

Json = Any
Without = Callable[[list[dict[str, Json]]], list[dict[str, Json]]]
"""A program's operations, as JSON, to those without the aspect."""


def ablate(program: Program, still_fails: Callable[[Program], bool], family: str) -> Cause | None:
    """The first aspect whose removal makes the program pass; None when it fails whatever is taken away.

    still_fails: asked once an aspect at most; with a small program, a dozen times.
    family: that of the clause blamed, for when nothing is needed but what every program has.
    """
    tree: Json = msgspec.to_builtins(program)
    for name, about, without in ASPECTS:
        operations = [dict(operation) for operation in tree["operations"]]
        rest = without(operations)
        if rest == [*tree["operations"]]:
            continue
        candidate = read({**tree, "operations": rest})
        if not rest or (candidate is not None and not still_fails(candidate)):
            return Cause(without=name, family=about or family)
    return None


def _argument(*names: str, of: tuple[str, ...] = ()) -> Without:
    """Without an argument of these calls, or of any; `a.b` is a field of one."""

    def without(operations: list[dict[str, Json]]) -> list[dict[str, Json]]:
        return [
            _without(operation, names) if not of or operation["op"] in of else operation for operation in operations
        ]

    return without


def _without(operation: dict[str, Json], names: tuple[str, ...]) -> dict[str, Json]:
    changed = operation
    for name in names:
        field, _, inner = name.partition(".")
        value = changed.get(field)
        if not inner:
            changed = {key: item for key, item in changed.items() if key != field}
        elif isinstance(value, dict) and inner in value:
            pairs = cast("dict[str, Json]", value)
            changed = {**changed, field: {key: item for key, item in pairs.items() if key != inner}}
    return changed


def _of_messages(name: str) -> Without:
    """Without a field of every message saved or updated, and of every vector."""

    def without(operations: list[dict[str, Json]]) -> list[dict[str, Json]]:
        return [
            {
                key: [*_stripped(item, name)] if isinstance(item, list | tuple) else item
                for key, item in operation.items()
            }
            for operation in operations
        ]

    return without


def _stripped(items: Any, name: str) -> Iterator[Json]:
    for item in items:
        if isinstance(item, dict):
            yield {key: value for key, value in cast("dict[str, Json]", item).items() if key != name}
        else:
            yield item


def _operations(*names: str) -> Without:
    """Without these operations."""
    return lambda operations: [operation for operation in operations if operation["op"] not in names]


RECALLS = ("recall",)
READS = ("recall", "get_thread", "list_threads", "list_clones")
QUERIES = ("query_vectors", "delete_vectors")

ASPECTS: tuple[tuple[str, str, Without], ...] = (
    ("the date range", "TIM", _argument("filter.date_range", of=RECALLS)),
    ("the metadata filter", "FLT", _argument("filter.metadata", of=("recall", "list_threads"))),
    ("the operator filter", "OPR", _argument("filter", of=QUERIES)),
    ("include", "INC", _argument("include", of=RECALLS)),
    ("the search", "SEM", _argument("vector_search_string", of=RECALLS)),
    ("the order asked for", "ORD", _argument("order_by", of=("recall", "list_threads"))),
    ("the page", "ORD", _argument("page", "per_page", of=("recall", "list_threads"))),
    ("the resource asked for", "ISO", _argument("resource_id", of=READS)),
    ("the second client", "CON", _argument("client")),
    ("reopening", "DUR", _operations("reopen")),
    ("what happens at the same time", "CON", _operations("together")),
    ("given instants", "VAL", _of_messages("created_at")),
    ("given metadata", "VAL", _of_messages("metadata")),
    ("working memory", "WM", _operations("get_working_memory", "update_working_memory")),
    ("titles", "TTL", _operations("title_thread", "settle")),
    ("thread_config", "SEM", _argument("thread_config")),
    ("queries", "VEC", _operations("query_vectors", "get_vectors", "describe_index", "list_indexes")),
    ("changes of vectors", "VEC", _operations("update_vector", "delete_vectors", "drop_index")),
    ("clones", "CLN", _operations("clone_thread", "list_clones")),
    ("updates of messages", "MSG", _operations("update_messages")),
    ("deletes of messages", "MSG", _operations("delete_messages", "clear_messages")),
    ("updates of threads", "THR", _operations("update_thread")),
    ("deletes of threads", "THR", _operations("delete_thread")),
    ("reads of threads", "THR", _operations("get_thread", "list_threads")),
    ("the clock", "MSG", _operations("tick")),
    ("vectors", "VEC", _operations("upsert_vectors")),
    ("recall", "", _operations("recall")),
    ("messages", "", _operations("save_messages")),
    ("vector indices", "VEC", _operations("create_index")),
    ("threads", "", _operations("create_thread")),
    ("observations", "", _operations("observe")),
)
"""From the smallest to the largest: an argument of a read, then of a write, then operations and all they made.

What every program has is about no family of its own.
"""
