"""Keeps the tokens of all model calls of a user on one UTC day within `llm.daily_tokens`.

One record in the folder of all state folders, locked, so that it holds across processes and workspaces. Tokens are
reserved durably before a call and corrected after it: a process that dies in between has spent its reservation. The
record also holds how many calls failed in a row, and until when no model is asked for that.
"""

import errno
import json
import os
import re
import stat
from collections.abc import Callable
from typing import Any, NamedTuple

from signet_sync.errors import ProviderError, WorkspaceError, reason
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import DAY, SECOND, day_of, iso
from signet_sync.log import logger
from signet_sync.storage import durable, state_dir
from signet_sync.storage.locations import now_us
from signet_sync.text.token_estimate import estimate_tokens

RECORD = "llm-tokens.json"
VERSION = 1
KEPT = 60  # days on which something was spent; dropped by their number, since a clock may have been wrong
MONTH = 30  # days
FAILURES, PAUSE = 2, 3600 * SECOND  # calls that failed in a row, and how long no model is asked then
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


class _Record(NamedTuple):
    """Tokens by UTC day; `failures` are the calls that failed in a row, the last one at `failed`."""

    days: dict[str, int]
    failures: int = 0
    failed: int = 0

    def count_since(self, today: str) -> int:
        """Returns the tokens of today and of later days: a clock that was set back gives no second budget."""
        return sum(tokens for day, tokens in self.days.items() if day >= today)

    def paused_until(self, now: int) -> int:
        """Returns when a model may be asked again; 0 for now, also if the failure is later: a clock was set back."""
        until = self.failed + PAUSE
        return until if self.failures >= FAILURES and self.failed <= now < until else 0


class _Damaged(OSError):
    """The record is not what this program writes: nothing is spent until a person has deleted it."""

    def __init__(self) -> None:
        super().__init__(errno.EINVAL, "it is damaged; delete it to begin anew")


class TokenBudget:
    """The record in a folder, and how many tokens a day may take."""

    def __init__(self, folder: str, daily: int, clock: Callable[[], int] = now_us) -> None:
        self.path = os.path.join(folder, RECORD)
        self.daily = daily
        self._folder = folder
        self._clock = clock

    def reserve(self, tokens: int) -> Reservation:
        """Sets tokens aside, durably, before they are sent.

        Raises `BudgetSpent`, which is logged, if they do not fit in what is left.
        """
        today = day_of(self._clock())
        try:
            with state_dir.token_lock(self._folder):
                record = self._read()
                left = max(0, self.daily - record.count_since(today))
                if tokens <= left:
                    record.days[today] = record.days.get(today, 0) + tokens
                    self._store(record)
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
                record = self._read()
                if reserved.day in record.days:
                    record.days[reserved.day] = max(0, record.days[reserved.day] + tokens - reserved.tokens)
                    self._store(record)
        except (OSError, WorkspaceError) as error:
            logger.warning("the tokens of a call stay as estimated: {}", reason(error))

    def is_paused(self) -> bool:
        """Returns whether no model is asked now, because the last calls failed. Writes nothing, takes no lock."""
        try:
            return self._read().paused_until(self._clock()) > 0
        except OSError:
            return False  # the reservation of a call tells what is wrong

    def record_outcome(self, *, failed: bool) -> None:
        """Counts a call that failed; one that did not ends the count."""
        try:
            with state_dir.token_lock(self._folder):
                now = self._clock()
                record = self._read()
                failures = min(record.failures + 1, _LARGEST) if failed else 0
                if failures or record.failures:
                    record = record._replace(failures=failures, failed=now if failed else 0)
                    self._store(record)
        except (OSError, WorkspaceError) as error:
            logger.warning("whether a model failed cannot be recorded: {}", reason(error))
            return
        if until := record.paused_until(now):
            logger.warning("the last {} calls of a model failed: none is asked until {}", failures, iso(until))

    def _read(self) -> _Record:
        """Reads the record; an empty one if there is none. Raises `_Damaged`, `OSError`."""
        try:
            handle = os.open(self.path, durable.READ)
        except FileNotFoundError:
            return _Record({})
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            raw = file.read(_SIZE + 1)
        try:
            return _check_record(json.loads(raw) if len(raw) <= _SIZE else None)
        except (ValueError, RecursionError):
            raise _Damaged from None

    def _store(self, record: _Record) -> None:
        kept = dict(sorted(record.days.items())[-KEPT:])
        document = {"v": VERSION, **record._asdict(), "days": kept}
        state_dir.write_json(self.path, document, durable=True)


def spent(folder: str, instant: int) -> Spent | None:
    """Returns what was spent until an instant; None if no model was ever asked. Writes nothing, takes no lock."""
    budget = TokenBudget(folder, 0)
    if not os.path.lexists(budget.path):
        return None
    today = day_of(instant)
    first = day_of(instant - (MONTH - 1) * DAY)
    try:
        record = budget._read()
    except OSError as error:
        return Spent(0, 0, f"{budget.path} cannot be read ({reason(error)}): no language model is asked")
    trouble = ""
    if until := record.paused_until(instant):
        trouble = f"no model is asked until {iso(until)}: its last {record.failures} calls failed"
    month = sum(tokens for day, tokens in record.days.items() if first <= day <= today)
    return Spent(record.days.get(today, 0), month, trouble)


def most_tokens(prompt: tuple[str, str], max_tokens: int) -> int:
    """Returns the most tokens that a call is expected to take: the prompt, estimated generously, and the answer."""
    return prompt_tokens(prompt) + max_tokens


def prompt_tokens(prompt: tuple[str, str]) -> int:
    """Estimates the tokens of system and user prompt: a third more than the estimate, which may be a quarter under."""
    return sum(estimate_tokens(text) for text in prompt) * 4 // 3 + 16


def _check_record(found: Any) -> _Record:
    """Returns a record as it was written. Raises `_Damaged` for anything else."""
    if isinstance(found, dict) and found.get("v") == VERSION and isinstance(days := found.get("days"), dict):
        counts = [found.get("failures", 0), found.get("failed", 0)]
        if all(map(_DAY.fullmatch, days)) and all(
            type(count) is int and 0 <= count <= _LARGEST for count in (*days.values(), *counts)
        ):
            return _Record(dict(days), *counts)
    raise _Damaged
