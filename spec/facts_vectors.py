"""What a program puts to the test of vector indices, operator filters, embeddings and clones (see facts.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from . import program as ops
from .embedders import LiteralEmbedder
from .embedding import embed, text_of
from .filters import kind_of
from .judge_hits import Candidates
from .judge_vectors import question
from .operators import Among, And, Node, Or, Range, conditions, constant
from .reference import Embedded, Model, Row, State
from .reference_index import Entry, ModelIndex
from .requests import Recall
from .types import CloneResult, MemoryConfig, RecallResult, Thread

LARGE = 1500
"""Dimensions from which engines begin to refuse."""

CLAUSES = 1024
"""Conditions that search engines take in one query."""

RARE = 0.1
"""A filter that this share of the rows or fewer satisfy is rare."""


# Indices


def index_write(operation: ops.Operation, value: Any, old: dict[str, Entry], existed: bool) -> Iterator[str]:
    """A write to an index that held the rows `old` before."""
    arguments = operation.arguments()
    match operation:
        case ops.CreateIndex():
            yield "index.again" if existed else "index.create"
            yield f"index.metric.{arguments.get('metric', 'cosine')}"
            if arguments["dimension"] >= LARGE:
                yield "index.large"
            config = arguments.get("config")
            if config is not None and config.type is not None:
                yield f"index.type.{config.type}"
        case ops.DropIndex():
            yield "index.drop"
        case ops.UpsertVectors():
            yield "upsert"
            ids = [row.id for row in arguments["vectors"]]
            if len(set(ids)) < len(ids):
                yield "upsert.duplicate_ids"
            if any(row_id in old for row_id in ids):
                yield "upsert.replaces"
            if any(row.id in old and old[row.id].metadata and not row.metadata for row in arguments["vectors"]):
                yield "upsert.bare"
        case ops.UpdateVector():
            yield "update_vector" if value else "update_vector.unknown"
            if value and arguments.get("metadata") is None and old[arguments["id"]].metadata:
                yield "update_vector.keeps_metadata"
            if value and arguments.get("vector") is None:
                yield "update_vector.keeps_vector"
        case ops.DeleteVectors():
            if "filter" in arguments:
                yield "delete_vectors.filter" if 0 < value < len(old) else "delete_vectors.filter_all_or_none"
            else:
                yield "delete_vectors.ids" if value else "delete_vectors.none"
                if any(row_id not in old for row_id in arguments["ids"]):
                    yield "delete_vectors.unknown"
        case _:
            return


def query(
    operation: ops.QueryVectors, index: ModelIndex, gone: set[str], seen: Sequence[ops.QueryVectors]
) -> Iterator[str]:
    """A query of an index from which the ids `gone` were deleted or whose vectors were replaced."""
    asked, candidates, stored = question(operation, index)
    yield "query"
    yield f"query.{candidates.metric}"
    yield "query.exact" if asked.exact else "query.approximate"
    matching = len(candidates.rows)
    if not stored:
        yield "query.empty_index"
    if 0 < matching < asked.top_k:
        yield "query.fewer"
    if matching > asked.top_k:
        yield "query.more"
    if asked.top_k > 40 and matching > 40:
        yield "query.beyond_40"
    if gone:
        yield "query.after_change"
    true = candidates.scores()
    if asked.min_score is not None and any(score < asked.min_score for score in true.values()):
        yield "query.below_threshold"
    yield from _scores(candidates, true)
    if any(_same_but_k(earlier, operation) for earlier in seen):
        yield "query.prefix"
    if operation.filter is not msgspec.UNSET:
        yield from operators(asked.filter, [entry.metadata for entry in stored.values()])
        if matching and _closer_outsiders(candidates, stored) >= asked.top_k:
            yield "query.post_filter"
        if matching and matching <= RARE * len(stored):
            yield "query.rare"


def _same_but_k(left: ops.QueryVectors, right: ops.QueryVectors) -> bool:
    return left.given() | {"top_k": 0} == right.given() | {"top_k": 0} and left.given() != right.given()


def _closer_outsiders(candidates: Candidates, stored: dict[str, Entry]) -> int:
    """How many rows outside the filter are closer than the closest inside it."""
    everything = msgspec.structs.replace(candidates, rows={row_id: entry.vector for row_id, entry in stored.items()})
    true = everything.scores()
    best = max(true[row_id] for row_id in candidates.rows)
    return sum(score > best for row_id, score in true.items() if row_id not in candidates.rows)


def _scores(candidates: Candidates, true: dict[str, float]) -> Iterator[str]:
    if len(set(candidates.rows.values())) < len(candidates.rows):
        yield "query.equal_vectors"
    if candidates.rows:
        query = candidates.query.astype(np.float64)
        rows = np.array([*candidates.rows.values()], dtype=np.float64)
        norms = np.append(np.linalg.norm(rows, axis=1), np.linalg.norm(query))
        if ((norms > 0) & ((norms < 0.1) | (norms > 10))).any():
            yield "query.scaled"
        cosines = rows @ query / np.maximum(norms[:-1] * norms[-1], np.finfo(np.float64).tiny)
        if (cosines < -1 + 1e-9).any():
            yield "query.opposite"
    ordered = sorted(true.values(), reverse=True)
    if any(0 < left - right < 1e-6 for left, right in pairwise(ordered)):
        yield "query.near_tie"


# Operator filters


def operators(node: Node, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A filter over these rows."""
    yield "opr"
    matching = sum(node.matches(row) for row in rows)
    if 0 < matching < len(rows):
        yield "opr.narrows"
    yield from _shape(node, 1)
    keys = [condition.key for condition in conditions(node)]
    if len(set(keys)) < len(keys):
        yield "opr.one_key_twice"
    if constant(node) is not None:
        yield "opr.constant"
    if sum(len(condition.any_of) for condition in conditions(node) if isinstance(condition, Among)) > CLAUSES:
        yield "opr.many_values"
    for condition in conditions(node):
        stored = [row[condition.key] for row in rows if condition.key in row]
        kinds = {kind_of(value) for value in stored}
        if isinstance(condition, Range):
            yield f"opr.range.{condition.operand.kind}"
            if len(kinds) > 1:
                yield "opr.range_among_types"
            if condition.operand.value in [value for value in stored if kind_of(value) == condition.operand.kind]:
                yield "opr.range_at_a_value"
            if condition.operand.kind == "string" and _utf16_differs(condition.operand.value, stored):
                yield "opr.code_points"
        elif condition.any_of:
            kind = "negated" if condition.negated else "equal"
            yield f"opr.{kind}"
            if len(stored) < len(rows):
                yield f"opr.{kind}_missing"
            if None in kinds:
                yield f"opr.{kind}_container"
            if len(kinds) > 1:
                yield f"opr.{kind}_among_types"
            if any(isinstance(equals.value, str) and len(equals.value) > 255 for equals in condition.any_of):
                yield "opr.long_string"


