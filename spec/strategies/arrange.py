"""Building blocks: threads that exist, batches that collide, histories that move, replace and delete."""

from __future__ import annotations

from typing import Any

from .. import program as ops
from ..forms import Form
from . import pools
from .pools import Draw, chance, distinct, instant, pick, some

OBSERVE = ops.Observe()

OWNERS = {"t1": "r1", "t2": "r1", "t3": "r2"}
"""Threads and their resources: two of one, one of another."""


def threads(draw: Draw, *names: str) -> list[ops.AnyOperation]:
    """Create the threads; sometimes with a title, metadata, an instant."""
    return [create(draw, name) for name in names]


def create(draw: Draw, name: str) -> ops.CreateThread:
    """Create one thread of its resource."""
    given: dict[str, Form] = {}
    if chance(draw, 15):
        given["title"] = pick(draw, pools.TEXTS)
    if chance(draw, 20):
        given["metadata"] = metadata(draw)
    if chance(draw, 20):
        given["created_at"] = instant(draw)
    return ops.CreateThread(id=name, resource_id=OWNERS[name], **given)


def metadata(draw: Draw) -> Form:
    """An object with a few keys; scalars mostly."""
    pairs: dict[str, Form] = {}
    for key in distinct(draw, ("k", "n", "s"), 1, 2):
        kind = pick(draw, range(10))
        pairs[key] = pick(draw, pools.SCALARS if kind < 7 else pools.ODD_SCALARS if kind < 8 else pools.CONTAINERS)
    if chance(draw, 15):
        odd = [[key, pick(draw, pools.SCALARS)] for key in distinct(draw, pools.ODD_KEYS, 1, 2)]
        return {"$dict": [*([key, item] for key, item in pairs.items()), *odd]}
    return pairs


def message(draw: Draw, message_id: Form, thread: Form, at: Form | None, **given: Form) -> dict[str, Form]:
    """A message; plain unless luck will have it otherwise. `at` None leaves the instant to the clock."""
    fields: dict[str, Form] = {"id": message_id, "thread_id": thread, "content": "x", **given}
    if at is not None:
        fields["created_at"] = at
    luck = pick(draw, range(20))
    if luck < 3:
        fields.setdefault("metadata", metadata(draw))
    elif luck < 5:
        fields["content"] = some(draw, pools.PARTS, 1, 2)
    elif luck < 8:
        fields["role"] = pick(draw, pools.ROLES[1:])
    elif luck < 10:
        fields["content"] = pick(draw, pools.TEXTS)
    elif luck == 10:
        fields["resource_id"] = OWNERS.get(str(thread), "r1")
    return fields


def save(draw: Draw, thread: str, ids: Any = pools.IDS, *, least: int = 1, most: int = 4) -> ops.SaveMessages:
    """A batch of distinct ids, most often at one instant, sometimes each at its own or at the clock's."""
    names = distinct(draw, ids, least, most)
    style = pick(draw, range(10))
    common = instant(draw)
    return ops.SaveMessages(
        messages=[
            message(draw, name, thread, None if style < 2 else common if style < 6 else instant(draw)) for name in names
        ]
    )


def tied(draw: Draw, thread: str, ids: Any = pools.IDS) -> ops.SaveMessages:
    """All the ids at one instant, in an order that is not theirs."""
    at = {"$at": pools.NOON}
    return ops.SaveMessages(messages=[message(draw, name, thread, at) for name in ids])


