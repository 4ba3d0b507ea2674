"""Rebuilds the files of an entity from its events, byte for byte, and settles unfinished writes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from signet_sync.entities.documents.patch import WHOLE, apply
from signet_sync.entities.event_log.events import Event, LogEntry, State, states_of
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import FILES, File

DONE: frozenset[State] = frozenset({"written", "committed"})


class ReplayStop(NamedTuple):
    """Why the replay of a file stops: `erased` (a removal erased a text), `mismatch` (an event does not fit)."""

    event_id: str
    file: File
    code: Literal["erased", "mismatch"]
    message: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of an entity's events.

    `texts` has the files that can be rebuilt, `states` the state of each event. `unsettled` are events of which it is
    unknown whether they were written (`settle`); the texts do not include them. `slug` is the last name of the folder.
    """

    texts: Mapping[File, str]
    slug: str | None
    states: Mapping[str, State]
    unsettled: tuple[Event, ...]
    trouble: tuple[ReplayStop, ...]


def fold(entries: Iterable[LogEntry]) -> Replayed:
    """Rebuilds the files of one entity from all its events, in the order of the log.

    Every event records the file's hash before and after (`file_before`, `file_after`). If they do not fit, the file is
    not rebuilt any further until an event contains it as a whole. An event may start from an earlier state than the
    latest: two machines wrote at once, and their logs were merged. The file is then continued from that state, the
    later line counts, and a state that was reached before is not reached a second time.
    """
    known = list(entries)
    states = states_of(known)
    # Machines that wrote at once continued from the same state: it is kept until all events that start from it are
    # applied.
    found = Counter((e.file, e.file_before) for e in known if isinstance(e, Event) and e.file_before is not None)
    files = {
        file: _ReplayedFile(file, Counter({sha: n for (name, sha), n in found.items() if name == file}))
        for file in FILES
    }
    slug: str | None = None
    unsettled = []
    for entry in known:
        if not isinstance(entry, Event):
            continue
        if states[entry.id] == "pending":
            unsettled.append(entry)
        elif states[entry.id] in DONE:
            if entry.file is not None and entry.file_after is not None:
                files[entry.file].apply_event(entry)
            named = (entry.payload or {}).get("slug")
            slug = named if isinstance(named, str) else slug
    return Replayed(
        texts={name: file.text for name, file in files.items() if file.text is not None},
        slug=slug,
        states=states,
        unsettled=tuple(unsettled),
        trouble=tuple(file.trouble for file in files.values() if file.trouble is not None),
    )


class _ReplayedFile:
    """A file during replay; `trouble` lasts until an event contains the file as a whole.

    `finders` counts the events that start from each state of it, by hash.
    """

    def __init__(self, name: File, finders: Counter[str]) -> None:
        self._name = name
        self._finders = finders
        self._earlier: dict[str | None, str] = {}
        self._reached: set[str | None] = set()
        self._sha: str | None = None
        self.text: str | None = None
        self.trouble: ReplayStop | None = None

    def apply_event(self, event: Event) -> None:
        if event.erased is not None:
            if self.trouble is None:
                self._stop(
                    event, "erased", "a removal erased the text of an event, and no later event contains the whole file"
                )
            return
        payload = event.payload or {}
        stated = WHOLE in payload
        if self.trouble is not None and not stated:
            return
        found = self._found(event)
        aside = event.file_before != self._sha if not stated else event.op == "create"
        if aside and event.file_after in self._reached:
            return  # an event of another machine led to this state already
        if not stated and found is None and event.file_before != self._sha:
            self._stop(event, "mismatch", "the event starts from another file than earlier events left")
            return
        text = apply(found, payload)
        if text is None or text_sha256(text) != event.file_after:
            self._stop(event, "mismatch", "the event does not produce the file that it recorded")
            return
        self.text, self._sha, self.trouble = text, event.file_after, None
        self._reached.add(self._sha)

    def _found(self, event: Event) -> str | None:
        """Returns the text that an event starts from, even an earlier one; None if no event before led to it."""
        sha = event.file_before
        text = self.text if sha == self._sha else self._earlier.get(sha)
        if sha is not None and text is not None:
            self._finders[sha] -= 1
            if self._finders[sha] > 0:
                self._earlier[sha] = text
            else:
                self._earlier.pop(sha, None)
        return text

    def _stop(self, event: Event, code: Literal["erased", "mismatch"], message: str) -> None:
        self.text = self._sha = None
        self.trouble = ReplayStop(event.id, self._name, code, message)


def settle(
    event: Event, text: str | None, section_sha256: str | None = None
) -> Literal["written", "failed", "unknown"]:
    """Decides how the write of an unsettled event ended, from its file's present content (`text`, None: there is none).

    If a person changed the file since, the hash of the event's section (`documents.body_sha`) may still decide. The
    write of an event that changes no file cannot fail.
    """
    if event.file is None or event.file_after is None:
        return "written"
    found = None if text is None else text_sha256(text)
    # A write that leaves the file unchanged counts as done in any case.
    if found == event.file_after:
        return "written"
    if found == event.file_before:
        return "failed"
    if section_sha256 is not None and event.before != event.after:
        if section_sha256 == event.after:
            return "written"
        if section_sha256 == event.before:
            return "failed"
    return "unknown"
