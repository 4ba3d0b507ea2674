"""Locks, leases and editors against real processes: one holder, no write by a fenced one, no lost save.

Every process is a fork of this one, so that they begin within microseconds of each other.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

import apsw
import hand_edits
import pytest
from crash_runner import killed_after_its_swap
from invariants import holding
from session_inputs import FIRST, WHO, end, moment
from workbench import NOW, ROOT, Vault, entry, tree

from signet_sync.app.workspace import open_to_write
from signet_sync.digest.outcome import Item, ModelDigest
from signet_sync.errors import SignetSyncError, UsageError, WorkspaceError
from signet_sync.formats.timestamps import parse_instant
from signet_sync.pages import page_files
from signet_sync.pages.conflict_copies import keep_displaced
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import session_input
from signet_sync.settings.model import Settings
from signet_sync.storage import durable, state_dir, writing
from signet_sync.storage.database import connection
from signet_sync.sync import manifests
from signet_sync.sync.deriving import publish
from signet_sync.sync.index_records import Change
from signet_sync.sync.workspace import Outcome, Pass, Request, Workspace

NOW_US = parse_instant(NOW) or 0
PAGE = "MEMORY.md"


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault").indexed(1, 2, 3)


def fork(work: Callable[[], int | None]) -> int:
    """Runs something in a fork, which ends with what it gives; the fork's id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        code = work() or 0
    finally:
        os._exit(code)


def ended(pid: int) -> int:
    """The exit code of a fork."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# ── who holds a lock ──


LOCKS: dict[str, Callable[[state_dir.StateFolder], AbstractContextManager[None]]] = {
    "run": state_dir.run_lock,
    "workspace": state_dir.workspace_lock,
    "session": lambda folder: state_dir.session_lock(folder, "abcdefghijklmnop"),
    "history": partial(state_dir.lock, name="history"),
    "intake": state_dir.intake_lock,
}


@pytest.mark.parametrize("rounds", [4, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_one_holder_whoever_races_for_it(tmp_path: Path, name: str, rounds: int) -> None:
    """Four processes count up one number, each under the lock: as many as they counted, or two were inside at once."""
    folder = state_dir.StateFolder(str(tmp_path), "key")
    durable.private_folder(folder.locks)
    number = tmp_path / "number"
    number.write_text("0")

    def count() -> None:
        done = 0
        while done < rounds:
            with suppress(SignetSyncError), LOCKS[name](folder):
                before = int(number.read_text() or "0")
                os.sched_yield()
                number.write_text(str(before + 1))
                done += 1

    codes = [ended(pid) for pid in [fork(count) for _ in range(4)]]
    assert codes == [0] * 4 and int(number.read_text()) == 4 * rounds


@pytest.mark.parametrize("how", ["deleted", "put aside"])
def test_a_lock_on_a_file_that_lost_its_name_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Whoever has opened the file, and gets its lock only after it lost its name, shuts nobody out: it tries again."""
    folder = state_dir.StateFolder(str(tmp_path / "state"), "key")
    path = Path(folder.locks) / "history.lock"
    real, gone = fcntl.flock, []

    def flock(handle: int, how_to: int) -> None:
        if not gone:
            gone.append(how)
            path.unlink() if how == "deleted" else path.rename(path.with_suffix(".old"))
        real(handle, how_to)

    monkeypatch.setattr(fcntl, "flock", flock)
    with state_dir.lock(folder, "history", 1.0):
        assert gone and path.exists()
        with pytest.raises(WorkspaceError), state_dir.lock(folder, "history", 0.0):
            pass


# ── who slept past a lease ──

EARLIER = [parse_instant(f"2026-03-{day}T12:00:00.000Z") or 0 for day in (26, 27, 28)]


def stop_at(number: list[int]) -> None:
    """Stops the process at a step of its writes, of which `number` are left; there is none before it is set."""

    def step() -> None:
        if number:
            number[0] -= 1
            if number[0] == 0:
                os.kill(os.getpid(), signal.SIGSTOP)

    def stepped(real: Callable[..., Any], *given: Any, **named: Any) -> Any:
        step()
        try:
            return real(*given, **named)
        finally:
            step()

    for name in ("open", "write", "fsync", "link", "replace", "rename", "unlink"):
        setattr(os, name, partial(stepped, getattr(os, name)))
    writing._rename = partial(stepped, writing._rename)

    class Connection(apsw.Connection):
        def execute(self, sql: str, *given: Any, **named: Any) -> Any:
            real = super().execute
            return stepped(real, sql, *given, **named) if sql in ("begin immediate", "commit") else real(sql, *given)

    apsw.Connection = Connection  # type: ignore[misc]


