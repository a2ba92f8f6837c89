"""Programs by what they put to the test: arrange (never vacuous), collide (few ids, few instants), observe."""

from __future__ import annotations

from random import Random
from typing import Any, cast

from .. import program as ops
from ..forms import Form
from . import arrange, pools
from .arrange import OBSERVE
from .pools import chance, distinct, instant, pick, some

ASC: Form = {"direction": "ASC"}
DESC: Form = {"direction": "DESC"}
Operations = list[ops.AnyOperation]


def _program(rng: Random, operations: Operations, **options: Form) -> ops.Program:
    """The program, a third of the time with one more write of any kind to t1."""
    if chance(rng, 35):
        operations = [*operations, *arrange.change(rng, ("t1",))]
    return ops.Program(operations=tuple(operations), options=options)


def messages(rng: Random) -> ops.Program:
    """MSG, ORD-1, VAL-4: histories of writes to threads that share ids and instants."""
    names = ("t1", "t1", "t2", "t3") if chance(rng, 60) else ("t1", "t1", "t2")
    steps = [*arrange.threads(rng, *dict.fromkeys(names)), arrange.tied(rng, "t1", distinct(rng, pools.IDS, 3, 4))]
    steps.append(OBSERVE)
    first: Any = steps[-2]
    ids = [item["id"] for item in first.messages]
    # Something happens to a message that stands before others of its instant.
    early = pick(rng, ids[:-1])
    match pick(rng, range(7)):
        case 0 | 1:
            steps += [ops.SaveMessages(messages=[{"id": early, "thread_id": "t1", "content": "again"}]), OBSERVE]
        case 2:
            steps += [ops.UpdateMessages(updates=[{"id": early, "content": "changed"}]), OBSERVE]
            if "t3" in names:
                stolen = {"id": early, "thread_id": "t3", "content": "stolen"}
                steps += [ops.SaveMessages(messages=[stolen]), OBSERVE]
        case 3 | 4:
            back = arrange.message(rng, early, "t1", {"$at": pools.NOON})
            steps += [ops.DeleteMessages(ids=[early]), ops.SaveMessages(messages=[back]), OBSERVE]
        case _:
            there, back = (
                {"id": early, "thread_id": thread, "content": "moved", "created_at": {"$at": pools.NOON}}
                for thread in ("t2", "t1")
            )
            steps += [ops.Tick(ms=1000), ops.SaveMessages(messages=[there]), OBSERVE]
            steps += [arrange.tick(rng), ops.SaveMessages(messages=[back]), OBSERVE]
    for _ in range(pick(rng, (1, 2, 2, 3))):
        steps += arrange.change(rng, names)
    return _program(rng, steps)


def values(rng: Random) -> ops.Program:
    """VAL, MSG-0: what is stored comes back, what is refused changes nothing."""
    steps: Operations = [ops.CreateThread(id="t1", resource_id="r1")]
    given: dict[str, Form] = {"title": pick(rng, pools.TEXTS)} if chance(rng, 50) else {}
    if chance(rng, 50):
        given["metadata"] = arrange.metadata(rng)
    if chance(rng, 50):
        given["created_at"] = instant(rng)
    thread_id = pick(rng, (*pools.ODD_IDS, "T1", "t1 "))
    steps += [ops.CreateThread(id=thread_id, resource_id=pick(rng, ("r1", "R1", "r'1")), **given), OBSERVE]
    ids: list[Form] = ["a", pick(rng, pools.ODD_IDS)]
    if chance(rng, 70):
        ids += pick(rng, (["\u00e9", "e\u0301"], ["A"], ["A"], ["a "]))
    batch: list[Form] = []
    for name in ids:
        content = pick(rng, (*pools.TEXTS, [pick(rng, pools.PARTS)]))
        fields: dict[str, Form] = {"id": name, "thread_id": pick(rng, ("t1", thread_id)), "content": content}
        if chance(rng, 60):
            fields["metadata"] = arrange.metadata(rng)
        if chance(rng, 70):
            kind = pick(rng, range(3))
            fields["created_at"] = {"$at": pick(rng, (pools.NEAR, pools.FINE, pools.FAR)[kind])}
        if chance(rng, 40):
            fields["role"] = pick(rng, pools.ROLES)
        batch.append(fields)
    steps += [ops.SaveMessages(messages=batch), OBSERVE]
    bad = _refused(rng)
    steps += [bad, OBSERVE] if bad.role == "write" else [bad]
    if chance(rng, 50):
        steps += [arrange.update(rng, ("a", pick(rng, ids))), OBSERVE]
    if chance(rng, 30):
        steps += [ops.GetThread(thread_id=pick(rng, ("t1", "T1", thread_id)))]
        steps += [ops.Recall(thread_id="t1", include=[{"id": pick(rng, ids)}])]
    return _program(rng, steps)


