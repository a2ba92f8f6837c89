"""`memassay new-adapter`: a working adapter in one file, to be given an engine."""

from __future__ import annotations

import importlib.util
import inspect
import keyword
import re
import sys
from pathlib import Path

from . import adapter_template, output
from .exits import UsageProblem
from .plain import bounded

LONGEST = 40
"""Characters of a module's name."""


def write(name: str, folder: Path) -> tuple[Path, str]:
    """Write `<name>.py` into the folder; its path and the class to verify. Raises UsageProblem."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name, re.ASCII) or len(name) > LONGEST or _keyword(name):
        raise UsageProblem(
            f"{bounded(name, 100)!r} cannot be a module's name",
            hint=f"use words of lower-case letters and digits, joined by _, at most {LONGEST} characters, no keyword",
        )
    path = folder / f"{name}.py"
    if not folder.is_dir():
        raise UsageProblem(f"{folder} is no directory", hint="make it first")
    if path.exists():
        raise UsageProblem(f"{path} exists", hint="choose another name, or another directory with -o")
    if _taken(name, folder):
        raise UsageProblem(
            f"there is a module {name!r} already, which would be imported instead of yours, or yours instead of it",
            hint=f"choose another name, such as {name}_memory",
        )
    camel = "".join(part.capitalize() for part in name.split("_"))
    output.write(path, source(name, camel).encode())
    return path, f"{camel}Backend"


def _keyword(name: str) -> bool:
    return keyword.iskeyword(name) or keyword.issoftkeyword(name)


def _taken(name: str, folder: Path) -> bool:
    """Whether the name is Python's, an installed module's, or a package's beside it."""
    if name in sys.stdlib_module_names or (folder / name / "__init__.py").exists():
        return True
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return True
    return found is not None and found.origin is not None  # a mere folder of that name does no harm


def source(name: str, camel: str) -> str:
    """The template under the adapter's own names, importing memassay as a stranger does."""
    template = inspect.getsource(adapter_template)
    renamed = re.sub(r"\bexample\b", name, template)
    renamed = re.sub(r"\bExample(?=Backend|Memory)", camel, renamed)
    return re.sub(r"^from \.\.spec", "from memassay.spec", renamed, flags=re.MULTILINE)
