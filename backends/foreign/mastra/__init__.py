"""Mastra's own packages, driven over the bridge by a Node process: Memory, storage and vector classes as they are.

`mastra-libsql` sends messages through Memory of @mastra/memory, `mastra-libsql-storage` through the storage class
below it; vector indices are the vector class's own in both. The packages are pinned (package.json,
package-lock.json) and are installed by `memassay fetch mastra`, never during a run.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ...provision import Endpoint, Provisioner, Provisioners
from ..bridge import Bridge, BridgeBackend, Spawned
from .packages import Packages, folder, missing, node

HERE = Path(__file__).parent

CALL_SECONDS = 20.0
"""Seconds that a call may take. Memory's time grows with the square of a call's messages, over a minute for 10,000,
and several programs have as many; other calls take milliseconds."""


class MastraBackend(BridgeBackend):
    """One of Mastra's engines through one of its layers."""

    def __init__(self, engine: str, layer: str, engines: Provisioners | None = None) -> None:
        name = f"mastra-{engine}" if layer == "memory" else f"mastra-{engine}-{layer}"
        command = [node() or "node", str(HERE / "adapter.mjs"), engine, layer, str(folder())]
        bridge = Bridge(name, command, environment={"MASTRA_TELEMETRY_DISABLED": "1"}, call_seconds=CALL_SECONDS)
        super().__init__(bridge, _provisioners(bridge, engines or {"process": _Files()}))

    def reset_namespace(self, url: str, namespace: str) -> None:
        """Empty the namespace; its tables stay."""
        process = self.bridge.process(url)
        process.call("reset_namespace", {"args": {"url": url, "namespace": namespace}}, self.bridge.call_seconds)


class _Files:
    """A temporary directory for what the packages keep in files."""

    def missing(self) -> str | None:
        """See provision.Provisioner."""
        return None

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        """See provision.Provisioner."""
        root = tempfile.mkdtemp(prefix="memassay-mastra-")
        try:
            yield Endpoint(root, "process", "a Node process; files in a temporary directory")
        finally:
            shutil.rmtree(root, ignore_errors=True)


class _Installed(Spawned, Packages):
    """As Spawned, where Node and the packages are here; they are fetched before."""

    def missing(self) -> str | None:
        """See provision.Provisioner."""
        return missing() or super().missing()


def _provisioners(bridge: Bridge, engines: Mapping[str, Provisioner]) -> Provisioners:
    return {method: _Installed(bridge, engine) for method, engine in engines.items()}


def inmemory() -> MastraBackend:
    """Memory over InMemoryStore."""
    return MastraBackend("inmemory", "memory")


def inmemory_storage() -> MastraBackend:
    """InMemoryStore."""
    return MastraBackend("inmemory", "storage")


def libsql() -> MastraBackend:
    """Memory over LibSQLStore and LibSQLVector; LibSQLVector."""
    return MastraBackend("libsql", "memory")


def libsql_storage() -> MastraBackend:
    """LibSQLStore; LibSQLVector."""
    return MastraBackend("libsql", "storage")


def pg() -> MastraBackend:
    """Memory over PostgresStore and PgVector; PgVector."""
    return MastraBackend("pg", "memory", _postgres())


def pg_storage() -> MastraBackend:
    """PostgresStore; PgVector."""
    return MastraBackend("pg", "storage", _postgres())


def duckdb() -> MastraBackend:
    """DuckDBVector."""
    return MastraBackend("duckdb", "memory")


def elasticsearch() -> MastraBackend:
    """ElasticSearchVector."""
    from ...provision.elasticsearch import PROVISIONERS

    return MastraBackend("elasticsearch", "memory", PROVISIONERS)


def opensearch() -> MastraBackend:
    """OpenSearchVector."""
    from ...provision.opensearch import PROVISIONERS

    return MastraBackend("opensearch", "memory", PROVISIONERS)


def _postgres() -> Provisioners:
    from ...provision.postgres import WITHOUT_CONTAINERS

    return WITHOUT_CONTAINERS
