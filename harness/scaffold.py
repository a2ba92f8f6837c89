"""`memassay new-adapter`: a working adapter in one file, to be given an engine."""

from __future__ import annotations

import inspect
import keyword
import re
from pathlib import Path

from . import adapter_template
from .exits import UsageProblem


def write(name: str, folder: Path) -> tuple[Path, str]:
    """Write `<name>.py` into the folder; its path and the class to verify. Raises UsageProblem."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UsageProblem(f"{name!r} cannot be a module's name", hint="use lower-case letters, digits and _")
    path = folder / f"{name}.py"
    if not folder.is_dir():
        raise UsageProblem(f"{folder} is no directory", hint="make it first")
    if path.exists():
        raise UsageProblem(f"{path} exists", hint="choose another name, or another directory with -o")
    camel = "".join(part.capitalize() for part in name.split("_"))
    try:
        path.write_text(source(name, camel), encoding="utf-8")
    except OSError as error:
        raise UsageProblem(f"{path} cannot be written: {error.strerror}", hint="choose another directory") from None
    return path, f"{camel}Backend"


def source(name: str, camel: str) -> str:
    """The template under the adapter's own names, importing memassay as a stranger does."""
    template = inspect.getsource(adapter_template)
    renamed = re.sub(r"\bexample\b", name, template)
    renamed = re.sub(r"\bExample(?=Backend|Memory)", camel, renamed)
    return re.sub(r"^from \.\.spec", "from memassay.spec", renamed, flags=re.MULTILINE)
