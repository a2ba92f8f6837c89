"""OpenSearch: facts of its own that the clauses do not see. What it shares is in test_document_store.py."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest
from memassay.backends import opensearch
from memassay.backends.document_layout import Names
from memassay.backends.document_recall import page_of
from memassay.backends.documents import Document, Json, Version
from memassay.backends.opensearch import OpenSearchBackend, connect
from memassay.backends.provision import EngineUnavailable
from memassay.backends.provision.opensearch import GIVEN
from memassay.harness.engine import choose
from memassay.spec.errors import ConfigurationError, InvalidRequest, Unsupported
from memassay.spec.protocols import Runtime
from memassay.spec.requests import parse_recall
from memassay.spec.types import DateRange, MemoryConfig, MessageFilter, NewMessage
from opensearchpy import OpenSearch

BACKEND = OpenSearchBackend()
NAMESPACE = "test_opensearch"
NAMES = Names(NAMESPACE)


@pytest.fixture
def url(opensearch_url: str) -> Generator[str]:
    """The session's OpenSearch, with nothing under our namespace."""
    BACKEND.drop_namespace(opensearch_url, NAMESPACE)
    yield opensearch_url
    BACKEND.drop_namespace(opensearch_url, NAMESPACE)


@pytest.fixture
def raw(opensearch_url: str) -> Generator[OpenSearch]:
    """A client of the session's OpenSearch."""
    with connect(opensearch_url) as client:
        yield client


def indices(raw: OpenSearch, pattern: str = NAMES.all) -> list[str]:
    return sorted(raw.indices.get(index=pattern))


def enter(url: str, namespace: str = NAMESPACE) -> None:
    """Open a client, save a message, and close it."""
    memory = BACKEND.open_memory(url, namespace, Runtime(), MemoryConfig())
    memory.create_thread(id="t", resource_id="r")
    memory.save_messages([NewMessage("a", "t", "hello", metadata={"k": 1})])
    memory.close()


# Namespaces


def test_version_is_the_servers_own(url: str, raw: OpenSearch) -> None:
    assert raw.info()["version"]["number"] in BACKEND.version(url).replace(",", "").split()


def test_a_namespace_is_two_indices(url: str, raw: OpenSearch) -> None:
    enter(url)
    assert indices(raw) == [f"{NAMES.messages}-2", f"{NAMES.resources}-2", f"{NAMES.threads}-2"]


def test_drop_removes_them(url: str, raw: OpenSearch) -> None:
    enter(url)
    BACKEND.drop_namespace(url, NAMESPACE)
    assert indices(raw) == []


def test_drop_and_reset_of_an_absent_namespace_do_nothing(url: str, raw: OpenSearch) -> None:
    BACKEND.drop_namespace(url, NAMESPACE)
    BACKEND.reset_namespace(url, NAMESPACE)
    assert indices(raw) == []


def test_reset_empties_one_namespace_and_no_other(url: str) -> None:
    longer = f"{NAMESPACE}_2"
    enter(url)
    enter(url, longer)
    BACKEND.reset_namespace(url, NAMESPACE)
    memories = [BACKEND.open_memory(url, each, Runtime(), MemoryConfig()) for each in (NAMESPACE, longer)]
    totals = [each.list_threads().total for each in memories]
    for each in memories:
        each.close()
    BACKEND.drop_namespace(url, longer)
    assert totals == [0, 1]


@pytest.fixture
def theirs(url: str, raw: OpenSearch) -> Iterator[str]:
    """An index of another program's under a name of ours."""
    name = NAMES.threads
    raw.indices.create(index=name, body={"mappings": {"_meta": {"project": "theirs"}}})
    yield name
    raw.indices.delete(index=name)


@pytest.mark.parametrize("act", ["open", "drop", "reset"])
def test_an_index_of_somebody_else_is_refused(theirs: str, url: str, raw: OpenSearch, act: str) -> None:
    acts = {"open": enter, "drop": BACKEND.drop_namespace, "reset": BACKEND.reset_namespace}
    with pytest.raises(ConfigurationError, match="is not of this version of memassay"):
        acts[act](url, NAMESPACE)
    assert indices(raw) == [theirs]


