"""Reads running sessions: which session live turns belong to, and the newest turns."""

from collections.abc import Sequence
from typing import NamedTuple

from signet_sync.formats.ids import derive_token
from signet_sync.sessions.store import live
from signet_sync.sessions.store.live import LiveSession
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.sessions import SessionRef
from signet_sync.text.turn_heads import label_of, speaker_of
from signet_sync.web.markdown import Prose

_CHARACTERS = 64_000


class Running(NamedTuple):
    """A running session: the parameters of its page, and its progress."""

    token: str
    session_id: str
    key: str
    turns: int
    last_at: str


class RunningTurn(NamedTuple):
    """A turn of a running session."""

    speaker: str
    label: str
    at: str
    prose: Prose
    shortened: bool


def every(database: Database, agent_id: str) -> list[Running]:
    """Returns those of an agent, the most recently active first."""
    return [
        Running(
            derive_token(agent_id, one.session_key, one.session_id),
            one.session_id or one.session_key,
            one.session_key,
            one.turns,
            one.last_at,
        )
        for one in live.sessions(database, agent_id)
    ]


def buffers(
    database: Database, agent_id: str, token: str, session_id: str, ref: SessionRef | None
) -> list[LiveSession]:
    """Returns the live turns of a session; one without files is identified by what its token is derived from."""
    key = ref.session_key if ref else None
    return [
        one
        for one in live.sessions(database, agent_id)
        if (session_id in (one.session_id, one.session_key) or (key and not one.session_id and one.session_key == key))
        and (ref is not None or derive_token(agent_id, one.session_key, one.session_id) == token)
    ]


def turns_of(database: Database, agent_id: str, of: Sequence[LiveSession]) -> list[RunningTurn]:
    """Returns the newest turns, as many as a page shows."""
    every = [turn for one in of for turn in live.transcript(database, agent_id, one.session_key, one.session_id)]
    room = _CHARACTERS
    found: list[RunningTurn] = []
    for turn in sorted(every, key=lambda turn: (turn.at, turn.turn), reverse=True):
        if room <= 0:
            break
        words = turn.content[:room]
        found.append(
            RunningTurn(
                speaker_of(turn.role), label_of(turn.role), turn.at, Prose(words), len(words) < len(turn.content)
            )
        )
        room -= max(len(words), 1)
    return found[::-1]
