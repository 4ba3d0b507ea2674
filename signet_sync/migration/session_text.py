"""Defines what another program holds of a session, and what of it no artifact contains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from signet_sync.capture.harnesses.markdown import render
from signet_sync.capture.harnesses.records import TranscriptEntry
from signet_sync.sessions.live_turns import SpokenTurn, missing_in, turns_in
from signet_sync.text.chunking import turns
from signet_sync.text.sanitizer import sanitize_transcript_v2

_USERS = ("user", "human")
# Characters that no two texts share by chance.
_LONG = 4_000


@dataclass(frozen=True, slots=True)
class SessionText:
    """A session's words: `said` are its turns; `raw` is a text in which no turns are marked. Both are sanitized.

    Times are microseconds since 1970 UTC.
    """

    agent_id: str
    session_id: str
    session_key: str
    harness: str | None
    project: str | None
    started_us: int
    ended_us: int
    said: tuple[SpokenTurn, ...] = ()
    raw: str = ""

    @property
    def is_empty(self) -> bool:
        """Returns whether nothing is said."""
        return not self.raw.strip() and not any(turn.text.strip() for turn in self.said)


def split(text: str) -> tuple[tuple[SpokenTurn, ...], str]:
    """Returns the turns of a text that begins with one, else the text as it is; sanitized."""
    clean = sanitize_transcript_v2(text).strip("\n")
    first = next(iter(turns(clean)), None)
    if first is not None and first.start == 0 and (said := turns_in(clean)):
        return tuple(said), ""
    return (), clean


def missing(session: SessionText, bodies: Sequence[str]) -> str:
    """Returns as Markdown what none of a session's texts contains; empty if they contain all of it."""
    if session.raw:
        return "" if holds(session.raw, bodies) else session.raw
    left = missing_in("\n\n".join(bodies), session.said) if bodies else range(len(session.said))
    absent = [session.said[place] for place in left if not is_within(session.said[place].text, bodies)]
    return render(
        [
            TranscriptEntry(
                "user" if turn.role.lower() in _USERS else "assistant",
                turn.at_us if turn.at_us is not None else session.started_us,
                turn.text,
            )
            for turn in absent
            if turn.text.strip()
        ]
    )


def is_within(text: str, bodies: Sequence[str]) -> bool:
    """Returns whether some texts, one after the other, contain a long one: it may have been cut between two of them."""
    return len(text) >= _LONG and "".join(text.split()) in "".join("".join(body.split()) for body in bodies)


def holds(text: str, bodies: Sequence[str]) -> bool:
    """Returns whether each line of a text is a line, or part of one, in some texts."""
    folded = "\n".join(" ".join(line.split()) for body in bodies for line in body.split("\n"))
    return bool(folded) and all(" ".join(line.split()) in folded for line in text.split("\n"))
