"""Embedders by name, on a provider on loopback that speaks as theirs do and fails in their ways (SEM-6, SEM-4a)."""

from __future__ import annotations

import email.utils
import logging
import time
import traceback
from collections.abc import Callable, Generator
from typing import Any

import pytest
from embedding_provider import KEY, Fault, Provider, body, changed, cut, numbered, status, vector
from memassay.backends import embedders
from memassay.backends.embedders import ATTEMPTS, LONGEST_WAIT, embedder
from memassay.backends.minilm import MiniLMEmbedder, missing
from memassay.spec.errors import ConfigurationError, EmbedderError
from memassay.spec.protocols import Embedder, Memory
from memassay.spec.types import MemoryConfig, NewMessage, SemanticRecall

pytest.importorskip("openai")
pytest.importorskip("google.genai")

OPENAI, GOOGLE, OPENROUTER = (
    "openai/text-embedding-3-small",
    "google/gemini-embedding-001",
    "openrouter/openai/text-embedding-3-small",
)
NAMES = (OPENAI, GOOGLE, OPENROUTER)
DIMENSIONS = {OPENAI: 1536, GOOGLE: 3072, OPENROUTER: 1536}
KEYS = {"OPENAI_API_KEY": KEY, "GOOGLE_API_KEY": KEY, "OPENROUTER_API_KEY": KEY}


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """The name of an embedder of each provider in turn."""
    return request.param


@pytest.fixture
def provider(request: pytest.FixtureRequest) -> Generator[Provider]:
    """A provider whose vectors are of the dimension of the test's embedder."""
    asked = request.getfixturevalue("name") if "name" in request.fixturenames else OPENAI
    server = Provider(DIMENSIONS[asked])
    yield server
    server.close()


@pytest.fixture
def waits() -> list[float]:
    """How long was waited between attempts; nobody really waits."""
    return []


@pytest.fixture
def remote(name: str, provider: Provider, waits: list[float]) -> Embedder:
    """The embedder, reaching the provider."""
    return embedder(name, base_url=provider.url, environment=KEYS, sleep=waits.append)


# What is asked and answered


def test_a_vector_for_each_text_in_order(remote: Embedder, provider: Provider) -> None:
    texts = ["one", "two", "three"]
    assert remote.embed(texts, "document") == [vector(text, remote.dimension) for text in texts]


def test_its_name_and_dimension_are_what_an_index_is_bound_to(remote: Embedder, name: str) -> None:
    assert (remote.name, remote.dimension) == (name, DIMENSIONS[name])


def test_no_texts_are_no_request(remote: Embedder, provider: Provider) -> None:
    assert list(remote.embed([], "document")) == []
    assert provider.requests == []


def test_the_model_is_named_without_its_provider(remote: Embedder, provider: Provider, name: str) -> None:
    remote.embed(["x"], "document")
    (request,) = provider.requests
    model = name.partition("/")[2]
    assert model in request.path if name == GOOGLE else request.body["model"] == model


def test_google_is_told_what_is_a_query() -> None:
    server = Provider(3072)
    google = embedder(GOOGLE, base_url=server.url, environment=KEYS)
    google.embed(["x"], "document")
    google.embed(["x"], "query")
    tasks = [each["taskType"] for request in server.requests for each in request.body["requests"]]
    server.close()
    assert tasks == ["RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"]


@pytest.mark.parametrize("given", ["openai/embed-1", "google/embed-1", "openrouter/acme/embed-1"])
def test_many_texts_go_in_several_requests(given: str) -> None:
    server = Provider(4)
    many = embedder(given, dimension=4, base_url=server.url, environment=KEYS)
    most = embedders.PROVIDERS[given.partition("/")[0]].batch
    texts = [f"text {number}" for number in range(most + 1)]
    found = many.embed(texts, "document")
    server.close()
    assert [len(request.texts) for request in server.requests] == [most, 1]
    assert found == [vector(text, 4) for text in texts]


def test_long_texts_go_in_several_requests(remote: Embedder, provider: Provider) -> None:
    remote.embed(["x" * 60_000, "y" * 60_000, "z"], "document")
    assert [len(request.texts) for request in provider.requests] == [1, 2]


