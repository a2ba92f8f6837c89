"""Programs on titles: made after an answer, given, overtaken, and not made."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from .. import program as ops
from ..forms import Form
from . import pools
from .arrange import OBSERVE
from .pools import chance, distinct, pick

Operations = list[ops.AnyOperation]
Turn = Callable[[Random, str], Operations]

TOLD: tuple[Form, ...] = (
    {"model": "openai/gpt-5-mini", "instructions": "Generate a one-word title."},
    {"model": "small"},
    {"instructions": "\uc9e7\uac8c"},
)
ON: tuple[Form, ...] = (True, True, *TOLD)
QUESTIONS = ("Where is my order?", "\uc8fc\ubb38 \u00e9 \U0001f600", "'; \"%_\\")
WRONG: tuple[dict[str, Form], ...] = (
    {"generate_title": 1},
    {"generate_title": "yes"},
    {"generate_title": None},
    {"generate_title": {"model": 5}},
    {"threads": True},
    {"threads": {"generate_title": "yes"}},
    {"threads": {"generate_title": {"instructions": ["short"]}}},
)
TWICE: dict[str, Form] = {"generate_title": True, "threads": {"generate_title": False}}


def titles(rng: Random) -> ops.Program:
    """TTL: three histories of one thread each."""
    how = pick(rng, ON)
    options: dict[str, Form] = pick(
        rng, ({"generate_title": how}, {"generate_title": how}, {"threads": {"generate_title": how}}, {})
    )
    steps: Operations = []
    turns = distinct(rng, TURNS, 3, 3)
    for number, turn in enumerate(turns):
        name = f"t{number}"
        titled = turn is _titled or (turn is _given and chance(rng, 30))
        given: dict[str, Form] = {"title": pick(rng, ("mine", " "))} if titled else {}
        steps += [ops.CreateThread(id=name, resource_id="r1", **given)]
    steps.append(OBSERVE)
    for number, turn in enumerate(turns):
        steps += turn(rng, f"t{number}")
    titler = not chance(rng, 12)
    return ops.Program(operations=tuple(steps), options=options, titler=titler)


def _config(rng: Random) -> Form:
    how = pick(rng, ON)
    return pick(rng, ({"generate_title": how}, {"threads": {"generate_title": how}}))


def _said(thread: str, question: Form, **given: Form) -> ops.SaveMessages:
    """A question and its answer."""
    at: Form = {"$at": pools.NOON}
    batch: list[Form] = [
        {"id": f"{thread}-q", "thread_id": thread, "content": question, "created_at": at},
        {"id": f"{thread}-a", "thread_id": thread, "content": "an answer", "role": "assistant", "created_at": at},
    ]
    return ops.SaveMessages(messages=batch, **given)


def _settled() -> Operations:
    return [ops.Tick(ms=1000), ops.Settle(), OBSERVE]


def _made(rng: Random, thread: str) -> Operations:
    given: dict[str, Form] = {"thread_config": _config(rng)} if chance(rng, 60) else {}
    seen: Operations = [OBSERVE] if chance(rng, 70) else []
    return [_said(thread, pick(rng, QUESTIONS), **given), *seen, *_settled()]


def _not_made(rng: Random, thread: str) -> Operations:
    question = pick(rng, ("! fails", "! fails", "? empty", "0 is none"))
    return [_said(thread, question, thread_config=_config(rng)), OBSERVE, *_settled()]


def _meanwhile(rng: Random, thread: str) -> Operations:
    said = _said(thread, pick(rng, QUESTIONS), thread_config=_config(rng))
    return [said, OBSERVE, ops.UpdateThread(thread_id=thread, title="set meanwhile"), OBSERVE, *_settled()]


def _gone(rng: Random, thread: str) -> Operations:
    said = _said(thread, pick(rng, QUESTIONS), thread_config=_config(rng))
    return [said, OBSERVE, ops.DeleteThread(thread_id=thread), OBSERVE, *_settled()]


def _titled(rng: Random, thread: str) -> Operations:
    return [_said(thread, pick(rng, QUESTIONS), thread_config=_config(rng)), OBSERVE, *_settled()]


def _unanswered(rng: Random, thread: str) -> Operations:
    question: Form = {"id": f"{thread}-q", "thread_id": thread, "content": "why?", "created_at": {"$at": pools.NOON}}
    if chance(rng, 30):
        question = question | {"role": pick(rng, ("system", "tool"))}
    steps: Operations = [ops.SaveMessages(messages=[question], thread_config=_config(rng)), OBSERVE, *_settled()]
    if chance(rng, 50):
        steps += [_said(thread, "why?", thread_config=_config(rng)), OBSERVE, *_settled()]
    return steps


def _off(rng: Random, thread: str) -> Operations:
    off = pick(rng, ({"generate_title": False}, {"threads": {"generate_title": False}}))
    return [_said(thread, pick(rng, QUESTIONS), thread_config=off), OBSERVE, *_settled()]


def _wrong(rng: Random, thread: str) -> Operations:
    config = pick(rng, (TWICE, TWICE, TWICE, *WRONG))
    return [_said(thread, pick(rng, QUESTIONS), thread_config=config), OBSERVE, *_settled()]


def _given(rng: Random, thread: str) -> Operations:
    first, second = distinct(rng, ("first", "second", "\uc81c\ubaa9", " "), 2, 2)
    steps: Operations = [ops.Tick(ms=1000), ops.TitleThread(thread_id=thread, title=first), OBSERVE]
    steps += [ops.Tick(ms=1000), ops.TitleThread(thread_id=thread, title=second), OBSERVE]
    match pick(rng, range(4)):
        case 0 | 1:
            steps += [ops.TitleThread(thread_id=pick(rng, ("nowhere", "T0")), title="x"), OBSERVE]
        case 2:
            steps += [ops.TitleThread(thread_id=thread, title=pick(rng, ("", 5, *pools.BAD_TEXTS))), OBSERVE]
        case _:
            steps += [ops.UpdateThread(thread_id=thread, title=""), OBSERVE]
            steps += [ops.TitleThread(thread_id=thread, title="again"), OBSERVE]
    return steps


TURNS: tuple[Turn, ...] = (_made, _made, _not_made, _meanwhile, _gone, _titled, _unanswered, _off, _wrong, _given)
