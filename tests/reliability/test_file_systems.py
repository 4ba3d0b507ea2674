"""File systems that refuse, run out, lie or change under a pass: no row is dropped for it, no file is harmed."""

from __future__ import annotations

import errno
import os

import pytest
from crash_runner import Steps, forked
from workbench import NOW, Vault, contents, path_of

from signet_sync.app.workspace import open_to_write
from signet_sync.formats.timestamps import parse_instant
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import session_input
from signet_sync.settings.model import Settings
from signet_sync.storage import writing

NOW_US = parse_instant(NOW) or 0
ENDING = {
    "session_id": "5e551009-0000-4000-8000-000000000009",
    "captured_at": "2026-03-29T11:30:00.000Z",
    "project": "/home/me/lantern",
    "transcript": "## User\n\nWhy does the queue of lantern never drain?\n",
    "summary": "# Queue\n\n- lantern bounds the retry loop of src/queue.py at five attempts.\n",
}


@pytest.fixture
def vault(tmp_path):
    return Vault(tmp_path / "vault").indexed(1, 2, 3)


def end(vault: Vault, **given: object) -> dict[str, object]:
    with open_to_write(str(vault.root), Settings()) as workspace:
        return sessions_operations.write(workspace, session_input({**ENDING, **given}, now_us=NOW_US), now_us=NOW_US)


def still_whole(vault: Vault, rows: list[tuple[object, ...]]) -> None:
    """Nothing is gone, and a pass finds nothing wrong."""
    assert vault.dump() == rows and vault.hits("number1x")
    assert vault.reindex()["problems"] == [] and vault.dump() == rows


# ── B2: the folder that could not be synced ──


