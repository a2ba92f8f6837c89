"""Programs by what they put to the test: arrange (never vacuous), collide (few ids, few instants), observe."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st

from .. import program as ops
from ..forms import Form
from . import arrange, pools
from .arrange import OBSERVE
from .pools import Draw, chance, distinct, instant, pick, some

ASC: Form = {"direction": "ASC"}
DESC: Form = {"direction": "DESC"}
Operations = list[ops.AnyOperation]


def _program(operations: Operations, **options: Form) -> ops.Program:
    return ops.Program(operations=tuple(operations), options=options)


@st.composite
def messages(draw: Draw) -> ops.Program:
    """MSG, ORD-1, VAL-4: histories of writes to threads that share ids and instants."""
    names = ("t1", "t1", "t2", "t3") if chance(draw, 60) else ("t1", "t1", "t2")
    steps = [*arrange.threads(draw, *dict.fromkeys(names)), arrange.tied(draw, "t1", distinct(draw, pools.IDS, 3, 4))]
    steps.append(OBSERVE)
    first: Any = steps[-2]
    ids = [item["id"] for item in first.messages]
    # Something happens to a message that stands before others of its instant.
    early = pick(draw, ids[:-1])
    match pick(draw, range(6)):
        case 0 | 1:
            steps += [ops.SaveMessages(messages=[{"id": early, "thread_id": "t1", "content": "again"}]), OBSERVE]
        case 2:
            steps += [ops.UpdateMessages(updates=[{"id": early, "content": "changed"}]), OBSERVE]
        case 3:
            back = arrange.message(draw, early, "t1", {"$at": pools.NOON})
            steps += [ops.DeleteMessages(ids=[early]), ops.SaveMessages(messages=[back]), OBSERVE]
        case 4:
            there, back = (
                {"id": early, "thread_id": thread, "content": "moved", "created_at": {"$at": pools.NOON}}
                for thread in ("t2", "t1")
            )
            steps += [arrange.tick(draw), ops.SaveMessages(messages=[there]), OBSERVE]
            steps += [ops.SaveMessages(messages=[back]), OBSERVE]
        case _:
            steps += arrange.change(draw, names)
    for _ in range(pick(draw, (1, 2, 2, 3))):
        steps += arrange.change(draw, names)
    return _program(steps)


@st.composite
def values(draw: Draw) -> ops.Program:
    """VAL, MSG-0: what is stored comes back, what is refused changes nothing."""
    steps: Operations = [ops.CreateThread(id="t1", resource_id="r1")]
    given: dict[str, Form] = {"title": pick(draw, pools.TEXTS)} if chance(draw, 50) else {}
    if chance(draw, 50):
        given["metadata"] = arrange.metadata(draw)
    if chance(draw, 50):
        given["created_at"] = instant(draw)
    thread_id = pick(draw, (*pools.ODD_IDS, "T1", "t1 "))
    steps += [ops.CreateThread(id=thread_id, resource_id=pick(draw, ("r1", "R1", "r'1")), **given), OBSERVE]
    ids: list[Form] = ["a", pick(draw, pools.ODD_IDS)]
    if chance(draw, 30):
        ids += ["\u00e9", "e\u0301"]
    batch: list[Form] = []
    for name in ids:
        content = pick(draw, (*pools.TEXTS, [pick(draw, pools.PARTS)]))
        fields: dict[str, Form] = {"id": name, "thread_id": pick(draw, ("t1", thread_id)), "content": content}
        if chance(draw, 60):
            fields["metadata"] = arrange.metadata(draw)
        if chance(draw, 70):
            kind = pick(draw, range(3))
            fields["created_at"] = {"$at": pick(draw, (pools.NEAR, pools.FINE, pools.FAR)[kind])}
        if chance(draw, 40):
            fields["role"] = pick(draw, pools.ROLES)
        batch.append(fields)
    steps += [ops.SaveMessages(messages=batch), OBSERVE]
    bad = _refused(draw)
    steps += [bad, OBSERVE] if bad.role == "write" else [bad]
    if chance(draw, 50):
        steps += [arrange.update(draw, ("a", pick(draw, ids))), OBSERVE]
    if chance(draw, 30):
        steps += [ops.GetThread(thread_id=pick(draw, ("t1", "T1", thread_id)))]
        steps += [ops.Recall(thread_id="t1", include=[{"id": pick(draw, ids)}])]
    return _program(steps)


def _refused(draw: Draw) -> ops.AnyOperation:
    """A call with one bad value."""
    text, name = pick(draw, pools.BAD_TEXTS), pick(draw, pools.BAD_IDS)
    meta, at = pick(draw, pools.BAD_METADATA), pick(draw, pools.BAD_INSTANTS)
    match pick(draw, range(20)):
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
                thread_id="t1", filter={"date_range": {pick(draw, ("start", "end")): pick(draw, pools.BAD_INSTANTS)}}
            )
        case 13:
            return ops.DeleteMessages(ids=["a", name])
        case 14:
            return ops.UpdateMessages(updates=[{"id": "a", "content": "changed"}, {"id": "a", "metadata": meta}])
        case 15:
            return ops.UpdateMessages(updates=[{"id": "a", "content": text}])
        case _:
            return arrange.refused_save(draw, "t1")


@st.composite
def long_values(draw: Draw) -> ops.Program:
    """VAL-2b: long content, and long ids that differ at their end."""
    first, second = distinct(draw, pools.LONG_IDS, 2, 2)
    other = pick(draw, pools.LONG_IDS)
    steps: Operations = [
        ops.CreateThread(id=first, resource_id="r1"),
        ops.CreateThread(id=second, resource_id=other),
        ops.SaveMessages(
            messages=[
                {"id": first, "thread_id": first, "content": pick(draw, pools.LONG_TEXTS)},
                {"id": second, "thread_id": pick(draw, (first, second)), "content": "x"},
            ]
        ),
        OBSERVE,
        ops.Recall(thread_id=first, include=[{"id": second}]),
        ops.UpdateThread(thread_id=second, title=pick(draw, pools.LONG_TEXTS)),
        OBSERVE,
    ]
    return _program(steps)


@st.composite
def threads(draw: Draw) -> ops.Program:
    """THR: creating, finding, merging, listing, deleting."""
    steps: Operations = arrange.threads(draw, "t1", "t2", "t3")
    steps.append(ops.CreateThread(resource_id=pick(draw, ("r1", "r2")), label="g1", metadata={"k": 1}))
    steps.append(OBSERVE)
    for _ in range(pick(draw, (1, 2, 3))):
        name = pick(draw, ("t1", "t2", "t3", "g1"))
        if chance(draw, 50):
            steps.append(arrange.tick(draw))
        match pick(draw, range(9)):
            case 0 | 1 | 2:
                kept = {"kept": 1, "nested": {"a": 1}}
                steps += [ops.UpdateThread(thread_id=name, metadata=kept), OBSERVE, arrange.tick(draw)]
                changes: dict[str, Form] = {"metadata": {"nested": {"b": 2}, "n": pick(draw, pools.SCALARS)}}
                if chance(draw, 40):
                    changes = {"title": pick(draw, pools.TEXTS)}
                steps.append(ops.UpdateThread(thread_id=name, **changes))
            case 3:
                steps.append(ops.UpdateThread(thread_id=pick(draw, ("nowhere", name)), title="new"))
            case 4 | 5:
                steps += [arrange.save(draw, pick(draw, ("t1", "t2"))), OBSERVE]
                steps.append(ops.DeleteThread(thread_id=pick(draw, ("t1", "t2", "nowhere"))))
                if chance(draw, 60):
                    steps += [OBSERVE, arrange.create(draw, pick(draw, ("t1", "t2")))]
            case 6:
                steps.append(ops.DeleteThread(thread_id=pick(draw, ("nowhere", name))))
            case _:
                steps.append(arrange.create(draw, pick(draw, ("t1", "t2", "t3"))))
        steps.append(OBSERVE)
    for _ in range(2):
        resource = pick(draw, (None, "r1", "r2", "r2"))
        given: dict[str, Form] = {} if resource is None else {"resource_id": resource}
        steps.append(ops.GetThread(thread_id=pick(draw, ("t1", "t3", "g1", "nowhere")), **given))
    steps += [_list_threads(draw) for _ in range(3)]
    return _program(steps)


def _list_threads(draw: Draw) -> ops.ListThreads:
    given: dict[str, Form] = {}
    luck = pick(draw, range(10))
    if luck < 4:
        given["filter"] = {"resource_id": pick(draw, ("r1", "r1", "r2", "nobody"))}
    elif luck < 8:
        given["filter"] = {"metadata": {"k": pick(draw, (1, 1, 1, "1", True, None, 2.0))}}
    if chance(draw, 80):
        field = pick(draw, ("created_at", "updated_at", "updated_at"))
        given["order_by"] = {"field": field, "direction": pick(draw, ("ASC", "DESC"))}
    match pick(draw, range(8)):
        case 0:
            given["per_page"] = 0
        case 1:
            given["per_page"] = False
        case 2:
            given["per_page"] = pick(draw, pools.BAD_NUMBERS)
        case 3:
            pass
        case _:
            given |= {"per_page": pick(draw, (1, 1, 2, 3)), "page": pick(draw, (0, 0, 1, 2, 9))}
    return ops.ListThreads(**given)


def _thread_with_ties(draw: Draw, n: int) -> Operations:
    """t1 with n messages at two or three instants, saved in two batches that interleave in time."""
    ids = [f"{letter}{i}" for i in range(n) for letter in pick(draw, ("z", "a", "m"))]
    batch = [arrange.message(draw, name, "t1", {"$at": pick(draw, pools.NEAR)}) for name in ids]
    cut = draw(st.integers(0, n))
    steps: Operations = [ops.CreateThread(id="t1", resource_id="r1")]
    return [*steps, *(ops.SaveMessages(messages=part) for part in (batch[:cut], batch[cut:]) if part), OBSERVE]


@st.composite
def paging(draw: Draw) -> ops.Program:
    """ORD-2 to ORD-6: pages, defaults and totals of a thread full of ties."""
    n = pick(draw, (3, 4, 5, 5, 6, 7, 12))
    options: dict[str, Form] = {}
    if chance(draw, 30):
        options["last_messages"] = pick(draw, (0, 1, 2, 3, False, None))
    steps = _thread_with_ties(draw, n)
    if chance(draw, 30):
        steps += [ops.CreateThread(id="t2", resource_id="r2")]
        steps += [ops.SaveMessages(messages=[{"id": "other", "thread_id": "t2", "content": "x"}]), OBSERVE]
    steps.append(ops.Recall(thread_id="t1", per_page=False, order_by=DESC))
    order = pick(draw, (ASC, DESC))
    size = pick(draw, (1, 2, 2, 3, n))
    if chance(draw, 60):
        steps += [
            ops.Recall(thread_id="t1", per_page=size, page=page, order_by=order) for page in range(-(-n // size) + 1)
        ]
    for _ in range(2):
        page = pick(draw, (0, 0, 1, 1, 2, 3, 2**53 - 1))
        size = pick(draw, (1, 2, 3, n, n + 1, 2**53 - 1)) if page < 4 else pick(draw, (1, 2**53 - 1))
        steps.append(ops.Recall(thread_id="t1", per_page=size, page=page, order_by=pick(draw, (ASC, DESC))))
    for _ in range(2):
        steps.append(_default_page(draw))
    luck = pick(draw, range(6))
    if luck == 0:
        steps.append(ops.Recall(thread_id="t1", per_page=pick(draw, pools.BAD_NUMBERS)))
    elif luck == 1:
        steps.append(ops.Recall(thread_id="t1", page=pick(draw, pools.BAD_NUMBERS)))
    elif luck == 2:
        steps.append(ops.Recall(thread_id="t1", page=1, per_page=False))
    elif luck == 3:
        wrong = pick(
            draw, ({"direction": "asc"}, {"field": "id"}, {"direction": None}, {"field": "updated_at"}, "DESC")
        )
        steps.append(ops.Recall(thread_id="t1", order_by=wrong))
    elif luck == 4:
        steps.append(ops.Recall(thread_id="t1", thread_config={"last_messages": pick(draw, (-1, True, "3", 1.0))}))
    steps.append(_owned(draw))
    return _program(steps, **options)


def _default_page(draw: Draw) -> ops.Recall:
    match pick(draw, range(6)):
        case 0:
            return ops.Recall(thread_id="t1")
        case 1:
            return ops.Recall(thread_id="t1", page=1)
        case 2:
            return ops.Recall(thread_id="t1", per_page=0)
        case 3:
            return ops.Recall(thread_id="t1", per_page=None, order_by=ASC)
        case _:
            last = pick(draw, (0, 1, 2, 3, 11, None, False, False))
            given: dict[str, Form] = {"per_page": 2} if chance(draw, 25) else {}
            return ops.Recall(thread_id="t1", thread_config={"last_messages": last}, **given)


def _owned(draw: Draw) -> ops.Recall:
    thread, resource = pick(
        draw, (("t1", "r1"), ("t1", "r2"), ("t1", "R1"), ("nowhere", "r1"), ("nowhere", None), ("T1", None))
    )
    given: dict[str, Form] = {} if resource is None else {"resource_id": resource}
    return ops.Recall(thread_id=thread, **given)


@st.composite
def dates(draw: Draw) -> ops.Program:
    """TIM: bounds at, between and beyond rows that tie."""
    kind = pick(draw, range(4))
    pool = pools.NEAR if kind < 2 else (*pools.NEAR, *pools.FINE) if kind < 3 else (*pools.NEAR, *pools.FAR[:4])
    batch = [arrange.message(draw, name, "t1", {"$at": pick(draw, pool)}) for name in pools.IDS]
    steps: Operations = [ops.CreateThread(id="t1", resource_id="r1"), ops.SaveMessages(messages=batch), OBSERVE]
    for _ in range(3):
        bounds: dict[str, Form] = {}
        for name in pick(draw, (("start",), ("end",), ("start", "end"), ("start", "end"))):
            bounds[name] = {"$at": pick(draw, (*pool, *(item["created_at"]["$at"] for item in batch)))}
        for flag in ("start_exclusive", "end_exclusive"):
            if chance(draw, 40):
                bounds[flag] = True
        if chance(draw, 5):
            bounds["start_exclusive"] = pick(draw, (1, "yes", None))
        narrowed: Form = {"date_range": bounds}
        steps.append(ops.Recall(thread_id="t1", per_page=False, order_by=ASC, filter=narrowed))
        if chance(draw, 40):
            paged: dict[str, Form] = {"per_page": pick(draw, (1, 2)), "page": pick(draw, (0, 1))}
            steps += [ops.Recall(thread_id="t1", **paged), ops.Recall(thread_id="t1", filter=narrowed, **paged)]
    return _program(steps)


@st.composite
def filters(draw: Draw) -> ops.Program:
    """FLT: conditions among values that are nearly the same."""
    kind = pick(draw, range(8))
    likes = ALIKE[kind] if kind < len(ALIKE) else pools.ODD_SCALARS
    batch: list[Form] = []
    for i in range(pick(draw, (4, 5, 6, 7))):
        pairs: dict[str, Form] = {}
        if chance(draw, 85):
            pairs["k"] = pick(draw, (*likes, *likes, *pools.SCALARS, *pools.CONTAINERS[:3]))
        if chance(draw, 50):
            pairs["n"] = pick(draw, (1, 1, "1", None))
        if chance(draw, 10):
            pairs[f"only{i}"] = i
        name = f"{pick(draw, ('z', 'a', 'm'))}{i}"
        batch.append({"id": name, "thread_id": "t1", "content": "x", "created_at": instant(draw), "metadata": pairs})
    steps: Operations = [ops.CreateThread(id="t1", resource_id="r1")]
    cut = pick(draw, (1, len(batch)))
    steps += [ops.SaveMessages(messages=part) for part in (batch[:cut], batch[cut:]) if part]
    steps.append(OBSERVE)
    if chance(draw, 25):
        change = {"id": batch[0]["id"], "metadata": {"k": pick(draw, likes)}}
        steps += [ops.UpdateMessages(updates=[change]), OBSERVE]
    for _ in range(3):
        stored = [item["metadata"]["k"] for item in batch if "k" in item["metadata"]]
        wanted = [value for value in stored if not isinstance(value, list | dict) or _symbolic(value)]
        conditions: dict[str, Form] = {"k": pick(draw, (*(wanted or [1]), *likes))}
        if chance(draw, 40):
            conditions["n"] = pick(draw, (1, 1, 1.0, "1", None))
        narrowed: Form = {"metadata": conditions}
        if chance(draw, 10):
            narrowed["date_range"] = {"start": {"$at": pools.NOON}}
        steps.append(ops.Recall(thread_id="t1", per_page=False, order_by=ASC, filter=narrowed))
        if chance(draw, 60):
            paged: dict[str, Form] = {"per_page": pick(draw, (1, 1, 2)), "page": pick(draw, (0, 0, 1))}
            steps += [ops.Recall(thread_id="t1", **paged), ops.Recall(thread_id="t1", filter=narrowed, **paged)]
    if chance(draw, 35):
        steps.append(ops.Recall(thread_id="t1", filter=_bad_filter(draw)))
    return _program(steps)


ALIKE: tuple[tuple[Form, ...], ...] = (
    (1, 1.0, "1", True, 1.5, [1], {"a": 1}),
    (0, -0.0, False, "", None, "0", []),
    ("a", "A", "a ", " a", "a%", ["a"], {"a": "a"}),
    (None, "null", 0, "", False),
    (True, "true", 1, "True", [True]),
    ("\u00e9", "e\u0301", "\u00c9", "E\u0301", "%", "_"),
    pools.LONG_STRINGS,
)
"""Groups of values that a careless comparison confuses."""


def _symbolic(form: Form) -> bool:
    return isinstance(form, dict) and next(iter(form), "").startswith("$")


def _bad_filter(draw: Draw) -> Form:
    match pick(draw, range(4)):
        case 0:
            return {"metadata": {"$dict": [[pick(draw, pools.BAD_KEYS), 1]]}}
        case 1:
            return {"metadata": {"k": pick(draw, pools.BAD_FILTER_VALUES)}}
        case 2:
            return {"metadata": {"$dict": [[pick(draw, ({"$repeat": ["k", 129]}, 1, None)), 1]]}}
        case _:
            return {
                "metadata": pick(draw, ({}, {}, {"$repeat": ["k", 3]}, [1], {"$dict": [[{"$repeat": ["k", 128]}, 1]]}))
            }


@st.composite
def includes(draw: Draw) -> ops.Program:
    """INC, ISO-1: windows around messages among ties, in this thread and in others."""
    n = pick(draw, (4, 5, 6))
    steps = _thread_with_ties(draw, n)
    ids = [item["id"] for step in steps if isinstance(step, ops.SaveMessages) for item in step.messages]
    steps += [ops.CreateThread(id="t2", resource_id="r1"), ops.CreateThread(id="t3", resource_id="r2")]
    for thread in ("t2", "t3"):
        batch = [
            {
                "id": f"{name}-{thread}",
                "thread_id": thread,
                "content": "x",
                "created_at": {"$at": pick(draw, pools.NEAR)},
            }
            for name in ("z", "a", "m")
        ]
        steps.append(ops.SaveMessages(messages=batch))
    steps.append(OBSERVE)
    for _ in range(3):
        page: dict[str, Form] = {}
        if chance(draw, 60):
            page = {
                "per_page": pick(draw, (0, 1, 2, 3)),
                "page": pick(draw, (0, 0, 1)),
                "order_by": pick(draw, (ASC, DESC)),
            }
        elif chance(draw, 50):
            page = {"order_by": ASC}
        if chance(draw, 25):
            page["filter"] = {"metadata": {"k": 1}}
        if chance(draw, 35):
            page["resource_id"] = pick(draw, ("r1", "r1", "r1", "r2"))
        if "per_page" in page:
            steps.append(ops.Recall(thread_id="t1", **page))
        entries = [_entry(draw, ids) for _ in range(pick(draw, (1, 1, 2, 2, 3)))]
        thread = "nowhere" if chance(draw, 3) else "t1"
        steps.append(ops.Recall(thread_id=thread, include=entries, **page))
    return _program(steps)


def _entry(draw: Draw, ids: list[Form]) -> dict[str, Form]:
    luck = pick(draw, range(12))
    entry: dict[str, Form] = {"id": pick(draw, ids)}
    if luck == 0:
        entry = {"id": "unknown"}
    elif luck == 1:
        entry = {"id": "z-t2"}
    elif luck in (2, 3):
        entry = {"id": pick(draw, ("z-t2", "a-t2", "m-t2")), "thread_id": "t2"}
    elif luck in (4, 5):
        entry = {"id": pick(draw, ("z-t3", "a-t3")), "thread_id": "t3"}
    for side in ("with_previous_messages", "with_next_messages"):
        if chance(draw, 70):
            entry[side] = pick(draw, (0, 1, 1, 2, 2, 9, 2**53 - 1))
    if chance(draw, 4):
        entry["with_previous_messages"] = pick(draw, pools.BAD_NUMBERS)
    return entry


@st.composite
def hostile(draw: Draw) -> ops.Program:
    """ISO-2, CAP-1: names and values that mean something to an engine, with rows of another resource to betray it."""
    thread, resource, name = (pick(draw, HOSTILE) for _ in range(3))
    canary = [{"id": "canary", "thread_id": "t3", "content": "secret", "metadata": {"k": "secret"}}]
    mine: dict[str, Form] = {"id": name, "thread_id": thread, "content": pick(draw, HOSTILE)}
    mine["metadata"] = {"$dict": [["k", pick(draw, HOSTILE)], [pick(draw, HOSTILE), 1]]}
    steps: Operations = [
        ops.CreateThread(id="t3", resource_id="r2"),
        ops.SaveMessages(messages=canary),
        ops.CreateThread(id=thread, resource_id=resource, title=pick(draw, HOSTILE)),
        ops.SaveMessages(messages=[mine]),
        OBSERVE,
        ops.Recall(thread_id=thread, resource_id=resource, per_page=False, order_by=ASC),
        ops.Recall(thread_id=thread, per_page=False, order_by=ASC, filter={"metadata": {"k": pick(draw, HOSTILE)}}),
        ops.Recall(thread_id=thread, resource_id=resource, include=[{"id": name}, {"id": "canary", "thread_id": "t3"}]),
        ops.GetThread(thread_id=pick(draw, HOSTILE), resource_id=resource),
        ops.ListThreads(filter={"resource_id": pick(draw, HOSTILE)}),
    ]
    match pick(draw, range(5)):
        case 0:
            steps.append(ops.DeleteMessages(ids=[pick(draw, HOSTILE)]))
        case 1:
            steps.append(ops.DeleteThread(thread_id=pick(draw, HOSTILE)))
        case 2:
            steps.append(ops.ClearMessages(thread_id=pick(draw, HOSTILE)))
        case 3:
            steps.append(
                ops.UpdateMessages(updates=[{"id": pick(draw, HOSTILE), "metadata": {"k": pick(draw, HOSTILE)}}])
            )
        case _:
            steps.append(ops.UpdateThread(thread_id=pick(draw, HOSTILE), title=pick(draw, HOSTILE)))
    steps.append(OBSERVE)
    lacking: tuple[ops.AnyOperation, ...] = (
        ops.CloneThread(source_thread_id=thread),
        ops.GetWorkingMemory(thread_id=thread),
        ops.UpdateWorkingMemory(thread_id=thread, value="x"),
    )
    return _program([*steps, pick(draw, lacking), OBSERVE])


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


@st.composite
def reopened(draw: Draw) -> ops.Program:
    """DUR-1: what was there before is there after."""
    steps = [*arrange.threads(draw, "t1", "t2"), arrange.tied(draw, "t1", distinct(draw, pools.IDS, 3, 4)), OBSERVE]
    for _ in range(pick(draw, (1, 2))):
        steps += pick(draw, (arrange.change, _removal))(draw, ("t1", "t2"))
        steps += [ops.Reopen(), OBSERVE]
    if chance(draw, 50):
        steps += [*arrange.change(draw, ("t1", "t2")), ops.Reopen(), OBSERVE]
    return _program(steps)


def _removal(draw: Draw, names: Any) -> Operations:
    ids = pick(draw, pools.IDS)
    gone: tuple[ops.AnyOperation, ...] = (ops.DeleteMessages(ids=[ids]), ops.DeleteThread(thread_id="t2"))
    return [ops.UpdateMessages(updates=[{"id": "z", "content": "changed"}]), pick(draw, gone), OBSERVE]


@st.composite
def together(draw: Draw) -> ops.Program:
    """THR-3a, MSG-4a: many writers of one row, each of its own key."""
    n = pick(draw, (4, 8, 20))
    steps: Operations = [
        ops.CreateThread(id="t1", resource_id="r1", metadata={"kept": 1}),
        ops.SaveMessages(messages=[{"id": "a", "thread_id": "t1", "content": "x", "metadata": {"kept": 1}}]),
        OBSERVE,
    ]
    if chance(draw, 50):
        steps.append(
            ops.Together(operations=[ops.UpdateThread(thread_id="t1", metadata={f"k{i}": i}) for i in range(n)])
        )
    else:
        steps.append(
            ops.Together(
                operations=[ops.UpdateMessages(updates=[{"id": "a", "metadata": {f"k{i}": i}}]) for i in range(n)]
            )
        )
    return _program([*steps, OBSERVE])


@st.composite
def window(draw: Draw) -> ops.Program:
    """ORD-3b: a thread longer than engines page through."""
    n = pick(draw, (10_001, 10_020, 10_003))
    step = pick(draw, (0, 1))
    fill: Form = {"$fill": {"id": "m", "thread_id": "t1", "n": n, "step_ms": step}}
    order = pick(draw, (ASC, DESC))
    last = f"m{n - 1}"
    steps: Operations = [
        ops.CreateThread(id="t1", resource_id="r1"),
        ops.SaveMessages(messages=[fill]),
        OBSERVE,
        ops.Recall(thread_id="t1", per_page=100, page=100, order_by=order),
        ops.Recall(thread_id="t1", per_page=False, order_by=order),
        ops.Recall(thread_id="t1", include=[{"id": last, "with_previous_messages": 2}]),
    ]
    return _program(steps)


@st.composite
def anything(draw: Draw) -> ops.Program:
    """Without steering: operations as they come. For measuring what steering is worth."""
    steps: Operations = []
    for _ in range(draw(st.integers(1, 10))):
        thread = pick(draw, (*pools.IDS, *pools.ODD_IDS[:8]))
        match pick(draw, range(7)):
            case 0:
                steps.append(ops.CreateThread(id=thread, resource_id=pick(draw, pools.IDS)))
            case 1:
                names = some(draw, (*pools.IDS, *pools.ODD_IDS[:8]), 0, 3)
                steps.append(
                    ops.SaveMessages(messages=[{"id": name, "thread_id": thread, "content": "x"} for name in names])
                )
            case 2:
                steps.append(ops.Recall(thread_id=thread, per_page=pick(draw, (False, 0, 1, 5)), page=0))
            case 3:
                steps.append(ops.DeleteMessages(ids=some(draw, pools.IDS, 0, 3)))
            case 4:
                steps.append(ops.UpdateMessages(updates=[{"id": thread, "content": "changed"}]))
            case 5:
                steps.append(ops.Recall(thread_id=thread, filter={"metadata": {"k": pick(draw, pools.SCALARS)}}))
            case _:
                steps.append(OBSERVE)
    return _program([*steps, OBSERVE])
