"""Memory of agents: its threads, what their messages say and mean, and that a seed decides it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memassay.backends import minilm
from memassay.benchmarks import dialogues
from memassay.benchmarks.agent import BATCH, AgentMemory, open_agent_memory
from memassay.benchmarks.dialogues import TableEmbedder, embedder, lines
from memassay.harness.exits import UsageProblem
from memassay.spec.protocols import Runtime
from memassay.spec.reference import Model
from memassay.spec.types import MemoryConfig, NewMessage, SemanticRecall

SPEC = "agent:10k?resources=3"


@pytest.fixture(scope="module", autouse=True)
def without_weights() -> Any:
    """The model takes a minute for the corpus: but for its own test, lines have directions that mean nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(minilm, "missing", lambda: "the weights are not here")
        yield


@pytest.fixture(scope="module")
def memory() -> AgentMemory:
    return open_agent_memory(SPEC)


@pytest.fixture(scope="module")
def messages(memory: AgentMemory) -> list[NewMessage]:
    return [message for batch in memory.batches() for message in batch]


# Threads and messages


def test_threads_grow_tenfold_and_those_of_other_resources_stay_short(memory: AgentMemory) -> None:
    assert memory.threads == [
        *((f"resource0-{many}", "resource0", many) for many in (10, 100, 1_000, 10_000)),
        *((f"resource{number}-{many}", f"resource{number}", many) for number in (1, 2) for many in (10, 100)),
    ]


def test_each_batch_is_of_one_thread_and_all_together_are_its_messages(memory: AgentMemory) -> None:
    counts = Counter[str]()
    for batch in memory.batches():
        assert len(batch) <= BATCH
        (thread,) = {message.thread_id for message in batch}
        counts[thread] += len(batch)
    assert counts == {thread: many for thread, _, many in memory.threads}


def test_ids_differ(messages: list[NewMessage]) -> None:
    assert len({message.id for message in messages}) == len(messages)


def test_three_messages_of_a_thread_share_each_instant(messages: list[NewMessage]) -> None:
    ten = [message.created_at for message in messages if message.thread_id == "resource0-10"]
    assert ten == [datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC) for second in (0, 0, 0, 1, 1, 1, 2, 2, 2, 3)]


def test_users_and_assistants_take_turns(messages: list[NewMessage]) -> None:
    assert [message.role for message in messages[:4]] == ["user", "assistant", "user", "assistant"]


def test_metadata_leave_a_tenth_and_a_hundredth(messages: list[NewMessage]) -> None:
    for key, part in (("mood", 0.1), ("ticket", 0.01)):
        counts = Counter((message.metadata or {})[key] for message in messages)
        assert len(counts) == round(1 / part)
        assert max(counts.values()) < 2 * part * len(messages)


# Dialogue


def test_messages_say_lines_of_the_corpus_and_no_question(memory: AgentMemory, messages: list[NewMessage]) -> None:
    said = {line for message in messages for line in str(message.content).split("\n")}
    corpus = {line.text for line in lines()}
    assert said < corpus
    assert {*memory.questions} == corpus - said | {*memory.questions}
    assert said.isdisjoint(memory.questions)
    assert len({*memory.questions}) == 200


def test_a_message_is_about_one_topic(messages: list[NewMessage]) -> None:
    topics = {line.text: line.topic for line in lines()}
    for message in messages:
        assert {topics[line] for line in str(message.content).split("\n")} == {(message.metadata or {})["topic"]}


def test_a_dialogue_mostly_goes_on(messages: list[NewMessage]) -> None:
    after = {line.text: number for number, line in enumerate(lines())}
    places = [after[str(message.content).partition("\n")[0]] for message in messages]
    steps = np.diff(places)
    assert 0.85 < np.mean((steps > 0) & (steps < 10)) < 0.95


def test_most_messages_are_said_once(messages: list[NewMessage]) -> None:
    assert len({message.content for message in messages}) > 0.8 * len(messages)


# What decides it


def test_the_same_name_is_the_same_memory(memory: AgentMemory, messages: list[NewMessage]) -> None:
    again = open_agent_memory(SPEC)
    assert again.hash() == memory.hash()
    assert [message for batch in again.batches() for message in batch] == messages


