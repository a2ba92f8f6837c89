"""Injection: ids, keys, names and values that mean something to an engine, on every operation, beside canaries.

The canaries are a thread, a message and a vector of another resource. No operation of a program has business with
them, so whatever moves them or shows them was read as more than a value (ISO-1, ISO-2).
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, cast

from .. import program as ops
from ..forms import Form
from .arrange import OBSERVE
from .pools import chance, distinct, pick

Operations = list[ops.AnyOperation]

SQL = (
    "t' OR '1'='1",
    "'; DROP TABLE messages; --",
    'a"; DELETE FROM threads; --',
    "a') OR 1=1) --",
    "1 UNION SELECT * FROM threads",
    "x' || (SELECT 'canary') || '",
    "%",
    "_",
    "\\'",
    "$1",
    ":id",
    "%(id)s",
    "?",
    "E'\\x27'",
    "$$; SELECT 1; $$",
)
JSON_PATH = (
    "a.b",
    "$.k",
    '$."k"',
    "k[0]",
    "$[*]",
    "a->>'k'",
    "{k}",
    "#>{k}",
    '"k"',
    "k') IS NOT NULL --",
    "$eq",
    "$where",
)
SEARCH = (
    "*",
    "*:*",
    "resource_id:owner",
    "x OR resource_id:owner",
    "id:* AND NOT id:x",
    "canar?",
    "canary~2",
    "[* TO *]",
    "/.*/",
    "(a|b)+",
    "_all",
    '{"match_all": {}}',
    '"}}, {"match_all": {"',
)
SCRIPTS = (
    "ctx._source.remove('k')",
    "ctx.op = 'delete'",
    "'; ctx._source.content = 'owned'; '",
    "doc['k'].value",
    "params.getClass()",
    "{{constructor}}",
    "${jndi:ldap://localhost/a}",
    "__proto__",
    "constructor",
)
PATTERNS = (".*", "^", "$", "a{1,99}", "(?i)CANARY", "(a+)+$", "[[:alpha:]]", "\\d", "\\")
PATHS = (
    "../canary",
    "..\\canary",
    "/etc/passwd",
    "./canary",
    "canary/",
    "%2e%2e%2fcanary",
    "~",
    "file:///canary",
    "a/b",
    "C:\\",
)
ALIKE = (
    "CANARY",
    "canary ",
    " canary",
    "c\u0430nary",
    "\uff43\uff41\uff4e\uff41\uff52\uff59",
    "canary\u200b",
    "\u202eyranac",
    "cana\u0301ry",
    "canary\u00a0",
    "canary\t",
    "canary\n",
    "canary\u0001",
)
LONG: tuple[Form, ...] = (
    {"$repeat": ["'", 255]},
    {"$repeat": ["%", 254]},
    {"$concat": [{"$repeat": ["canary", 42]}, "cab"]},
    {"$repeat": ["\U0001f600", 255]},
    {"$repeat": ["../", 85]},
)
TOO_LONG: tuple[Form, ...] = (
    {"$concat": ["canary", {"$repeat": ["'", 250]}]},
    {"$repeat": ["x' OR '1'='1", 40]},
    {"$repeat": ["%", 70_000]},
)
"""Longer than an id may be: refused as one, kept as a value."""

BROKEN: tuple[Form, ...] = ({"$concat": ["canary", {"$chars": [0]}, "'"]}, {"$chars": [0xD83D]}, "")
"""Refused wherever they stand."""

NAMES: tuple[Form, ...] = (*SQL, *JSON_PATH, *SEARCH, *SCRIPTS, *PATTERNS, *PATHS, *ALIKE, *LONG)
"""What an id, a key or a name may be."""

SWEEPING: tuple[Form, ...] = ("t' OR '1'='1", "a') OR 1=1) --", "%", "*", "*:*", ".*", "../canary", "canar?", "CANARY")
"""What would sweep everything away, were it read as a pattern or a condition."""

_KNOWN = frozenset(str(form) for form in (*NAMES, *TOO_LONG, *BROKEN) if form != "")

CANARY_THREAD, CANARY_OWNER, CANARY_INDEX = "canary", "owner", "canaries"
OPERATIONS = 24
"""Hostile operations a program."""


def hostile(program: ops.Program) -> int:
    """How many operations of a program carry something from the pools of this module."""
    return sum(
        operation.role != "observe" and any(str(form) in _KNOWN for form in _forms(list(operation.given().values())))
        for operation in program.operations
    )


def _forms(form: Any) -> Iterator[Any]:
    """Every form inside a form, keys of objects too."""
    yield form
    match form:
        case dict():
            for key, item in cast("dict[str, Any]", form).items():
                yield key
                yield from _forms(item)
        case list() | tuple():
            for item in cast("list[Any]", form):
                yield from _forms(item)
        case _:
            return


def injection(rng: Random) -> ops.Program:
    """ISO-2: hostile values on every operation, a few names a program, so that they meet."""
    names = distinct(rng, NAMES, 4, 4)
    indexed = chance(rng, 45)
    steps: Operations = [
        ops.CreateThread(id=CANARY_THREAD, resource_id=CANARY_OWNER, metadata={"k": "secret"}),
        ops.SaveMessages(
            messages=[
                {"id": f"canary-{i}", "thread_id": CANARY_THREAD, "content": "secret", "metadata": {"k": "secret"}}
                for i in range(2)
            ]
        ),
        ops.CreateThread(id=names[0], resource_id=names[1]),
    ]
    if indexed:
        row: Form = {"id": "canary", "vector": [1, 0], "metadata": {"k": "secret"}}
        steps += [ops.CreateIndex(index=name, dimension=2) for name in (CANARY_INDEX, names[2])]
        steps += [ops.UpsertVectors(index=CANARY_INDEX, vectors=[row])]
    steps.append(OBSERVE)
    for _ in range(OPERATIONS):
        step = (_on_index if indexed and chance(rng, 45) else _on_memory)(rng, names)
        written = steps[-1].role == "write"
        if written and (step.role == "read" or chance(rng, 40)):
            steps.append(OBSERVE)
        steps.append(step)
    steps += [OBSERVE, ops.Recall(thread_id=CANARY_THREAD, resource_id=CANARY_OWNER, per_page=False)]
    return ops.Program(operations=tuple(steps))


def _value(rng: Random) -> Form:
    """What a title, a content or a value of metadata may be."""
    luck = rng.randrange(20)
    return pick(rng, BROKEN) if luck == 0 else pick(rng, TOO_LONG) if luck < 3 else pick(rng, NAMES)


def _name(rng: Random, names: list[Form]) -> Form:
    """A name of the program, now and then one that is refused."""
    luck = rng.randrange(14)
    return pick(rng, (*BROKEN, *TOO_LONG)) if luck == 0 else pick(rng, names)


def _metadata(rng: Random) -> Form:
    return {"$dict": [["k", _value(rng)], [pick(rng, NAMES), pick(rng, (1, None, _value(rng)))]]}


def _conditions(rng: Random) -> Form:
    """A metadata filter with a hostile value, or a hostile key, which is refused."""
    if chance(rng, 65):
        return {"k": _value(rng)}
    return {"$dict": [[pick(rng, NAMES), pick(rng, (1, "secret"))]]}


def _on_memory(rng: Random, names: list[Form]) -> ops.AnyOperation:
    one, two = _name(rng, names), _name(rng, names)
    thread = names[0] if chance(rng, 60) else one
    match rng.randrange(20):
        case 0:
            return ops.CreateThread(id=one, resource_id=two, title=_value(rng), metadata=_metadata(rng))
        case 1:
            return ops.GetThread(thread_id=one, resource_id=two)
        case 2:
            return ops.UpdateThread(thread_id=thread, title=_value(rng), metadata=_metadata(rng))
        case 3:
            return ops.ListThreads(filter={"resource_id": one}, per_page=False)
        case 4:
            return ops.ListThreads(filter={"metadata": _conditions(rng)}, per_page=False)
        case 5:
            return ops.ListThreads(order_by={"field": pick(rng, NAMES), "direction": pick(rng, ("ASC", one))})
        case 6:
            return ops.DeleteThread(thread_id=one if chance(rng, 40) else pick(rng, SWEEPING))
        case 7:
            given: dict[str, Form] = {"message_ids": [two, pick(rng, NAMES)]} if chance(rng, 50) else {}
            return ops.CloneThread(source_thread_id=thread, new_thread_id=two, metadata=_metadata(rng), **given)
        case 8:
            return ops.ListClones(source_thread_id=one, resource_id=two)
        case 9:
            return ops.UpdateMessages(updates=[{"id": one, "content": _value(rng), "metadata": _metadata(rng)}])
        case 10:
            return ops.DeleteMessages(ids=[one, pick(rng, SWEEPING)])
        case 11:
            return ops.ClearMessages(thread_id=one if chance(rng, 50) else pick(rng, SWEEPING))
        case 12:
            return ops.Recall(thread_id=thread, resource_id=one, per_page=False, order_by={"direction": "ASC"})
        case 13:
            return ops.Recall(thread_id=thread, per_page=False, filter={"metadata": _conditions(rng)})
        case 14:
            entries: list[Form] = [{"id": one}, {"id": "canary-0", "thread_id": two}, {"id": two, "thread_id": thread}]
            return ops.Recall(thread_id=thread, resource_id=names[1], include=entries)
        case 15:
            return ops.Recall(thread_id=thread, order_by={"field": pick(rng, NAMES), "direction": "ASC"})
        case 16:
            return _beside(rng, thread, one, two)
        case _:
            batch: list[Form] = [
                {"id": name, "thread_id": thread, "content": _value(rng), "metadata": _metadata(rng)}
                for name in distinct(rng, (one, two, pick(rng, NAMES)), 1, 2)
            ]
            return ops.SaveMessages(messages=batch)


def _beside(rng: Random, thread: Form, one: Form, two: Form) -> ops.AnyOperation:
    """Working memory and a title, of a thread of one's own or of one that is only named."""
    config: Form = {"working_memory": {"enabled": True, "scope": pick(rng, ("thread", "resource"))}}
    given: dict[str, Form] = {"thread_config": config} | ({"resource_id": two} if chance(rng, 30) else {})
    match rng.randrange(4):
        case 0:
            return ops.GetWorkingMemory(thread_id=one, **given)
        case 1:
            return ops.UpdateWorkingMemory(thread_id=thread, value=_value(rng), **given)
        case 2:
            return ops.UpdateWorkingMemory(thread_id=one, value=_value(rng), thread_config=config)
        case _:
            return ops.TitleThread(thread_id=pick(rng, (thread, one)), title=_value(rng))


