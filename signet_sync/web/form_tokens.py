"""Issues and checks the hidden fields of a form: they bind it to this server, its visitor, its action and its plan."""

import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

LIFE = 1800  # seconds in which a form can be sent


class FormToken(NamedTuple):
    """The hidden fields: a number used once, when the form expires, the fingerprint of what was shown, the seal."""

    once: str
    until: str
    state: str
    seal: str


class FormTokens:
    """The forms of one server; nothing that was issued before it started is accepted."""

    def __init__(self, visitor: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._key = secrets.token_bytes(32)
        self._visitor = visitor
        self._clock = clock

    def issue(self, target: Mapping[str, str], state: str) -> FormToken:
        """Makes the token for a form; `target` says which action it does to what, for which agent."""
        once, until = secrets.token_urlsafe(18), str(int(self._clock()) + LIFE)
        return FormToken(once, until, state, self._seal(target, once, until, state))

    def read(self, target: Mapping[str, str], given: Mapping[str, str]) -> FormToken | None:
        """Returns the token of a form that was sent; None if it is not one of ours for this target."""
        token = FormToken(*(given.get(name, "") for name in FormToken._fields))
        expected = self._seal(target, token.once, token.until, token.state)
        return token if hmac.compare_digest(token.seal.encode("utf-8", "replace"), expected.encode()) else None

    def is_old(self, token: FormToken) -> bool:
        """Returns whether a form of ours has expired."""
        return self._clock() > int(token.until)

    def _seal(self, target: Mapping[str, str], *fields: str) -> str:
        # ASCII-only JSON keeps apart what differs only in bytes that are not UTF-8.
        text = json.dumps([self._visitor, sorted(target.items()), *fields])
        return hmac.digest(self._key, text.encode(), "sha256").hex()
