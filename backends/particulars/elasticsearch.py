"""Elasticsearch: settings and statistics of a namespace's indices."""

from __future__ import annotations

from ..elasticsearch import connect
from . import Particulars
from ._documents import pattern, told


def ask(url: str, namespace: str, index: str) -> Particulars:
    """See particulars.particulars."""
    with connect(url) as client:
        where = pattern(namespace)
        settings = client.indices.get_settings(index=where, flat_settings=True, include_defaults=True)
        return told(settings.body, client.indices.stats(index=where).body)
