"""Shows a run as it goes: a bar on a terminal, now and then a plain line elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from . import events

EVERY = 10.0
"""Seconds between plain lines."""


class Display:
    """Consumes a run's events; a context manager, as a bar has to be taken down."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = _Bar(console) if console.is_terminal else _Lines(console)

    def __enter__(self) -> Display:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def __call__(self, event: events.Event) -> None:
        """Show one event."""
        match event:
            case events.CorpusGrew():
                self._bar.update(f"{event.what} programs", event.done, event.of, "")
            case events.CorpusReady():
                self._bar.close()
                corpus = event.corpus
                about = f"level {corpus.level}, seed {corpus.seed}"
                about += f", scenarios {', '.join(corpus.scenarios)}" if corpus.scenarios else ""
                some = "" if event.to_run == corpus.programs else f", {event.to_run:,} of them for these clauses"
                self.say(f"{about}: {corpus.programs:,} programs, corpus {corpus.hash}{some}")
            case events.EngineStarting():
                self._bar.update(f"{event.backend}: starting", 0, None, "")
            case events.EngineReady():
                self._bar.close()
                self.say(f"{event.backend}: {event.engine} ({event.method}: {event.detail})")
            case events.ProgramRan():
                found = f"deviations: {event.signatures}" if event.signatures else ""
                self._bar.update(event.backend, event.done, event.of, found)
            case events.SignatureFound():
                self.say(f"{event.backend}: {event.signature}")
            case events.MutantRan():
                alive = f"survivors: {event.survivors}" if event.survivors else ""
                self._bar.update("mutants", event.done, event.of, alive)
                if event.done == event.of:
                    self._bar.close()
            case events.Shrinking():
                self._bar.update(f"{event.backend}: shrinking", event.number - 1, event.of, str(event.signature))
            case events.Notice():
                self.say(f"{event.backend}: {event.text}")
            case events.Interrupted():
                self._bar.close()
                self.say("interrupted: stopping engines")
            case events.BackendDone():
                self._bar.close()
            case events.Shrank():
                pass

    def close(self) -> None:
        """Take the bar down until there is something to show again."""
        self._bar.close()

    def corpus(self, what: str, done: int, of: int) -> None:
        """How far the corpus is; a corpus.Progress."""
        self(events.CorpusGrew(what, done, of))

    def working(self, what: str, done: int, of: int) -> None:
        """How far something else is: `done` of `of`."""
        self._bar.update(what, done, of, "")

    def say(self, line: str) -> None:
        """Tell something, above the bar."""
        self._console.print(Text(line, style="dim"), soft_wrap=True)


class _Bar:
    """A live bar."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._task = TaskID(0)

    def update(self, what: str, done: int, of: int | None, note: str) -> None:
        if self._progress is None:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[note]}"),
                console=self._console,
                transient=True,
            )
            self._task = self._progress.add_task("", note="")
            self._progress.start()
        self._progress.update(self._task, description=escape(what), completed=done, total=of, note=escape(note))

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


class _Lines:
    """A plain line every now and then, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next = time.monotonic() + EVERY

    def update(self, what: str, done: int, of: int | None, note: str) -> None:
        now = time.monotonic()
        if of is not None and now >= self._next:
            self._next = now + EVERY
            told = f"{what}: {done:,} of {of:,}" + (f", {note}" if note else "")
            self._console.print(Text(told), soft_wrap=True)

    def close(self) -> None:
        """Nothing to take down."""