@pytest.mark.parametrize("given", [OPENAI, "openai/text-embedding-3-large", GOOGLE, OPENROUTER])
def test_fewer_dimensions_are_asked_for(given: str) -> None:
    server = Provider(0)
    short = embedder(given, dimension=256, base_url=server.url, environment=KEYS)
    (found,) = short.embed(["x"], "document")
    server.close()
    assert (len(found), short.dimension, server.requests[0].dimension) == (256, 256, 256)


def test_of_another_model_the_dimension_is_given_and_not_asked_for() -> None:
    server = Provider(7)
    other = embedder("openrouter/acme/embed-1", dimension=7, base_url=server.url, environment=KEYS)
    (found,) = other.embed(["x"], "document")
    server.close()
    assert (len(found), server.requests[0].dimension) == (7, None)


def test_answers_in_another_order_are_put_in_order() -> None:
    server = Provider(1536)
    server.faults = [numbered(lambda n: list(reversed(range(n))))]
    found = embedder(OPENAI, base_url=server.url, environment=KEYS).embed(["one", "two"], "document")
    server.close()
    assert found == [vector("two", 1536), vector("one", 1536)]  # as they are numbered, not as they stand


# What passes


@pytest.mark.parametrize("fault", [status(408), status(409), status(429), status(500), status(503), cut])
def test_what_fails_in_passing_is_asked_again(
    remote: Embedder, provider: Provider, waits: list[float], fault: Fault
) -> None:
    provider.faults = [fault, fault]
    assert remote.embed(["x"], "document") == [vector("x", remote.dimension)]
    assert (len(provider.requests), len(waits)) == (3, 2)


def test_waits_grow_and_are_bounded(remote: Embedder, provider: Provider, waits: list[float]) -> None:
    provider.faults = [status(500)] * ATTEMPTS
    with pytest.raises(EmbedderError):
        remote.embed(["x"], "document")
    assert len(provider.requests) == ATTEMPTS
    assert waits == sorted(waits)
    assert 0 < waits[0] < waits[-1] <= LONGEST_WAIT


def test_retry_after_in_seconds_is_kept_to(remote: Embedder, provider: Provider, waits: list[float]) -> None:
    provider.faults = [status(429, retry_after="7")]
    remote.embed(["x"], "document")
    assert waits == [7.0]


def test_retry_after_as_a_date_is_kept_to(remote: Embedder, provider: Provider, waits: list[float]) -> None:
    provider.faults = [status(503, retry_after=email.utils.formatdate(time.time() + 20, usegmt=True))]
    remote.embed(["x"], "document")
    assert 0 < waits[0] <= 20


def test_a_server_that_wants_to_be_left_alone_for_long_is(
    remote: Embedder, provider: Provider, waits: list[float]
) -> None:
    provider.faults = [status(429, retry_after="3600")]
    with pytest.raises(EmbedderError):
        remote.embed(["x"], "document")
    assert (len(provider.requests), waits) == (1, [])


def test_nobody_there_is_an_error(name: str, waits: list[float]) -> None:
    server = Provider(1)
    server.close()
    with pytest.raises(EmbedderError):
        embedder(name, base_url=server.url, environment=KEYS, sleep=waits.append).embed(["x"], "document")
    assert len(waits) == ATTEMPTS - 1


# What does not


@pytest.mark.parametrize("number", [400, 401, 403, 404, 422])
def test_what_fails_for_good_is_asked_once(
    remote: Embedder, provider: Provider, waits: list[float], number: int
) -> None:
    provider.faults = [status(number)]
    with pytest.raises(EmbedderError, match=str(number)):
        remote.embed(["x"], "document")
    assert (len(provider.requests), waits) == (1, [])


WRONG: dict[str, Fault] = {
    "a component too few": changed(lambda found: [each[1:] for each in found]),
    "a component too many": changed(lambda found: [[*each, 0.0] for each in found]),
    "an empty vector": changed(lambda found: [[] for _ in found]),
    "one vector too few": changed(lambda found: found[1:]),
    "one vector too many": changed(lambda found: [*found, found[0]]),
    "no vectors": changed(lambda found: []),
    "one of another dimension": changed(lambda found: [*found[:-1], found[-1][1:]]),
    "NaN": changed(lambda found: [[float("nan"), *each[1:]] for each in found]),
    "infinity": changed(lambda found: [[float("inf"), *each[1:]] for each in found]),
    "a string for a number": changed(lambda found: [["one", *each[1:]] for each in found]),
    "null for a number": changed(lambda found: [[None, *each[1:]] for each in found]),
    "null for a vector": changed(lambda found: [None for _ in found]),
    "an object": body("{}"),
    "null": body("null"),
    "a list": body("[]"),
    "an empty body": body(""),
    "a page of HTML": body("<html>busy</html>"),
}


