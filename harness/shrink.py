"""Our own shrinker: makes a failing program small, then its values plain, while the failure holds.

It works on the program's JSON form, so it serves programs from files as well as generated ones, and it
knows no store: all it asks is whether a candidate still fails. Every candidate it asks about decodes as
a program whose forms can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, cast

import msgspec

from ..spec.forms import TAGS, FormError
from ..spec.interpreter import START
from ..spec.program import Program
from .programs import check_forms

MAX_RUNS = 400
"""Questions asked before the shrinker gives up."""

Json = Any
Path = tuple[str | int, ...]
"""Where a value stands in a program's JSON form."""

_BASE_INSTANT = START.isoformat()


class Shrunk(msgspec.Struct, frozen=True):
    """The smallest program found. `minimal` is False when a limit ended the search before nothing smaller failed."""

    program: Program
    runs: int
    minimal: bool


class _Exhausted(Exception):
    """A limit was reached."""


def shrink(
    program: Program,
    still_fails: Callable[[Program], bool],
    *,
    runs: int = MAX_RUNS,
    expired: Callable[[], bool] = lambda: False,
) -> Shrunk:
    """Shrink a program that fails to one of which no smaller neighbour does.

    still_fails: asked at most `runs` times, never twice about one program.
    expired: True once there is no time left.
    """
    search = _Search(program, still_fails, runs, expired)
    try:
        while search.operations() or search.values():
            continue
    except _Exhausted:
        return Shrunk(search.best, search.asked, minimal=False)
    return Shrunk(search.best, search.asked, minimal=True)


class _Search:
    def __init__(
        self, program: Program, still_fails: Callable[[Program], bool], runs: int, expired: Callable[[], bool]
    ) -> None:
        self.best = program
        self.tree: Json = _plain(msgspec.to_builtins(program))
        self.asked = 0
        self._still_fails = still_fails
        self._runs = runs
        self._expired = expired
        self._seen = {program.hash}

    def accept(self, tree: Json) -> bool:
        """Make the candidate the best if it is a program that still fails."""
        program = read(tree)
        if program is None or program.hash in self._seen:
            return False
        if self.asked >= self._runs or self._expired():
            raise _Exhausted
        self._seen.add(program.hash)
        self.asked += 1
        if not self._still_fails(program):
            return False
        self.best, self.tree = program, tree
        return True

    def operations(self) -> bool:
        """Fewer operations; a `together` or a `race` may become its calls, one after another, a `kill` the call."""
        changed = self.remove(("operations",))
        for i in reversed(range(len(self.tree["operations"]))):
            operation = self.tree["operations"][i]
            if inner := _inner(operation):
                flat = [*self.tree["operations"][:i], *inner, *self.tree["operations"][i + 1 :]]
                changed |= self.accept(replace(self.tree, ("operations",), flat))
        return changed

    def values(self) -> bool:
        """Fewer and plainer values, from the last operation to the first."""
        changed = self.first(("embedder",), iter([0] if self.tree.get("embedder") else []))
        changed |= self.first(("titler",), iter([False] if self.tree.get("titler") else []))
        for path in [("options",), *(("operations", i) for i in reversed(range(len(self.tree["operations"]))))]:
            if get(self.tree, path) is not None:
                changed |= self.simplify(path)
        return changed

    def simplify(self, path: Path) -> bool:
        """Simplify the value there, then what is in it."""
        value = get(self.tree, path)
        if isinstance(value, list):
            changed = self.remove(path)
            for i in reversed(range(len(get(self.tree, path)))):
                changed |= self.simplify((*path, i))
            return changed
        if isinstance(value, dict):
            return self.object(path, cast("dict[str, Json]", value))
        return self.first(path, _plainer(value))

    def object(self, path: Path, value: dict[str, Json]) -> bool:
        tag = next(iter(value), "")
        if tag in TAGS:
            return self.symbolic(path, tag, value[tag])
        changed = False
        for key in reversed(value):
            if key != "op":
                rest = {name: item for name, item in get(self.tree, path).items() if name != key}
                changed |= self.accept(replace(self.tree, path, rest)) or self.simplify((*path, key))
        return changed

    def symbolic(self, path: Path, tag: str, given: Json) -> bool:
        match tag:
            case "$at" | "$naive":
                return self.first(path, iter([{tag: _BASE_INSTANT}] if given != _BASE_INSTANT else []))
            case "$repeat":
                return self.least((*path, tag, 1)) | self.simplify((*path, tag, 0))
            case "$nest":
                return self.least((*path, tag, 0)) | self.simplify((*path, tag, 1))
            case "$fill":
                return self.least((*path, tag, "n")) | self.object((*path, tag), given)
            case "$part":
                return self.object((*path, tag), given)
            case "$dict" | "$concat" | "$chars" | "$tuple":
                return self.simplify((*path, tag))
            case _:
                return False

    def first(self, path: Path, candidates: Iterator[Json]) -> bool:
        """Take the first of the plainer values that still fails."""
        return any(self.accept(replace(self.tree, path, candidate)) for candidate in candidates)

    def least(self, path: Path) -> bool:
        """The least count there, by bisection."""
        low, high = 0, get(self.tree, path)
        changed = False
        while isinstance(high, int) and low < high:
            middle = (low + high) // 2
            if self.accept(replace(self.tree, path, middle)):
                high, changed = middle, True
            else:
                low = middle + 1
        return changed

    def remove(self, path: Path) -> bool:
        """Fewer elements of the list there: ever smaller chunks, from the end (ddmin)."""
        changed = False
        size = len(get(self.tree, path))
        while size:
            end = len(get(self.tree, path))
            while end > 0:
                items = get(self.tree, path)
                start = max(0, end - size)
                changed |= self.accept(replace(self.tree, path, items[:start] + items[end:]))
                end = start
            size //= 2
        return changed


