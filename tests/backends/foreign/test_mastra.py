"""Mastra behind the bridge: what needs no package, and its stores as a second oracle where they are installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from memassay.backends.foreign import mastra, npm
from memassay.backends.foreign.mastra import packages
from memassay.backends.provision import EngineUnavailable
from memassay.backends.reference import ReferenceBackend
from memassay.backends.registry import find, names
from memassay.harness.engine import start
from memassay.spec.forms import resolve
from memassay.spec.protocols import Runtime
from memassay.spec.strategies import pools
from memassay.spec.types import MemoryConfig, MessageFilter, NewMessage

HERE = Path(mastra.__file__).parent
installed = pytest.mark.skipif(packages.missing() is not None, reason=f"Mastra: {packages.missing()}")
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)

DOCUMENTS, FILTERS = 100, 100
KEYS = ("k", "n", "s")


def test_the_packages_are_pinned_exactly() -> None:
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]
    locked = json.loads((HERE / "package-lock.json").read_text())["packages"]
    assert {name: locked[f"node_modules/{name}"]["version"] for name in wanted} == wanted


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (HERE / "package-lock.json").read_text()


def test_every_backend_of_the_entry_points_can_be_made() -> None:
    own = [name for name in names() if name.startswith("mastra-")]
    assert len(own) == 9
    assert [find(name).name for name in own] == own


def test_what_is_missing_is_said_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "folder", lambda: Path("/nowhere"))
    monkeypatch.setattr(npm, "node", lambda: "/usr/bin/node")
    assert packages.missing() == f"its packages are not installed: {packages.INSTALL}"
    monkeypatch.setattr(npm, "node", lambda: None)
    assert "install Node" in str(packages.missing())


def test_an_installation_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "folder", lambda: tmp_path / "mastra" / "pins")

    def which(name: str) -> str | None:
        return None if name == "npm" else sys.executable

    monkeypatch.setattr(shutil, "which", which)
    with pytest.raises(EngineUnavailable, match="no npm"):
        packages.install()
    assert [path.name for path in (tmp_path / "mastra").iterdir()] == ["lock"]


def documents(rng: Random) -> list[NewMessage]:
    values = [*pools.SCALARS, *pools.ODD_SCALARS, *pools.CONTAINERS]
    return [
        NewMessage(
            f"m{number}",
            "t",
            "x",
            metadata={key: resolve(rng.choice(values)) for key in KEYS if rng.random() < 0.7},
            created_at=NOON,
        )
        for number in range(DOCUMENTS)
    ]


def filters(rng: Random) -> list[dict[str, Any]]:
    values = [*pools.SCALARS, *pools.ODD_SCALARS]
    return [
        {key: resolve(rng.choice(values)) for key in rng.sample(KEYS, k=rng.choice((1, 1, 2)))} for _ in range(FILTERS)
    ]


def answers(backend: Any, url: str) -> Iterator[set[str]]:
    """The ids that each filter finds, of 100 documents by 100 filters."""
    rng = Random(7)
    memory = backend.open_memory(url, "oracle", Runtime(clock=lambda: NOON), MemoryConfig())
    memory.create_thread(resource_id="r", id="t")
    memory.save_messages(documents(rng))
    for narrowed in filters(rng):
        found = memory.recall("t", per_page=False, filter=MessageFilter(metadata=narrowed))
        yield {message.id for message in found.messages}
    memory.close()
    backend.drop_namespace(url, "oracle")


@installed
@pytest.mark.parametrize("layer", ["", "-storage"])
@pytest.mark.parametrize("store", ["inmemory", "libsql", "pg"])
def test_the_model_agrees_with_mastras_stores_on_filters(store: str, layer: str) -> None:
    """10,000 pairs of a filter and a document, where the documents of both agree: the shallow filter on messages."""
    backend = find(f"mastra-{store}{layer}")
    expected = list(answers(ReferenceBackend(), ""))
    assert sum(map(len, expected)) > 100
    with ExitStack() as stack:
        engine = stack.enter_context(start(backend.name, backend, "auto", {}))
        assert list(answers(backend, engine.endpoint.url)) == expected


@installed
def test_the_node_side_answers_what_the_wire_carries() -> None:
    """Values that JavaScript would change are the bridge's to keep: instants, -0.0, odd keys, a tag as a key."""
    metadata = {"__proto__": [1], "$at": "x", "n": 1e300, "z": -0.0, "u": "\u2028\0"[:1]}
    backend = find("mastra-inmemory-storage")
    with start(backend.name, backend, "auto", {}):
        memory = backend.open_memory("", "wire", Runtime(clock=lambda: NOON), MemoryConfig())
        thread = memory.create_thread(resource_id="r", id="t", metadata=metadata, created_at=NOON)
    assert (thread.metadata, thread.created_at) == (metadata, NOON)


@installed
def test_a_process_empties_what_one_that_was_killed_left() -> None:
    backend: Any = find("mastra-libsql-storage")
    with start(backend.name, backend, "auto", {}) as engine:
        url = engine.endpoint.url
        memory = backend.open_memory(url, "left", Runtime(clock=lambda: NOON), MemoryConfig())
        memory.create_thread(resource_id="r", id="t")
        backend.bridge.process(url).kill()
        backend.reset_namespace(url, "left")
        assert backend.open_memory(url, "left", Runtime(), MemoryConfig()).list_threads().total == 0


@installed
def test_the_adapter_ends_with_its_stdin() -> None:
    command = [str(packages.node()), str(HERE / "adapter.mjs"), "inmemory", "memory", str(packages.folder())]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")
