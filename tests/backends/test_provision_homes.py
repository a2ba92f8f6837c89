"""Unpacked servers: what is downloaded, checked, unpacked and kept, from a Maven repository of a few bytes."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from memassay.backends.provision import EngineUnavailable, homes
from memassay.backends.provision.homes import Artefact, Recipe
from memassay.backends.provision.settings import Choices, Settings, use

PATH = "org/acme/server/1/server-1.zip"


def archive(members: dict[str, str]) -> bytes:
    """A zip; a member under bin/ is executable."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        for name, text in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o755 if "/bin/" in name else 0o600) << 16
            zipped.writestr(info, text)
    return buffer.getvalue()


SERVER = archive(
    {"acme-1/bin/acme": "#!/bin/sh", "acme-1/bin/acme.bat": "no", "acme-1/lib/a.jar": "jar", "other": "no"}
)


class Repository:
    """A Maven repository on loopback: `content` by path, and every request's path and range."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {PATH: SERVER}
        self.asked: list[tuple[str, str | None]] = []
        self.breaks_after: int | None = None
        repository = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                repository.asked.append((self.path[1:], self.headers["Range"]))
                content = repository.content.get(self.path[1:])
                if content is None:
                    self.send_error(404)
                    return
                begin = int((self.headers["Range"] or "bytes=0-")[6:-1])
                self.send_response(206 if begin else 200)
                self.send_header("Content-Length", str(len(content) - begin))
                self.end_headers()
                end, repository.breaks_after = repository.breaks_after, None
                self.wfile.write(content[begin:end])

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[Repository]:
    """The only repository that is known, with an empty cache and no repository of the user's."""
    repository = Repository()
    thread = threading.Thread(target=repository.server.serve_forever)
    thread.start()
    monkeypatch.setenv(homes.MAVEN_VARIABLE, repository.url)
    monkeypatch.setenv(homes.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    yield repository
    repository.server.shutdown()
    thread.join()
    repository.server.server_close()


def finish(home: Path) -> None:
    (home / "finished").write_text("yes")


def recipe(content: bytes = SERVER, sha256: str | None = None) -> Recipe:
    digest = sha256 or hashlib.sha256(content).hexdigest()
    return Recipe(
        backend="acme",
        name="acme-1",
        licence="MIT",
        artefacts=[Artefact(path=PATH, bytes=len(content), sha256=digest, inside="*", to="")],
        leave_out=["bin/*.bat"],
        finish=finish,
    )


def quiet(what: str, done: int, of: int) -> None:
    """Shows no progress."""


def files(home: Path) -> list[str]:
    return sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())


def test_a_home_has_the_wanted_members_and_what_completes_it(repository: Repository) -> None:
    home = homes.assemble(recipe(), quiet)
    assert files(home) == ["bin/acme", "finished", "lib/a.jar"]


def test_programs_are_executable_and_all_is_readable(repository: Repository) -> None:
    home = homes.assemble(recipe(), quiet)
    assert [oct((home / name).stat().st_mode & 0o777) for name in ("bin/acme", "lib/a.jar")] == ["0o755", "0o644"]


def test_a_home_is_assembled_once(repository: Repository) -> None:
    homes.assemble(recipe(), quiet)
    homes.assemble(recipe(), quiet)
    assert len(repository.asked) == 1


def test_two_at_a_time_assemble_it_once(repository: Repository) -> None:
    threads = [threading.Thread(target=homes.assemble, args=(recipe(), quiet)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(repository.asked) == 1
    assert files(homes.assembled(recipe())) == ["bin/acme", "finished", "lib/a.jar"]


def test_a_download_that_broke_off_goes_on(repository: Repository) -> None:
    repository.breaks_after = 100
    homes.assemble(recipe(), quiet)
    assert repository.asked == [(PATH, None), (PATH, "bytes=100-")]


def test_another_file_than_the_recipe_names_is_refused(repository: Repository) -> None:
    with pytest.raises(EngineUnavailable, match="its sha256 is"):
        homes.assemble(recipe(sha256="0" * 64), quiet)


def test_a_refused_file_is_downloaded_again_from_its_beginning(repository: Repository) -> None:
    repository.content[PATH] = bytes(len(SERVER))
    with pytest.raises(EngineUnavailable):
        homes.assemble(recipe(), quiet)
    repository.content[PATH] = SERVER
    homes.assemble(recipe(), quiet)
    assert repository.asked == [(PATH, None), (PATH, None)]


def test_a_missing_file_is_told_with_its_address(repository: Repository) -> None:
    repository.content.clear()
    with pytest.raises(EngineUnavailable, match=f"{repository.url}/{PATH} cannot be downloaded: HTTP Error 404"):
        homes.assemble(recipe(), quiet)


def test_a_failure_leaves_no_home(repository: Repository) -> None:
    repository.content.clear()
    with pytest.raises(EngineUnavailable):
        homes.assemble(recipe(), quiet)
    assert list(homes.assembled(recipe()).parent.iterdir()) == []


def test_a_member_that_leads_out_is_refused(repository: Repository) -> None:
    evil = archive({"acme-1/../../../evil": "evil"})
    repository.content[PATH] = evil
    with pytest.raises(EngineUnavailable, match="leads out of the archive"):
        homes.assemble(recipe(evil), quiet)


def test_what_was_downloaded_is_removed_when_it_is_unpacked(repository: Repository) -> None:
    homes.assemble(recipe(), quiet)
    assert list((homes.cache() / "downloads").iterdir()) == []


def test_a_file_of_the_users_own_maven_repository_is_used(repository: Repository, tmp_path: Path) -> None:
    own = tmp_path / "user/.m2/repository" / PATH
    own.parent.mkdir(parents=True)
    own.write_bytes(SERVER)
    homes.assemble(recipe(), quiet)
    assert repository.asked == []


def test_progress_is_told_in_bytes(repository: Repository) -> None:
    told: list[tuple[str, int, int]] = []
    homes.assemble(recipe(), lambda what, done, of: told.append((what, done, of)))
    assert ("downloading server-1.zip", len(SERVER), len(SERVER)) in told


# Which home is used


def test_without_a_home_it_is_said_what_to_run(repository: Repository) -> None:
    assert "run `memassay fetch acme` (0 MB from Maven Central)" in str(homes.find(recipe(), "bin/acme"))


def test_looking_for_a_home_downloads_nothing(repository: Repository) -> None:
    homes.find(recipe(), "bin/acme")
    assert repository.asked == []


def test_a_home_that_was_chosen_wins(repository: Repository, tmp_path: Path) -> None:
    homes.assemble(recipe(), quiet)
    given = tmp_path / "given"
    (given / "bin").mkdir(parents=True)
    (given / "bin/acme").touch(0o755)
    with use(Settings(options=Choices(homes={"acme": str(given)}))):
        assert homes.find(recipe(), "bin/acme") == given


def test_a_directory_that_is_no_home_is_refused(repository: Repository, tmp_path: Path) -> None:
    with use(Settings(options=Choices(homes={"acme": str(tmp_path)}))):
        assert homes.find(recipe(), "bin/acme") == f"{tmp_path} is no home of acme: it has no executable bin/acme"
