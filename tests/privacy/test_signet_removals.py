"""Removals both ways beside Signet: what it removed goes here, what we removed stays gone, a bad database halts."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import artifacts_fixture as made
import pytest
from signet_writer import Signet
from workbench import NOW, Vault, cast, numbered, tree

from signet_sync.app.workspace import open_to_write
from signet_sync.formats.timestamps import parse_instant
from signet_sync.settings.model import Settings
from signet_sync.storage.database import foreign
from signet_sync.sync.engine import run_pass
from signet_sync.sync.workspace import Request

ID = numbered(1)["session_id"]
TOKEN = made.token_for(session_id=ID)
WORDS = (b"number1x", b"step number 1 ", ID.encode())
MANY = 40


def token(number: int) -> str:
    return made.token_for(session_id=numbered(number)["session_id"])


def of_two_sessions(vault: Vault) -> None:
    for number in (1, 2):
        vault.session(number)
    vault.reindex()


def of_many(vault: Vault) -> None:
    for number in range(1, MANY + 1):
        # Signet's token is that of the id, the names of every second session have that of its key.
        who = {"session_id": f"5e5510{number:02d}-0000-4000-8000-{number:012d}"}
        who |= {"session_key": f"key {number}"} if number % 2 else {}
        vault.put(dict([made.summary(**who, body=f"# Session\n\nThe word is many{number}x.\n")]))
    vault.reindex()


@pytest.fixture(scope="module")
def mould(tmp_path_factory):
    return cast(tmp_path_factory.mktemp("mould"), of_two_sessions)


@pytest.fixture(scope="module")
def mould_of_many(tmp_path_factory):
    return cast(tmp_path_factory.mktemp("many"), of_many)


@pytest.fixture
def vault(mould, tmp_path):
    return mould(tmp_path)


@pytest.fixture
def many(mould_of_many, tmp_path):
    return mould_of_many(tmp_path)


def stone(vault: Vault, of: str = TOKEN) -> Path:
    return vault / f"memory/tombstones/default--{of}.md"


def ours(vault: Vault) -> list[Path]:
    """Every file that we write: all but Signet's own."""
    found = [
        Path(where) / name for top in (vault.root, vault.state) for where, _, names in os.walk(top) for name in names
    ]
    return [path for path in found if not path.name.startswith(("memories.db", "MEMORY.backup-"))]


def is_gone(vault: Vault) -> None:
    """No word of the session is in a file that we write, and no page shows it; the other session is as it was."""
    for path in ours(vault):
        raw = path.read_bytes()
        allowed = path == stone(vault)
        assert allowed or not [word for word in WORDS if word in raw], path
    assert not list(vault.memory.glob(f"*{TOKEN}--*.md"))
    assert "number 2 bounded" in vault.page() and "vanished" not in vault.page() and "[!warning]" not in vault.page()
    assert not vault.hits("number1x") and vault.hits("number2x")


def test_what_signet_removed_is_removed_here_and_never_restored(vault):
    signet = Signet(vault.root)
    signet.remove(TOKEN)
    assert vault.call("violations", "restore", "--all", "--yes", "--now", NOW).code == 0
    is_gone(vault)
    assert b"operator privacy removal" in stone(vault).read_bytes()
    before = tree(vault.root)
    vault.reindex()
    assert tree(vault.root) == before  # nothing is written beside its database either


def test_a_pass_over_what_is_gone_reads_them_too(vault):
    """Else MEMORY.md would warn of vanished files until the next full pass."""
    paths = frozenset(str(path.relative_to(vault.root)) for path in vault.memory.glob(f"*{TOKEN}--*.md"))
    Signet(vault.root).remove(TOKEN)
    with open_to_write(str(vault.root), Settings()) as workspace:
        run_pass(workspace, Request(now_us=parse_instant(NOW) or 0, paths=paths))
    is_gone(vault)


def test_files_that_signet_left_and_those_of_its_other_token_rule_go_too(vault):
    """Signet leaves what its own index refuses; its token follows the id, ours the key."""
    names = dict([made.summary(**numbered(3), session_key="claude-code:3"), made.manifest(session_key="claude-code:3",
                 session_id=numbered(3)["session_id"], captured_at=numbered(3)["captured_at"])])  # fmt: skip
    vault.put(names)
    vault.reindex()
    assert vault.hits("number3x")
    Signet(vault.root).record(token(3))
    vault.reindex()
    assert not vault.hits("number3x") and not any((vault.memory / name).exists() for name in names)
    assert b"number3x" not in b"".join(path.read_bytes() for path in ours(vault))


