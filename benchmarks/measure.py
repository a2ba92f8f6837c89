"""One workload on one contender: cold, warming up, at its peak, in rounds of closed and open loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..harness.plain import bounded
from ..spec.errors import Unsupported
from . import load
from .artefact import Peak, Profile
from .contenders import Contender
from .drive import HERE, Drive, Elsewhere, Operations
from .load import Ran
from .samples import Phase, Record, Samples, gather
from .scene import Scene
from .warmup import warm_up
from .workloads import Call, Stream, Workload

GAIN = 1.05
"""More clients have to give as much more for still more to be tried."""

AT_FIRST = 500
"""Rows that are prepared to be written before it is known how fast that goes."""

RESERVE = 1.5
"""How many more operations are prepared than are expected."""

MOST = 20_000
"""Operations of a phase in closed loop, and at most handed out in a second: more tell nothing more."""

WINDOW = 0.3
"""Seconds of a window of the warm-up."""

ERROR_LENGTH = 160


class Lacking(Exception):
    """The contender says that it cannot do the workload."""


class Wrong(Exception):
    """The answers of a contender to which no clause can be put are not right; the message counts them."""


class Measured(NamedTuple):
    """A phase: its samples, what its failed calls raised, how long it took and the CPU this process took (ns)."""

    samples: Samples
    errors: Counter[str]
    elapsed: int
    cpu: int


class Course:
    """A workload on a contender. Phases are to be run in the order of the methods."""

    def __init__(
        self,
        contender: Contender,
        workload: Workload,
        scene: Scene,
        profile: Profile,
        seed: int,
        drive: Drive = HERE,
    ) -> None:
        self.contender = contender
        self.workload = workload
        self.peak: Peak | None = None
        self.discarded = 0
        self.stationary = True
        self._scene = scene
        self._profile = profile
        self._seed = seed
        self._drive = drive
        self._series = contender.series
        self._phases = 0
        self._rate = 0.0
        """Operations a second, as last seen in closed loop."""

    def warm_up(self, *, find_peak: bool) -> Iterator[Measured]:
        """The first operations, one after the other; then what is discarded. Raises Lacking, Wrong, Stuck."""
        cold = self._closed("cold", 1, seconds=load.PATIENCE, most=self._profile.cold, drive=HERE)
        yield self._measured(cold, "cold", 1)
        refused = [note.answer for note in cold[1].notes if note.failed]
        if len(refused) == len(cold[1].notes) and all(isinstance(error, Unsupported) for error in refused):
            raise Lacking(str(refused[0]))
        wrong = [judged for judged in self._records(cold[0].calls, cold[1]) if judged.outcome in ("short", "wrong")]
        if wrong and self.contender.kind == "baseline":
            raise Wrong(f"{len(wrong)} of the first {len(cold[1].notes)} wrong")
        clients = self.contender.concurrency(self._profile.concurrency[0])
        windows: list[Measured] = []

        def window() -> Ran:
            ran = self._closed("warmup", clients, seconds=WINDOW, drive=HERE)
            windows.append(self._measured(ran, "warmup", clients))
            return ran[1]

        warmed = warm_up(window, self._profile.warmup_seconds)
        self.discarded += len(warmed.notes)
        self.stationary = warmed.stationary
        yield from windows
        if find_peak:
            yield from self._find_peak()

    def _find_peak(self) -> Iterator[Measured]:
        """Ever more clients in closed loop, until more do not give more. What is seen here is discarded, too."""
        tried: dict[int, float] = {}
        for clients in self._profile.concurrency:
            clients = self.contender.concurrency(clients)
            if clients in tried:
                break
            ran = self._closed("warmup", clients, seconds=self._profile.peak_seconds)
            self.discarded += len(ran[1].notes)
            yield self._measured(ran, "warmup", clients)
            best = max(tried.values(), default=0.0)
            tried[clients] = ran[1].throughput
            if tried[clients] < GAIN * best:
                break
        most = max(tried, key=lambda clients: tried[clients])
        self.peak = Peak(
            contender=self.contender.name,
            workload=self.workload.name,
            rate=tried[most],
            concurrency=most,
            tried={str(clients): rate for clients, rate in tried.items()},
        )

    def round(self, number: int) -> Iterator[Measured]:
        """A round: closed loop at the peak's concurrency, then the open loop at each rate. Raises load.Stuck."""
        assert self.peak is not None
        clients = self.peak.concurrency
        ran = self._closed("closed", clients, seconds=self._profile.closed_seconds)
        yield self._measured(ran, "closed", clients, round=number)
        shares = [(share, min(share * self.peak.rate, float(MOST))) for share in self._profile.shares]
        for share, rate in (*shares, *((0.0, rate) for rate in self._profile.rates)):
            if rate > 0:
                yield self._open(clients, rate, share, number)

    def _closed(
        self, phase: Phase, clients: int, *, seconds: float, most: int | None = None, drive: Drive | None = None
    ) -> tuple[Stream, Ran]:
        most = MOST if most is None else most
        expected = min(most, max(AT_FIRST // self.workload.rows, int(RESERVE * self._rate * seconds)))
        made = self._phase(max(1, expected))
        ran = (drive or self._drive).closed(made, clients, seconds=seconds, most=most)
        if phase != "cold":
            self._rate = max(self._rate, ran.throughput)
        return made.stream, ran

    def _open(self, clients: int, rate: float, share: float, number: int) -> Measured:
        profile = self._profile
        seconds = min(max(profile.open_seconds, profile.open_samples / rate), profile.open_most_seconds)
        due = load.schedule(rate, seconds, profile.arrivals, self._seed + self._phases)
        made = self._phase(max(1, len(due)))
        ran = self._drive.open_loop(made, clients, due)
        return self._measured((made.stream, ran), "open", clients, round=number, rate=rate, share=share)

    def _phase(self, many: int) -> Operations:
        """The operations of the next phase; what they need has been done."""
        self._phases += 1
        seed, first = self._seed + self._phases, self._series.at
        stream = self.workload.stream(self._scene, self._series, many, seed)
        if stream.before:
            prepare = self.contender.clients(1)[0].bind(stream.before)
            for number in range(len(stream.before)):
                prepare(number)
        return Operations(self.contender, self.workload, stream, many, seed, first)

    def _measured(
        self,
        ran: tuple[Stream, Ran],
        phase: Phase,
        clients: int,
        *,
        round: int = 0,
        rate: float = 0.0,
        share: float = 0.0,
    ) -> Measured:
        stream, made = ran
        errors = Counter(self._told(note.answer) for note in made.notes if note.failed)
        samples = gather(
            self._records(stream.calls, made),
            contender=self.contender.name,
            workload=self.workload.name,
            phase=phase,
            concurrency=clients,
            round=round,
            rate=rate,
            share=share,
        )
        return Measured(samples, errors, made.elapsed, made.cpu)

    def _records(self, calls: Sequence[Call], ran: Ran) -> Iterator[Record]:
        for note in ran.notes:
            expected = calls[note.number].expected
            times = note.number, note.intended, note.dispatched, note.started, note.ended
            if not note.sent:
                yield Record(*times, "unsent")
            elif note.failed:
                yield Record(*times, "failed", due=expected.due)
            elif self.contender.judged:
                yield Record(*times, *expected.judge(note.answer))
            else:
                yield Record(*times, "ok")

    def _told(self, error: BaseException) -> str:
        said = str(error) if isinstance(error, Elsewhere) else load.told(error)
        return bounded(self.contender.engine.redactor.text(said), ERROR_LENGTH)
