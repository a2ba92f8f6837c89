"""Programs on working memory: values replaced and refused, of threads and of resources, that die and are cloned."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from .. import program as ops
from ..forms import Form
from .arrange import OBSERVE, OWNERS
from .pools import chance, distinct, pick

Operations = list[ops.AnyOperation]
Turn = Callable[[Random], Operations]

SCHEMA: Form = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}
FITTING = (
    '{"name": "Kim"}',
    '{ "age": 30,\n  "name": "\uae40" }',
    '{"name": ""}',
    '{"name":"a","age":0}',
    '{"name": "a"} ',
)
MISFITS: tuple[Form, ...] = (
    "{}",
    "",
    "name: Kim",
    "[]",
    '{"name": 1}',
    '{"name": "a", "age": 1.5}',
    '{"name": "a", "age": -1}',
    '{"name": "a", "x": 1}',
    '{"name": NaN}',
    '"a"',
)
LONG: Form = "# User\n- **Name**: Kim\n- **City**: Seoul\n- **Likes**: tea"
SHORT: tuple[Form, ...] = ("", "", "x", "# User", " padded ", "# \uae40 \u00e9 e\u0301 \U0001f600", "'; \"%_\\")

ON: Form = {"enabled": True}
OF_RESOURCE: Form = {"enabled": True, "scope": "resource"}
BY_SCHEMA: Form = {"enabled": True, "schema": SCHEMA}
WRONG: tuple[Form, ...] = (
    {"enabled": False},
    {"enabled": False, "template": "# User"},
    {"enabled": True, "template": "# User", "schema": SCHEMA},
    {"enabled": True, "template": "", "schema": {}},
    {"enabled": True, "schema": {"type": "text"}},
    {"enabled": True, "schema": {"$schema": "https://example.org/none", "type": "object"}},
    {"enabled": 1},
    {"enabled": "yes"},
    {"enabled": True, "scope": "all"},
    {"enabled": True, "template": 5},
    {"enabled": True, "schema": []},
    True,
)


def working_memory(rng: Random) -> ops.Program:
    """WM, WM-1f: three histories of a few notes."""
    options: dict[str, Form] = pick(
        rng,
        (
            {},
            {"working_memory": {"enabled": False}},
            {"working_memory": ON},
            {"working_memory": {"enabled": True, "template": "# User\n- **Name**:"}},
            {"working_memory": OF_RESOURCE},
            {"working_memory": BY_SCHEMA},
        ),
    )
    steps: Operations = [
        ops.CreateThread(id=name, resource_id=owner, title="kept", metadata={"k": 1}) for name, owner in OWNERS.items()
    ]
    steps.append(OBSERVE)
    if chance(rng, 40):
        # As the store is configured, whatever that is.
        steps += [ops.GetWorkingMemory(thread_id="t1"), ops.UpdateWorkingMemory(thread_id="t1", value=LONG), OBSERVE]
        steps.append(ops.GetWorkingMemory(thread_id="t1"))
    for turn in distinct(rng, TURNS, 3, 3):
        steps += turn(rng)
    return ops.Program(operations=tuple(steps), options=options)


def two_clients(rng: Random) -> ops.Program:
    """CON-1c: one client updates, and the other's next call reads."""
    first, second = pick(rng, ((0, 1), (0, 1), (1, 0)))
    config = pick(rng, (ON, OF_RESOURCE, BY_SCHEMA))
    values = FITTING if config is BY_SCHEMA else ("one", "the other", "x")
    steps: Operations = [ops.CreateThread(id="t1", resource_id="r1"), ops.CreateThread(id="t2", resource_id="r1")]
    steps += _both()
    for value in distinct(rng, values, 2, 2):
        write = ops.UpdateWorkingMemory(thread_id="t1", value=value, thread_config=_config(config), client=first)
        reader = pick(rng, ("t1", "t2")) if config is OF_RESOURCE else "t1"
        steps += [write, _get(reader, config, second), *_both(), _get(reader, config, second)]
        steps.append(_get(reader, config, first))
    if chance(rng, 50):
        steps += [ops.DeleteThread(thread_id="t1", client=first), _get("t1", config, second), *_both()]
        steps += [_get("t1", config, second), _get("t1", config, first)]
    return ops.Program(operations=tuple(steps))


def _both() -> Operations:
    return [ops.Observe(client=1), ops.Observe()]


def _config(working: Form) -> Form:
    return {"working_memory": working}


def _get(thread: Form, working: Form = ON, client: int = 0) -> ops.GetWorkingMemory:
    return ops.GetWorkingMemory(thread_id=thread, thread_config=_config(working), client=client)


def _put(thread: Form, value: Form, working: Form = ON) -> ops.UpdateWorkingMemory:
    return ops.UpdateWorkingMemory(thread_id=thread, value=value, thread_config=_config(working))


def _replaced(rng: Random) -> Operations:
    return [
        ops.Tick(ms=1000),
        _put("t1", LONG),
        OBSERVE,
        _get("t1"),
        _put("t1", pick(rng, SHORT)),
        OBSERVE,
        _get("t1"),
        _get(pick(rng, ("t2", "t3"))),
    ]


