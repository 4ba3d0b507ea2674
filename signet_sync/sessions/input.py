"""Validates the input of a session end or a compaction: one JSON document (cli: *`session end` input*)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, NamedTuple

from signet_sync.errors import UsageError
from signet_sync.formats.artifact import REPOSITORY_FIELDS, repository_fields
from signet_sync.formats.body import js_trim
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import AGENT_ID
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.text.stored_names import cut_to, measure_written, session_name, session_value

# Bytes for id, key, project, harness and repository: frontmatter may have 64 KiB, and also holds the sentence.
HEAD_TEXTS = 52_000
_TEXTS = ("session_key", "project", "harness", "captured_at", "started_at", "ended_at", "idempotency_key")


@dataclass(kw_only=True, repr=False)
class _SharedFields:
    """The fields that both documents share. Timestamps are ISO 8601 in UTC, or None.

    A document names no repository: a capture does, else it is that of the project's folder now.
    """

    agent_id: str = "default"
    session_id: str
    session_key: str | None = None
    project: str | None = None
    harness: str | None = None
    captured_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    memory_sentence: str | None = None
    idempotency_key: str | None = None
    repository_root: str | None = None
    repository_origin: str | None = None
    repository_path: str | None = None
    repository_branch: str | None = None


@dataclass(kw_only=True, repr=False)
class SessionInput(_SharedFields):
    """The end of a session; `transcript` is the whole session so far, or with `tail` the turns since its last ending.

    `more`: the rest follows as an ending of its own, so it is not known yet which live turns the transcript lacks.
    `headless`: the transcript shows that no person spoke.
    """

    kind: ClassVar[Literal["end"]] = "end"
    transcript: str
    summary: str | None = None
    tail: bool = False
    more: bool = False
    headless: bool = False


@dataclass(kw_only=True, repr=False)
class CompactionInput(_SharedFields):
    """A compaction: what the harness kept of a session's context."""

    kind: ClassVar[Literal["compact"]] = "compact"
    tail = more = headless = False  # which only an end can be
    compaction: str


def session_input(document: object, *, now_us: int) -> SessionInput:
    """Reads a session end from its JSON document.

    Raises `UsageError` (`input-invalid`, `agent-invalid`) that names the field and the requirement.
    """
    own = {"tail", "more", "headless", *REPOSITORY_FIELDS}
    given = _require_object(document, {f.name for f in fields(SessionInput)} - own | {"transcript_is"})
    scope = given.get("transcript_is")
    if scope not in (None, "whole", "tail"):
        raise _bad("transcript_is", 'must be "whole" or "tail"')
    return SessionInput(
        **_identity(given, now_us),
        transcript=_body(given, "transcript"),
        summary=_optional_body(given, "summary"),
        tail=scope == "tail",
    )


def compaction_input(document: object, *, now_us: int) -> CompactionInput:
    """Reads a compaction from its JSON document. Raises `UsageError`."""
    given = _require_object(document, {f.name for f in fields(CompactionInput)}.difference(REPOSITORY_FIELDS))
    body = _body(given, "compaction")
    if not body.strip():
        raise _bad("compaction", "is empty")
    return CompactionInput(**_identity(given, now_us), compaction=body)


