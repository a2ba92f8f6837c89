"""Data sets by name: `mixture:10k×64`, `digits`, `hdf5:FILE`, `fbin:FILE?metric=…`, `parquet:FILE?metric=…`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..harness.exits import UsageProblem
from . import digits, loaders, mixture
from .filters import FILTERS, NO_FILTER, Filter
from .keeping import Told, silent
from .names import options, split
from .vectorset import Recipe, VectorSet, keep

__all__ = ["FILTERS", "NO_FILTER", "Filter", "Reference", "VectorSet", "open_dataset", "reopen"]


class Kind(NamedTuple):
    """What a data set's name begins with: the options it takes, and how its recipe is had from the rest."""

    options: type[Any]
    recipe: Callable[[str, Any], Recipe]


KINDS: dict[str, Kind] = {
    "mixture": Kind(mixture.Options, mixture.recipe),
    "digits": Kind(digits.Options, digits.recipe),
    "hdf5": Kind(loaders.Hdf5Options, loaders.hdf5),
    **{kind: Kind(loaders.FileOptions, partial(loaders.binary, kind)) for kind in loaders.BINARY},
    "parquet": Kind(loaders.ParquetOptions, loaders.parquet),
}


def open_dataset(spec: str, *, cache: Path | None = None, told: Told = silent) -> VectorSet:
    """The data set of a name, `KIND:WHAT?option=value&…`, memory-mapped; made and kept in the cache first unless it is.

    cache: a directory instead of the user's cache. Raises UsageProblem for a bad name, option or file.
    """
    name = split(spec)
    if name.kind not in KINDS:
        raise UsageProblem(f"there is no kind of data set {name.kind!r}", hint=f"one of {', '.join(KINDS)}")
    kind = KINDS[name.kind]
    return keep(kind.recipe(name.what, options(name, kind.options)), cache, told, spec=spec)


class Reference(msgspec.Struct, frozen=True):
    """A data set as another process is told of it: what it is called, where it is kept, what its hash has to be."""

    spec: str
    folder: str
    hash: str

    @classmethod
    def of(cls, dataset: VectorSet) -> Reference:
        """Raises UsageProblem for one that is in memory alone."""
        if dataset.folder is None:
            raise UsageProblem(f"the {dataset.name} is in memory alone", hint="open it by its name")
        return cls(dataset.spec, str(dataset.folder), dataset.hash())


@lru_cache(maxsize=4)
def reopen(reference: Reference) -> VectorSet:
    """The data set, where it is kept if that can be seen from here; else by its name, in this user's cache.

    Raises UsageProblem when it is not the same.
    """
    kept = Path(reference.folder)
    found = open_dataset(reference.spec, cache=kept.parents[1] if kept.is_dir() else None)
    if found.hash() != reference.hash:
        raise UsageProblem(
            f"{reference.spec} is another data set here: its hash is {found.hash()}, not {reference.hash}",
            hint="use the same file, or the same versions of memassay and numpy, everywhere",
        )
    return found
