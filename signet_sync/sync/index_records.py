"""Declares what the index holds for a judged file: its verdict, known state, row, seal and notes."""

from collections.abc import Iterable
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


class Judgement(NamedTuple):
    """The verdict of one path and everything that follows from it.

    `row` replaces the path's row; None deletes it. `seal` is written if it is not None. `unlink` asks a writing pass to
    delete the file. `links` are the link fields' targets by field name. `redacted`: the seal is that of a redaction
    which the index did not know of. `sealed` asks a writing pass to replace the file by these bytes: the file is a
    version from before its redaction.
    """

    path: str
    verdict: Verdict
    code: str = ""
    message: str = ""
    signature: Signature | None = None
    notes: tuple[Note, ...] = ()
    row: Row | None = None
    seal: Seal | None = None
    raw: bytes | None = None
    links: tuple[tuple[str, str], ...] = ()
    unlink: bool = False
    found_sha256: str = ""
    redacted: bool = False
    sealed: bytes | None = None


class Cliff(NamedTuple):
    """Why a pass halts instead of deleting rows, and what a person can do."""

    would_remove: int
    indexed: int
    message: str
    hint: str = "restore memory/ (mount it, wait for the sync), or confirm with: signet-sync reindex --accept-removals"


# Kinds of sources that the pass itself finds: a session that changed, and one of which only the manifest changed.
SESSION, MANIFEST = "session", "manifest"


class Source(NamedTuple):
    """Names what derived rows are computed from: a session by its token and id, anything else by an id alone."""

    kind: str
    agent_id: str
    id: str
    session_id: str = ""

    @property
    def session(self) -> tuple[str, str, str]:
        """Returns agent, token and id of a session."""
        return self.agent_id, self.id, self.session_id


class Change:
    """Collects what an update moved: sources, file paths, agents and (agent, day) pairs whose pages may need an update.

    `derived` counts the sources that derivers changed; they are not kept, because a whole vault has millions of them.
    """

    __slots__ = ("agents", "days", "derived", "paths", "sources")

    def __init__(
        self, sources: Iterable[Source] = (), agents: Iterable[str] = (), days: Iterable[tuple[str, str]] = ()
    ) -> None:
        self.sources, self.agents, self.days = set(sources), set(agents), set(days)
        self.paths: set[str] = set()
        self.derived = 0

    def add(self, other: "Change") -> None:
        """Adds another change to this one."""
        self.sources |= other.sources
        self.agents |= other.agents
        self.days |= other.days
        self.paths |= other.paths
        self.derived += other.derived
