"""The semantic clauses over real dialogues in every language of chatterbot-corpus, embedded by the local MiniLM."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
from memassay.backends import minilm
from memassay.backends.minilm import MiniLMEmbedder
from memassay.spec.judge_hits import Candidates, fault, ties_fault
from memassay.spec.protocols import Memory, Runtime
from memassay.spec.types import IndexConfig, MemoryConfig, NewMessage, RecallResult, SemanticRecall
from memassay.spec.vectors import TOLERANCE, Vector

CORPUS = "chatterbot_corpus"
LACKING = minilm.missing() or (None if find_spec(CORPUS) else f"the module {CORPUS} is not installed: it is in [dev]")
pytestmark = pytest.mark.skipif(LACKING is not None, reason=str(LACKING))

ENGINES = ("reference", "libsql", "postgres", "faiss")
LANGUAGES = 28
ENOUGH = {"english": 160}
USUALLY = 20
"""So many messages of a language; of two there are fewer."""

START = datetime(2024, 3, 1, tzinfo=UTC)
RESOURCE = "corpus"
QUESTIONS = 30
"""So many messages are looked for among those of all languages."""

PARAPHRASES = {
    "Which subjects do you like best?": "What are your favorite subjects",
    "Could you lend me some sugar?": "Could I borrow a cup of sugar?",
    "My PC refuses to start": "My computer won't turn on.",
    "My machine is getting too hot": "My system is overheating.",
    "The pointing device does nothing when I move it": "My mouse is not responding.",
    "Explain artificial intelligence to me": "What is AI?",
    "Are you conscious?": "Are you sentient?",
    "Explain the equity market": "stock market",
    "I do not need any cash": "I have no need for money.",
    "Make me laugh with something funny": "Tell me a joke",
    "In which year was JFK killed?": "What year was President John F. Kennedy assassinated?",
    "Which illness is caused by carcinogens?": "what disease does a carcinogen cause",
    "I am running a temperature": "I have a fever",
    "Did you swallow your pills?": "Did you take medicine?",
    "Who came up with the first computing machines?": "Who invented computers?",
    "You talk like the green Jedi master": "you sound like yoda",
    "Have you watched the film with Harrison Ford about replicants?": "have you seen blade runner",
    "Define government": "what is a government",
    "Write code that sorts a list": "can you write a sorting algorithm?",
}
"""What somebody may say, and the message of the corpus that is nearest to it in meaning."""


class Said(NamedTuple):
    """A message of the corpus."""

    id: str
    language: str
    role: str
    text: str


def folders() -> list[Path]:
    spec = find_spec(CORPUS)
    assert spec is not None
    assert spec.origin is not None
    return sorted(path for path in (Path(spec.origin).parent / "data").iterdir() if path.is_dir())


def dialogues(folder: Path) -> Iterator[list[str]]:
    """The dialogues of a language: the first of each of its files, then the second of each, …"""
    import yaml

    files = [
        iter(yaml.safe_load(path.read_text(encoding="utf-8"))["conversations"]) for path in sorted(folder.iterdir())
    ]
    while files:
        for file in list(files):
            dialogue: list[str] | None = next(file, None)
            if dialogue is None:
                files.remove(file)
            else:
                yield dialogue


def read() -> list[Said]:
    """Messages of every language; who asks and who answers take turns."""
    found: list[Said] = []
    for folder in folders():
        turns = [(turn, text) for dialogue in dialogues(folder) for turn, text in enumerate(dialogue)]
        for number, (turn, text) in enumerate(turns[: ENOUGH.get(folder.name, USUALLY)]):
            role = "assistant" if turn % 2 else "user"
            found.append(Said(f"{folder.name}-{number:03}", folder.name, role, text))
    return found


class Table:
    """An embedder that knows the texts of the corpus, all embedded at once, and the questions."""

    name = MiniLMEmbedder.name
    dimension = MiniLMEmbedder.dimension

    def __init__(self, texts: Sequence[str]) -> None:
        distinct = list(dict.fromkeys(texts))
        self.vectors: dict[str, Vector] = dict(zip(distinct, MiniLMEmbedder().encode(distinct), strict=True))
        self._rows = {text: vector.tolist() for text, vector in self.vectors.items()}

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> list[list[float]]:
        """See protocols.Embedder."""
        return [self._rows[text] for text in texts]


class Corpus(NamedTuple):
    """The messages, in the order in which they were said, and their vectors."""

    messages: list[Said]
    table: Table

    def of(self, language: str | None) -> list[Said]:
        """The messages of a language, or all."""
        return [said for said in self.messages if language in (None, said.language)]

    def candidates(self, question: str, among: Sequence[Said], top_k: int) -> Candidates:
        """What may be the answer to a question."""
        rows = {said.id: tuple(self.table.vectors[said.text].tolist()) for said in among}
        return Candidates("cosine", self.table.vectors[question], rows, top_k, None, exact=True)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    messages = read()
    return Corpus(messages, Table([*(said.text for said in messages), *PARAPHRASES]))


@pytest.fixture(scope="module", params=ENGINES)
def memory(request: pytest.FixtureRequest, engines: Any, corpus: Corpus) -> Generator[Memory]:
    """All of the corpus on each engine in turn: a thread to a language."""
    backend, url = engines.get(request.param)
    namespace = f"text_{secrets.token_hex(4)}"
    ticks = count()
    runtime = Runtime(clock=lambda: START + timedelta(seconds=next(ticks)), embedder=corpus.table)
    memory: Memory = backend.open_memory(url, namespace, runtime, asking(1))
    for language in {said.language: None for said in corpus.messages}:
        memory.create_thread(resource_id=RESOURCE, id=language, metadata={"language": language})
        memory.save_messages(
            [
                NewMessage(said.id, language, said.text, said.role, created_at=START + timedelta(minutes=minute))
                for minute, said in enumerate(corpus.of(language))
            ]
        )
    yield memory
    memory.close()
    backend.drop_namespace(url, namespace)


def asking(top_k: int, **more: Any) -> MemoryConfig:
    return MemoryConfig(last_messages=0, semantic_recall=SemanticRecall(top_k=top_k, message_range=0, **more))


def ask(memory: Memory, language: str, question: str, config: MemoryConfig) -> RecallResult:
    return memory.recall(language, resource_id=RESOURCE, vector_search_string=question, thread_config=config)


# The corpus


def test_it_has_several_hundred_messages_of_every_language(corpus: Corpus) -> None:
    languages = {said.language for said in corpus.messages}
    assert languages == {folder.name for folder in folders()}
    assert len(languages) >= LANGUAGES
    assert len(corpus.messages) >= 600
    assert all(said.text.strip() for said in corpus.messages)


def test_it_has_texts_that_tie(corpus: Corpus) -> None:
    """Said twice, or of words that the model does not know: what a unique text is found by does not find these."""
    texts = {said.text for said in corpus.messages}
    vectors = {vector.tobytes() for vector in corpus.table.vectors.values()}
    assert len(texts) < len(corpus.messages)
    assert len(vectors) < len(corpus.table.vectors)


# On each engine


def test_each_message_has_one_embedding(corpus: Corpus, memory: Memory) -> None:
    index = memory.semantic_index()
    assert index is not None
    assert (index.dimension, index.metric, index.count) == (384, "cosine", len(corpus.messages))


def test_each_message_is_recalled_first_by_its_own_text(corpus: Corpus, memory: Memory) -> None:
    """In its language's thread; the others of the same vector are as right, in the thread's order (SEM-2)."""
    for said in corpus.messages:
        among = corpus.of(said.language)
        candidates = corpus.candidates(said.text, among, top_k=3)
        hits = ask(memory, said.language, said.text, asking(3)).hits
        ids = [hit.id for hit in hits]
        same = [each.id for each in among if equal(corpus, each, said)]
        assert hits[0].score == pytest.approx(1, abs=TOLERANCE)
        assert ids[: len(same)] == same[:3]
        assert (fault(candidates, hits), ties_fault(candidates, ids)) == (None, None), said


def equal(corpus: Corpus, one: Said, other: Said) -> bool:
    return np.array_equal(corpus.table.vectors[one.text], corpus.table.vectors[other.text])


def test_a_message_is_recalled_first_among_those_of_all_languages(corpus: Corpus, memory: Memory) -> None:
    step = len(corpus.messages) // QUESTIONS
    for said in corpus.messages[::step]:
        hits = ask(memory, said.language, said.text, asking(10, scope="resource")).hits
        candidates = corpus.candidates(said.text, corpus.messages, top_k=10)
        first = next(each for each in corpus.messages if each.id == hits[0].id)
        assert equal(corpus, first, said)
        assert fault(candidates, hits) is None, said


@pytest.mark.parametrize("question", PARAPHRASES)
def test_the_nearest_to_a_paraphrase_is_what_it_means(corpus: Corpus, memory: Memory, question: str) -> None:
    hits = ask(memory, "english", question, asking(4, scope="resource")).hits
    texts = {said.id: said.text for said in corpus.messages}
    assert fault(corpus.candidates(question, corpus.messages, top_k=4), hits) is None
    assert texts[hits[0].id] == PARAPHRASES[question]


def test_a_filter_on_the_thread_leaves_its_language(corpus: Corpus, memory: Memory) -> None:
    for language in ("german", "thai", "urdu"):
        among = corpus.of(language)
        for question in list(PARAPHRASES)[:3]:
            config = asking(5, scope="resource", filter={"language": language})
            hits = ask(memory, "english", question, config).hits
            assert fault(corpus.candidates(question, among, top_k=5), hits) is None


def test_a_filter_on_the_role_leaves_answers(corpus: Corpus, memory: Memory) -> None:
    among = [said for said in corpus.messages if said.role == "assistant"]
    for question in list(PARAPHRASES)[:6]:
        hits = ask(memory, "english", question, asking(5, scope="resource", filter={"role": "assistant"})).hits
        assert fault(corpus.candidates(question, among, top_k=5), hits) is None


def test_a_threshold_cuts_what_is_far(corpus: Corpus, memory: Memory) -> None:
    for question in list(PARAPHRASES)[:6]:
        config = asking(50, scope="resource", threshold=0.4)
        candidates = corpus.candidates(question, corpus.messages, top_k=50)
        hits = ask(memory, "english", question, config).hits
        limited = Candidates("cosine", candidates.query, candidates.rows, 50, 0.4, exact=True)
        assert fault(limited, hits) is None
        assert hits


def test_a_hit_brings_what_was_said_around_it(corpus: Corpus, memory: Memory) -> None:
    said = next(each for each in corpus.messages if each.text == "Could I borrow a cup of sugar?")
    config = MemoryConfig(last_messages=0, semantic_recall=SemanticRecall(top_k=1, message_range=1))
    result = ask(memory, "english", "Could you lend me some sugar?", config)
    ids = [each.id for each in corpus.of("english")]
    place = ids.index(said.id)
    assert {message.id for message in result.messages} == {*ids[place - 1 : place + 2]}


def test_a_text_that_changes_is_found_by_its_new_meaning(corpus: Corpus, memory: Memory) -> None:
    """The last test on an engine: it saves a message anew, and deletes it."""
    memory.create_thread(resource_id="other", id="changing")

    def found(question: str) -> list[str]:
        result = memory.recall("changing", vector_search_string=question, thread_config=asking(2))
        return [hit.id for hit in result.hits]

    memory.save_messages([NewMessage("kept", "changing", "Tell me a joke"), NewMessage("m", "changing", "What is AI?")])
    assert found("Explain artificial intelligence to me") == ["m", "kept"]
    memory.save_messages([NewMessage("m", "changing", "I have a fever")])
    assert found("I am running a temperature") == ["m", "kept"]
    assert found("Make me laugh with something funny") == ["kept", "m"]
    memory.delete_messages(["m"])
    assert found("I am running a temperature") == ["kept"]
    memory.delete_thread("changing")


def test_an_approximate_index_answers_alike(corpus: Corpus, engines: Any) -> None:
    """With so few rows every engine scans, whatever the type of the index."""
    for name, kind in (("postgres", "hnsw"), ("faiss", "hnsw"), ("faiss", "ivfflat")):
        backend, url = engines.get(name)
        namespace = f"text_{secrets.token_hex(4)}"
        config = asking(4, index_config=IndexConfig(type=kind))
        memory: Memory = backend.open_memory(url, namespace, Runtime(embedder=corpus.table), config)
        memory.create_thread(resource_id=RESOURCE, id="english")
        among = corpus.of("english")
        memory.save_messages([NewMessage(said.id, "english", said.text) for said in among])
        for question in PARAPHRASES:
            hits = memory.recall("english", vector_search_string=question).hits
            assert fault(corpus.candidates(question, among, top_k=4), hits) is None
        memory.close()
        backend.drop_namespace(url, namespace)