def _on_index(rng: Random, names: list[Form]) -> ops.AnyOperation:
    one, index = _name(rng, names), names[2] if chance(rng, 75) else _name(rng, names)
    vector: Form = pick(rng, ([1, 0], [0, 1], [1, 1]))
    match rng.randrange(10):
        case 0:
            return ops.CreateIndex(index=index, dimension=2, metric=pick(rng, ("cosine", one)))
        case 1:
            return ops.DescribeIndex(index=_name(rng, names))
        case 2:
            return ops.DropIndex(index=_name(rng, names[1:2]))
        case 3:
            return ops.GetVectors(index=index, ids=[one, pick(rng, NAMES)])
        case 4:
            return ops.UpdateVector(index=index, id=one, metadata=_metadata(rng))
        case 5:
            return ops.DeleteVectors(index=index, ids=[one])
        case 6:
            return ops.DeleteVectors(index=index, filter=_where(rng))
        case 7:
            return ops.QueryVectors(index=index, vector=vector, filter=_where(rng), exact=True)
        case _:
            row: Form = {"id": one, "vector": vector, "metadata": _metadata(rng)}
            return ops.UpsertVectors(index=index, vectors=[row])


def _where(rng: Random) -> Form:
    """An operator filter with a hostile operand, key or operator."""
    value = pick(rng, NAMES)
    match rng.randrange(6):
        case 0:
            return {"$dict": [[pick(rng, NAMES), 1]]}
        case 1:
            return {"$dict": [["k", {"$dict": [[pick(rng, NAMES), 1]]}]]}
        case 2:
            return {"k": {"$in": [value, _value(rng)]}}
        case 3:
            return {"$or": [{"k": value}, {"k": {"$ne": value}}]}
        case 4:
            return {"k": {"$lt": value}}
        case _:
            return {"k": value}
