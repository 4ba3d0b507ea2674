"""The operations that are ended early at every step, each on a vault of few sessions: one table for all faults.

Each ends with 0 where it is done; who asked finds `answer.json` in the working folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import artifacts_fixture as made
import operation_vaults as vaults
from flow_runner import (
    LATER,
    NOW,
    NOW_US,
    Scenario,
    asked,
    done,
    passed,
    remember,
    removed,
    stream,
    sweep,
    told_to,
)
from operation_vaults import DOCUMENTS, FORGOTTEN_WORDS, LEAKED, QUOTED, REMOVED_WORDS
from workbench import numbered

from signet_sync.entities import operations
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.memories import promotion
from signet_sync.privacy import forget as privacy_forget
from signet_sync.privacy import quotes as privacy_quotes
from signet_sync.privacy import redact, remove
from signet_sync.recall import pinning
from signet_sync.storage import files
from signet_sync.sync import engine, indexing
from signet_sync.sync.request import Request
from signet_sync.sync.workspace import Workspace

Prepared = dict[str, object]
KEY = "once"
ROLE = "Keeps the queue of lantern from retrying for ever, and says so when it gives up."


@dataclass(frozen=True)
class Operation:
    """One operation: how its vault is made, what is run, and what may be left where it is ended early.

    `commands` are those of the command line that do the same.
    """

    name: str
    prepare: Callable[[Path], None]
    scenario: Callable[[Prepared], Scenario]
    commands: tuple[str, ...] = ()

    def prepared(self, folder: Path) -> Prepared:
        """What the preparation has to tell whoever runs it."""
        found = json.loads((folder / "prepared.json").read_text())
        assert isinstance(found, dict)
        return found


def prepare(name: str, folder: Path) -> Operation:
    """Makes FOLDER/before, FOLDER/state-before and FOLDER/prepared.json; FOLDER/vault is the workspace itself.

    The workspace must be put back in FOLDER/vault and the state where SIGNET_STATE points to: elsewhere it is a copy.
    """
    folder.mkdir(parents=True, exist_ok=True)
    OPERATIONS[name].prepare(folder)
    return OPERATIONS[name]


# ── what is run ──


def _publish(workspace: Workspace) -> None:
    """One new file, and a pass."""
    name, raw = made.summary(**numbered(4))
    path = f"memory/{name}"
    with suppress(FileExistsError):
        files.create_once(workspace.root, path, raw)
    assert (Path(workspace.root) / path).read_bytes() == raw
    engine.run_pass(workspace, Request(now_us=NOW_US))


def _decide(workspace: Workspace) -> None:
    """Live turns, and the pass that distils them."""
    vaults.deciding(workspace)
    engine.run_pass(workspace, Request(now_us=NOW_US))


def _work_off(workspace: Workspace) -> None:
    """What the agent does in idle time, in batches of two sessions, and the pass that publishes what came of it."""
    for deriver in workspace.pipeline.derivers:
        deriver.batch = 2
    while engine.work_off(workspace, Request(now_us=NOW_US)):
        pass
    engine.run_pass(workspace, Request(now_us=NOW_US))


def _create(workspace: Workspace) -> None:
    operations.create(workspace, "default", "part", "Perfectionist", now_us=NOW_US, key=KEY)


def _edit(workspace: Workspace) -> None:
    operations.set_section(workspace, "default", "inner-critic", "role", ROLE, now_us=NOW_US, key=KEY)


def _propose(workspace: Workspace) -> None:
    operations.set_section(
        workspace, "default", "inner-critic", "role", "It sleeps.", propose=True, now_us=NOW_US, key=KEY
    )


def _redact(prepared: Prepared) -> Callable[[Workspace], object]:
    def ask(workspace: Workspace) -> None:
        remove.refresh(workspace, NOW_US)
        paths = redact.select_artifacts(workspace, "default", str(prepared["session"]))
        left = redact.redact(workspace, paths, "it leaked", NOW_US).left
        if left:
            raise WorkspaceError(left[0].message, path=left[0].path)

    return ask


def _remove_quoted(prepared: Prepared) -> Callable[[Workspace], object]:
    def ask(workspace: Workspace) -> None:
        remove.refresh(workspace, NOW_US)
        try:
            plans = remove.plan(workspace, "default", str(prepared["session"]))
        except UsageError as error:
            if error.code == "unknown-session":
                return  # it was removed already
            raise
        quotes = privacy_quotes.find_quotes(workspace, plans)
        privacy_quotes.redact(workspace, quotes, "private", NOW_US)
        for plan in plans:
            remove.remove(workspace, plan, "private", NOW_US, quoted_in=quotes.paths)

    return ask


def _on(ask: Callable[..., object], name: str) -> Callable[[Prepared], Callable[[Workspace], object]]:
    """Something that is asked of a memory that was prepared."""
    return lambda prepared: lambda workspace: ask(workspace, "default", str(prepared[name]), NOW_US)


_pin, _unpin = _on(pinning.pin, "pin"), _on(pinning.unpin, "forget")
_withdraw = _on(lambda *given: pinning.mark(*given[:3], "withdrawn", given[3]), "say")
_undo_promotion, _forget = _on(promotion.undo, "pin"), _on(privacy_forget.forget, "forget")


def _ending(name: str, **given: bool) -> Callable[[Prepared], Scenario]:
    return lambda _: Scenario(asked(DOCUMENTS[name]), **given)


def _reindex(now: str = NOW, *more: str, gone: tuple[str, ...] = ()) -> Callable[[Prepared], Scenario]:
    """A pass, which the next one finishes."""
    return lambda _: Scenario(passed("reindex", "--now", now, *more), flow=False, now=now, gone=gone)


def _in_parts(prepared: Prepared) -> Scenario:
    """A first index of a part for each session."""
    whole = _reindex()(prepared)

    def work(root: Path) -> int:
        indexing.NEWEST = indexing.PART = 3
        indexing.WORKERS_FROM = 2
        return whole.work(root)

    return replace(whole, work=work)


def _beside(*words: str) -> Callable[[Path], int]:
    """A command that leaves no harness feeding Signet, if it says that it is done."""
    work = told_to(*words)

    def beside(root: Path) -> int:
        folder = vaults.harness()
        os.environ["CLAUDE_CONFIG_DIR"] = str(folder)
        code = work(root)
        return code if code or not vaults.feeds_signet(folder) else 99

    return beside


_PASS = ("reindex", "--now", NOW)
_UNDO = ("remove", numbered(2)["session_id"], "--undo", "--now", NOW)
_ACCEPT = ("violations", "accept")
_WHY = ("--reason", "mine", "--yes", "--now", NOW)
_ALL = (
    # ── passes ──
    Operation("publish", vaults.plain, lambda _: Scenario(done(_publish), tidies=True), ("reindex",)),
    Operation("first index", vaults.new, _in_parts, ("reindex",)),
    Operation("backlog", vaults.backlog, lambda _: Scenario(done(_work_off, answers=False), flow=False), ("run",)),
    Operation("manifest update", vaults.without_a_manifest, _reindex(LATER), ("reindex",)),
    Operation("projection", vaults.written_around, _reindex(), ("reindex", "render")),
    Operation("migration", vaults.of_another_version, _reindex()),
    Operation("other rules", vaults.of_other_rules, _reindex()),
    Operation("rebuild", vaults.without_a_database, _reindex(NOW, "--full"), ("reindex",)),
    Operation("rebuild in place", vaults.plain, _reindex(NOW, "--full"), ("reindex",)),
    Operation("repair", vaults.damaged, _reindex()),
    Operation("tombstone", vaults.with_a_stone, _reindex(gone=REMOVED_WORDS)),
    Operation("removal of Signet", vaults.with_a_removal_of_signet, _reindex(gone=REMOVED_WORDS), ("reindex",)),
    # ── beside Signet ──
    Operation("takeover", vaults.replaced_by_signet, _reindex()),
    # ── a session's end ──
    Operation("session end", vaults.running(), _ending("end"), ("session end", "session take-spool", "import")),
    Operation("ending without a summary", vaults.running(), _ending("digest")),
    Operation("next segment", vaults.running(), _ending("segment")),
    # Each part is an ending of its own; until the answer some of them may be missing.
    Operation(
        "ending in parts", vaults.running(), lambda _: Scenario(asked(DOCUMENTS["parts"], 6_000), piecemeal=True),
    ),
    Operation("compaction", vaults.running(), _ending("compaction"), ("session compact",)),
    Operation("first compaction", vaults.running(), _ending("first compaction")),
    Operation("live turns", vaults.remembering(), lambda _: Scenario(done(stream)), ("transcript append",)),
    Operation(
        "statements of live turns", vaults.remembering(), lambda _: Scenario(done(_decide), tidies=True),
        ("transcript append",),
    ),
    Operation("end of what has decided", vaults.having_decided, _ending("end"), ("session end",)),
    Operation(
        "removal of what runs", vaults.having_decided,
        lambda _: Scenario(
            removed(str(vaults.FOURTH["session_id"])), tidies=True, gone=("We use Postgres for the queue",)
        ), ("remove",),
    ),
    # ── removals ──
    Operation(
        "removal", vaults.risen,
        lambda prepared: Scenario(removed(str(prepared["remove"])), tidies=True, gone=REMOVED_WORDS), ("remove",),
    ),
    Operation(
        "removal of what is quoted", vaults.quoting,
        lambda prepared: Scenario(
            done(_remove_quoted(prepared)), piecemeal=True, tidies=True, gone=(QUOTED,), rewrites=True
        ), ("remove",),
    ),
    Operation(
        "redaction", vaults.leaked,
        lambda prepared: Scenario(done(_redact(prepared)), piecemeal=True, tidies=True, gone=(LEAKED,), rewrites=True),
        ("redact",),
    ),
    Operation(
        "forget", vaults.risen, lambda prepared: Scenario(done(_forget(prepared)), tidies=True, gone=FORGOTTEN_WORDS),
        ("forget",),
    ),
    Operation(
        "undo", vaults.of_a_removal, lambda _: Scenario(told_to(*_UNDO, then=_PASS), piecemeal=True, lifts=True),
        ("remove",),
    ),
    Operation(
        "undo of one of two", vaults.of_a_shared_removal,
        lambda _: Scenario(told_to(*_UNDO, then=_PASS), piecemeal=True, lifts=True), ("remove",),
    ),
    # ── violations ──
    Operation(
        "restore", vaults.to_restore,
        lambda _: Scenario(
            told_to("violations", "restore", "--all", "--yes", "--now", NOW), piecemeal=True, rewrites=True, heals=True
        ), ("violations restore",),
    ),
    Operation(
        "accept", vaults.to_accept,
        lambda _: Scenario(
            told_to(*_ACCEPT, "--all", *_WHY), piecemeal=True, rewrites=True,
            heals=True,
        ), ("violations accept",),
    ),
    # ── memories ──
    Operation("remember", vaults.remembering(), lambda _: Scenario(done(remember)), ("remember",)),
    Operation("pin", vaults.remembering(), lambda prepared: Scenario(done(_pin(prepared))), ("pin",)),
    Operation("unpin", vaults.remembering(), lambda prepared: Scenario(done(_unpin(prepared))), ("pin",)),
    Operation(
        "a person's word", vaults.remembering(), lambda prepared: Scenario(done(_withdraw(prepared))),
        ("statements done", "statements withdraw", "statements reopen", "statements keep"),
    ),
    Operation("dream sweep", vaults.recalled, lambda _: Scenario(done(sweep)), ("dream",)),
    Operation(
        "promotion undone", vaults.dreamed, lambda prepared: Scenario(done(_undo_promotion(prepared))), ("dream",),
    ),
    Operation(
        "first dream sweep", vaults.before_the_first_dream, lambda _: Scenario(done(sweep), piecemeal=True),
        ("dream",),
    ),
    Operation(
        "restored backup", vaults.with_a_backup,
        lambda prepared: Scenario(
            told_to("backup", "restore", str(prepared["backup"]), "--now", NOW), piecemeal=True, tidies=True
        ), ("backup restore",),
    ),
    Operation(
        "migration from Signet", vaults.beside_signet,
        lambda prepared: Scenario(
            _beside("migrate", "signet", str(prepared["from"]), "--yes", "--now", NOW), piecemeal=True,
            tidies=True, gone=REMOVED_WORDS,
        ), ("migrate",),
    ),
    Operation(
        "migration from others", vaults.beside_claude_mem,
        lambda prepared: Scenario(
            told_to("migrate", "claude-mem", str(prepared["from"]), "--now", NOW), piecemeal=True, tidies=True
        ), ("migrate",),
    ),
    # ── entities ──
    Operation(
        "entity creation", vaults.garden, lambda _: Scenario(done(_create), piecemeal=True, tidies=True),
        ("entity create",),
    ),
    Operation(
        "entity edit", vaults.garden, lambda _: Scenario(done(_edit), tidies=True),
        ("entity set", "entity append", "entity prune", "entity status", "entity undo"),
    ),
    Operation("entity proposal", vaults.garden, lambda _: Scenario(done(_propose), tidies=True), ("entity set",)),
)  # fmt: skip
OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _ALL}
