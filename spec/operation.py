"""What an operation of a program is: one call, its arguments as forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, cast

import msgspec
from msgspec import UNSET

from .forms import TAGS, Form, FormError, resolve, show

Role = Literal["write", "read", "observe", "control"]
Target = Literal["memory", "index"]
"""Which client of the namespace an operation calls."""


class Operation(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="op", omit_defaults=True, forbid_unknown_fields=True
):
    """One call on a store, or a step of the world around it. Fields are forms; an absent one is not passed.

    `client` is which client of the namespace makes the call.
    """

    client: int = 0
    role: ClassVar[Role] = "read"
    target: ClassVar[Target] = "memory"

    def arguments(self) -> dict[str, Any]:
        """The call's arguments, resolved afresh."""
        return {name: self.argument(name, form) for name, form in self.given().items()}

    def given(self) -> dict[str, Form]:
        """The fields that are set, as forms."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name not in ("client", "label")}
        return {name: form for name, form in fields.items() if form is not UNSET}

    def argument(self, name: str, form: Form) -> Any:
        """One argument, resolved; operations with structured arguments override this."""
        return resolve(form)

    def call(self, client: Any, arguments: dict[str, Any]) -> Any:
        """Make the call on a Memory or a VectorIndex."""
        return getattr(client, self.name)(**arguments)

    @property
    def name(self) -> str:
        """The operation's name, as in a case file."""
        return cast(str, self.__struct_config__.tag)

    def threads(self) -> Iterator[Any]:
        """Ids of the threads this operation names, valid or not."""
        for field in ("thread_id", "source_thread_id", "new_thread_id", "id"):
            form = getattr(self, field, UNSET)
            if form is not UNSET and form is not None:
                yield resolve(form)

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={show(form)}" for name, form in self.given().items())
        return f"{self.name}({shown})" + (f" by client {self.client}" if self.client else "")


def struct(kind: type[Any], form: Form) -> Any:
    """A plain object as the keyword arguments of a struct; any other form as itself, for calls that are wrong."""
    if not isinstance(form, dict) or next(iter(cast("dict[str, Form]", form)), "") in TAGS:
        return resolve(form)
    try:
        return kind(**{name: resolve(item) for name, item in cast("dict[str, Form]", form).items()})
    except TypeError as error:
        raise FormError(f"{kind.__name__}: {error}") from error


def structs(kind: type[Any], form: Form) -> Any:
    """A list of plain objects as structs; any other form as itself."""
    return [struct(kind, item) for item in cast("list[Form]", form)] if isinstance(form, list) else resolve(form)
