"""What counts as a loss between two results, and how it is told."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import msgspec
import pytest
from harness_support import Cli, Hold, page
from memassay.harness import artefact, diff
from memassay.harness.artefact import BackendResult, ClauseResult, Result, Verdict
from memassay.harness.exits import Exit, UsageProblem
from memassay.reports import difference
from memory_fakes import Correct, Miscounting


def result(hold: Hold, **verdicts: Verdict) -> Result:
    """A result in which the clauses have these verdicts; X1 stands for X-1."""
    whole = hold(Correct(), [])
    clauses = {f"{name[:3]}-{name[3:]}": ClauseResult(verdict=verdict) for name, verdict in verdicts.items()}
    backend = BackendResult(name="acme", engine="1.0", clauses=clauses)
    return msgspec.structs.replace(whole, selected=[*clauses], backends=[backend])


@pytest.mark.parametrize(
    ("before", "after", "loss"),
    [
        ("pass", "fail", True),
        ("pass", "vacuous", True),
        ("pass", "unsupported", True),
        ("pass", "known", True),
        ("known", "fail", True),
        ("not-run", "error", True),
        ("fail", "flaky", False),
        ("fail", "pass", False),
        ("vacuous", "unsupported", False),
    ],
)
def test_a_loss_is_what_passed_or_did_not_fail(hold: Hold, before: Verdict, after: Verdict, loss: bool) -> None:
    found = diff.between(result(hold, ORD1=before), result(hold, ORD1=after))
    assert [(change.clause, change.loss) for change in found.backends[0].verdicts] == [("ORD-1", loss)]
    assert found.losses == loss


def test_what_did_not_change_is_not_told(hold: Hold) -> None:
    found = diff.between(result(hold, ORD1="fail"), result(hold, ORD1="fail"))
    assert (found.losses, found.backends[0].verdicts) == (0, [])


def test_a_clause_asked_for_in_one_result_alone_is_not_compared(hold: Hold) -> None:
    found = diff.between(result(hold, ORD1="pass", ORD2="pass"), result(hold, ORD1="pass"))
    assert (found.losses, found.compared) == (0, ["ORD-1"])
    assert found.notes == ["1 clauses were asked for in one of the results alone"]


def test_a_clause_that_fails_unasked_is_compared(hold: Hold) -> None:
    after = result(hold, ORD1="pass", ORD2="fail")
    found = diff.between(result(hold, ORD1="pass"), msgspec.structs.replace(after, selected=["ORD-1"]))
    assert [change.clause for change in found.backends[0].verdicts] == ["ORD-2"]


def test_cases_come_and_go(hold: Hold) -> None:
    right, wrong = hold(Correct(), [page(1)]), hold(Miscounting(), [page(1)])
    came, went = diff.between(right, wrong), diff.between(wrong, right)
    assert [(str(case.signature), case.change) for case in came.backends[0].cases] == [
        ("ORD-5 / total / recall", "came")
    ]
    assert [case.change for case in went.backends[0].cases] == ["went"]
    assert (came.losses > 0, went.losses) == (True, 0)


def test_single_backends_are_compared_whatever_their_names(hold: Hold) -> None:
    before = result(hold, ORD1="pass")
    renamed = msgspec.structs.replace(before.backends[0], name="acme2", engine="2.0")
    found = diff.between(before, msgspec.structs.replace(before, backends=[renamed]))
    assert (found.backends[0].before, found.backends[0].after, found.losses) == ("acme", "acme2", 0)


def test_a_backend_that_is_gone_is_a_loss(hold: Hold) -> None:
    one = result(hold, ORD1="pass")
    other = msgspec.structs.replace(one.backends[0], name="other")
    both = msgspec.structs.replace(one, backends=[*one.backends, other])
    assert diff.between(both, one).losses == 1


def test_results_of_other_backends_are_refused(hold: Hold) -> None:
    one = result(hold, ORD1="pass")
    others = [msgspec.structs.replace(one.backends[0], name=name) for name in ("b", "c")]
    with pytest.raises(UsageProblem, match="no backend in common"):
        diff.between(one, msgspec.structs.replace(one, backends=others))


def test_other_programs_are_noted(hold: Hold) -> None:
    before = result(hold, ORD1="pass")
    corpus = msgspec.structs.replace(before.corpus, seed=7)
    assert diff.between(before, msgspec.structs.replace(before, corpus=corpus)).notes == [
        "the seed differs: 0 before, 7 after"
    ]


def test_markdown_names_the_loss(hold: Hold) -> None:
    document = difference.markdown(diff.between(result(hold, ORD1="pass"), result(hold, ORD1="fail"))).decode()
    assert "| ORD-1 one total order | pass | fail | **loss** |" in document


def test_the_command_exits_with_5_on_a_loss(memassay: Cli, hold: Hold, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(artefact.encode(result(hold, ORD1="pass")))
    (tmp_path / "b.json").write_bytes(artefact.encode(result(hold, ORD1="fail")))
    done = memassay("diff", "a.json", "b.json", "--json", "d.json", "--markdown", "d.md")
    assert done.returncode == Exit.REGRESSION
    assert "LOSS  ORD-1   pass -> fail" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 loss: 1 verdict changed, 0 cases came, 0 went"
    written = msgspec.json.decode((tmp_path / "d.json").read_bytes())
    jsonschema.validate(written, artefact.schema("difference", artefact.Difference))
    assert (tmp_path / "d.md").read_text().startswith("## 1 loss")


def test_the_command_exits_with_0_without(memassay: Cli, hold: Hold, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(artefact.encode(result(hold, ORD1="fail")))
    (tmp_path / "b.json").write_bytes(artefact.encode(result(hold, ORD1="pass")))
    done = memassay("diff", "a.json", "b.json")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        Exit.CONFORMS,
        "nothing was lost: 1 verdict changed, 0 cases came, 0 went",
    )
