"""Locks, leases and editors against real processes: one holder, no write by a fenced one, no lost save."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
from invariants import holding
from killed_swap import killed_after_its_swap
from session_inputs import FIRST, WHO, end, moment
from workbench import NOW, ROOT, Vault, tree

from signet_sync.app.workspace import opened
from signet_sync.digest.outcome import Item, ModelDigest
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.timestamps import parse_instant
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import session_input
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir, writing

NOW_US = parse_instant(NOW) or 0


def raced(kind: str, place: Path, count: int, *more: str) -> dict[str, Any]:
    """Runs a race in a process of its own; what it counted."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("races.py")), kind, str(place), str(count), *more],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")])},
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault").indexed(1, 2, 3)


# ── who holds a lock ──


# Rounds in every run and among the slow ones; what is counted then. Of eight agents that start at once one runs.
# Whoever waits for a killed agent runs. Nobody is inside a lock twice: the agent's, the workspace's, a session's, the
# history's, the dream's, the spool's, four processes at each; of the first two not even where somebody deletes the lock
# files all the time (the others guard what is compared and swapped anyway).
RACES: dict[str, tuple[int, int, Callable[[int], dict[str, int]]]] = {
    "starts": (8, 1000, lambda rounds: {"rounds": rounds, "with one holder": rounds}),
    "takeovers": (3, 200, lambda rounds: {"taken": rounds}),
    "turns": (4, 500, lambda _: {"locks": 6, "missed": 0}),
    "vandal": (4, 300, lambda _: {"locks": 2, "missed": 0}),
}


@pytest.mark.parametrize("slow", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize("kind", RACES)
def test_a_lock_has_one_holder_whoever_races_for_it(tmp_path: Path, kind: str, slow: bool) -> None:
    *rounds, counts = RACES[kind]
    found = raced(kind, tmp_path, rounds[slow])
    assert counts(rounds[slow]).items() <= found.items()


def test_a_second_agent_is_sent_away_before_it_looks_at_the_database(vault: Vault, tmp_path: Path) -> None:
    """In the place of its database stands what no agent opens without putting it aside and saying so."""
    place = tmp_path / "beside"
    place.mkdir()
    (place / "no.db").write_bytes(b"This is no database.\n" * 100)
    before = tree(vault.root), tree(place)
    with state_dir.run_lock(state_dir.locate(str(vault.root))):
        answer = vault.spawn("--db", str(place / "no.db"), "run")
    assert answer.code == 4 and "no.db" not in answer.err, answer
    assert (tree(vault.root), tree(place)) == before


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
    with state_dir.history_lock(folder, 1.0):
        assert gone and path.exists()
        with pytest.raises(WorkspaceError), state_dir.history_lock(folder, 0.0):
            pass


# ── who slept past a lease ──


@pytest.mark.parametrize("races", [4, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_holder_that_wakes_up_too_late_writes_nothing(vault: Vault, races: int) -> None:
    """Stopped at each step between taking the lease and giving it back; either it is fenced, or nobody can take it."""
    found = raced("fences", vault.root, races)
    assert found["writes"] == 0 and found["fenced"] >= races // 4
    assert found["fenced"] + found.get("nobody could take it", 0) == races


# ── who saves while we write ──


@pytest.mark.parametrize("what", ["MEMORY.md", "a manifest"])
@pytest.mark.parametrize("saves", [60, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_save_of_an_editor_is_lost(vault: Vault, what: str, saves: int) -> None:
    """In six ways of saving, against writes of ours without a pause.

    A save is finished when the editor has closed the file (or given the new one its name). It is lost if in the
    end it is neither in the file, nor in a file that waits aside to become a copy, nor in a copy. An editor that
    goes on from what it reads there supersedes its own saves, and nobody else does.
    """
    (manifest,) = (path.name for path in vault.memory.glob("2026-03-28*--manifest.md"))
    found = raced("edits", vault.root, saves, what if what == "MEMORY.md" else f"memory/{manifest}")
    assert found["lost"] == 0 and found["writes of ours"] and found["writes that gave way"]
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
        (resting,) = (vault / ".signet/tmp").iterdir()
        settle_aside(vault)
        assert writing.sweep(str(vault.root)) == [] and writing.list_displaced(str(vault.root)) == []
        editor.write(b"My late words.\n")
    found = writing.list_displaced(str(vault.root), rest=0.0)
    assert [(held.path, held.raw) for held in found] == [("MEMORY.md", b"old\nMy late words.\n")]
    writing.replace(str(vault.root), "MEMORY.md", b"newer\n", b"new\n")
    settle_aside(vault)
    assert (
        len(writing.sweep(str(vault.root), rest=0.0)) == 1
        and len(writing.list_displaced(str(vault.root), rest=0.0)) == 1
    )
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
    """A pass, a rebuild and a pass of CI at the same time, while sessions come in: none fails, none is lost."""
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

    with opened(str(vault.root), Settings()) as workspace, pytest.raises(UsageError) as refused:
        sessions_operations.end(workspace, later, now_us=NOW_US, propose=removing)
    assert refused.value.code == "removed-session"
    vault.reindex()
    assert holding(vault, [b"heliograph", WHO["session_id"].encode()]) == [] and vault.hits("heliograph") == []


YEARS = ("1970", "2038", "2106")


def test_clocks_that_jump_change_what_is_shown_and_nothing_that_is_kept(vault: Vault) -> None:
    """A day to and fro, beyond 2038, a clock that was never set; the zone of the process counts for nothing."""
    page, rows = vault.page(), [row for row in vault.dump() if "--manifest.md" not in str(row)]
    shown = {}
    for now in (*(f"2026-03-{day}T12:00:00Z" for day in (30, 28)), *(f"{year}-02-07T06:28:16Z" for year in YEARS)):
        document = vault.reindex(now=now)
        assert document["problems"] == [] and document["counts"]["indexed"] == 9
        shown[now[:4]] = vault.page().count(" | session=")
    assert [shown[year] for year in YEARS] == [0] * len(YEARS)
    answer = vault.spawn("reindex", "--now", NOW, environ={"TZ": "Pacific/Kiritimati"})  # 14 hours ahead
    assert answer.code == 0 and vault.page() == page
    assert [row for row in vault.dump() if "--manifest.md" not in str(row)] == rows