@pytest.mark.parametrize("namespace", ["", "A", "a-b", "a*", "_all", "a" * 41, "a,b"])
def test_no_other_namespace_is_opened(url: str, namespace: str) -> None:
    for act in (BACKEND.drop_namespace, BACKEND.reset_namespace):
        with pytest.raises(InvalidRequest):
            act(url, namespace)
    with pytest.raises(InvalidRequest):
        BACKEND.open_memory(url, namespace, Runtime(), MemoryConfig())


# Without the k-NN plugin


@pytest.fixture
def plain(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The session's OpenSearch, taken for one without the plugin."""

    def missing(client: OpenSearch) -> None:
        """It is not installed."""

    monkeypatch.setattr(opensearch, "plugin", missing)
    return url


def test_without_the_plugin_there_are_no_vectors(plain: str) -> None:
    assert not BACKEND.capabilities(plain).vectors
    with pytest.raises(Unsupported, match="k-NN"):
        BACKEND.open_index(plain, NAMESPACE, Runtime())


def test_without_the_plugin_no_setting_of_its_own_is_used(plain: str, raw: OpenSearch) -> None:
    enter(plain)
    settings = raw.indices.get_settings(index=NAMES.messages, params={"flat_settings": "true"})
    assert "index.knn" not in next(iter(settings.values()))["settings"]


def test_without_the_plugin_the_version_does_not_name_it(plain: str) -> None:
    assert "k-NN" not in BACKEND.version(plain)


# What the engine is told


def test_what_is_acknowledged_is_on_the_disk(url: str, raw: OpenSearch) -> None:
    enter(url)
    (found,) = raw.indices.get_settings(index=NAMES.messages).values()
    assert found["settings"]["index"]["translog"]["durability"] == "request"


def test_no_field_is_ever_guessed(url: str, raw: OpenSearch) -> None:
    enter(url)
    found = raw.indices.get_mapping(index=NAMES.all)
    assert {entry["mappings"]["dynamic"] for entry in found.values()} == {"strict"}


def kinds(node: Json) -> set[str]:
    """The kinds of queries in a profile."""
    return {node["type"]}.union(*(kinds(each) for each in node.get("children", [])))


def test_a_page_is_found_by_terms_and_ranges(url: str, raw: OpenSearch) -> None:
    enter(url)
    asked = parse_recall(
        "t",
        resource_id=None,
        vector_search_string=None,
        page=0,
        per_page=10,
        include=None,
        filter=MessageFilter(date_range=DateRange(start=Runtime().clock()), metadata={"k": 1}),
        order_by=None,
        thread_config=None,
        options=MemoryConfig(),
    )
    page = page_of(asked, Document("t", {"incarnation": "x"}, Version(0, 1)), NAMES)
    found: Any = raw.search(index=NAMES.messages, body=page.first() | {"profile": True})
    (query,) = found["profile"]["shards"][0]["searches"][0]["query"]
    scanned = {"WildcardQuery", "PrefixQuery", "RegexpQuery", "ScriptQuery", "FieldExistsQuery", "MatchAllDocsQuery"}
    assert not kinds(query) & scanned


# Reaching it


def test_url_reaches_a_server_and_says_which(url: str, raw: OpenSearch) -> None:
    with GIVEN.start(url) as endpoint:
        assert (endpoint.url, endpoint.method) == (url, "url")
        assert endpoint.detail.startswith(f"OpenSearch {raw.info()['version']['number']} at http")


def test_url_does_not_show_the_password(url: str) -> None:
    given = url.replace("://", "://me:s3cret@", 1)
    with GIVEN.start(given) as endpoint:
        assert "s3cret" not in endpoint.detail


@pytest.mark.parametrize("given", ["", "localhost:9200", "http://127.0.0.1:1", "http://me:s3cret@127.0.0.1:1"])
def test_a_url_that_does_not_work_is_refused_without_its_password(given: str) -> None:
    with pytest.raises(EngineUnavailable) as error, GIVEN.start(given):
        pass
    assert "s3cret" not in str(error.value)


def test_another_product_is_refused(elasticsearch_url: str) -> None:
    with pytest.raises(EngineUnavailable, match="is not OpenSearch"), GIVEN.start(elasticsearch_url):
        pass


def test_no_url_is_refused() -> None:
    with pytest.raises(EngineUnavailable, match="no url"), GIVEN.start(None):
        pass


def test_a_given_url_is_preferred() -> None:
    assert choose(BACKEND, "auto", "http://localhost:9200")[0] == "url"