def refused_save(draw: Draw, thread: str) -> ops.SaveMessages:
    """A good message and a bad one, in either order."""
    good = message(draw, pick(draw, pools.IDS), thread, instant(draw))
    bad = {"id": "w", "thread_id": thread, "content": "x"}
    match pick(draw, range(9)):
        case 0 | 1:
            bad["thread_id"] = "nowhere"
        case 2 | 3:
            bad["resource_id"] = "r2" if OWNERS.get(thread) == "r1" else "r1"
        case 4:
            bad["role"] = pick(draw, ("admin", "", "User", {"$repeat": ["x", 300]}))
        case 5:
            bad["content"] = pick(draw, ([], {"$tuple": []}, ["text"], 5))
        case 6:
            bad[pick(draw, ("id", "thread_id", "content", "resource_id"))] = pick(draw, pools.BAD_TEXTS)
        case 7:
            bad["metadata"] = pick(draw, pools.BAD_METADATA)
        case _:
            bad["created_at"] = pick(draw, pools.BAD_INSTANTS)
    return ops.SaveMessages(messages=[bad, good] if chance(draw, 25) else [good, bad])


def resave(draw: Draw, thread: str, ids: Any = pools.IDS) -> ops.SaveMessages:
    """One or two ids again: into the same thread they are replaced, into another they move."""
    batch: list[Form] = []
    for name in distinct(draw, ids, 1, 2):
        again: dict[str, Form] = {"id": name, "thread_id": thread, "content": "again"}
        if chance(draw, 30):
            again["created_at"] = instant(draw)
        if chance(draw, 30):
            again["metadata"] = metadata(draw)
        batch.append(again)
    if chance(draw, 25):
        batch.append(dict(batch[0]) | {"content": "twice"})
    return ops.SaveMessages(messages=batch)


def update(draw: Draw, ids: Any = pools.IDS) -> ops.UpdateMessages:
    """A few changes, with an unknown id and a repeated one now and then."""
    updates: list[Form] = []
    for name in distinct(draw, ids, 1, 2):
        change: dict[str, Form] = {"id": name}
        match pick(draw, range(4)):
            case 0:
                change["content"] = pick(draw, ("changed", *pools.TEXTS[:4]))
            case 1:
                change["role"] = pick(draw, pools.ROLES)
            case _:
                change["metadata"] = {pick(draw, ("k", "n", "u")): pick(draw, (*pools.SCALARS, *pools.CONTAINERS))}
        updates.append(change)
    if chance(draw, 35):
        updates.append({"id": updates[0]["id"], "metadata": {"again": True}})
    if chance(draw, 25):
        updates.insert(0, {"id": "unknown", "content": "?"})
    if chance(draw, 15):
        updates.append({"id": pick(draw, pools.IDS), "role": "nobody"})
    return ops.UpdateMessages(updates=updates)


def delete(draw: Draw, ids: Any = pools.IDS) -> ops.DeleteMessages:
    """Some ids; an unknown one, a repeated one, none, or a bare string now and then."""
    match pick(draw, range(8)):
        case 0:
            return ops.DeleteMessages(ids=[])
        case 1:
            return ops.DeleteMessages(ids=pick(draw, ids))
        case _:
            named = distinct(draw, ids, 1, 2)
            if chance(draw, 40):
                named.append(named[0])
            if chance(draw, 40):
                named.insert(0, "unknown")
            return ops.DeleteMessages(ids=named)


def tick(draw: Draw) -> ops.Tick:
    """The clock moves, backwards too."""
    return ops.Tick(ms=pick(draw, (1, 1000, 1000, -1, -60_000)))


def change(draw: Draw, names: Any) -> list[ops.AnyOperation]:
    """One write of any kind to messages, and an observation."""
    thread = pick(draw, names)
    match pick(draw, range(16)):
        case 0 | 1 | 2:
            step: ops.AnyOperation = save(draw, thread)
        case 3 | 4 | 5 | 6:
            step = resave(draw, thread)
        case 7 | 8:
            step = refused_save(draw, thread)
        case 9 | 10 | 11:
            step = update(draw)
        case 12 | 13:
            step = delete(draw)
        case 14:
            step = ops.ClearMessages(thread_id=pick(draw, (thread, thread, "nowhere")))
        case _:
            step = ops.SaveMessages(messages=[])
    before: list[ops.AnyOperation] = [tick(draw)] if chance(draw, 40) else []
    return [*before, step, OBSERVE]
