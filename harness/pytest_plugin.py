"""The pytest plugin: a test module with a fixture `memassay_store` gets one test a clause, `test_memassay[ORD-1]` …

Nothing of memassay is imported until there is such a fixture: every pytest run of an environment loads this file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from .conformance import Conformance

FIXTURE = "memassay_store"
TEST = "test_memassay"
MARKER = "memassay"
CONFORMANCE = pytest.StashKey["Conformance"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """See pytest."""
    group = parser.getgroup("memassay", "conformance of agent-memory stores")
    group.addoption("--memassay-level", default="core", metavar="LEVEL", help="smoke, core (the default) or extended.")
    group.addoption("--memassay-seed", default=0, type=int, metavar="SEED", help="Which programs are generated.")
    group.addoption(
        "--memassay-known",
        default=None,
        metavar="FILE",
        help="Known failures; without it memassay.toml in the root directory, if there is one.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """See pytest."""
    config.addinivalue_line("markers", f"{MARKER}: a clause of memassay's specification, held against a store")


def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> Any:
    """One test a clause, where the fixture stands."""
    if name != FIXTURE or not isinstance(collector, pytest.Module) or not callable(obj):
        return None
    names = _conformance(collector.config).names()

    @pytest.mark.memassay
    @pytest.mark.parametrize("memassay_clause", names)
    def test_memassay(request: pytest.FixtureRequest, memassay_store: object, memassay_clause: str) -> None:
        item = cast(pytest.Function, request.node)
        _conformance(request.config).check(_key(item), memassay_clause, memassay_store)

    # pytest looks the function up in its module, as if it stood there.
    setattr(collector.obj, TEST, test_memassay)
    return collector.ihook.pytest_pycollect_makeitem(collector=collector, name=TEST, obj=test_memassay)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Which clauses were selected decides which programs run."""
    for item in session.items:
        if isinstance(item, pytest.Function) and item.get_closest_marker(MARKER) and item.originalname == TEST:
            _conformance(session.config).select(_key(item), _clause(item))


def _key(item: pytest.Function) -> str:
    """The store of a test: its module, and the fixture's parameter if it has one."""
    store = item.callspec.id.replace(_clause(item), "").strip("-")
    return f"{cast(pytest.Module, item.parent).nodeid}[{store}]"


def _clause(item: pytest.Function) -> str:
    return cast(str, item.callspec.params["memassay_clause"])


def _conformance(config: pytest.Config) -> Conformance:
    if CONFORMANCE not in config.stash:
        from .conformance import Conformance

        known = cast("str | None", config.getoption("--memassay-known"))
        config.stash[CONFORMANCE] = Conformance(
            level=str(config.getoption("--memassay-level")),
            seed=cast(int, config.getoption("--memassay-seed")),
            known=config.rootpath / "memassay.toml" if known is None else Path(known),
            known_given=known is not None,
            cases=config.rootpath / ".memassay" / "cases",
        )
    return config.stash[CONFORMANCE]
