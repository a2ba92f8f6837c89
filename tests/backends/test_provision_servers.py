"""Servers in Java as processes: the Java that is found, and servers that do not come up, are slow, or serve."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest
from memassay.backends.provision import EngineUnavailable, elasticsearch, homes, java, opensearch, servers
from memassay.backends.provision.settings import Settings, use

NEED = java.Need("ACME_JAVA_HOME", 21, ["jdk.attach"])


# Java


def installation(folder: Path, version: str, modules: str = "java.base jdk.attach") -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/java").touch(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return folder


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without Java."""
    for name in ("MEMASSAY_JAVA_HOME", "ACME_JAVA_HOME", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(java, "FOLDERS", ())
    return monkeypatch


@pytest.mark.parametrize(("version", "number"), [("25.0.3", 25), ("21", 21), ("1.8.0_402", 8)])
def test_the_version_of_a_java_is_read(tmp_path: Path, version: str, number: int) -> None:
    found = java.look(installation(tmp_path / "java", version))
    assert found is not None
    assert found.version == number


def test_a_java_without_a_description_is_asked(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/java"
    program.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "21.0.2"\' >&2 || echo jdk.attach@21\n'
    )
    program.chmod(0o755)
    assert java.look(tmp_path) == java.Java(tmp_path, 21, frozenset({"jdk.attach"}))


def test_a_java_is_found_in_the_order_of_what_names_it(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("JAVA_HOME", "ACME_JAVA_HOME", "MEMASSAY_JAVA_HOME"):
        home = installation(tmp_path / name, "21")
        no_java.setenv(name, str(home))
        assert isinstance(found := java.find(NEED), java.Java)
        assert found.home == home


def test_one_that_will_not_do_is_passed_over(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_java.setenv("ACME_JAVA_HOME", str(installation(tmp_path / "old", "17")))
    no_java.setenv("JAVA_HOME", str(installation(tmp_path / "new", "25")))
    assert isinstance(found := java.find(NEED), java.Java)
    assert found.version == 25


def test_what_an_unfit_java_lacks_is_said(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_java.setenv("ACME_JAVA_HOME", str(installation(tmp_path / "old", "17")))
    no_java.setenv("JAVA_HOME", str(installation(tmp_path / "slim", "25", "java.base")))
    said = str(java.find(NEED))
    assert f"{tmp_path}/old: version 17; {tmp_path}/slim: without jdk.attach" in said


def test_without_a_java_it_is_said_how_to_name_one(no_java: pytest.MonkeyPatch) -> None:
    assert str(java.find(NEED)).endswith("install one, or name it by MEMASSAY_JAVA_HOME")


# Servers that are scripts

SERVES = """\
#!/bin/sh
exec /usr/bin/env python3 -c '
import http.server, pathlib, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if "_cluster/health" in self.path else 404)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
pathlib.Path(sys.argv[1]).write_text("127.0.0.1:%d" % server.server_port)
server.serve_forever()
' "$1/logs/http.ports"
"""


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A directory, the temporary one too, that the user whom servers run as can enter."""
    with tempfile.TemporaryDirectory(prefix="servers-") as folder:
        path = Path(folder).resolve()
        path.chmod(0o755)
        (path / "tmp").mkdir(mode=0o755)
        monkeypatch.setattr("tempfile.tempdir", str(path / "tmp"))
        yield path


def running(place: Path) -> list[psutil.Process]:
    """The processes that were started in the temporary directory."""
    return [one for one in psutil.process_iter(["environ"]) if f"{place}/tmp/" in str(one.info["environ"])]


def embedded(place: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> servers.Embedded:
    """A way to a server that is this script; it is given its directory."""
    home = place / "home"
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    (home / "bin/acme").write_text(script)
    (home / "bin/acme").chmod(0o755)
    installation(home / "jdk", "25")
    monkeypatch.setenv("MEMASSAY_ACME_HOME", str(home))
    recipe = homes.Recipe("acme", "acme-1", "MIT", [], [], finish=lambda home: None)

    def lay_out(home: Path, found: java.Java, heap: str, root: Path) -> servers.Server:
        (root / "logs").mkdir()
        return servers.Server(
            "Acme", home, [str(home / "bin/acme"), str(root)], {}, found.program, root / "logs/http.ports"
        )

    return servers.Embedded(recipe, "bin/acme", NEED, lay_out)


def test_a_server_that_ends_is_told_with_the_end_of_its_log(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    way = embedded(place, "#!/bin/sh\necho starting\necho no memory >&2\nexit 7\n", monkeypatch)
    with (
        pytest.raises(EngineUnavailable, match="ended with 7 before it answered\nstarting\nno memory"),
        way.start(None),
    ):
        pass


def test_a_server_that_ends_leaves_no_directory(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    way = embedded(place, "#!/bin/sh\nexit 7\n", monkeypatch)
    with pytest.raises(EngineUnavailable), way.start(None):
        pass
    assert list((place / "tmp").iterdir()) == []


def test_a_server_that_does_not_answer_is_given_up(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "START_SECONDS", 0.3)
    way = embedded(place, "#!/bin/sh\necho busy\nexec tail -f /dev/null\n", monkeypatch)
    with pytest.raises(EngineUnavailable, match=r"was not healthy within 0.3 s\nbusy"), way.start(None):
        pass


def test_a_server_that_is_given_up_is_stopped(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "START_SECONDS", 0.3)
    way = embedded(place, "#!/bin/sh\nexec tail -f /dev/null\n", monkeypatch)
    with pytest.raises(EngineUnavailable), way.start(None):
        pass
    assert running(place) == []


def test_a_server_that_answers_is_reached_and_stopped(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    way = embedded(place, SERVES, monkeypatch)
    with way.start(None) as endpoint:
        assert endpoint.url.startswith("http://127.0.0.1:")
        assert endpoint.detail == f"home, Java 25, heap 512m, {servers.QUICK}, no other limits"
        assert len(running(place)) == 1
    assert running(place) == []


def test_a_home_that_the_unprivileged_user_cannot_read_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() != 0:
        pytest.skip("only root runs servers as another user")
    way = embedded(place, "#!/bin/sh\n", monkeypatch)
    (place / "home").chmod(0o700)
    with pytest.raises(EngineUnavailable, match=f"cannot read {place}/home/lib"), way.start(None):
        pass


# The real ones


@pytest.mark.slow
@pytest.mark.parametrize("way", [elasticsearch.EMBEDDED, opensearch.EMBEDDED], ids=["elasticsearch", "opensearch"])
def test_a_real_server_runs_unprivileged_on_loopback(way: servers.Embedded) -> None:
    if reason := way.missing():
        pytest.skip(reason)
    with use(Settings(heap="256m")), way.start(None) as endpoint:
        (server,) = {
            process
            for process in psutil.process_iter(["name"])
            if process.info["name"] == "java"
            for connection in process.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
            and connection.laddr
            and endpoint.url.endswith(f":{connection.laddr.port}")
        }
        assert server.username() != "root"
        listening = [one.laddr.ip for one in server.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
        assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}
        assert "-Xmx256m" in server.cmdline()
