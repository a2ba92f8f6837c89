"""Programs of calls that meet: several clients at once, and processes that die in a call.

Every race is rehearsed: the same calls are made one after another before it, on rows of other names. What is wrong
with them alone shows there, and is not blamed on their meeting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from .. import program as ops
from ..forms import Form
from . import pools
from .pools import chance, distinct, pick

Branches = list[list[ops.Raced]]
Operations = list[ops.AnyOperation]
Kind = Callable[[Random, str, str], Branches]
"""Makes the branches of a race, given the name of its thread (or index) and what its messages' ids begin with."""

ASC: Form = {"direction": "ASC"}
OLD = ("z", "a", "m")
"""Messages that are there before; their order is not that of the alphabet."""


def memory(rng: Random) -> ops.Program:
    """CON-2: threads and messages."""
    return _raced(rng, MEMORY, _thread)


def embedded(rng: Random) -> ops.Program:
    """CON-2a: messages with embeddings."""
    return _raced(rng, EMBEDDED, _thread, options={"semantic_recall": True}, embedder=3)


def indices(rng: Random) -> ops.Program:
    """CON-2b: vector indices."""
    return _raced(rng, INDICES, _index)


def _raced(
    rng: Random,
    kinds: Sequence[Kind],
    arranged: Callable[[str, str], Operations],
    options: dict[str, Form] | None = None,
    embedder: int = 0,
) -> ops.Program:
    kind, seed = pick(rng, kinds), rng.getrandbits(32)
    rehearsed = kind(Random(seed), "u", "u-")
    steps: Operations = [*arranged("u", "u-"), ops.Tick(ms=1000)]
    steps += [call for branch in rehearsed for call in branch]
    steps += [ops.Observe(client=1), ops.Observe(), *arranged("t", ""), ops.Observe(), ops.Tick(ms=1000)]
    steps += [ops.Race(branches=kind(Random(seed), "t", "")), *_both()]
    if kind in (_deletion, _creates):
        # What a thread that is gone has left comes to light when its id is taken again.
        steps += [ops.CreateThread(id="t", resource_id="r1"), *_both()]
    if embedder:
        nearest: Form = {"semantic_recall": {"top_k": 10, "message_range": 0}}
        steps.append(ops.Recall(thread_id="t", vector_search_string="[1, 0, 0]", per_page=0, thread_config=nearest))
    return ops.Program(operations=tuple(steps), options=options or {}, embedder=embedder)


def _both() -> Operations:
    return [ops.Observe(client=1), ops.Observe()]


# Threads and messages


def _thread(thread: str, prefix: str) -> Operations:
    batch: list[Form] = [_message(thread, prefix + name, number) for number, name in enumerate(OLD)]
    return [
        ops.CreateThread(id=thread, resource_id="r1", metadata={"k": 1}),
        ops.CreateThread(id=thread + "2", resource_id="r1"),
        ops.SaveMessages(messages=batch),
    ]


def _message(thread: str, name: str, number: int, content: str = "", **given: Form) -> Form:
    """All of one instant: their order is that in which they came. Each has a direction of its own."""
    text = content or f"[1, {number / 10}, 0] {name}"
    return {"id": name, "thread_id": thread, "content": text, "created_at": {"$at": pools.NOON}, **given}


def _save(thread: str, *names: str, number: int = 5) -> ops.SaveMessages:
    return ops.SaveMessages(messages=[_message(thread, name, number + i) for i, name in enumerate(names)])


def _reader(thread: str) -> list[ops.Raced]:
    listing = ops.Recall(thread_id=thread, per_page=False, order_by=ASC)
    return [listing, ops.GetThread(thread_id=thread), listing]


def _savers(rng: Random, thread: str, prefix: str) -> Branches:
    """Each saves messages of its own into one thread, one batch after another."""
    branches: Branches = []
    for branch in range(pick(rng, (2, 3, 3))):
        batches = pick(rng, (1, 2))
        size = pick(rng, (1, 2, 3))
        branches.append(
            [
                _save(thread, *(f"{prefix}s{branch}{batch}{row}" for row in range(size)), number=5 + 9 * branch + 3 * batch)
                for batch in range(batches)
            ]
        )
    return _watched(rng, branches, thread)


def _of_one(rng: Random, thread: str, prefix: str) -> Branches:
    """All save one message, which is there or not."""
    name = prefix + pick(rng, ("z", "new"))
    branches: Branches = [
        [ops.SaveMessages(messages=[_message(thread, name, 5 + branch, metadata={"by": branch})])] for branch in range(3)
    ]
    if chance(rng, 40):
        branches[2] = [ops.SaveMessages(messages=[_message(thread + "2", name, 8, metadata={"by": 2})])]
    return _watched(rng, branches, thread)


