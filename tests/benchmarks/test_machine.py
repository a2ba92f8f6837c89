"""The machine of a benchmark: what makes it another one, and that it tells nothing of its name."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from memassay.benchmarks import machine
from memassay.benchmarks.machine import Machine


def test_this_machine_is_itself() -> None:
    one, two = machine.fingerprint(), machine.fingerprint()
    assert one.other_than(two) == []
    assert msgspec.convert(msgspec.to_builtins(one), Machine) == one


def test_a_machine_tells_nothing_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "machine-id"
    monkeypatch.setattr(machine, "IDENTITIES", (path,))
    ids: list[str] = []
    for name in ("secret", "another"):
        path.write_text(name)
        found = machine.fingerprint()
        assert name not in str(found)
        ids.append(found.id)
    assert len({*ids}) == 2


@pytest.mark.parametrize("name", ["cpu", "cpus", "cores", "memory_gib", "quota", "governor", "smt", "id"])
def test_what_makes_another_machine(name: str) -> None:
    one = machine.fingerprint()
    assert len(one.other_than(msgspec.structs.replace(one, **{name: "another"}))) == 1


@pytest.mark.parametrize("name", ["kernel", "hash_ns", "copy_ns"])
def test_what_makes_no_other_machine(name: str) -> None:
    one = machine.fingerprint()
    assert one.other_than(msgspec.structs.replace(one, **{name: 1})) == []


def test_a_quota_is_in_cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cpu.max"
    monkeypatch.setattr(machine, "QUOTA", path)
    for text, quota in (("max 100000", None), ("150000 100000", 1.5), ("", None)):
        path.write_text(text)
        assert machine.fingerprint().quota == quota


def test_the_pace_is_the_larger_ratio() -> None:
    one = msgspec.structs.replace(machine.fingerprint(), hash_ns=100, copy_ns=100)
    two = msgspec.structs.replace(one, hash_ns=110, copy_ns=50)
    assert (one.pace(two), two.pace(one)) == (0.5, 2.0)