def test_an_undo_here_outlives_signets_row(vault):
    signet = Signet(vault.root)
    signet.remove(TOKEN)
    vault.reindex()
    assert vault.call("remove", ID, "--undo", "--json").code == 0
    vault.session(1)
    for _ in range(2):
        vault.reindex()
        assert vault.hits("number1x") and not stone(vault).exists()
    signet.record(TOKEN, at="2026-03-30T11:30:00.000Z")  # removed once more
    vault.reindex(now="2026-03-31T11:30:00.000Z")
    assert not vault.hits("number1x")


def test_a_narrower_tombstone_of_ours_is_widened(tmp_path):
    vault = Vault(tmp_path / "vault")
    for number in (1, 2):
        vault.session(number, session_key="agent:main:main")
    vault.reindex()
    of = made.token_for(session_key="agent:main:main")
    assert vault.call("remove", ID, "--reason", "asked for", "--yes", "--json").code == 0
    assert vault.hits("number2x")
    Signet(vault.root).record(of)
    vault.reindex()
    assert not vault.hits("number2x") and b"session_ids" not in stone(vault, of).read_bytes()


@pytest.mark.parametrize(("removed", "halts"), [(20, False), (21, True)])
def test_more_than_half_at_once_halts_until_a_person_accepts_it(many, removed, halts):
    """Of forty sessions; the minimum is twenty."""
    signet = Signet(many.root)
    tokens = [made.token_for(session_id=f"5e5510{n:02d}-0000-4000-8000-{n:012d}") for n in range(1, removed + 1)]
    signet.record(*tokens)
    document = many.reindex(code=5 if halts else 0)
    assert bool(document["halted"]) is halts
    if halts:
        assert document["halted"]["message"] == "Signet's database says that 21 of 40 sessions were removed"
        assert "move it away" in document["halted"]["hint"] and document["halted"]["would_remove"] == 42
        assert many.hits("many1x") and not (many / "memory/tombstones").exists()
        assert many.reindex(code=5)["halted"]
        signet.place.rename(many.root.parent / "away.db")
        many.reindex()  # without that database the passes go on
        (many.root.parent / "away.db").rename(signet.place)
        assert many.reindex("--accept-removals")["halted"] is None
    assert len(list(many.memory.glob("*--summary.md"))) == MANY - removed
    assert not many.hits("many1x") and many.hits("many40x")


def reported(vault: Vault) -> list[str]:
    return [line for line in vault.reindex()["trouble"] if "Signet" in line]


def test_a_damaged_or_locked_database_is_reported_once_and_halts_nothing(vault, monkeypatch):
    monkeypatch.setattr(foreign, "BUSY_MS", 20)
    signet = Signet(vault.root)
    whole = signet.place.read_bytes()
    signet.place.write_bytes(b"SQLite format 3\0" + b"\xff" * 9000)
    assert "damaged" in reported(vault)[0]
    assert reported(vault) == []  # once
    assert "damaged" in str(
        [f for f in vault.call("doctor", "--json").json["findings"] if f["name"] == "signet-database"]
    )
    signet.place.write_bytes(whole)
    assert reported(vault) == []
    with signet.rows(wal=False) as writer:
        writer.execute("begin exclusive")
        assert "locked" in reported(vault)[0]
        assert vault.hits("number1x")
        writer.execute("rollback")
    signet.remove(TOKEN)
    vault.reindex()
    is_gone(vault)


def test_rows_are_data(vault):
    """What is no tombstone is left out and counted; a reason passes the sanitizer; paths are only names."""
    signet = Signet(vault.root)
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    rows = [
        ("default", "../../escape", NOW, "x", "[]"),
        ("../up", token(2), NOW, "x", "[]"),
        (b"\xff\xfe", token(2), NOW, "x", "[]"),
        ("default", None, NOW, "x", "[]"),
        ("default", TOKEN, "no time", f"because of {secret}\x00\x1b", "[" * 50_000),
    ]
    with apsw.Connection(str(signet.place)) as connection:
        connection.execute("drop table memory_artifact_tombstones")
        connection.execute(
            "create table memory_artifact_tombstones(agent_id, session_token, removed_at, reason, removed_paths)"
        )
        connection.executemany("insert into memory_artifact_tombstones values(?, ?, ?, ?, ?)", rows)
    assert "4 tombstones" in reported(vault)[0]
    assert reported(vault) == []
    assert not vault.hits("number1x") and vault.hits("number2x")
    raw = stone(vault).read_bytes()
    assert secret.encode() not in raw and b"[REDACTED:" in raw and b"1970-01-01" in raw
    assert [path.name for path in (vault / "memory/tombstones").iterdir()] == [stone(vault).name]