def _unknown(rng: Random) -> Operations:
    config = pick(rng, (ON, ON, OF_RESOURCE))
    return [_put("nowhere", pick(rng, SHORT), config), OBSERVE, _get("nowhere", config)]


def _of_a_resource(rng: Random) -> Operations:
    return [
        _put(pick(rng, ("t1", "t1", "t2")), pick(rng, (LONG, *SHORT)), OF_RESOURCE),
        OBSERVE,
        _get("t1", OF_RESOURCE),
        _get("t2", OF_RESOURCE),
        _get("t3", OF_RESOURCE),
        _get(pick(rng, ("t1", "t2"))),
    ]


def _of_both(rng: Random) -> Operations:
    puts: Operations = [_put("t1", "the thread's"), _put("t1", "the resource's", OF_RESOURCE)]
    if chance(rng, 50):
        puts = puts[::-1]
    return [*puts, OBSERVE, _get("t1"), _get("t1", OF_RESOURCE), _get("t2", OF_RESOURCE)]


def _deleted(rng: Random) -> Operations:
    steps: Operations = [_put("t1", LONG), _put("t1", "stays", OF_RESOURCE), OBSERVE]
    steps += [ops.DeleteThread(thread_id="t1"), OBSERVE, _get("t1"), _get("t2", OF_RESOURCE)]
    if chance(rng, 30):
        steps += [ops.DeleteThread(thread_id="t2"), OBSERVE]
    again = ops.CreateThread(id="t1", resource_id=pick(rng, ("r1", "r1", "r2")))
    return [*steps, again, OBSERVE, _get("t1"), _get("t1", OF_RESOURCE)]


def _cleared(rng: Random) -> Operations:
    config = pick(rng, (ON, ON, OF_RESOURCE))
    batch: list[Form] = [{"id": name, "thread_id": "t1", "content": "x"} for name in ("a", "b")]
    steps: Operations = [ops.SaveMessages(messages=batch), _put("t1", LONG, config), OBSERVE]
    return [*steps, ops.ClearMessages(thread_id="t1"), OBSERVE, _get("t1", config)]


def _cloned(rng: Random) -> Operations:
    config = pick(rng, (ON, ON, BY_SCHEMA))
    first, second = ('{"name": "one"}', '{"name": "other"}') if config is BY_SCHEMA else (LONG, "other")
    given: dict[str, Form] = pick(rng, ({}, {}, {"message_limit": 0}, {"resource_id": "r2"}))
    steps: Operations = [_put("t1", first, config), OBSERVE]
    if chance(rng, 50):
        steps.insert(0, ops.SaveMessages(messages=[{"id": "a", "thread_id": "t1", "content": "x"}]))
    steps += [ops.CloneThread(source_thread_id="t1", new_thread_id="c1", **given), OBSERVE, _get("c1", config)]
    changed = pick(rng, ("c1", "t1"))
    steps += [_put(changed, second, config), OBSERVE, _get("c1", config), _get("t1", config)]
    if chance(rng, 30):
        steps += [ops.DeleteThread(thread_id="t1"), OBSERVE, _get("c1", config)]
    return steps


def _by_schema(rng: Random) -> Operations:
    fitting, misfit = pick(rng, FITTING), pick(rng, MISFITS)
    thread = pick(rng, ("t1", "t2"))
    steps: Operations = [_put(thread, fitting, BY_SCHEMA), OBSERVE, _get(thread, BY_SCHEMA)]
    return [*steps, _put(thread, misfit, BY_SCHEMA), OBSERVE, _get(thread, BY_SCHEMA)]


def _wrong(rng: Random) -> Operations:
    one, other = distinct(rng, WRONG, 2, 2)
    return [_get("t1", one), _put("t1", "x", other), OBSERVE, _get("t1")]


def _owned(rng: Random) -> Operations:
    config = _config(pick(rng, (ON, OF_RESOURCE)))
    thread, resource = pick(rng, (("t1", "r2"), ("t3", "r1"), ("nowhere", "r1"), ("t1", "R1")))
    return [
        ops.UpdateWorkingMemory(thread_id="t1", value="mine", resource_id="r1", thread_config=config),
        ops.UpdateWorkingMemory(thread_id=thread, value="theirs", resource_id=resource, thread_config=config),
        OBSERVE,
        ops.GetWorkingMemory(thread_id="t1", resource_id="r1", thread_config=config),
        ops.GetWorkingMemory(thread_id=thread, resource_id=resource, thread_config=config),
    ]


def _reopened(rng: Random) -> Operations:
    config = pick(rng, (ON, OF_RESOURCE))
    steps: Operations = [_put("t1", pick(rng, (LONG, *SHORT)), config), OBSERVE, _get("t1", config)]
    return [*steps, ops.Reopen(), OBSERVE, _get("t1", config)]


TURNS: tuple[Turn, ...] = (
    *(
        _replaced,
        _unknown,
        _of_a_resource,
        _of_both,
        _deleted,
        _cleared,
        _cloned,
        _by_schema,
        _wrong,
        _owned,
        _reopened,
    ),
)
