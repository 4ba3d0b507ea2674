"""Keeps the hash chain of an event log: detects edits, gaps and a lost end; the next write closes a torn line."""

from collections.abc import Callable, Container, Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from signet_sync.entities.event_log.events import (
    GENESIS,
    TORN,
    Event,
    LineProblem,
    LogEntry,
    State,
    WriteOutcome,
    damage,
    decode,
    encode,
    erased,
    may_follow,
    seal,
    states_of,
)
from signet_sync.errors import WorkspaceError


class LogLine(NamedTuple):
    """A line of a page: the page's month (`YYYY-MM`), its number from 1, its text, and whether a newline ends it."""

    month: str
    number: int
    text: str
    whole: bool


class LogDefect(NamedTuple):
    """A defect of an event log.

    `id` is that of the event or line, empty if it has none; `month` and `number` locate it; `hint` is the next step for
    a person.
    """

    id: str
    code: str
    message: str
    hint: str
    month: str
    number: int

    @property
    def text(self) -> str:
        """Returns the message with the number of the line."""
        return f"line {self.number}: {self.message}" if self.number else self.message


_BACKUP = "compare the page with a backup or with the workspace's history"
_HINTS = {
    "torn": "nothing to do: the next write closes it",
    "version-unknown": "use the version that wrote it",
    "month-order": "give the pages in the order of their months",
    "agent-mismatch": "move the page to the event log of its agent",
}
_MESSAGES = {
    "torn": "the last line was cut off while it was written",
    "reordered": "the line is not where it was written",
    "gap": "a line before this one is missing or was changed",
    "truncated": "the end of the event log is missing: the index recorded a later line",
    "id-twice": "an earlier line has the same id",
    "month-order": "the page comes after that of a later month",
    "month-wrong": "the line belongs to a later month than its page",
    "agent-mismatch": "the event belongs to another agent",
    "erased-unfounded": "the event was erased by a removal that is not on record",
    "state-unfounded": "the outcome belongs to no earlier event, or to one that has ended",
}


def lines_of(month: str, page: bytes) -> list[LogLine]:
    """Splits a page into lines. Invalid UTF-8 becomes surrogates: such a line is damaged, the others are readable."""
    texts = page.decode("utf-8", "surrogateescape").split("\n")
    last = texts.pop()
    lines = [LogLine(month, number, text, True) for number, text in enumerate(texts, 1)]
    return [*lines, LogLine(month, len(lines) + 1, last, False)] if last else lines


def page_month(at: str, latest: str | None) -> str:
    """Returns the month of the page for a line of this instant; never earlier than the latest existing page.

    Pages in the order of their months therefore contain the lines in order, even if a clock was set back.
    """
    return max(at[:7], latest or "")


class Addition(NamedTuple):
    """The writes that add entries to an event log: month of a page and text for its end, in this order.

    `sealed` are all added entries with their hashes (the caller's come last).
    """

    writes: tuple[tuple[str, str], ...]
    sealed: tuple[LogEntry, ...]


def add(lines: Sequence[LogLine], entries: Sequence[LogEntry], *, outcome_id: str, at: str) -> Addition:
    """Prepares adding entries to an event log.

    `lines` are its last ones, at least from the last readable one; `at` is now, ISO 8601. Lines that a crash cut off
    after it are ended where they are, and a `failed` outcome with `outcome_id` (a ULID) accounts for them before the
    entries. Raises `WorkspaceError` (`ledger-newer`) if a later version wrote the last line.
    """
    torn = lines[_torn_end(lines, len(lines)) :]
    read = next((entry for line in reversed(lines) if not isinstance(entry := decode(line.text), LineProblem)), None)
    if (
        lines
        and not torn
        and isinstance(wrong := decode(lines[-1].text), LineProblem)
        and wrong.code == "version-unknown"
    ):
        raise WorkspaceError(
            "the event log of entities was written by a later version",
            hint="use that version, or a later one",
            code="ledger-newer",
        )
    if torn:
        entries = [WriteOutcome(id=outcome_id, at=at, of=torn_name(torn), state="failed"), *entries]
    sealed = follow(entries, GENESIS if read is None else read.hash)
    month = page_month(at, lines[-1].month if lines else None)
    text = "".join(f"{encode(entry)}\n" for entry in sealed)
    ending = () if not lines or lines[-1].whole else ((lines[-1].month, "\n"),)
    return Addition((*ending, (month, text)), tuple(sealed))