def _refused(rng: Random) -> ops.AnyOperation:
    """A call with one bad value."""
    text, name = pick(rng, pools.BAD_TEXTS), pick(rng, pools.BAD_IDS)
    meta, at = pick(rng, pools.BAD_METADATA), pick(rng, pools.BAD_INSTANTS)
    match pick(rng, range(20)):
        case 0:
            return ops.CreateThread(id=name, resource_id="r1")
        case 1:
            return ops.CreateThread(id="t9", resource_id=name)
        case 2:
            return ops.CreateThread(id="t9", resource_id="r1", title=text)
        case 3:
            return ops.CreateThread(id="t9", resource_id="r1", metadata=meta)
        case 4:
            return ops.CreateThread(id="t9", resource_id="r1", created_at=at)
        case 5:
            return ops.UpdateThread(thread_id="t1", metadata=meta)
        case 6:
            return ops.UpdateThread(thread_id="t1", title=text)
        case 7:
            return ops.GetThread(thread_id=name)
        case 8:
            return ops.Recall(thread_id=name)
        case 9:
            return ops.Recall(thread_id="t1", include=[{"id": name}])
        case 10:
            return ops.Recall(thread_id="t1", resource_id=name)
        case 11 | 12:
            return ops.Recall(
                thread_id="t1", filter={"date_range": {pick(rng, ("start", "end")): pick(rng, pools.BAD_INSTANTS)}}
            )
        case 13:
            return ops.DeleteMessages(ids=["a", name])
        case 14:
            return ops.UpdateMessages(updates=[{"id": "a", "content": "changed"}, {"id": "a", "metadata": meta}])
        case 15:
            return ops.UpdateMessages(updates=[{"id": "a", "content": text}])
        case _:
            return arrange.refused_save(rng, "t1")


def long_values(rng: Random) -> ops.Program:
    """VAL-2b: long content, and long ids that differ at their end."""
    first, second = distinct(rng, pools.LONG_IDS, 2, 2)
    other = pick(rng, pools.LONG_IDS)
    steps: Operations = [
        ops.CreateThread(id=first, resource_id="r1"),
        ops.CreateThread(id=second, resource_id=other),
        ops.SaveMessages(
            messages=[
                {"id": first, "thread_id": first, "content": pick(rng, pools.LONG_TEXTS)},
                {"id": second, "thread_id": pick(rng, (first, second)), "content": "x"},
            ]
        ),
        OBSERVE,
        ops.Recall(thread_id=first, include=[{"id": second}]),
        ops.UpdateThread(thread_id=second, title=pick(rng, pools.LONG_TEXTS)),
        OBSERVE,
    ]
    return _program(rng, steps)


