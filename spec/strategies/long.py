"""Long programs: the whole interface at once, several threads, resources and clients, and reopens between.

Short programs look for one thing each. These are for what shows only when things meet: a clone of a thread whose
messages were moved, a search after a reopen by another client than the one that saved.
"""

from __future__ import annotations

from random import Random

import msgspec

from .. import program as ops
from ..forms import Form
from . import arrange, pools, semantic, vectors
from .arrange import OBSERVE
from .pools import chance, distinct, pick

Operations = list[ops.AnyOperation]

LEAST, MOST = 30, 60
"""Operations of a program, observations included."""

INDEX = "notes"
COPIES = ("c1", "c2", "c3")
LIKES: tuple[Form, ...] = (1, 2, "1", True, None, "a", "b")


def long(rng: Random) -> ops.Program:
    """Everything: threads, messages, clones, searches, vectors, by two clients, with reopens between."""
    clients = pick(rng, (1, 2, 2))
    size = rng.randint(LEAST, MOST)
    steps: Operations = []
    for name in ("t1", "t2", "t3"):
        metadata = {"p": pick(rng, (1, 2, "1"))}
        steps.append(ops.CreateThread(id=name, resource_id=arrange.OWNERS[name], metadata=metadata))
    steps += [arrange.tied(rng, "t1", distinct(rng, pools.IDS, 3, 5)), _spoken(rng, "t2")]
    steps += [ops.CreateIndex(index=INDEX, dimension=3, metric=pick(rng, vectors.METRICS)), _upsert(rng), OBSERVE]
    while len(steps) < size - 1:
        steps += _next(rng)
    chosen = [_by(rng, step, clients) for step in steps[: size - 1]]
    return ops.Program(operations=(*chosen, OBSERVE), options={"semantic_recall": True}, embedder=semantic.DIMENSION)


def _by(rng: Random, step: ops.AnyOperation, clients: int) -> ops.AnyOperation:
    """The operation, made by one of the clients."""
    if step.role == "control" or isinstance(step, ops.Together):
        return step
    return msgspec.structs.replace(step, client=rng.randrange(clients))


def _next(rng: Random) -> Operations:
    """One more thing that happens, and an observation after a write."""
    thread = pick(rng, ("t1", "t1", "t2", "t3", *COPIES[:2]))
    luck = rng.randrange(100)
    if luck < 28:
        return arrange.change(rng, ("t1", "t1", "t2"))
    if luck < 36:
        return [ops.Tick(ms=1000), _spoken(rng, thread), OBSERVE]
    if luck < 44:
        given: dict[str, Form] = {"message_limit": pick(rng, (0, 1, 2))} if chance(rng, 40) else {}
        copy = pick(rng, COPIES)
        return [ops.CloneThread(source_thread_id=thread, new_thread_id=copy, label=f"of-{copy}", **given), OBSERVE]
    if luck < 50:
        changes: Form = {pick(rng, ("p", "q")): pick(rng, LIKES)}
        return [arrange.tick(rng), ops.UpdateThread(thread_id=thread, metadata=changes), OBSERVE]
    if luck < 54:
        gone = pick(rng, ("t2", "t3", *COPIES))
        again = [arrange.create(rng, gone)] if gone in arrange.OWNERS and chance(rng, 60) else []
        return [ops.DeleteThread(thread_id=gone), *again, OBSERVE]
    if luck < 60:
        return [ops.Reopen(), OBSERVE]
    if luck < 70:
        return [_page(rng, thread)]
    if luck < 80:
        return [_search(rng, thread)]
    if luck < 84:
        listing = ops.ListThreads(filter={"resource_id": pick(rng, ("r1", "r2"))}, order_by={"direction": "ASC"})
        return [pick(rng, (listing, ops.ListClones(source_thread_id="t1")))]
    if luck < 92:
        return [_index_write(rng), OBSERVE]
    query = ops.QueryVectors(
        index=INDEX,
        vector=pick(rng, ([1, 0, 0], [0, 1, 0], [1, 1, 0])),
        top_k=pick(rng, (1, 2, 10)),
        filter=vectors.where(rng, LIKES),
        exact=True,
    )
    return [query]


def _spoken(rng: Random, thread: str) -> ops.SaveMessages:
    """Messages whose texts say their vector."""
    batch: list[Form] = [
        {
            "id": f"{name}{pick(rng, ('', '2'))}",
            "thread_id": thread,
            "content": semantic.content(rng),
            "created_at": {"$at": pick(rng, pools.NEAR)},
            "metadata": {"k": pick(rng, LIKES)},
        }
        for name in distinct(rng, pools.IDS, 1, 3)
    ]
    given: dict[str, Form] = {"thread_config": semantic.OFF} if chance(rng, 20) else {}
    return ops.SaveMessages(messages=batch, **given)


def _page(rng: Random, thread: str) -> ops.Recall:
    given: dict[str, Form] = {}
    if chance(rng, 50):
        given["filter"] = {"metadata": {"k": pick(rng, LIKES)}}
    if chance(rng, 50):
        given["include"] = [{"id": pick(rng, pools.IDS), "with_previous_messages": pick(rng, (0, 1, 2))}]
    return ops.Recall(
        thread_id=thread,
        per_page=pick(rng, (False, 0, 1, 2)),
        order_by={"direction": pick(rng, ("ASC", "DESC"))},
        **given,
    )


def _search(rng: Random, thread: str) -> ops.Recall:
    recall: dict[str, Form] = {"top_k": pick(rng, (1, 2, 10)), "message_range": pick(rng, (0, 1))}
    if chance(rng, 50):
        recall["filter"] = pick(rng, semantic.FILTERS)
    return ops.Recall(
        thread_id=thread,
        vector_search_string=pick(rng, semantic.DIRECTIONS),
        per_page=pick(rng, (0, 1)),
        thread_config={"semantic_recall": recall},
    )


def _upsert(rng: Random) -> ops.UpsertVectors:
    rows: list[Form] = [
        {"id": name, "vector": vectors.vector(rng, 3), "metadata": vectors.metadata(rng, LIKES)}
        for name in distinct(rng, vectors.ROW_IDS, 2, 5)
    ]
    return ops.UpsertVectors(index=INDEX, vectors=rows)


def _index_write(rng: Random) -> ops.AnyOperation:
    match rng.randrange(4):
        case 0:
            return ops.UpdateVector(index=INDEX, id=pick(rng, vectors.ROW_IDS), metadata={"k": pick(rng, LIKES)})
        case 1:
            return ops.DeleteVectors(index=INDEX, ids=distinct(rng, vectors.ROW_IDS, 1, 3))
        case 2:
            return ops.DeleteVectors(index=INDEX, filter={"k": pick(rng, LIKES)})
        case _:
            return _upsert(rng)
