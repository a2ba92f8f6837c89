"""Keeps passwords out of everything that is printed or written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import parse_qsl, quote, unquote, urlsplit

HIDDEN = "***"
SECRET_PARAMETERS = frozenset({"password", "passwd", "pwd", "token", "authtoken", "auth_token", "api_key", "apikey"})


IN_A_URL = re.compile(r"(://[^\s/?#:@]*:)[^\s/?#@]+(@)")
"""The password of any URL."""


class Redactor:
    """Replaces the secrets of some URLs wherever they show up, and the passwords of any other URL."""

    def __init__(self, urls: Iterable[str] = ()) -> None:
        found = {secret for url in urls for secret in _secrets(url)}
        self._secrets = sorted(found, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return IN_A_URL.sub(rf"\1{HIDDEN}\2", text)

    def value(self, value: Any) -> Any:
        """A plain value without secrets, keys included."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.value(key): self.value(item) for key, item in cast("dict[Any, Any]", value).items()}
            case list() | tuple():
                return [self.value(item) for item in cast("list[Any]", value)]
            case _:
                return value


def _secrets(url: str) -> Iterable[str]:
    """Each secret as it stands in the URL and as drivers may print it."""
    try:
        parts = urlsplit(url)
        raw = [parts.password or "", *(v for k, v in parse_qsl(parts.query) if k.lower() in SECRET_PARAMETERS)]
    except ValueError:
        raw = [url]
    for secret in raw:
        yield from {secret, unquote(secret), quote(secret, safe="")} - {""}
