"""TTL: titles that are made for threads which have none."""

from __future__ import annotations

from .model import Clause

CLAUSES = (
    Clause(
        id="TTL-1",
        title="a title for a thread without one",
        statement=(
            "With generate_title on, a save that has a message of the role assistant begins the title of each such "
            "message's thread that has none. The runtime's titler gets the thread's first messages, oldest first, 20 "
            "at most, and what generate_title says of model and instructions; the title it makes is written exactly, "
            "and updated_at becomes the later of its old value and now. A thread with a title, and a save without an "
            "answer, begin nothing."
        ),
        source="message history: generateTitle; recall reference: threads.generateTitle; decision",
        requires="titles",
        applies=("title.begun", "title.titled", "title.unanswered"),
        discriminators={
            "a title made": "title.made",
            "with a model or instructions": "title.told",
            "an answer in a thread with a title": "title.titled",
            "a save without an answer": "title.unanswered",
        },
    ),
    Clause(
        id="TTL-1a",
        title="only where there is none",
        statement=(
            "title_thread writes a title only if the thread's is the empty string, at once with looking, and says "
            "whether it did; an unknown thread is False, an empty title InvalidRequest. So a title that was set while "
            "another was made stays, and a thread that was deleted meanwhile stays away."
        ),
        source="message history: generateTitle; decision",
        requires="titles",
        applies=("title.given", "title.begun", "refused.TTL-1a"),
        discriminators={
            "a thread without a title": "title.given_first",
            "a thread with one": "title.given_second",
            "an unknown thread": "title.given_unknown",
            "a title set while another was made": "title.meanwhile",
            "a thread deleted meanwhile": "title.gone",
        },
    ),
    Clause(
        id="TTL-1b",
        title="off the caller's path",
        statement=(
            "Titles are made after the save has returned, however slow the titler is. One that fails, or makes no "
            "title or an empty one, leaves the thread as it is, and nobody is told but the log. settle waits until "
            "what the client's saves have begun is done, and is NotSettled when it takes longer than it is given; "
            "close forgets it."
        ),
        source="message history: generateTitle; decision",
        requires="titles",
        applies=("title.begun",),
        discriminators={
            "a thread seen before its title is made": "title.pending",
            "a titler that fails": "title.failed",
            "a titler that makes no title, or an empty one": "title.none",
        },
    ),
    Clause(
        id="TTL-1c",
        title="titles are asked for",
        statement=(
            "generate_title is off by default: False, True, or a model and instructions. It stands at the top of a "
            "configuration or under threads; wherever it stands, thread_config's wins over the store's. It needs a "
            "titler: else ConfigurationError before anything is saved, as for two places that differ; other values "
            "are InvalidRequest."
        ),
        source="message history: generateTitle; recall reference: threads.generateTitle; decision",
        requires="titles",
        applies=("title.begun", "title.off", "refused.TTL-1c"),
        discriminators={
            "under threads": "title.under_threads",
            "off, for the call or the store": "title.off",
            "no titler, or two places that differ": "refused.TTL-1c.configuration_error",
            "a value that is refused": "refused.TTL-1c.invalid_request",
        },
    ),
)
