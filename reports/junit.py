"""Results as JUnit XML: a test suite per backend, a test case per clause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree as xml

from ..harness.artefact import ClauseResult, Result
from .findings import lines
from .matrix import Column, columns

NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped."""


def document(results: Sequence[Result], cases: str) -> bytes:
    """The XML. `cases` is the folder of the case files, for the replay commands."""
    root = xml.Element("testsuites", name="memassay")
    for column in columns(results):
        root.append(_suite(column, cases))
    xml.indent(root)
    return xml.tostring(root, encoding="utf-8", xml_declaration=True)


def _suite(column: Column, cases: str) -> xml.Element:
    result, backend = column.result, column.backend
    suite = xml.Element("testsuite", name=_text(column.label))
    kinds: Counter[str] = Counter()
    for clause, found in backend.clauses.items():
        case = xml.SubElement(suite, "testcase", classname=_text(f"memassay.{column.label}"), name=_text(clause))
        kind = _kind(found, asked=clause in result.selected)
        if kind:
            kinds[kind] += 1
            detail = xml.SubElement(case, kind, message=_text(_message(found)), type=found.verdict)
            detail.text = _text("\n".join(line for finding in found.findings for line in lines(finding, cases)))
    suite.set("tests", str(len(backend.clauses)))
    suite.set("failures", str(kinds["failure"]))
    suite.set("errors", str(kinds["error"]))
    suite.set("skipped", str(kinds["skipped"]))
    suite.set("time", str(result.run.seconds_by_backend.get(backend.name, 0)))
    return suite


def _kind(found: ClauseResult, *, asked: bool) -> str:
    """The element that tells the verdict. What was asked for and not learned is an error, never merely skipped."""
    match found.verdict:
        case "pass":
            return ""
        case "fail" | "flaky":
            return "failure"
        case "error":
            return "error"
        case "vacuous" | "not-run" if asked:
            return "error"
        case _:
            return "skipped"


def _message(found: ClauseResult) -> str:
    signatures = ", ".join(str(finding.case.signature) for finding in found.findings)
    return signatures or found.reason or found.verdict


def _text(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)
