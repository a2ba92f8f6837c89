"""Result files, read back: of a version that is known, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from . import artefact
from .artefact import Result
from .exits import UsageProblem

VERSION = 1
"""The version of results that this memassay reads and writes."""


class _Head(msgspec.Struct):
    version: Any = None


def read(path: Path) -> Result:
    """A result from a file. Raises UsageProblem."""
    hint = "give a file that `memassay verify --json` wrote"
    try:
        data = path.read_bytes()
        version = msgspec.json.decode(data, type=_Head).version
        if _unknown(version):
            raise UsageProblem(
                f"{path} is of version {version}; this memassay ({artefact.own_version()}) reads results of "
                f"version {VERSION}",
                hint="report it with the memassay that wrote it",
            )
        if version is None:
            raise UsageProblem(f"{path} is no result: it has no version", hint=hint)
        return artefact.decode_result(data)
    except OSError as error:
        raise UsageProblem(f"{path} cannot be read: {error.strerror}", hint=hint) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path} is no result: {error}", hint=hint) from None
    except RecursionError:
        raise UsageProblem(f"{path} is no result: it is nested too deeply", hint=hint) from None


def _unknown(version: Any) -> bool:
    """Whether it is a version, but another."""
    return isinstance(version, int) and not isinstance(version, bool) and version != VERSION
