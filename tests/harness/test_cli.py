"""The command line as a user meets it, mostly in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from harness_support import Cli, Done, process_environment
from memassay.harness.cli import app
from memassay.spec.clauses import select
from typer.testing import CliRunner

Outcome = Any
"""What typer's CliRunner returns."""

Failing = tuple[Done, Path]
Interrupted = tuple[int, str, str, Path]

FILES = ("--json", "r.json", "--junit", "r.xml")
FEW = ("--level", "smoke", "--examples", "60")


# Help


@pytest.mark.parametrize(
    "command", [[], ["verify"], ["clauses"], ["replay"], ["run"], ["doctor"], ["schema"], ["new-adapter"]]
)
def test_help_is_given(memassay: Cli, command: str) -> None:
    assert memassay(*command, "--help").returncode == 0


@pytest.mark.parametrize("command", ["verify", "clauses", "replay", "run", "doctor", "schema", "new-adapter"])
def test_help_has_examples(memassay: Cli, command: str) -> None:
    assert f"    memassay {command}" in memassay(command, "--help").stdout


def test_a_scenario_is_chosen(memassay: Cli) -> None:
    done = memassay("verify", "reference", "--scenario", "dates", "--clause", "TIM", "--examples", "20")
    assert ("scenarios dates: 20 programs" in done.stdout, done.returncode) == (True, 0), done.stderr


def test_the_version_is_shown(memassay: Cli) -> None:
    assert memassay("--version").stdout.startswith("memassay 0.")


# Mistakes: one line with a hint, exit 2, no traceback


MISTAKES = {
    "an unknown backend": (["verify", "nothing"], "registered: "),
    "a module that is not there": (["verify", "nowhere:Backend"], "nowhere"),
    "a module without the factory": (["verify", "memory_fakes:Nobody"], "Nobody"),
    "a factory that fails": (["verify", "memory_fakes:broken"], "this factory does not work"),
    "what is no backend": (["verify", "memory_fakes:Incomplete"], "it lacks"),
    "an unknown scenario": (["verify", "reference", "--scenario", "chaos"], "injection"),
    "a scenario beyond the level": (
        ["verify", "reference", "--level", "smoke", "--scenario", "injection"],
        "level smoke has no scenario",
    ),
    "a store as an index": (["verify", "reference+memory_fakes:WithoutIndices"], "has no vector indices"),
    "an image for what runs in none": (["verify", "libsql", "--image", "libsql=x"], "leave out its --image"),
    "an unknown clause": (["verify", "reference", "--clause", "ORD-99"], "memassay clauses"),
    "a clause beyond the level": (["verify", "reference", "--level", "smoke", "--clause", "ORD-3a"], "raise --level"),
    "an unknown level": (["verify", "reference", "--level", "all"], "smoke, core, extended"),
    "no programs": (["verify", "reference", "--examples", "0"], "at least 1"),
    "a budget that is none": (["verify", "reference", "--budget", "soon"], "2m"),
    "an empty budget": (["verify", "reference", "--budget", "0s"], "2m"),
    "examples and a budget": (["verify", "reference", "--examples", "9", "--budget", "9s"], "one of them"),
    "an unknown way to provision": (["verify", "memory_fakes:Provisioned", "--provision", "magic"], "auto, docker"),
    "a way for what needs none": (["verify", "reference", "--provision", "docker"], "needs no engine"),
    "a url that names no backend": (["verify", "reference", "--url", "postgresql://x"], "BACKEND=URL"),
    "a file that cannot be written": (["verify", "reference", "--json", "no/such/folder.json"], "cannot be written"),
    "a folder that is a file": (["verify", "reference", "--cases", "taken.py/cases"], "choose another folder"),
    "a seed that no file can hold": (["verify", "reference", "--seed", str(2**53)], "at most"),
    "fewer than none made small": (["verify", "reference", "--shrink", "-1"], "--shrink is -1"),
    "too many programs": (["verify", "reference", "--examples", "100001"], "at most 100000"),
    "too long a budget": (["verify", "reference", "--budget", "25h"], "at most 24h"),
    "a url for what is not verified": (["verify", "reference", "--url", "libsql=x://y"], "it uses reference"),
    "a url for what is not run": (["run", "good.json", "--on", "reference", "--url", "libsql=b"], "it uses reference"),
    "a url for what there is not": (["verify", "reference", "--url", "typo=x://y"], "registered: "),
    "a url of another kind of server": (["verify", "postgres", "--url", "postgres=mysql://h/d"], "postgresql://"),
    "two urls for one": (["verify", "reference", "--url", "reference=x", "--url", "reference=y"], "give one"),
    "one file for two": (["verify", "reference", "--json", "x", "--junit", "./x"], "give each its own"),
    "standard output for a file": (["verify", "reference", "--json", "-"], "name a file"),
    "no file": (["verify", "reference", "--junit", ""], "is a directory"),
    "a directory for a file": (["verify", "reference", "--json", "empty"], "is a directory"),
    "a spelling that is no factory": (["verify", "a:b:c"], "such as acme:AcmeBackend"),
    "a newer case": (["replay", "newer.json"], "which a newer memassay wrote"),
    "a newer case to run": (["run", "newer.json", "--on", "reference"], "which a newer memassay wrote"),
    "an adapter that hides a module": (["new-adapter", "json"], "json_memory"),
    "an unknown clause to list": (["clauses", "XYZ-1"], "memassay clauses"),
    "a case that is not there": (["replay", "nothing.json"], "does not exist"),
    "a case that is no case": (["replay", "bad.json"], "no case file"),
    "a case that is no text": (["replay", "binary.json"], "no case file"),
    "a case with an unreadable form": (["run", "form.json", "--on", "reference"], "$at"),
    "an empty folder of cases": (["replay", "empty"], "holds no case files"),
    "a program for an unknown backend": (["run", "good.json", "--on", "nothing"], "registered: "),
    "an unknown artefact": (["schema", "thing"], "use case, result, mutants, difference"),
    "no artefact": (["schema"], "or -o DIR for all"),
    "a module name that is none": (["new-adapter", "my-store"], "cannot be a module's name"),
    "a folder that is not there": (["new-adapter", "store", "-o", "nowhere"], "no directory"),
    "a file that exists": (["new-adapter", "taken"], "exists"),
}


