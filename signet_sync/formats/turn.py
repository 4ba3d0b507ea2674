"""Parses a turn that a streaming harness sends: a line of JSON, read strictly."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from signet_sync.errors import UsageError
from signet_sync.formats.body import js_trim
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import iso, parse_instant

FIELDS = ("turn", "role", "text", "at")
ROLE_LIMIT = 64  # characters
PLACE_FIELDS = ("project", "harness")
LAST_TURN = 2**63 - 1
HINT = 'nothing was written; a line is one turn: {"turn": 3, "role": "user", "text": "…", "at": "2026-03-28T22:34:06Z"}'
_CONTROL = late("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Turn(NamedTuple):
    """One turn as it was sent, unsanitized; `at` is ISO 8601 UTC with milliseconds, never later than now.

    `place` has those of `PLACE_FIELDS` that were given, unchecked.
    """

    turn: int
    role: str
    text: str
    at: str
    place: Mapping[str, Any] = {}


def turn_of(line: bytes, number: int, *, now_us: int) -> Turn:
    """Parses the turn in a line; `number` is the line's, from 1. Raises `UsageError` (`input-invalid`)."""
    given = _object(line, number)
    unknown = sorted(name for name in given if name not in (*FIELDS, *PLACE_FIELDS))
    if unknown:
        raise _bad(number, f"has an unknown field {unknown[0][:60]!r}")
    missing = [name for name in FIELDS if given.get(name) is None]
    if missing:
        raise _bad(number, f"lacks {missing[0]}")
    turn, role, text, at = (given[name] for name in FIELDS)
    if type(turn) is not int or not 0 <= turn <= LAST_TURN:
        raise _bad(number, "has a turn that is no whole number from 0 on")
    if not isinstance(role, str) or not js_trim(role) or len(role) > ROLE_LIMIT or _CONTROL.search(role):
        raise _bad(number, f"has a role that is no text of 1 to {ROLE_LIMIT} characters on one line")
    if not isinstance(text, str):
        raise _bad(number, "has a text that is none")
    place = {name: given[name] for name in PLACE_FIELDS if given.get(name) is not None}
    return Turn(turn, role, text, _moment(at, number, now_us), place)


def _object(line: bytes, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError as error:
        raise _bad(number, f"is not UTF-8: byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise _bad(number, f"is not JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError):
        raise _bad(number, "is not JSON that can be read: it nests too deeply, or a number is too long") from None
    if not isinstance(value, dict):
        raise _bad(number, "is not a JSON object")
    return value


def _moment(at: object, number: int, now_us: int) -> str:
    micros = parse_instant(js_trim(at)) if isinstance(at, str) else None
    if micros is None:
        raise _bad(number, "has an at that is no ISO 8601 date and time")
    # A time is never later than now: the end of a session follows from these times, and a fast clock must not mislead
    # it.
    return iso(min(micros, now_us))


def _bad(number: int, what: str) -> UsageError:
    return UsageError(f"line {number} {what}", hint=HINT, code="input-invalid")
