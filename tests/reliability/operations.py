"""The operations that are ended early at every step, each on a vault of few sessions: one table for all faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import operation_vaults as vaults
from crash_runner import NOW, command
from operation_vaults import DOCUMENTS, FORGOTTEN_WORDS, LEAKED, NOW_US, QUOTED, REMOVED_WORDS, SECRET
from workbench import numbered

from signet_sync.app.workspace import open_to_write
from signet_sync.entities import operations as entities
from signet_sync.errors import SignetSyncError, UsageError, WorkspaceError
from signet_sync.memories import operations as memories_operations
from signet_sync.privacy import quotes as privacy_quotes
from signet_sync.privacy import redact, remove
from signet_sync.recall import pinning
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import Turn, compaction_input, session_input
from signet_sync.sessions.live import operations as live
from signet_sync.settings.model import Settings
from signet_sync.storage import writing
from signet_sync.sync import engine, indexing
from signet_sync.sync.workspace import Request, Workspace

LATER = "2026-04-28T11:00:00.000Z"
REFUSED = 3
Work = Callable[[Path], int]


@dataclass(frozen=True)
class Operation:
    """One operation: how its vault is made, what is run, and what may be left where it is ended early.

    `work` ends with 0 where it is done; who asked finds `answer.json` in the working folder. `commands` are those of
    the command line that do the same. `flow`: it may never have begun, and is asked for again; else it is a pass, which
    the next one finishes. `piecemeal`: some of it may stand until it is asked for again. `tidies`: pages may be put in
    order before it begins. `gone` are words that no file may hold once it is done. `rewrites`: sealed files are written
    again. `lifts`: tombstones stand before it, and say nothing of
    how far it came.
    """

    name: str
    prepare: Callable[[Path], None]
    work: Work
    commands: tuple[str, ...] = ()
    flow: bool = True
    piecemeal: bool = False
    tidies: bool = False
    gone: tuple[str, ...] = ()
    now: str = NOW
    rewrites: bool = False
    lifts: bool = False


def prepare(name: str, folder: Path) -> Operation:
    """Makes FOLDER/before, FOLDER/state-before and FOLDER/prepared.json; FOLDER/vault is the workspace itself.

    The workspace must be put back in FOLDER/vault and the state where SIGNET_STATE points to: elsewhere it is a copy.
    """
    folder.mkdir(parents=True, exist_ok=True)
    OPERATIONS[name].prepare(folder)
    return OPERATIONS[name]


def prepared(root: Path | str) -> dict[str, Any]:
    """What the preparation of a vault has to tell whoever runs the operation."""
    found = json.loads((Path(root).parent / "prepared.json").read_text())
    assert isinstance(found, dict)
    return found


def refused(work: Work, root: Path) -> int:
    """Runs something that may be refused with an error of ours; any other exception is not expected."""
    try:
        return work(root)
    except (SignetSyncError, OSError) as error:
        Path("refused").write_text(repr(error))
        return REFUSED


# ── ways to run something ──


def passed(*words: str, now: str = NOW) -> Work:
    """A pass, which the next one finishes."""
    return lambda root: command(str(root), "reindex", "--now", now, *words)


def told_to(*words: str, then: tuple[str, ...] = (), refuses: Collection[int] = (1,)) -> Work:
    """A command line, with what was prepared by its name, and one after it; the caller is told that it is done."""

    def work(root: Path) -> int:
        for line in filter(None, (words, then)):
            if code := command(str(root), *(word.format(**prepared(root)) for word in line)):
                return REFUSED if code in refuses else code  # some of it could not be done
        Path("answer.json").write_text("{}")
        return 0

    return work


def done(ask: Callable[[Workspace], object], *, answers: bool = True) -> Work:
    """What is asked for through the API; what it gives is written down, as for a caller. What went before is gone."""

    def work(root: Path) -> int:
        given = None
        with open_to_write(str(root), Settings()) as workspace:
            try:
                given = ask(workspace)
            except UsageError as error:
                if error.code not in ("unknown-handle", "unknown-session"):
                    raise
        if answers:
            Path("answer.json").write_text(json.dumps(given if isinstance(given, dict) else {}))
        return 0

    return work


def ending(name: str) -> Work:
    """A session end or compaction."""

    def ask(workspace: Workspace) -> object:
        document = DOCUMENTS[name]
        read = session_input if "transcript" in document else compaction_input
        return sessions_operations.write(workspace, read(document, now_us=NOW_US), now_us=NOW_US)

    return done(ask)


def on(ask: Callable[..., object], name: str) -> Work:
    """Something that is asked of what was prepared under a name."""
    return done(lambda workspace: ask(workspace, "default", str(prepared(workspace.root)[name]), NOW_US))


# ── what is run ──


def publish(workspace: Workspace) -> None:
    """One new file, and a pass."""
    name, raw = made.summary(**numbered(4))
    path = f"memory/{name}"
    with suppress(FileExistsError):
        writing.create_once(workspace.root, path, raw)
    assert (Path(workspace.root) / path).read_bytes() == raw
    engine.run_pass(workspace, Request(now_us=NOW_US))


def index_in_parts(root: Path) -> int:
    """A first index of a part for each session."""
    indexing.NEWEST = indexing.PART = 3
    indexing.MANY = 2
    return passed()(root)


def stream(workspace: Workspace) -> None:
    """More turns of a session of which some stand already."""
    words = ("Bound it.", "Done.", f"The key was {SECRET} then.")
    turns = [Turn(number, "user", text, NOW) for number, text in enumerate(words, 1)]
    live.append(workspace, turns, agent_id="default", session_key="agent:main/third")


def decide(workspace: Workspace) -> None:
    """Live turns, and the pass that distils them."""
    vaults.deciding(workspace)
    engine.run_pass(workspace, Request(now_us=NOW_US))


def work_off(workspace: Workspace) -> None:
    """What the agent does in idle time, in batches of two sessions, and the pass that publishes what came of it."""
    for deriver in workspace.pipeline.derivers:
        deriver.batch = 2
    while engine.work_off(workspace, Request(now_us=NOW_US)):
        pass
    engine.run_pass(workspace, Request(now_us=NOW_US))


def remember(workspace: Workspace) -> None:
    """A word of one's own, with a secret in it."""
    given = {"kind": "decision", "tags": ("queue",), "private": False, "session": None, "now_us": NOW_US}
    memories_operations.remember(workspace, "default", f"Drain the lantern before {SECRET} is turned.", **given)


