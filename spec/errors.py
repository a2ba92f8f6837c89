"""Typed errors a memory store may raise; each has a stable code, and a hint that says what to do instead."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import ClassVar


class StoreError(Exception):
    """Base of every error that the specification names.

    `code` is stable and is what conformance compares; the message is for people. `hint` says how to
    fix the call. `clause` is the id of the clause that demands the refusal (empty when unknown);
    `also` lists other codes that are equally right, for calls that are wrong in two ways at once.
    """

    code: ClassVar[str] = "store_error"
    default_hint: ClassVar[str] = ""

    def __init__(self, message: str, *, hint: str = "", clause: str = "", also: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint
        self.clause = clause
        self.also = also

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InvalidRequest(StoreError):
    """An argument is of the wrong type or out of its range. Raised before any I/O."""

    code = "invalid_request"
    default_hint = "check the argument's type and range"


class InvalidFilter(StoreError):
    """A filter has a bad key, value, operator or shape. The message names the key."""

    code = "invalid_filter"
    default_hint = "filter keys are identifiers; values are strings, finite numbers, booleans or null"


class InvalidVector(StoreError):
    """A vector has the wrong dimension, a non-finite component, or a norm outside its range."""

    code = "invalid_vector"
    default_hint = "pass finite float32 components of the index's dimension"


class AlreadyExists(StoreError):
    """The id or name is taken; what exists is untouched."""

    code = "already_exists"
    default_hint = "choose another id, or update what exists"


class ThreadNotFound(StoreError):
    """A write, or a read that names a resource, names a thread that does not exist."""

    code = "thread_not_found"
    default_hint = "create the thread first"


class IndexNotFound(StoreError):
    """The vector index does not exist."""

    code = "index_not_found"
    default_hint = "create the index first"


class OwnershipMismatch(StoreError):
    """The thread or message belongs to another resource."""

    code = "ownership_mismatch"
    default_hint = "pass the resource that owns the thread"


class ConfigurationError(StoreError):
    """The call needs something the store was not opened with."""

    code = "configuration_error"
    default_hint = "open the store with what the call needs; nothing is implied"


class EmbedderError(StoreError):
    """The embedder failed; nothing was written."""

    code = "embedder_error"
    default_hint = "see the embedder's own message"


class NotSettled(StoreError):
    """What was begun in the background did not end in time; it goes on."""

    code = "not_settled"
    default_hint = "wait longer, or look into what is so slow"


class Unavailable(StoreError):
    """The engine did not answer, broke off, or has no room left. Whether a write was made is not known (DUR-1a)."""

    code = "unavailable"
    default_hint = "make the call again when the engine answers; look first whether a write was made"


class Unsupported(StoreError):
    """The backend cannot do this and says so (CAP-1)."""

    code = "unsupported"
    default_hint = "see the backend's capabilities"


def codes() -> tuple[str, ...]:
    """Every code of the specification, sorted."""
    return tuple(sorted(kind.code for kind in StoreError.__subclasses__()))


@contextmanager
def answered(failed: Callable[[BaseException], bool]) -> Generator[None]:
    """Around calls of a driver: what it raises is Unavailable where `failed` says that the engine did not answer."""
    try:
        yield
    except Exception as error:
        if isinstance(error, StoreError) or not failed(error):
            raise
        raise Unavailable(f"{type(error).__name__}: {str(error).strip()[:MOST_SAID]}") from error


MOST_SAID = 500
"""Characters of what a driver says."""


@contextmanager
def refusing(checks: Callable[[], Iterable[Callable[[], object]]]) -> Generator[None]:
    """Around a call that may be wrong in several ways: what each check refuses alone is as right as what is raised."""
    try:
        yield
    except StoreError as error:
        for check in checks():
            try:
                check()
            except StoreError as other:
                error.also = (*error.also, other.code)
        raise
