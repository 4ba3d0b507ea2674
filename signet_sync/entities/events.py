"""Defines the events of entity files: one JSON line for each, chained by hashes. Pure.

A line's hash covers the previous hash and everything but `text`, which has a hash of its own (`content`): so a removal
can erase a text while the chain stays whole. `text` holds what a person wants to read: the parts of the file before and
after, reasons, sources.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, get_args

from ulid import ULID

from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import File, Finding, ledger_page
from signet_sync.formats.timestamps import iso, parse_instant

Actor = Literal["agent", "person", "maintainer", "observer"]
Operation = Literal[
    "create", "set", "clear", "append", "append_item", "prune_item", "deprecate", "status", "pin", "unpin", "lock",
    "unlock", "propose", "approve", "reject", "undo", "human_edit", "resolve", "erase", "restate",
]  # fmt: skip

VERSION = 2
GENESIS = "0" * 64  # the previous hash in the first line of an agent's event log

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.ASCII)
_TOKEN = re.compile(rf"(?<![\w:])ev:(\d{{8}}T\d{{6}}Z)-({_ULID.pattern})(?![\w-])", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
# JSON escapes C0; these end a line for some readers or are not valid UTF-8.
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_LAST = 253_402_300_799_999  # milliseconds: the end of the year 9999


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An operation on a file of an entity; fields in the order of the line.

    `id` is a ULID, `at` ISO 8601 UTC. `entity_id` and `file` are None for an event that concerns no entity or changes
    no file. `before` and `after` are hashes of the section's text; `found` is the hash of the bytes that the write
    replaces (None: there was no file), `left` that of the file afterwards. `key` is the digest of an idempotency key,
    `request` that of its request. `facts` hold no words: days, numbers, ids. `erased` names the tombstone of the
    removal that took the text.
    """

    id: str
    at: str
    agent_id: str
    actor: Actor
    op: Operation
    entity_id: str | None = None
    file: File | None = None
    section: str | None = None
    before: str | None = None
    after: str | None = None
    found: str | None = None
    left: str | None = None
    key: str | None = None
    request: str | None = None
    facts: Mapping[str, Any] | None = None
    content: str | None = None
    prev: str = ""
    hash: str = ""
    erased: str | None = None
    text: Mapping[str, Any] | None = None

    @property
    def token(self) -> str:
        """Returns the name by which files refer to it: `ev:YYYYMMDDThhmmssZ-ULID`."""
        return token_of(self.id)

    def text_part(self, name: str) -> Any:
        """Returns a part of the text; None where there is none, or it was erased."""
        return (self.text or {}).get(name)

    def fact(self, name: str) -> Any:
        """Returns a fact; None where there is none."""
        return (self.facts or {}).get(name)


class LogLine(NamedTuple):
    """A line of a page: the page's month (`YYYY-MM`), its number from 1, its text, and whether a newline ends it."""

    month: str
    number: int
    text: str
    whole: bool


# ── names ──


def token_of(ulid: str) -> str:
    """Returns the token of a ULID; its time part is the ULID's time in seconds."""
    at = iso(ULID.from_str(ulid).milliseconds * 1000)
    return f"ev:{at[:19].replace('-', '').replace(':', '')}Z-{ulid}"


def tokens_in(text: str) -> tuple[str, ...]:
    """Returns the ULIDs of all valid tokens in a text, in order."""
    return tuple(m[2] for m in _TOKEN.finditer(text) if _is_id(m[2]) and token_of(m[2]) == m[0])


# ── lines ──

_HINTS = {
    "torn": "nothing to do: the next write drops it; it was never acknowledged",
    "version-unknown": "use the version that wrote it",
    "agent-mismatch": "move the page to the event log of its agent",
}
TRUNCATED = "the end of the event log is missing: the index recorded a later line"
_BACKUP = "compare the page with a backup or with the workspace's history"
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True)
_OUTSIDE = ("prev", "hash", "erased", "text")


def canonical(value: Any) -> str:
    """Returns a value as JSON on one line, keys sorted, characters escaped that end a line for some readers."""
    return _UNSAFE.sub(lambda unsafe: f"\\u{ord(unsafe[0]):04x}", _encoder.encode(value))


def encode(event: Event) -> str:
    """Encodes a sealed event as its line, without the newline; fields that are None are left out."""
    record: dict[str, Any] = {"v": VERSION}
    record |= {name: value for name in _CHECKS if (value := getattr(event, name)) is not None}
    parts = (f"{canonical(name)}:{canonical(value)}" for name, value in record.items())
    return "{" + ",".join(parts) + "}"


def seal(event: Event, prev: str) -> Event:
    """Adds the hashes to an event that follows the line with the hash `prev` (`GENESIS` for an agent's first)."""
    if event.erased is None:
        event = replace(event, content=None if event.text is None else text_sha256(canonical(event.text)))
    event = replace(event, prev=prev)
    return replace(event, hash=_chain_hash(event))


def _chain_hash(event: Event) -> str:
    core = {name: getattr(event, name) for name in _CHECKS if name not in _OUTSIDE}
    return text_sha256(f"{event.prev}\n{canonical({k: v for k, v in core.items() if v is not None})}")


