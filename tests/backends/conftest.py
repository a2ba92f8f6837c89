"""Engines that the tests of adapters share: one of each per session."""

from __future__ import annotations

from collections.abc import Generator

import pytest


@pytest.fixture(scope="session")
def postgres_url() -> Generator[str]:
    """An embedded PostgreSQL, stopped and removed at the end of the session."""
    backend = pytest.importorskip("memassay.backends.postgres").PostgresBackend
    embedded = backend.provisioners["embedded"]
    if reason := embedded.missing():
        pytest.skip(reason)
    with embedded.start(None) as endpoint:
        yield endpoint.url
