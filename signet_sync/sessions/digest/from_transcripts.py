"""Derives a session's sentence and items again from its transcripts, if its files have only a fallback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from signet_sync.formats.timestamps import day_of
from signet_sync.sessions.digest.headline import headline
from signet_sync.sessions.digest.segments import SEGMENTS, joined
from signet_sync.sessions.digest.session import Stated, outcome
from signet_sync.sessions.digest.summary import summary
from signet_sync.text.digest_mark import Status, says_nothing
from signet_sync.text.sentences import SessionContext


class Transcript(Protocol):
    """The fields of a transcript's row that are used; `content` is sanitized."""

    @property
    def content(self) -> str: ...
    @property
    def project(self) -> str | None: ...
    @property
    def harness(self) -> str | None: ...
    @property
    def session_token(self) -> str: ...
    @property
    def membership_us(self) -> int: ...


class Retold(NamedTuple):
    """What today's rules derive from a session's transcripts, oldest first.

    `sentence` is None without any result; `items` are those of each transcript, by index; `status` is that of the
    newest one. With `says_nothing` the session was only a greeting.
    """

    sentence: str | None
    status: Status | None
    items: tuple[tuple[Stated, ...], ...]
    says_nothing: bool


def retold(transcripts: Sequence[Transcript]) -> Retold:
    """Derives a session from its transcripts, oldest first, at least one. Deterministic; uses nothing else."""
    newest = transcripts[-1]
    day = day_of(newest.membership_us)
    context = SessionContext(newest.content, newest.project, "transcript", newest.harness, day, newest.session_token)
    outcomes = [outcome(one.content) for one in transcripts[-SEGMENTS:]]
    left_out: list[tuple[Stated, ...]] = [()] * (len(transcripts) - len(outcomes))
    return Retold(
        headline(joined(outcomes[:-1], outcomes[-1]), [context]),
        outcomes[-1].status,
        (*left_out, *(one.items for one in outcomes)),
        all(says_nothing(summary(one, project=None, harness=None)) for one in outcomes),
    )
