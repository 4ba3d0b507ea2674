"""What follows from a file that was judged, as the index holds it: what was known, the row, the seal, notes."""

from __future__ import annotations

from typing import NamedTuple

from signet_sync.formats.snapshot import Signature


class Known(NamedTuple):
    """What the index knew of a path before the pass."""

    signature: Signature | None
    verdict: str
    code: str


class Seal(NamedTuple):
    """What an immutable artifact was at first valid sight.

    `packed` is None where a lost database took the bytes, and empty where they were let go.
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


class Note(NamedTuple):
    """Something worth telling about an indexed file."""

    code: str
    message: str
