"""Building blocks: threads that exist, batches that collide, histories that move, replace and delete."""

from __future__ import annotations

from random import Random
from typing import Any

from .. import program as ops
from ..forms import Form
from . import pools
from .pools import chance, distinct, instant, pick, some

OBSERVE = ops.Observe()

OWNERS = {"t1": "r1", "t2": "r1", "t3": "r2"}
"""Threads and their resources: two of one, one of another."""


BAD_ROLES: tuple[Form, ...] = ("admin", "", "User", {"$repeat": ["x", 300]})
BAD_CONTENTS: tuple[Form, ...] = ([], {"$tuple": []}, ["text"], 5)


def threads(rng: Random, *names: str) -> list[ops.AnyOperation]:
    """Create the threads; sometimes with a title, metadata, an instant."""
    steps: list[ops.AnyOperation] = [create(rng, name) for name in names]
    if chance(rng, 18):
        steps += [OBSERVE, create(rng, names[0])]
    return steps


def create(rng: Random, name: str) -> ops.CreateThread:
    """Create one thread of its resource."""
    given: dict[str, Form] = {}
    if chance(rng, 15):
        given["title"] = pick(rng, pools.TEXTS)
    if chance(rng, 20):
        given["metadata"] = metadata(rng)
    if chance(rng, 20):
        given["created_at"] = instant(rng)
    return ops.CreateThread(id=name, resource_id=OWNERS[name], **given)


def metadata(rng: Random) -> Form:
    """An object with a few keys; scalars mostly."""
    pairs: dict[str, Form] = {}
    for key in distinct(rng, ("k", "n", "s"), 1, 2):
        kind = pick(rng, range(10))
        pairs[key] = pick(rng, pools.SCALARS if kind < 7 else pools.ODD_SCALARS if kind < 8 else pools.CONTAINERS)
    if chance(rng, 45):
        odd = [[key, pick(rng, pools.SCALARS)] for key in distinct(rng, pools.ODD_KEYS, 1, 2)]
        return {"$dict": [*([key, item] for key, item in pairs.items()), *odd]}
    return pairs


def message(rng: Random, message_id: Form, thread: Form, at: Form | None, **given: Form) -> dict[str, Form]:
    """A message; plain unless luck will have it otherwise. `at` None leaves the instant to the clock."""
    fields: dict[str, Form] = {"id": message_id, "thread_id": thread, "content": "x", **given}
    if at is not None:
        fields["created_at"] = at
    luck = pick(rng, range(20))
    if luck < 3:
        fields.setdefault("metadata", metadata(rng))
    elif luck < 5:
        fields["content"] = some(rng, pools.PARTS, 1, 2)
    elif luck < 8:
        fields["role"] = pick(rng, pools.ROLES[1:])
    elif luck < 10:
        fields["content"] = pick(rng, pools.TEXTS)
    elif luck == 10:
        fields["resource_id"] = OWNERS.get(str(thread), "r1")
    return fields


def save(rng: Random, thread: str, ids: Any = pools.IDS, *, least: int = 1, most: int = 4) -> ops.SaveMessages:
    """A batch of distinct ids, most often at one instant, sometimes each at its own or at the clock's."""
    names = distinct(rng, ids, least, most)
    style = pick(rng, range(10))
    common = instant(rng)
    batch: list[Form] = [
        message(rng, name, thread, None if style < 2 else common if style < 6 else instant(rng)) for name in names
    ]
    if chance(rng, 45):
        batch.append(batch[0] | {"content": "twice"})
    return ops.SaveMessages(messages=batch)


def tied(rng: Random, thread: str, ids: Any = pools.IDS) -> ops.SaveMessages:
    """All the ids at one instant, in an order that is not theirs."""
    at = {"$at": pools.NOON}
    return ops.SaveMessages(messages=[message(rng, name, thread, at) for name in ids])