@pytest.mark.parametrize("fault", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_answer_is_an_error_and_not_asked_again(remote: Embedder, provider: Provider, fault: Fault) -> None:
    provider.faults = [fault]
    with pytest.raises(EmbedderError):
        remote.embed(["one", "two"], "document")
    assert len(provider.requests) == 1


@pytest.mark.parametrize("numbers", [[0, 0], [1, 2], [-1, 0], [None, 1], ["0", "1"], [0.0, 1.0]])
def test_answers_that_are_numbered_wrongly_are_an_error(numbers: list[Any]) -> None:
    server = Provider(1536)
    server.faults = [numbered(lambda n: numbers)]
    with pytest.raises(EmbedderError):
        embedder(OPENAI, base_url=server.url, environment=KEYS).embed(["one", "two"], "document")
    server.close()


def test_a_failure_in_a_later_request_returns_nothing(remote: Embedder, provider: Provider) -> None:
    provider.faults = [lambda request, server: changed(lambda found: found)(request, server), status(400)]
    with pytest.raises(EmbedderError):
        remote.embed(["x" * 60_000, "y" * 60_000], "document")


# Names, dimensions, packages


@pytest.mark.parametrize(
    "given",
    [
        *(
            "",
            "openai",
            "openai/",
            "/text-embedding-3-small",
            "text-embedding-3-small",
            "OpenAI/text-embedding-3-small",
        ),
        *("openai/ text-embedding-3-small", "openai/text-embedding-3-small\n", "acme/embed", "openrouter/embed"),
        *("openrouter//embed", "openrouter/a/b/c", "openai/unheard-of", "local/minilm", "local/", "openai/\uae40"),
        *(None, 5, ["openai/text-embedding-3-small"]),
    ],
)
def test_a_name_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError):
        embedder(given, environment=KEYS)


@pytest.mark.parametrize(
    ("given", "dimension"),
    [
        (OPENAI, 0),
        (OPENAI, -1),
        (OPENAI, True),
        (OPENAI, 1.0),
        (OPENAI, 1537),
        ("openai/text-embedding-ada-002", 256),
        (GOOGLE, 3073),
        ("local/all-MiniLM-L6-v2", 256),
    ],
)
def test_a_dimension_that_cannot_be_had_is_refused(given: str, dimension: Any) -> None:
    with pytest.raises(ConfigurationError):
        embedder(given, dimension=dimension, environment=KEYS)


@pytest.mark.parametrize("given", NAMES)
def test_a_package_that_is_not_installed_is_named(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "find_spec", dict[str, None]().get)
    with pytest.raises(ConfigurationError, match="pip install"):
        embedder(given, environment=KEYS)


@pytest.mark.skipif(missing() is not None, reason="the local MiniLM is not installed")
def test_the_local_one_needs_nothing() -> None:
    assert isinstance(embedder("local/all-MiniLM-L6-v2", environment={}), MiniLMEmbedder)


# Keys


HEADERS = {OPENAI: "authorization", OPENROUTER: "authorization", GOOGLE: "x-goog-api-key"}


@pytest.mark.parametrize(
    ("given", "environment", "key"),
    [
        (OPENAI, {"OPENAI_API_KEY": "first"}, "first"),
        (OPENROUTER, {"OPENROUTER_API_KEY": "first", "OPENAI_API_KEY": "second"}, "first"),
        (GOOGLE, {"GOOGLE_API_KEY": "first", "GOOGLE_GENERATIVE_AI_API_KEY": "second"}, "first"),
        (GOOGLE, {"GOOGLE_GENERATIVE_AI_API_KEY": "second"}, "second"),
        (GOOGLE, {"GOOGLE_API_KEY": " ", "GOOGLE_GENERATIVE_AI_API_KEY": "second\n"}, "second"),
    ],
)
def test_the_key_is_of_the_documented_variable(given: str, environment: dict[str, str], key: str) -> None:
    server = Provider(DIMENSIONS[given])
    embedder(given, base_url=server.url, environment=environment).embed(["x"], "document")
    server.close()
    assert server.requests[0].headers[HEADERS[given]].removeprefix("Bearer ") == key