def _shape(node: Node, depth: int) -> Iterator[str]:
    match node:
        case And() | Or():
            name = "and" if isinstance(node, And) else "or"
            yield f"opr.{name}" if node.nodes else f"opr.empty_{name}"
            if depth > 1:
                yield "opr.nested"
            for part in node.nodes:
                yield from _shape(part, depth + 1)
        case Among():
            if not node.any_of:
                yield "opr.empty_nin" if node.negated else "opr.empty_in"
        case Range():
            return


def _utf16_differs(operand: Any, stored: Sequence[Any]) -> bool:
    """Whether comparing UTF-16 units would order some stored string otherwise than code points do."""
    return any(
        isinstance(value, str)
        and (value < operand)
        != (value.encode("utf-16-be", "surrogatepass") < operand.encode("utf-16-be", "surrogatepass"))
        for value in stored
    )


# Embeddings


def embedded(before: dict[str, Embedded], state: State, operation: ops.Operation, on: bool) -> Iterator[str]:
    """What a save, update or delete did to the embeddings."""
    after = state.embedded
    if isinstance(operation, ops.SaveMessages):
        yield "embed" if on else "embed.off"
        for message in operation.arguments()["messages"]:
            row = state.by_id.get(message.id)
            if row is None:
                continue
            if on and text_of(row.message.content) is None:
                yield "embed.blank"
            if on and not isinstance(row.message.content, str) and message.id in after:
                yield "embed.parts"
            if message.id in before and message.id in after and before[message.id].vector != after[message.id].vector:
                yield "embed.replaced"
            if message.id in before and message.id not in after:
                yield "embed.removed"
            if message.id in before and before[message.id].snapshot.get("thread_id") != row.message.thread_id:
                yield "embed.moved"
    elif isinstance(operation, ops.UpdateMessages):
        for update in operation.arguments()["updates"]:
            if update.id in before:
                changes = update.content is not None or update.role is not None
                yield "embed.update_indexes" if changes else "embed.update_keeps"
    elif before.keys() - after.keys():
        yield "embed.deleted"


