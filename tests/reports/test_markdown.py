"""The Markdown summary: counts and failures within GitHub's limit, and nothing that stores say is markup."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import pytest
from memassay.harness.artefact import ClauseResult, Finding, Result
from memassay.reports import markdown
from memassay.reports.given import Given
from memassay.spec.program import CreateThread, Program

MakeResult = Callable[..., Result]
MakeFinding = Callable[..., Finding]

HOSTILE = "``` | `a` <script>alert(1)</script> **b** [l](http://x) @octocat \\\r\n\n# h \u202e\x1b"
GITHUB = 1 << 20
"""Bytes of a summary that GitHub takes."""


def summary(*results: Result) -> str:
    return markdown.summary(Given(results=results)).decode()


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| ---")]


def outside_code(text: str) -> str:
    """What Markdown reads as markup."""
    text = re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]+`", "", text)


def failing(result: MakeResult, *found: Finding) -> Result:
    return result({"ORD-5": ClauseResult(verdict="fail", findings=list(found))})


def test_the_same_results_give_the_same_bytes(result: MakeResult, finding: MakeFinding) -> None:
    assert summary(failing(result, finding())) == summary(failing(result, finding()))


def test_counts_have_denominators(result: MakeResult) -> None:
    shown = summary(result({"ORD-5": ClauseResult(verdict="vacuous")}, method="embedded", detail="a file"))
    assert rows(shown)[1] == (
        "| `store` | `1.0` | `embedded: a file` | **1 of 2** | 1 vacuous | 1,234 of 1,234 | 5, smoke |"
    )


def test_the_matrix_has_titles_and_verdicts(result: MakeResult) -> None:
    shown = summary(result({"ORD-5": ClauseResult(verdict="vacuous")}))
    assert rows(shown)[-1] == r"| `ORD-5` | total and has\_more | **vacuous** |"


def test_an_engine_s_error_is_told(result: MakeResult) -> None:
    assert "- `store`: the engine failed: `port taken`" in summary(result(error="port taken"))


def test_a_partial_result_says_so(result: MakeResult) -> None:
    assert "- `store`: interrupted, these results are partial" in summary(result(interrupted=True))


def test_a_failure_is_a_program_with_expected_and_got(result: MakeResult, finding: MakeFinding) -> None:
    shown = summary(failing(result, finding()))
    assert shown.endswith(
        """\
### Failures: 1 of 1 shown

**fail** `ORD-5 on store: total of recall`

```text
  observe()
> recall(thread_id='t1', per_page=1)
total of recall
  expected: 0
  got:      1
seen in 7 programs; 3 of 3 reruns
replay: memassay replay cases/store/ORD-5-total-recall.json
```

"""
    )


def test_without_failures_there_is_no_such_section(result: MakeResult) -> None:
    assert "Failures" not in summary(result())


def test_what_does_not_fit_is_counted(result: MakeResult, finding: MakeFinding) -> None:
    shown = summary(failing(result, *[finding(expected="é" * 5000)] * 3000))
    (there,) = re.findall(r"Failures: (\d+) of 3000 shown", shown)
    assert f"{3000 - int(there):,} more failures: see `index.html`." in shown


def test_many_failures_stay_within_the_limit(result: MakeResult, finding: MakeFinding) -> None:
    assert len(summary(failing(result, *[finding(expected="é" * 5000)] * 3000)).encode()) < GITHUB


def test_many_backends_stay_within_the_limit(result: MakeResult) -> None:
    many = [result(name=HOSTILE * 9, engine=HOSTILE * 9, error=HOSTILE * 99)] * 1000
    assert len(summary(*many).encode()) < GITHUB


def test_backends_that_do_not_fit_are_counted(result: MakeResult) -> None:
    assert "900 more backends, the matrix and failures: see `index.html`." in summary(
        *[result(name=HOSTILE * 9, error=HOSTILE * 99)] * 1000
    )


def test_a_long_value_leaves_the_evidence(result: MakeResult, finding: MakeFinding) -> None:
    program = Program(operations=(CreateThread(resource_id="x" * (1 << 20)),))
    assert "  got:      1\n" in summary(failing(result, finding(program=program, index=0)))


def test_a_long_value_is_cut_with_its_length(result: MakeResult, finding: MakeFinding) -> None:
    program = Program(operations=(CreateThread(resource_id="x" * (1 << 20)),))
    assert "(1,048,607 characters)" in summary(failing(result, finding(program=program, index=0)))


@pytest.mark.parametrize("place", ["name", "engine", "method", "detail", "error"])
def test_hostile_text_is_no_markup(result: MakeResult, place: str) -> None:
    markup = outside_code(summary(result(**{place: HOSTILE})))
    assert {"<", "[", "@", "```"}.isdisjoint(re.sub(r"</?(code|details|summary)>", "", markup))


@pytest.mark.parametrize("place", ["name", "engine", "method", "detail"])
def test_hostile_text_leaves_the_table_whole(result: MakeResult, place: str) -> None:
    assert {line.count("|") for line in rows(summary(result(**{place: HOSTILE})))[:2]} == {8}


def test_hostile_text_stays_in_its_block(result: MakeResult, finding: MakeFinding) -> None:
    named = msgspec.structs.replace(finding(expected=HOSTILE), file=HOSTILE)
    assert "octocat" not in outside_code(summary(failing(result, named)))


def test_controls_and_bidi_are_escaped(result: MakeResult, finding: MakeFinding) -> None:
    shown = summary(failing(result, finding(expected=HOSTILE)), result(name=HOSTILE, error=HOSTILE))
    assert not {"\r", "\x1b", "\u202e"} & set(shown)
