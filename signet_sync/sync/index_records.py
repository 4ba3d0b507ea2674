"""Declares what the index holds for a judged file: its verdict, known state, row, seal and notes.

Temporary, test and headless sessions are noise: they are kept and found, but pages do not show them one by one.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from signet_sync.formats.body import js_trim
from signet_sync.formats.ids import is_in_model_folder
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

    `packed` holds its bytes; without any they were lost with a database.
    """

    path: str
    agent_id: str
    session_token: str
    session_id: str
    kind: str
    digest: str
    text_sha256: str
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

    def __init__(self, sources: Iterable[Source] = (), agents: Iterable[str] = ()) -> None:
        self.sources, self.agents, self.days = set(sources), set(agents), set[tuple[str, str]]()
        self.paths: set[str] = set()
        self.derived = 0

    def add(self, other: "Change") -> None:
        """Adds another change to this one."""
        self.sources |= other.sources
        self.agents |= other.agents
        self.days |= other.days
        self.paths |= other.paths
        self.derived += other.derived


# ── noise: temporary, test and headless sessions, which are kept and found but not shown one by one ──

# Which artifact represents a session: the one of the highest kind, the newest of these.
KINDS = {"summary": 3.0, "compaction": 2.0, "transcript": 1.0}
# Noise because its text has no content; another segment of its session may have some.
NOTHING = 2
# Noise because no person spoke: pages have one line a day for all of these.
HEADLESS = 3

# Folders for temporary files of Linux and macOS, whose own are in `/private` as well.
TEMP_FOLDERS = tuple(f"{top}{folder}" for top in ("", "/private") for folder in ("/tmp", "/var/tmp", "/var/folders"))  # noqa: S108 - texts, nothing is opened
TEMP_PROJECTS = tuple(f"{folder}/" for folder in TEMP_FOLDERS)
TEST_SESSIONS = tuple(f"{word}{sign}" for word in ("test", "spec", "fixture", "synthetic", "tmp") for sign in "-_")


def weight(kind: str, noise: int) -> float:
    """Returns an artifact's weight to represent its session; a summary without content only exceeds a transcript."""
    return min(KINDS[kind], 1.5) if noise == NOTHING else KINDS[kind]


class NoiseRule(NamedTuple):
    """The built-in prefixes plus those of the settings."""

    projects: tuple[str, ...] = TEMP_PROJECTS
    sessions: tuple[str, ...] = TEST_SESSIONS

    @classmethod
    def from_prefixes(cls, projects: tuple[str, ...], sessions: tuple[str, ...]) -> "NoiseRule":
        """Extends the built-in rule by more prefixes; sessions compare in lower case."""
        return cls(TEMP_PROJECTS + projects, TEST_SESSIONS + tuple(s.lower() for s in sessions))

    def is_noise(
        self, project: str | None, session_id: str | None, session_key: str | None, harness: str | None
    ) -> bool:
        """Returns whether the project is in a temporary folder, or without one id, key or harness look like a test.

        So are our questions to a model, where another program captured them.
        """
        trimmed = js_trim(project or "")
        if trimmed:
            return trimmed.startswith(self.projects) or trimmed in TEMP_FOLDERS or is_in_model_folder(trimmed)
        for identity in (session_id, session_key):
            if identity and js_trim(identity).lower().startswith(self.sessions):
                return True
        return js_trim(harness or "").lower() == "test"
