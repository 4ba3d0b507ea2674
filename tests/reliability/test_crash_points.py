"""Every operation, ended at every step by a kill, a failing disk and a full one; then a pass, and all of it is well."""

from __future__ import annotations

import errno
import os
import random
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import artifacts_fixture as made
import pytest
from command_lines import COMMAND_LINES
from crash_points import KILLS, apart, prepared, visited
from crash_runner import CHANGES, KILLED, Steps, arm_statements, forked
from invariants import holding
from operations import OPERATIONS
from workbench import NOW, Vault, numbered

from signet_sync.storage import writing
from signet_sync.sync.store.texts import text_of

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
SEED = 7

# Two halves of about the same length: what we call ourselves, and what SQLite does below it.
PARTS = {"ours": ("kill", "EIO", "ENOSPC", "statement-kill"), "below": ("sqlite-kill", "sqlite-EIO", "sqlite-ENOSPC")}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_step_of_every_operation_may_be_the_last(tmp_path: Path, name: str) -> None:
    jobs = {part: partial(visited, name, faults=faults) for part, faults in PARTS.items()}
    told = {fault: one for found in apart(tmp_path, jobs, CORES).values() for fault, one in found.items()}
    lines = [{"fault": fault, **line} for fault, one in told.items() for line in one["lines"]]
    assert [line for line in lines if line["wrong"]][:5] == []
    for fault, one in told.items():
        met = {line["point"] for line in one["lines"] if line["met"]}
        assert met == set(range(1, one["steps"] + 1)), f"{fault}: not every step was visited"
    struck = [line for line in lines if line["met"]]
    kills = [line for line in struck if line["fault"] in KILLS]
    assert all(line["killed"] for line in kills)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_database_that_cannot_be_read_for_a_moment_costs_nothing(tmp_path: Path, name: str) -> None:
    """Every thirteenth of its reads, and of what opens or deletes a file of the database."""
    jobs = {name: partial(visited, name, faults=("sqlite-read-EIO",), every=13)}
    told = apart(tmp_path, jobs)[name]["sqlite-read-EIO"]
    assert [line for line in told["lines"] if line["wrong"]][:5] == [] and told["lines"][0]["met"]


COUNTS = (
    "select (select count(*) from memory_artifacts),"
    " (select count(*) from said join passages p on p.id = said.rowid where said match 'number1x')"
)
# Every run of the suite ends these at the first step of this kind within a function of ours: before a removal is
# scrubbed, in the midst of a page, and with it in place and references not followed.
PAGE = "pages.stage._write"
A_FEW: dict[str, list[tuple[str, str]]] = {
    "removal": [("before checkpoint", "privacy.scrub.scrub")],
    "session end": [("after _rename", PAGE), ("half a write", PAGE)],
}


def tried(name: str, place: Path) -> dict[str, Any]:
    """A few steps of an operation, and a recovery that is killed."""
    crashes = prepared(name, place).looked().under("kill")
    moments = crashes.moments()
    points = [
        next(n for n, one in enumerate(moments, 1) if one.label == label and function in one.within)
        for label, function in A_FEW[name]
    ]
    told: dict[str, Any] = {"lines": list(crashes.at(points, 1))}
    if name == "session end":
        told["over"] = crashes.killed_over_and_over(points[0], 4, random.Random(SEED))
        crashes.under("EIO")
        told["fails"] = list(crashes.at([1 + len(crashes.moments()) // 2], 1))
    return told


@pytest.fixture(scope="module")
def a_few(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return apart(tmp_path_factory.mktemp("few"), {name: partial(tried, name) for name in A_FEW})


def test_some_steps_of_some_operations_may_be_the_last(a_few: dict[str, Any]) -> None:
    for name, told in a_few.items():
        assert [line for line in told["lines"] if line["wrong"] or not line["killed"]] == [], name
        assert len(told["lines"]) == len(A_FEW[name])


def halfway(name: str, place: Path, fault: str = "kill") -> list[dict[str, Any]]:
    """What becomes of an operation that is killed in the middle, or meets another fault there."""
    crashes = prepared(name, place).looked().under(fault)
    return list(crashes.at([1 + len(crashes.moments()) // 2], 1))


# Of each mechanism that `A_FEW` has not, one is killed in every run of the suite, the others with the slow tests.
QUICK = ("redaction", "entity edit")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in OPERATIONS]
)
def test_every_operation_may_be_killed_in_the_middle(tmp_path: Path, name: str) -> None:
    (line,) = apart(tmp_path, {name: partial(halfway, name)})[name]
    assert line["wrong"] == [] and line["killed"]


def test_a_call_that_fails_in_the_middle_is_told_plainly_and_nothing_is_lost(
    tmp_path: Path, a_few: dict[str, Any]
) -> None:
    """A disk that fails under a page, and one that is full under the database."""
    full = apart(tmp_path, {"remember": partial(halfway, "remember", fault="sqlite-ENOSPC")})["remember"]
    for (line,) in (a_few["session end"]["fails"], full):
        assert line["wrong"] == [] and line["met"] and not line["killed"], line


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
    "backup create": "one file: tests/backup/test_backup.py",
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


# ── a recovery that is killed, and the one after it ──


def over_and_over(name: str, place: Path, starts: list[float], times: int) -> list[dict[str, Any]]:
    """An operation killed at some of its steps, each recovery killed a step later than the last, or anywhere."""
    crashes = prepared(name, place).looked()
    steps = len(crashes.under("kill").moments())
    chance = random.Random(SEED)
    firsts = [1 + int(share * (steps - 1)) for share in starts]
    return [crashes.killed_over_and_over(first, times, by) for first in firsts for by in (None, chance)]


@pytest.mark.slow
def test_a_recovery_may_be_killed_fifty_times_over(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    starts = [share / 4 for share in range(4)]
    jobs = {name: partial(over_and_over, name, starts=starts, times=50) for name in OPERATIONS}
    told = apart(tmp_path, jobs, CORES)
    assert [(name, line) for name, lines in told.items() for line in lines if line["wrong"]] == []
    lines = [line for found in told.values() for line in found]
    assert {line["kills"] for line in lines} == {50}


def test_a_recovery_may_be_killed_a_few_times(a_few: dict[str, Any]) -> None:
    told = a_few["session end"]["over"]
    assert told["wrong"] == [] and told["kills"] == 4
