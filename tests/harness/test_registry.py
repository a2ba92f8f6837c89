"""How backends are found, and what is said when one cannot be."""

from __future__ import annotations

import pytest
from memassay.backends.registry import UnknownBackend, find


def test_a_factory_of_a_module_is_called() -> None:
    assert find("memory_fakes:Correct").name == "correct"


def test_a_factory_that_is_not_there_is_named_in_full() -> None:
    with pytest.raises(UnknownBackend, match=r"has no 'Correct\.backend'"):
        find("memory_fakes:Correct.backend")


@pytest.mark.parametrize("name", ["a:b:c", ":", "a:", ":b", " a:b", "a b:c", "../a:b", ".a:b", "a::b", "a.py:B[0]"])
def test_what_is_not_module_and_factory_is_refused(name: str) -> None:
    with pytest.raises(UnknownBackend, match=r"is not module:Factory \(such as acme:AcmeBackend"):
        find(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("memory_fakes:instance", "'memory_fakes:instance' is a Correct, not a factory"),
        ("memory_fakes:SECRET", "is a str, not a factory"),
        ("memory_fakes:a_class", "returned the class Correct, not a backend .return an instance of it"),
        ("memory_fakes:wants", "wants arguments: url, user"),
        ("memory_fakes:broken", "raised ValueError: this factory does not work"),
        ("memory_fakes:Nameless", "has the name None"),
        ("memory_fakes:Unfinished", "has no methods version"),
        ("memory_fakes:wait_forever.__name__", "is a str"),
        ("sys:exit", "ended with SystemExit"),
        ("os:getcwd", "it lacks name, capabilities"),
    ],
)
def test_a_factory_that_makes_no_backend_is_told(name: str, message: str) -> None:
    with pytest.raises(UnknownBackend, match=message):
        find(name)