def read(tree: Json) -> Program | None:
    """The program a JSON form stands for; None when there is none, or one of its forms cannot be read."""
    try:
        program = msgspec.convert(tree, Program)
        check_forms(program)
    except (msgspec.ValidationError, FormError):
        return None
    return program


def get(tree: Json, path: Path) -> Json:
    """The value at the path; None when there is none."""
    for step in path:
        try:
            tree = tree[step]
        except (KeyError, IndexError):
            return None
    return tree


def replace(tree: Json, path: Path, value: Json) -> Json:
    """The tree with another value at the path; shares the rest."""
    if not path:
        return value
    step = path[0]
    copied: Json = copy(tree)
    copied[step] = replace(tree[step], path[1:], value)
    return copied


def _inner(operation: Json) -> list[Json]:
    """The calls of an operation that holds others."""
    match operation["op"]:
        case "together":
            return [*operation["operations"]]
        case "race":
            return [call for branch in operation["branches"] for call in branch]
        case "kill":
            return [operation["operation"]]
        case _:
            return []


def _plainer(value: Json) -> Iterator[Json]:
    """Plainer values of the same JSON type, plainest first. Nothing is plainer than what comes first."""
    match value:
        case bool() | None:
            return
        case int() | float():
            for candidate in (0, 1, int(value / 2) if abs(value) < 2**53 else 0, abs(value)):
                if (abs(candidate), candidate < 0, isinstance(candidate, float)) < (
                    abs(value),
                    value < 0,
                    isinstance(value, float),
                ):
                    yield candidate
        case str():
            if value != "":
                yield ""
            if value not in ("", "x"):
                yield "x"
            if len(value) > 8:
                yield value[: len(value) // 2]
                yield value[len(value) // 2 :]
        case _:
            return


def _plain(tree: Json) -> Json:
    """Tuples as lists, so that a tree has one shape."""
    match tree:
        case dict():
            return {key: _plain(item) for key, item in cast("dict[str, Json]", tree).items()}
        case list() | tuple():
            return [_plain(item) for item in cast("list[Json]", tree)]
        case _:
            return tree
