"""Recognises copied history: what a fork or a resumed copy repeats of another session, also of one that was removed.

A copy gives records new ids, and the session often too. So it is known by its exchanges, each a prompt with all that
follows up to the next one: another session of the agent has the same prompt, given and answered in the same
milliseconds. A harness that gives copies the time of the fork names the session instead. Copied history stands at the
beginning of a transcript.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from signet_sync.formats.ids import hash_forgotten, token_of
from signet_sync.formats.timestamps import iso
from signet_sync.sessions.live import store as live
from signet_sync.sessions.live.turns import SpokenTurn, first_line, live_turns_in, turns_in
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import artifacts
from signet_sync.sync.store import tombstones as store
from signet_sync.text.chunking import speaker_of
from signet_sync.text.redaction import alike


class Exchange(NamedTuple):
    """What an exchange is known by: the prompt's first line, its time, and those of the answer and its first words.

    What a harness adds to a prompt may stand below the person's words, so the first line counts. Times are ISO 8601,
    "" if unknown: of a running session only words are.
    """

    line: str
    at: str = ""
    answered: str = ""
    said: str = ""

    def is_same(self, other: "Exchange", *, copied: bool) -> bool:
        """Returns whether two are the same; where one is `copied` from the other's session, the words suffice."""
        if copied or not self.at or not self.line:
            return copied and self.line == other.line
        answers = ({*times} - {""} for times in zip(self[2:], other[2:], strict=True))
        return self[:2] == other[:2] and all(len(times) < 2 for times in answers)


def exchanges_of(turns: Iterable[SpokenTurn], *, answers: bool = True) -> Iterator[Exchange]:
    """Yields the exchanges of sanitized turns; `answers`: all that follows a prompt is among the turns."""
    turns = list(turns)
    found, said = list[Exchange](), ""
    for turn, following in reversed([*zip_longest(turns, turns[1:])]):
        speaker = speaker_of(turn.role)
        if speaker == "user" and (line := first_line(turn.text)):
            answered = following is not None and speaker_of(following.role) != "user"
            found.append(Exchange(line, turn.at, following.at if answers and answered else "", said))
        said = turn.at if speaker == "assistant" else "" if speaker == "user" else said
    yield from reversed(found)


def marks_of(agent_id: str, token: str, exchanges: Iterable[Exchange]) -> set[str]:
    """Returns the hashes by which exchanges of a removed session are recognised: by their time, and by the session."""
    found: set[str] = set()
    for one in exchanges:
        found.update(hash_forgotten(agent_id, f"{by}\0{one.line}") for by in (token, one.at) if by)
    return found


def mark_of_compaction(agent_id: str, at_us: int) -> str:
    """Returns the hash by which a compaction of a removed session is recognised."""
    return hash_forgotten(agent_id, f"{iso(at_us)}\0compaction")


def exchanges_in(text: str) -> list[Exchange]:
    """Returns the exchanges of a transcript's text."""
    return [*exchanges_of(turns_in(text), answers=not live_turns_in(text))]


def _may_hold(text: str, one: Exchange) -> bool:
    """Returns whether the first words below a line with the time of an exchange are its own: few texts are parsed."""
    heads = re.finditer(rf"{re.escape(one.at)}(?=[^\n]*\n\s*([^\n]*))", text)
    return any(first_line(head[1]) in (one.line, "") for head in heads)


class HeldExchanges:
    """What other sessions of an agent hold, read as far as it is asked for.

    `origin` is the session that the harness says was copied, "" if it says nothing.
    """

    def __init__(self, database: Database, agent_id: str, session_id: str, origin: str) -> None:
        self._database = database
        self._agent_id = agent_id
        self._session_id = session_id
        self._token = token_of(agent_id, origin) if origin else ""
        self._origin: list[tuple[str, Sequence[Exchange]]] = []
        if origin:
            for text, _ in artifacts.transcripts(database, agent_id, self._token, origin):
                self._origin.append((text, exchanges_in(text)))
            running = live.transcript(database, agent_id, origin, origin)
            self._origin.append(("", [*exchanges_of(SpokenTurn(*turn[1:]) for turn in running)]))
        self._read: dict[str, Sequence[Exchange]] = {}

    def count_copies(self, exchanges: Iterable[tuple[Exchange, int, bool]]) -> tuple[int, str]:
        """Counts the copies with which a transcript begins, and returns a text that has the last of them.

        Each exchange comes with its time in µs, and whether it may be from `origin`. Without a text nobody knows where
        the last one ends in the original: all of it is a copy.
        """
        found = 0, ""
        for number, (one, at_us, copied) in enumerate(exchanges, 1):
            text = self._holder(one, at_us, copied=copied and bool(self._token))
            if text is None:
                break
            found = number, text
        return found

    def has_compaction(self, at_us: int, text: str) -> bool:
        """Returns whether another session, or a removed one, has a compaction; `text` is sanitized."""
        if at_us <= 0 or not text.strip():
            return False
        held = artifacts.compactions_at(self._database, self._agent_id, at_us, self._session_id)
        removed = {mark_of_compaction(self._agent_id, at_us)}
        return any(alike(one, text) for one in held) or store.are_removed(self._database, self._agent_id, removed)

    def _holder(self, one: Exchange, at_us: int, *, copied: bool) -> str | None:
        """Returns the text that has an exchange, "" if a removed or a running session has it; None if none has."""
        if copied:
            for text, known in self._origin:
                if any(one.is_same(other, copied=True) for other in known):
                    return text
        texts: Mapping[str, str] = {}
        if one.at:
            texts = artifacts.transcripts_at(self._database, self._agent_id, at_us, self._session_id)
        for path, text in texts.items():
            if not _may_hold(text, one):
                continue
            if path not in self._read:
                self._read[path] = exchanges_in(text)
            if any(one.is_same(other, copied=False) for other in self._read[path]):
                return text
        running = live.list_said_at(self._database, self._agent_id, one.at, self._session_id) if one.at else []
        told = exchanges_of((SpokenTurn(*turn[1:]) for turn in running), answers=False)
        if any(one.is_same(other, copied=False) for other in told):
            return ""
        marks = marks_of(self._agent_id, self._token if copied else "", [one])
        return "" if store.are_removed(self._database, self._agent_id, marks) else None
