"""Brings sessions: their words that no artifact contains become artifacts, through the flow of every session's end."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, Any

from signet_sync.errors import UsageError
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.filename import artifact_file_name
from signet_sync.formats.ids import is_session_id
from signet_sync.formats.paths import artifact_path
from signet_sync.formats.session_token import derive_token, token_of
from signet_sync.formats.timestamps import iso
from signet_sync.migration import store
from signet_sync.migration.items import EMPTY, Left
from signet_sync.migration.report import Report
from signet_sync.migration.session_text import SessionText, holds, is_within, missing
from signet_sync.migration.signet_rows import NOT_VALID, OF_REMOVED
from signet_sync.migration.writer import back_up_once
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import compaction_input, session_input
from signet_sync.sessions.states import cut_parts
from signet_sync.storage import files
from signet_sync.sync.removals import all_tombstones
from signet_sync.sync.store import artifacts
from signet_sync.sync.store.sessions import SessionRef
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sanitizer import sanitize_transcript_v2
from signet_sync.text.stored_names import session_name, session_value

# Larger notes are too long for a person to open.
SEGMENT_BYTES = 8 * 1024 * 1024
_CONTENT = ("summary", "transcript", "compaction")


class RemovedSessions:
    """The sessions that must not come back, by the names that Signet has for them."""

    def __init__(self, workspace: Workspace) -> None:
        self._tombstones = {(one.agent_id, one.session_token): one for one in all_tombstones(workspace)}
        self._others: dict[tuple[str, str], set[str]] = {}
        for ref in store.sessions(workspace.database):
            self.know(ref.agent_id, {ref.session_id, ref.session_key or "", ref.session_token})

    def add(self, tombstones: Iterable[Tombstone]) -> None:
        """Adds removals that are about to be enforced."""
        for one in tombstones:
            self._tombstones[one.agent_id, one.session_token] = one

    def know(self, agent_id: str, names: Collection[str]) -> None:
        """Notes that several names are those of one session."""
        for name in {*names} - {""}:
            self._others.setdefault((agent_id, name), set()).update(names)

    def covers(self, agent_id: str, name: str, key: str = "") -> bool:
        """Returns whether the session with this name was removed; one that is known by its id only may have a key.

        A name that several sessions have counts as removed if one of them was.
        """
        every = ({name, key} | self._others.get((agent_id, name), set())) - {""}
        for token in {token_of(agent_id, one) for one in every} | every:
            found = self._tombstones.get((agent_id, token))
            if found is not None and (not found.session_ids or not every.isdisjoint(found.session_ids)):
                return True
        return False


class KnownSessions:
    """The sessions that are here, by their names."""

    def __init__(self, workspace: Workspace) -> None:
        self._by_id: dict[tuple[str, str], SessionRef] = {}
        self._by_key: dict[tuple[str, str], SessionRef] = {}
        for ref in store.sessions(workspace.database):
            self.add(ref)

    def add(self, ref: SessionRef) -> None:
        """Adds a session, newer than all others."""
        self._by_id[ref.agent_id, ref.session_id] = ref
        if ref.session_key:
            self._by_key[ref.agent_id, ref.session_key] = ref

    def called(self, agent_id: str, *names: str) -> SessionRef | None:
        """Returns the session whose id is one of these names, else the newest with such a key; None without any."""
        keys = [(agent_id, session_name(name.replace("\0", ""))) for name in names if name]
        return next((known[key] for known in (self._by_id, self._by_key) for key in keys if key in known), None)


class SessionBringer:
    """Brings sessions one by one; with `aside` it only decides, as if each had been brought.

    Their texts are kept in that file: all of them are too much for memory.
    """

    def __init__(
        self, workspace: Workspace, report: Report, removed: RemovedSessions, now_us: int, aside: IO[bytes] | None
    ) -> None:
        self.workspace = workspace
        self.report = report
        self.removed = removed
        self.known = KnownSessions(workspace)
        self.now_us = now_us
        self._aside = aside
        self._places: dict[tuple[str, str], list[tuple[int, int]]] = {}

    def transcript(self, given: SessionText, summary: str | None = None) -> bool:
        """Brings what no artifact of a session contains; returns whether there was anything. Raises `Left`.

        The summary comes with it, if there is any.
        """
        session, ref = self._named(given)
        if session.is_empty:
            raise Left(EMPTY)
        bodies = self._bodies(session, ref, "transcript")
        text = missing(session, bodies).strip("\n")
        if not text.strip():
            return False
        if self._aside is not None:
            self._decide(session, text, *([summary] if summary else []))
            return True
        pieces = list(cut_parts(sanitize_transcript_v2(text), _room(self.workspace)))
        # An earlier run may have ended after some of them.
        pieces = [piece for piece in pieces if len(pieces) == 1 or not is_within(piece, bodies)]
        for left, piece in zip(range(len(pieces) - 1, -1, -1), pieces, strict=True):
            self._end(session, ref, piece, None if left else summary)
        return True

    def summary(self, given: SessionText) -> bool:
        """Brings a summary that no artifact of its session contains, as a compaction. Raises `Left`."""
        session, ref = self._named(given)
        if session.is_empty:
            raise Left(EMPTY)
        if holds(session.raw, self._bodies(session, ref)):
            return False
        if self._aside is not None:
            self._decide(session, session.raw)
        else:
            self._compact(session, ref)
        return True

    def tells(self, agent_id: str, name: str, text: str) -> bool:
        """Returns whether the artifacts of a session contain a text."""
        ref = self.known.called(agent_id, name)
        rows = artifacts.session_rows(self.workspace.database, *ref[:3]) if ref is not None else []
        bodies = [row.content for row in rows if row.source_kind in _CONTENT]
        return holds(text, bodies + self._decided(agent_id, ref.session_id if ref is not None else name))

    def _decide(self, session: SessionText, *texts: str) -> None:
        for text in texts:
            if self._aside is not None:
                place = self._aside.seek(0, os.SEEK_END), self._aside.write(text.encode())
                for name in {session.session_id, session.session_key} - {""}:
                    self._places.setdefault((session.agent_id, name), []).append(place)

    def _decided(self, agent_id: str, name: str) -> list[str]:
        found = []
        for start, length in self._places.get((agent_id, name), ()):
            if self._aside is not None:
                self._aside.seek(start)
                found.append(self._aside.read(length).decode())
        return found

    def _named(self, given: SessionText) -> tuple[SessionText, SessionRef | None]:
        """Returns a session under the names that it has here, and the session that is here. Raises `Left`."""
        if self.removed.covers(given.agent_id, given.session_id, given.session_key):
            raise Left(OF_REMOVED)
        names = [session_name(name.replace("\0", "")) for name in (given.session_id, given.session_key)]
        if not is_session_id(names[0]):
            raise Left(NOT_VALID)
        ref = self.known.called(given.agent_id, *names)
        if ref is None:
            return replace(given, session_id=names[0], session_key=names[1]), None
        # The token of a session that is here may come from its id alone: the key would make another session of it.
        key = ref.session_key or ""
        if derive_token(ref.agent_id, key, ref.session_id) != ref.session_token:
            key = ""
        if self.removed.covers(ref.agent_id, ref.session_id, ref.session_key or ""):
            raise Left(OF_REMOVED)
        return replace(given, session_id=ref.session_id, session_key=key), ref

    def _bodies(self, session: SessionText, ref: SessionRef | None, *kinds: str) -> list[str]:
        rows = artifacts.session_rows(self.workspace.database, *ref[:3]) if ref is not None else []
        found = [row.content for row in rows if row.source_kind in (kinds or _CONTENT)]
        return found + self._decided(session.agent_id, session.session_id)

    def _end(self, session: SessionText, ref: SessionRef | None, text: str, summary: str | None) -> None:
        document = self._document(session, self._free_moment(session, ref, ("summary", "transcript")))
        document |= {"transcript": text, "transcript_is": "tail", "summary": summary}
        with self._left_if_refused(session):
            given = session_input(document, now_us=self.now_us)
            answer = sessions_operations.end(self.workspace, given, now_us=self.now_us)
            self._note(session, answer)

    def _compact(self, session: SessionText, ref: SessionRef | None) -> None:
        document = self._document(session, self._free_moment(session, ref, ("compaction",)))
        document["compaction"] = session.raw
        with self._left_if_refused(session):
            given = compaction_input(document, now_us=self.now_us)
            answer = sessions_operations.compact(self.workspace, given, now_us=self.now_us)
            self._note(session, answer)

    def _note(self, session: SessionText, answer: Mapping[str, Any]) -> None:
        token = derive_token(session.agent_id, session.session_key, session.session_id)
        self.known.add(SessionRef(session.agent_id, token, session.session_id, session.session_key or None))
        self.report.redactions.update(answer["redactions"])

    @contextmanager
    def _left_if_refused(self, session: SessionText) -> Iterator[None]:
        back_up_once(self.workspace, self.report, self.now_us)
        try:
            yield
        except UsageError as error:
            raise Left(OF_REMOVED if error.code == "removed-session" else f"{NOT_VALID}: {error.message}") from error

    def _document(self, session: SessionText, moment: int) -> dict[str, object]:
        return {
            "agent_id": session.agent_id,
            "session_id": session.session_id,
            "session_key": session.session_key or None,
            "project": session_value((session.project or "").replace("\0", "")) or None,
            "harness": session_value((session.harness or "").replace("\0", "")) or None,
            "captured_at": iso(moment),
            "started_at": iso(min(session.started_us, session.ended_us)),
            "ended_at": iso(session.ended_us),
        }

    def _free_moment(self, session: SessionText, ref: SessionRef | None, kinds: Sequence[str]) -> int:
        """Returns the time that names the new files: that of the session, or the next one that is free."""
        token = derive_token(session.agent_id, session.session_key, session.session_id)
        moment = session.ended_us // 1000 * 1000
        if ref is not None:
            rows = artifacts.session_rows(self.workspace.database, *ref[:3])
            moment = max([moment, *(row.captured_us // 1000 * 1000 + 1000 for row in rows if row.source_kind in kinds)])
        while any(files.status_of(self.workspace.root, path) is not None for path in _paths(moment, token, kinds)):
            moment += 1000
        return moment


def _paths(moment: int, token: str, kinds: Sequence[str]) -> list[str]:
    return [artifact_path(artifact_file_name(iso(moment), token, kind)) for kind in kinds]


def _room(workspace: Workspace) -> int:
    """Returns how many bytes of text go into one file, with room for its frontmatter."""
    limit = workspace.settings.max_file_bytes
    return min(max(limit - sessions_operations.HEADROOM, limit // 2) * 3 // 4, SEGMENT_BYTES)
