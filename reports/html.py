"""Pages of HTML: what of any text they show, and the policy by which nothing runs or loads but what is in the page."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from ..harness.artefact import Case, Verdict
from . import findings, matrix
from .values import comparison, cut, visible

LONGEST = 2_000
"""Characters of any one text before it is cut."""

OPERATIONS = 200
"""Operations of a program that are shown."""

SYMBOLS: dict[Verdict, str] = {
    "pass": "✓",
    "fail": "✗",
    "flaky": "≈",
    "error": "!",
    "known": "◐",
    "unsupported": "–",
    "vacuous": "○",
    "not-run": "·",
}
"""Beside the word, so that no verdict is told by its colour alone."""

MEANINGS: dict[Verdict, str] = {
    "pass": "put to the test often enough, and no program deviated",
    "fail": "a program deviated, in every rerun",
    "flaky": "a program deviated, in some of its reruns: a failure with its rate",
    "error": "the store raised what the specification does not name, or hung",
    "known": "fails as its adapter's file of known failures says",
    "unsupported": "needs a capability that the backend does not declare",
    "vacuous": "the programs did not put it to the test, so nothing was learned",
    "not-run": "nothing was learned, for the reason given",
}

CITATION = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")
"""A public report: owner/repository#number."""


class Link(NamedTuple):
    """A page of the site, as the others lead to it."""

    file: str
    title: str


def render(template: str, *, scripts: Sequence[str] = (), **context: Any) -> bytes:
    """A page. scripts: what runs in it beside its own, in order."""
    environment = _environment()
    style, own = _source(environment, "style.css"), _source(environment, "script.js")
    running = [*scripts, own]
    text = environment.get_template(template).render(
        policy=_policy(style, running),
        style=Markup(style),
        scripts=[Markup(script) for script in running],
        **context,
    )
    return text.encode()


def source(name: str) -> str:
    """A file of the templates, as it is."""
    return _source(_environment(), name)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__ or "", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    added: dict[str, Any] = {
        "comparison": _comparison,
        "count": findings.count,
        "lacking": matrix.lacking,
        "name": _name,
        "operations": _operations,
        "report_url": _report_url,
        "symbol": SYMBOLS.__getitem__,
        "thousands": "{:,}".format,
        "words": _words,
    }
    for name, function in added.items():
        environment.filters[name] = function
    return environment


def _shown(value: Any) -> Any:
    """Every text that a template shows: no longer than can be read, nothing in it that hides or reorders."""
    return visible(cut(value, LONGEST)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _name(text: str) -> str:
    """A name for a table's head."""
    return cut(text, 80)


def _words(parts: Sequence[str]) -> str:
    """What a filter looks through."""
    return cut(" ".join(parts).lower(), LONGEST)


def _source(environment: jinja2.Environment, name: str) -> str:
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _policy(style: str, scripts: Sequence[str]) -> str:
    """The content security policy: this very style and these scripts, and nothing from anywhere."""
    allowed = " ".join(f"'{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src {allowed}; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _operations(case: Case) -> list[findings.Line]:
    return findings.around(case, OPERATIONS)


def _comparison(case: Case) -> list[tuple[str, str, str]]:
    return list(comparison(case.expected, case.got))


def _report_url(report: str) -> str:
    """Where a public report is; empty when it is named otherwise."""
    found = CITATION.fullmatch(report)
    return f"https://github.com/{found[1]}/issues/{found[2]}" if found else ""
