"""Programs on embeddings and clones: texts that say their vector, snapshots that go stale, windows, scopes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from .. import program as ops
from ..forms import Form
from . import arrange, pools
from .arrange import OBSERVE
from .pools import chance, distinct, pick

Operations = list[ops.AnyOperation]

DIMENSION = 3
ON: Form = {"semantic_recall": True}
OFF: Form = {"semantic_recall": False}
IDS = ("z", "a", "m", "b", "k", "y")

DIRECTIONS = (
    "[1, 0, 0]",
    "[1, 0, 0]",
    "[0, 1, 0]",
    "[-1, 0, 0]",
    "[1, 0.1, 0]",
    "[1, 0.5, 0]",
    "[0.6, 0.8, 0]",
    "[2, 0, 0]",
    "[0, 0, 1]",
)
TEXTS: tuple[Form, ...] = (*(f"{direction} word" for direction in DIRECTIONS), *DIRECTIONS, "no vector of its own")
BLANK: tuple[Form, ...] = ("", "  \n ", [{"$part": {"type": "reasoning", "text": "[1, 0, 0]"}}])
IN_PARTS: tuple[Form, ...] = (
    [{"$part": {"type": "text", "text": "[1, 0, 0]"}}],
    [{"$part": {"type": "text", "text": "[0, 1, 0]"}}, {"$part": {"type": "text", "text": "more"}}],
    [{"$part": {"type": "text", "text": "no vector"}}, {"$part": {"type": "text", "text": "of its own"}}],
    [{"$part": {"type": "reasoning", "text": "!"}}, {"$part": {"type": "text", "text": "[1, 0.5, 0]"}}],
)
SNAPSHOT_KEYS = ("p", "role", "thread_id", "message_id", "resource_id")


def content(rng: Random) -> Form:
    """A text with a vector most of the time."""
    luck = pick(rng, range(12))
    return pick(rng, BLANK if luck == 0 else IN_PARTS if luck < 3 else TEXTS)


def _threads(rng: Random) -> Operations:
    steps: Operations = []
    for name in ("t1", "t2", "t3"):
        owner = arrange.OWNERS[name]
        given: dict[str, Form] = {"metadata": {"p": pick(rng, (1, 2, "1", None))}} if chance(rng, 70) else {}
        if chance(rng, 10):
            given["metadata"] = {"role": "mine", "p": 1}
        steps.append(ops.CreateThread(id=name, resource_id=owner, **given))
    return steps


def _save(rng: Random, thread: str, ids: Sequence[str]) -> ops.SaveMessages:
    return ops.SaveMessages(
        messages=[
            {
                "id": name,
                "thread_id": thread,
                "content": content(rng),
                "created_at": {"$at": pick(rng, pools.NEAR)},
                **({"metadata": {"k": pick(rng, (1, 2))}} if chance(rng, 60) else {}),
                **({"role": "assistant"} if chance(rng, 30) else {}),
            }
            for name in ids
        ]
    )


def _arranged(rng: Random) -> Operations:
    first = distinct(rng, IDS, 4, 6)
    steps = [*_threads(rng), _save(rng, "t1", first)]
    steps.append(_save(rng, "t2", [f"{name}2" for name in distinct(rng, IDS, 1, 2)]))
    steps.append(_save(rng, "t3", [f"{name}3" for name in distinct(rng, IDS, 1, 2)]))
    return [*steps, OBSERVE]


def recalls(rng: Random) -> ops.Program:
    """SEM: embeddings saved, changed and searched."""
    steps = _arranged(rng)
    for _ in range(pick(rng, (0, 1, 2, 2))):
        change = _change(rng)
        steps += [ops.Tick(ms=1000), change, OBSERVE]
        if isinstance(change, ops.UpdateMessages):
            steps.append(_all({"role": pick(rng, ("tool", "user"))}))
    if chance(rng, 55):
        old, new = pick(rng, ((1, 2), (2, 1), ("1", 1)))
        steps += [ops.UpdateThread(thread_id="t1", metadata={"p": new}), OBSERVE]
        steps += [_all({"p": old}), _all({"p": new})]
    for _ in range(3):
        steps.append(_search(rng))
    if chance(rng, 45):
        steps.append(_refused(rng))
    if chance(rng, 25):
        steps.append(_strangers(rng))
    if chance(rng, 30):
        steps += arrange.change(rng, ("t1",))
    return ops.Program(operations=tuple(steps), options=_options(rng), embedder=DIMENSION)


def _all(where: Form) -> ops.Recall:
    """All of t1 whose snapshot satisfies a filter."""
    config: Form = {"semantic_recall": {"top_k": 10, "message_range": 0, "filter": where}}
    return ops.Recall(thread_id="t1", vector_search_string="[1, 0, 0]", per_page=0, thread_config=config)


def _options(rng: Random) -> dict[str, Form]:
    luck = pick(rng, range(10))
    if luck < 6:
        return {"semantic_recall": True}
    if luck < 8:
        return {"semantic_recall": {"top_k": 2, "message_range": 1, "index_config": {"type": "flat"}}}
    metric = pick(rng, ("euclidean", "dotproduct"))
    return {"semantic_recall": {"message_range": 0, "index_config": {"metric": metric}}}


def _change(rng: Random) -> ops.AnyOperation:
    name = pick(rng, IDS)
    match pick(rng, range(21)):
        case 0 | 1 | 15:
            again: dict[str, Form] = {"id": name, "thread_id": "t1", "content": content(rng)}
            return ops.SaveMessages(messages=[again])
        case 2 | 3 | 16:
            again = {"id": name, "thread_id": "t1", "content": content(rng)}
            return ops.SaveMessages(messages=[again], thread_config=OFF)
        case 4 | 17:
            return ops.SaveMessages(messages=[{"id": name, "thread_id": "t2", "content": content(rng)}])
        case 5:
            return ops.UpdateMessages(updates=[{"id": name, "content": content(rng)}])
        case 6:
            given: dict[str, Form] = {"thread_config": OFF} if chance(rng, 40) else {}
            return ops.UpdateMessages(updates=[{"id": name, "role": "tool"}], **given)
        case 7 | 13 | 14:
            return ops.UpdateMessages(updates=[{"id": name, "metadata": {"k": 2}}])
        case 8:
            return ops.DeleteMessages(ids=distinct(rng, IDS, 1, 3))
        case 9 | 10:
            return ops.UpdateThread(thread_id=pick(rng, ("t1", "t1", "t2")), metadata={"p": pick(rng, (1, 2))})
        case 11:
            return pick(rng, (ops.ClearMessages(thread_id="t2"), ops.DeleteThread(thread_id="t2")))
        case _:
            bad: Form = {"id": "w", "thread_id": "t1", "content": "! fails"}
            return ops.SaveMessages(messages=[{"id": name, "thread_id": "t1", "content": "[0, 0, 1]"}, bad])


def _search(rng: Random) -> ops.Recall:
    recall: dict[str, Form] = {}
    given: dict[str, Form] = {}
    if chance(rng, 75):
        recall["top_k"] = pick(rng, (1, 1, 2, 3, 10, 10))
    if chance(rng, 60):
        recall["message_range"] = pick(rng, (0, 0, 1, {"before": 1, "after": 0}, {"before": 0, "after": 2}))
    if chance(rng, 30):
        recall["threshold"] = pick(rng, (0.5, 0.9, 0, -1, 1))
    if chance(rng, 35):
        recall["scope"] = "resource"
        given["resource_id"] = pick(rng, ("r1", "r1", "r1", "r2"))
    elif chance(rng, 25):
        given["resource_id"] = "r1"
    if chance(rng, 45):
        recall["filter"] = pick(rng, FILTERS)
    narrowed: dict[str, Form] = {}
    if chance(rng, 20):
        narrowed["metadata"] = {"k": pick(rng, (1, 2))}
    if chance(rng, 20):
        narrowed["date_range"] = {pick(rng, ("start", "end")): {"$at": pick(rng, pools.NEAR)}, "end_exclusive": True}
    if narrowed:
        given["filter"] = narrowed
    luck = pick(rng, range(6))
    if luck < 3:
        given["per_page"] = 0
    elif luck == 3:
        given |= {"per_page": 1, "page": pick(rng, (0, 1))}
    if chance(rng, 40):
        given["order_by"] = {"direction": "ASC"}
    if chance(rng, 15):
        given["include"] = [{"id": pick(rng, IDS)}]
    config: Form = {"semantic_recall": recall} if recall else ON
    thread = "t3" if given.get("resource_id") == "r2" else "t1"
    return ops.Recall(
        thread_id=thread,
        vector_search_string=pick(rng, (*DIRECTIONS[2:], "[1, 0, 0] word")),
        thread_config=config,
        **given,
    )


FILTERS: tuple[Form, ...] = (
    {"p": 1},
    {"p": {"$eq": 2}},
    {"p": {"$ne": 1}},
    {"p": {"$in": [1, "1"]}},
    {"p": {"$nin": [2]}},
    {"p": {"$gt": 1}},
    {"k": 1},
    {"role": "assistant"},
    {"role": {"$ne": "user"}},
    {"thread_id": "t1"},
    {"message_id": {"$in": [*IDS[:3]]}},
    {"created_at": {"$gte": "2024-03-01T12:00:00.001Z"}},
    {"resource_id": "r1", "p": {"$nin": []}},
    {"$or": [{"p": 1}, {"role": "assistant"}]},
    {"$and": [{"p": {"$gte": 1}}, {"thread_id": {"$ne": "t2"}}]},
)


WRONG: tuple[Form, ...] = (
    {"top_k": 0},
    {"top_k": True},
    {"message_range": -1},
    {"scope": "all"},
    {"threshold": "x"},
)


def _strangers(rng: Random) -> ops.Recall:
    """A search in a thread of another resource, or in none, by a resource (ORD-6)."""
    thread, resource = pick(rng, (("t1", "r2"), ("t1", "r2"), ("t3", "r1"), ("t9", "r1")))
    scope = pick(rng, ("thread", "thread", "resource"))
    config: Form = {"semantic_recall": {"top_k": 10, "scope": scope}}
    return ops.Recall(
        thread_id=thread, resource_id=resource, vector_search_string="[1, 0, 0]", per_page=0, thread_config=config
    )


def _refused(rng: Random) -> ops.Recall:
    base: dict[str, Any] = {"thread_id": "t1", "vector_search_string": "[1, 0, 0]", "per_page": 0}
    match pick(rng, range(10)):
        case 0 | 1:
            return ops.Recall(**base, thread_config=OFF)
        case 2 | 9:
            base["vector_search_string"] = "! fails"
            return ops.Recall(**base)
        case 3:
            base["vector_search_string"] = pick(rng, ("", "  ", "\n"))
            return ops.Recall(**base)
        case 4 | 7:
            return ops.Recall(**base, thread_config={"semantic_recall": {"scope": "resource"}})
        case 5 | 8:
            wrong = pick(
                rng, ({"top_k": 0}, {"top_k": True}, {"message_range": -1}, {"scope": "all"}, {"threshold": "x"})
            )
            return ops.Recall(**base, thread_config={"semantic_recall": wrong})
        case _:
            return ops.Recall(**base, thread_config={"semantic_recall": {"filter": {"p": {"$not": 1}}}})


def without(rng: Random) -> ops.Program:
    """SEM-1: a search where semantic recall is off, or there is no embedder."""
    options: dict[str, Form] = pick(rng, ({}, {"semantic_recall": False}, {"semantic_recall": True}))
    embedder = pick(rng, (0, 0, DIMENSION))
    steps: Operations = [*_threads(rng), _save(rng, "t1", ["z", "a"]), OBSERVE]
    config: dict[str, Form] = pick(rng, ({}, {"thread_config": ON}, {"thread_config": OFF}))
    steps.append(ops.Recall(thread_id="t1", vector_search_string="[1, 0, 0]", per_page=0, **config))
    blank = pick(rng, ("", " ", "\t\n"))
    steps.append(ops.Recall(thread_id="t1", vector_search_string=blank, **config))
    return ops.Program(operations=tuple(steps), options=options, embedder=embedder)


def clones(rng: Random) -> ops.Program:
    """CLN: what is copied, what it is called, and that it lives apart."""
    semantic = chance(rng, 60)
    steps = _arranged(rng)
    given: dict[str, Form] = {}
    if chance(rng, 70):
        given["new_thread_id"] = pick(rng, ("c1", "c1", "c1", "c1", "t2"))
    if chance(rng, 45):
        given["message_limit"] = pick(rng, (0, 1, 2, 2, 3, 99, -1, True))
    if chance(rng, 35):
        given[pick(rng, ("start", "end"))] = {"$at": pick(rng, pools.NEAR)}
    if chance(rng, 25):
        given["message_ids"] = pick(rng, (distinct(rng, IDS, 1, 3), ["unknown", "a"], []))
    if chance(rng, 35):
        given["title"] = pick(rng, pools.TEXTS)
    if chance(rng, 45):
        given["metadata"] = {pick(rng, ("p", "q")): pick(rng, (1, "x"))}
    if chance(rng, 25):
        given["resource_id"] = "r9"
    source = "nowhere" if chance(rng, 6) else "t1"
    if semantic and chance(rng, 40):
        # A text without an embedding, which a clone does not have either.
        unembedded: dict[str, Form] = {"id": "w", "thread_id": "t1", "content": "[0, 1, 0]"}
        steps += [ops.SaveMessages(messages=[unembedded], thread_config=OFF), OBSERVE]
    steps += [ops.Tick(ms=1000), ops.CloneThread(source_thread_id=source, **given), OBSERVE]
    copy = str(given.get("new_thread_id", "clone"))
    if semantic:
        steps.append(_search_in(rng, copy))
    match pick(rng, range(6)):
        case 0:
            steps += [ops.UpdateMessages(updates=[{"id": name, "content": "changed"} for name in IDS]), OBSERVE]
        case 1:
            steps += [ops.DeleteThread(thread_id="t1"), OBSERVE]
        case 2:
            steps += [ops.UpdateThread(thread_id=copy, metadata={"p": 9}, title="other"), OBSERVE]
        case 3:
            steps += [ops.ClearMessages(thread_id=copy), OBSERVE]
        case _:
            again: dict[str, Form] = {"new_thread_id": "c2"} if chance(rng, 50) else {"label": "again"}
            steps += [ops.CloneThread(source_thread_id=copy, **again), OBSERVE]
    steps.append(ops.ListClones(source_thread_id=pick(rng, ("t1", "t1", copy, "nowhere"))))
    steps.append(ops.ListClones(source_thread_id="t1", resource_id=pick(rng, ("r1", "r9"))))
    if semantic:
        steps.append(_search_in(rng, pick(rng, (copy, "t1"))))
        return ops.Program(operations=tuple(steps), options={"semantic_recall": True}, embedder=DIMENSION)
    return ops.Program(operations=tuple(steps))


def _search_in(rng: Random, thread: str) -> ops.Recall:
    recall: dict[str, Form] = {"top_k": 10, "message_range": 0}
    if chance(rng, 40):
        recall["filter"] = pick(rng, ({"p": 1}, {"thread_id": thread}, {"q": "x"}, {"thread_id": "t1"}))
    return ops.Recall(
        thread_id=thread, vector_search_string="[1, 0, 0]", per_page=0, thread_config={"semantic_recall": recall}
    )
