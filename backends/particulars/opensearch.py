"""OpenSearch: settings and statistics of a namespace's indices."""

from __future__ import annotations

from ..opensearch import connect
from . import Particulars
from ._documents import pattern, told


def ask(url: str, namespace: str, index: str) -> Particulars:
    """See particulars.particulars."""
    with connect(url) as client:
        where, flat = pattern(namespace), {"flat_settings": "true", "include_defaults": "true"}
        return told(client.indices.get_settings(index=where, params=flat), client.indices.stats(index=where))
