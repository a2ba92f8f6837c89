"""Shows a comparison of benchmarks: on a terminal, and as Markdown for a CI job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .comparison import Change, Comparison, Side
from .statistics import VERDICTS, Judgement, Verdict

STYLES: dict[Verdict, str] = {"regressed": "bold red", "improved": "green", "inconclusive": "yellow"}
COLUMNS = ("contender", "workload", "figure", "A", "B", "change", "interval", "pairs", "verdict", "")
RIGHT = ("A", "B", "change", "interval", "pairs")


def text(found: Comparison, out: Console, *, everything: bool) -> None:
    """Print what is known of both sides, the figures, and how many there are of each verdict.

    everything: with the figures that did not change, and the floors'.
    """
    for line in heading(found):
        out.print(Text(line), soft_wrap=True)
    for note in found.notes:
        out.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)
    shown = [change for change in found.changes if everything or change.judgement.verdict != "no change"]
    shown += found.controls if everything else []
    if shown:
        out.print()
        out.print(_table(shown))
    out.print()
    out.print(Text(summary(found), style="bold"), soft_wrap=True)


def markdown(found: Comparison) -> bytes:
    """All of it as a document, UTF-8."""
    lines = [f"## {summary(found)}", "", *(f"- {_escaped(line)}" for line in heading(found)), ""]
    lines += [f"> {_escaped(note)}\n" for note in found.notes]
    lines.append("| " + " | ".join(COLUMNS) + " |")
    lines.append("| " + " | ".join("---:" if name in RIGHT else "---" for name in COLUMNS) + " |")
    lines += ["| " + " | ".join(_escaped(cell) for cell in cells(change)) + " |" for change in ordered(found.changes)]
    return ("\n".join(lines) + "\n").encode()


def heading(found: Comparison) -> Iterator[str]:
    """What was compared, by which rule."""
    yield f"A: {_side(found.a)}"
    yield f"B: {_side(found.b)}"
    yield (
        f"of B to A; a {found.effect:.0%} change matters; intervals of {found.confidence:.0%}"
        f" by a bootstrap over pairs of {found.unit}s"
    )
    yield from (f"differs: {difference}" for difference in found.differences)


def summary(found: Comparison) -> str:
    """How many figures there are of each verdict, the worst first."""
    counts = Counter(change.judgement.verdict for change in found.changes)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]) or "nothing to compare"


def _side(side: Side) -> str:
    rounds = f"{side.rounds} round" + ("" if side.rounds == 1 else "s")
    return f"{', '.join(side.files)} ({side.started[0]}, {rounds})"


def _table(changes: Sequence[Change]) -> Table:
    shown = Table(box=None, pad_edge=False)
    for name in COLUMNS:
        shown.add_column(name, justify="right" if name in RIGHT else "left")
    for change in ordered(changes):
        style = STYLES.get(change.judgement.verdict, "")
        shown.add_row(*(Text(cell, style=style) for cell in cells(change)))
    return shown


def ordered(changes: Sequence[Change]) -> list[Change]:
    """By verdict, the worst first, otherwise as they are."""
    return sorted(changes, key=lambda change: VERDICTS.index(change.judgement.verdict))


def cells(change: Change) -> tuple[str, ...]:
    """What each of COLUMNS says of a figure."""
    judgement = change.judgement
    spread = "" if judgement.spread is None else f" (run to run {judgement.spread:.1%})"
    return (
        change.contender,
        change.workload,
        change.name,
        _figure(change, change.before),
        _figure(change, change.after),
        _change(change, judgement.ratio),
        _interval(change, judgement),
        str(judgement.pairs or ""),
        judgement.verdict,
        judgement.reason + spread if judgement.reason else "",
    )


def _figure(change: Change, value: float | None) -> str:
    if value is None:
        return "–"
    if change.metric in ("recall", "ok"):
        return f"{value:.4f}"
    if change.metric == "throughput":
        return f"{value:,.0f}/s"
    return f"{value:.3g} ms"


def _change(change: Change, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:+.4f}" if change.metric in ("recall", "ok") else f"{value - 1:+.1%}"


def _interval(change: Change, judgement: Judgement) -> str:
    if judgement.low is None or judgement.high is None:
        return "–"
    return f"{_change(change, judgement.low)} to {_change(change, judgement.high)}"


def _escaped(text: str) -> str:
    return "".join(f"\\{character}" if character in "\\`*_|<>[]" else character for character in text)
