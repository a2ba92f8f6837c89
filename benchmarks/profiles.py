"""Profiles: how much a benchmark measures."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from .artefact import Profile
from .freshness import ROWS
from .workloads import WORKLOADS

LADDER = (1, 2, 4, 8, 16, 32, 64)
PERCENTILES = (50.0, 95.0, 99.0)

QUICK = Profile(
    name="quick",
    data="mixture:10k×64",
    memory="agent:10k",
    workloads=("newest", "filtered", "vector", "vector-independent-10%", "save-1"),
    shares=(0.5,),
    concurrency=LADDER[:4],
    starts=1,
    rounds=3,
    cold=5,
    warmup_seconds=2.0,
    peak_seconds=0.4,
    closed_seconds=0.6,
    open_seconds=1.0,
    open_most_seconds=2.0,
    open_samples=200,
    percentiles=(50.0, 95.0),
    indicative=True,
)
"""A first idea of all engines within ten minutes: filtered and unfiltered search count as one workload."""

STANDARD = Profile(
    name="standard",
    data="mixture:100k×384",
    memory="agent:100k",
    workloads=(
        *("newest", "deep-page", "date-range", "filtered", "include", "semantic-thread", "semantic-resource"),
        *("vector", "vector-independent-10%", "vector-independent-1%", "vector-aligned-10%", "vector-against-1%"),
        *("save-1", "save-100", "upsert-1", "mixed"),
    ),
    shares=(0.25, 0.5, 0.75, 0.9),
    concurrency=LADDER[:6],
    starts=2,
    rounds=8,
    cold=10,
    warmup_seconds=30.0,
    peak_seconds=2.0,
    closed_seconds=3.0,
    open_seconds=4.0,
    open_most_seconds=30.0,
    open_samples=1_000,
    percentiles=PERCENTILES,
    freshness=ROWS,
)
"""Enough rounds to be compared (R16), and enough samples for a p99 (R15)."""

FULL = Profile(
    name="full",
    data="mixture:1M×768",
    memory="agent:100k",
    workloads=tuple(WORKLOADS),
    shares=(0.25, 0.5, 0.75, 0.9),
    concurrency=LADDER,
    starts=8,
    rounds=8,
    cold=10,
    warmup_seconds=300.0,
    peak_seconds=5.0,
    closed_seconds=10.0,
    open_seconds=30.0,
    open_most_seconds=120.0,
    open_samples=10_000,
    percentiles=(*PERCENTILES, 99.9),
    freshness=ROWS,
)
"""Everything, on engines started and filled anew for every round (R14)."""

HARNESS = msgspec.structs.replace(
    QUICK,
    name="harness",
    data="mixture:1k×64",
    memory="agent:1k",
    workloads=("newest", "vector", "save-1"),
    shares=(),
    rates=(2_000.0,),
    open_seconds=5.0,
    open_most_seconds=5.0,
    percentiles=PERCENTILES,
    indicative=False,
)
"""What the harness costs by itself: `memassay bench noop --profile harness`."""

PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in (QUICK, STANDARD, FULL, HARNESS)}
