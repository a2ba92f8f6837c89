"""Programs of two clients: one writes, and the other's very next call needs what it did."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import cast

import msgspec

from .. import program as ops
from ..forms import Form
from . import pools
from .pools import chance, distinct, pick

Operations = list[ops.AnyOperation]

ASC: Form = {"direction": "ASC"}


def memory(rng: Random) -> ops.Program:
    """CON-1: threads and messages."""
    names = distinct(rng, pools.IDS, 4, 4)
    batch: list[Form] = [_message(name, k=pick(rng, (1, 2))) for name in names[:3]]
    steps: Operations = [
        ops.CreateThread(id="t1", resource_id="r1", metadata={"k": 1}),
        ops.SaveMessages(messages=batch),
        *_both(),
    ]
    turns = [_saves, _updates, _deletes, _threads, _written]
    for turn in distinct(rng, turns, 2, 3):
        steps += turn(rng, names)
    return ops.Program(operations=tuple(steps))


def search(rng: Random) -> ops.Program:
    """CON-1a: semantic recall."""
    names = distinct(rng, pools.IDS, 4, 4)
    batch: list[Form] = [_message(name, content=f"[{i}, 1, 0] {name}") for i, name in enumerate(names[:3])]
    steps: Operations = [ops.CreateThread(id="t1", resource_id="r1"), ops.SaveMessages(messages=batch), *_both()]
    top_k: Form = {"semantic_recall": {"top_k": pick(rng, (1, 2)), "message_range": 0}}
    asked = ops.Recall(thread_id="t1", vector_search_string="[1, 0, 0]", per_page=0, thread_config=top_k)
    near = "[1, 0, 0] near"
    writes: list[ops.AnyOperation] = [
        ops.SaveMessages(messages=[_message(names[3], content=near)]),
        ops.SaveMessages(messages=[_message(names[0], content=near)]),
        ops.UpdateMessages(updates=[{"id": names[0], "content": near}]),
    ]
    gone: list[ops.AnyOperation] = [ops.DeleteMessages(ids=[names[2]]), ops.ClearMessages(thread_id="t1")]
    for write in (pick(rng, writes), pick(rng, gone)):
        steps += _asked(rng, write, [asked])
    return ops.Program(operations=tuple(steps), options={"semantic_recall": True}, embedder=3)


def indices(rng: Random) -> ops.Program:
    """CON-1b: vector indices."""
    rows: list[Form] = [
        {"id": f"v{i}", "vector": [i, 1], "metadata": {"k": pick(rng, (1, 2)), "n": i}} for i in range(1, 4)
    ]
    near: Form = {"id": "v9", "vector": [1, 0], "metadata": {"k": 1, "n": 9}}
    nearer: Form = {"id": "v1", "vector": [1, 0], "metadata": {"k": 1, "n": 1}}
    steps: Operations = [
        ops.CreateIndex(index="notes", dimension=2),
        ops.UpsertVectors(index="notes", vectors=rows),
        *_both(),
    ]
    narrowed: dict[str, Form] = {"filter": {"k": 1}} if chance(rng, 50) else {}
    reads: list[ops.AnyOperation] = [
        ops.QueryVectors(index="notes", vector=[1, 0], top_k=pick(rng, (2, 10)), exact=True, **narrowed),
        ops.GetVectors(index="notes", ids=["v1", "v3", "v9"]),
    ]
    write = pick(
        rng,
        (
            ops.UpsertVectors(index="notes", vectors=[near]),
            ops.UpsertVectors(index="notes", vectors=[nearer]),
            ops.UpdateVector(index="notes", id="v1", vector=[1, 0]),
            ops.UpdateVector(index="notes", id="v3", metadata={"k": 1, "n": 7}),
        ),
    )
    steps += _asked(rng, write, distinct(rng, reads, 1, 2))
    gone = ops.DeleteVectors(index="notes", ids=["v3"])
    steps += _asked(rng, gone, distinct(rng, reads, 1, 2))
    if chance(rng, 60):
        # First where all is long visible, then straight after the upsert.
        new: list[Form] = [{"id": f"w{i}", "vector": [i, 1], "metadata": {"n": 20 + i}} for i in range(1, 4)]
        first, second = _turns(rng)
        steps += [
            ops.DeleteVectors(index="notes", filter={"n": 2}, client=second),
            *_both(),
            ops.UpsertVectors(index="notes", vectors=new, client=first),
            ops.DeleteVectors(index="notes", filter={"n": {"$gte": 20}}, client=second),
            *_both(),
        ]
    return ops.Program(operations=tuple(steps))


def _message(name: Form, *, content: str = "x", **metadata: Form) -> dict[str, Form]:
    given: dict[str, Form] = {"metadata": cast(Form, metadata)} if metadata else {}
    return {"id": name, "thread_id": "t1", "content": content, "created_at": {"$at": pools.NOON}, **given}


def _saves(rng: Random, names: Sequence[str]) -> Operations:
    one, other = pick(rng, (1, 2)), names[pick(rng, (0, 3))]
    write = ops.SaveMessages(messages=[_message(other, content="new", k=one)])
    return _asked(rng, write, [_listing(rng), _filtered(one)])


def _updates(rng: Random, names: Sequence[str]) -> Operations:
    write = ops.UpdateMessages(updates=[{"id": names[0], "content": "changed", "metadata": {"k": 3}}])
    return _asked(rng, write, [pick(rng, (_listing(rng), _by_id(names[0]))), _filtered(3)])


def _deletes(rng: Random, names: Sequence[str]) -> Operations:
    write = pick(rng, (ops.DeleteMessages(ids=[names[1], names[2]]), ops.ClearMessages(thread_id="t1")))
    return _asked(rng, write, [_listing(rng)])


def _threads(rng: Random, names: Sequence[str]) -> Operations:
    write = pick(
        rng,
        (
            ops.CreateThread(id="t2", resource_id="r1", metadata={"k": 1}),
            ops.UpdateThread(thread_id="t1", title="new", metadata={"k": 2}),
            ops.DeleteThread(thread_id="t1"),
        ),
    )
    name = "t2" if isinstance(write, ops.CreateThread) else "t1"
    filtered: dict[str, Form] = {"filter": {"metadata": {"k": 1}}} if chance(rng, 50) else {}
    return _asked(rng, write, [ops.GetThread(thread_id=name), ops.ListThreads(order_by=ASC, **filtered)])


def _written(rng: Random, names: Sequence[str]) -> Operations:
    """A change or a deletion of what was just saved, after its like of what is long there."""
    first, second = _turns(rng)
    kinds: list[tuple[ops.AnyOperation, ops.AnyOperation]] = [
        (ops.DeleteMessages(ids=["old"], client=second), ops.DeleteMessages(ids=["new"], client=second)),
        (
            ops.UpdateMessages(updates=[{"id": "old", "content": "changed"}], client=second),
            ops.UpdateMessages(updates=[{"id": "new", "content": "changed"}], client=second),
        ),
    ]
    before, after = pick(rng, kinds)
    return [
        ops.CreateThread(id="t9", resource_id="r1"),
        ops.SaveMessages(messages=[_message("old") | {"thread_id": "t9"}], client=first),
        *_both(),
        before,
        *_both(),
        ops.SaveMessages(messages=[_message("new") | {"thread_id": "t9"}], client=first),
        after,
        *_both(),
    ]


def _listing(rng: Random) -> ops.Recall:
    return pick(
        rng,
        (
            ops.Recall(thread_id="t1", per_page=False, order_by=ASC),
            ops.Recall(thread_id="t1", per_page=2),
            ops.Recall(thread_id="t1"),
        ),
    )


def _filtered(k: int) -> ops.Recall:
    return ops.Recall(thread_id="t1", per_page=False, order_by=ASC, filter={"metadata": {"k": k}})


def _by_id(name: str) -> ops.Recall:
    return ops.Recall(thread_id="t1", include=[{"id": name}])


def _asked(rng: Random, write: ops.AnyOperation, reads: Operations) -> Operations:
    """A write by one client; reads by the other, at once, and by both, once more."""
    first, second = _turns(rng)
    return [
        _by(write, first),
        *(_by(read, second) for read in reads),
        *_both(),
        *(_by(read, client) for read in reads for client in (second, first)),
    ]


def _both() -> Operations:
    """All is observed twice, so that what is late shows as late."""
    return [ops.Observe(client=1), ops.Observe()]


def _turns(rng: Random) -> tuple[int, int]:
    """Who writes and who reads."""
    return pick(rng, ((0, 1), (0, 1), (1, 0)))


def _by(operation: ops.AnyOperation, client: int) -> ops.AnyOperation:
    return msgspec.structs.replace(operation, client=client)
