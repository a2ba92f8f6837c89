"""JSON Schema for working memory: what a schema may be, and whether a value satisfies it; validated by jsonschema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import jsonschema
import msgspec
from jsonschema_specifications import REGISTRY  # pyright: ignore[reportMissingTypeStubs]
from referencing.exceptions import Unresolvable

from .errors import ConfigurationError, InvalidRequest
from .values import json_value, show

_jsonschema = cast(Any, jsonschema)


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what is no JSON Schema: ConfigurationError (WM-1e). Without `$schema` it is one of draft 7."""
    _validator(schema)


def check_value(schema: Mapping[str, Any], value: str) -> None:
    """Refuse a text that is no JSON, or that the schema does not allow: InvalidRequest (WM-1a).

    ConfigurationError for a schema with a `$ref` to what is not in it: nothing is fetched.
    """
    validator = _validator(schema)
    try:
        document = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        raise InvalidRequest(
            f"the working memory is no JSON: {show(value)}", hint="pass the JSON text of a value", clause="WM-1a"
        ) from None
    try:
        found = _jsonschema.exceptions.best_match(validator.iter_errors(document))
    except Unresolvable as error:
        raise _no_schema(f"{show(error.ref)} is not in it", hint="put it under $defs or definitions") from None
    except RecursionError:
        raise _no_schema("it refers to itself without end", hint="let it end") from None
    if found is not None:
        raise InvalidRequest(
            f"the working memory does not fit its schema at {found.json_path}: {found.message[:200]}",
            hint="pass what the schema allows",
            clause="WM-1a",
        )


def _validator(schema: Mapping[str, Any]) -> Any:
    try:
        json_value(schema, "the schema")
    except InvalidRequest as error:
        raise _no_schema(error.message, hint=error.hint) from None
    return _compiled(msgspec.json.encode(schema))


@lru_cache(64)
def _compiled(text: bytes) -> Any:
    schema: dict[str, Any] = msgspec.json.decode(text)
    kind = _jsonschema.Draft7Validator
    if "$schema" in schema:
        dialect = schema["$schema"]
        kind = _jsonschema.validators.validator_for(schema, default=None) if isinstance(dialect, str) else None
        if kind is None:
            raise _no_schema(f"its $schema is {show(dialect)}", hint="name a published draft, or leave it out")
    try:
        kind.check_schema(schema)
    except _jsonschema.SchemaError as error:
        raise _no_schema(f"{error.json_path}: {error.message[:200]}", hint="mend it there") from None
    return kind(schema, registry=REGISTRY)


def _no_schema(reason: str, *, hint: str) -> ConfigurationError:
    return ConfigurationError(f"the schema of working memory cannot be used: {reason}", hint=hint, clause="WM-1e")
