"""Reads and appends to an agent's event log: month pages of JSON lines in `entities/ledger/`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from signet_sync.entities.events import (
    ENTROPY,
    GENESIS,
    Event,
    LogLine,
    decode,
    encode,
    lines_of,
    news_of,
    seal,
    ulid_at,
)
from signet_sync.entities.finding import Finding
from signet_sync.errors import WorkspaceError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import ledger_page, original_of, parse_ledger_page
from signet_sync.formats.snapshot import Trouble
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.storage import files
from signet_sync.storage.files import Root, reading
from signet_sync.storage.safe_paths import split_path

LIMIT = 64 << 20  # bytes of a page


class EventLog:
    """The pages of an agent's event log. Writers hold the workspace's lock."""

    def __init__(self, root: str, agent_id: str, vault: Root | None = None) -> None:
        self.root = root
        self.agent_id = agent_id
        self._vault = vault or root
        self._folder, _ = split_path(ledger_page(agent_id, "2000-01"))
        self._raw: dict[str, bytes] = {}
        self._lines: list[LogLine] | None = None
        self._decoded: dict[str, Event | Finding] = {}
        self._pages = self._listed()

    # ── reading ──

    def lines(self) -> list[LogLine]:
        """Returns its lines in the order of the pages."""
        if self._lines is None:
            self._lines = [line for month in self._pages for line in lines_of(month, self._page(month))]
        return self._lines

    def events(self, holding: str = "") -> list[Event]:
        """Returns the readable events, in order; with `holding` only those whose line contains that text."""
        found = (self._event(line.text) for line in self.lines() if not holding or holding in line.text)
        return [event for event in found if isinstance(event, Event)]

    def of(self, entity_id: str) -> list[Event]:
        """Returns the events of an entity."""
        return [event for event in self.events(f'"entity_id":"{entity_id}"') if event.entity_id == entity_id]

    def unreadable(self) -> list[LogLine]:
        """Returns the lines that are no events."""
        return [line for line in self.lines() if not isinstance(self._event(line.text), Event)]

    def event(self, event_id: str) -> Event | None:
        """Returns the event with this id."""
        return next((event for event in self.events(f'"id":"{event_id}"') if event.id == event_id), None)

    def last(self) -> Event | None:
        """Returns the last readable event."""
        found = (self._event(line.text) for line in reversed(self.lines()))
        return next((event for event in found if isinstance(event, Event)), None)

    # ── writing ──

    def mend(self) -> None:
        """Drops a last line without an end, which was never acknowledged, or ends it where only that is missing."""
        last = self.lines()[-1:]
        if last and not last[0].whole:
            raw = self._page(last[0].month)
            is_event = isinstance(self._event(last[0].text), Event)
            self._put(last[0].month, raw + b"\n" if is_event else raw[: raw.rfind(b"\n") + 1])

    def append(self, events: Sequence[Event], now_us: int) -> list[Event]:
        """Appends events durably, all or none; returns them with their hashes. Raises `WorkspaceError`, `OSError`."""
        self.mend()
        lines = self.lines()
        end = self._event(lines[-1].text) if lines else None
        if isinstance(end, Finding) and end.code == "version-unknown":
            message, hint = (
                "the event log of entities was written by another version",
                "use that version, or a later one",
            )
            raise WorkspaceError(message, hint=hint, code="ledger-newer")
        last, sealed = self.last(), list[Event]()
        prev = GENESIS if last is None else last.hash
        for event in events:
            sealed.append(seal(event, prev))
            prev = sealed[-1].hash
        # Pages in the order of their months contain the lines in order, even if a clock was set back.
        at = max([iso(now_us)[:7], *self._pages])
        raw = self._page(at) if at in self._pages else b""
        self._put(at, raw + "".join(f"{encode(event)}\n" for event in sealed).encode())
        return sealed

    def withdraw(self, event: Event) -> None:
        """Takes the last event back, whose file could not be written; nobody was told of it."""
        month = list(self._pages)[-1]
        raw, line = self._page(month), f"{encode(event)}\n".encode()
        if raw.endswith(line):
            self._put(month, raw[: -len(line)])

    def merge_copies(self) -> bool:
        """Appends what other machines' conflict copies add, and deletes the copies; a damaged one is left to a person.

        A page equal to its copy may be what was copied, about to be replaced: that copy is kept. Returns whether
        events were added. The result depends only on log and copy: machines that merge the same copy write the same
        bytes.
        """
        added = False
        for name in sorted(files.listing(self.root, self._folder, "")):
            path = f"{self._folder}/{name}"
            page = parse_ledger_page(original_of(path) or "")
            if page is None:
                continue
            raw, month = self._read(path), page[1]
            news = news_of((event.id for event in self.events()), lines_of(month, raw))
            if news is None:
                continue
            if news:
                self.append(news, parse_instant(f"{month}-01T00:00:00.000Z") or 0)
                added = True
            own = self._pages.get(month)
            if own is None or raw != self._page(month) or files.is_later(self.root, own, path):
                files.retract(self.root, path, raw)
        return added

    def erase(self, gone: Callable[[Event | str], bool], tombstone: str) -> None:
        """Takes the text from events for a removal; their hashes stay, and they name its tombstone.

        `gone` decides for each event, and for each unreadable line by its text; such a line is dropped.
        """
        pages: dict[str, list[str]] = {month: [] for month in self._pages}
        for line in self.lines():
            event = self._event(line.text)
            if isinstance(event, Event) and event.text is not None and gone(event):
                pages[line.month].append(encode(replace(event, text=None, erased=tombstone)))
            elif isinstance(event, Event) or not gone(line.text):
                pages[line.month].append(line.text)
        for month, kept in pages.items():
            data = "".join(f"{line}\n" for line in kept).encode("utf-8", "surrogateescape")
            if data != self._page(month):
                self._put(month, data)

    def _put(self, month: str, data: bytes) -> None:
        """Replaces a page, whole or not at all. Raises `WorkspaceError` (`ledger-changed`) if it is another by now."""
        path, before = self._pages.get(month) or ledger_page(self.agent_id, month), self._raw.get(month)
        self._lines = None
        if before is None:
            files.create_once(self.root, path, data)
        elif files.replace(self.root, path, data, before).displaced is not None:
            self._raw.clear()
            message, hint = "the page changed since it was read", "it will be retried"
            raise WorkspaceError(message, path=path, hint=hint, code="ledger-changed")
        self._pages[month], self._raw[month] = path, data

    # ── pages ──

    def _listed(self) -> dict[str, str]:
        """Lists months and paths; an unreadable log must not be taken for an empty one."""
        try:
            with reading(self._vault, self._folder) as vault:
                names = vault.names()
        except FileNotFoundError:
            # An unmounted vault has no event log either, but none may be started there.
            with reading(self._vault, ""):
                return {}
        found = ((parse_ledger_page(f"{self._folder}/{name}"), f"{self._folder}/{name}") for name in names)
        return dict(sorted((page[1], path) for page, path in found if page is not None))

    def _page(self, month: str) -> bytes:
        if month not in self._raw:
            self._raw[month] = self._read(self._pages[month])
        return self._raw[month]

    def _read(self, path: str) -> bytes:
        found = files.read(self._vault, path, LIMIT)
        if not isinstance(found, Trouble):
            return found.raw
        message, hint = (
            f"the page cannot be read: {found.message}",
            "move it away; a page of the event log belongs there",
        )
        raise WorkspaceError(message, path=path, hint=hint, code=found.code)

    def _event(self, text: str) -> Event | Finding:
        if text not in self._decoded:
            self._decoded[text] = decode(text)
        return self._decoded[text]


def new_ulid(now_us: int) -> str:
    """Makes a new, unique ULID for this instant."""
    return ulid_at(now_us, os.urandom(ENTROPY))


def key_digest(agent_id: str, key: str) -> str:
    """Returns the digest of a caller's idempotency key, which may contain anything; events store only the digest."""
    return text_sha256(f"entity\n{agent_id}\n{key}")
