"""`backup create`, `list`, `restore`: everything that no file holds comes back, and nothing that was removed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import zlib
from pathlib import Path

import apsw
import crash_runner
import native_rows
import pytest
from workbench import NOW, Answer, Vault

from signet_sync.app import workspace

LATER = "2026-03-29T13:00:00.000Z"


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A filled vault, its state and a backup of it, made once: the tests work on copies."""
    place = tmp_path_factory.mktemp("made")
    with native_rows.elsewhere(place) as vault:
        native_rows.done(vault.call("backup", "create", str(place / "file.backup"), "--now", NOW))
    return vault.root, place / "state", place / "file.backup"


@pytest.fixture
def vault(_made: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """The same workspace on this test's machine, moved to another place."""
    root, states, _ = _made
    monkeypatch.setenv("HOME", str(root.parent / "home"))
    shutil.copytree(root, tmp_path / "vault", copy_function=shutil.copy2)
    shutil.copytree(states, tmp_path / "machine/state", copy_function=shutil.copy2)
    (workspace,) = (tmp_path / "machine/state").glob("*/workspace.json")
    workspace.write_text(f'{{"path": "{tmp_path / "vault"}"}}\n')
    return Vault(tmp_path / "vault")


@pytest.fixture
def file(_made: tuple[Path, Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copy2(_made[2], tmp_path / "file.backup"))


def restore(vault: Vault, *more: str | Path, code: int = 0, now: str = LATER) -> Answer:
    answer = vault.call("backup", "restore", *map(str, more), "--json", "--now", now)
    assert answer.code == code, answer
    return answer


def wipe(vault: Vault) -> None:
    shutil.rmtree(vault.state)


def remove(vault: Vault, name: str = native_rows.FIRST) -> None:
    native_rows.done(vault.call("remove", name, "--reason", "asked for", "--yes", "--now", LATER))


# ── a move ──


def test_copied_workspace_and_file_are_all_that_a_new_machine_needs(
    vault: Vault, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, page = native_rows.native(vault), vault.page()
    assert all(before.values()) or [t for t, rows in before.items() if not rows] == ["memory_artifact_tombstones"]
    shutil.move(vault.root, tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "machine")
    monkeypatch.setenv("SIGNET_STATE", str(tmp_path / "new/state"))
    moved = Vault(tmp_path / "elsewhere")
    answer = restore(moved, file, now=NOW).json
    assert native_rows.native(moved) == before
    assert answer["rows"] == {t: len(rows) for t, rows in before.items() if t != "marks"} | {"sealed_bytes": 0}
    assert answer["before"] is None, "nothing was there that could be kept"
    assert moved.page() == page
    assert restore(moved, file, now=NOW).json["total"] == 0, "a second time nothing is left to come"


def test_a_copied_workspace_without_the_file_says_what_is_not_here(
    vault: Vault, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line for line in vault.page().splitlines() if "^m-" in line]
    monkeypatch.setenv("SIGNET_STATE", str(tmp_path / "new/state"))
    missing = "of another machine, which are not here: signet-sync backup create FILE there"
    only_index = ("--no-hooks", "--no-service")
    assert missing in native_rows.done(vault.call("setup", "--yes", *only_index)).out
    (kept,) = vault.root.glob("MEMORY.user-*.md")
    assert kept.read_text().splitlines() == lines != [] and not any(line in vault.page() for line in lines)
    assert vault.reindex("--full")["trouble"] == [] and [*vault.root.glob("MEMORY.user-*.md")] == [kept]


def test_sealed_bytes_come_back_for_files_that_changed_or_went_meanwhile(vault: Vault, file: Path) -> None:
    wipe(vault)
    changed, gone = vault / native_rows.vault_path("summary", 1), vault / native_rows.vault_path("summary", 2)
    raw = changed.read_bytes(), gone.read_bytes()
    changed.write_bytes(raw[0] + b"forged\n")
    gone.unlink()
    restore(vault, file)
    native_rows.done(vault.call("violations", "restore", "--all", "--yes"))
    assert (changed.read_bytes(), gone.read_bytes()) == raw


# ── what is there ──


def test_rows_that_are_there_win_and_are_kept_first(vault: Vault, file: Path) -> None:
    lamp = native_rows.memory(native_rows.LAMP, kind="preference").id
    with vault.database(readonly=False) as database, database.transaction():
        database.execute("update memories set tags = '[\"mine\"]' where id = ?", (lamp,))
        database.execute("delete from node_telemetry")
    answer = restore(vault, file).json
    assert answer["rows"]["node_telemetry"] == 1 and answer["total"] == 1
    assert vault.rows("select tags from memories where id = ?", lamp) == [('["mine"]',)]
    with apsw.Connection(answer["before"]) as connection:
        assert connection.execute("select count(*) from node_telemetry").get == 0
    assert stat.S_IMODE(os.stat(answer["before"]).st_mode) == 0o600


def test_the_newest_backup_is_taken_where_none_is_named_and_any_by_its_name(vault: Vault) -> None:
    made = native_rows.done(vault.call("backup", "create", "--json", "--now", LATER)).json["path"]
    with vault.database(readonly=False) as database, database.transaction():
        database.execute("delete from node_telemetry")
    assert restore(vault).json["rows"]["node_telemetry"] == 1
    with vault.database(readonly=False) as database, database.transaction():
        database.execute("delete from node_telemetry")
    assert restore(vault, Path(made).stem, now="2026-03-29T14:00:00.000Z").json["rows"]["node_telemetry"] == 1
    error = restore(vault, "native-1999.db", code=2).json["error"]
    assert error["code"] == "no-backup" and "backup list" in error["hint"]


# ── what was removed ──


def test_nothing_of_a_session_that_was_removed_since_comes_back(vault: Vault, file: Path, tmp_path: Path) -> None:
    remove(vault)
    before = native_rows.native(vault)
    answer = restore(vault, file).json
    assert answer["left_out"]["removed_sessions"] == 1 and answer["total"] == 0, answer
    assert native_rows.native(vault) == before
    wipe(vault)
    restore(vault, file)
    after = native_rows.native(vault)
    for table in ("seals", "memories", "memory_promotions", "flow_results"):
        assert after[table] == before[table], table
    assert [row[0] for row in after["recall_events"]] == ["default"] * 3 + ["scout"]
    file.unlink()
    for word in ("zqxcanary", "opals", "number1x", native_rows.FIRST):
        assert native_rows.holding(tmp_path, word) == []


def test_a_memory_that_was_forgotten_since_stays_forgotten(vault: Vault, file: Path, tmp_path: Path) -> None:
    native_rows.done(vault.call("forget", native_rows.memory(native_rows.PRIVATE).id, "--now", LATER))
    answer = restore(vault, file).json
    assert answer["left_out"]["forgotten_memories"] == 1 and answer["total"] == 0
    file.unlink()
    assert native_rows.holding(tmp_path, "moths") == []


def test_a_removal_in_the_backup_takes_files_away_only_where_somebody_agrees(vault: Vault, tmp_path: Path) -> None:
    old = {path.name: path.read_bytes() for path in vault.memory.glob("*.md")}
    remove(vault)
    newer = tmp_path / "newer.backup"
    native_rows.done(vault.call("backup", "create", str(newer), "--now", LATER))
    wipe(vault)
    shutil.rmtree(vault.memory / "tombstones")
    vault.put(old)  # an older copy of the vault
    answer = vault.call("backup", "restore", str(newer), "--now", LATER)
    assert answer.code == 2 and "--yes" in answer.err and native_rows.vault_path("summary", 1) in answer.err
    assert (vault / native_rows.vault_path("summary", 1)).exists()
    assert len(restore(vault, newer, "--yes").json["removed_files"]) == 3
    assert not (vault / native_rows.vault_path("summary", 1)).exists()
    assert native_rows.holding(vault.state, "number1x") == []


def test_a_removal_that_was_undone_since_removes_nothing(vault: Vault, tmp_path: Path) -> None:
    old = {path.name: path.read_bytes() for path in vault.memory.glob("*.md")}
    remove(vault)
    between = tmp_path / "between.backup"
    native_rows.done(vault.call("backup", "create", str(between), "--now", LATER))
    native_rows.done(vault.call("remove", native_rows.FIRST, "--undo", "--yes", "--now", LATER))
    vault.put(old)
    vault.reindex(now=LATER)
    answer = restore(vault, between).json
    assert answer["left_out"]["undone_removals"] == 1 and answer["removed_files"] == []
    assert (vault / native_rows.vault_path("summary", 1)).exists()


def test_a_lost_database_still_knows_what_was_forgotten(vault: Vault, file: Path) -> None:
    native_rows.done(vault.call("forget", native_rows.memory(native_rows.PRIVATE).id, "--now", LATER))
    vault.db.unlink()
    answer = restore(vault, file).json
    assert answer["left_out"]["forgotten_memories"] == 1 and answer["rows"]["memories"] == 0


# ── what is refused ──


def resealed(path: Path) -> None:
    """Gives a backup that somebody changed the checksum of what it is now."""
    raw = path.read_bytes()
    path.write_bytes(raw[:60] + zlib.crc32(raw[:60] + bytes(4) + raw[64:]).to_bytes(4, "big") + raw[64:])


def test_rows_that_no_signet_sync_writes_are_told_and_left(vault: Vault, file: Path) -> None:
    with apsw.Connection(str(file)) as connection:
        connection.execute("update node_telemetry set agent_id = '../../up' where rowid = 1")
        connection.execute("update dream_sweeps set sweep_id = 'soon'")
        connection.execute("insert into forgotten_memories values('../x'), (null)")
        connection.execute("insert into acceptances values('memory/x.md', 0, ?, 'y')", (NOW,))
        accepted = [(native_rows.vault_path("summary", 1), x) for x in (b"y", "password=hunter2hunter2")]
        connection.executemany("insert into acceptances values(?, 0, '2026-03-28T12:00:00Z', ?)", accepted)
        connection.execute("update about set value = x'ff' where key = 'made_at'")
    resealed(file)
    wipe(vault)
    answer = vault.call("backup", "restore", str(file), "--now", LATER)
    assert answer.code == 0 and "1 invalid row of node_telemetry left out" in answer.err
    marks = vault.rows("select * from forgotten_memories") + vault.rows("select * from acceptances order by path")
    assert len(marks) == 3 and "memory/x.md" not in str(marks)
    assert "hunter2" not in str(marks) and "REDACTED" in str(marks)
    shutil.copy(file, vault.state / "backups/native-20200101.db")
    assert "native-20200101.db" in native_rows.done(vault.call("backup", "list")).out
    assert vault.rows("select count(*) from node_telemetry") == [(0,)]
    assert vault.rows("select count(*) from dream_sweeps") == [(0,)]


def test_what_is_no_sound_backup_is_refused_and_nothing_changes(vault: Vault, file: Path, tmp_path: Path) -> None:
    before, database = native_rows.native(vault), tmp_path / "other.db"
    with sqlite3.connect(database) as connection:
        connection.execute("pragma application_id = 7")
        connection.execute("create table t(x)")
    connection.close()
    damaged, cut, text = (tmp_path / name for name in ("damaged", "cut", "text"))
    raw = file.read_bytes()
    place = raw.index(b"trims")
    damaged.write_bytes(raw[:place] + b"T" + raw[place + 1 :])
    cut.write_bytes(raw[: len(raw) // 2])
    text.write_text("Dear diary,\n" * 500)
    for path, said in (
        (damaged, "damaged"),
        (cut, "damaged"),
        (text, "damaged, or not a backup"),
        (database, "another program"),
        (vault.db, "a signet-sync database"),
    ):
        error = restore(vault, path, code=3).json["error"]
        assert said in error["message"] and error["path"] == str(path) and error["hint"], error
    assert native_rows.native(vault) == before
    assert vault.call("status", "--json").code == 0 and not list(vault.state.glob("*.suspect"))


def test_a_backup_is_written_nowhere_where_it_would_harm_or_overwrite(vault: Vault, tmp_path: Path) -> None:
    diary, link = tmp_path / "diary.txt", tmp_path / "link"
    diary.write_text("Dear diary")
    link.symlink_to(diary)
    (tmp_path / "into").symlink_to(vault.memory)
    for target, said in (
        (vault.memory / "x.backup", "inside the workspace"),
        (tmp_path / "into/x.backup", "inside the workspace"),
        (vault.state / "x.backup", "inside the state folder"),
        (diary, "another file is there"),
        (link, "links are not followed"),
        (tmp_path, "a folder"),
        (tmp_path / "none/x", "does not exist"),
    ):
        answer = vault.call("backup", "create", str(target), "--json")
        assert answer.code == 2 and said in answer.json["error"]["message"], answer
    assert diary.read_text() == "Dear diary" and link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["diary.txt", "into", "link", "machine", "vault"]


# ── looking ──


@pytest.mark.parametrize("every", [131, pytest.param(1, marks=pytest.mark.slow)])
def test_what_two_state_folders_of_a_workspace_acknowledged_is_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """A copy that cannot be written keeps its state under its path; then its original goes, and it is the workspace.

    Killed at any step, the next command finishes.
    """
    original, copy = Vault(tmp_path / "original"), Vault(tmp_path / "copy")
    original.session()
    original.reindex()
    original.call("remember", "The lamp burns colza oil in winter.", "--now", NOW)
    shutil.copytree(original.root, copy.root, dirs_exist_ok=True)

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(workspace.writing, "prepare", refuse)
        native_rows.done(copy.call("remember", "The wick is trimmed at dusk.", "--now", NOW))
    kept, states = copy.state, Path(os.environ["SIGNET_STATE"])
    assert kept.name.startswith("path-")
    (kept / "spool").mkdir(exist_ok=True)
    (kept / "spool/1-a-job.json").write_text("{}")
    shutil.rmtree(original.root)
    for place in (copy.root, states):
        shutil.copytree(place, tmp_path / "kept" / place.name)

    def killed(step: int) -> int:
        os.chdir(tmp_path)
        crash_runner.arm(step)
        return crash_runner.command(str(copy.root), "remember", "The lens is cleaned with chalk.", "--now", NOW)

    step, code = 1, None
    while code != 0:
        for place in (copy.root, states):
            shutil.rmtree(place)
            shutil.copytree(tmp_path / "kept" / place.name, place)
        code = crash_runner.forked(killed, step)
        assert code in (0, crash_runner.KILLED), (step, code)
        native_rows.done(copy.call("remember", "The lens is cleaned with chalk.", "--now", NOW))
        assert [row[0] for row in copy.rows("select content from memories order by content")] == [
            "The lamp burns colza oil in winter.", "The lens is cleaned with chalk.", "The wick is trimmed at dusk.",
        ], step  # fmt: skip
        left = sorted(path.name for path in states.iterdir() if path.is_dir())
        assert left == [copy.state.name] and len(left[0]) == 36 and [*copy.state.rglob("*a-job*")], step
        step += every
