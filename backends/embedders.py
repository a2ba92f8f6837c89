"""Embedders by name: `provider/model` of OpenAI, Google and OpenRouter by their clients, and the local MiniLM (SEM-6).

    embedder("openai/text-embedding-3-small")          OPENAI_API_KEY
    embedder("google/gemini-embedding-001")            GOOGLE_API_KEY, else GOOGLE_GENERATIVE_AI_API_KEY
    embedder("openrouter/openai/text-embedding-3-small")   OPENROUTER_API_KEY
    embedder("local/all-MiniLM-L6-v2")                 nothing: see minilm.py

What is wrong with a name, a dimension or a key is a ConfigurationError before anything is sent. A request that fails
in passing (a lost connection, 408, 409, 429, 5xx) is made again, a few times and ever later, or when Retry-After says;
what fails for good is an EmbedderError. A key is in no message, repr or log of ours.
"""

from __future__ import annotations

import email.utils
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal, Protocol, cast

import msgspec

from ..spec.errors import ConfigurationError, EmbedderError
from ..spec.protocols import Embedder
from ..spec.values import show
from .minilm import MiniLMEmbedder

Kind = Literal["document", "query"]
Sleep = Callable[[float], None]

ATTEMPTS = 6
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before a request is made again; each wait is up to twice the one before."""

LONGEST_RETRY_AFTER = 60.0
"""A server that wants more patience than this many seconds is not waited for."""

REQUEST_SECONDS = 60.0

BATCH_CHARACTERS = 100_000
"""Characters of one request, if it has more than one text: OpenAI takes 300,000 tokens."""

PASSING = frozenset({408, 409, 429})
"""Statuses, beside 5xx, that another attempt may not get."""

OPENROUTER_URL = "https://openrouter.ai/api/v1"


class Model(msgspec.Struct, frozen=True):
    """What is known of a model: its dimension, and whether it can be asked for fewer."""

    dimension: int
    shorter: bool = True


KNOWN: dict[str, Model] = {
    "openai/text-embedding-3-small": Model(1536),
    "openai/text-embedding-3-large": Model(3072),
    "openai/text-embedding-ada-002": Model(1536, shorter=False),
    "google/gemini-embedding-001": Model(3072),
}
"""By vendor and model, as OpenRouter names them too. Of others the dimension has to be given."""

LOCAL = f"local/{MiniLMEmbedder.name}"


class Provider(msgspec.Struct, frozen=True):
    """Where keys come from, which package is the client, and how many texts a request may hold."""

    variables: tuple[str, ...]
    module: str
    extra: str
    batch: int


PROVIDERS: dict[str, Provider] = {
    "openai": Provider(("OPENAI_API_KEY",), "openai", "openai", 512),
    "google": Provider(("GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"), "google.genai", "google", 100),
    "openrouter": Provider(("OPENROUTER_API_KEY",), "openai", "openai", 512),
}


class Failure(Exception):
    """A request that failed: in passing, or for good. `after` is what Retry-After says, in seconds."""

    def __init__(self, reason: str, *, passing: bool, after: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.passing = passing
        self.after = after


class Client(Protocol):
    """One request to a provider."""

    def __call__(self, texts: Sequence[str], kind: Kind) -> Sequence[tuple[int, Sequence[Any]]]:
        """The vectors, each with the number of its text. Raises Failure."""
        ...


def embedder(
    name: str,
    *,
    dimension: int | None = None,
    base_url: str | None = None,
    environment: Mapping[str, str] = os.environ,
    sleep: Sleep = time.sleep,
) -> Embedder:
    """The embedder of this name. Raises ConfigurationError.

    dimension: of a model that is not in KNOWN; or fewer than it has, for one that can be asked for fewer.
    base_url: in place of the provider's own address. environment: where the key is. sleep: what waiting is.
    """
    provider, model = _parsed(name)
    if provider == "local":
        if name != LOCAL or dimension not in (None, MiniLMEmbedder.dimension) or base_url is not None:
            raise ConfigurationError(
                f"there is no embedder {show(name)} as asked for",
                hint=f"use {LOCAL}, of {MiniLMEmbedder.dimension} dimensions",
                clause="SEM-6",
            )
        return MiniLMEmbedder()
    components, asked = _dimension(name, provider, model, dimension)
    key, chosen = _key(provider, environment), PROVIDERS[provider]
    if _lacks(chosen.module) or _lacks("tenacity"):
        raise ConfigurationError(
            f"{name} needs the package {chosen.module}", hint=f"pip install 'memassay[{chosen.extra}]'", clause="SEM-6"
        )
    match provider:
        case "google":
            client = _google(model, key, base_url, asked)
        case "openrouter":
            client = _openai(model, key, base_url or OPENROUTER_URL, asked, foreign=True)
        case _:
            client = _openai(model, key, base_url, asked)
    return RemoteEmbedder(name, components, client, batch=chosen.batch, sleep=sleep)


def _parsed(name: object) -> tuple[str, str]:
    if not isinstance(name, str) or not re.fullmatch(r"[a-z]+/[\x21-\x7e]+", name):
        raise ConfigurationError(
            f"the embedder is {show(name)}", hint="write provider/model, as in " + next(iter(KNOWN)), clause="SEM-6"
        )
    provider, _, model = name.partition("/")
    if provider != "local" and provider not in PROVIDERS:
        raise ConfigurationError(
            f"there is no provider {show(provider)}", hint="use " + ", ".join((*PROVIDERS, "local")), clause="SEM-6"
        )
    if provider == "openrouter" and not re.fullmatch(r"[^/]+/[^/]+", model):
        raise ConfigurationError(
            f"{show(model)} is no model of OpenRouter's", hint="write openrouter/vendor/model", clause="SEM-6"
        )
    return provider, model


def _dimension(name: str, provider: str, model: str, wanted: object) -> tuple[int, int | None]:
    """How many components vectors have, and how many are to be asked for; None for all that the model has."""
    known = KNOWN.get(model if provider == "openrouter" else name)
    if wanted is None:
        if known is None:
            raise ConfigurationError(f"the dimension of {name} is not known", hint="give dimension", clause="SEM-6")
        return known.dimension, None
    if type(wanted) is not int or wanted < 1:
        raise ConfigurationError(f"dimension is {show(wanted)}", hint="pass an integer ≥ 1", clause="SEM-6")
    if known is None or wanted == known.dimension:
        return wanted, None
    if wanted > known.dimension or not known.shorter:
        raise ConfigurationError(
            f"{name} has {known.dimension} dimensions and cannot have {wanted}", hint="leave it out", clause="SEM-6"
        )
    return wanted, wanted


def _key(provider: str, environment: Mapping[str, str]) -> str:
    variables = PROVIDERS[provider].variables
    for variable in variables:
        key = environment.get(variable, "").strip()
        if key and not re.fullmatch(r"[\x21-\x7e]+", key):
            raise ConfigurationError(f"{variable} holds what is no key", hint="see what is in it", clause="SEM-6")
        if key:
            return key
    raise ConfigurationError(f"there is no key for {provider}", hint="set " + " or ".join(variables), clause="SEM-6")


def _lacks(module: str) -> bool:
    try:
        return find_spec(module) is None
    except ModuleNotFoundError:  # its parent is not there
        return True


class RemoteEmbedder:
    """A model of a provider's; implements protocols.Embedder. Threads may share one."""

    def __init__(self, name: str, dimension: int, client: Client, *, batch: int, sleep: Sleep) -> None:
        self.name = name
        self.dimension = dimension
        self._client = client
        self._batch = batch
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"embedder({self.name!r}, dimension={self.dimension})"

    def embed(self, texts: Sequence[str], kind: Kind) -> list[list[float]]:
        """See protocols.Embedder. Raises EmbedderError; then nothing of the batch is returned."""
        return [vector for some in _batches(texts, self._batch) for vector in self._embedded(some, kind)]

    def _embedded(self, texts: Sequence[str], kind: Kind) -> list[list[float]]:
        from tenacity import Retrying, retry_if_exception, stop_after_attempt

        attempts = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=lambda state: _wait(state.attempt_number, cast(Failure, state.outcome and state.outcome.exception())),
            retry=retry_if_exception(_again),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            answer = attempts(self._client, texts, kind)
        except Failure as failure:
            raise EmbedderError(f"{self.name}: {failure.reason}", clause="SEM-4a") from None
        return _checked(answer, len(texts), self.dimension, self.name)