def publish_page(workspace: Workspace, now_us: int) -> Outcome:
    run = Pass(workspace, Request(now_us, frozenset()), Outcome(change=Change(agents={"default"})))
    publish(run, workspace.pipeline.publishers)
    return run.outcome


def stopped(root: Path, at: int) -> int | None:
    """A writer of the page that has stopped at this step; None where it came to its end before."""

    def write() -> int:
        number: list[int] = []
        stop_at(number)
        with open_to_write(str(root), Settings()) as workspace:
            number.append(at)
            return int(publish_page(workspace, EARLIER[0]).deferred)

    pid = fork(write)
    _, status = os.waitpid(pid, os.WUNTRACED)
    return pid if os.WIFSTOPPED(status) else None


def written_beside(root: Path, sleeper: int, now_us: int) -> bool:
    """Writes the page anew; whether the lease that the sleeper held was taken from it."""
    with open_to_write(str(root), Settings()) as workspace:
        rows = list(workspace.database.execute("select lease_owner, fence from memory_md_heads where lease_owner > ''"))
        publish_page(workspace, now_us)
        fence = workspace.database.value("select fence from memory_md_heads")
    return any(owner.split(":")[1] == str(sleeper) and fence > held for owner, held in rows)


def seen(vault: Vault) -> list[object]:
    """All that a fenced holder could have changed: the page's file, what is known of it, the lease."""
    known = [vault.rows(f"select * from {table}") for table in ("pages", "memory_md_heads")]
    return [entry(vault / PAGE), known, sorted(os.listdir(vault.root))]


