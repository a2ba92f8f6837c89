"""Choices about engines: options, environment and memassay.toml, and in which order they count."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_support import Cli
from memassay.backends.foreign import npm
from memassay.backends.provision.settings import Choices, Settings, current, use, variable
from memassay.harness.cli import app
from memassay.harness.exits import UsageProblem
from memassay.harness.settings import gather, pairs, read
from typer.testing import CliRunner

FEW = ("--level", "smoke", "--examples", "5")


def written(folder: Path, text: str) -> Path:
    path = folder / "memassay.toml"
    path.write_text(text)
    return path


def test_the_file_chooses_by_kind_and_backend(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '[urls]\npostgres = "postgresql://h/d"\n[images]\npostgres = "mine:1"\n[homes]\nopensearch = "/opt/os"\n',
    )
    assert read(path) == Choices(
        urls={"postgres": "postgresql://h/d"}, images={"postgres": "mine:1"}, homes={"opensearch": "/opt/os"}
    )


def test_no_file_chooses_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "memassay.toml") == Choices()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[image]\n", "unknown table 'image'"),
        ("images = 1\n", "images is no table"),
        ('[images]\npostgre = "x"\n', "unknown backend 'postgre'"),
        ("[images]\npostgres = 17\n", "images.postgres is no string"),
        ('[images]\npostgres = ""\n', "images.postgres is no string, or empty"),
        ("[images\n", "cannot be read"),
    ],
)
def test_a_slip_in_the_file_is_told(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageProblem, match=complaint):
        read(written(tmp_path, text))


@pytest.mark.parametrize("given", ["postgres", "=x", "postgres="])
def test_an_option_that_is_no_pair_is_refused(given: str) -> None:
    with pytest.raises(UsageProblem, match="a --image is not BACKEND=IMAGE"):
        pairs("images", [given])


def test_an_option_for_an_unknown_backend_is_refused() -> None:
    with pytest.raises(UsageProblem, match="--home names an unknown backend 'opensearc'"):
        pairs("homes", ["opensearc=/opt"])


def test_a_backend_of_the_users_may_be_named() -> None:
    assert pairs("urls", ["acme:Backend=x://y?a=b"]) == {"acme:Backend": "x://y?a=b"}


@pytest.mark.parametrize("heap", ["512", "0m", "-1g", "1t", ""])
def test_a_heap_that_is_no_size_is_refused(heap: str) -> None:
    with pytest.raises(UsageProblem, match="is no size"):
        gather(heap=heap)


def test_an_option_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMASSAY_POSTGRES_IMAGE", "environment")
    assert Settings(options=Choices(images={"postgres": "option"})).image("postgres") == "option"


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMASSAY_POSTGRES_HOME", "/environment")
    assert Settings(file=Choices(homes={"postgres": "/file"})).home("postgres") == Path("/environment")


def test_the_file_chooses_what_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMASSAY_POSTGRES_URL", raising=False)
    assert Settings(file=Choices(urls={"postgres": "file"})).url("postgres") == "file"


def test_settings_hold_for_a_block() -> None:
    with use(Settings(heap="1g")):
        assert current().heap == "1g"
    assert current().heap == "512m"


def test_a_variable_names_backend_and_kind() -> None:
    assert variable("my-store.v2", "IMAGE") == "MEMASSAY_MY_STORE_V2_IMAGE"


# The command line


def test_the_file_in_the_current_directory_counts(memassay: Cli, tmp_path: Path) -> None:
    written(tmp_path, f'[urls]\nlibsql = "{tmp_path}/mine.db"\n')
    done = memassay("verify", "libsql", *FEW)
    assert f"(url: {tmp_path}/mine.db" in done.stdout


def test_a_slip_in_the_file_is_a_usage_error(memassay: Cli, tmp_path: Path) -> None:
    written(tmp_path, "[engines]\n")
    done = memassay("verify", "reference", *FEW)
    assert (done.returncode, done.stderr) == (
        2,
        "memassay: memassay.toml has an unknown table 'engines'"
        " (it may have [urls], [images], [homes], [cases], [known])\n",
    )


def test_fetching_where_nothing_is_to_fetch_is_a_usage_error(memassay: Cli) -> None:
    done = memassay("fetch", "libsql")
    assert (done.returncode, done.stderr) == (
        2,
        "memassay: libsql has nothing to fetch (`memassay doctor` says how engines are had)\n",
    )


def test_packages_of_a_family_are_fetched_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no Node; what is to be fetched is told before anything is done."""
    monkeypatch.setattr(npm, "node", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done = CliRunner().invoke(app, ["fetch", "mastra"])
    assert done.exit_code == 3
    assert "mastra: the packages of package.json, about 290 MB" in done.stdout
    assert "there is no Node (install Node 20 or newer" in done.stderr


def test_cleaning_without_a_url_is_a_usage_error(memassay: Cli) -> None:
    done = memassay("clean")
    assert (done.returncode, "there is no --url" in done.stderr) == (2, True)
