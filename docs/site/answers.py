"""The documents that commands print with `--json`: each command's answer is the type of its name.

Paths are relative to the workspace where they are in it, else absolute; times are ISO 8601 UTC; sizes are bytes; a
`code` is stable, a `message` and a `hint` are for people. The site of the documentation has a JSON schema of each,
which `schemas.py` makes from these types; a test holds what every command prints to its own.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict  # that of Python 3.11 gives pydantic no schema


class ReindexCounts(TypedDict):
    scanned: int
    read: int
    indexed: int
    unchanged: int
    ignored: int
    invalid: int
    violation: int
    tombstoned: int
    tombstones: int
    removed_rows: int


class ReindexProblem(TypedDict):
    path: str
    verdict: Literal["ignored", "invalid", "violation", "tombstoned"]
    code: str
    message: str
    hint: str


class ReindexNote(TypedDict):
    path: str
    code: str
    message: str


class ReindexAgent(TypedDict):
    memory_md: str
    changed: bool
    sessions_in_window: int
    rows_rendered: int
    rows_clipped: int
    tokens: int  # As estimated for language models.


class ReindexHalted(TypedDict):
    state: str
    would_remove: int
    indexed: int
    message: str
    hint: str


class ReindexEntityDrift(TypedDict):
    path: str
    code: str
    message: str
    hint: str


class Reindex(TypedDict):
    workspace: str
    database: str  # The index, absolute.
    now: str
    mode: Literal["full", "incremental"]
    elapsed_ms: float  # Milliseconds.
    counts: ReindexCounts
    problems: list[ReindexProblem]
    notes: list[ReindexNote]
    agents: dict[str, ReindexAgent]  # By agent.
    halted: ReindexHalted | None  # Why nothing was removed or written, or null.
    held: str | None
    trouble: list[str]
    entity_drift: list[ReindexEntityDrift]


class HooksStatusHarnessMcp(TypedDict):
    path: str
    command: list[str]
    agent_id: str
    scope: str | None


class HooksStatusHarnessProblem(TypedDict):
    code: str
    message: str
    hint: str


class HooksStatusHarness(TypedDict):
    harness: str
    found: bool
    installed: bool
    events: list[str]
    missing: list[str]
    path: str
    workspace: str | None
    asks: str | None  # What the harness asks a person before it runs them.
    mcp: HooksStatusHarnessMcp | None
    transcripts_read: int
    last_read: str | None
    problems: list[HooksStatusHarnessProblem]


class HooksStatus(TypedDict):
    harnesses: list[HooksStatusHarness]


class StatusCounts(TypedDict):
    artifacts: int
    sessions: int
    agents: int  # By agent.
    tombstones: int
    violations: int
    invalid: int
    tombstoned: int  # Files of removed sessions, which the next pass deletes.


class StatusIntake(TypedDict):
    harnesses: list[str]
    waiting: int
    at_work: int
    given_up: int
    unfinished: int


class StatusTokens(TypedDict):
    today: int
    last_30_days: int
    daily: int | None
    trouble: str | None


class StatusReceipt(TypedDict):
    days: int
    sessions: int  # That got something from hooks.
    tokens: int  # That they got, about.
    stale: int  # Lines of it that a session had replaced by then.
    questions: int  # That a memory answered.
    notes: int  # Memories that were added.
    corrections: int  # Statements that were marked.
    bytes_kept: int  # Of the files in the index.


class StatusMemory(TypedDict):
    memories: int
    recall_events: int
    promotions: int
    last_dream: str | None


class Status(TypedDict):
    workspace: str
    database: str  # The index, absolute.
    memory: dict[str, StatusMemory]  # By agent.
    receipt: StatusReceipt | None
    meaning: str | None  # How far the vectors of texts are, if there are any.
    running: bool
    pid: int | None
    state: str
    halt: str | None
    last_full_pass: str | None
    interval: float | None
    readable: bool
    counts: StatusCounts
    watch: str | None
    violations: list[str]
    entity_drift: int
    backlog: int
    size: int  # Of the database.
    intake: StatusIntake
    tokens: StatusTokens
    trouble: str | None
    set_aside: list[str]
    stale_heartbeat: bool
    responding: bool | None
    version: str | None


class RecallHit(TypedDict):
    tier: Literal[
        "memory", "statement", "entity", "session", "file"
    ]  # What it is; a file is one of a harness or a project.
    id: str
    text: str
    path: str | None
    score: float  # Higher is better.
    known: bool  # False if it has too few of the words to be sure: it is only the nearest.
    speaker: str  # User, Assistant or file; empty if it was not one of them.
    turn: int  # From 1; 0 if there are none.
    day: str
    why: str  # Which words, in what, of which day.


class FoundFile(TypedDict):
    path: str
    kind: Literal["summary", "transcript", "compaction"]
    session_token: str  # The name of a session: the 16 characters by which its files are called.
    session_id: str
    at_us: int  # Microseconds since 1970 UTC.
    snippet: str


class Recall(TypedDict):
    query: str
    hits: NotRequired[list[RecallHit]]
    files: NotRequired[list[FoundFile]]  # With --words, instead of hits.


class OpenSegment(TypedDict):
    captured_at: str
    ended_at: str | None
    summary: str | None
    transcript: str | None


class OpenQuote(TypedDict):
    turn: int
    speaker: Literal["person", "agent"]
    at: str | None
    text: str


class DoneCommit(TypedDict):
    commit: str  # Its name, as git printed it; may be empty.
    subject: str


class DonePullRequest(TypedDict):
    number: str
    title: str
    merged: bool


class ChangedFile(TypedDict):
    path: str
    edits: int


class OpenedSession(TypedDict):
    agent_id: str
    session_id: str  # The harness's id of the session.
    session_key: str | None  # The harness's name for the session, if it is not its id.
    session_token: str  # The name of a session: the 16 characters by which its files are called.
    project: str | None
    harness: str | None
    segments: list[OpenSegment]
    compactions: list[str]
    manifest: str | None
    sentence: str  # What the session was about, in one line.
    verdicts: dict[str, str]  # By path: indexed, or what is wrong.
    live: int  # Turns of the running session.
    status: str | None
    commits: list[DoneCommit]
    pull_requests: list[DonePullRequest]
    files: list[ChangedFile]
    quotes: list[OpenQuote]  # Its last reports and what its person said, as they were said.


class OpenSession(TypedDict):
    session_token: str  # The name of a session: the 16 characters by which its files are called.
    session_id: str  # The harness's id of the session.
    session_key: str | None  # The harness's name for the session, if it is not its id.
    day: str
    project: str | None
    harness: str | None
    sentence: str  # What the session was about, in one line.


class OpenList(TypedDict):
    sessions: list[OpenSession]
    more: bool


class OpenEvent(TypedDict):
    v: int
    id: str
    token: str
    at: str
    agent_id: str
    actor: Literal["agent", "person", "maintainer", "observer"]
    op: str
    entity_id: NotRequired[str]
    file: NotRequired[Literal["profile", "notes"]]
    section: NotRequired[str]
    before: NotRequired[str]
    after: NotRequired[str]
    found: NotRequired[str]
    left: NotRequired[str]
    key: NotRequired[str]
    request: NotRequired[str]
    facts: NotRequired[dict[str, Any]]  # Days, numbers, ids: no words.
    content: NotRequired[str]
    prev: str
    hash: str
    erased: NotRequired[str]
    text: NotRequired[dict[str, Any]]  # What changed, before and after; its fields depend on `op`.


class OpenedEvent(TypedDict):
    token: str
    event: OpenEvent
    id: str | None
    entity_path: str
    path: str | None
    line: int | None


Open = OpenedSession | OpenList | OpenedEvent


class DigestSession(TypedDict):
    id: str  # A handle.
    project: str | None
    day: str  # YYYY-MM-DD.
    status: Literal["done", "open", "blocked", "aborted", "question-only"] | None
    text: str


class DigestStatement(TypedDict):
    id: str  # A handle.
    project: str | None
    day: str  # YYYY-MM-DD.
    type: Literal["decision", "constraint", "blocker"]
    text: str


Digest = TypedDict(
    "Digest",
    {
        "agent_id": str,
        "from": str,  # YYYY-MM-DD.
        "to": str,  # The last day, YYYY-MM-DD.
        "sessions": list[DigestSession],
        "statements": list[DigestStatement],
    },
)


class Remember(TypedDict):
    id: str
    agent_id: str
    tags: list[str]
    concept_tags: list[str]
    redactions: dict[str, int]
    type: str
    private: bool
    project: str | None
    new: bool


class NoteLine(TypedDict):
    label: Literal["outcome", "decided", "next", "blocked", "tried"]
    text: str


class Note(TypedDict):
    lines: list[NoteLine]  # As they were understood; the transcript of the session has them.


class ForgetPlan(TypedDict):
    id: str
    dry_run: bool  # Whether nothing was changed.
    text: str | None  # Null if only pages still have it.


class Forgotten(TypedDict):
    id: str
    forgotten: bool
    pending: bool  # What cannot be deleted yet; every pass tries again.
    git_history: Literal["no-repository", "clean", "contains", "unknown"]


Forget = ForgetPlan | Forgotten


class StatementsDone(TypedDict):
    id: str
    text: str
    status: Literal["done", "withdrawn", "open"]


StatementsWithdraw = StatementsDone
StatementsReopen = StatementsDone
StatementsKeep = StatementsDone


class Ui(TypedDict):
    url: str
    port: int
    pid: int


class ContextText(TypedDict):
    agent_id: str
    scope: Literal["main", "shared"]
    tokens: int  # As estimated for language models.
    text: str
    sources: list[str]


class ContextStart(TypedDict):
    id: str
    text: str | None


class ContextInjected(TypedDict):
    session_id: str | None  # The harness's id of the session; null for the one that was told something last.
    told_at: str
    files: int
    quotes: int
    start: list[ContextStart]
    prompts: list[ContextStart]


Context = ContextText | ContextInjected


class Restore(TypedDict):
    session_id: str  # The one that the harness resumes.
    harness: str
    path: str  # Of the harness's file.
    command: str
    folder: str  # Where to run it.
    turns: int
    redacted: int  # Values that are missing, as are images and parts of long results.
    images: int
    cut: int


class Handoff(TypedDict):
    agent_id: str
    session_id: str  # The harness's id of the session.
    session_token: str  # The name of a session: the 16 characters by which its files are called.
    project: str | None
    harness: str | None
    tokens: int  # As estimated for language models.
    text: str


class ExpandNode(TypedDict):
    id: str
    kind: str
    agent_id: str
    session_token: str | None  # The name of a session: the 16 characters by which its files are called.
    depth: int | None
    label: str
    text: str
    session_id: NotRequired[str | None]  # The harness's id of the session.
    thread: NotRequired[str | None]
    path: NotRequired[str | None]
    earliest: NotRequired[str | None]
    latest: NotRequired[str | None]
    level: NotRequired[str]
    project: NotRequired[str | None]
    status: NotRequired[str | None]
    sessions: NotRequired[int]
    speaker: NotRequired[Literal["person", "agent", "file"]]
    replaced_by: NotRequired[str | None]  # A handle.
    type: NotRequired[str | None]
    tags: NotRequired[list[str]]
    private: NotRequired[bool]
    turns: NotRequired[int]


class ExpandTranscript(TypedDict):
    path: str
    excerpt: str


class ExpandSource(TypedDict):
    path: str
    line: int
    running: NotRequired[str]
    id: str | None


class ExpandChain(TypedDict):
    id: str
    at: str
    path: str | None


class Expand(TypedDict):
    node: ExpandNode
    parents: list[str]
    children: list[str]
    siblings: list[str]
    memories: list[str]
    transcript: ExpandTranscript | None
    labels: dict[str, str]
    tokens: int  # As estimated for language models.
    sources: NotRequired[list[ExpandSource]]
    chain: NotRequired[list[ExpandChain]]
    conflicts: NotRequired[list[str]]


class Pinned(TypedDict):
    id: str
    pinned: bool
    changed: bool


class MarkedStatement(TypedDict):
    id: str
    status: Literal["done", "withdrawn"]
    by: Literal["person", "agent"]
    at: str
    text: str | None  # Null if no session states it any more.


class StatementsList(TypedDict):
    statements: list[MarkedStatement]


class PinPin(TypedDict):
    id: str
    text: str | None  # One line about it: its kind, its day, its words; null if it no longer exists.
    pinned_at: str


class PinList(TypedDict):
    pins: list[PinPin]


Pin = Pinned | PinList


class DreamPromoted(TypedDict):
    memory_id: str
    score: float  # Higher is better.
    hits: int
    days: int
    queries: int


class Dream(TypedDict):
    sweep_id: str
    candidates: int
    skipped_already_promoted: int
    promoted: list[DreamPromoted]
    dry_run: bool  # Whether nothing was changed.


class EntityCreate(TypedDict):
    id: str
    event_id: str
    section: str | None
    before: str | None
    after: str | None
    warnings: list[str]
    path: str
    token: str
    replayed: bool  # Whether the same key was used before, so that nothing was written.
    redactions: dict[str, int]


class EntityListEntity(TypedDict):
    id: str
    kind: Literal["user", "part", "relationship"]
    title: str
    status: str
    type: str | None
    path: str
    line: str


class EntityShowSectionItem(TypedDict):
    number: int
    key: str
    text: str


class EntityShowSection(TypedDict):
    name: str
    anchor: str | None
    heading: str
    text: NotRequired[str]
    items: NotRequired[list[EntityShowSectionItem]]
    sha256: str  # What an edit may expect.


class EntityShowProposal(TypedDict):
    id: str
    entity_id: str
    section: str
    op: str
    text: str
    at: str
    rationale: str | None
    source: str | None


class EntityShown(TypedDict):
    id: str
    agent_id: str
    kind: Literal["user", "part", "relationship"]
    title: str
    path: str
    status: str
    type: str | None
    participants: list[str]
    sections: list[EntityShowSection]
    pins: list[str]
    locks: list[str]
    proposals: list[EntityShowProposal]
    drifted: bool


class EntityList(TypedDict):
    entities: list[EntityListEntity]


EntityShow = EntityShown | EntityList
EntitySet = EntityCreate
EntityAppend = EntityCreate
EntityPrune = EntityCreate
EntityStatus = EntityCreate
EntityUndo = EntityCreate


class EntityLogFinding(TypedDict):
    id: str
    code: str
    message: str
    hint: str
    path: str


class EntityLog(TypedDict):
    events: list[OpenEvent]


class CheckProblem(TypedDict):
    path: str
    verdict: Literal["ignored", "invalid", "violation", "tombstoned"]
    code: str
    message: str
    hint: str
    line: NotRequired[int]


class CheckNote(TypedDict):
    path: str
    code: str
    message: str
    fails: NotRequired[bool]


class Check(TypedDict):
    workspace: str
    now: str
    ok: bool
    counts: ReindexCounts
    problems: list[CheckProblem]
    notes: list[CheckNote]


class ViolationsListViolation(TypedDict):
    path: str
    code: str
    message: str
    found_at: str
    restorable: bool
    acceptable: bool


class ViolationsOpen(TypedDict):
    violations: list[ViolationsListViolation]


class ViolationsListAccepted(TypedDict):
    path: str
    at: str
    reason: str
    restorable: bool


class ViolationsAccepted(TypedDict):
    accepted: list[ViolationsListAccepted]


class ViolationDifference(TypedDict):
    path: str
    diff: str


ViolationsList = ViolationsOpen | ViolationsAccepted | ViolationDifference


class ViolationsRestore(TypedDict):
    restored: list[str]
    failed: list[str]


class ViolationsAccept(TypedDict):
    accepted: list[str]
    failed: list[str]
    reason: str


class ImportNothing(TypedDict):
    path: str
    reason: str


class Import(TypedDict):
    harness: str
    transcripts: int
    sessions: int
    segments: list[str]
    compactions: list[str]
    nothing: list[ImportNothing]
    failed: list[str]
    redactions: dict[str, int]


class RemoveEntityLine(TypedDict):
    path: str
    section: str
    text: str


class RemoveRemoval(TypedDict):
    agent_id: str
    session_token: str  # The name of a session: the 16 characters by which its files are called.
    session_ids: list[str]
    paths: list[str]
    entity_lines: list[RemoveEntityLine]  # What entity files lose.


class RemovePlan(TypedDict):
    dry_run: bool  # Whether nothing was changed.
    removals: list[RemoveRemoval]
    quoted_in: list[str]


class RemoveRemoved(TypedDict):
    agent_id: str
    session_token: str  # The name of a session: the 16 characters by which its files are called.
    tombstone: str  # The file that keeps the session from coming back.
    removed_paths: list[str]
    pending: list[str]  # What cannot be deleted yet; every pass tries again.
    git_history: Literal["no-repository", "clean", "contains", "unknown"]
    foreign: list[str]
    entity_lines: list[RemoveEntityLine]  # What entity files lost.


class RemoveDone(TypedDict):
    removals: list[RemoveRemoved]
    quoted_in: list[str]  # Of other sessions.


class RemoveLifted(TypedDict):
    agent_id: str
    session_token: str  # The name of a session: the 16 characters by which its files are called.
    lifted: bool
    dry_run: bool  # Whether nothing was changed.
    tombstone: str  # The file that keeps the session from coming back.
    session_ids: list[str] | None
    removed_at: str
    removed_paths: list[str]


Remove = RemovePlan | RemoveDone | RemoveLifted


class RedactRedacted(TypedDict):
    path: str
    rules: dict[str, int]


class RedactLeft(TypedDict):
    path: str
    message: str
    hint: str | None


class Redact(TypedDict):
    dry_run: bool  # Whether nothing was changed.
    redacted: list[RedactRedacted]
    left: list[RedactLeft]
    git_history: Literal["no-repository", "clean", "contains", "unknown"]


class HistoryCommit(TypedDict):
    oid: str  # The commit.
    short_oid: str
    subject: str
    body: str
    author: str
    timestamp: str


class History(TypedDict):
    commits: list[HistoryCommit]
    diff: NotRequired[str]


class Checkpoint(TypedDict):
    ok: bool
    oid: str | None  # The commit.
    subject: str
    skipped: bool
    skipped_files: list[str]
    reason: str | None


class ServiceInstall(TypedDict):
    kind: str
    path: str | None
    steps: list[str]
    by_hand: list[str]  # What is left to do, one line each.
    running: bool
    lingering: bool | None


class ServiceUninstall(TypedDict):
    kind: str
    path: str | None
    steps: list[str]
    by_hand: list[str]  # What is left to do, one line each.
    running: bool


class DoctorFinding(TypedDict):
    name: str
    level: Literal["ok", "warning", "problem"]
    message: str
    remedy: str


class Doctor(TypedDict):
    ok: bool
    findings: list[DoctorFinding]


class BackupCreate(TypedDict):
    path: str
    bytes: int
    rows: dict[str, int]
    total: int


class BackupListBackup(TypedDict):
    name: str
    path: str
    made_at: str
    bytes: int
    rows: dict[str, int]
    total: int
    ok: bool
    trouble: str | None


class BackupList(TypedDict):
    folder: str
    backups: list[BackupListBackup]


class BackupRestoreLeftOut(TypedDict):
    removed_sessions: int
    forgotten_memories: int
    undone_removals: int


class BackupRestore(TypedDict):
    source: str
    contains: dict[str, int]
    rows: dict[str, int]
    total: int
    left_out: BackupRestoreLeftOut
    removed_files: list[str]
    before: str | None


class MigrateTable(TypedDict):
    rows: int
    brought: int
    here: int
    left: dict[str, int]


Migrate = TypedDict(
    "Migrate",
    {
        "from": str,
        "dry_run": bool,
        "tables": dict[str, MigrateTable],
        "notes": list[str],
        "redactions": dict[str, int],
        "backup": str | None,
        "by_hand": NotRequired[list[str]],  # Of Signet: what is left to do.
    },
)


class FleetCheckCounts(TypedDict):
    scanned: int
    read: int
    indexed: int
    unchanged: int
    ignored: int
    invalid: int
    violation: int
    tombstoned: int
    tombstones: int
    removed_rows: int


class FleetCheckProblem(TypedDict):
    workspace: str  # The folder, absolute, or the URL, without what is secret in it.
    path: str
    verdict: Literal["ignored", "invalid", "violation", "tombstoned"]
    code: str
    message: str
    hint: str
    line: NotRequired[int]


class FleetStates(TypedDict):
    ok: int
    empty: int  # Without an artifact or session.
    damaged: int
    vanished: int
    unreachable: int


class FleetMatch(TypedDict):
    workspace: str  # The folder, absolute, the URL, without what is secret in it, or the name or id of a share.
    state: Literal["ok", "empty", "damaged", "vanished", "unreachable"]
    message: str  # Why it is not ok.


class FleetCheck(TypedDict):
    states: FleetStates
    workspaces: list[FleetMatch]  # Every match, each once.
    counts: FleetCheckCounts  # Of all workspaces that could be read, as in `check`.
    problems: list[FleetCheckProblem]


class FleetShareMatch(FleetMatch):
    shared: Literal["written", "unchanged", "withdrawn", ""]


class FleetShareRemovals(TypedDict):
    halted: int  # Sessions that wait for a person, because more than 20 were to go at once.
    tokens: dict[str, str]  # `AGENT/TOKEN`: removed, absent, halted, or failed and why.


class FleetShare(TypedDict):
    states: FleetStates
    workspaces: list[FleetShareMatch]
    url: str
    removals: NotRequired[FleetShareRemovals | None]  # Of this workspace, where its person allows them.


class FleetShareState(FleetMatch):
    share: NotRequired[str]  # Its id; absent for a place without shares.


class FleetSearchHit(TypedDict):
    workspace: str  # The name of the share.
    agent_id: str
    session_token: str  # The name of a session: the 16 characters by which its files are called.
    session_id: str
    project: (
        str | None
    )  # Origin of its repository, else its root, else a folder; of a share without text the last part.
    harness: str | None
    day: str  # UTC day of its end.
    sentence: str | None  # What the session was about; null in a share without text.
    path: str  # Its best file, relative to the workspace.
    score: float  # Share of the words that it has.
    snippet: str  # The line of it that has most of the words; empty if the sentence has as many.


class FleetSearch(TypedDict):
    query: str
    hits: list[FleetSearchHit]
    states: FleetStates
    workspaces: list[FleetShareState]


class FleetReport(TypedDict):
    columns: list[str]
    rows: list[list[str | int | float | bool | None]]
    states: FleetStates
    workspaces: list[FleetShareState]


class FleetRemoveWaiting(TypedDict):
    workspace: str
    why: str  # It has not answered, does not allow removals, halted, or failed and why.
    shared_at: str  # When its share was written last; empty if never.


class FleetRemoveToken(TypedDict):
    agent: str
    token: str
    reason: str
    at: str
    removed: int
    absent: int  # Machines that never had it.
    waiting: list[FleetRemoveWaiting]


class FleetRemove(TypedDict):
    url: str
    approved: list[FleetRemoveToken]


class Eject(TypedDict):
    workspace: str
    dry_run: bool  # Whether nothing was changed.
    services: list[str]
    hooks: list[str]
    pages: list[str]
    state: str | None  # The state folder that is deleted, if there is one.
    by_hand: list[str]  # What is left to do, one line each.
    notes: list[str]


class SessionEnd(TypedDict):
    agent_id: str
    session_id: str  # The harness's id of the session.
    session_token: str  # The name of a session: the 16 characters by which its files are called.
    # Paths; null, too, for a file that is gone when the request is repeated.
    summary: NotRequired[str | None]
    transcript: NotRequired[str | None]
    compaction: NotRequired[str | None]
    manifest: str | None
    sentence: str  # What the session was about, in one line.
    sentence_quality: str
    idempotent_replay: bool
    redactions: dict[str, int]


SessionCompact = SessionEnd


class TranscriptAppend(TypedDict):
    agent_id: str
    session_key: str  # The harness's name for the session, if it is not its id.
    turns: int
    appended: int
    duplicates: int
    redactions: dict[str, int]


class ErrorTold(TypedDict):
    code: str
    message: str
    hint: str
    path: str | None
    suggestions: NotRequired[list[str]]  # What may have been meant.


class Error(TypedDict):
    error: ErrorTold


EntityProtect = EntityCreate
EntityReview = EntityCreate


class EntityChecked(TypedDict):
    ok: bool
    findings: list[EntityLogFinding]


class EntitySettled(TypedDict):
    settled: list[EntityCreate]


EntityCheck = EntityChecked | EntitySettled


HistoryForget = Checkpoint


class Setting(TypedDict):
    name: str
    value: Any
    origin: str
    default: Any


class Settings(TypedDict):
    settings: NotRequired[list[Setting]]  # Without NAME; all else is of the setting of that name.
    name: NotRequired[str]
    value: NotRequired[Any]
    origin: NotRequired[str]
    default: NotRequired[Any]
    meaning: NotRequired[str]  # From here to `in_workspace` without VALUE.
    type: NotRequired[str]
    least: NotRequired[float | None]
    most: NotRequired[float | None]
    choices: NotRequired[list[str]]
    variable: NotRequired[str]
    in_workspace: NotRequired[bool]
    path: NotRequired[str]  # Of the file that was changed.


class ObsidianFile(TypedDict):
    path: str
    created: bool
    set: list[str]


class Obsidian(TypedDict):
    dry_run: bool
    files: list[ObsidianFile]
