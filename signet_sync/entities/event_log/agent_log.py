"""Reads an agent's event log from disk, only as far as needed, and appends to it."""

import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar, cast

from signet_sync.entities.event_log import chain
from signet_sync.entities.event_log import files as event_log_files
from signet_sync.entities.event_log.chain import LogLine
from signet_sync.entities.event_log.events import (
    Event,
    LineProblem,
    LogEntry,
    State,
    WriteOutcome,
    decode,
    key_of,
    states_of,
)
from signet_sync.entities.evidence import ENTROPY, ulid_at
from signet_sync.errors import WorkspaceError
from signet_sync.formats.entity_paths import ledger_page
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.storage import files
from signet_sync.storage.files import Root

_LogEntry = TypeVar("_LogEntry", bound=LogEntry)

# The part at the end of a page that is read first, in bytes. A line is rarely longer than a section.
_END = 128 * 1024
# The start of a line: its id, then the event whose outcome it is, or the entity it concerns.
_HEAD = re.compile(
    r'\{"v":1,"id":"([^"]+)",(?:"token":"[^"]+",)?"at":"[^"]+",'
    r'(?:"of":"([^"]+)"|"agent_id":"[^"]+",(?:"entity_id":"([^"]+)")?)'
)
_DAY = re.compile(r'"at":"(\d{4}-\d\d-\d\d)T')
# The end of a line with a final outcome. A torn line may contain the word, but not this end.
_FINAL = re.compile(r'"state":"(?:committed|failed)","prev":"[0-9a-f]{64}","hash":"[0-9a-f]{64}"\}\Z', re.ASCII)


class _Head(NamedTuple):
    """The start of a line; missing parts are empty."""

    id: str
    of: str
    entity_id: str


_NO_HEAD = _Head("", "", "")


