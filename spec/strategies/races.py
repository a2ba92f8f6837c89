"""Programs of calls that meet: several clients at once, and processes that die in a call.

Every race is rehearsed: the same calls are made one after another before it, on rows of other names. What is wrong
with them alone shows there, and is not blamed on their meeting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from .. import program as ops
from ..forms import Form
from . import pools
from .pools import chance, distinct, pick

Branches = list[list[ops.Raced]]
Operations = list[ops.AnyOperation]
ASC: Form = {"direction": "ASC"}


@dataclass(frozen=True)
class Place:
    """Where a race is held: the thread or index, what begins the ids of its rows, and those that are there before.

    The order of these is not that of the alphabet.
    """

    name: str
    prefix: str
    letters: Sequence[str]

    @property
    def old(self) -> list[str]:
        """The ids of the rows that are there before."""
        return [self.prefix + letter for letter in self.letters]

    def new(self, name: str) -> str:
        """The id of a row that is not."""
        return f"{self.prefix}n{name}"


Kind = Callable[[Random, Place], Branches]
"""Makes the branches of a race."""


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
    arranged: Callable[[Place], Operations],
    options: dict[str, Form] | None = None,
    embedder: int = 0,
) -> ops.Program:
    kind, seed = pick(rng, kinds), rng.getrandbits(32)
    letters = distinct(rng, pools.IDS, 3, 3)
    before, here = Place("u", "u", letters), Place("t", "", letters)
    steps: Operations = [*arranged(before), ops.Tick(ms=1000)]
    for branch in kind(Random(seed), before):
        steps += [*branch, ops.Observe()]
    if embedder:
        steps.append(_nearest("u"))
    steps += [ops.Observe(client=1), *arranged(here), ops.Observe()]
    steps += [*([_nearest("t")] if embedder else []), ops.Tick(ms=pick(rng, (1, 1000)))]
    steps += [ops.Race(branches=kind(Random(seed), here)), *_both()]
    if kind in (_deletion, _creates):
        # What a thread that is gone has left comes to light when its id is taken again.
        steps += [ops.CreateThread(id="t", resource_id="r1"), *_both()]
    if embedder:
        steps.append(_nearest("t"))
    return ops.Program(operations=tuple(steps), options=options or {}, embedder=embedder)


def _nearest(thread: str) -> ops.Recall:
    """All messages that have an embedding, each with a score of its own."""
    everything: Form = {"semantic_recall": {"top_k": 50, "message_range": 0}}
    return ops.Recall(thread_id=thread, vector_search_string="[1, 0, 0]", per_page=0, thread_config=everything)


def _both() -> Operations:
    return [ops.Observe(client=1), ops.Observe()]


# Threads and messages


def _thread(place: Place) -> Operations:
    batch: list[Form] = [_message(place.name, name, number) for number, name in enumerate(place.old)]
    return [
        ops.CreateThread(id=place.name, resource_id="r1", metadata={"k": 1}),
        ops.CreateThread(id=place.name + "2", resource_id="r1"),
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


def _savers(rng: Random, place: Place) -> Branches:
    """Each saves messages of its own into one thread, one batch after another."""
    thread = place.name
    branches: Branches = []
    for branch in range(pick(rng, (2, 3, 3))):
        batches = pick(rng, (1, 2))
        size = pick(rng, (1, 2, 3))
        branches.append(
            [
                _save(
                    thread,
                    *(place.new(f"{branch}{batch}{row}") for row in range(size)),
                    number=5 + 9 * branch + 3 * batch,
                )
                for batch in range(batches)
            ]
        )
    return _watched(rng, branches, thread)


def _of_one(rng: Random, place: Place) -> Branches:
    """All save one message, which is there or not."""
    thread = place.name
    name = pick(rng, (*place.old, place.new("0")))
    branches: Branches = [
        [ops.SaveMessages(messages=[_message(thread, name, 5 + branch, metadata={"by": branch})])]
        for branch in range(3)
    ]
    if chance(rng, 40):
        branches[2] = [ops.SaveMessages(messages=[_message(thread + "2", name, 8, metadata={"by": 2})])]
    return _watched(rng, branches, thread)


def _mergers(rng: Random, place: Place) -> Branches:
    """Each merges into the thread, or into a message, and some into one key."""
    thread = place.name
    branches: Branches = []
    for branch in range(3):
        changes: dict[str, Form] = {f"k{branch}": branch, "last": branch}
        title: dict[str, Form] = {"title": f"by {branch}"} if chance(rng, 50) else {}
        merge: ops.Raced = ops.UpdateThread(thread_id=thread, metadata=changes, **title)
        if chance(rng, 50):
            merge = ops.UpdateMessages(updates=[{"id": place.old[0], "metadata": changes}])
        branches.append([merge, ops.UpdateMessages(updates=[{"id": place.old[0], "metadata": {f"m{branch}": branch}}])])
    return branches


def _deletion(rng: Random, place: Place) -> Branches:
    """The thread is deleted, and perhaps made anew, while others save into it."""
    thread = place.name
    gone: list[ops.Raced] = [ops.DeleteThread(thread_id=thread)]
    if chance(rng, 40):
        gone += [ops.CreateThread(id=thread, resource_id="r1", title="again")]
    saves: list[ops.Raced] = [_save(thread, place.new("1"), place.new("2")), _save(thread, place.new("3"), number=8)]
    other = pick(rng, (_save(thread, place.old[0]), _save(thread, place.new("4"), number=9)))
    # The deletion last, so that the saves are rehearsed, too.
    return _watched(rng, [saves, [other], gone], thread)


def _clearing(rng: Random, place: Place) -> Branches:
    """Messages are deleted while others are saved and changed."""
    thread = place.name
    gone: ops.Raced = ops.ClearMessages(thread_id=thread)
    if chance(rng, 50):
        gone = ops.DeleteMessages(ids=[place.old[0], place.old[2]])
    change = ops.UpdateMessages(updates=[{"id": place.old[0], "content": "[1, 0.7, 0] changed"}])
    branches: Branches = [[_save(thread, place.new("1"), place.new("2"))], [change], [gone]]
    return _watched(rng, branches, thread)


def _clone(rng: Random, place: Place) -> Branches:
    """The thread is cloned while others save into it."""
    thread = place.name
    given: dict[str, Form] = {"title": "copy"} if chance(rng, 50) else {}
    if chance(rng, 30):
        given["message_limit"] = pick(rng, (2, 4))
    copy = ops.CloneThread(source_thread_id=thread, new_thread_id=f"{thread}copy", label=f"{place.prefix}c", **given)
    branches: Branches = [
        [copy],
        [_save(thread, place.new("1")), _save(thread, place.new("2"), place.new("3"), number=6)],
    ]
    if chance(rng, 50):
        branches.append([_save(thread, place.new("4"), number=9)])
    return branches


def _creates(rng: Random, place: Place) -> Branches:
    """All create one thread, one of them by cloning."""
    thread = place.name
    name = f"{thread}new"
    branches: Branches = [[ops.CreateThread(id=name, resource_id="r1", title=f"by {branch}")] for branch in range(3)]
    if chance(rng, 40):
        # The first, so that it succeeds where they are rehearsed.
        branches.insert(0, [ops.CloneThread(source_thread_id=thread, new_thread_id=name, label=f"{place.prefix}c")])
    if chance(rng, 40):
        branches[0].append(_save(name, place.new("0")))
    return branches


def _movers(rng: Random, place: Place) -> Branches:
    """Messages go from one thread to another and back, and others with them."""
    thread = place.name
    there, back = thread + "2", thread
    branches: Branches = [
        [_save(there, place.old[0], place.new("1"))],
        [_save(there, place.old[1], number=7), _save(back, place.new("2"), number=8)],
        [_save(back, place.new("3"), place.old[2], number=9)],
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


def _index(place: Place) -> Operations:
    rows: list[Form] = [_row(name, number) for number, name in enumerate(place.old)]
    return [ops.CreateIndex(index=place.name, dimension=2), ops.UpsertVectors(index=place.name, vectors=rows)]


def _row(name: str, number: int, **metadata: Form) -> Form:
    return {"id": name, "vector": [1, number], "metadata": {"n": number, **metadata}}


def _upserts(rng: Random, place: Place) -> Branches:
    name = place.name
    branches: Branches = []
    for branch in range(3):
        rows: list[Form] = [_row(place.new(f"{branch}{row}"), branch * 3 + row) for row in range(pick(rng, (1, 2, 3)))]
        branches.append([ops.UpsertVectors(index=name, vectors=rows)])
    return [*branches, _looks(place)] if chance(rng, 66) else branches


def _one_row(rng: Random, place: Place) -> Branches:
    name = place.name
    target = pick(rng, (*place.old, place.new("0")))
    return [[ops.UpsertVectors(index=name, vectors=[_row(target, 5 + branch)])] for branch in range(3)]


def _changes(rng: Random, place: Place) -> Branches:
    name = place.name
    target = place.old[0]
    branches: Branches = [
        [ops.UpdateVector(index=name, id=target, vector=[1, 7])],
        [ops.UpdateVector(index=name, id=target, metadata={"n": 70})],
        [ops.UpdateVector(index=name, id=target, vector=[1, 8], metadata={"n": 80})],
    ]
    return [*distinct(rng, branches, 2, 3), _looks(place)]


def _removals(rng: Random, place: Place) -> Branches:
    name = place.name
    gone: list[ops.Raced] = [
        pick(
            rng,
            (
                ops.DeleteVectors(index=name, ids=[place.old[0], place.new("1")]),
                ops.DeleteVectors(index=name, filter={"n": {"$lt": 2}}),
                ops.DropIndex(index=name),
            ),
        )
    ]
    if isinstance(gone[0], ops.DropIndex) and chance(rng, 50):
        gone.append(ops.CreateIndex(index=name, dimension=2))
    rows: list[Form] = [_row(place.new("1"), 5), _row(place.new("2"), 6)]
    change = ops.UpdateVector(index=name, id=place.old[0], metadata={"n": 7})
    return [[ops.UpsertVectors(index=name, vectors=rows)], [change], gone]


def _new_index(rng: Random, place: Place) -> Branches:
    name = place.name
    new = f"{name}new"
    branches: Branches = [[ops.CreateIndex(index=new, dimension=pick(rng, (2, 3)))] for _ in range(3)]
    branches[0] = [
        ops.CreateIndex(index=new, dimension=2),
        ops.UpsertVectors(index=new, vectors=[_row(place.new("0"), 5)]),
    ]
    return branches


def _looks(place: Place) -> list[ops.Raced]:
    name = place.name
    return [
        ops.GetVectors(index=name, ids=[place.old[0], place.old[1], place.new("00"), place.new("10")]),
        ops.QueryVectors(index=name, vector=[1, 0], top_k=3, exact=True),
    ]


INDICES: Sequence[Kind] = (_upserts, _one_row, _one_row, _changes, _removals, _removals, _new_index)


# Processes that die


def kills(rng: Random) -> ops.Program:
    """DUR-1a: a process dies in a call, and what it and others had been told is there.

    The call is rehearsed, as those of races are.
    """
    letters, seed = distinct(rng, pools.IDS, 3, 3), rng.getrandbits(32)
    before, here = Place("u", "u", letters), Place("t", "", letters)
    index = chance(rng, 25)
    arranged, dying = (_index, _dying_index) if index else (_thread, _dying)
    acknowledged: Operations = [] if index else [_save("t", here.new("8"), here.new("9"))]
    point = pick(rng, ("before commit", "after commit"))
    steps = [
        *(*arranged(before), ops.Observe(), ops.Tick(ms=1000), dying(Random(seed), before), ops.Observe()),
        *(*arranged(here), ops.Observe(), ops.Tick(ms=1000), *acknowledged),
        *(ops.Kill(operation=dying(Random(seed), here), point=point), ops.Observe()),
    ]
    if chance(rng, 50):
        steps += [ops.Reopen(), ops.Observe()]
    return ops.Program(operations=tuple(steps))


def _dying(rng: Random, place: Place) -> ops.Raced:
    """A call on threads and messages."""
    thread, (one, two, three) = place.name, place.old
    calls: tuple[ops.Raced, ...] = (
        _save(thread, place.new("1"), one, place.new("2")),
        _save(thread + "2", place.new("1"), two),
        ops.UpdateMessages(updates=[{"id": name, "content": "changed"} for name in (one, three)]),
        ops.DeleteMessages(ids=[one, three]),
        ops.ClearMessages(thread_id=thread),
        ops.DeleteThread(thread_id=thread),
        ops.CloneThread(source_thread_id=thread, new_thread_id=f"{thread}copy", label=f"{place.prefix}c"),
        ops.UpdateThread(thread_id=thread, metadata={"k": 2}),
    )
    return pick(rng, calls)


def _dying_index(rng: Random, place: Place) -> ops.Raced:
    """A call on an index."""
    one, two, _ = place.old
    rows: list[Form] = [_row(one, 7), _row(place.new("1"), 5), _row(place.new("2"), 6)]
    calls: tuple[ops.Raced, ...] = (
        ops.UpsertVectors(index=place.name, vectors=rows),
        ops.DeleteVectors(index=place.name, ids=[one, two]),
    )
    return pick(rng, calls)
