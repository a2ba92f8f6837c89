"""The URL of a search engine: `http(s)://user:password@host:port`, and `?verify_certs=false` for a private one."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

HINT = "use http://host:9200 or https://user:password@host:9200, the password percent-encoded"


class Address(msgspec.Struct, frozen=True):
    """A URL taken apart. `base` has no secrets; `login` is user and password, or None."""

    base: str
    login: tuple[str, str] | None
    verify_certs: bool

    @property
    def tls(self) -> bool:
        """Whether it is https."""
        return self.base.startswith("https:")

    def quiet(self, message: str) -> str:
        """The message, unless it repeats the password."""
        if self.login is not None and self.login[1] and self.login[1] in message:
            return "the driver's message is withheld, it repeats the password"
        return message


def address(url: str) -> Address:
    """Take a URL apart. ValueError, without its secrets, when it is none of these."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        raise ValueError("the port is no number") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the URL does not begin with http:// or https:// and a host")
    options = parse_qs(parts.query)
    verify = options.pop("verify_certs", ["true"])[-1]
    if options or verify not in ("true", "false"):
        raise ValueError("the URL may have the option verify_certs=false, and no other")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Address(
        base=f"{parts.scheme}://{host}:{port or 9200}{parts.path.rstrip('/')}",
        login=None if parts.username is None else (unquote(parts.username), unquote(parts.password or "")),
        verify_certs=verify == "true",
    )
