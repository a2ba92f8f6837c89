"""Case files on disk: kept after a run, read back, replayed and traced."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from ..spec.compare import same
from ..spec.divergence import Divergence
from ..spec.forms import FormError
from ..spec.judge import judge, right
from ..spec.program import Program
from . import artefact, documents, histories, inflight, output
from .artefact import RERUNS, ROUNDS, BackendResult, Case, ClauseResult, Finding, Result, Step
from .engine import Engine, Namespaces
from .execution import TIME_LIMIT, Execution, execute
from .exits import UsageProblem
from .plain import plain
from .programs import check_forms

DEFAULT_FOLDER = Path(".memassay") / "cases"

Status = Literal["FIXED", "STILL FAILS"]

HINT = "see `memassay schema case`"


class Replay(msgspec.Struct, frozen=True):
    """What a case does on a backend now.

    shown: in how many of its runs the program deviates; divergence: how, the case's own way if it still does.
    runs: how many there were. recorded: what is wrong with the transcript that the case holds, judged anew.
    steps: the model's outcomes beside the store's.
    """

    status: Status
    shown: int
    divergence: Divergence | None
    steps: tuple[Step, ...]
    runs: int = RERUNS
    recorded: Divergence | None = None


def keep(result: Result, folder: Path) -> Result:
    """Write every finding's case under the folder; the same result with the files' names. Raises UsageProblem."""

    def kept(backend: str, finding: Finding) -> Finding:
        file = Path(slug(backend)) / f"{slug(str(finding.case.signature))}.json"
        output.write(folder / file, artefact.encode(finding.case))
        return msgspec.structs.replace(finding, file=file.as_posix())

    def clause(backend: str, result: ClauseResult) -> ClauseResult:
        return msgspec.structs.replace(result, findings=[kept(backend, finding) for finding in result.findings])

    def with_files(backend: BackendResult) -> BackendResult:
        return msgspec.structs.replace(
            backend, clauses={name: clause(backend.name, found) for name, found in backend.clauses.items()}
        )

    return msgspec.structs.replace(result, backends=[with_files(backend) for backend in result.backends])


def slug(text: str) -> str:
    """The text as a name of a file or folder."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.")


def files(paths: Iterable[Path]) -> list[Path]:
    """The case files named, those under folders included, each once. Raises UsageProblem when there are none."""
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise UsageProblem(f"{path} does not exist", hint="give a case file, or a folder of them")
        below = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        if not below:
            raise UsageProblem(f"{path} holds no case files", hint="failing runs write them under .memassay/cases")
        found += below
    return list(dict.fromkeys(found))


def programs(folders: Iterable[Path | None]) -> list[Program]:
    """The programs of the cases in these folders, as far as there are folders with cases. Raises UsageProblem."""
    paths = [path for folder in folders if folder is not None for path in sorted(folder.rglob("*.json"))]
    return [read(path).program for path in dict.fromkeys(paths)]


def read(path: Path) -> Case:
    """A case from a file. Raises UsageProblem."""
    case = documents.decode(path, documents.load(path, hint=HINT), Case, what="case file", hint=HINT)
    _check(path, case.program, case)
    return case


def read_program(path: Path) -> Program:
    """The program of a case file, or of a file that is a bare program. Raises UsageProblem."""
    data = documents.load(path, hint=HINT)
    keys = documents.decode(path, data, dict[str, msgspec.Raw], what="case file", hint=HINT, versioned=False)
    if "operations" not in keys:
        return read(path).program
    program = documents.decode(path, data, Program, what="program", hint=HINT, versioned=False)
    _check(path, program)
    return program


def _check(path: Path, program: Program, case: Case | None = None) -> None:
    try:
        check_forms(program)
        if case is not None and case.transcript is not None:
            histories.decode(program, case.transcript)
    except msgspec.ValidationError as error:
        raise UsageProblem(f"{path} holds a transcript that cannot be read: {error}", hint=HINT) from None
    except FormError as error:
        raise UsageProblem(f"{path} holds a form that cannot be read: {error}", hint="see spec/forms.py") from None
    except RecursionError:
        raise UsageProblem(f"{path} holds a form that is nested too deeply", hint="see spec/forms.py") from None


def replay(case: Case, engine: Engine, namespaces: Namespaces, limit: float = TIME_LIMIT) -> Replay:
    """Run a case 3 times in fresh namespaces. It is fixed when the program never deviates. Raises EngineFailed.

    One with a race or a kill is run until it deviates, at most ROUNDS times: that it never does shows less.
    """
    executions: list[Execution] = []
    for _ in range(ROUNDS if case.program.undetermined else RERUNS):
        with namespaces.fresh() as namespace:
            executions.append(execute(engine, namespace, case.program, limit))
        if case.program.undetermined and executions[-1].divergences:
            break
    for execution in executions:
        inflight.check(engine, execution, case.program.hash)
    failing = [execution for execution in executions if execution.divergences]
    recorded, runs = rejudged(case, engine), len(executions)
    if not failing:
        return Replay("FIXED", 0, None, steps(case.program, executions[0], engine), runs, recorded)
    shown = steps(case.program, failing[0], engine)
    return Replay("STILL FAILS", len(failing), _like(case, failing), shown, runs, recorded)


def rejudged(case: Case, engine: Engine) -> Divergence | None:
    """What is wrong with the transcript that a case holds, by what the engine declares; None without one."""
    if case.transcript is None:
        return None
    kept = histories.decode(case.program, case.transcript)
    program = msgspec.structs.replace(case.program, operations=case.program.operations[: len(kept)])
    found = judge(program, kept, engine.capabilities)
    return found[0] if found else None


def _like(case: Case, failing: Iterable[Execution]) -> Divergence:
    """The case's own divergence if it shows, else the first."""
    found = [divergence for execution in failing for divergence in execution.divergences]
    return next((divergence for divergence in found if divergence.signature == case.signature), found[0])


def in_words(case: Case, replayed: Replay) -> str:
    """How it still fails; of what need not show up every time, also that it does not."""
    if replayed.divergence is None:
        return f"not in {replayed.runs} runs, {_recorded(replayed)}" if case.transcript is not None else ""
    signature = replayed.divergence.signature
    now = str(signature) if signature == case.signature else f"now {signature}, was {case.signature}"
    return f"{now}, {replayed.shown} of {replayed.runs} runs"


def _recorded(replayed: Replay) -> str:
    if replayed.recorded is None:
        return "and what was recorded is now judged to be right"
    return f"though what was recorded is {replayed.recorded.signature}"


def steps(program: Program, execution: Execution, engine: Engine) -> tuple[Step, ...]:
    """The store's outcomes beside the model's, as plain values."""
    expected = right(execution.program, execution.transcript, engine.capabilities)
    blamed = {divergence.index for divergence in execution.divergences}
    return tuple(
        Step(
            operation=str(operation),
            expected=plain(wanted),
            got=engine.redactor.value(plain(got)),
            alike=same(wanted, got) and not (program.undetermined and index in blamed),
        )
        for index, (operation, wanted, got) in enumerate(
            zip(program.operations, expected, execution.transcript, strict=False)
        )
    )
