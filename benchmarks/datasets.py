"""Data sets by name: `mixture:10k×64`, `digits`, `hdf5:FILE`, `fbin:FILE`, `u8bin:FILE`, `parquet:FILE`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from ..harness.exits import UsageProblem
from . import mixture
from .filters import FILTERS, NO_FILTER, Filter
from .keeping import Told, silent
from .vectorset import Recipe, VectorSet, keep

__all__ = ["FILTERS", "NO_FILTER", "Filter", "VectorSet", "open_dataset"]


class Kind(NamedTuple):
    """What a data set's name begins with: the options it takes, and how its recipe is had from the rest."""

    options: type[Any]
    recipe: Callable[[str, Any], Recipe]


KINDS: dict[str, Kind] = {
    "mixture": Kind(mixture.Options, mixture.recipe),
}


def open_dataset(spec: str, *, cache: Path | None = None, told: Told = silent) -> VectorSet:
    """The data set of a name, `KIND:WHAT?option=value&…`, memory-mapped; made and kept in the cache first unless it is.

    cache: a directory instead of the user's cache. Raises UsageProblem for a bad name, option or file.
    """
    kind, _, rest = spec.partition(":")
    what, _, given = rest.partition("?")
    if kind not in KINDS:
        kind, _, given = kind.partition("?")
    if kind not in KINDS:
        raise UsageProblem(f"there is no kind of data set {kind!r}", hint=f"one of {', '.join(KINDS)}")
    return keep(KINDS[kind].recipe(what, _options(kind, given)), cache, told)


def _options(kind: str, given: str) -> Any:
    wanted = KINDS[kind].options
    try:
        pairs = parse_qsl(given, keep_blank_values=True, strict_parsing=True) if given else []
        return msgspec.convert(dict(pairs), type=wanted, strict=False)
    except (ValueError, msgspec.ValidationError) as error:
        known = ", ".join(field.name for field in msgspec.structs.fields(wanted))
        raise UsageProblem(f"bad options of {kind}, {given!r}: {error}", hint=f"name=value&…, of {known}") from error