def write_identity(given: SessionInput | CompactionInput) -> dict[str, str | None]:
    """Returns id, key, project and harness as they are written: exact but for redacted secrets and cut ends.

    Id and key are cut one by one because they identify the session; project and harness share the remaining bytes.
    """
    names = {name: session_name(text) if (text := getattr(given, name)) else None for name in _NAMES}
    room = HEAD_TEXTS - sum(measure_written(name) for name in names.values() if name)
    values = {name: session_value(text) or None if (text := getattr(given, name)) else None for name in _VALUES}
    if sum(measure_written(value) for value in values.values() if value) > room:
        # The cut text may look like a secret.
        cut = {name: session_value(cut_to(value, room // 2)) if value else None for name, value in values.items()}
        values = {name: cut_to(value, room // 2) or None if value else None for name, value in cut.items()}
    return {**names, **values}


def write_repository(given: SessionInput | CompactionInput, identity: Mapping[str, str | None]) -> dict[str, Any]:
    """Returns the fields of the session's repository as they are written; none if there is no room left for them."""
    texts = (getattr(given, name) for name in REPOSITORY_FIELDS)
    found = repository_fields(*(session_value(text) if text else None for text in texts))
    room = HEAD_TEXTS - sum(measure_written(text) for text in identity.values() if text)
    return found if sum(measure_written(text) for text in found.values() if text) <= room else {}


_NAMES, _VALUES = ("session_id", "session_key"), ("project", "harness")


def _require_object(document: object, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise UsageError(
            "the input is not a JSON object", hint='give one document: {"session_id": …, …}', code="input-invalid"
        )
    unknown = sorted(str(name) for name in document if name not in known)
    if unknown:
        shown = ", ".join(repr(name[:60]) for name in unknown[:5])
        raise UsageError(
            f"unknown field {shown}" if len(unknown) == 1 else f"unknown fields {shown}",
            hint="known fields: " + ", ".join(sorted(known)),
            code="input-invalid",
        )
    return document


def _identity(given: Mapping[str, Any], now_us: int) -> dict[str, Any]:
    agent_id = given.get("agent_id", "default")
    if not isinstance(agent_id, str) or not AGENT_ID.fullmatch(agent_id):
        raise UsageError(
            "agent_id does not name an agent",
            hint="use lower-case letters, digits, - and _, at most 64, a letter or digit first",
            code="agent-invalid",
        )
    values: dict[str, Any] = {"agent_id": agent_id}
    session_id = given.get("session_id")
    if not isinstance(session_id, str) or not js_trim(session_id):
        raise _bad("session_id", "must be a text that is not blank")
    values["session_id"] = session_id
    for name in _TEXTS:
        value = given.get(name)
        if value is not None and not isinstance(value, str):
            raise _bad(name, "must be a text or null")
        values[name] = value if value is not None and js_trim(value) else None
    for name in ("session_id", "session_key", "project", "harness", "idempotency_key"):
        text = values[name] or ""
        if "\0" in text:
            raise _bad(name, "contains a NUL character")
    for name in ("captured_at", "started_at", "ended_at"):
        values[name] = _instant(name, values[name], now_us)
    values["memory_sentence"] = _optional_body(given, "memory_sentence")
    return values


FUTURE_US = 86_400 * 1_000_000


def _instant(name: str, text: str | None, now_us: int) -> str | None:
    """Returns the instant in our format: UTC, milliseconds; a time without a zone is taken as UTC."""
    if text is None:
        return None
    micros = parse_instant(js_trim(text))
    if micros is None:
        raise _bad(name, "is not an ISO 8601 date and time, such as 2026-03-28T22:34:06.792Z")
    if micros > now_us + FUTURE_US:
        raise _bad(name, f"lies in the future ({iso(micros)[:10]}); check the clock that it comes from")
    return iso(micros)


def _body(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise _bad(name, "must be a text")
    return value


def _optional_body(given: Mapping[str, Any], name: str) -> str | None:
    return None if given.get(name) is None else _body(given, name)


def _bad(name: str, what: str) -> UsageError:
    return UsageError(f"{name} {what}", hint="see signet-sync session end --help", code="input-invalid")


# ── turns of a streaming harness: a line of JSON each, read strictly ──

_TURN_FIELDS = ("turn", "role", "text", "at")
_ROLE_LIMIT = 64  # characters
_PLACE_FIELDS = ("project", "harness")
_LAST_TURN = 2**63 - 1
_TURN_HINT = (
    'nothing was written; a line is one turn: {"turn": 3, "role": "user", "text": "…", "at": "2026-03-28T22:34:06Z"}'
)
_CONTROL = late("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Turn(NamedTuple):
    """One turn as it was sent, unsanitized; `at` is ISO 8601 UTC with milliseconds, never later than now.

    `place` has project and harness where they were given, unchecked.
    """

    turn: int
    role: str
    text: str
    at: str
    place: Mapping[str, Any] = {}


def turn_of(line: bytes, number: int, *, now_us: int) -> Turn:
    """Parses the turn in a line; `number` is the line's, from 1. Raises `UsageError` (`input-invalid`)."""
    given = _parse_line(line, number)
    unknown = sorted(name for name in given if name not in (*_TURN_FIELDS, *_PLACE_FIELDS))
    if unknown:
        raise _bad_line(number, f"has an unknown field {unknown[0][:60]!r}")
    missing = [name for name in _TURN_FIELDS if given.get(name) is None]
    if missing:
        raise _bad_line(number, f"lacks {missing[0]}")
    turn, role, text, at = (given[name] for name in _TURN_FIELDS)
    if type(turn) is not int or not 0 <= turn <= _LAST_TURN:
        raise _bad_line(number, "has a turn that is no whole number from 0 on")
    if not isinstance(role, str) or not js_trim(role) or len(role) > _ROLE_LIMIT or _CONTROL.search(role):
        raise _bad_line(number, f"has a role that is no text of 1 to {_ROLE_LIMIT} characters on one line")
    if not isinstance(text, str):
        raise _bad_line(number, "has a text that is none")
    place = {name: given[name] for name in _PLACE_FIELDS if given.get(name) is not None}
    return Turn(turn, role, text, _read_moment(at, number, now_us), place)


def _parse_line(line: bytes, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError as error:
        raise _bad_line(number, f"is not UTF-8: byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise _bad_line(number, f"is not JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError):
        raise _bad_line(number, "is not JSON that can be read: it nests too deeply, or a number is too long") from None
    if not isinstance(value, dict):
        raise _bad_line(number, "is not a JSON object")
    return value


def _read_moment(at: object, number: int, now_us: int) -> str:
    micros = parse_instant(js_trim(at)) if isinstance(at, str) else None
    if micros is None:
        raise _bad_line(number, "has an at that is no ISO 8601 date and time")
    # A time is never later than now: the end of a session follows from these times, and a fast clock must not mislead
    # it.
    return iso(min(micros, now_us))


def _bad_line(number: int, what: str) -> UsageError:
    return UsageError(f"line {number} {what}", hint=_TURN_HINT, code="input-invalid")
