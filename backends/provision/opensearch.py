"""Getting an OpenSearch: one that a url names, one in a container, or an unpacked server run as a process."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..document_url import HINT, address
from . import EngineUnavailable, Given, Provisioners, containers, homes, java, servers
from .settings import current

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

PROBE_SECONDS = 10.0
LEAST = 3
"""The oldest major version that is known to do."""

IMAGE = "opensearchproject/opensearch:3.5.0"
PORT = 9200
PROGRAM = "bin/opensearch"
NEED = java.Need("OPENSEARCH_JAVA_HOME", 21)

SETTINGS = {
    "cluster.name": "memassay",
    "discovery.type": "single-node",
    "cluster.routing.allocation.disk.threshold_enabled": "false",
}
"""Of every server that we start. A full disk of the machine is not the store's fault."""

UNUSED_CHIPS = {"x86_64": "aarch_64", "aarch64": "x86_64"}


def probe(url: str) -> str:
    """Connect once; what is there, without secrets."""
    where = address(url)
    from opensearchpy.exceptions import OpenSearchException

    from ..opensearch import connect

    try:
        with connect(url, seconds=PROBE_SECONDS) as client:
            version: dict[str, str] = client.info()["version"]
    except OpenSearchException as error:
        raise EngineUnavailable(f"no OpenSearch answers: {where.quiet(str(error))}", hint=HINT) from None
    if version.get("distribution") != "opensearch":
        raise EngineUnavailable(f"what answers at {where.base} is not OpenSearch", hint=HINT)
    if int(version["number"].split(".")[0]) < LEAST:
        raise EngineUnavailable(f"OpenSearch {version['number']} is at {where.base}", hint=f"use {LEAST} or later")
    return f"OpenSearch {version['number']} at {where.base}"


GIVEN = Given(module="opensearchpy", extra="opensearch", probe=probe, hint=HINT, check=address)


def _lay_out(home: Path, found: java.Java, heap: str, root: Path) -> servers.Server:
    """Lay out its configuration in the directory, and tell how it is run."""
    config = root / "config"
    shutil.copytree(home / "config", config)
    for folder in (root / "data", root / "logs", root / "tmp"):
        folder.mkdir()
    (config / "jvm.options").write_text(servers.java_options(home))
    settings = {
        **SETTINGS,
        "network.host": "127.0.0.1",
        "http.port": "0",
        "transport.port": "0",
        "node.portsfile": "true",
        **({"plugins.security.disabled": "true"} if (home / "plugins/opensearch-security").is_dir() else {}),
    }
    (config / "opensearch.yml").write_text("".join(f"{key}: {value}\n" for key, value in settings.items()))
    return servers.Server(
        name="OpenSearch",
        home=home,
        command=[str(home / PROGRAM), f"-Epath.data={root}/data", f"-Epath.logs={root}/logs"],
        environment={
            "OPENSEARCH_PATH_CONF": str(config),
            "OPENSEARCH_TMPDIR": str(root / "tmp"),
            "OPENSEARCH_JAVA_HOME": str(found.home),
            "OPENSEARCH_JAVA_OPTS": f"{_heap(heap)} -XX:HeapDumpPath={root}/tmp -XX:ErrorFile={root}/logs/hs_err.log",
        },
        java=found.program,
        ports=root / "logs/http.ports",
    )


def _heap(size: str) -> str:
    """Options of Java. Memory is taken as it is used, and not, as the server's default is, all at once."""
    return f"-Xms{size} -Xmx{size} {servers.compiler()} -XX:-AlwaysPreTouch"


def _finish(home: Path) -> None:
    """Leave out libraries for other systems."""
    for library in (home / "modules/transport-netty4").glob(f"*-linux-{UNUSED_CHIPS.get(platform.machine(), '?')}.jar"):
        library.unlink()


def _container(image: str) -> DockerContainer:
    from testcontainers.community.opensearch import OpenSearchContainer

    container: Any = OpenSearchContainer(image, port=PORT)
    container.env.update(SETTINGS, OPENSEARCH_JAVA_OPTS=_heap(current().heap))
    return container


RECIPE = homes.Recipe(
    backend="opensearch",
    name="opensearch-3.5.0",
    licence="Apache License 2.0; its text and the notices come along",
    artefacts=(
        homes.Artefact(
            path="org/opensearch/distribution/integ-test-zip/opensearch/3.5.0/opensearch-3.5.0.zip",
            bytes=193764775,
            sha256="b676ad392c95a94d8d2bd8785b8b922c7811536daf6a9ec0c7277a34bd8a17a9",
            inside="*",
        ),
        homes.Artefact(
            path="org/opensearch/plugin/opensearch-knn/3.5.0.0/opensearch-knn-3.5.0.0.zip",
            bytes=5906536,
            sha256="99fdf3ac9ef95974e276298b83a58532bf21ba13bd5fd96a4b59465b7e613309",
            inside="",
            to="plugins/opensearch-knn",
        ),
    ),
    leave_out=(
        *("bin/*.bat", "bin/*.exe", "bin/opensearch-fips-demo-installer", "lib/tools/fips-demo-installer-cli"),
        *("modules/ingest-geoip", "modules/transport-netty4/*-osx-*.jar", "modules/transport-netty4/*-windows-*.jar"),
    ),
    finish=_finish,
)

EMBEDDED = servers.Embedded(recipe=RECIPE, program=PROGRAM, need=NEED, lay_out=_lay_out)
CONTAINER = containers.Container(
    backend="opensearch",
    image=IMAGE,
    port=PORT,
    make=_container,
    url=containers.http_url,
    ready=servers.check_health,
    note=servers.heap_in_words,
)

PROVISIONERS: Provisioners = {"url": GIVEN, "docker": CONTAINER, "embedded": EMBEDDED}
