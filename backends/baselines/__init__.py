"""The same requests hand-written on raw clients: what an adapter costs is measured against them.

A baseline reads what the adapter has stored, so that both ask the same engine about the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray


class Baseline(Protocol):
    """One vector index of a namespace, under cosine, that an adapter has filled: opened for queries alone.

    A module of this package is named as its backend, and its class `Baseline` is made of the URL of the engine, a
    namespace and the name of an index.
    """

    def query(
        self, vector: NDArray[np.float32], top_k: int, filter: Mapping[str, Any] | None = None, *, exact: bool = False
    ) -> Sequence[tuple[Any, ...]]:
        """The id, and more, of the nearest rows, closest first; `filter` is one key and the value that it has."""
        ...

    def close(self) -> None:
        """Let go of the engine."""
        ...


def open_baseline(backend: str, url: str, namespace: str, index: str) -> Baseline | None:
    """The baseline of a backend; None when nobody has written one."""
    module = f"{__name__}.{backend}"
    if not backend.isidentifier() or find_spec(module) is None:
        return None
    return cast(Baseline, import_module(module).Baseline(url, namespace, index))
