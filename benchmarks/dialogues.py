"""What people and bots say to each other: the English dialogues of chatterbot-corpus, and a vector for each line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ..backends import minilm
from ..spec.forms import unit_vector
from .extras import needed
from .keeping import Told, folder, locked, seal, unseal
from .vectorset import Array

LANGUAGE = "english"
SECTION = "table of vectors"


class Line(NamedTuple):
    """What was said at once, and what the dialogue is about."""

    text: str
    topic: str


def lines() -> list[Line]:
    """Every line once, in the order of the corpus: by topic, and in that by dialogue. None has a line break.

    Raises UsageProblem when the corpus is not installed.
    """
    yaml = needed("yaml", "agent memory")
    corpus = resources.files(needed("chatterbot_corpus", "agent memory")) / "data" / LANGUAGE
    found: dict[str, Line] = {}
    for file in sorted(corpus.iterdir(), key=lambda file: file.name):
        for text in _said(yaml, file):
            found.setdefault(text, Line(text, file.name.removesuffix(".yml")))
    return list(found.values())


def _said(yaml: Any, file: Any) -> Iterator[str]:
    for dialogue in yaml.safe_load(file.read_text(encoding="utf-8"))["conversations"]:
        for text in dialogue:
            if line := " ".join(str(text).split()):
                yield line


class TableEmbedder:
    """Vectors of texts by looking up those of their lines: their mean, scaled to length 1; a protocols.Embedder.

    So an operation's time is not the model's. A line that is not in the table has a direction of its own, which means
    nothing. `name` tells by what the table was made.
    """

    def __init__(self, name: str, texts: Sequence[str], table: Array) -> None:
        self.name = name
        self.dimension = table.shape[1]
        self.table = table
        self._places = {text: place for place, text in enumerate(texts)}

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> list[list[float]]:
        """See protocols.Embedder. Documents and queries are embedded alike."""
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> list[float]:
        vectors = [
            _direction(line, self.dimension) if (place := self._places.get(line)) is None else self.table[place]
            for line in text.split("\n")
        ]
        mean = np.array(vectors, np.float64).mean(axis=0)
        unit: Array = (mean / np.linalg.norm(mean)).astype(np.float32)
        return unit.tolist()


def directions(texts: Sequence[str]) -> TableEmbedder:
    """Of directions that mean nothing."""
    return TableEmbedder("directions", texts, np.array([_direction(text, 384) for text in texts], np.float32))


def embedder(texts: Sequence[str], cache: Path | None, told: Told) -> TableEmbedder:
    """Of the local MiniLM's vectors, kept in the cache; where it is not installed, of directions that mean nothing."""
    if reason := minilm.missing():
        told(f"{reason}; vectors of texts mean nothing")
        return directions(texts)
    model = minilm.MiniLMEmbedder()
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
    path = folder(cache, "embeddings") / f"{model.name.lower()}-{digest}"
    with locked(path):
        body = unseal(path, SECTION)
        if body is None:
            if path.exists():
                told(f"{path} is damaged: it is made anew")
            told(f"embedding {len(texts):,} lines by {model.name}")
            body = model.encode(texts).astype("<f4").tobytes()
            seal(path, SECTION, body)
    return TableEmbedder(model.name, texts, np.frombuffer(body, "<f4").reshape(len(texts), model.dimension))


@lru_cache(maxsize=10_000)
def _direction(line: str, dimension: int) -> Array:
    seed = int.from_bytes(hashlib.sha256(line.encode()).digest()[:8], "big")
    return np.array(unit_vector(seed, dimension), np.float32)
