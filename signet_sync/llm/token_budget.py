"""Keeps the tokens of all model calls of a user on one UTC day within `llm.daily_tokens`.

One record in the folder of all state folders, locked, so that it holds across processes and workspaces. Tokens are
reserved durably before a call and corrected after it: a process that dies in between has spent its reservation.
"""

import errno
import json
import os
import re
import stat
from typing import NamedTuple

from signet_sync.errors import ProviderError, WorkspaceError, reason
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import DAY, day_of
from signet_sync.log import logger
from signet_sync.storage import durable, state_dir
from signet_sync.storage.locations import now_us
from signet_sync.text.token_estimate import estimate_tokens

RECORD = "llm-tokens.json"
VERSION = 1
KEPT = 60  # days on which something was spent; dropped by their number, since a clock may have been wrong
MONTH = 30  # days
_SIZE = 64 * 1024  # bytes
_LARGEST = 10**18
_DAY = late(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class BudgetSpent(ProviderError):
    """A call was not made, because it might have taken more tokens than are left of the day."""

    code = "budget-spent"


class Reservation(NamedTuple):
    """Tokens that were set aside for one call, and the UTC day that they count for."""

    day: str
    tokens: int


class Spent(NamedTuple):
    """Tokens of today and of the last 30 days, open reservations included; `trouble` says why no model is asked."""

    today: int
    month: int
    trouble: str = ""


class TokenBudget:
    """The record in a folder, and how many tokens a day may take."""

    def __init__(self, folder: str, daily: int) -> None:
        self.path = os.path.join(folder, RECORD)
        self.daily = daily
        self._folder = folder

    def reserve(self, tokens: int) -> Reservation:
        """Sets tokens aside, durably, before they are sent.

        Raises `BudgetSpent`, which is logged, if they do not fit in what is left.
        """
        today = day_of(now_us())
        try:
            with state_dir.token_lock(self._folder):
                days = self._read()
                # Later days count, too: a clock that was set back gives no second budget.
                left = max(0, self.daily - sum(taken for day, taken in days.items() if day >= today))
                if tokens <= left:
                    self._store(days | {today: days.get(today, 0) + tokens})
                    return Reservation(today, tokens)
            refusal = f"a call of up to {tokens:,} tokens does not fit in the {left:,} left of today's {self.daily:,}"
        except (OSError, WorkspaceError) as error:
            refusal = f"{self.path} cannot be used: {reason(error)}"
        logger.warning("no language model is asked, rules are used instead: {}", refusal)
        raise BudgetSpent(refusal, hint=f"llm.daily_tokens is the most for a day; {self.path} has the count")

    def settle(self, reserved: Reservation, tokens: int) -> None:
        """Replaces a reservation by the tokens that the call took. If that fails, the reservation stays."""
        try:
            with state_dir.token_lock(self._folder):
                days = self._read()
                if reserved.day in days:
                    self._store(days | {reserved.day: max(0, days[reserved.day] + tokens - reserved.tokens)})
        except (OSError, WorkspaceError) as error:
            logger.warning("the tokens of a call stay as estimated: {}", reason(error))

    def _read(self) -> dict[str, int]:
        """Reads the tokens by UTC day; none without a record. Raises `OSError`."""
        try:
            handle = os.open(self.path, durable.READ)
        except FileNotFoundError:
            return {}
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            raw = file.read(_SIZE + 1)
        try:
            found = json.loads(raw) if len(raw) <= _SIZE else None
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and found.get("v") == VERSION and isinstance(days := found.get("days"), dict):
            counts = all(type(count) is int and 0 <= count <= _LARGEST for count in days.values())
            if counts and all(map(_DAY.fullmatch, days)):
                return days
        # Nothing is spent until a person has deleted it.
        raise OSError(errno.EINVAL, "it is damaged; delete it to begin anew")

    def _store(self, days: dict[str, int]) -> None:
        document = {"v": VERSION, "days": dict(sorted(days.items())[-KEPT:])}
        state_dir.write_json(self.path, document, durable=True)


def read_spent(folder: str, instant: int) -> Spent | None:
    """Returns what was spent until an instant; None if no model was ever asked. Writes nothing, takes no lock."""
    budget = TokenBudget(folder, 0)
    if not os.path.lexists(budget.path):
        return None
    today = day_of(instant)
    first = day_of(instant - (MONTH - 1) * DAY)
    try:
        days = budget._read()
    except OSError as error:
        return Spent(0, 0, f"{budget.path} cannot be read ({reason(error)}): no language model is asked")
    month = sum(tokens for day, tokens in days.items() if first <= day <= today)
    return Spent(days.get(today, 0), month)


def prompt_tokens(prompt: tuple[str, str]) -> int:
    """Estimates the tokens of system and user prompt: a third more than the estimate, which may be a quarter under."""
    return sum(estimate_tokens(text) for text in prompt) * 4 // 3 + 16
