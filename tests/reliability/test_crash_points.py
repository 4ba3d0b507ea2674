"""Every operation, ended at every step by a kill, a failing disk and a full one; then a pass, and all of it is well."""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import artifacts_fixture as made
import pytest
from command_lines import COMMAND_LINES
from crash_points import middle, the, unlike, visited
from crash_runner import CHANGES, FAULTS, KILLED, Steps, arm_statements, forked
from invariants import holding
from operations import OPERATIONS
from recovery import alone
from workbench import NOW, Vault, numbered

from signet_sync.storage import writing
from signet_sync.sync.store.texts import text_of

COUNTS = (
    "select (select count(*) from memory_artifacts),"
    " (select count(*) from said join passages p on p.id = said.rowid where said match 'number1x')"
)
# Every run of the suite ends these at such a step: before a removal is scrubbed, in the midst of a page, and with it in
# place and references not followed; a disk fails under a page, and one is full under the database.
PAGE = "pages.stage._write"
A_FEW = (
    ("removal", "kill", the("before checkpoint", "privacy.scrub.scrub")),
    ("session end", "kill", the("after _rename", PAGE)),
    ("session end", "kill", the("half a write", PAGE)),
    ("redaction", "kill", middle),
    ("entity edit", "kill", middle),
    ("session end", "EIO", middle),
    ("remember", "sqlite-ENOSPC", middle),
)
# Of reads that fail for a moment each third.
MANY = dict.fromkeys(FAULTS, unlike) | {"sqlite-read-EIO": lambda moments: unlike(moments)[::3]}


def well(told: dict[str, Any], kills: int) -> None:
    """Holds what became of an operation to what is promised."""
    lines = told["lines"]
    wrong = [line for line in (*lines, *told["over"]) if line["wrong"]]
    assert wrong == [], "\n".join(map(str, wrong[:5]))
    assert all(line["met"] and line["killed"] == line["fault"].endswith("kill") for line in lines)
    assert {line["kills"] for line in told["over"]} <= {kills}


@pytest.mark.parametrize(("name", "fault", "steps"), A_FEW)
def test_some_steps_of_some_operations_may_be_the_last(tmp_path: Path, name: str, fault: str, steps: Any) -> None:
    kills = 4 if fault == "EIO" else 0
    well(alone(partial(visited, name, faults={fault: steps}, times=kills), tmp_path), kills)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_kind_of_step_of_every_operation_may_be_the_last(tmp_path: Path, name: str) -> None:
    """Under every fault; and the pass that recovers it may be killed ten times over."""
    well(alone(partial(visited, name, faults=MANY, times=10), tmp_path), 10)


# What ends a command early leaves nothing for the table to judge: why, or the test of its own.
NOT_HERE = {
    "recall": "counts what was shown, in one transaction",
    "open": "counts what was shown, in one transaction",
    "expand": "counts what was shown, in one transaction",
    "context": "counts what was shown, in one transaction",
    "doctor": "tries what the file system can do; with --fix it runs operations of this table",
    "ui": "reads",
    "setup": "the operations of init, hooks install, import, reindex and service install",
    "init": "a workspace of empty folders, each made once",
    "demo": "a folder of its own, deleted with it",
    "hook": "one job file: tests/capture/test_spool.py",
    "checkpoint": "a git repository: tests/history/test_commit.py",
    "history": "reads",
    "history close-sessions": "a commit, as checkpoint",
    "history forget": "a rename of .git, deleted where it went, and a commit: tests/history/test_forget.py",
    "entity protect": "one line in the ledger of events, as a proposal",
    "entity review": "an edit of a profile, or one line in the ledger of events",
    "entity check": "files from the ledger, each as an edit",
    "backup create": "one file, renamed into place",
    "hooks install": "settings of harnesses: tests/admin/test_hooks.py",
    "hooks uninstall": "settings of harnesses: tests/admin/test_hooks.py",
    "service install": "unit files: tests/host/test_service.py",
    "service uninstall": "unit files: tests/host/test_service.py",
    "eject": "the state itself goes: tests/admin/test_eject.py",
    "settings": "the person's own file, replaced as a whole",
    "fleet share": "tables elsewhere: tests/fleet/test_fleet_share.py",
    "fleet search": "reads",
    "fleet report": "reads",
    "fleet remove": "a list elsewhere, replaced as a whole",
    "mcp": "serves the operations of the commands",
    "restore": "one file among a harness's own: tests/capture/test_harness_contract.py",
    "note": "writes nothing: the call in the transcript counts",
}


