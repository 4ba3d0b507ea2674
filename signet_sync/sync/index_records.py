"""Declares what the index holds for a judged file: its verdict, known state, row, seal and notes."""

from typing import Literal, NamedTuple

from signet_sync.formats.snapshot import Signature

# `tombstoned` is a file of a removed session, `tombstone` the file that records the removal.
Verdict = Literal["indexed", "invalid", "violation", "ignored", "tombstoned", "tombstone"]
PROBLEMS: tuple[Verdict, ...] = ("violation", "invalid", "tombstoned")  # what fails a check, and is counted as one


class Known(NamedTuple):
    """What the index knew of a path before the pass."""

    signature: Signature | None
    verdict: Verdict
    code: str


class Seal(NamedTuple):
    """The state of an immutable artifact when it was first valid.

    `packed` holds its bytes: None if they were lost with a database, empty if they were deleted on purpose.
    """

    path: str
    agent_id: str
    session_token: str
    session_id: str
    kind: str
    digest: str
    body_sha256: str
    file_sha256: str
    packed: bytes | None
    sealed_at: str


class Row(NamedTuple):
    """One row of `memory_artifacts`, in column order without the id. Instants in microseconds since 1970 UTC."""

    agent_id: str
    source_path: str
    source_sha256: str
    source_kind: str
    session_id: str
    session_key: str | None
    session_token: str
    project: str | None
    harness: str | None
    captured_at: str
    started_at: str | None
    ended_at: str | None
    manifest_path: str | None
    source_node_id: str | None
    memory_sentence: str | None
    memory_sentence_quality: str | None
    ledger_sentence: str | None
    content: str
    captured_us: int
    membership_us: int
    noise: int
    refs: str | None
    revision: int | None
    repository_root: str | None = None
    repository_origin: str | None = None
    repository_path: str | None = None
    repository_branch: str | None = None


class Note(NamedTuple):
    """A remark about an indexed file that reports show."""

    code: str
    message: str
