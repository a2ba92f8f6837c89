"""Engines in containers: limits, the image that is run, what is shown when it does not come up, what dead runs left."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest
from memassay.backends.provision import EngineUnavailable, containers, elasticsearch, opensearch, postgres
from memassay.backends.provision.containers import Container
from memassay.backends.provision.settings import Choices, Settings, use
from psycopg.conninfo import conninfo_to_dict

OFFICIAL = {
    "postgres": "pgvector/pgvector:pg17",
    "elasticsearch": "docker.elastic.co/elasticsearch/elasticsearch:9.4.3",
    "opensearch": "opensearchproject/opensearch:3.5.0",
}
WAYS = [postgres.CONTAINER, elasticsearch.CONTAINER, opensearch.CONTAINER]


@pytest.fixture
def docker() -> Any:
    """A client of the daemon. Skips the test where none answers, or PostgreSQL's image cannot be had."""
    if reason := postgres.CONTAINER.missing():
        pytest.skip(reason)
    return containers.client()


def labelled(docker: Any, label: str = containers.RUN) -> list[Any]:
    return docker.containers.list(all=True, filters={"label": label}, ignore_removed=True)


def ours(docker: Any) -> list[Any]:
    """The containers that this process started: others may test at the same time."""
    return labelled(docker, f"{containers.PID}={os.getpid()}")


@pytest.mark.parametrize("way", WAYS, ids=[way.backend for way in WAYS])
def test_images_are_official_unless_chosen(monkeypatch: pytest.MonkeyPatch, way: Container) -> None:
    monkeypatch.delenv(f"MEMASSAY_{way.backend.upper()}_IMAGE", raising=False)
    assert way.chosen() == OFFICIAL[way.backend]


def test_a_chosen_image_is_run() -> None:
    with use(Settings(options=Choices(images={"postgres": "mine:1"}))):
        assert postgres.CONTAINER.chosen() == "mine:1"


def test_without_a_daemon_the_way_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    assert "no Docker daemon answers at tcp://127.0.0.1:1" in str(postgres.CONTAINER.missing())


def test_without_a_daemon_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    with pytest.raises(EngineUnavailable, match="no Docker daemon"), postgres.CONTAINER.start(None):
        pass


def test_a_daemon_that_is_gone_at_the_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: Container) -> None:
        return None

    monkeypatch.setattr(Container, "missing", missing)
    monkeypatch.setattr(containers, "remove_stale", lambda: "")
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    with pytest.raises(EngineUnavailable, match="the container cannot be removed"), postgres.CONTAINER.start(None):
        pass


@pytest.mark.container
def test_an_image_that_cannot_be_had_is_told_before_anything_is_pulled(docker: Any) -> None:
    with use(Settings(options=Choices(images={"postgres": "localhost:1/nobody/has:this"}))):
        assert str(postgres.CONTAINER.missing()).startswith("the image localhost:1/nobody/has:this is not here")


@pytest.mark.container
def test_a_container_runs_within_the_limits_and_says_so(docker: Any) -> None:
    others = {one.id for one in ours(docker)}  # of the session's fixtures
    with postgres.CONTAINER.start(None) as endpoint:
        (started,) = [one for one in ours(docker) if one.id not in others]
        limits = started.attrs["HostConfig"]
        assert (limits["Memory"], limits["NanoCpus"]) == (2 << 30, (os.cpu_count() or 1) * 10**9)
        assert f"limits 2g of memory and {os.cpu_count()} CPUs (all)" in endpoint.detail


@pytest.mark.container
def test_the_image_is_told_by_its_digest(docker: Any) -> None:
    image = docker.images.get(postgres.CONTAINER.chosen())
    digests = [one.rpartition("@")[2] for one in image.attrs["RepoDigests"]] or [image.id]
    with postgres.CONTAINER.start(None) as endpoint:
        assert all(digest in endpoint.detail for digest in digests)


@pytest.mark.container
def test_a_password_of_its_own_is_needed_and_not_told(docker: Any) -> None:
    with postgres.CONTAINER.start(None) as endpoint:
        password = str(conninfo_to_dict(endpoint.url)["password"])
        assert len(password) == 32
        assert password not in endpoint.detail


@pytest.mark.container
@pytest.mark.parametrize("interruption", [RuntimeError, KeyboardInterrupt])
def test_the_container_is_gone_at_the_end(docker: Any, interruption: type[BaseException]) -> None:
    before = {one.id for one in ours(docker)}

    def use_it() -> None:
        with postgres.CONTAINER.start(None):
            raise interruption

    with pytest.raises(interruption):
        use_it()
    assert {one.id for one in ours(docker)} <= before


@pytest.mark.container
def test_an_engine_that_ends_is_told_with_its_log(docker: Any) -> None:
    def without_password(image: str) -> Any:
        container: Any = postgres.CONTAINER.make(image)
        container.password = ""
        return container

    way = Container(
        backend="postgres",
        image=postgres.IMAGE,
        port=postgres.PORT,
        make=without_password,
        url=postgres.CONTAINER.url,
        ready=postgres.CONTAINER.ready,
    )
    with (
        pytest.raises(EngineUnavailable, match=r"is exited before it answered(.|\n)*POSTGRES_PASSWORD"),
        way.start(None),
    ):
        pass


@pytest.mark.container
def test_a_container_of_a_dead_run_is_removed_at_the_next_start(docker: Any) -> None:
    stale = docker.containers.create(
        postgres.CONTAINER.chosen(),
        labels={
            containers.RUN: "stale",
            containers.HOST: socket.gethostname(),
            containers.PID: str(os.getpid()),
            containers.SINCE: "1.00",
        },
    )
    with postgres.CONTAINER.start(None) as endpoint:
        assert stale.id not in {one.id for one in labelled(docker)}
        assert "1 removed that runs now dead had left" in endpoint.detail


@pytest.mark.container
def test_a_container_of_another_machine_is_left_alone(docker: Any) -> None:
    other = docker.containers.create(
        postgres.CONTAINER.chosen(),
        labels={containers.RUN: "other", containers.HOST: "elsewhere", containers.PID: "1", containers.SINCE: "1.00"},
    )
    try:
        containers.remove_stale()
        assert other.id in {one.id for one in labelled(docker)}
    finally:
        other.remove(force=True, v=True)