@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_holder_that_wakes_up_too_late_writes_nothing(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    """Stopped at each step between taking the lease and giving it back; either it is fenced, or nobody can take it."""
    monkeypatch.setattr(connection, "BUSY_MS", 30)
    hold, waits = state_dir._hold, {"session": 0.03}  # seconds for a session's lock, which may be the sleeper's
    monkeypatch.setattr(state_dir, "_hold", lambda at, name, most, why: hold(at, name, waits.get(name[:7], most), why))
    fenced, at = 0, 1
    while (sleeper := stopped(vault.root, at)) is not None:
        taken = written_beside(vault.root, sleeper, EARLIER[1])
        before = seen(vault)
        os.kill(sleeper, signal.SIGCONT)
        ended(sleeper)
        assert not taken or seen(vault) == before, f"it wrote, stopped at step {at}"
        fenced += taken
        written_beside(vault.root, 0, EARLIER[2])  # so that the next one has a page to write
        at += stride
    assert fenced


# ── who saves while we write ──

PATIENCE, ASIDE = 600.0, 3.0  # seconds until a save must be seen, in the file or beside it: ours may be held up
RESTS = (0.0, 0.004, 0.001, 0.0, 0.002)  # seconds between two saves: some are caught in the middle of ours
EDITORS = [hand_edits.EDITORS[how] for how in (*hand_edits.SAVINGS, "over it", "in halves", "in a hundred bits")]


def mine(number: int) -> bytes:
    """The person's own line after so many saves."""
    return b"Mine: %d.\n" % number


class Editor:
    """Saves a file again and again, in each of its ways; every save changes the person's own line.

    A save is finished when the editor has closed the file (or given the new one its name). It is lost if it does not
    come to stand in the file, and is in no copy that we kept or keep, at the end, of what still lies aside. An editor
    that goes on from what it reads there supersedes its own saves, and nobody else does.
    """

    def __init__(self, root: Path, path: str) -> None:
        self.root, self.target = root, root / path
        self.lost: list[int] = []
        self.aside: list[int] = []

    def run(self, saves: int) -> None:
        number = 0
        while number < saves:
            text = self.text_with(number)
            if text is None:
                text = self.read() + (mine(number) if mine(number) not in self.read() else b"")
            save = EDITORS[number % len(EDITORS)]
            try:
                save(self.target, text.replace(mine(number), mine(number + 1)))
            except FileNotFoundError:
                continue  # it could not be opened: nothing was saved
            number += 1
            time.sleep(RESTS[number % len(RESTS)])
        self.text_with(number)

    def read(self) -> bytes:
        while True:
            with suppress(FileNotFoundError):
                return self.target.read_bytes()

    def text_with(self, number: int) -> bytes | None:
        """The file once it shows what was saved last; None where it does not come back."""
        began = time.monotonic()
        while time.monotonic() < began + PATIENCE:
            text = self.read()
            if mine(number) in text:
                return text
            if time.monotonic() > began + ASIDE and self.is_aside(number):
                self.aside.append(number)
                return None
        self.lost.append(number)
        return None

    def is_aside(self, number: int) -> bool:
        for path in (*self.root.glob("*.user-*.md"), *(self.root / ".signet/tmp").glob("*-*-*-*-*.tmp")):
            with suppress(OSError):
                if mine(number) in path.read_bytes():
                    return True
        return False


def write_page(workspace: Any, path: str, number: int) -> None:
    page_files.write(workspace, path, f"# Working Memory\n\nRound {number}.\n", time.time_ns() // 1000, set(), None)


def write_manifest(workspace: Any, path: str, number: int) -> None:
    def change(fields: dict[str, Any], body: str) -> tuple[dict[str, Any], str]:
        return {**fields, "memory_md_refs": [f"Round {number}"]}, body

    if not manifests.swap(workspace, path, change):
        raise OSError("half of it")


@pytest.mark.parametrize("what", [PAGE, "a manifest"])
@pytest.mark.parametrize("saves", [60, pytest.param(1_000, marks=pytest.mark.slow)])
def test_no_save_of_an_editor_is_lost(vault: Vault, what: str, saves: int) -> None:
    """In six ways of saving, against writes of ours without a pause."""
    (manifest,) = (path.name for path in vault.memory.glob("2026-03-28*--manifest.md"))
    path, write = (PAGE, write_page) if what == PAGE else (f"memory/{manifest}", write_manifest)
    (vault / path).write_bytes((vault / path).read_bytes() + mine(0))
    began, begin = os.pipe()
    over, stop = os.pipe()

    def work() -> None:
        done = Counter[bool]()
        with open_to_write(str(vault.root), Settings()) as workspace:
            while not select.select([over], [], [], 0)[0]:
                try:
                    write(workspace, path, done[True])
                    done[True] += 1
                except (SignetSyncError, OSError):
                    done[False] += 1
                if done.total() == 1:
                    os.write(begin, b".")
        os.write(begin, json.dumps([done[True], done[False]]).encode())

    pid = fork(work)
    editor = Editor(vault.root, path)
    os.read(began, 1)  # what the first write loads takes longer than some saves
    editor.run(saves)
    os.write(stop, b".")
    assert ended(pid) == 0
    wrote, gave_way = json.loads(os.read(began, 1000))
    assert wrote and (gave_way or saves < 1000), "of a few saves none may have fallen into a write"
    with open_to_write(str(vault.root), Settings()) as workspace:
        assert not keep_displaced(workspace, time.time_ns() // 1000, rest=0.0)
    kept = b"".join(copy.read_bytes() for copy in vault.root.glob("*.user-*.md"))
    assert editor.lost == [] and [number for number in editor.aside if mine(number) not in kept] == []
    vault.reindex()
    assert not list((vault / ".signet/tmp").iterdir())


def test_a_page_that_a_program_keeps_open_waits_and_says_so(vault: Vault) -> None:
    page = vault / "MEMORY.md"
    with open(page, "r+b") as editor:
        before = page.stat().st_ino
        vault.session(4)
        assert "being written" in vault.reindex()["trouble"][0]
        assert page.stat().st_ino == before and not list((vault / ".signet/tmp").iterdir())
        editor.seek(0, os.SEEK_END)
        editor.write(b"My late words.\n")
    assert vault.reindex()["trouble"] == []
    assert "My late words." in vault.page() and "number 4" in vault.page()


def opened_in_the_moment_of_ours(monkeypatch: pytest.MonkeyPatch, page: Path) -> list[IO[bytes]]:
    """A save right before our swap, which is put back; in between an editor opens what stands there: our file."""
    real, calls = writing._rename, iter(range(100))
    editors: list[IO[bytes]] = []

    def rename(*given: Any) -> bool:
        call = next(calls)
        if call == 0:
            page.write_bytes(b"saved in between\n")
        if call == 1:
            editors.append(open(page, "ab", buffering=0))  # noqa: SIM115 - the test closes it
        return real(*given)

    monkeypatch.setattr(writing, "_rename", rename)
    return editors


def test_who_opened_our_file_in_the_moment_before_it_was_taken_back_loses_nothing(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = vault / "MEMORY.md"
    page.write_bytes(b"old\n")
    with monkeypatch.context() as patch:
        editors = opened_in_the_moment_of_ours(patch, page)
        assert writing.replace(str(vault.root), "MEMORY.md", b"ours\n", b"old\n").displaced == b"saved in between\n"
    (editor,) = editors
    editor.write(b"My late words.\n")
    (held,) = writing.list_displaced(str(vault.root), rest=0.0)
    assert held.raw is None  # it may go on writing
    editor.close()
    settle_aside(vault)
    vault.reindex()
    (kept,) = vault.root.glob("MEMORY.user-*.md")
    assert kept.read_bytes() == b"ours\nMy late words.\n" and "saved in between" in vault.page()
    assert not list((vault / ".signet/tmp").iterdir())


def settle_aside(vault: Vault) -> None:
    """What lies aside belongs to a process that has ended: one of this id cannot be."""
    for path in (vault / ".signet/tmp").iterdir():
        path.rename(path.with_name(f"4194305-{path.name.partition('-')[2]}"))


def test_a_save_that_a_killed_writer_had_displaced_is_kept(vault: Vault) -> None:
    """Of a page what people wrote, of a manifest all of it; and nothing where nobody had saved."""
    page, manifest = vault.page(), next(str(p.relative_to(vault.root)) for p in vault.memory.glob("*--manifest.md"))
    raw = (vault / manifest).read_text()
    killed_after_its_swap(vault, "MEMORY.md", "", page + "ours\n")
    vault.reindex()
    assert not list(vault.root.glob("*.user-*")) and not list((vault / ".signet/tmp").iterdir())
    killed_after_its_swap(vault, "MEMORY.md", f"My own words.\n{page}", page)
    killed_after_its_swap(vault, manifest, f"{raw}My other words.\n", raw)
    said = vault.reindex()
    one, other = sorted(vault.root.glob("*.user-*.md"), key=lambda path: path.name.startswith("MEMORY"), reverse=True)
    assert one.read_text().strip() == "My own words." and other.read_text().endswith("My other words.\n")
    assert not list((vault / ".signet/tmp").iterdir()) and said["problems"] == []
    seen = vault.root.stat().st_mtime_ns
    vault.reindex()
    assert vault.root.stat().st_mtime_ns == seen


def test_what_lies_aside_is_reached_by_a_removal(vault: Vault) -> None:
    """The page of before the removal, damaged so that all of it is kept; and one that somebody still has open."""
    word = "number 1 bounded"
    assert word in vault.page()
    page = vault.page()
    for saved in (page, page.replace("signet:end", "signet:END")):
        killed_after_its_swap(vault, "MEMORY.md", f"My own words.\n{saved}", vault.page())
    held = next(path for path in (vault / ".signet/tmp").iterdir() if word in path.read_text())
    session = next(path.name.split("--")[1] for path in vault.memory.glob("2026-03-28*--manifest.md"))
    with open(held, "ab"):
        vault.call("remove", session, "--reason", "asked for", "--yes", "--now", NOW)
        assert held.exists()  # it is pending
    vault.reindex()
    assert not list((vault / ".signet/tmp").iterdir())
    copies = [path.read_text() for path in vault.root.glob("MEMORY.user-*.md")]
    assert any("My own words." in copy for copy in copies)
    assert not any(word in text for text in [vault.page(), *copies])
    assert holding(vault, [word.encode()]) == []


def test_without_leases_a_displaced_file_rests_before_it_goes(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no system tells who has a file open, it is looked at again after a minute."""
    real = fcntl.fcntl

    def none(handle: int, command: int, given: int = 0) -> int:
        if command == getattr(fcntl, "F_SETLEASE", None):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return real(handle, command, given)

    monkeypatch.setattr(fcntl, "fcntl", none)
    page = vault / "MEMORY.md"
    page.write_bytes(b"old\n")
    with open(page, "ab", buffering=0) as editor:
        writing.replace(str(vault.root), "MEMORY.md", b"new\n", b"old\n")
        settle_aside(vault)
        (resting,) = (vault / ".signet/tmp").iterdir()
        writing.sweep(str(vault.root), rest=writing.REST)
        assert resting.exists() and writing.list_displaced(str(vault.root), rest=writing.REST) == []
        editor.write(b"My late words.\n")
    found = writing.list_displaced(str(vault.root), rest=0.0)
    assert [(held.path, held.raw) for held in found] == [("MEMORY.md", b"old\nMy late words.\n")]
    writing.replace(str(vault.root), "MEMORY.md", b"newer\n", b"new\n")
    settle_aside(vault)
    assert len(list((vault / ".signet/tmp").iterdir())) == 2
    writing.sweep(str(vault.root), rest=0.0)
    assert len(writing.list_displaced(str(vault.root), rest=0.0)) == len(list((vault / ".signet/tmp").iterdir())) == 1
    assert resting.name.endswith("-MEMORY.md.tmp")


@pytest.mark.parametrize("how", ["in place", "by rename", "not at all"])
def test_a_page_that_goes_leaves_what_was_saved_just_now(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """An empty page is taken out of its place before it is compared: what was saved since comes back."""
    page = vault / "page.md"
    page.write_bytes(b"ours\n")
    real = os.rename

    def rename(*given: Any, **named: Any) -> None:
        if how == "in place":
            page.write_bytes(b"mine\n")
        if how == "by rename":
            (vault / "page.swp").write_bytes(b"mine\n")
            os.replace(vault / "page.swp", page)
        real(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename)
        gone = writing.retract(str(vault.root), "page.md", b"ours\n")
    assert gone == (how == "not at all") == (not page.exists())
    assert gone or page.read_bytes() == b"mine\n"
    assert writing.retract(str(vault.root), "page.md", b"ours\n") is gone
    assert not list((vault / ".signet/tmp").iterdir())


# ── commands, machines and clocks beside each other ──


@pytest.mark.slow
def test_whatever_commands_run_at_once_the_end_is_that_of_one_pass(vault: Vault) -> None:
    """A pass, a rebuild and a pass of CI make one database at the same time, while sessions come in: none is lost."""
    for path in vault.db.parent.glob(f"{vault.db.name}*"):
        path.unlink()
    orders = (["reindex"], ["reindex", "--full"], ["reindex", "--index-only"])
    running = []
    for number, order in enumerate(orders, 4):
        vault.session(number)
        command = [sys.executable, "-m", "signet_sync", "--workspace", str(vault.root), *order, "--json"]
        environ = os.environ | {"PYTHONPATH": str(ROOT)}
        running.append(subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
    said = [process.communicate(timeout=300)[1] for process in running]
    assert [process.returncode for process in running] == [0] * len(orders), said
    document = vault.reindex()
    assert document["counts"]["indexed"] == 18 and vault.dump() == vault.dump_from_scratch()
    seen = tree(vault.root)
    vault.reindex()
    assert tree(vault.root) == seen


def test_an_answer_of_a_model_that_comes_after_the_removal_is_refused(vault: Vault) -> None:
    """The session is removed by another command while a model is asked about its next words."""
    end(vault, captured_at=moment(0))
    later = session_input({**WHO, "transcript": FIRST + "\n## User\n\nThe heliograph word.\n"}, now_us=NOW_US)

    def removing(words: object, **_: object) -> ModelDigest:
        answer = vault.call("remove", WHO["session_id"], "--reason", "asked for", "--yes", "--now", NOW)
        assert answer.code == 0, answer
        return ModelDigest(items=(Item("next", "Told by a model of the heliograph.", "agent", 1, 1, "model"),))

    with open_to_write(str(vault.root), Settings()) as workspace, pytest.raises(UsageError) as refused:
        sessions_operations.write(workspace, later, now_us=NOW_US, propose=removing)
    assert refused.value.code == "removed-session"
    vault.reindex()
    assert holding(vault, [b"heliograph", WHO["session_id"].encode()]) == [] and vault.hits("heliograph") == []


YEARS = ("1970", "2038", "2106")


def test_clocks_that_jump_change_what_is_shown_and_nothing_that_is_kept(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day to and fro, beyond 2038, a clock that was never set; the zone of the process counts for nothing."""
    page, rows = vault.page(), [row for row in vault.dump() if "--manifest.md" not in str(row)]
    shown = {}
    for now in (*(f"2026-03-{day}T12:00:00Z" for day in (30, 28)), *(f"{year}-02-07T06:28:16Z" for year in YEARS)):
        document = vault.reindex(now=now)
        assert document["problems"] == [] and document["counts"]["indexed"] == 9
        shown[now[:4]] = vault.page().count(" | session=")
    assert [shown[year] for year in YEARS] == [0] * len(YEARS)
    with monkeypatch.context() as machine:
        machine.setenv("TZ", "Pacific/Kiritimati")  # 14 hours ahead
        time.tzset()
        vault.reindex()
    time.tzset()
    assert vault.page() == page
    assert [row for row in vault.dump() if "--manifest.md" not in str(row)] == rows