def refused_save(rng: Random, thread: str) -> ops.SaveMessages:
    """A good message and a bad one, in either order."""
    good = message(rng, pick(rng, pools.IDS), thread, instant(rng))
    bad: dict[str, Form] = {"id": "w", "thread_id": thread, "content": "x"}
    match pick(rng, range(12)):
        case 0 | 1 | 9:
            bad["thread_id"] = "nowhere"
        case 2 | 3 | 10:
            bad["resource_id"] = "r2" if OWNERS.get(thread) == "r1" else "r1"
        case 4 | 11:
            bad["role"] = pick(rng, BAD_ROLES)
        case 5:
            bad["content"] = pick(rng, BAD_CONTENTS)
        case 6:
            bad[pick(rng, ("id", "thread_id", "content", "content", "resource_id"))] = pick(rng, pools.BAD_TEXTS)
        case 7:
            bad["metadata"] = pick(rng, pools.BAD_METADATA)
        case _:
            bad["created_at"] = pick(rng, pools.BAD_INSTANTS)
    return ops.SaveMessages(messages=[bad, good] if chance(rng, 25) else [good, bad])


def resave(rng: Random, thread: str, ids: Any = pools.IDS) -> ops.SaveMessages:
    """One or two ids again: into the same thread they are replaced, into another they move."""
    batch: list[Form] = []
    for name in distinct(rng, ids, 1, 2):
        again: dict[str, Form] = {"id": name, "thread_id": thread, "content": "again"}
        if chance(rng, 30):
            again["created_at"] = instant(rng)
        if chance(rng, 30):
            again["metadata"] = metadata(rng)
        batch.append(again)
    if chance(rng, 25):
        batch.append(dict(batch[0]) | {"content": "twice"})
    return ops.SaveMessages(messages=batch)


def update(rng: Random, ids: Any = pools.IDS) -> ops.UpdateMessages:
    """A few changes, with an unknown id and a repeated one now and then."""
    updates: list[Form] = []
    for name in distinct(rng, ids, 1, 2):
        change: dict[str, Form] = {"id": name}
        match pick(rng, range(4)):
            case 0:
                change["content"] = pick(rng, ("changed", *pools.TEXTS[:4]))
            case 1:
                change["role"] = pick(rng, pools.ROLES)
            case _:
                change["metadata"] = {pick(rng, ("k", "n", "u")): pick(rng, (*pools.SCALARS, *pools.CONTAINERS))}
        updates.append(change)
    if chance(rng, 35):
        updates.append({"id": updates[0]["id"], "metadata": {"again": True}})
    if chance(rng, 25):
        updates.insert(0, {"id": "unknown", "content": "?"})
    if chance(rng, 15):
        updates.append({"id": pick(rng, pools.IDS), "role": "nobody"})
    return ops.UpdateMessages(updates=updates)


def delete(rng: Random, ids: Any = pools.IDS) -> ops.DeleteMessages:
    """Some ids; an unknown one, a repeated one, none, or a bare string now and then."""
    match pick(rng, range(6)):
        case 0:
            return ops.DeleteMessages(ids=[])
        case 1:
            return ops.DeleteMessages(ids=pick(rng, ids))
        case _:
            named = distinct(rng, ids, 1, 2)
            if chance(rng, 70):
                named.append(named[0])
            if chance(rng, 40):
                named.insert(0, "unknown")
            return ops.DeleteMessages(ids=named)


def tick(rng: Random) -> ops.Tick:
    """The clock moves, backwards too."""
    return ops.Tick(ms=pick(rng, (1, 1000, 1000, 60_000, -1, -60_000)))


def change(rng: Random, names: Any) -> list[ops.AnyOperation]:
    """One write of any kind to messages, and an observation."""
    thread = pick(rng, names)
    match pick(rng, range(19)):
        case 0 | 1 | 2:
            step: ops.AnyOperation = save(rng, thread)
        case 3 | 4 | 5:
            step = resave(rng, thread)
        case 6 | 7 | 8 | 16:
            step = refused_save(rng, thread)
        case 9 | 10 | 11:
            step = update(rng)
        case 12 | 13 | 18:
            step = delete(rng)
        case 14 | 17:
            step = ops.ClearMessages(thread_id=pick(rng, (thread, thread, "nowhere")))
        case _:
            step = ops.SaveMessages(messages=[])
    before: list[ops.AnyOperation] = [tick(rng)] if chance(rng, 60) else []
    return [*before, step, OBSERVE]