def removed(name: str) -> Work:
    """A removal; one that has been made already has nothing to remove."""

    def ask(workspace: Workspace) -> None:
        for part in remove.plan(workspace, "default", name.format(**prepared(workspace.root))):
            remove.remove(workspace, part, "asked for", NOW_US)

    # What it says is read by nobody.
    return done(ask, answers=False)


def remove_quoted(workspace: Workspace) -> None:
    remove.refresh(workspace, NOW_US)
    plans = remove.plan(workspace, "default", str(prepared(workspace.root)["session"]))
    quotes = privacy_quotes.find_quotes(workspace, plans)
    privacy_quotes.redact(workspace, quotes, "private", NOW_US)
    for plan in plans:
        remove.remove(workspace, plan, "private", NOW_US)


def redact_all(workspace: Workspace) -> None:
    remove.refresh(workspace, NOW_US)
    paths = redact.select_artifacts(workspace, "default", str(prepared(workspace.root)["session"]))
    left = redact.redact(workspace, paths, "it leaked", NOW_US).left
    if left:
        raise WorkspaceError(left[0].message, path=left[0].path)


def withdraw(workspace: Workspace, agent: str, statement: str, now_us: int) -> object:
    return pinning.mark(workspace, agent, statement, "withdrawn", now_us)


def sweep(workspace: Workspace) -> object:
    """Has what was recalled often rise."""
    return memories_operations.dream(workspace, "default", NOW_US)


ROLE = "Keeps the queue of lantern from retrying for ever, and says so when it gives up."


def create(workspace: Workspace) -> None:
    entities.create(workspace, "default", "part", "Perfectionist", now_us=NOW_US, key="once")


def edit(text: str = ROLE, *, propose: bool = False) -> Work:
    given: dict[str, Any] = {"now_us": NOW_US, "key": "once"} | ({"propose": True} if propose else {})
    return done(lambda workspace: entities.set_section(workspace, "default", "inner-critic", "role", text, **given))


