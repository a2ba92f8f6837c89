"""Questions about programs that are asked before they run."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..spec.errors import ConfigurationError, InvalidFilter, InvalidRequest
from ..spec.forms import FormError
from ..spec.program import Kill, Operation, Program, Race, Together, config
from ..spec.requests import parse_config


def check_forms(program: Program) -> None:
    """Resolve every form once. Raises FormError for one that cannot be read."""
    try:
        config(program.options)
    except (TypeError, ValueError, AttributeError) as error:
        raise FormError(f"options: {error}") from error
    for operation in calls(program):
        try:
            operation.arguments()
            list(operation.threads())
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FormError(f"{operation.name}: {error}") from error


def openable(program: Program) -> bool:
    """Whether the specification has a store with the program's options."""
    try:
        parse_config(config(program.options), "options")
    except (ConfigurationError, InvalidRequest, InvalidFilter):
        return False
    return True


def calls(program: Program) -> Iterator[Operation]:
    """The operations, and the branches of those that happen together."""
    for operation in program.operations:
        if isinstance(operation, Together):
            yield from operation.operations
        elif isinstance(operation, Race):
            yield from operation.calls()
        elif isinstance(operation, Kill):
            yield operation.operation
        else:
            yield operation


def needs(program: Program) -> frozenset[str]:
    """The capabilities without which the program cannot be run at all."""
    several = any(isinstance(operation, Together | Race | Kill) or operation.client for operation in program.operations)
    killed = any(isinstance(operation, Kill) for operation in program.operations)
    return frozenset({*(("concurrent_clients",) if several else ()), *(("other_processes",) if killed else ())})


def cut(program: Program, index: int) -> Program:
    """The program up to and with the operation at the index."""
    return msgspec.structs.replace(program, operations=program.operations[: index + 1])