def _mergers(rng: Random, thread: str, prefix: str) -> Branches:
    """Each merges into the thread, or into a message, and some into one key."""
    branches: Branches = []
    for branch in range(3):
        changes: dict[str, Form] = {f"k{branch}": branch, "last": branch}
        title: dict[str, Form] = {"title": f"by {branch}"} if chance(rng, 50) else {}
        merge: ops.Raced = ops.UpdateThread(thread_id=thread, metadata=changes, **title)
        if chance(rng, 50):
            merge = ops.UpdateMessages(updates=[{"id": prefix + "z", "metadata": changes}])
        branches.append([merge, ops.UpdateMessages(updates=[{"id": prefix + "z", "metadata": {f"m{branch}": branch}}])])
    return branches


def _deletion(rng: Random, thread: str, prefix: str) -> Branches:
    """The thread is deleted, and perhaps made anew, while others save into it."""
    gone: list[ops.Raced] = [ops.DeleteThread(thread_id=thread)]
    if chance(rng, 40):
        gone += [ops.CreateThread(id=thread, resource_id="r1", title="again")]
    branches: Branches = [gone, [_save(thread, prefix + "n1", prefix + "n2"), _save(thread, prefix + "n3", number=8)]]
    branches.append([pick(rng, (_save(thread, prefix + "z"), _save(thread, prefix + "n4", number=9)))])
    return _watched(rng, branches, thread)


def _clearing(rng: Random, thread: str, prefix: str) -> Branches:
    """Messages are deleted while others are saved and changed."""
    gone: ops.Raced = ops.ClearMessages(thread_id=thread)
    if chance(rng, 50):
        gone = ops.DeleteMessages(ids=[prefix + "z", prefix + "m"])
    change = ops.UpdateMessages(updates=[{"id": prefix + "z", "content": "[1, 0.7, 0] changed"}])
    branches: Branches = [[gone], [_save(thread, prefix + "n1", prefix + "n2")], [change]]
    return _watched(rng, branches, thread)


def _clone(rng: Random, thread: str, prefix: str) -> Branches:
    """The thread is cloned while others save into it."""
    copy = ops.CloneThread(source_thread_id=thread, new_thread_id=f"{thread}-copy", label=f"{prefix}c")
    branches: Branches = [[copy], [_save(thread, prefix + "n1"), _save(thread, prefix + "n2", prefix + "n3", number=6)]]
    if chance(rng, 50):
        branches.append([_save(thread, prefix + "n4", number=9)])
    return branches


def _creates(rng: Random, thread: str, prefix: str) -> Branches:
    """All create one thread, one of them by cloning."""
    name = f"{thread}-new"
    branches: Branches = [[ops.CreateThread(id=name, resource_id="r1", title=f"by {branch}")] for branch in range(3)]
    if chance(rng, 40):
        branches.append([ops.CloneThread(source_thread_id=thread, new_thread_id=name, label=f"{prefix}c")])
    if chance(rng, 40):
        branches[0].append(_save(name, prefix + "first"))
    return branches


def _movers(rng: Random, thread: str, prefix: str) -> Branches:
    """Messages go from one thread to another and back, and others with them."""
    there, back = thread + "2", thread
    branches: Branches = [
        [_save(there, prefix + "z", prefix + "n1")],
        [_save(there, prefix + "a", number=7), _save(back, prefix + "n2", number=8)],
        [_save(back, prefix + "n3", prefix + "m", number=9)],
    ]
    return branches[: pick(rng, (2, 3))]


def _watched(rng: Random, branches: Branches, thread: str) -> Branches:
    """With somebody who reads meanwhile, two times in three."""
    return [*branches, _reader(thread)] if chance(rng, 66) else branches


MEMORY: Sequence[Kind] = (
    *(_savers, _of_one, _of_one, _mergers, _mergers, _deletion, _deletion, _clearing),
    *(_clone, _clone, _creates, _creates, _movers),
)
EMBEDDED: Sequence[Kind] = (_savers, _of_one, _deletion, _deletion, _clearing, _clone)


# Vector indices


def _index(name: str, prefix: str) -> Operations:
    rows: list[Form] = [_row(prefix + old, number) for number, old in enumerate(OLD)]
    return [ops.CreateIndex(index=name, dimension=2), ops.UpsertVectors(index=name, vectors=rows)]


def _row(name: str, number: int, **metadata: Form) -> Form:
    return {"id": name, "vector": [1, number], "metadata": {"n": number, **metadata}}