_PASS = ("reindex", "--now", NOW)
_UNDO = ("remove", numbered(2)["session_id"], "--undo", "--now", NOW)
_RESTORE = ("violations", "restore", "--all", "--yes", "--now", NOW)
_ACCEPT = ("violations", "accept", "--all", "--reason", "mine", "--yes", "--now", NOW)
_FOURTH = str(vaults.FOURTH["session_id"])
_ALL = (
    # ── passes ──
    Operation("publish", vaults.plain, done(publish), ("reindex",), tidies=True),
    Operation("first index", vaults.new, index_in_parts, ("reindex",), flow=False),
    Operation("backlog", vaults.backlog, done(work_off, answers=False), ("run",), flow=False),
    Operation(
        "manifest update", vaults.without_a_manifest, passed(now=LATER), ("reindex",), flow=False, now=LATER
    ),
    Operation("projection", vaults.written_around, passed(), ("reindex", "render"), flow=False),
    Operation("migration", vaults.of_another_version, passed(), flow=False),
    Operation("other rules", vaults.of_other_rules, passed(), flow=False),
    Operation("rebuild", vaults.without_a_database, passed("--full"), ("reindex",), flow=False),
    Operation("rebuild in place", vaults.plain, passed("--full"), ("reindex",), flow=False),
    Operation("repair", vaults.damaged, passed(), flow=False),
    Operation("tombstone", vaults.with_a_stone, passed(), flow=False, gone=REMOVED_WORDS),
    Operation(
        "removal of Signet", vaults.with_a_removal_of_signet, passed(), ("reindex",), flow=False, gone=REMOVED_WORDS
    ),
    # ── beside Signet ──
    Operation("takeover", vaults.replaced_by_signet, passed(), flow=False),
    # ── a session's end ──
    Operation("session end", vaults.running, ending("end"), ("session end", "session take-spool", "import")),
    Operation("next segment", vaults.running, ending("segment")),
    Operation("compaction", vaults.running, ending("compaction"), ("session compact",)),
    Operation("first compaction", vaults.running, ending("first compaction")),
    Operation("live turns", vaults.remembering, done(stream), ("transcript append",)),
    Operation("statements of live turns", vaults.remembering, done(decide), ("transcript append",), tidies=True),
    Operation("end of what has decided", vaults.having_decided, ending("end"), ("session end",)),
    Operation(
        "removal of what runs", vaults.having_decided, removed(_FOURTH), ("remove",), tidies=True,
        gone=("We use Postgres for the queue",),
    ),
    # ── removals ──
    Operation("removal", vaults.risen, removed("{remove}"), ("remove",), tidies=True, gone=REMOVED_WORDS),
    Operation(
        "removal of what is quoted", vaults.quoting, done(remove_quoted), ("remove",), piecemeal=True, tidies=True,
        gone=(QUOTED,), rewrites=True,
    ),
    Operation(
        "redaction", vaults.leaked, done(redact_all), ("redact",), piecemeal=True, tidies=True, gone=(LEAKED,),
        rewrites=True,
    ),
    Operation(
        "forget", vaults.risen, on(remove.forget, "forget"), ("forget",), tidies=True, gone=FORGOTTEN_WORDS
    ),
    Operation("undo", vaults.of_a_removal, told_to(*_UNDO, then=_PASS), ("remove",), piecemeal=True, lifts=True),
    Operation(
        "undo of one of two", vaults.of_a_shared_removal, told_to(*_UNDO, then=_PASS), ("remove",), piecemeal=True,
        lifts=True,
    ),
    # ── violations ──
    Operation(
        "restore", vaults.to_restore, told_to(*_RESTORE), ("violations restore",), piecemeal=True, rewrites=True
    ),
    Operation(
        "accept", vaults.to_accept, told_to(*_ACCEPT), ("violations accept",), piecemeal=True, rewrites=True
    ),
    # ── memories ──
    Operation("remember", vaults.remembering, done(remember), ("remember",)),
    Operation("pin", vaults.remembering, on(pinning.pin, "pin"), ("pin",)),
    Operation(
        "a person's word", vaults.remembering, on(withdraw, "say"),
        ("statements done", "statements withdraw", "statements keep"),
    ),
    Operation("dream sweep", vaults.recalled, done(sweep), ("dream",)),
    Operation(
        "restored backup", vaults.with_a_backup, told_to("backup", "restore", "{backup}", "--now", NOW),
        ("backup restore",), piecemeal=True, tidies=True,
    ),
    Operation(
        "migration from Signet", vaults.beside_signet,
        # A database of another program that cannot be read is refused as a wrong name is.
        told_to("migrate", "signet", "{from}", "--yes", "--now", NOW, refuses=(1, 2)), ("migrate",),
        piecemeal=True, tidies=True, gone=REMOVED_WORDS,
    ),
    # ── entities ──
    Operation("entity creation", vaults.garden, done(create), ("entity create",), piecemeal=True, tidies=True),
    Operation(
        "entity edit", vaults.garden, edit(), ("entity set", "entity append", "entity prune", "entity status",
        "entity undo"), tidies=True,
    ),
    Operation("entity proposal", vaults.garden, edit("It sleeps.", propose=True), ("entity set",), tidies=True),
)  # fmt: skip
OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _ALL}