def _batches(texts: Sequence[str], most: int) -> Iterator[list[str]]:
    batch, size = list[str](), 0
    for text in texts:
        if batch and (len(batch) == most or size + len(text) > BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _again(error: BaseException) -> bool:
    return isinstance(error, Failure) and error.passing and (error.after or 0) <= LONGEST_RETRY_AFTER


def _wait(attempt: int, failure: Failure) -> float:
    """Seconds: what the server says; else twice as long each time, less up to a quarter, so that few come together."""
    if failure.after is not None:
        return failure.after
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1))
    return longest * (1 - 0.25 * int.from_bytes(os.urandom(2)) / 0xFFFF)


def _checked(answer: Sequence[tuple[int, Sequence[Any]]], texts: int, dimension: int, name: str) -> list[list[float]]:
    """The vectors in the order of their texts. EmbedderError unless there is one of each, as it should be."""

    def wrong(reason: str) -> EmbedderError:
        return EmbedderError(f"{name}: {reason}", hint="nothing of the answer was used", clause="SEM-4a")

    if len(answer) != texts:
        raise wrong(f"{len(answer)} vectors came for {texts} texts")
    by_number = {number: vector for number, vector in answer if type(number) is int}
    if by_number.keys() != {*range(texts)}:
        raise wrong("the vectors are not numbered as their texts are")
    vectors: list[list[float]] = []
    for number in range(texts):
        vector = by_number[number]
        if not isinstance(vector, list | tuple):
            raise wrong("a vector is no list")
        if len(vector) != dimension:
            raise wrong(f"a vector has {len(vector)} components instead of {dimension}")
        if not all(type(each) in (int, float) and math.isfinite(each) for each in vector):
            raise wrong("a component is no finite number")
        vectors.append([float(each) for each in vector])
    return vectors


