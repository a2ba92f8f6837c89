"""What a program puts to the test of titles (TTL-1): facts about saves, and about what they had begun."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UNSET

from . import program as ops
from .errors import StoreError
from .interpreter import Outcome, Returned
from .reference import State, Untitled
from .requests import titling
from .titlers import LiteralTitler
from .types import MemoryConfig, Message, Thread
from .values import text


def saved(
    operation: ops.SaveMessages, outcome: Outcome, options: MemoryConfig, before: dict[str, Thread]
) -> Iterator[str]:
    """Facts about a save that returned, in a program with a titler."""
    if not isinstance(outcome, Returned):
        return
    config: MemoryConfig | None = operation.arguments().get("thread_config")
    messages: Sequence[Message] = outcome.value
    answered = {message.thread_id for message in messages if message.role == "assistant"}
    if titling(options, config) is None:
        if answered:
            yield "title.off"
        return
    if not answered:
        yield "title.unanswered"
    if any(before[thread_id].title for thread_id in answered):
        yield "title.titled"
    if any(not before[thread_id].title for thread_id in answered):
        yield "title.begun"
        if options.threads is not UNSET or (config is not None and config.threads is not UNSET):
            yield "title.under_threads"


def settled(begun: Sequence[Untitled], before: dict[str, Thread], state: State) -> Iterator[str]:
    """Facts about a settle, from what had been begun."""
    for each in begun:
        thread = before.get(each.thread_id)
        if thread is None:
            yield "title.gone"
        elif thread.title:
            yield "title.meanwhile"
        else:
            messages = [row.message for row in state.rows[thread.id]]
            try:
                title = text(LiteralTitler()(messages, model=None, instructions=None), "title")
            except RuntimeError:
                yield "title.failed"
                continue
            except StoreError:
                title = ""
            yield "title.made" if title else "title.none"
            if title and (each.wanted.model is not None or each.wanted.instructions is not None):
                yield "title.told"


def given(operation: ops.TitleThread, outcome: Outcome, before: dict[str, Thread]) -> Iterator[str]:
    """Facts about a title_thread that returned."""
    if isinstance(outcome, Returned):
        thread = before.get(operation.arguments()["thread_id"])
        yield "title.given"
        yield "title.given_unknown" if thread is None else "title.given_second" if thread.title else "title.given_first"