def test_files_that_a_dead_process_published_are_synced_before_its_ending_is_answered(vault, monkeypatch):
    """Killed between the last link and the sync of the folder: the names are there, and nobody knows for how long.

    No page shows a session of /tmp, so nothing else of it is written into the folder that would sync it.
    """
    memory, real, left = os.stat(vault.memory).st_ino, os.fsync, [3]

    def dying(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino == memory:
            left[0] -= 1
            if not left[0]:
                os._exit(137)
        real(descriptor)

    def work() -> int:
        os.fsync = dying
        end(vault, project="/tmp/lantern")
        return 0

    assert forked(work) == 137
    assert len(list(vault.memory.glob("2026-03-29T11-30*"))) == 3
    answers = []

    def fsync(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino == memory:
            answers.append(vault.rows("select count(*) from flow_results"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    vault.reindex()
    assert answers[:1] == [[(0,)]] and vault.rows("select count(*) from flow_results") == [(1,)]


# ── B4, B5: no room, or no writing any more ──


@pytest.mark.parametrize("code", [errno.EROFS, errno.EDQUOT, errno.ENOSPC])
def test_a_vault_that_cannot_be_written_any_more_is_told_and_stays_as_it_is(vault, code):
    rows, before = vault.dump(), contents(vault.root)
    (vault / path_of("manifest")).unlink()
    vault.session(4)
    given = contents(vault.root)
    real = os.open

    def refusing(path, flags, *rest, **named):
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            where = os.readlink(f"/proc/self/fd/{named['dir_fd']}") if named.get("dir_fd") is not None else str(path)
            if where.startswith(str(vault.root)):
                raise OSError(code, os.strerror(code))
        return real(path, flags, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", refusing)
        answer = vault.call("reindex", "--json", "--now", NOW)
    assert answer.code in (0, 1, 3) and "Traceback" not in answer.err
    assert os.strerror(code).lower() in (answer.out + answer.err).lower()
    assert contents(vault.root) == given and vault.hits("number1x") and vault.hits("number3x")
    assert vault.reindex()["problems"] == []
    assert {path for path in before if path.startswith("memory/")} <= contents(vault.root).keys()
    assert len(vault.dump()) > len(rows) and "step number 4" in vault.page()


# ── B8, B9: descriptors run out, calls fail for a moment ──


CALLS = {"open": os.open, "stat": os.stat, "scandir": os.scandir, "read": os.read, "fstat": os.fstat}


def failing_once(patch: pytest.MonkeyPatch, root: str, name: str, nth: int, code: int) -> Steps:
    """The n-th of these calls that concerns the vault fails; counts those that were met."""

    def concerns(*given: object, **named: object) -> bool:
        where = named.get("dir_fd") if named.get("dir_fd") is not None else given[0] if given else None
        return str(os.readlink(f"/proc/self/fd/{where}") if isinstance(where, int) else where).startswith(root)

    steps = Steps(nth, code)
    patch.setattr(os, name, CALLS[name])  # put back afterwards
    steps.wrap(os, name, concerns=concerns)
    return steps


@pytest.mark.parametrize("every", [29, pytest.param(1, marks=pytest.mark.slow)], ids=["few", "all"])
@pytest.mark.parametrize("code", [errno.ESTALE, errno.EMFILE], ids=errno.errorcode.get)
def test_a_call_that_fails_for_a_moment_drops_no_row(vault, every, code):
    """ESTALE of a network share, no descriptors for a moment: never a file that is gone."""
    rows, count = vault.dump(), 0
    artifacts = {path: digest for path, digest in contents(vault.memory).items() if "manifest" not in path}
    for name in CALLS:
        nth = 1
        while True:
            with pytest.MonkeyPatch.context() as patch:
                met = failing_once(patch, str(vault.root), name, nth, code)
                answer = vault.call("reindex", "--json", "--now", NOW)
            assert answer.code in (0, 2, 3, 5), (name, nth, answer)
            assert vault.dump() == rows, (name, nth)
            count += 1
            if met.count < nth:
                break
            nth += every
    still_whole(vault, rows)
    assert {p: d for p, d in contents(vault.memory).items() if "manifest" not in p} == artifacts


# ── B11: a file that does not hold still ──


@pytest.mark.parametrize("moves", [1, -1], ids=["grows", "shrinks"])
def test_a_sealed_file_that_moves_while_it_is_read_is_not_blamed_and_looked_at_again(vault, moves):
    """One pass by hand, which has no patience: it says nothing of such a file rather than something untrue."""
    path, rows = vault / path_of("summary"), vault.dump()
    raw, real = path.read_bytes(), os.read
    path.write_bytes(raw + bytes(100))

    def read(descriptor, size):
        data = real(descriptor, size)
        if os.fstat(descriptor).st_ino == path.stat().st_ino:
            os.truncate(path, path.stat().st_size + moves)
        return data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "read", read)
        assert vault.reindex()["problems"] == []
    assert vault.dump() == rows and path_of("summary") in vault.hits("number1x")
    assert vault.problems(vault.reindex()) == {path_of("summary"): ("violation", "mutated")}
    path.write_bytes(raw)
    assert vault.reindex()["problems"] == [] and vault.dump() == rows


# ── B30: neither hard links nor a rename that refuses ──


def test_on_a_file_system_with_plain_renames_alone_a_kill_leaves_no_part_of_a_file(vault):
    """Its names are claimed by empty files; whoever dies over one leaves that, and the next pass goes on."""

    def bare(last: int) -> int:
        """An ending there, killed at the last of so many plain renames into memory/."""
        real, left, memory = os.replace, [last], os.stat(vault.memory).st_ino

        def linked(*_: object, **__: object) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        def renamed(source: str, name: str, **given: int) -> None:
            left[0] -= os.fstat(given["dst_dir_fd"]).st_ino == memory if "dst_dir_fd" in given else 0
            if not left[0]:
                os._exit(137)
            real(source, name, **given)

        os.link, os.replace = linked, renamed
        writing._renameat2 = lambda: None
        end(vault)
        return 0

    for last in (1, 2):
        assert forked(lambda last=last: bare(last)) == 137
        standing = {path.name: path.read_bytes() for path in vault.memory.glob("2026-03-29T11-30*")}
        assert sum(not raw for raw in standing.values()) == 1, standing.keys()
        assert all(raw.endswith(b"\n") for raw in standing.values() if raw)
    vault.reindex()
    assert len(vault.hits("never drain")) == 2  # of the transcript and the summary
    assert end(vault)["idempotent_replay"]
    assert vault.call("check", "--now", NOW).code == 0


# ── B28: times that lie ──


def test_words_that_no_sign_tells_of_are_seen_where_content_is_read_anew(vault):
    path = vault / path_of("summary")
    path.write_bytes(path.read_bytes().replace(b"number1x", b"numberXx"))
    status = path.stat()
    with vault.database(readonly=False) as database:
        database.execute(
            "update files set size = ?, mtime_ns = ?, ctime_ns = ?, inode = ? where path = ?",
            (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, path_of("summary")),
        )
    assert vault.reindex()["problems"] == []
    vault.reindex("--full")
    assert vault.problems(vault.reindex()) == {path_of("summary"): ("violation", "mutated")}
