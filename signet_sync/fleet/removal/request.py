"""Defines what is asked to be removed, and what a plan says of it: never the words of a phrase."""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256
from typing import Any, NamedTuple

from signet_sync.errors import UsageError
from signet_sync.text.sanitizer import sanitize_line
from signet_sync.text.stored_names import session_name, session_value

_LEAST = 4  # characters of a phrase: a shorter one is in nearly every session


class RemovalRequest(NamedTuple):
    """Names sessions: by id, key or the 16 characters of their files, by project, or by a phrase that they contain.

    Exactly one of the three is given. `agent` None: those of every agent.
    """

    sessions: tuple[str, ...] = ()
    project: str = ""
    phrase: str = ""
    agent: str | None = None

    def described(self) -> dict[str, Any]:
        """Returns the request for a plan: a phrase only as its SHA-256, since its words are the person's own."""
        if self.phrase:
            asked: dict[str, Any] = {"phrase_sha256": sha256(_folded(self.phrase).encode()).hexdigest()}
        elif self.project:
            asked = {"project": session_value(self.project)}
        else:
            asked = {"sessions": list(map(session_name, self.sessions))}
        return asked | {"agent_id": self.agent}


def checked(request: RemovalRequest) -> RemovalRequest:
    """Returns a request that can be met. Raises `UsageError` for one that names nothing or nearly everything."""
    if sum(map(bool, (request.sessions, request.project, request.phrase))) != 1:
        raise UsageError("give one of --session, --project and --phrase", hint="see signet-sync fleet remove --help")
    if any(not name.strip() for name in request.sessions):
        raise UsageError("a session's name is empty", hint="give its id, its key or the 16 characters of its files")
    if request.phrase:
        if len("".join(request.phrase.split())) < _LEAST:
            raise UsageError("the phrase is too short", hint=f"give at least {_LEAST} characters")
        if sanitize_line(request.phrase) != " ".join(request.phrase.split()):
            raise UsageError(
                "the phrase looks like a secret, and secrets are redacted before anything is indexed",
                hint="change the secret, and remove it from files with: signet-sync redact --all",
            )
    return request


def pattern_of(phrase: str) -> re.Pattern[str]:
    """Returns what finds a phrase in a text given to `folded`: any case, and any white space between its words."""
    return re.compile(r"\s+".join(map(re.escape, _folded(phrase).split())))


def folded(text: str) -> str:
    """Returns a text as phrases are searched in it: composed characters, case folded."""
    return unicodedata.normalize("NFC", text).casefold()


def _folded(phrase: str) -> str:
    return " ".join(folded(phrase).split())
