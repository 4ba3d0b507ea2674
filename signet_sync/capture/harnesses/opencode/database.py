"""Reads OpenCode's database: which sessions it contains and the rows of one, read-only beside a running OpenCode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from signet_sync.capture.harnesses.opencode.transcript import MessageRow
from signet_sync.capture.transcripts import TranscriptSource, own_path
from signet_sync.errors import HarnessError
from signet_sync.storage.database.connection import columns_of
from signet_sync.storage.database.foreign import open_foreign

_MILLION = 1_000_000
_HINT = "try again when OpenCode is idle; if it is newer than this signet-sync, upgrade that"
_PARTS = "select id, data from part where message_id = ? order by id"


def list_sources(path: str) -> list[TranscriptSource]:
    """Returns one source for each session of the database, those of sub-agents included. Raises `HarnessError`."""
    with _open_to_read(path) as connection:
        return [
            TranscriptSource("opencode", path, session_id, 0, updated * _MILLION)
            for session_id, updated in connection.execute("select id, time_updated from session order by id")
            if isinstance(session_id, str) and isinstance(updated, int)
        ]


def read_session(path: str, session_id: str) -> tuple[dict[str, object], list[MessageRow]]:
    """Returns a session's row and its messages with their parts, in order, for `capture.harnesses.opencode.read`.

    Raises `HarnessError` (also `session-unknown`).
    """
    with _open_to_read(path) as connection:
        cursor = connection.execute("select * from session where id = ?", (session_id,))
        row = next(cursor, None)
        if row is None:
            raise HarnessError(
                "it does not contain this session",
                path=path,
                hint="it may have been deleted in OpenCode",
                code="session-unknown",
            )
        session = dict(zip((column[0] for column in cursor.get_description()), row, strict=True))
        cursor.close()
        messages = [
            MessageRow(
                _text(message_id),
                _text(data),
                [(_text(one), _text(part)) for one, part in connection.execute(_PARTS, (message_id,))],
            )
            for message_id, data in connection.execute(
                "select id, data from message where session_id = ? order by time_created, id", (session_id,)
            ).fetchall()
        ]
        # The table that newer versions are introducing.
        elsewhere = "select exists(select 1 from session_message where session_id = ?)"
        newer = not messages and bool(columns_of(connection, "session_message"))
        if newer and connection.execute(elsewhere, (session_id,)).get:
            raise HarnessError("it keeps this session in unknown tables", path=path, hint=_HINT)
    return session, messages


@contextmanager
def _open_to_read(path: str) -> Iterator[apsw.Connection]:
    """Opens a connection in one read transaction, so that all rows are consistent; converts SQLite's errors to ours."""
    path = own_path(path)  # SQLite refuses any link in the path
    try:
        connection = open_foreign(path)
        try:
            connection.execute("begin")
            yield connection
        finally:
            connection.close()
    except apsw.Error as error:
        raise HarnessError(f"OpenCode's database cannot be read: {error}", path=path, hint=_HINT) from error


def _text(value: object) -> str:
    """Returns a value of SQLite as text: a column's declared type is not enforced."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else str(value)