def search(
    asked: Recall, result: RecallResult, model: Model, embedder: LiteralEmbedder, gone: set[str]
) -> Iterator[str]:
    """A semantic recall; messages of the ids `gone` had an embedding and have been deleted or re-embedded."""
    assert asked.search is not None
    given, state = asked.search, model.state
    yield "search"
    yield f"search.{given.scope}"
    candidates = model.candidates(asked)
    vector = embed(embedder, [given.text], "query", model.metric)[0]
    ranked = model.ranked(asked, vector)
    if len(candidates) > given.top_k:
        yield "search.cut"
    vectors = [state.embedded[hit.id].vector for hit in ranked[: given.top_k + 1]]
    if len(set(vectors)) < len(vectors):
        yield "search.equal_vectors"
    if len(vectors) > given.top_k and vectors[-1] == vectors[-2]:
        yield "search.cuts_ties"
    if given.threshold is not None and len(result.hits) < min(len(ranked), given.top_k):
        yield "search.threshold"
    if gone:
        yield "search.after_change"
    unfiltered = model.candidates(
        msgspec.structs.replace(
            asked,
            metadata=(),
            window=type(asked.window)(),
            search=msgspec.structs.replace(given, filter=And(())),
        )
    )
    outside = len(unfiltered) > len(candidates) > 0
    if outside and (asked.metadata or asked.window != type(asked.window)()):
        yield "search.narrowed"
        if result.hits and len(unfiltered) - len(candidates) >= given.top_k:
            yield "search.post_filter"
    if given.filter != And(()):
        yield "search.filter"
        if outside:
            yield "search.filter_narrows"
        for row in candidates:
            thread = state.threads[row.message.thread_id]
            if given.filter.matches(state.embedded[row.message.id].snapshot) and not given.filter.matches(
                state.embedded[row.message.id].snapshot | thread.metadata
            ):
                yield "search.filter_stale"
    windows = {row.message.id for hit in result.hits for row in model.hit_window(asked, hit)}
    page = {message.id for message in result.messages} - windows
    if len(windows) > len(result.hits) > 0:
        yield "search.windows"
    if windows and page:
        yield "search.page_and_windows"
    if any(state.by_id[hit.id].message.thread_id != asked.thread_id for hit in result.hits):
        yield "search.other_thread"
    if asked.page.page and result.hits:
        yield "search.later_page"
    if asked.resource_id is not None and any(
        row.message.resource_id != asked.resource_id for row in _embedded_rows(state)
    ):
        yield "search.isolation"


def _embedded_rows(state: State) -> Iterator[Row]:
    for message_id in state.embedded:
        yield state.by_id[message_id]


# Clones


def clone(operation: ops.CloneThread, result: CloneResult, state: State, source: Thread) -> Iterator[str]:
    """A clone of `source`."""
    arguments = operation.arguments()
    n, cloned = len(state.rows[source.id]), result.cloned_messages
    yield "clone"
    limit = arguments.get("message_limit")
    if limit == 0 or arguments.get("message_ids") == []:
        yield "clone.nothing"
    elif limit is not None and limit < n and len(cloned) == limit:
        yield "clone.limit"
    if (arguments.get("start") or arguments.get("end")) and 0 < len(cloned) < n:
        yield "clone.range"
    if arguments.get("message_ids") and 0 < len(cloned) < n:
        yield "clone.ids"
    if any(left.created_at == right.created_at for left, right in pairwise(cloned)):
        yield "clone.ties"
    yield "clone.title_default" if arguments.get("title") is None else "clone.title_given"
    if arguments.get("metadata") and source.metadata:
        yield "clone.overlays"
    if result.thread.resource_id != source.resource_id:
        yield "clone.other_resource"
    if source.clone is not None:
        yield "clone.of_clone"
    if any(message.id in state.embedded for message in cloned):
        yield "clone.embedded"
        if any(message.id not in state.embedded and text_of(message.content) is not None for message in cloned):
            yield "clone.unembedded"


def configured(options: MemoryConfig) -> Iterator[str]:
    """The index that the store's options want for its embeddings."""
    recall: Any = options.semantic_recall
    config = getattr(recall, "index_config", None)
    yield "embeddings"
    if config is not None:
        yield f"embeddings.{config.type}" if config.type else "embeddings.default_type"
        if config.metric not in (None, "cosine"):
            yield "embeddings.other_metric"
        if config.m is not None or config.lists is not None:
            yield "embeddings.parameters"
