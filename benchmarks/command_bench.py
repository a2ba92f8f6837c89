"""`memassay bench`: latency under load, throughput and recall of stores, side by side."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from ..backends.provision import settings
from ..backends.provision.settings import HEAP
from ..harness import output
from ..harness.arguments import (
    Backends,
    Heap,
    Homes,
    Images,
    Provision,
    Urls,
    bounded,
    engines,
    load_backend,
    own_urls,
    reachable,
    user_errors,
)
from ..harness.engine import AUTO
from ..harness.exits import Exit, UsageProblem
from ..harness.output import own_stdout
from ..harness.progress import Display
from ..harness.runner import Target
from ..spec.errors import StoreError
from ..spec.index_requests import parse_config
from ..spec.reference_index import MODEL_CAPABILITIES
from ..spec.types import IndexConfig
from . import bundle, gate, manifest, report
from .artefact import Manifest, Peak, Profile
from .bench import Bench, Plan
from .cluster import connected
from .commands import wide
from .drive import HERE, Recipe, Spread
from .entrants import FLOORS, entrants
from .machine import fingerprint
from .profiles import PROFILES
from .state import State, resumed
from .workloads import WORKLOADS

HELP = """Measure stores under load: peak, latency at rates below it, and recall in the same run.

\b
Examples:
  memassay bench libsql postgres
  memassay bench libsql postgres --profile standard --json run.json
  memassay bench postgres --index hnsw,m=8,ef_construction=32 --effort 64 --workload vector
  memassay bench libsql postgres --json run.json --resume

\b
A store that does nothing and the reference model run beside every other, as the floor. A store has no number for a
workload whose clauses it does not pass.
"""

EXIT_CODES = """\b
Exit codes:
  0  everything was measured
  2  the command line is wrong, or a file cannot be read or written
  3  an engine could not be started, died, or does not hold what it was given
  130  interrupted; what is written is partial, and --resume goes on"""

WIDTH = 160
"""Of the tables, where no terminal says how wide it is."""

SMALL = 2
"""A dimension that every index may have."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="bench", help=HELP, epilog=EXIT_CODES)(bench)


def bench(
    backends: Backends,
    profile: Annotated[str, typer.Option(metavar="|".join(PROFILES), help="How much is measured.")] = "quick",
    workload: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this; may be repeated. `list` names them.")
    ] = None,
    data: Annotated[str | None, typer.Option(metavar="SPEC", help="Vectors, such as mixture:10k×64.")] = None,
    memory: Annotated[str | None, typer.Option(metavar="SPEC", help="Messages, such as agent:10k.")] = None,
    top_k: Annotated[int, typer.Option("-k", min=1, help="Rows asked of a search.")] = 10,
    index: Annotated[
        str | None, typer.Option(metavar="TYPE[,NAME=N]…", help="How indices are built; each engine's default else.")
    ] = None,
    effort: Annotated[
        int | None,
        typer.Option(
            min=1, max=1_000, help="How broadly approximate indices are searched: ef_search, probes, num_candidates."
        ),
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Instead of the profile's.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of questions, order and arrivals.")] = 0,
    result: Annotated[
        list[Path] | None,
        typer.Option("--results", metavar="FILE", help="What `verify --json` wrote: verdicts for the gate."),
    ] = None,
    peaks_of: Annotated[
        Path | None,
        typer.Option("--peaks-of", metavar="FILE", help="Ask at the rates of this earlier run, to compare with it."),
    ] = None,
    rate: Annotated[
        list[float] | None,
        typer.Option(min=0.1, metavar="N", help="Also ask at N operations a second; may be repeated."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the interrupted run in --json.")] = False,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="tcp://HOST:PORT", help="A Dask scheduler, on whose workers exact truth is found."),
    ] = None,
    load_workers: Annotated[
        int, typer.Option(min=0, metavar="N", help="Make the load from N workers of --cluster, not from here.")
    ] = 0,
    provision: Provision = AUTO,
    url: Urls = None,
    image: Images = None,
    home: Homes = None,
    heap: Heap = HEAP,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result here, and the samples beside it.")
    ] = None,
) -> None:
    """See the help above."""
    with user_errors(), engines(url, image, home, heap) as chosen:
        bounded(seed)
        profile_ = profile_of(profile, workload or (), rate or (), data=data, memory=memory, rounds=rounds)
        profile_ = msgspec.structs.replace(profile_, effort=effort)
        if load_workers:
            if cluster is None:
                raise UsageProblem("--load-workers needs --cluster", hint="give the scheduler's address")
            profile_ = msgspec.structs.replace(profile_, load_workers=load_workers)
        config = index_config(index)
        check_files(json_file, resume=resume)
        given = gate.read(result or ())
        before = bundle.read(json_file) if resume and json_file is not None and json_file.exists() else None
        taking_part = entrants(backends, load_backend)
        targets = [Target(one.name, one.backend) for one in taking_part]
        urls = own_urls(chosen.options, targets)
        reachable([target for target in targets if target.name not in FLOORS], provision, urls)
        steady = msgspec.structs.replace(chosen, steady=True)
        with (
            own_stdout(),
            Display(Console(stderr=True)) as display,
            settings.use(steady),
            nullcontext() if cluster is None else connected(cluster) as workers,
        ):
            recipe = recipe_of(profile_, top_k, seed)
            scene = recipe.make(workers, display.say)
            run = manifest.Run(
                profile=profile_,
                scene=scene,
                seed=seed,
                backends=backends,
                machine=msgspec.to_builtins(fingerprint()),
                started=datetime.now(UTC).isoformat(timespec="seconds"),
            )
            if before is not None:
                manifest.check(run, before.manifest)
            known = resumed(before) if before is not None else State()
            if peaks_of is not None and before is None:
                known.peaks = peaks_in(peaks_of)
            plan = Plan(
                entrants=taking_part,
                profile=profile_,
                scene=scene,
                seed=seed,
                index=config,
                method=provision,
                urls=urls,
                results=given,
                drive=HERE
                if workers is None or not load_workers
                else Spread(workers, load_workers, recipe, known.note),
            )
            spent = 0.0 if before is None else before.manifest.seconds
            done = measure(plan, run, known, display, json_file, spent=spent)
        report.show(done, wide(WIDTH))
        raise typer.Exit(code_of(done))


