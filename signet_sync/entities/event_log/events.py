"""Encodes and decodes the lines of the event log: events, and outcomes of their writes, linked by hashes.

Each is one line of canonical JSON, in the order of writing. A line's hash covers the previous hash
and all its fields but those that a removal may erase, which have a hash of their own: so a payload can be erased while
the chain stays valid.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, get_args

from signet_sync.entities.evidence import read_token
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import File
from signet_sync.formats.timestamps import iso, parse_instant

Actor = Literal["agent", "person", "maintainer", "observer"]
Operation = Literal[
    "create", "set", "append", "append_item", "prune_item", "deprecate", "status", "pin", "unpin", "lock",
    "unlock", "propose", "approve", "reject", "schema", "human_edit", "erase",
]  # fmt: skip
State = Literal["pending", "written", "committed", "failed"]
Payload = Mapping[str, Any]

VERSION = 1
# The previous hash in the first line of an agent's event log.
GENESIS = "0" * 64
# The name of a torn line: this, and the sha256 of its remains.
TORN = "torn-"

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
# JSON escapes C0; these end a line for some readers or are not valid UTF-8.
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_MESSAGES = {
    "not-json": "the line is not JSON",
    "not-canonical": "the line is not in the form in which it was written",
    "version-unknown": "the line was written by another version",
    "field-invalid": "the line lacks a field or has an invalid one",
    "payload-changed": "the payload of the event was changed",
    "hash-mismatch": "the line was changed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An operation on a file of an entity, with its actor; fields in the order of the line.

    `id` is a ULID, `token` its `ev:…`, `at` ISO 8601 UTC. `entity_id` and `file` are None for an event that concerns no
    entity or changes no file. `payload` contains what is needed to repeat it (`changes`), `reason` and `rationale` the
    reasons, `evidence` its sources: a removal may erase these four (`erased` then names the tombstone), and
    `payload_sha256` covers them. `before` and `after` are hashes of the section by `body-normalized-v1`, `file_before`
    and `file_after` of the whole file's bytes, None if there was or is none. `idempotency_key` is a digest (`key_of`),
    `request_sha256` the digest of its request. `lint` are codes of the linter's findings. `prev` and `hash` are set by
    `seal`.
    """

    id: str
    token: str
    at: str
    agent_id: str
    entity_id: str | None = None
    actor: Actor
    op: Operation
    file: File | None = None
    section: str | None = None
    payload: Payload | None = None
    reason: str | None = None
    rationale: str | None = None
    evidence: tuple[str, ...] = ()
    payload_sha256: str = ""
    before: str | None = None
    after: str | None = None
    file_before: str | None = None
    file_after: str | None = None
    idempotency_key: str | None = None
    request_sha256: str | None = None
    lint: tuple[str, ...] = ()
    state: State = "pending"
    prev: str = ""
    hash: str = ""
    erased: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome:
    """A further state of a write: `of` is the id of its event, or the name of a torn line (`torn_name`)."""

    id: str
    at: str
    of: str
    state: State
    prev: str = ""
    hash: str = ""


LogEntry = Event | WriteOutcome


class LineProblem(NamedTuple):
    """An unreadable line; `code` is stable, the message is for a person."""

    code: str
    message: str


def problem(code: str) -> LineProblem:
    """Returns the problem with this code."""
    return LineProblem(code, _MESSAGES[code])


# ── writing ──


def seal(entry: LogEntry, prev: str) -> LogEntry:
    """Adds the hashes to an entry that follows the line with the hash `prev` (`GENESIS` for an agent's first).

    Raises `ValueError` for an entry that `decode` would not return unchanged: a value that is no text, integer, truth
    value, list or mapping, or a field of another form than the line has.
    """
    if isinstance(entry, Event):
        # An erased payload is known by its hash alone, also where the log of another machine places it elsewhere.
        held = payload_hash(entry) if entry.erased is None else entry.payload_sha256
        entry = replace(entry, payload_sha256=held, prev=prev)
    else:
        entry = replace(entry, prev=prev)
    entry = replace(entry, hash=chain_hash(entry))
    found = decode(encode(entry))
    if isinstance(found, LineProblem):
        raise ValueError(f"{found.code}: {found.message}")
    if found != entry:
        raise ValueError("the entry does not come back from its line as it is")
    return entry


def encode(entry: LogEntry) -> str:
    """Encodes a sealed entry as a canonical line: JSON without blanks, fields in a fixed order, no newline.

    Fields that are None or empty are left out.
    """
    return _json(_record(entry))


def payload_hash(event: Event) -> str:
    """Returns the lower-case hex sha256 of the fields that a removal may erase."""
    return text_sha256(_json([_sorted(event.payload), event.reason, event.rationale, event.evidence]))


def chain_hash(entry: LogEntry) -> str:
    """Returns the lower-case hex sha256 of the previous hash, a newline, and the line without `_UNSEALED` fields."""
    record = _record(entry)
    for name in _UNSEALED:
        record.pop(name, None)
    return text_sha256(f"{entry.prev}\n{_json(record)}")


def erased(event: Event, tombstone: str) -> Event:
    """Returns the event without its texts, for the removal with this tombstone (its name); hashes are kept."""
    return replace(event, payload=None, reason=None, rationale=None, evidence=(), erased=tombstone)


