"""Handwritten digits of 8 × 8 pixels as vectors of 64 components: 1,797 of them, from scikit-learn."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import msgspec
import numpy as np

from ..harness.exits import UsageProblem
from ..spec.vectors import Metric
from . import held_out
from .extras import needed
from .held_out import Source
from .vectorset import Recipe


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be chosen: `digits?metric=euclidean`. queries: how many are held out of the rows."""

    metric: Metric = "cosine"
    queries: Annotated[int, msgspec.Meta(ge=1, le=179)] = 179
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0


def recipe(what: str, options: Options) -> Recipe:
    """Raises UsageProblem."""
    if what:
        raise UsageProblem(f"digits:{what} is no data set", hint="digits, or digits?metric=…")
    loaded: Any = needed("sklearn.datasets", "digits").load_digits()
    vectors = np.ascontiguousarray(loaded.data, np.float32)
    source = Source("digits", len(vectors), vectors.shape[1], lambda: iter([vectors]))
    key = hashlib.sha256(vectors.data).hexdigest()
    return held_out.recipe("digits", options.metric, key, source, options.queries, None, options.seed)