def threads(rng: Random) -> ops.Program:
    """THR: creating, finding, merging, listing, deleting."""
    steps: Operations = arrange.threads(rng, "t1", "t2", "t3")
    steps.append(ops.CreateThread(resource_id=pick(rng, ("r1", "r2")), label="g1", metadata={"k": 1}))
    steps.append(OBSERVE)
    for _ in range(pick(rng, (1, 2, 3))):
        name = pick(rng, ("t1", "t2", "t3", "g1"))
        if chance(rng, 50):
            steps.append(arrange.tick(rng))
        match pick(rng, range(9)):
            case 0 | 1 | 2:
                kept = {"kept": 1, "nested": {"a": 1}}
                steps += [ops.UpdateThread(thread_id=name, metadata=kept), OBSERVE, arrange.tick(rng)]
                changes: dict[str, Form] = {"metadata": {"nested": {"b": 2}, "n": pick(rng, pools.SCALARS)}}
                if chance(rng, 40):
                    changes = {"title": pick(rng, pools.TEXTS)}
                steps.append(ops.UpdateThread(thread_id=name, **changes))
            case 3:
                steps.append(ops.UpdateThread(thread_id=pick(rng, ("nowhere", name)), title="new"))
            case 4 | 5:
                doomed = pick(rng, ("t1", "t2"))
                steps += [arrange.save(rng, doomed), OBSERVE, ops.DeleteThread(thread_id=doomed), OBSERVE]
                if chance(rng, 60):
                    steps.append(arrange.create(rng, doomed))
            case 6:
                steps.append(ops.DeleteThread(thread_id=pick(rng, ("nowhere", name))))
            case _:
                steps.append(arrange.create(rng, pick(rng, ("t1", "t2", "t3"))))
        steps.append(OBSERVE)
    for _ in range(2):
        resource = pick(rng, (None, "r1", "r2", "r2"))
        given: dict[str, Form] = {} if resource is None else {"resource_id": resource}
        steps.append(ops.GetThread(thread_id=pick(rng, ("t1", "t3", "g1", "nowhere")), **given))
    if chance(rng, 50):
        first: dict[str, Any] = {"order_by": {"field": "created_at", "direction": "ASC"}, "per_page": 1}
        late = pick(rng, ("t1", "t2", "t3"))
        steps += [ops.Tick(ms=5000), ops.UpdateThread(thread_id=late, title="late"), OBSERVE, ops.ListThreads(**first)]
        by_update = {"field": "updated_at", "direction": pick(rng, ("ASC", "DESC"))}
        steps.append(ops.ListThreads(order_by=by_update, per_page=pick(rng, (1, 2, False))))
    steps += [_list_threads(rng) for _ in range(3)]
    return _program(rng, steps)


def _list_threads(rng: Random) -> ops.ListThreads:
    given: dict[str, Form] = {}
    luck = pick(rng, range(10))
    if luck < 4:
        given["filter"] = {"resource_id": pick(rng, ("r1", "r1", "r2", "nobody"))}
    elif luck < 8:
        given["filter"] = {"metadata": {"k": pick(rng, (1, 1, 1, "1", True, None, 2.0))}}
    if chance(rng, 80):
        field = pick(rng, ("created_at", "updated_at", "updated_at"))
        given["order_by"] = {"field": field, "direction": pick(rng, ("ASC", "DESC"))}
    match pick(rng, range(8)):
        case 0:
            given["per_page"] = 0
        case 1:
            given["per_page"] = False
        case 2:
            given["per_page"] = pick(rng, pools.BAD_NUMBERS)
        case 3:
            pass
        case _:
            given |= {"per_page": pick(rng, (1, 1, 2, 3)), "page": pick(rng, (0, 0, 1, 2, 9))}
    return ops.ListThreads(**given)


def _thread_with_ties(rng: Random, n: int) -> Operations:
    """t1 with n messages at two or three instants, saved in two batches that interleave in time."""
    ids = [f"{letter}{i}" for i in range(n) for letter in pick(rng, ("z", "a", "m"))]
    batch = [arrange.message(rng, name, "t1", {"$at": pick(rng, pools.NEAR)}) for name in ids]
    cut = rng.randint(0, n)
    steps: Operations = [ops.CreateThread(id="t1", resource_id="r1")]
    return [*steps, *(ops.SaveMessages(messages=part) for part in (batch[:cut], batch[cut:]) if part), OBSERVE]


