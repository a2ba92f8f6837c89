"""How an engine is chosen, and what of its URL may be seen."""

from __future__ import annotations

import sys
from typing import Any

import memory_fakes as fakes
import pytest
from memassay.backends.provision import EngineUnavailable
from memassay.backends.provision.settings import variable
from memassay.harness.engine import AUTO, POOL, EngineFailed, Namespaces, choose, start, url_for
from memassay.harness.exits import UsageProblem
from memassay.harness.redact import Redactor
from memassay.spec.capabilities import Capabilities
from memassay.spec.protocols import Runtime
from memassay.spec.types import MemoryConfig


def test_auto_takes_the_first_way_that_can_be_gone() -> None:
    assert choose(fakes.Provisioned(), AUTO, None)[0] == "embedded"


def test_auto_prefers_a_url_that_was_given() -> None:
    assert choose(fakes.Provisioned(), AUTO, "x://y")[0] == "url"


def test_auto_without_any_way_says_what_is_missing() -> None:
    with pytest.raises(EngineUnavailable, match="docker: no daemon"):
        choose(fakes.Unavailable(), AUTO, None)


def test_a_named_way_is_taken() -> None:
    assert choose(fakes.Provisioned(), "docker", None)[0] == "docker"


def test_an_unknown_way_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageProblem, match="auto, docker, embedded, url"):
        choose(fakes.Provisioned(), "kubernetes", None)


def test_url_without_a_url_names_the_variable() -> None:
    with pytest.raises(UsageProblem, match="MEMASSAY_PROVISIONED_URL"):
        choose(fakes.Provisioned(), "url", None)


def test_a_backend_without_engine_has_no_ways() -> None:
    with pytest.raises(UsageProblem, match="needs no engine"):
        choose(fakes.Correct(), "docker", None)


def test_the_url_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMASSAY_CORRECT_URL", "x://env")
    assert url_for("any:Correct", fakes.Correct(), {}) == "x://env"


def test_a_url_given_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMASSAY_CORRECT_URL", "x://env")
    assert url_for("correct", fakes.Correct(), {"correct": "x://given"}) == "x://given"


def test_the_variable_has_only_letters_digits_and_underscores() -> None:
    assert variable("my-store.v2") == "MEMASSAY_MY_STORE_V2_URL"


def test_the_url_reaches_the_provisioner() -> None:
    backend = fakes.Provisioned()
    with start("provisioned", backend, AUTO, {"provisioned": "x://me:hunter2@y"}):
        assert backend.provisioners["url"].given == ["x://me:hunter2@y"]


class _Full(fakes.Correct):
    """drop_namespace does nothing."""

    def drop_namespace(self, url: str, namespace: str) -> None:
        pass


def test_a_namespace_that_stays_full_is_an_error_that_says_so() -> None:
    with start("full", _Full(), AUTO, {}) as engine:
        namespaces = Namespaces(engine)
        for _ in range(POOL):
            with namespaces.lease() as name:
                memory = engine.backend.open_memory("", name, Runtime(), MemoryConfig())
                memory.create_thread(id="t1", resource_id="r1")
        with pytest.raises(EngineFailed, match="still thread 't1'"), namespaces.lease():
            pass


class _Bogus(fakes.Correct):
    """Declares an atomicity that there is not."""

    def capabilities(self, url: str) -> Capabilities:
        return Capabilities(atomicity="eventual")  # type: ignore[arg-type]


def test_capabilities_that_there_are_not_are_refused() -> None:
    with pytest.raises(EngineUnavailable, match="eventual"), start("bogus", _Bogus(), AUTO, {}):
        pass


def test_the_detail_shows_no_password() -> None:
    with start("provisioned", fakes.Provisioned(), AUTO, {"provisioned": "x://me:hunter2@y"}) as engine:
        assert engine.endpoint.detail == "at x://me:***@y"


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("x://me:se%40cret@y/db", "password se@cret is wrong"),
        ("x://me:se%40cret@y/db", "cannot reach x://me:se%40cret@y/db"),
        ("x://y/db?password=hunter2&a=1", "hunter2"),
        ("x://y/db?authToken=hunter2", "token hunter2"),
    ],
)
def test_secrets_are_hidden_in_every_spelling(url: str, text: str) -> None:
    hidden = Redactor([url]).text(text)
    assert not any(secret in hidden for secret in ("hunter2", "se@cret", "se%40cret"))


def test_the_password_of_an_unknown_url_is_hidden() -> None:
    assert Redactor().text("cannot reach pg://me:hunter2@host/db") == "cannot reach pg://me:***@host/db"


def test_a_url_without_password_is_left_alone() -> None:
    assert Redactor().text("cannot reach pg://host:5432/db") == "cannot reach pg://host:5432/db"


def test_secrets_are_hidden_in_nested_values() -> None:
    assert Redactor(["x://me:hunter2@y"]).value({"hunter2": ["hunter2", 1, None]}) == {"***": ["***", 1, None]}


# What backends tell


def answer(told: Any) -> Any:
    """What is told, or what a function tells."""
    return told() if callable(told) else told


class Telling(fakes.Correct):
    """Tells this of itself."""

    def __init__(self, version: Any = "1", capabilities: Any = None) -> None:
        super().__init__()
        self.told: tuple[Any, Any] = version, capabilities

    def version(self, url: str) -> str:
        return answer(self.told[0])

    def capabilities(self, url: str) -> Capabilities:
        return answer(self.told[1])


def fail() -> Any:
    raise RuntimeError("not today")


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        (Telling(version=16), r"version\(\) returned 16 "),
        (Telling(version=None), r"version\(\) returned None "),
        (Telling(version=" "), r"version\(\) returned ' ' "),
        (Telling(version=fail), r"version\(\) raised RuntimeError: not today"),
        (Telling(version=sys.exit), r"version\(\) raised SystemExit"),
        (Telling(capabilities=fail), r"capabilities\(\) raised RuntimeError: not today"),
        (Telling(capabilities={}), r"capabilities\(\) returned dict"),
    ],
)
def test_what_a_backend_tells_wrongly_is_said(backend: Telling, message: str) -> None:
    with pytest.raises(EngineUnavailable, match=message), start("telling", backend, AUTO, {}):
        pass


def test_what_a_backend_tells_at_length_is_bounded() -> None:
    with start("telling", Telling(version="9" * 1_000_000, capabilities=Capabilities()), AUTO, {}) as engine:
        assert engine.version == "9" * 2_000 + "… (1,000,000 characters)"


def test_a_long_error_is_bounded() -> None:
    def speak() -> None:
        raise RuntimeError("x" * 1_000_000)

    with pytest.raises(EngineUnavailable) as caught, start("telling", Telling(version=speak), AUTO, {}):
        pass
    assert len(str(caught.value)) < 2_100


def test_what_auto_passed_over_is_told() -> None:
    with start("provisioned", fakes.Provisioned(), AUTO, {}) as engine:
        assert engine.endpoint.passed_over == "docker: no daemon"


def test_a_way_that_was_asked_for_passes_nothing_over() -> None:
    with start("provisioned", fakes.Provisioned(), "embedded", {}) as engine:
        assert engine.endpoint.passed_over == ""
