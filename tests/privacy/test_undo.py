"""`remove --undo`: a removal is lifted here and on every machine, whatever is killed, lost or comes late."""

from __future__ import annotations

import os
import shutil

import artifacts_fixture as made
import pytest
from workbench import NOW, Vault, cast, numbered, tree

from signet_sync.formats.artifact import Tombstone
from signet_sync.sync import tombstones as tombstones_files

ID = numbered(1)["session_id"]
TOKEN = made.token_for(session_id=ID)
WORD = "number1x"
STONE = {"kind": "tombstone", "agent_id": "default", "session_token": TOKEN, "removed_at": NOW, "reason": "r"}


def of_a_removed_session(vault):
    for number in (1, 2):
        vault.session(number)
    vault.reindex()
    remove(vault)


@pytest.fixture(scope="module")
def mould(tmp_path_factory):
    return cast(tmp_path_factory.mktemp("mould"), of_a_removed_session)


@pytest.fixture
def vault(mould, tmp_path):
    """Two sessions, the first of which is removed."""
    return mould(tmp_path)


def remove(vault, now=NOW):
    answer = vault.call("remove", ID, "--reason", "asked for", "--yes", "--json", "--now", now)
    assert answer.code == 0, answer


def undo(vault, name=ID, *more):
    answer = vault.call("remove", name, "--undo", "--json", *more)
    assert answer.code == 0, answer
    return answer.json


def stone(vault):
    return vault / f"memory/tombstones/default--{TOKEN}.md"


def came_back(vault):
    """Puts the files of the session into the vault again; whether a pass leaves them there and shows them."""
    vault.session(1)
    vault.reindex()
    found = bool(vault.hits(WORD))
    assert found == ("step number 1 " in vault.page()) == any(vault.memory.glob(f"*{TOKEN}--summary.md"))
    return found


def test_what_was_lifted_comes_back_and_can_be_removed_again(vault):
    for _ in range(2):
        told = undo(vault)
        assert told["lifted"] and told["session_token"] == TOKEN and len(told["removed_paths"]) == 3
        assert came_back(vault)
        remove(vault)  # at the very same instant
        assert not came_back(vault)


def test_who_did_not_hear_the_answer_asks_again_and_gets_the_same(vault):
    told = undo(vault)
    before = tree(vault.root)
    assert undo(vault) == undo(vault, TOKEN) == told and tree(vault.root) == before
    vault.reindex()
    assert undo(vault) == told
    assert came_back(vault)
    remove(vault)
    undo(vault)
    assert not stone(vault).exists()


def test_a_path_or_the_beginning_of_a_name_names_the_session(vault):
    assert vault.call("remove", TOKEN[:5], "--undo").code == 2
    for name in (f"memory/{made.summary(**numbered(1))[0]}", TOKEN[:6], ID[:8], ID[:11]):
        assert undo(vault, name, "--dry-run")["session_token"] == TOKEN, name
    assert undo(vault, TOKEN[:6])["lifted"]


def test_a_backup_of_the_time_before_does_not_bring_the_removal_back(vault):
    kept = {path.name: path.read_bytes() for path in (vault.state / "backups").iterdir()}
    undo(vault)
    for path in vault.state.glob("*.db*"):
        path.unlink()
    for name, raw in kept.items():
        (vault.state / "backups" / name).write_bytes(raw)
    assert came_back(vault) and not stone(vault).exists()


# ── other machines ──


@pytest.fixture
def machines(vault, monkeypatch):
    """The vault, and a copy of it on another machine, which knows of the removal; `at` goes to one of them."""
    there = Vault(vault.root.parent / "there" / "vault")
    shutil.copytree(vault.root, there.root, dirs_exist_ok=True)
    places = {id(vault): os.environ["SIGNET_STATE"], id(there): str(there.root.parent / "state")}

    def at(machine):
        monkeypatch.setenv("SIGNET_STATE", places[id(machine)])
        return machine

    at(there).reindex()
    return at, at(vault), there


def carry(one, other):
    """What a sync service does: the other folder becomes as this one is."""
    for path in [*other.memory.rglob("*.md")]:
        if not (one.root / path.relative_to(other.root)).exists():
            path.unlink()
    shutil.copytree(one.memory, other.memory, dirs_exist_ok=True)


def test_an_undo_travels(machines):
    at, here, there = machines
    undo(here)
    assert came_back(here)
    carry(here, there)
    assert came_back(at(there)) and not stone(there).exists()
    carry(there, here)
    at(here).reindex()
    assert at(here).hits(WORD) and not stone(here).exists()


def test_a_removal_that_is_lifted_session_by_session_is_lifted_for_who_knew_it_whole(tmp_path):
    whole, first, second, third, rest = (
        Tombstone.read({**STONE, "session_ids": [*ids]}) for ids in ("123", "1", "2", "3", "23")
    )
    root = str(tmp_path)
    tombstones_files.put(root, whole)
    tombstones_files.lift(root, first, rest)
    assert tombstones_files.list_lifted(root, [whole, rest, first]) == [first]
    tombstones_files.lift(root, second, third)
    assert tombstones_files.list_lifted(root, [whole, rest, third]) == []
    tombstones_files.lift(root, third, None)
    assert tombstones_files.list_lifted(root, [whole, rest, third]) == [whole, rest, third]
    assert not (tmp_path / tombstones_files.path_of("default", TOKEN)).exists()


def test_what_was_taken_out_of_a_tombstone_is_no_part_of_its_later_scrubs(tmp_path):
    vault = Vault(tmp_path / "vault")
    first, second = (numbered(number)["session_id"] for number in (1, 2))
    for number in (1, 2):
        vault.session(number, session_key="agent:main:main")
    vault.reindex()
    for name in (first, second):
        assert vault.call("remove", name, "--reason", "r", "--yes", "--now", NOW).code == 0
    undo(vault, first)
    path = vault.session(1, session_key="agent:main:main")["summary"]
    vault.reindex()
    kept = vault / "MEMORY.user-20260329T110000Z.md"
    kept.write_text(f"I keep this: [[{path}|summary]]\n")
    with vault.database(readonly=False) as database:
        database.execute("update memory_artifact_tombstones set scrubbed = 0")
    before = len(list((vault.state / "backups").iterdir()))
    vault.reindex()
    assert path in kept.read_text() and len(list((vault.state / "backups").iterdir())) == before