def missing(lines: Iterable[LogLine], other: Iterable[LogLine]) -> list[LogEntry] | None:
    """Returns the entries of another machine's copy that these lines lack, in its order; None if the copy is damaged.

    Entries known here keep their present form: an event that a removal erased here does not come back. Outcomes of
    writes that have ended here are left out.
    """
    known = [entry for line in lines if not isinstance(entry := decode(line.text), LineProblem)]
    ids, states = {entry.id for entry in known}, states_of(known)
    news: list[LogEntry] = []
    for line in other:
        entry = decode(line.text)
        if isinstance(entry, LineProblem) or damage(entry) is not None:
            return None
        if entry.id in ids or (isinstance(entry, WriteOutcome) and not may_follow(states.get(entry.of), entry.state)):
            continue
        ids.add(entry.id)
        states[entry.of if isinstance(entry, WriteOutcome) else entry.id] = entry.state
        news.append(entry)
    return news


def follow(entries: Iterable[LogEntry], last: str) -> list[LogEntry]:
    """Seals entries one after another, after the line whose hash is `last`."""
    sealed: list[LogEntry] = []
    for entry in entries:
        sealed.append(seal(entry, last))
        last = sealed[-1].hash
    return sealed


def torn_name(lines: Iterable[LogLine]) -> str:
    """Returns the name by which an outcome refers to torn lines: `torn-` and the sha256 of their remains."""
    text = "\n".join(line.text for line in lines)
    return TORN + sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def erase(lines: Iterable[LogLine], gone: Callable[[Event | str], bool], tombstone: str) -> list[LogLine]:
    """Returns the lines after a removal: erased events keep their hashes, and name the tombstone.

    `gone` decides for each event that has its texts, and for each unreadable line by its text; such a line is dropped.
    Torn lines that were closed are always dropped: they are not needed, and may contain anything.
    """
    walked = list(lines)
    closed = _closed(walked)
    kept: list[LogLine] = []
    for place, line in enumerate(walked):
        entry = decode(line.text)
        if isinstance(entry, LineProblem):
            if place not in closed and not gone(line.text):
                kept.append(line)
        elif isinstance(entry, Event) and entry.erased is None and gone(entry):
            kept.append(line._replace(text=encode(erased(entry, tombstone))))
        else:
            kept.append(line)
    return kept


def page_of(lines: Iterable[LogLine]) -> bytes:
    """Returns the bytes of a page with these lines."""
    text = "".join(f"{line.text}\n" if line.whole else line.text for line in lines)
    return text.encode("utf-8", "surrogateescape")


def verify(
    lines: Iterable[LogLine],
    *,
    known_last: str | None,
    agent_id: str | None = None,
    tombstones: Container[str] | None = None,
) -> list[LogDefect]:
    """Lists the defects of an event log in the order of its lines; empty if every line is as it was written.

    `lines` are those of all pages in the order of their months. `known_last` is the last hash in the index: without it
    a lost end cannot be detected. An index that is behind is no finding. With `tombstones` (names), each erased event
    must be covered by one of them.
    """
    return _Verification(agent_id, tombstones).findings(list(lines), known_last)