def paging(rng: Random) -> ops.Program:
    """ORD-2 to ORD-6: pages, defaults and totals of a thread full of ties."""
    n = pick(rng, (3, 4, 5, 5, 6, 12, 12, 12))
    options: dict[str, Form] = {}
    if chance(rng, 30):
        options["last_messages"] = pick(rng, (0, 1, 2, 3, False, None))
    steps = _thread_with_ties(rng, n)
    if chance(rng, 30):
        steps += [ops.CreateThread(id="t2", resource_id="r2")]
        steps += [ops.SaveMessages(messages=[{"id": "other", "thread_id": "t2", "content": "x"}]), OBSERVE]
    steps.append(ops.Recall(thread_id="t1", per_page=False, order_by=DESC))
    order = pick(rng, (ASC, DESC))
    size = pick(rng, (1, 2, 2, 3, n))
    if chance(rng, 60):
        steps += [
            ops.Recall(thread_id="t1", per_page=size, page=page, order_by=order) for page in range(-(-n // size) + 1)
        ]
    for _ in range(2):
        page = pick(rng, (0, 0, 1, 1, 2, 3, 2**53 - 1))
        size = pick(rng, (1, 2, 3, n, n + 1, 2**53 - 1)) if page < 4 else pick(rng, (1, 2**53 - 1))
        steps.append(ops.Recall(thread_id="t1", per_page=size, page=page, order_by=pick(rng, (ASC, DESC))))
    for _ in range(3):
        steps.append(_default_page(rng))
    luck = pick(rng, range(7))
    if luck == 0:
        steps.append(ops.Recall(thread_id="t1", per_page=pick(rng, (-1, -1, *pools.BAD_NUMBERS))))
    elif luck == 1:
        steps.append(ops.Recall(thread_id="t1", page=pick(rng, pools.BAD_NUMBERS)))
    elif luck == 2:
        steps.append(ops.Recall(thread_id="t1", page=1, per_page=False))
    elif luck in (3, 6):
        wrong = pick(rng, ({"direction": "asc"}, {"field": "id"}, {"direction": None}, {"field": "updated_at"}, "DESC"))
        steps.append(ops.Recall(thread_id="t1", order_by=wrong))
    elif luck == 4:
        steps.append(ops.Recall(thread_id="t1", thread_config={"last_messages": pick(rng, (-1, True, "3", 1.0))}))
    steps.append(_owned(rng))
    return _program(rng, steps, **options)


def _default_page(rng: Random) -> ops.Recall:
    match pick(rng, range(7)):
        case 0 | 6:
            return ops.Recall(thread_id="t1")
        case 1:
            return ops.Recall(thread_id="t1", page=1)
        case 2:
            return ops.Recall(thread_id="t1", per_page=0)
        case 3:
            return ops.Recall(thread_id="t1", per_page=None, order_by=ASC)
        case _:
            last = pick(rng, (0, 1, 2, 3, 11, None, False, False, False))
            given: dict[str, Form] = {"per_page": 2} if chance(rng, 25) else {}
            return ops.Recall(thread_id="t1", thread_config={"last_messages": last}, **given)


def _owned(rng: Random) -> ops.Recall:
    thread, resource = pick(
        rng, (("t1", "r1"), ("t1", "r2"), ("t1", "R1"), ("nowhere", "r1"), ("nowhere", None), ("T1", None))
    )
    given: dict[str, Form] = {} if resource is None else {"resource_id": resource}
    return ops.Recall(thread_id=thread, **given)


def dates(rng: Random) -> ops.Program:
    """TIM: bounds at, between and beyond rows that tie."""
    kind = pick(rng, range(4))
    pool = pools.NEAR if kind < 2 else (*pools.NEAR, *pools.FINE) if kind < 3 else (*pools.NEAR, *pools.FAR[:4])
    batch = [arrange.message(rng, name, "t1", {"$at": pick(rng, pool)}) for name in pools.IDS]
    steps: Operations = [ops.CreateThread(id="t1", resource_id="r1"), ops.SaveMessages(messages=batch), OBSERVE]
    for _ in range(3):
        bounds: dict[str, Form] = {}
        for name in pick(rng, (("start",), ("end",), ("start", "end"), ("start", "end"))):
            bounds[name] = {"$at": pick(rng, (*pool, *(item["created_at"]["$at"] for item in batch)))}
        for flag in ("start_exclusive", "end_exclusive"):
            if chance(rng, 40):
                bounds[flag] = True
        if chance(rng, 5):
            bounds["start_exclusive"] = pick(rng, (1, "yes", None))
        narrowed: Form = {"date_range": bounds}
        steps.append(ops.Recall(thread_id="t1", per_page=False, order_by=ASC, filter=narrowed))
        if chance(rng, 40):
            paged: dict[str, Form] = {"per_page": pick(rng, (1, 2)), "page": pick(rng, (0, 1))}
            steps += [ops.Recall(thread_id="t1", **paged), ops.Recall(thread_id="t1", filter=narrowed, **paged)]
    return _program(rng, steps)


def filters(rng: Random) -> ops.Program:
    """FLT: conditions among values that are nearly the same."""
    likes = pick(rng, ALIKE)
    batch: list[Form] = []
    for i in range(pick(rng, (4, 5, 6, 7))):
        pairs: dict[str, Form] = {}
        if chance(rng, 85):
            pairs["k"] = pick(rng, likes if chance(rng, 60) else (*pools.SCALARS, *pools.CONTAINERS[:3]))
        if chance(rng, 50):
            pairs["n"] = pick(rng, (1, 1, "1", None))
        if chance(rng, 10):
            pairs[f"only{i}"] = i
        name = f"{pick(rng, ('z', 'a', 'm'))}{i}"
        batch.append({"id": name, "thread_id": "t1", "content": "x", "created_at": instant(rng), "metadata": pairs})
    steps: Operations = [ops.CreateThread(id="t1", resource_id="r1")]
    cut = pick(rng, (1, len(batch)))
    steps += [ops.SaveMessages(messages=part) for part in (batch[:cut], batch[cut:]) if part]
    steps.append(OBSERVE)
    if chance(rng, 25):
        change = {"id": batch[0]["id"], "metadata": {"k": pick(rng, likes)}}
        steps += [ops.UpdateMessages(updates=[change]), OBSERVE]
    for _ in range(3):
        stored = [item["metadata"]["k"] for item in batch if "k" in item["metadata"]]
        wanted: list[Form] = [value for value in stored if not isinstance(value, list | dict) or _symbolic(value)]
        conditions: dict[str, Form] = {"k": pick(rng, (*(wanted or [1]), *likes))}
        if chance(rng, 40):
            conditions["n"] = pick(rng, (1, 1, 1.0, "1", None))
        narrowed: Form = {"metadata": conditions}
        if chance(rng, 10):
            narrowed["date_range"] = {"start": {"$at": pools.NOON}}
        steps.append(ops.Recall(thread_id="t1", per_page=False, order_by=ASC, filter=narrowed))
        if chance(rng, 60):
            paged: dict[str, Form] = {"per_page": pick(rng, (1, 1, 2)), "page": pick(rng, (0, 0, 1))}
            steps += [ops.Recall(thread_id="t1", **paged), ops.Recall(thread_id="t1", filter=narrowed, **paged)]
    if chance(rng, 35):
        steps.append(ops.Recall(thread_id="t1", filter=_bad_filter(rng)))
    if chance(rng, 15):
        steps.append(ops.Recall(thread_id="t1", filter={"metadata": {}}))
    return _program(rng, steps)


ALIKE: tuple[tuple[Form, ...], ...] = (
    (1, 1, 1.0, "1", True, 1.5, [1], [1], {"a": 1}),
    (0, 0, -0.0, False, "", None, "0", [0]),
    ("a", "a", "A", "a ", " a", "a%", ["a"], ["a"], {"a": "a"}),
    (None, None, None, "null", 0, "", False, [None]),
    (True, True, "true", 1, "True", [True]),
    ("\u00e9", "e\u0301", "\u00c9", "E\u0301", "%", "_"),
    ("a", "A", "a ", "b", "B", " b"),
    (None, None, None, "null", None, "", False, "x"),
    pools.LONG_STRINGS,
    pools.LONG_STRINGS,
    pools.LONG_STRINGS,
    pools.ODD_SCALARS,
)
"""Groups of values that a careless comparison confuses."""


def _symbolic(form: Form) -> bool:
    return isinstance(form, dict) and next(iter(cast("dict[str, Form]", form)), "").startswith("$")


def _bad_filter(rng: Random) -> Form:
    match pick(rng, range(4)):
        case 0:
            return {"metadata": {"$dict": [[pick(rng, pools.BAD_KEYS), 1]]}}
        case 1:
            return {"metadata": {"k": pick(rng, pools.BAD_FILTER_VALUES)}}
        case 2:
            return {"metadata": {"$dict": [[pick(rng, ({"$repeat": ["k", 129]}, 1, None)), 1]]}}
        case _:
            return {
                "metadata": pick(rng, ({}, {}, {"$repeat": ["k", 3]}, [1], {"$dict": [[{"$repeat": ["k", 128]}, 1]]}))
            }


def includes(rng: Random) -> ops.Program:
    """INC, ISO-1: windows around messages among ties, in this thread and in others."""
    n = pick(rng, (4, 5, 6))
    steps = _thread_with_ties(rng, n)
    ids = [item["id"] for step in steps if isinstance(step, ops.SaveMessages) for item in step.messages]
    steps += [ops.CreateThread(id="t2", resource_id="r1"), ops.CreateThread(id="t3", resource_id="r2")]
    for thread in ("t2", "t3"):
        batch = [
            {
                "id": f"{name}-{thread}",
                "thread_id": thread,
                "content": "x",
                "created_at": {"$at": pick(rng, pools.NEAR)},
            }
            for name in ("z", "a", "m")
        ]
        steps.append(ops.SaveMessages(messages=batch))
    steps.append(OBSERVE)
    for _ in range(3):
        page: dict[str, Form] = {}
        if chance(rng, 60):
            page = {
                "per_page": pick(rng, (0, 1, 2, 3)),
                "page": pick(rng, (0, 0, 1)),
                "order_by": pick(rng, (ASC, DESC)),
            }
        elif chance(rng, 50):
            page = {"order_by": ASC}
        if chance(rng, 15):
            page["filter"] = {"metadata": {"k": 1}}
        if chance(rng, 35):
            page["resource_id"] = pick(rng, ("r1", "r1", "r1", "r2"))
        if "per_page" in page:
            steps.append(ops.Recall(thread_id="t1", **page))
        entries = [_entry(rng, ids) for _ in range(pick(rng, (1, 1, 2, 2, 3)))]
        thread = "nowhere" if chance(rng, 3) else "t1"
        steps.append(ops.Recall(thread_id=thread, include=entries, **page))
    return _program(rng, steps)


def _entry(rng: Random, ids: list[Form]) -> dict[str, Form]:
    luck = pick(rng, range(12))
    entry: dict[str, Form] = {"id": pick(rng, ids)}
    if luck == 0:
        entry = {"id": "unknown"}
    elif luck == 1:
        entry = {"id": "z-t2"}
    elif luck in (2, 3):
        entry = {"id": pick(rng, ("z-t2", "a-t2", "m-t2")), "thread_id": "t2"}
    elif luck in (4, 5):
        entry = {"id": pick(rng, ("z-t3", "a-t3")), "thread_id": "t3"}
    for side in ("with_previous_messages", "with_next_messages"):
        if chance(rng, 70):
            entry[side] = pick(rng, (0, 1, 1, 2, 2, 9, 2**53 - 1))
    if chance(rng, 4):
        entry["with_previous_messages"] = pick(rng, pools.BAD_NUMBERS)
    return entry


def hostile(rng: Random) -> ops.Program:
    """ISO-2, CAP-1: names and values that mean something to an engine, with rows of another resource to betray it."""
    thread, resource, name = (pick(rng, HOSTILE) for _ in range(3))
    canary = [{"id": "canary", "thread_id": "t3", "content": "secret", "metadata": {"k": "secret"}}]
    mine: dict[str, Form] = {"id": name, "thread_id": thread, "content": pick(rng, HOSTILE)}
    mine["metadata"] = {"$dict": [["k", pick(rng, HOSTILE)], [pick(rng, HOSTILE), 1]]}
    steps: Operations = [
        ops.CreateThread(id="t3", resource_id="r2"),
        ops.SaveMessages(messages=canary),
        ops.CreateThread(id=thread, resource_id=resource, title=pick(rng, HOSTILE)),
        ops.SaveMessages(messages=[mine]),
        OBSERVE,
        ops.Recall(thread_id=thread, resource_id=resource, per_page=False, order_by=ASC),
        ops.Recall(thread_id=thread, per_page=False, order_by=ASC, filter={"metadata": {"k": pick(rng, HOSTILE)}}),
        ops.Recall(thread_id=thread, resource_id=resource, include=[{"id": name}, {"id": "canary", "thread_id": "t3"}]),
        ops.GetThread(thread_id=pick(rng, HOSTILE), resource_id=resource),
        ops.ListThreads(filter={"resource_id": pick(rng, HOSTILE)}),
    ]
    match pick(rng, range(7)):
        case 0 | 1:
            steps.append(ops.DeleteMessages(ids=[pick(rng, (*SWEEPING, *HOSTILE))]))
        case 2 | 3:
            steps.append(ops.DeleteThread(thread_id=pick(rng, (*SWEEPING, *HOSTILE))))
        case 4:
            steps.append(ops.ClearMessages(thread_id=pick(rng, HOSTILE)))
        case 5:
            steps.append(
                ops.UpdateMessages(updates=[{"id": pick(rng, HOSTILE), "metadata": {"k": pick(rng, HOSTILE)}}])
            )
        case _:
            steps.append(ops.UpdateThread(thread_id=pick(rng, HOSTILE), title=pick(rng, HOSTILE)))
    steps.append(OBSERVE)
    lacking: tuple[ops.AnyOperation, ...] = (
        ops.GetWorkingMemory(thread_id=thread),
        ops.UpdateWorkingMemory(thread_id=thread, value="x"),
    )
    return _program(rng, [*steps, pick(rng, lacking), OBSERVE])


SWEEPING: tuple[Form, ...] = ("%", "*", "t' OR '1'='1") * 9
"""What would delete everything, were it read as a pattern or a condition."""

HOSTILE: tuple[Form, ...] = (
    "t' OR '1'='1",
    "'; DROP TABLE messages; --",
    'a"; DELETE FROM threads; --',
    "%",
    "_",
    "*",
    "?",
    "\\",
    "\\'",
    "$1",
    ":id",
    "%s",
    "{}",
    "a.b",
    "../../etc",
    "id:*",
    "x OR resource_id:r2",
    "null",
)


def reopened(rng: Random) -> ops.Program:
    """DUR-1: what was there before is there after."""
    steps = [*arrange.threads(rng, "t1", "t2"), arrange.tied(rng, "t1", distinct(rng, pools.IDS, 3, 4)), OBSERVE]
    for _ in range(pick(rng, (1, 2))):
        steps += (arrange.change if chance(rng, 40) else _removal)(rng, ("t1", "t2"))
        steps += [ops.Reopen(), OBSERVE]
    if chance(rng, 50):
        steps += [*arrange.change(rng, ("t1", "t2")), ops.Reopen(), OBSERVE]
    return _program(rng, steps)


def _removal(rng: Random, names: Any) -> Operations:
    ids = pick(rng, pools.IDS)
    gone: tuple[ops.AnyOperation, ...] = (ops.DeleteMessages(ids=[ids]), ops.DeleteThread(thread_id="t2"))
    return [ops.UpdateMessages(updates=[{"id": "z", "content": "changed"}]), pick(rng, gone), OBSERVE]


def together(rng: Random) -> ops.Program:
    """THR-3a, MSG-4a: many writers of one row, each of its own key."""
    n = pick(rng, (4, 6, 8, 20))
    steps: Operations = [
        ops.CreateThread(id="t1", resource_id="r1", metadata={"kept": 1, "n": pick(rng, pools.SCALARS)}),
        ops.SaveMessages(messages=[{"id": "a", "thread_id": "t1", "content": "x", "metadata": {"kept": 1}}]),
        OBSERVE,
    ]
    merges: list[ops.Concurrent] = [ops.UpdateThread(thread_id="t1", metadata={f"k{i}": i}) for i in range(n)]
    changes: list[ops.Concurrent] = [
        ops.UpdateMessages(updates=[{"id": "a", "metadata": {f"k{i}": i}}]) for i in range(n)
    ]
    steps += [ops.Together(operations=merges), OBSERVE, ops.Together(operations=changes)]
    return ops.Program(operations=(*steps, OBSERVE))


def window(rng: Random) -> ops.Program:
    """ORD-3b: a thread longer than engines page through."""
    n = pick(rng, (10_001, 10_020, 10_003))
    step = pick(rng, (0, 1))
    fill: Form = {"$fill": {"id": "m", "thread_id": "t1", "n": n, "step_ms": step}}
    order = pick(rng, (ASC, DESC))
    last = f"m{n - 1}"
    steps: Operations = [
        ops.CreateThread(id="t1", resource_id="r1"),
        ops.SaveMessages(messages=[fill]),
        OBSERVE,
        ops.Recall(thread_id="t1", per_page=100, page=100, order_by=order),
        ops.Recall(thread_id="t1", per_page=False, order_by=order),
        ops.Recall(thread_id="t1", include=[{"id": last, "with_previous_messages": 2}]),
    ]
    return _program(rng, steps)


def anything(rng: Random) -> ops.Program:
    """Without steering: operations as they come. For measuring what steering is worth."""
    steps: Operations = []
    for _ in range(rng.randint(1, 10)):
        thread = pick(rng, (*pools.IDS, *pools.ODD_IDS[:8]))
        match pick(rng, range(7)):
            case 0:
                steps.append(ops.CreateThread(id=thread, resource_id=pick(rng, pools.IDS)))
            case 1:
                names = some(rng, (*pools.IDS, *pools.ODD_IDS[:8]), 0, 3)
                steps.append(
                    ops.SaveMessages(messages=[{"id": name, "thread_id": thread, "content": "x"} for name in names])
                )
            case 2:
                steps.append(ops.Recall(thread_id=thread, per_page=pick(rng, (False, 0, 1, 5)), page=0))
            case 3:
                steps.append(ops.DeleteMessages(ids=some(rng, pools.IDS, 0, 3)))
            case 4:
                steps.append(ops.UpdateMessages(updates=[{"id": thread, "content": "changed"}]))
            case 5:
                steps.append(ops.Recall(thread_id=thread, filter={"metadata": {"k": pick(rng, pools.SCALARS)}}))
            case _:
                steps.append(OBSERVE)
    return ops.Program(operations=(*steps, OBSERVE))