@pytest.mark.parametrize(("given", "sent"), [(OPENAI, True), (OPENROUTER, False)])
def test_an_organisation_of_openai_is_told_to_openai_alone(
    given: str, sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    server = Provider(1536)
    embedder(given, base_url=server.url, environment=KEYS).embed(["x"], "document")
    server.close()
    assert [name in server.requests[0].headers for name in ("openai-organization", "openai-project")] == [sent, sent]


@pytest.mark.parametrize("given", NAMES)
@pytest.mark.parametrize("others", [{}, {"OPENAI_KEY": "x", "GEMINI_API_KEY": "x"}])
def test_without_a_key_the_variable_is_named(given: str, others: dict[str, str]) -> None:
    variables = embedders.PROVIDERS[given.partition("/")[0]].variables
    with pytest.raises(ConfigurationError, match=" or ".join(variables)):
        embedder(given, environment=others)


def test_what_cannot_be_a_header_is_no_key_and_is_not_shown() -> None:
    with pytest.raises(ConfigurationError) as refused:
        embedder(OPENAI, environment={"OPENAI_API_KEY": f"{KEY}\r\nx: y"})
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("fault", [status(401), status(500), cut, body("<html>"), body("{}")])
def test_a_key_is_in_no_repr_error_or_log(
    remote: Embedder, provider: Provider, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    provider.faults = [fault] * ATTEMPTS
    with pytest.raises(EmbedderError) as failed:
        remote.embed(["x"], "document")
    shown = "".join(traceback.format_exception(failed.value)) + repr(remote) + str(vars(remote)) + caplog.text
    assert KEY in str(provider.requests[0].headers)
    assert KEY not in shown


# Under a memory


TALK = ("Hello!", "The deadline of the project is in May.", "It will rain.", "Bring a coat.", "Bye.")


@pytest.fixture
def recalling(name: str, provider: Provider) -> Callable[[], Embedder]:
    """A fresh embedder on the provider."""
    return lambda: embedder(name, base_url=provider.url, environment=KEYS, sleep=lambda seconds: None)


@pytest.mark.parametrize("name", [OPENAI, GOOGLE, OPENROUTER], indirect=True)
def test_messages_are_found_by_meaning(
    open_memory: Callable[..., Memory], recalling: Callable[[], Embedder], namespace: Any
) -> None:
    if namespace.backend.capabilities(namespace.url).max_indexed_dimension < 1:
        pytest.skip("no vectors")
    memory = open_memory(MemoryConfig(semantic_recall=True), recalling())
    memory.create_thread(id="thread-123", resource_id="user-456")
    memory.save_messages([NewMessage(f"msg-{n}", "thread-123", text) for n, text in enumerate(TALK)])
    found = memory.recall(
        "thread-123",
        vector_search_string="What did we discuss about the project deadline?",
        per_page=0,
        thread_config=MemoryConfig(semantic_recall=SemanticRecall(top_k=1, message_range=0)),
    )
    assert [message.content for message in found.messages] == [TALK[1]]


@pytest.mark.parametrize("name", [OPENAI], indirect=True)
@pytest.mark.parametrize("fault", [status(401), status(500), cut, WRONG["NaN"], WRONG["one vector too few"]])
def test_a_failing_embedder_writes_nothing(
    open_memory: Callable[..., Memory], recalling: Callable[[], Embedder], provider: Provider, fault: Fault
) -> None:
    memory = open_memory(MemoryConfig(semantic_recall=True), recalling())
    memory.create_thread(id="t", resource_id="r")
    before = memory.get_thread("t")
    provider.faults = [fault] * ATTEMPTS
    with pytest.raises(EmbedderError):
        memory.save_messages([NewMessage("a", "t", "hello"), NewMessage("b", "t", "world")])
    assert (memory.recall("t").total, memory.get_thread("t")) == (0, before)
