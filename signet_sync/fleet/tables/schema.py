"""Declares the open tables: columns, types and meaning; Parquet files, PostgreSQL and the page about them follow."""

from __future__ import annotations

from typing import Literal, NamedTuple

# Raised with each change of a table or column: every workspace is then indexed again.
VERSION = 1

# `name`: an id, key or path, kept distinct where a secret is removed from it; `line` and `text`: words, one line or
# several; `code`: a word or digest of ours. Only the first three may contain what somebody wrote.
ColumnKind = Literal["name", "line", "text", "code", "int", "bool", "time"]


class OpenColumn(NamedTuple):
    """A column; `holds` says what, for people who query it."""

    name: str
    kind: ColumnKind
    holds: str


class OpenTable(NamedTuple):
    """A table: what its rows are, its columns, and those of them that are unique within a workspace."""

    name: str
    holds: str
    key: tuple[str, ...]
    columns: tuple[OpenColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the columns, in order."""
        return tuple(column.name for column in self.columns)


_AGENT = OpenColumn("agent", "name", "the agent's id")
_TOKEN = OpenColumn("token", "code", "the 16 characters in file names that stand for the session")
_SESSION = OpenColumn("session", "name", "the session's id")
_KEY = OpenColumn("session_key", "name", "the harness's name for the session, if it is not its id")
_HARNESS = OpenColumn("harness", "name", "program in which the agent ran")

VERDICTS = OpenTable(
    "verdicts",
    "the verdict of every file, as `check` gives it; of entities and settings only their problems",
    ("path", "number"),
    (
        OpenColumn("path", "name", "path in the workspace"),
        OpenColumn("number", "int", "0; from 1 for further problems of the same file"),
        OpenColumn("verdict", "code", "`indexed`, `invalid`, `violation`, `ignored`, `tombstoned` or `tombstone`"),
        OpenColumn("code", "code", "what is wrong, or empty"),
        OpenColumn("message", "line", "the same for people, or empty"),
        OpenColumn("notes", "line", "codes of remarks about an indexed file, with spaces between, or empty"),
        OpenColumn("agent", "name", "the agent's id, if the file says so"),
        OpenColumn("size", "int", "bytes"),
        OpenColumn("sha256", "code", "digest of the bytes, if they were read"),
    ),
)
ARTIFACTS = OpenTable(
    "artifacts",
    "every valid artifact",
    ("path",),
    (
        OpenColumn("path", "name", "path in the workspace"),
        _AGENT,
        OpenColumn("kind", "code", "`summary`, `transcript`, `compaction` or `manifest`"),
        _TOKEN,
        _SESSION,
        _KEY,
        OpenColumn("project", "name", "folder in which the session worked"),
        _HARNESS,
        OpenColumn("started_at", "time", "when the session began"),
        OpenColumn("ended_at", "time", "when it ended; without an end, when it was captured"),
        OpenColumn("captured_at", "time", "when the file was captured"),
        OpenColumn("sentence", "line", "what the session was about"),
        OpenColumn("sentence_quality", "code", "whether that sentence is good enough to be shown"),
        OpenColumn("noise", "bool", "whether it is of a test or a temporary folder, or without content"),
        OpenColumn("repository_root", "name", "root of the repository in which the session worked"),
        OpenColumn("repository_origin", "name", "its origin"),
        OpenColumn("size", "int", "bytes"),
        OpenColumn("sha256", "code", "digest of the normalized body"),
        OpenColumn("body", "text", "the sanitized body; null without `--bodies`"),
    ),
)
SESSIONS = OpenTable(
    "sessions",
    "every session, as its artifacts describe it",
    ("agent", "token", "session"),
    (
        _AGENT,
        _TOKEN,
        _SESSION,
        _KEY,
        OpenColumn("project", "name", "origin of the repository, else its root, else a folder"),
        _HARNESS,
        OpenColumn("started_at", "time", "when it began"),
        OpenColumn("ended_at", "time", "when it ended; without an end, when it was captured"),
        OpenColumn("day", "code", "UTC day of that, `YYYY-MM-DD`"),
        OpenColumn("sentence", "line", "what it was about"),
        OpenColumn("path", "name", "its best artifact: a summary, else a compaction, else a transcript"),
        OpenColumn("listed", "bool", "whether the session log lists it; it leaves out noise and doubles"),
        OpenColumn("files", "int", "number of its artifacts"),
        OpenColumn("size", "int", "their bytes"),
        OpenColumn("facts", "int", "number of facts that it states"),
        OpenColumn("words", "text", "the text by which `fleet search` finds it"),
    ),
)
FACTS = OpenTable(
    "facts",
    "every fact that artifacts state, in the words of its newest source",
    ("agent", "id"),
    (
        _AGENT,
        OpenColumn("id", "code", "the fact's handle"),
        OpenColumn("kind", "code", "`decision`, `blocker`, `next`, `constraint`, `question`, `person` …"),
        OpenColumn("text", "line", "what is said"),
        OpenColumn("project", "name", "project of the session that said it last"),
        OpenColumn("subject", "name", "what it is about"),
        OpenColumn("subject_kind", "code", "`project`, `path`, `package`, `issue`, `person` or `agent`"),
        OpenColumn("status", "code", "`active`, `superseded` by a later fact, or `done` (resolved)"),
        OpenColumn("superseded_by", "code", "the later fact"),
        OpenColumn("ended_by", "name", "path of the artifact that reports it as done"),
        OpenColumn("sources", "int", "number of artifacts that state it"),
        OpenColumn("first_at", "time", "when it was first said"),
        OpenColumn("last_at", "time", "when it was last said"),
        OpenColumn("day", "code", "UTC day of that, `YYYY-MM-DD`"),
        _TOKEN,
        _SESSION,
        OpenColumn("path", "name", "path of its newest source"),
        OpenColumn("line", "int", "line in the body of that"),
    ),
)
OPEN_TABLES: tuple[OpenTable, ...] = (VERDICTS, ARTIFACTS, SESSIONS, FACTS)
