"""Calls on working memory, checked and completed before any I/O (WM-1)."""

from __future__ import annotations

from typing import Literal, TypedDict, cast

import msgspec
from msgspec import UNSET

from .errors import ConfigurationError
from .requests import overlay
from .schemas import check_value
from .types import MemoryConfig, WorkingMemory
from .values import identifier, text

Scope = Literal["thread", "resource"]


class WorkingRequest(msgspec.Struct, frozen=True):
    """A checked get or update: of this thread's working memory, or that of the resource which owns it (WM-1b).

    `resource_id`, when given, has to own the thread.
    """

    thread_id: str
    resource_id: str | None
    scope: Scope


class WorkingOptions(TypedDict, total=False):
    """What both calls take beside the thread and the value (protocols.Memory)."""

    resource_id: str | None
    thread_config: MemoryConfig | None


def parse_get_working(
    thread_id: object, options: MemoryConfig, *, resource_id: object = None, thread_config: object = None
) -> WorkingRequest:
    """get_working_memory; `options` are the store's, overlaid by thread_config."""
    return _asked(thread_id, resource_id, working(options, thread_config))


def parse_update_working(
    thread_id: object,
    value: object,
    options: MemoryConfig,
    *,
    resource_id: object = None,
    thread_config: object = None,
) -> tuple[WorkingRequest, str]:
    """update_working_memory: where, and the value."""
    config = working(options, thread_config)
    asked, checked = _asked(thread_id, resource_id, config), text(value, "value")
    if config.schema is not None:
        check_value(config.schema, checked)
    return asked, checked


def _asked(thread_id: object, resource_id: object, config: WorkingMemory) -> WorkingRequest:
    return WorkingRequest(
        thread_id=identifier(thread_id, "thread_id"),
        resource_id=None if resource_id is None else identifier(resource_id, "resource_id"),
        scope=cast(Scope, config.scope),
    )


def working(options: MemoryConfig, thread_config: object = None) -> WorkingMemory:
    """The effective configuration; ConfigurationError where working memory is off, as it is unless enabled (WM-1e)."""
    found = overlay(options, thread_config).working_memory
    if found is UNSET or not found.enabled:
        raise ConfigurationError("working memory is off", hint="set working_memory", clause="WM-1e")
    return found