class _Verification:
    """Verifies an event log; `_last` is the hash that the next line must follow, None if that is unknown."""

    def __init__(self, agent_id: str | None, tombstones: Container[str] | None) -> None:
        self._agent_id = agent_id
        self._tombstones = tombstones
        self._last: str | None = GENESIS
        self._month = ""
        self._hashes = {GENESIS}
        self._walked: set[str] = set()
        self._ids: set[str] = set()
        self._states: dict[str, State] = {}
        self._found: list[LogDefect] = []

    def findings(self, lines: list[LogLine], known_last: str | None) -> list[LogDefect]:
        entries = [decode(line.text) for line in lines]
        self._hashes.update(entry.hash for entry in entries if not isinstance(entry, LineProblem))
        closed, torn = _closed(lines), _torn_end(lines, len(lines))
        for place, (line, entry) in enumerate(zip(lines, entries, strict=True)):
            if line.month < self._month:
                self._say("month-order", line)
            self._month = max(self._month, line.month)
            if not isinstance(entry, LineProblem):
                self._read(line, entry)
            elif place >= torn:
                self._say("torn", line)
            elif place not in closed:
                self._say(entry.code, line, message=entry.message)
                self._last = None
        if known_last is not None and known_last not in self._hashes:
            self._say("truncated", lines[-1] if lines else LogLine("", 0, "", True))
        return self._found

    def _read(self, line: LogLine, entry: LogEntry) -> None:
        wrong = damage(entry)
        if wrong is not None:
            self._say(wrong.code, line, entry.id, wrong.message)
        # At the turn of a month a machine may begin a page before it has the last lines of another machine.
        begun = line.number == 1 and entry.prev in self._walked
        self._walked.add(entry.hash)
        if self._last is not None and entry.prev != self._last and not begun:
            self._say("reordered" if entry.prev in self._hashes else "gap", line, entry.id)
        # The true hash of a changed line is unknown, so the next line cannot be checked against it.
        self._last = None if wrong is not None and wrong.code == "hash-mismatch" else entry.hash
        if entry.id in self._ids:
            self._say("id-twice", line, entry.id)
        self._ids.add(entry.id)
        if entry.at[:7] > line.month:
            self._say("month-wrong", line, entry.id)
        if isinstance(entry, Event):
            self._event(line, entry)
        else:
            self._outcome(line, entry)

    def _event(self, line: LogLine, event: Event) -> None:
        self._agent_id = self._agent_id or event.agent_id
        if event.agent_id != self._agent_id:
            self._say("agent-mismatch", line, event.id)
        if event.erased is not None and self._tombstones is not None and event.erased not in self._tombstones:
            self._say("erased-unfounded", line, event.id)
        self._states.setdefault(event.id, event.state)

    def _outcome(self, line: LogLine, outcome: WriteOutcome) -> None:
        if outcome.of.startswith(TORN) and outcome.state == "failed":
            return
        if may_follow(self._states.get(outcome.of), outcome.state):
            self._states[outcome.of] = outcome.state
        else:
            self._say("state-unfounded", line, outcome.id)

    def _say(self, code: str, line: LogLine, entry_id: str = "", message: str = "") -> None:
        hint = _HINTS.get(code, _BACKUP)
        self._found.append(LogDefect(entry_id, code, message or _MESSAGES[code], hint, line.month, line.number))


def _torn_end(lines: Sequence[LogLine], end: int) -> int:
    """Returns where the lines before `end` that are not JSON begin, else `end`.

    They are what a crash left of a write, and of the write that was to account for it. A line that was edited is mostly
    still JSON; it is damage, and no later write accounts for it.
    """
    begin = end
    while begin:
        entry = decode(lines[begin - 1].text)
        if not isinstance(entry, LineProblem) or entry.code != "not-json":
            break
        begin -= 1
    return begin


def _closed(lines: Sequence[LogLine]) -> set[int]:
    """Returns the positions of unreadable lines that the outcome after them accounts for."""
    closed: set[int] = set()
    for place, line in enumerate(lines):
        if f'"of":"{TORN}' not in line.text:
            continue
        begin = _torn_end(lines, place)
        entry = decode(line.text)
        if begin < place and isinstance(entry, WriteOutcome) and entry.of == torn_name(lines[begin:place]):
            closed.update(range(begin, place))
    return closed