def decode(line: str) -> Event | Finding:
    """Decodes a line, with or without its newline. `damage` checks the event's own hashes, `verify` the chain."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        return _problem("not-json", "the line is not JSON")
    if record.pop("v", None) != VERSION:
        return _problem("version-unknown", "the line was written by another version")
    try:
        if record.keys() >= _NEEDED and all(name in _CHECKS and _CHECKS[name](value) for name, value in record.items()):
            return Event(**record)
    except TypeError:
        pass
    return _problem("field-invalid", "the line lacks a field or has an invalid one")


def _problem(code: str, message: str) -> Finding:
    return Finding(code, message, _HINTS.get(code, _BACKUP))


def damage(event: Event) -> Finding | None:
    """Checks an event against its own hashes; returns None if it is intact, erased or not."""
    if _chain_hash(event) != event.hash:
        return _problem("hash-mismatch", "the line was changed")
    held = None if event.text is None else text_sha256(canonical(event.text))
    if held != event.content and not (event.erased is not None and event.text is None):
        return _problem("text-changed", "the text of the event was changed")
    return None


def _is_id(value: Any) -> bool:
    return _ULID.fullmatch(value) is not None and ULID.from_str(value).milliseconds <= _LAST


def _is_instant(value: Any) -> bool:
    instant = parse_instant(value)
    return instant is not None and iso(instant) == value


# The check of each field's value, in the order of the line; one of another type raises `TypeError`.
_CHECKS: dict[str, Callable[[Any], object]] = dict.fromkeys((field.name for field in fields(Event)), _HASH.fullmatch)
_CHECKS |= dict.fromkeys(("agent_id", "entity_id", "section", "erased"), re.compile(".+", re.DOTALL).fullmatch)
_CHECKS |= dict.fromkeys(("facts", "text"), lambda value: isinstance(value, dict))
_CHECKS |= {"id": _is_id, "at": _is_instant, "actor": frozenset(get_args(Actor)).__contains__}
_CHECKS |= {"op": frozenset(get_args(Operation)).__contains__, "file": frozenset(get_args(File)).__contains__}
_NEEDED = {"id", "at", "agent_id", "actor", "op", "prev", "hash"}


# ── pages ──


def lines_of(month: str, page: bytes) -> list[LogLine]:
    """Splits a page into lines. Invalid UTF-8 becomes surrogates: such a line is damaged, the others are readable."""
    texts = page.decode("utf-8", "surrogateescape").split("\n")
    last = texts.pop()
    lines = [LogLine(month, number, text, True) for number, text in enumerate(texts, 1)]
    return [*lines, LogLine(month, len(lines) + 1, last, False)] if last else lines


def news_of(known: Iterable[str], other: Iterable[LogLine]) -> list[Event] | None:
    """Returns the events of another machine's copy that these ids lack, in its order; None if the copy is damaged."""
    seen, news = set(known), list[Event]()
    for line in other:
        event = decode(line.text)
        if isinstance(event, Finding) or damage(event) is not None:
            return None
        if event.id not in seen:
            seen.add(event.id)
            news.append(event)
    return news


def verify(lines: Sequence[LogLine], *, known_last: str, agent_id: str) -> list[Finding]:
    """Lists the defects of an event log in the order of its lines; empty if every line is as it was written.

    `lines` are those of all pages in the order of their months. `known_last` is the id of the last event in the index:
    without it ("") a lost end cannot be detected.
    """
    found: list[Finding] = []
    events = [decode(line.text) for line in lines]
    removals = {e.fact("tombstone") for e in events if isinstance(e, Event) and e.op == "erase"}
    last: str | None = GENESIS  # the hash that the next line must follow; None if that is unknown
    ids = set[str]()

    def say(code: str, message: str, line: LogLine, event_id: str = "") -> None:
        message = f"line {line.number}: {message}" if line.number else message
        path = ledger_page(agent_id, line.month) if line.month else ""
        found.append(_problem(code, message)._replace(path=path, id=event_id, line=line.number))

    for line, event in zip(lines, events, strict=True):
        if not line.whole and line is lines[-1]:
            say("torn", "the last line was cut off while it was written", line)
            continue
        if isinstance(event, Finding):
            say(event.code, event.message, line)
            last = None
            continue
        if wrong := damage(event):
            say(wrong.code, wrong.message, line, event.id)
        # At the turn of a month a page may begin behind a line that was joined in another order since.
        if last is not None and event.prev != last and (line.number > 1 or line is lines[0]):
            say("gap", "the line before this one is missing, or one of the two was moved", line, event.id)
        if event.agent_id != agent_id:
            say("agent-mismatch", "the event belongs to another agent", line, event.id)
        if event.erased is not None and event.erased not in removals:
            say("erased-unfounded", "the event was erased by a removal that is not on record", line, event.id)
        last = None if wrong is not None and wrong.code == "hash-mismatch" else event.hash
        ids.add(event.id)
    if known_last and known_last not in ids:
        say("truncated", TRUNCATED, lines[-1] if lines else LogLine("", 0, "", True))
    return found