def _record(entry: LogEntry) -> dict[str, Any]:
    record: dict[str, Any] = {"v": VERSION}
    for name in _FIELDS[type(entry)]:
        value = getattr(entry, name)
        if value is not None and value != ():
            record[name] = _sorted(value) if name == "payload" else value
    return record


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("a key of a payload is no text")
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_sorted(item) for item in value]
    if value is None or isinstance(value, (str, int)):
        return value
    raise ValueError(f"a payload cannot hold a {type(value).__name__}")


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _json(value: Any) -> str:
    text = _encoder.encode(value)
    for unsafe in set(_UNSAFE.findall(text)):
        text = text.replace(unsafe, f"\\u{ord(unsafe):04x}")
    return text


# ── reading ──


def decode(line: str) -> Event | WriteOutcome | LineProblem:
    """Decodes a line, with or without its newline; returns a `LineProblem` for a line that `encode` did not write.

    `damage` checks the entry's own hashes, `chain.verify` the chain.
    """
    line = line.removesuffix("\n")
    if not line.startswith("{"):
        return problem("not-json")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return problem("not-json")
    if not isinstance(record, dict):
        return problem("not-json")
    if record.pop("v", None) != VERSION:
        return problem("version-unknown")
    kind: type[Event] | type[WriteOutcome] = WriteOutcome if "of" in record else Event
    checks = _FIELDS[kind]
    if not _NEEDED[kind] <= record.keys() <= checks.keys() or not all(checks[name](record[name]) for name in record):
        return problem("field-invalid")
    for name in _LISTS & record.keys():
        record[name] = tuple(record[name])
    entry = kind(**record)
    if isinstance(entry, Event) and not _consistent(entry):
        return problem("field-invalid")
    try:
        canonical = encode(entry) == line
    except (ValueError, RecursionError):
        canonical = False
    return entry if canonical else problem("not-canonical")


def damage(entry: LogEntry) -> LineProblem | None:
    """Checks an entry against its own hashes; returns None if it is intact, erased or not."""
    if chain_hash(entry) != entry.hash:
        return problem("hash-mismatch")
    if isinstance(entry, Event) and entry.erased is None and payload_hash(entry) != entry.payload_sha256:
        return problem("payload-changed")
    return None


def _consistent(event: Event) -> bool:
    """Checks that the token belongs to the id, and that an erased event has no texts."""
    token = read_token(event.token)
    gone = (event.payload, event.reason, event.rationale, event.evidence) == (None, None, None, ())
    return token is not None and token.ulid == event.id and (gone or event.erased is None)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(isinstance(item, str) for item in value)


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and _ULID.fullmatch(value) is not None


def _is_written_instant(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    instant = parse_instant(value)
    return instant is not None and iso(instant) == value


def _one_of(words: object) -> Callable[[Any], bool]:
    known = frozenset(get_args(words))
    return lambda value: isinstance(value, str) and value in known


# The check of each field's value; the order of fields is that of the dataclasses.
_CHECKS: dict[str, Callable[[Any], bool]] = {
    "id": _is_id, "token": _is_text, "at": _is_written_instant, "agent_id": _is_text, "entity_id": _is_text,
    "actor": _one_of(Actor), "op": _one_of(Operation), "file": _one_of(File), "section": _is_text,
    "payload": lambda value: isinstance(value, dict), "reason": _is_text, "rationale": _is_text,
    "evidence": _is_texts, "payload_sha256": _is_hash, "before": _is_hash, "after": _is_hash, "file_before": _is_hash,
    "file_after": _is_hash, "idempotency_key": _is_hash, "request_sha256": _is_hash, "lint": _is_texts,
    "state": _one_of(State), "prev": _is_hash, "hash": _is_hash, "erased": _is_text, "of": _is_text,
}  # fmt: skip
_FIELDS: dict[type[LogEntry], dict[str, Callable[[Any], bool]]] = {
    kind: {field.name: _CHECKS[field.name] for field in fields(kind)} for kind in (Event, WriteOutcome)
}
_NEEDED = {
    Event: {"id", "token", "at", "agent_id", "actor", "op", "payload_sha256", "state", "prev", "hash"},
    WriteOutcome: _FIELDS[WriteOutcome].keys(),
}
_LISTS = {"evidence", "lint"}
# `prev` is hashed first; the next four are covered by `payload_sha256`; `erased` is added later.
_UNSEALED = ("prev", "payload", "reason", "rationale", "evidence", "hash", "erased")


# ── states and requests ──


def states_of(entries: Iterable[LogEntry]) -> dict[str, State]:
    """Returns the state of each event by id, after all its outcomes; a final state does not change."""
    states: dict[str, State] = {}
    for entry in entries:
        if isinstance(entry, Event):
            states.setdefault(entry.id, entry.state)
        elif may_follow(states.get(entry.of), entry.state):
            states[entry.of] = entry.state
    return states


def may_follow(state: State | None, after: State) -> bool:
    """Checks a change of state: pending → written → committed, or failed before it is written."""
    if state == "pending":
        return after in ("written", "committed", "failed")
    return state == "written" and after == "committed"


def key_of(agent_id: str, key: str) -> str:
    """Returns the digest of a caller's idempotency key, which may contain anything; events store only the digest."""
    return text_sha256(_json(["entity", agent_id, key]))


def request_sha256(request: Payload) -> str:
    """Returns the digest of a request; the order of its keys does not matter."""
    return text_sha256(_json(_sorted(request)))


def replayed(entries: Iterable[LogEntry], key: str, request: str) -> Event | Literal["conflict"] | None:
    """Finds the event written under an idempotency key (`key_of`) for the same request (`request_sha256`).

    Returns `conflict` if the key was used for another request, None if it was not used, or only by failed writes.
    """
    known = list(entries)
    states = states_of(known)
    for entry in known:
        if isinstance(entry, Event) and entry.idempotency_key == key and states[entry.id] != "failed":
            return entry if entry.request_sha256 == request else "conflict"
    return None