class EventLog:
    """The pages of an agent's event log. Writers hold the workspace's lock."""

    def __init__(self, root: str, agent_id: str, vault: Root | None = None) -> None:
        self.root = root
        self._vault = vault or root
        self.agent_id = agent_id
        self._pages: dict[str, str] = dict(event_log_files.pages(self._vault, agent_id))
        self._raw: dict[str, bytes] = {}
        self._entries: dict[str, LogEntry | LineProblem] = {}
        self._lines: list[LogLine] | None = None
        self._known_heads: list[_Head] | None = None
        self._owned: dict[str, list[int]] | None = None

    def _heads(self) -> list[_Head]:
        """Returns the starts of the lines without decoding them."""
        if self._known_heads is None:
            found = (_HEAD.match(line.text) for line in self.lines())
            self._known_heads = [
                _NO_HEAD if one is None else _Head(one[1], one[2] or "", one[3] or "") for one in found
            ]
        return self._known_heads

    # ── reading ──

    def pages(self) -> dict[str, str]:
        """Returns months and paths of its pages, oldest first."""
        return dict(self._pages)

    def is_torn(self) -> bool:
        """Checks whether a crash left a partial line at its end."""
        lines = self._end()
        entry = self._entry(lines[-1].text) if lines else None
        return isinstance(entry, LineProblem) and entry.code == "not-json"

    def last(self) -> LogEntry | None:
        """Returns the last readable entry; None if there is none."""
        found = (self._entry(line.text) for line in reversed(self._end()))
        return next((entry for entry in found if not isinstance(entry, LineProblem)), None)

    def holds(self, text: str) -> bool:
        """Checks whether a text occurs in it."""
        wanted = text.encode()
        return any(wanted in self._read(month) for month in self._pages)

    def size(self) -> int:
        """Counts its lines."""
        return sum(self._read(month).count(b"\n") for month in self._pages)

    def after(self, last_hash: str) -> int | None:
        """Counts the lines after the one with this hash; None if it is not near the end."""
        wanted = f'"hash":"{last_hash}"'
        return next((count for count, line in enumerate(reversed(self._end())) if wanted in line.text), None)

    def lines(self) -> list[LogLine]:
        """Returns its lines in the order of the pages."""
        if self._lines is None:
            self._lines = [line for month in self._pages for line in chain.lines_of(month, self._read(month))]
        return self._lines

    def entries(self) -> list[LogEntry]:
        """Returns all readable entries."""
        return self._readable(self.lines())

    def holding(self, text: str) -> list[LogEntry]:
        """Returns events whose lines contain a text, with all their outcomes, in order."""
        if not self.holds(text):
            return []
        heads = self._heads()
        chosen = {at for at, line in enumerate(self.lines()) if text in line.text}
        ids = {heads[at].id for at in chosen}
        chosen.update(at for at, head in enumerate(heads) if head.of and head.of in ids)
        return self._readable(self.lines()[at] for at in sorted(chosen))

    def events_holding(self, text: str) -> list[Event]:
        """Returns events whose lines contain a text, in order."""
        return [entry for entry in self.holding(text) if isinstance(entry, Event)]

    def of(self, entity_id: str) -> list[LogEntry]:
        """Returns the entries of an entity."""
        if self._owned is None:
            self._owned = {}
            owners: dict[str, str] = {}
            for at, head in enumerate(self._heads()):
                owner = head.entity_id or owners.get(head.of)
                if owner:
                    owners[head.id] = owner
                    self._owned.setdefault(owner, []).append(at)
        return self._readable(self.lines()[at] for at in self._owned.get(entity_id, ()))

    def under(self, key: str) -> list[LogEntry]:
        """Returns the entries written under a caller's idempotency key."""
        return self.holding(f'"idempotency_key":"{key_of(self.agent_id, key)}"')

    def event(self, event_id: str) -> Event | None:
        """Returns the event with this id."""
        found = (entry for entry in self.holding(f'"id":"{event_id}"') if entry.id == event_id)
        return next((entry for entry in found if isinstance(entry, Event)), None)

    def unsettled(self) -> list[Event]:
        """Returns events whose write has no known end, or was written but not committed."""
        ended: set[str] = set()
        waiting = []
        for line, head in zip(self.lines(), self._heads(), strict=True):
            if head.of and _FINAL.search(line.text):
                ended.add(head.of)
            elif not head.of and '"state":"pending"' in line.text:
                waiting.append((head.id, line))
        left = [line for event_id, line in waiting if event_id not in ended]
        return [entry for entry in self._readable(left) if isinstance(entry, Event)]

    def days(self) -> list[str]:
        """Returns the days (`YYYY-MM-DD`, UTC) that have entries, in order."""
        return sorted({match[1] for line in self.lines() if (match := _DAY.search(line.text))})

    def state_of(self, event: Event) -> State:
        """Returns the state of an event's write."""
        return states_of(self.holding(f'"id":"{event.id}"'))[event.id]

    # ── writing ──

    def add(self, entries: Sequence[_LogEntry], now_us: int) -> tuple[_LogEntry, ...]:
        """Appends entries durably; returns them with their hashes. Raises `WorkspaceError`, `OSError`."""
        addition = chain.add(self._end(), entries, outcome_id=new_ulid(now_us), at=iso(now_us))
        try:
            for month, text in addition.writes:
                path = self._pages.get(month) or ledger_page(self.agent_id, month)
                raw = self._read(month) if month in self._pages else b""
                event_log_files.append(self.root, path, text, len(raw))
                self._pages[month] = path
                self._raw[month] = raw + text.encode()
        except (OSError, WorkspaceError):
            self._forget()
            raise
        self._unread()
        return cast("tuple[_LogEntry, ...]", addition.sealed[len(addition.sealed) - len(entries) :])

    def merge_copies(self) -> bool:
        """Appends what other machines' conflict copies add, and deletes the copies; a damaged one is left to a person.

        A page equal to its copy may be what was copied, about to be replaced: that copy is kept. Returns whether
        entries were added. The result depends only on log and copy: machines that merge the same copy write the same
        bytes. Raises `WorkspaceError`, `OSError`.
        """
        added = False
        for month, path in event_log_files.copies(self.root, self.agent_id):
            raw = event_log_files.read(self.root, path)
            news = chain.missing(self.lines(), chain.lines_of(month, raw))
            if news is None:
                continue
            if news:
                self.add(news, parse_instant(f"{month}-01T00:00:00.000Z") or 0)
                added = True
            page = self._pages.get(month)
            if page is None or raw != self._read(month) or files.is_later(self.root, page, path):
                files.retract(self.root, path, raw)
        return added

    def rewrite(self, lines: Iterable[LogLine]) -> None:
        """Replaces the lines of its pages, for a removal."""
        by_month: dict[str, list[LogLine]] = {month: [] for month in self._pages}
        for line in lines:
            by_month[line.month].append(line)
        for month, kept in by_month.items():
            data = chain.page_of(kept)
            if data != self._read(month):
                event_log_files.rewrite(self.root, self._pages[month], data, self._read(month))
        self._forget()

    def _forget(self) -> None:
        self._pages = dict(event_log_files.pages(self._vault, self.agent_id))
        self._raw.clear()
        self._unread()

    def _unread(self) -> None:
        self._lines = self._known_heads = self._owned = None

    def _read(self, month: str) -> bytes:
        if month not in self._raw:
            self._raw[month] = event_log_files.read(self._vault, self._pages[month])
        return self._raw[month]

    def _end(self) -> list[LogLine]:
        """Returns the last lines, at least from the last readable one."""
        if not self._pages:
            return []
        month = list(self._pages)[-1]
        page = self._read(month)
        start = page.find(b"\n", len(page) - _END) + 1 if len(page) > _END else 0
        lines = chain.lines_of(month, page[start:])
        if any(not isinstance(self._entry(line.text), LineProblem) for line in reversed(lines)):
            return lines
        return self.lines()

    def _readable(self, lines: Iterable[LogLine]) -> list[LogEntry]:
        found = (self._entry(line.text) for line in lines)
        return [entry for entry in found if not isinstance(entry, LineProblem)]

    def _entry(self, text: str) -> LogEntry | LineProblem:
        known = self._entries.get(text)
        if known is None:
            known = self._entries[text] = decode(text)
        return known


def new_ulid(now_us: int) -> str:
    """Makes a new, unique ULID for this instant."""
    return ulid_at(now_us, os.urandom(ENTROPY))


def outcome(event: Event, state: State, now_us: int) -> WriteOutcome:
    """Makes an outcome of an event's write."""
    return WriteOutcome(id=new_ulid(now_us), at=iso(now_us), of=event.id, state=state)
