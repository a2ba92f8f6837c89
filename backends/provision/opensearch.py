"""Getting an OpenSearch: one that a url names."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec

from ..document_url import HINT, address
from . import Endpoint, EngineUnavailable, Provisioners

PROBE_SECONDS = 10.0
LEAST = 3
"""The oldest major version that is known to do."""


class GivenOpenSearch:
    """Your server. Nothing is started or stopped; only indices named `memassay-…` are touched."""

    def missing(self) -> str | None:
        """See provision.Provisioner."""
        if find_spec("opensearchpy") is not None:
            return None
        return "the module opensearchpy is not installed: pip install 'memassay[opensearch]'"

    @contextmanager
    def start(self, url: str | None) -> Generator[Endpoint]:
        """See provision.Provisioner."""
        if url is None:
            raise EngineUnavailable("no url was given", hint=HINT)
        yield Endpoint(url=url, method="url", detail=probe(url))


def probe(url: str) -> str:
    """Connect once; what is there, without secrets."""
    try:
        where = address(url)
    except ValueError as error:
        raise EngineUnavailable(str(error)) from None
    from opensearchpy.exceptions import OpenSearchException

    from ..opensearch import connect

    try:
        with connect(url, seconds=PROBE_SECONDS) as client:
            version: dict[str, str] = client.info()["version"]
    except OpenSearchException as error:
        raise EngineUnavailable(f"no OpenSearch answers: {where.quiet(str(error))}", hint=HINT) from None
    if version.get("distribution") != "opensearch":
        raise EngineUnavailable(f"what answers at {where.base} is not OpenSearch", hint=HINT)
    if int(version["number"].split(".")[0]) < LEAST:
        raise EngineUnavailable(f"OpenSearch {version['number']} is at {where.base}", hint=f"use {LEAST} or later")
    return f"OpenSearch {version['number']} at {where.base}"


PROVISIONERS: Provisioners = {"url": GivenOpenSearch()}
