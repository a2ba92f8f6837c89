"""Titlers whose titles a program can foresee, and a gate that says when they may make them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from .embedding import text_of
from .types import Message

IN_THE_WAY = "made in the caller's way"
"""The title that a store gets which does not let a save return before the title is made."""

PATIENCE = 5.0
"""Seconds after which a title that was waited for in the caller's way is given up."""


class LiteralTitler:
    """`About ` and the first message's text, between what it is told: `[model] About … (instructions)`.

    A text that starts with `!` makes it fail; one that starts with `?` makes an empty title, and `0` one that is none.
    """

    def __call__(self, messages: Sequence[Message], *, model: str | None, instructions: str | None) -> str:
        """See protocols.Titler."""
        text = (text_of(messages[0].content) or "nothing") if messages else "nobody"
        if text.startswith("!"):
            raise RuntimeError(f"told to fail by {text[:20]!r}")
        if text.startswith("?"):
            return ""
        if text.startswith("0"):
            return "\0"
        told = f"[{model}] " if model is not None else ""
        return f"{told}About {text[:100]}" + (f" ({instructions})" if instructions is not None else "")


class Gate:
    """Holds a titler up until it is opened. A store whose own call waits for the title gets IN_THE_WAY instead."""

    def __init__(self, titler: LiteralTitler) -> None:
        self._titler = titler
        self._opened = threading.Event()
        self._caller = threading.get_ident()

    def open(self) -> None:
        """Let titles be made."""
        self._opened.set()

    def shut(self) -> None:
        """Hold titles up."""
        self._opened.clear()

    def __call__(self, messages: Sequence[Message], *, model: str | None, instructions: str | None) -> str:
        """See protocols.Titler."""
        own = threading.get_ident() == self._caller
        if not (self._opened.is_set() if own else self._opened.wait(PATIENCE)):
            return IN_THE_WAY
        return self._titler(messages, model=model, instructions=instructions)
