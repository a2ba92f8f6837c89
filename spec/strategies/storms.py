"""What a client does that is going to be broken off: many small writes to rows of its own, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Literal

from .. import program as ops
from ..capabilities import Capabilities
from ..forms import Form
from . import pools
from .pools import chance, pick

Kind = Literal["memory", "embedded", "index"]


def kinds(capabilities: Capabilities) -> tuple[Kind, ...]:
    """The kinds of clients that a store can have."""
    found: list[Kind] = ["memory"] if capabilities.storage else []
    if capabilities.storage and capabilities.semantic_recall:
        found.append("embedded")
    if capabilities.vectors:
        found.append("index")
    return tuple(found)


def writer(rng: Random, kind: Kind, length: int, capabilities: Capabilities, bulk: int = 0) -> ops.Program:
    """So many writes. With `bulk`, texts (or metadata) of about so many characters, to fill a disk with."""
    steps = _vectors(rng, bulk) if kind == "index" else _messages(rng, capabilities, bulk)
    options: dict[str, Form] = {"semantic_recall": True} if kind == "embedded" else {}
    return ops.Program(tuple(islice(steps, length)), options, 3 if kind == "embedded" else 0)


def _messages(rng: Random, capabilities: Capabilities, bulk: int) -> Iterator[ops.AnyOperation]:
    yield ops.CreateThread(id="t", resource_id="r1", metadata={"k": 1})
    yield ops.CreateThread(id="t2", resource_id="r1")
    there: list[str] = []
    made = 0

    def message(name: str, thread: str) -> Form:
        made_of: Form = (
            {"$concat": [f"[1, {made % 97 / 10}, 0] {name} ", {"$repeat": ["x", bulk]}]}
            if bulk
            else (f"[1, {made % 97 / 10}, 0] {name}")
        )
        return {"id": name, "thread_id": thread, "content": made_of, "created_at": {"$at": pools.NOON}}

    while True:
        luck = pick(rng, range(20))
        if luck < 11 or not there:
            names = [f"m{made + i}" for i in range(pick(rng, (1, 2, 3, 4)))]
            made += len(names)
            again = [pick(rng, there)] if there and chance(rng, 30) else []
            yield ops.SaveMessages(
                messages=[message(name, pick(rng, ("t", "t", "t", "t2"))) for name in (*names, *again)]
            )
            there += names
        elif luck < 14:
            yield ops.UpdateMessages(updates=[{"id": pick(rng, there), "metadata": {f"k{luck}": made}} for _ in "ab"])
        elif luck < 16:
            gone = {pick(rng, there), pick(rng, there)}
            there = [name for name in there if name not in gone]
            yield ops.DeleteMessages(ids=sorted(gone))
        elif luck < 18:
            yield ops.UpdateThread(thread_id=pick(rng, ("t", "t2")), metadata={f"k{made % 5}": made})
        elif luck == 18 and capabilities.clone:
            made += 1
            yield ops.CloneThread(source_thread_id="t2", new_thread_id=f"copy{made}", label=f"c{made}", message_limit=3)
            if chance(rng, 70):
                yield ops.DeleteThread(thread_id=f"copy{made}")
        else:
            yield ops.ClearMessages(thread_id="t2")


def _vectors(rng: Random, bulk: int) -> Iterator[ops.AnyOperation]:
    yield ops.CreateIndex(index="notes", dimension=2)
    there: list[str] = []
    made = 0

    def row(name: str) -> Form:
        heavy: dict[str, Form] = {"text": {"$repeat": ["x", bulk]}} if bulk else {}
        return {"id": name, "vector": [1, made % 97], "metadata": {"n": made, **heavy}}

    while True:
        luck = pick(rng, range(10))
        if luck < 6 or not there:
            names = [f"v{made + i}" for i in range(pick(rng, (1, 2, 3, 4)))]
            made += len(names)
            yield ops.UpsertVectors(index="notes", vectors=[row(name) for name in names])
            there += names
        elif luck < 8:
            yield ops.UpdateVector(index="notes", id=pick(rng, there), metadata={"n": made})
        else:
            gone = {pick(rng, there), pick(rng, there)}
            there = [name for name in there if name not in gone]
            yield ops.DeleteVectors(index="notes", ids=sorted(gone))