@pytest.mark.parametrize("spec", [f"{SPEC}&seed=1", "agent:10k?resources=4", "agent:1k?resources=3"])
def test_another_name_is_another_memory(memory: AgentMemory, spec: str) -> None:
    assert open_agent_memory(spec).hash() != memory.hash()


@pytest.mark.parametrize(
    "spec", ["agent", "agent:", "agent:9", "agent:many", "mixture:10k", "agent:1k?seed=x", "agent:1k?resources=0"]
)
def test_a_bad_name_is_refused(spec: str) -> None:
    with pytest.raises(UsageProblem) as refused:
        open_agent_memory(spec)
    assert refused.value.hint


def test_without_the_corpus_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def needed(module: str, what: str) -> Any:
        raise UsageProblem(f"{what} needs the module {module}", hint="pip install 'memassay[bench]'")

    monkeypatch.setattr(dialogues, "needed", needed)
    with pytest.raises(UsageProblem, match="agent memory needs the module yaml"):
        open_agent_memory(SPEC)


# Vectors


def test_a_text_has_the_mean_direction_of_its_lines() -> None:
    table = TableEmbedder("t", ["one", "two"], np.array([[1, 0], [0, 1]], np.float32))
    assert table.embed(["one", "two\none"], "query") == [[1, 0], pytest.approx([0.5**0.5, 0.5**0.5])]


def test_a_line_that_nobody_said_has_a_direction_of_its_own() -> None:
    table = TableEmbedder("t", ["one"], np.array([[1, 0, 0, 0]], np.float32))
    first, again, other = table.embed(["three", "three", "four"], "document")
    assert first == again != other
    assert np.linalg.norm(first) == pytest.approx(1, abs=1e-6)


def test_that_vectors_mean_nothing_is_said() -> None:
    said: list[str] = []
    assert open_agent_memory(SPEC, told=said.append).embedder.name == "directions"
    assert said == ["the weights are not here; vectors of texts mean nothing"]


def test_a_store_recalls_a_message_by_its_text(memory: AgentMemory, messages: list[NewMessage]) -> None:
    config = MemoryConfig(last_messages=0, semantic_recall=SemanticRecall(top_k=3, message_range=0))
    store = Model(Runtime(embedder=memory.embedder), config)
    store.create_thread(resource_id="resource0", id="resource0-100")
    hundred = [message for message in messages if message.thread_id == "resource0-100"]
    store.save_messages(hundred)
    hits = store.recall("resource0-100", vector_search_string=str(hundred[42].content)).hits
    assert hits[0].score == pytest.approx(1, abs=1e-6)
    assert hundred[42].id in {hit.id for hit in hits}


@pytest.fixture
def with_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "missing", REALLY_MISSING)
    if reason := minilm.missing():
        pytest.skip(reason)


REALLY_MISSING = minilm.missing
SAID = ["I have a fever.", "Did you take medicine?", "Who invented computers?"]


def test_vectors_are_those_of_minilm_and_kept(with_weights: None, tmp_path: Path) -> None:
    said: list[str] = []
    made = embedder(SAID, tmp_path, said.append)
    again = embedder(SAID, tmp_path, said.append)
    assert made.name == "all-MiniLM-L6-v2"
    assert np.array_equal(made.table, minilm.MiniLMEmbedder().encode(SAID))
    assert np.array_equal(made.table, again.table)
    assert said == ["embedding 3 lines by all-MiniLM-L6-v2"]


def test_a_damaged_table_is_made_anew_and_said(with_weights: None, tmp_path: Path) -> None:
    made, said = embedder(SAID, tmp_path, lambda line: None), list[str]()
    (path,) = (tmp_path / "embeddings").glob("[!.]*")
    path.write_bytes(path.read_bytes()[:-4])
    assert np.array_equal(embedder(SAID, tmp_path, said.append).table, made.table)
    assert "is damaged" in said[0]


def test_without_meaning_nothing_is_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "missing", lambda: pytest.fail("it was looked for"))
    assert open_agent_memory("agent:10", meaning=False).embedder.name == "directions"