@pytest.fixture
def mistaken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> Outcome:
    """A mistake, made in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("bad.json").write_text('{"version": 1}')
    Path("binary.json").write_bytes(b"\xff\xfe\x00")
    Path("form.json").write_text('{"operations": [{"op": "delete_messages", "ids": {"$at": 1}}]}')
    Path("good.json").write_text('{"operations": []}')
    Path("taken.py").write_text("")
    Path("newer.json").write_text('{"version": 2, "programs": []}')
    Path("empty").mkdir()
    return CliRunner().invoke(app, MISTAKES[name][0])


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_exits_2(mistaken: Outcome) -> None:
    assert mistaken.exit_code == 2


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_in_one_line(mistaken: Outcome) -> None:
    assert len(mistaken.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_comes_with_a_hint(mistaken: Outcome, name: str) -> None:
    assert MISTAKES[name][1] in mistaken.stderr


# Verify


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Failing:
    """One failing run with all its files."""
    folder = tmp_path_factory.mktemp("failing")
    done = subprocess.run(
        [sys.executable, "-m", "memassay", "verify", "memory_fakes:Miscounting", *FEW, *FILES],
        cwd=folder,
        env=process_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done, folder


def test_failing_clauses_exit_1(failing: Failing) -> None:
    assert failing[0].returncode == 1


def test_a_failure_shows_its_clause_and_program(failing: Failing) -> None:
    assert "> recall(" in failing[0].stdout


def test_a_failure_shows_the_replay_command(failing: Failing) -> None:
    done, folder = failing
    command = next(line for line in done.stdout.splitlines() if "replay: memassay replay " in line).split()
    assert (folder / command[-1]).is_file()


def test_the_last_line_has_denominators(failing: Failing) -> None:
    assert f"of {len(select('smoke'))} clauses pass" in failing[0].stdout.splitlines()[-1]


def test_the_result_is_written(failing: Failing) -> None:
    assert json.loads((failing[1] / "r.json").read_bytes())["corpus"]["programs"] == 60


def test_junit_is_written(failing: Failing) -> None:
    assert ElementTree.parse(failing[1] / "r.xml").getroot().tag == "testsuites"


def test_written_cases_conform_to_the_printed_schema(failing: Failing, memassay: Cli) -> None:
    schema = json.loads(memassay("schema", "case").stdout)
    (case, *_) = sorted((failing[1] / ".memassay" / "cases").rglob("*.json"))
    jsonschema.validate(json.loads(case.read_bytes()), schema)


def test_a_run_leaves_nothing_but_its_files(failing: Failing) -> None:
    assert sorted(path.name for path in failing[1].iterdir()) == [".memassay", "r.json", "r.xml"]


def test_a_conforming_store_exits_0(memassay: Cli) -> None:
    assert memassay("verify", "reference", "--level", "smoke").returncode == 0


def test_vacuous_clauses_exit_6(memassay: Cli) -> None:
    assert memassay("verify", "reference", "--level", "smoke", "--examples", "3").returncode == 6


def test_an_engine_that_does_not_start_exits_3(memassay: Cli) -> None:
    done = memassay("verify", "memory_fakes:Unstartable", *FEW)
    assert (done.returncode, "port 5432 is taken" in done.stdout) == (3, True)


def test_an_engine_that_dies_exits_3(memassay: Cli) -> None:
    assert memassay("verify", "memory_fakes:Dying", *FEW).returncode == 3


def test_a_budget_becomes_a_number_of_programs(memassay: Cli) -> None:
    done = memassay("verify", "reference", "--level", "smoke", "--clause", "ORD-3", "--budget", "1s")
    assert "a budget of 1s allows" in done.stdout


def test_a_module_of_the_current_directory_is_found(memassay: Cli, tmp_path: Path) -> None:
    (tmp_path / "here.py").write_text("from memory_fakes import Correct\n")
    assert memassay("verify", "here:Correct", "--clause", "ORD-3", *FEW).returncode in (0, 6)


def test_no_password_is_shown(memassay: Cli) -> None:
    done = memassay("verify", "memory_fakes:Confiding", *FEW, MEMASSAY_CONFIDING_URL="x://me:hunter2-hunter2@y")
    assert "hunter2" not in done.stdout + done.stderr


def test_a_new_adapter_conforms(memassay: Cli) -> None:
    memassay("new-adapter", "acme")
    done = memassay("verify", "acme:AcmeBackend", "--level", "smoke")
    assert done.returncode == 0


def test_what_a_store_prints_goes_to_standard_error(memassay: Cli) -> None:
    done = memassay("verify", "memory_fakes:Printing", "--clause", "ORD-3", *FEW)
    heard = {line for line in done.stderr.splitlines() if line.startswith("noise")}
    assert ("noise" in done.stdout, len(heard)) == (False, 5)


def test_what_a_store_says_at_length_is_bounded_in_every_file(memassay: Cli, tmp_path: Path) -> None:
    memassay("verify", "memory_fakes:Wordy", *FEW, *FILES)
    files = [path for path in tmp_path.rglob("*") if path.suffix in (".json", ".xml")]
    assert (len(files) > 2, max(path.stat().st_size for path in files) < 200_000) == (True, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_costs_the_file_and_not_the_report(memassay: Cli) -> None:
    done = memassay("verify", "reference", "--level", "smoke", "--examples", "3", "--json", "/dev/full")
    told = "memassay: /dev/full cannot be written: No space left on device (choose another place)\n"
    assert (done.returncode, done.stderr) == (2, told)
    assert "clauses pass" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["clauses"], ["schema", "case"], ["verify", "reference", *FEW]])
def test_a_full_standard_output_is_told(tmp_path: Path, arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "memassay", *arguments],
            cwd=tmp_path,
            env=process_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    told = "memassay: standard output cannot be written to: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_the_verdicts_of_other_backends_are_kept(memassay: Cli, tmp_path: Path) -> None:
    done = memassay("verify", "memory_fakes:Unstartable", "memory_fakes:Miscounting", *FEW, "--json", "r.json")
    backends = json.loads((tmp_path / "r.json").read_bytes())["backends"]
    assert (done.returncode, [backend["programs"] for backend in backends]) == (3, [0, 60])


def test_a_budget_is_not_spent_on_an_engine_that_does_not_start(memassay: Cli) -> None:
    done = memassay("verify", "memory_fakes:Unstartable", "reference", "--clause", "ORD-3", "--budget", "1s")
    last = done.stdout.splitlines()[-1]
    assert (done.returncode, last.startswith("reference: "), "(0 programs" in last) == (3, True, False)


# Ctrl-C


def test_an_interrupt_before_the_programs_keeps_the_old_result(memassay: Cli, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("good")
    (tmp_path / "interrupting.py").write_text("raise KeyboardInterrupt\n")
    done = memassay("verify", "interrupting:Backend", "--json", "r.json", "--junit", "r.xml")
    left = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert (done.returncode, (tmp_path / "r.json").read_text(), left) == (130, "good", {"r.json", "interrupting.py"})


@pytest.fixture(scope="module", params=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def interrupted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Interrupted:
    """A run that is interrupted while a program waits for its store."""
    folder = tmp_path_factory.mktemp("interrupted")
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "memassay", "verify", "memory_fakes:Waiting", *FEW, "--json", "r.json"],
        cwd=folder,
        env=process_environment(DROPPED=str(folder / "dropped")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None  # where stores print
    for line in process.stderr:
        if line == "waiting\n":
            break
    process.send_signal(request.param)
    output, errors = process.communicate(timeout=30)
    return process.returncode, output, errors, folder


def test_an_interrupt_exits_130(interrupted: Interrupted) -> None:
    assert interrupted[0] == 130


def test_an_interrupt_leaves_a_result_that_says_so(interrupted: Interrupted) -> None:
    assert json.loads((interrupted[3] / "r.json").read_bytes())["interrupted"]


def test_an_interrupt_leaves_no_namespace(interrupted: Interrupted) -> None:
    assert (interrupted[3] / "dropped").read_text().startswith("ma_")


def test_an_interrupt_shows_what_there_is(interrupted: Interrupted) -> None:
    assert "these results are partial" in interrupted[1]


def test_an_interrupt_shows_no_traceback(interrupted: Interrupted) -> None:
    assert "Traceback" not in interrupted[1] + interrupted[2]


def test_an_interrupt_while_the_program_loads_is_told_in_one_line(memassay: Cli, tmp_path: Path) -> None:
    (tmp_path / "hypothesis.py").write_text("raise KeyboardInterrupt\n")  # found before the one that is installed
    done = memassay("clauses")
    assert (done.returncode, done.stderr) == (130, "memassay: interrupted\n")


# Streams


def shell(command: str, folder: Path, **environment: str) -> Done:
    """Run a command in a shell; `$M` is the command line."""
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=process_environment(M=f"{sys.executable} -m memassay", **environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_changes_no_exit_code(tmp_path: Path, closed: str) -> None:
    codes = [shell(f"$M clauses {closed}", tmp_path).returncode, shell(f"$M clauses x {closed}", tmp_path).returncode]
    assert codes == [0, 2]


def test_a_directory_that_is_gone_is_told(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = shell("cd gone && rmdir ../gone && $M clauses", tmp_path)
    assert (done.returncode, done.stderr) == (2, "memassay: the current directory is gone (change to another one)\n")


def test_what_the_encoding_cannot_hold_is_escaped(tmp_path: Path) -> None:
    done = shell(
        "$M verify memory_fakes:Foreign --level smoke --examples 1", tmp_path, PYTHONIOENCODING="ascii", PYTHONUTF8="0"
    )
    assert (done.returncode, "Fehler \\xfc\\u2026" in done.stdout) == (3, True)


# Pipes


@pytest.mark.parametrize("arguments", [["clauses"], ["schema", "case"], ["doctor"], ["verify", "reference", *FEW]])
def test_a_broken_pipe_is_silent(tmp_path: Path, arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "memassay", *arguments],
        cwd=tmp_path,
        env=process_environment(),
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert done.stderr == ""


# Replay and run


def test_a_case_replayed_where_it_fails_still_fails(failing: Failing, memassay: Cli) -> None:
    done = memassay("replay", failing[1] / ".memassay" / "cases")
    assert (done.returncode, "STILL FAILS" in done.stdout) == (1, True)


def test_a_replay_shows_model_and_store_side_by_side(failing: Failing, memassay: Cli) -> None:
    done = memassay("replay", failing[1] / ".memassay" / "cases")
    assert "    model total: 0\n    memory_fakes:Miscounting total: 1\n" in done.stdout


def test_a_case_replayed_on_a_correct_store_is_fixed(failing: Failing, memassay: Cli) -> None:
    done = memassay("replay", failing[1] / ".memassay" / "cases", "--on", "reference")
    assert (done.returncode, "FIXED" in done.stdout) == (0, True)


def test_a_case_replayed_where_the_engine_does_not_start_is_an_error(failing: Failing, memassay: Cli) -> None:
    done = memassay("replay", failing[1] / ".memassay" / "cases", "--on", "memory_fakes:Unstartable")
    assert (done.returncode, "ERROR" in done.stdout) == (3, True)


def test_run_traces_a_case_without_a_verdict(failing: Failing, memassay: Cli) -> None:
    (case, *_) = sorted((failing[1] / ".memassay" / "cases").rglob("*.json"))
    done = memassay("run", case, "--on", "memory_fakes:Miscounting")
    assert (done.returncode, "-> {'messages': []" in done.stdout) == (0, True)


def test_run_takes_a_bare_program(memassay: Cli, tmp_path: Path) -> None:
    (tmp_path / "program.json").write_text('{"operations": [{"op": "delete_thread", "thread_id": "t"}]}')
    assert memassay("run", "program.json", "--on", "reference").stdout.splitlines() == [
        "delete_thread(thread_id='t')",
        "    -> False",
    ]


@pytest.fixture
def mixed(failing: Failing, tmp_path: Path) -> Path:
    """A folder with a case, between a file of something else and a case of a newer version."""
    (case, *_) = sorted((failing[1] / ".memassay" / "cases").rglob("*.json"))
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "a.json").write_text('{"name": "something else"}')
    (folder / "b.json").write_bytes(b"\xef\xbb\xbf" + case.read_bytes())
    (folder / "c.json").write_text(json.dumps(json.loads(case.read_bytes()) | {"version": 2}))
    return folder


def test_a_replay_goes_on_after_a_file_that_is_no_case(mixed: Path, memassay: Cli) -> None:
    done = memassay("replay", mixed, "--on", "reference")
    assert (done.returncode, done.stdout.count("FIXED")) == (2, 1)


def test_a_replay_names_the_files_that_are_no_cases(mixed: Path, memassay: Cli) -> None:
    first, second = memassay("replay", mixed, "--on", "reference").stderr.splitlines()
    assert (f"{mixed}/a.json is no case file" in first, f"{mixed}/c.json is of version 2" in second) == (True, True)


def test_a_case_with_a_byte_order_mark_is_run(mixed: Path, memassay: Cli) -> None:
    assert memassay("run", mixed / "b.json", "--on", "reference").returncode == 0


def test_run_runs_on_every_backend(memassay: Cli, tmp_path: Path) -> None:
    (tmp_path / "program.json").write_text('{"operations": [{"op": "delete_thread", "thread_id": "t"}]}')
    done = memassay("run", "program.json", "--on", "reference", "--on", "memory_fakes:Correct")
    trace = ["delete_thread(thread_id='t')", "    -> False"]
    assert done.stdout.splitlines() == ["on reference", *trace, "on memory_fakes:Correct", *trace]


def test_run_goes_on_after_an_engine_that_does_not_start(memassay: Cli, tmp_path: Path) -> None:
    (tmp_path / "program.json").write_text('{"operations": [{"op": "delete_thread", "thread_id": "t"}]}')
    done = memassay("run", "program.json", "--on", "memory_fakes:Unstartable", "--on", "reference")
    assert (done.returncode, "    -> False" in done.stdout, "port 5432 is taken" in done.stderr) == (3, True, True)


# Clauses and doctor


def test_clauses_are_listed(memassay: Cli) -> None:
    assert "  ORD-1   smoke" in memassay("clauses").stdout


def test_a_clause_is_explained(memassay: Cli) -> None:
    assert "put to the test by programs with:" in memassay("clauses", "ORD-1").stdout


def test_doctor_tries_the_url_of_the_environment(memassay: Cli) -> None:
    done = memassay("doctor", MEMASSAY_POSTGRES_URL="garbage")
    assert "missing postgres: url: yours, by MEMASSAY_POSTGRES_URL\n" in done.stdout


def test_doctor_knows_every_backend(memassay: Cli) -> None:
    assert "reference: needs no engine" in memassay("doctor").stdout