def measure(
    plan: Plan, run: manifest.Run, known: State, display: Display, json_file: Path | None, *, spent: float
) -> Manifest:
    """Measure, and write what is known after every round; an interruption ends it. `spent`: seconds before this run."""
    began = time.monotonic()

    def keep(*, partial: bool) -> Manifest:
        built = manifest.build(run, known, seconds=spent + time.monotonic() - began, partial=partial)
        return built if json_file is None else bundle.write(json_file, built, known.blocks)

    try:
        Bench(plan, known, display, lambda: keep(partial=True)).run()
    except KeyboardInterrupt:
        display.close()
        display.say("interrupted: what was measured so far is kept")
        return keep(partial=True)
    return keep(partial=False)


def peaks_in(path: Path) -> dict[tuple[str, str], Peak]:
    """Of an earlier run. Raises UsageProblem."""
    return {(peak.contender, peak.workload): peak for peak in bundle.read_manifest(path).peaks}


def recipe_of(profile: Profile, k: int, seed: int) -> Recipe:
    """What is stored and asked about."""
    meaning = any("semantic_recall" in WORKLOADS[name].needs for name in profile.workloads)
    return Recipe(data=profile.data, memory=profile.memory, meaning=meaning, k=k, seed=seed)


def code_of(manifest: Manifest) -> Exit:
    """What the process says to the shell."""
    if manifest.partial:
        return Exit.INTERRUPTED
    return Exit.ENGINE if any(engine.error for engine in manifest.engines) else Exit.CONFORMS


def profile_of(
    name: str,
    workloads: Sequence[str],
    rates: Sequence[float],
    *,
    data: str | None,
    memory: str | None,
    rounds: int | None,
) -> Profile:
    """A profile, and what is to be different from it. Raises UsageProblem."""
    if name not in PROFILES:
        raise UsageProblem(f"there is no profile {name!r}", hint="use " + ", ".join(PROFILES))
    for workload in workloads:
        if workload not in WORKLOADS:
            raise UsageProblem(f"there is no workload {workload!r}", hint="use " + ", ".join(WORKLOADS))
    profile = PROFILES[name]
    return msgspec.structs.replace(
        profile,
        workloads=tuple(dict.fromkeys(workloads)) or profile.workloads,
        data=data or profile.data,
        memory=memory or profile.memory,
        rates=(*profile.rates, *rates),
        rounds=rounds or profile.rounds,
        starts=min(profile.starts, rounds or profile.rounds),
    )


def index_config(text: str | None) -> IndexConfig | None:
    """How indices are to be built: `hnsw,m=8`. Raises UsageProblem."""
    if text is None:
        return None
    kind, *options = text.split(",")
    try:
        pairs = dict(option.split("=") for option in options)
        config = msgspec.convert({"type": kind, **pairs}, IndexConfig, strict=False)
        parse_config(config, SMALL, MODEL_CAPABILITIES)
    except (ValueError, msgspec.ValidationError, StoreError) as error:
        raise UsageProblem(f"--index {text!r}: {error}", hint="such as flat, or hnsw,m=8,ef_construction=32") from None
    return config


def check_files(json_file: Path | None, *, resume: bool) -> None:
    """Raises UsageProblem where what is asked for could not be written or gone on with."""
    if json_file is None:
        if resume:
            raise UsageProblem("--resume needs --json", hint="name the file of the run that was interrupted")
        return
    output.check({"--json": json_file})
    bundle.check_installed()
    output.check({"the samples of --json": bundle.samples_path(json_file)})