def _upserts(rng: Random, name: str, prefix: str) -> Branches:
    branches: Branches = []
    for branch in range(3):
        rows: list[Form] = [_row(f"{prefix}v{branch}{row}", branch * 3 + row) for row in range(pick(rng, (1, 2, 3)))]
        branches.append([ops.UpsertVectors(index=name, vectors=rows)])
    return [*branches, _looks(name, prefix)] if chance(rng, 66) else branches


def _one_row(rng: Random, name: str, prefix: str) -> Branches:
    target = prefix + pick(rng, ("z", "new"))
    return [[ops.UpsertVectors(index=name, vectors=[_row(target, 5 + branch)])] for branch in range(3)]


def _changes(rng: Random, name: str, prefix: str) -> Branches:
    target = prefix + "z"
    branches: Branches = [
        [ops.UpdateVector(index=name, id=target, vector=[1, 7])],
        [ops.UpdateVector(index=name, id=target, metadata={"n": 70})],
        [ops.UpdateVector(index=name, id=target, vector=[1, 8], metadata={"n": 80})],
    ]
    return [*distinct(rng, branches, 2, 3), _looks(name, prefix)]


def _removals(rng: Random, name: str, prefix: str) -> Branches:
    gone: list[ops.Raced] = [
        pick(
            rng,
            (
                ops.DeleteVectors(index=name, ids=[prefix + "z", prefix + "n1"]),
                ops.DeleteVectors(index=name, filter={"n": {"$lt": 2}}),
                ops.DropIndex(index=name),
            ),
        )
    ]
    if isinstance(gone[0], ops.DropIndex) and chance(rng, 50):
        gone.append(ops.CreateIndex(index=name, dimension=2))
    rows: list[Form] = [_row(prefix + "n1", 5), _row(prefix + "n2", 6)]
    change = ops.UpdateVector(index=name, id=prefix + "z", metadata={"n": 7})
    return [gone, [ops.UpsertVectors(index=name, vectors=rows)], [change]]


def _new_index(rng: Random, name: str, prefix: str) -> Branches:
    new = f"{name}-new"
    branches: Branches = [[ops.CreateIndex(index=new, dimension=pick(rng, (2, 3)))] for _ in range(3)]
    branches[0] = [ops.CreateIndex(index=new, dimension=2), ops.UpsertVectors(index=new, vectors=[_row(prefix + "n", 5)])]
    return branches


def _looks(name: str, prefix: str) -> list[ops.Raced]:
    return [
        ops.GetVectors(index=name, ids=[prefix + "z", prefix + "a", prefix + "v00", prefix + "v10"]),
        ops.QueryVectors(index=name, vector=[1, 0], top_k=3, exact=True),
    ]


INDICES: Sequence[Kind] = (_upserts, _one_row, _one_row, _changes, _removals, _removals, _new_index)


# Processes that die


def kills(rng: Random) -> ops.Program:
    """DUR-1a: a process dies in a call, and what it and others had been told is there."""
    if chance(rng, 25):
        rows: list[Form] = [_row("z", 7), _row("n1", 5), _row("n2", 6)]
        dying: ops.Raced = pick(
            rng, (ops.UpsertVectors(index="t", vectors=rows), ops.DeleteVectors(index="t", ids=["z", "a"]))
        )
        steps = [*_index("t", ""), ops.Observe()]
    else:
        dying = pick(
            rng,
            (
                ops.SaveMessages(messages=[_message("t", name, 5 + i) for i, name in enumerate(("n1", "z", "n2"))]),
                ops.SaveMessages(messages=[_message("t2", name, 5 + i) for i, name in enumerate(("n1", "a"))]),
                ops.UpdateMessages(updates=[{"id": name, "content": "changed"} for name in ("z", "m")]),
                ops.DeleteMessages(ids=["z", "m"]),
                ops.ClearMessages(thread_id="t"),
                ops.DeleteThread(thread_id="t"),
                ops.CloneThread(source_thread_id="t", new_thread_id="t-copy", label="c"),
                ops.UpdateThread(thread_id="t", metadata={"k": 2}),
            ),
        )
        acknowledged = _save("t", "s1", "s2")
        steps = [*_thread("t", ""), ops.Observe(), ops.Tick(ms=1000), acknowledged]
    steps += [ops.Kill(operation=dying, point=pick(rng, ("before commit", "after commit"))), ops.Observe()]
    if chance(rng, 50):
        steps += [ops.Reopen(), ops.Observe()]
    return ops.Program(operations=tuple(steps))