def test_every_command_that_writes_is_an_operation_here_or_says_why_not() -> None:
    known = {command for operation in OPERATIONS.values() for command in operation.commands}
    reading = {name for name, line in COMMAND_LINES.items() if line.reads}
    unknown = sorted(set(COMMAND_LINES) - known - set(NOT_HERE) - reading)
    assert not unknown, f"name {unknown} in `commands` of an operation in tests/reliability/operations.py"
    assert sorted((known | set(NOT_HERE)) - set(COMMAND_LINES)) == [], "these are no commands any more"
    assert sorted(known & set(NOT_HERE)) == []


def of_two_sessions(folder: Path) -> Vault:
    """A vault of two sessions, indexed."""
    return Vault(folder / "vault").indexed(1, 2)


@pytest.mark.parametrize("first", ["recall --words", "recall", "context"])
@pytest.mark.parametrize("after", ["the mirror", "one file"])
def test_what_a_removal_covers_is_not_found_any_more_though_it_was_cut_off(
    tmp_path: Path, after: str, first: str
) -> None:
    """Tombstone and mirror stand, rows and pages are as they were: whoever asks first finishes it."""
    vault = of_two_sessions(tmp_path)

    def removed() -> int:
        gone = iter([writing.unlink] if after == "one file" else [])
        writing.unlink = lambda *given: next(gone, lambda *_: os._exit(KILLED))(*given)
        return vault.call("remove", numbered(2)["session_id"], "--reason", "asked for", "--yes", "--now", NOW).code

    assert forked(removed) == KILLED
    assert vault.rows(f"select count(*) from memory_artifacts where {text_of()} like '%number2x%'") != [(0,)]
    for command in (first, "recall --words", "recall", "context"):
        answer = vault.call(*command.split(), *(["number2x"] if command != "context" else []), "--json")
        assert answer.code == 0 and "step number 2" not in answer.out and "Session 2" not in answer.out, answer
    assert "step number 2" not in vault.page() and not list(vault.memory.glob("2026-03-27*"))


def test_whoever_asks_while_the_index_is_built_anew_finds_all_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader of its own looks before every statement that changes something; and one after a kill in the midst."""
    vault = of_two_sessions(tmp_path)
    found, seen, place = vault.hits("number1x"), set(), str(vault.db)
    half = 0

    class Watched(apsw.Connection):
        def execute(self, sql: str, *given: Any, **named: Any) -> Any:
            nonlocal half
            if sql.lstrip().startswith(CHANGES):
                reader = unwatched(place, flags=apsw.SQLITE_OPEN_READONLY)
                seen.add(tuple(reader.execute(COUNTS).get))
                reader.close()
                half += 1
            return super().execute(sql, *given, **named)

    unwatched = apsw.Connection
    with monkeypatch.context() as patch:
        patch.setattr(apsw, "Connection", Watched)
        vault.reindex("--full")
    assert half > 20 and seen == {(6, 2)}

    def killed() -> int:
        arm_statements(half // 2)
        return vault.call("reindex", "--full", "--now", NOW).code

    monkeypatch.chdir(tmp_path)
    assert forked(killed) == KILLED
    assert vault.hits("number1x") == found and vault.rows(COUNTS) == [(6, 2)]


def test_lines_that_could_not_be_taken_out_are_known_when_the_words_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tombstone arrives, somebody typed the session's words into our page, and the disk fails once."""
    vault = of_two_sessions(tmp_path)
    typed = f"> {numbered(2)['memory_sentence']}\n> What I think of it.\n"
    (vault / "MEMORY.md").write_text(vault.page().replace("## ", f"{typed}\n## ", 1))
    vault.put(made.tombstone(session_id=numbered(2)["session_id"]), "memory/tombstones")
    failing = Steps(1, errno.EIO)
    monkeypatch.setattr(writing, "create_once", writing.create_once)  # put back afterwards
    failing.wrap(writing, "create_once", concerns=lambda _, path, *__: "MEMORY.user" in path)
    monkeypatch.chdir(tmp_path)
    vault.reindex()
    assert failing.count >= 1 and vault.rows("select count(*) from memory_artifacts where agent_id = 'default'") == [
        (3,)
    ]
    vault.reindex()
    kept = "".join(path.read_text() for path in vault.root.glob("MEMORY.user-*"))
    assert "What I think of it." in kept and "step number 2" not in kept
    assert holding(vault, [b"step number 2"]) == [] and vault.rows("select * from removed_lines") == []
