"""TTL: titles that are made too often, at the wrong time, of the wrong things, or over another."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec
from memassay.spec.errors import ConfigurationError
from memassay.spec.reference import Untitled
from memassay.spec.requests import overlay, parse_title_thread, titling
from memassay.spec.types import MemoryConfig, Message, NewMessage, TitleGeneration
from msgspec import UNSET

from .adapter import Adapter, replaced
from .mutant import mutant

# TTL-1


@mutant("TTL-1")
class _TitlesBeforeTheAnswer(Adapter):
    """Any saved message begins a title."""

    def begin_titles(self, wanted: TitleGeneration | None, saved: Sequence[Message]) -> None:
        super().begin_titles(wanted, [replaced(message, role="assistant") for message in saved])


@mutant("TTL-1")
class _TellsTheTitlerNothing(Adapter):
    """Model and instructions do not reach the titler."""

    def make_title(self, begun: Untitled) -> None:
        super().make_title(replaced(begun, wanted=TitleGeneration()))


@mutant("TTL-1")
class _TitlesTheNewest(Adapter):
    """The titler gets the messages newest first."""

    def make_title(self, begun: Untitled) -> None:
        titler = self.runtime.titler
        rows = self.state.rows.get(begun.thread_id, ())
        if titler is not None and rows:
            with contextlib.suppress(Exception):
                messages = [row.message for row in reversed(rows)]
                title = titler(messages, model=begun.wanted.model, instructions=begun.wanted.instructions)
                self.entitle(*parse_title_thread(begun.thread_id, title))


@mutant("TTL-1")
class _TitlesAreNotDated(Adapter):
    """A title leaves updated_at as it is."""

    def entitle(self, thread_id: str, title: str) -> bool:
        old = self.state.threads.get(thread_id)
        done = super().entitle(thread_id, title)
        if old is not None:
            new = self.state.threads[thread_id]
            self.state.threads[thread_id] = msgspec.structs.replace(new, updated_at=old.updated_at)
        return done


@mutant("TTL-1")
class _SettlesNothing(Adapter):
    """settle returns at once, and what was begun is never done."""

    def make_title(self, begun: Untitled) -> None:
        return


# TTL-1a


@mutant("TTL-1a")
class _OverwritesTitles(Adapter):
    """A title is written whatever the thread's is by then."""

    def entitle(self, thread_id: str, title: str) -> bool:
        old = self.state.threads.get(thread_id)
        if old is not None:
            self.state.threads[thread_id] = msgspec.structs.replace(old, title="")
        return super().entitle(thread_id, title)


@mutant("TTL-1a")
class _SaysThatItDid(Adapter):
    """title_thread is True for every thread there is."""

    def title_thread(self, thread_id: str, title: str) -> bool:
        return super().title_thread(thread_id, title) or thread_id in self.state.threads


@mutant("TTL-1a")
class _BlankIsNoTitle(Adapter):
    """A title of spaces counts as none."""

    def entitle(self, thread_id: str, title: str) -> bool:
        old = self.state.threads.get(thread_id)
        if old is not None and not old.title.strip():
            self.state.threads[thread_id] = msgspec.structs.replace(old, title="")
        return super().entitle(thread_id, title)


@mutant("TTL-1a")
class _TitlesReviveThreads(Adapter):
    """The title of a thread that was deleted meanwhile is written by an upsert."""

    def make_title(self, begun: Untitled) -> None:
        if begun.thread_id not in self.state.threads:
            self.create_thread(id=begun.thread_id, resource_id="r1", title="About nobody")
        super().make_title(begun)


# TTL-1b


@mutant("TTL-1b")
class _TitlesInTheWay(Adapter):
    """The title is made before the save returns."""

    def begin_titles(self, wanted: TitleGeneration | None, saved: Sequence[Message]) -> None:
        super().begin_titles(wanted, saved)
        for begun in self.begun():
            self.make_title(begun)


@mutant("TTL-1b")
class _FailuresAreTitles(Adapter):
    """When the titler fails the first words do for a title."""

    def make_title(self, begun: Untitled) -> None:
        super().make_title(begun)
        rows = self.state.rows.get(begun.thread_id, ())
        if rows and isinstance(rows[0].message.content, str) and rows[0].message.content.startswith("!"):
            self.entitle(begun.thread_id, rows[0].message.content[:20])


@mutant("TTL-1b")
class _FailuresAreRaised(Adapter):
    """settle raises what the titler raised."""

    def make_title(self, begun: Untitled) -> None:
        titler = self.runtime.titler
        rows = self.state.rows.get(begun.thread_id, ())
        if titler is not None:
            titler([row.message for row in rows], model=None, instructions=None)
        super().make_title(begun)


@mutant("TTL-1b")
class _EmptyIsUntitled(Adapter):
    """Where there is no title, or an empty one, the thread is called Untitled."""

    def make_title(self, begun: Untitled) -> None:
        super().make_title(begun)
        self.entitle(begun.thread_id, "Untitled")


# TTL-1c


class _Asked(Adapter):
    def asked(self, thread_config: MemoryConfig | None) -> MemoryConfig | None:
        """What counts for a save in place of its thread_config."""
        return thread_config

    def titling(self, thread_config: MemoryConfig | None) -> TitleGeneration | None:
        return super().titling(self.asked(thread_config))


@mutant("TTL-1c")
class _TitlesByDefault(_Asked):
    """Titles are on wherever there is a titler, unless they are switched off."""

    def asked(self, thread_config: MemoryConfig | None) -> MemoryConfig | None:
        unset = overlay(self.options, thread_config).generate_title is UNSET
        return MemoryConfig(generate_title=True) if unset and self.runtime.titler is not None else thread_config


@mutant("TTL-1c")
class _TitlesAtTheTopAlone(_Asked):
    """What stands under threads is not looked at."""

    def asked(self, thread_config: MemoryConfig | None) -> MemoryConfig | None:
        titling(self.options, thread_config)
        return None if thread_config is None else replaced(thread_config, threads=UNSET)


@mutant("TTL-1c")
class _CallsCannotTitle(_Asked):
    """thread_config is checked, and the store's options count."""

    def asked(self, thread_config: MemoryConfig | None) -> MemoryConfig | None:
        titling(self.options, thread_config)
        return None


@mutant("TTL-1c")
class _NoTitlerIsNoMatter(Adapter):
    """Without a titler nothing is begun, and nothing is said."""

    def titling(self, thread_config: MemoryConfig | None) -> TitleGeneration | None:
        try:
            return super().titling(thread_config)
        except ConfigurationError as error:
            if "titler" in error.message:
                return None
            raise


@mutant("TTL-1c")
class _TheTopWins(_Asked):
    """Of two places that differ the top wins."""

    def save_messages(self, messages: Sequence[NewMessage], **config: Any) -> tuple[Message, ...]:
        given = config.get("thread_config")
        if isinstance(given, MemoryConfig) and isinstance(given.generate_title, bool):
            config["thread_config"] = replaced(given, threads=UNSET)
        return super().save_messages(messages, **config)
