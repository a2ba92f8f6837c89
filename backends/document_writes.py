"""Writes of messages to a document engine: all or nothing without transactions, by undoing (MSG-1).

Every write of a message names the version that it was worked out from, so that of two writers the second sees that
the first was there, and works it out anew. A message that was refused makes the writer put back all it wrote before
the error is raised. At the end each thread is asked whether it is still the one that it was; if not, what was
written is taken out again. Until then readers may see a part.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import msgspec

from .document_layout import WORKING, Names, live
from .documents import Document, Documents, Json, RequestFailed, Version, Write, digest

LOOKUPS = 1_000
"""How many documents are fetched at once."""

PAUSE_SECONDS = 0.01
"""How long a writer that came second waits at most, the first time."""

RESERVE = """
if (ctx._source.incarnation == params.incarnation) {
  ctx._source.next_position += params.count
} else {
  ctx.op = 'none'
}
"""
TOUCH = """
if (ctx._source.incarnation == params.incarnation) {
  ctx._source.updated_at = Math.max(ctx._source.updated_at, params.now)
} else {
  ctx.op = 'none'
}
"""
"""Writes the document even where it stays the same: who clears the thread sees by its version that messages changed."""


class Gone(Exception):
    """A thread was deleted or cleared while messages were written to it; has the incarnations that are no more."""

    def __init__(self, incarnations: Container[str]) -> None:
        super().__init__()
        self.incarnations = incarnations


class Seen(msgspec.Struct, frozen=True):
    """What a writer found: threads and the messages in them, by their ids.

    `stale` has the versions of documents of messages whose thread is gone: they are in the way, and count as absent.
    """

    threads: dict[str, Document]
    messages: dict[str, Document]
    stale: dict[str, Version]


class Done(msgspec.Struct, frozen=True):
    """A write that happened: the message before, if it was there, and the version now; None when it was deleted."""

    before: Document | None
    now: Version | None


def incarnation(thread: Document) -> str:
    """The incarnation of a thread (see document_layout)."""
    return thread.source["incarnation"]


class MessageWrites:
    """The writes of one client to the messages of a namespace."""

    def __init__(self, documents: Documents, names: Names) -> None:
        self._documents = documents
        self._names = names

    def look(self, thread_ids: Iterable[str], message_ids: Iterable[str]) -> Seen:
        """The threads and messages of these ids that exist, and the threads that the messages are in."""
        asked = [*dict.fromkeys(thread_ids)]
        named = [*dict.fromkeys(message_ids)]
        wanted = [(self._names.threads, each) for each in asked] + [(self._names.messages, each) for each in named]
        found = self._fetch(wanted)
        threads = dict(zip(asked, found[: len(asked)], strict=True))
        messages = {each: doc for each, doc in zip(named, found[len(asked) :], strict=True) if doc is not None}
        others = [*{doc.source["thread_id"] for doc in messages.values()} - threads.keys()]
        threads |= zip(others, self._fetch([(self._names.threads, each) for each in others]), strict=True)
        alive = {each for each, doc in messages.items() if live(doc, threads[doc.source["thread_id"]])}
        return Seen(
            threads={each: doc for each, doc in threads.items() if doc is not None},
            messages={each: doc for each, doc in messages.items() if each in alive},
            stale={each: doc.version for each, doc in messages.items() if each not in alive},
        )

    def _fetch(self, wanted: Sequence[tuple[str, str]]) -> list[Document | None]:
        found: list[Document | None] = []
        for begin in range(0, len(wanted), LOOKUPS):
            some = wanted[begin : begin + LOOKUPS]
            found += self._documents.fetch([(index, digest(each)) for index, each in some], exclude=(WORKING,))
        return found

    def reserve(self, threads: Mapping[str, Document], counts: Mapping[str, int]) -> dict[str, int]:
        """So many positions in each thread, behind all taken before; by thread the first of them. Gone."""
        known = {each: incarnation(threads[each]) for each in counts}
        after = self._update(RESERVE, {each: {"incarnation": known[each], "count": counts[each]} for each in counts})
        _same(after, known)
        return {each: source["next_position"] - counts[each] for each, source in after.items()}

    def touch(self, threads: Mapping[str, str], now: int, needed: Container[str]) -> None:
        """Let threads, given by id and incarnation, have changed at `now` (MSG-3). Gone, if a needed one is gone."""
        after = self._update(TOUCH, {each: {"incarnation": known, "now": now} for each, known in threads.items()})
        _same(after, {each: known for each, known in threads.items() if each in needed})

    def _update(self, script: str, params: Mapping[str, Json]) -> dict[str, Json]:
        """Run a script on the documents of threads; what they say then, and {} for those that are not there."""
        if not params:
            return {}
        outcomes = self._documents.write(
            self._names.threads,
            [
                Write(
                    "update",
                    digest(each),
                    {
                        "script": {"lang": "painless", "source": script, "params": given},
                        "_source": ["incarnation", "next_position"],
                    },
                )
                for each, given in params.items()
            ],
        )
        for each, outcome in zip(params, outcomes, strict=True):
            if not outcome.done and not outcome.missing:
                raise RequestFailed(f"thread {each!r} was not updated: {outcome.reason}")
        return {each: outcome.source or {} for each, outcome in zip(params, outcomes, strict=True)}

    def apply(self, changes: Mapping[str, Json | None], seen: Seen, done: dict[str, Done]) -> list[str]:
        """Write messages, by id, or delete them (None), and note in `done` what was; the ids that have changed since.

        RequestFailed when the engine refuses one.
        """
        mark = uuid.uuid4().hex
        marked = {each: None if source is None else source | {"write": mark} for each, source in changes.items()}
        writes = [_write(each, source, seen) for each, source in marked.items()]
        overtaken: list[str] = []
        refused = ""
        try:
            outcomes = self._documents.write(self._names.messages, writes)
        except BaseException:
            self._find_out(marked, seen, done, mark)
            raise
        for (each, source), outcome in zip(changes.items(), outcomes, strict=True):
            if outcome.done:
                done[each] = Done(seen.messages.get(each), None if source is None else outcome.version)
            elif outcome.conflict or outcome.missing:
                overtaken.append(each)
            else:
                refused = refused or f"message {each!r} was refused: {outcome.reason}"
        if refused:
            raise RequestFailed(refused)
        return overtaken

    def _find_out(self, changes: Mapping[str, Json | None], seen: Seen, done: dict[str, Done], mark: str) -> None:
        """Note what has happened of a batch whose answer was lost."""
        found = self._fetch([(self._names.messages, each) for each in changes])
        for (each, source), now in zip(changes.items(), found, strict=True):
            if source is None and now is None:
                done[each] = Done(seen.messages.get(each), None)
            elif now is not None and now.source.get("write") == mark:
                done[each] = Done(seen.messages.get(each), now.version)

    def undo(self, done: Mapping[str, Done], gone: Container[str] = ()) -> None:
        """Put back what was before, except where others have written since, or in an incarnation that is gone."""
        if not done:
            return
        writes: list[Write] = []
        for each, was in done.items():
            before = was.before
            if before is None or before.source["incarnation"] in gone:
                if was.now is not None:
                    writes.append(Write("delete", digest(each), None, was.now))
            elif was.now is None:
                writes.append(Write("create", digest(each), before.source))
            else:
                writes.append(Write("index", digest(each), before.source, was.now))
        outcomes = self._documents.write(self._names.messages, writes)
        left = [each for each in outcomes if not (each.done or each.conflict or each.missing)]
        if left:
            raise RequestFailed(f"{len(left)} messages could not be put back: {left[0].reason}")
        # Another of the threads may have been deleted meanwhile: nobody else would remove what came back too late.
        late = self.look((), done).stale
        self._documents.write(self._names.messages, [Write("delete", digest(each), None, late[each]) for each in late])


def attempts() -> Iterator[int]:
    """Counts attempts without end, and lets a little time pass between them, ever more, so that others can finish."""
    attempt = 0
    while True:
        yield attempt
        attempt += 1
        time.sleep(random.uniform(0, PAUSE_SECONDS * min(attempt, 10)))


def _write(message_id: str, source: Json | None, seen: Seen) -> Write:
    old = seen.messages.get(message_id)
    version = seen.stale.get(message_id) if old is None else old.version
    if source is None:
        return Write("delete", digest(message_id), None, version)
    return Write("create" if version is None else "index", digest(message_id), source, version)


def _same(after: Mapping[str, Json], known: Mapping[str, str]) -> None:
    gone = {each for thread_id, each in known.items() if after[thread_id].get("incarnation") != each}
    if gone:
        raise Gone(gone)