def status_failure(status: int, headers: Mapping[str, str], code: object = None) -> Failure:
    """The failure that an answer of this status is. Of what it says a short code is kept: the rest may be a secret."""
    said = f" ({code})" if isinstance(code, str) and re.fullmatch(r"[A-Za-z_]{1,64}", code) else ""
    return Failure(
        f"the answer was {status}{said}",
        passing=status in PASSING or status >= 500,
        after=_retry_after(headers.get("retry-after")),
    )


def _retry_after(value: str | None) -> float | None:
    """Seconds that a Retry-After names, as a number or a date; None when it names none."""
    if value is None:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d+)?", value.strip()):
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _openai(model: str, key: str, base_url: str | None, dimensions: int | None, *, foreign: bool = False) -> Client:
    """OpenAI's client, also for who speaks as OpenAI does (`foreign`)."""
    import openai

    # The organisation and project of OpenAI's own variables are nobody else's business.
    headers: Any = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()} if foreign else {}
    client = openai.OpenAI(
        api_key=key, base_url=base_url, max_retries=0, timeout=REQUEST_SECONDS, default_headers=headers
    )

    def request(texts: Sequence[str], kind: Kind) -> Sequence[tuple[int, Sequence[Any]]]:
        given: dict[str, Any] = {} if dimensions is None else {"dimensions": dimensions}
        try:
            answer = client.embeddings.create(model=model, input=list(texts), encoding_format="float", **given)
        except openai.APIStatusError as error:
            raise status_failure(error.status_code, error.response.headers, error.code) from None
        except openai.APIConnectionError as error:
            raise Failure(f"the connection failed ({type(error).__name__})", passing=True) from None
        except Exception as error:  # noqa: BLE001 - whatever it makes of an answer that is none
            raise Failure(f"the answer cannot be read ({type(error).__name__})", passing=False) from None
        return _rows(lambda: [(each.index, each.embedding) for each in answer.data])

    return request


def _google(model: str, key: str, base_url: str | None, dimensions: int | None) -> Client:
    """Google's client. Documents and queries are embedded as what they are."""
    from google import genai
    from google.genai import errors, types

    options = types.HttpOptions(base_url=base_url, timeout=int(REQUEST_SECONDS * 1000))
    client: Any = genai.Client(api_key=key, vertexai=False, http_options=options)

    def request(texts: Sequence[str], kind: Kind) -> Sequence[tuple[int, Sequence[Any]]]:
        task = "RETRIEVAL_QUERY" if kind == "query" else "RETRIEVAL_DOCUMENT"
        config = types.EmbedContentConfig(task_type=task, output_dimensionality=dimensions)
        try:
            answer = client.models.embed_content(model=model, contents=list(texts), config=config)
        except errors.APIError as error:
            headers: Any = getattr(cast(Any, error).response, "headers", None) or {}
            raise status_failure(error.code, headers, error.status) from None
        except Exception as error:  # noqa: BLE001 - whatever it makes of an answer that is none
            if _lost(error):
                raise Failure(f"the connection failed ({type(error).__name__})", passing=True) from None
            raise Failure(f"the answer cannot be read ({type(error).__name__})", passing=False) from None
        return _rows(lambda: list(enumerate(each.values for each in answer.embeddings or ())))

    return request


def _lost(error: Exception) -> bool:
    """Whether a connection failed. The client hands on what its transport, which is of httpx or httpx2, raises."""
    return isinstance(error, OSError) or any(kind.__name__ == "TransportError" for kind in type(error).__mro__)


def _rows(read: Callable[[], list[tuple[Any, Any]]]) -> list[tuple[Any, Any]]:
    """What is in an answer, which the clients do not check."""
    try:
        return read()
    except (AttributeError, TypeError) as error:
        raise Failure(f"the answer cannot be read ({type(error).__name__})", passing=False) from None
