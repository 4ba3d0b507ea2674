"""What random sequences and kills have found: each the shortest of its kind, and mended since."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import crash_runner
import pytest
from operation_vaults import FORGOTTEN, of_another_version, remember
from operations import OPERATIONS
from workbench import Vault

from signet_sync.app.workspace import open_to_write
from signet_sync.settings.model import Settings
from signet_sync.storage import writing


def test_an_ending_that_was_cut_off_is_finished_by_the_pass_that_accepts_that_all_else_is_gone(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for one pass more, although nobody expected the other files any longer."""
    vault.session(1)
    vault.reindex()
    monkeypatch.chdir(vault.root.parent)
    Path("ending.json").write_text('{"session_id": "5e55-ending", "transcript": "user: what of src/queue.py?"}')

    def dies(step: int) -> int:
        crash_runner.arm(step)
        return crash_runner.command(str(vault.root), "session", "end", "--input", "ending.json")

    steps = itertools.count(1)
    while not list(vault.state.glob("journal/*.json")):
        assert crash_runner.forked(dies, next(steps)) == crash_runner.KILLED
    for path in vault.memory.glob("*.md"):
        path.unlink()
    assert vault.reindex(code=5)["halted"] and list(vault.state.glob("journal/*.json"))
    vault.reindex("--accept-removals")
    assert len(list(vault.memory.glob("*.md"))) == 3 and not list(vault.state.glob("journal/*.json"))


def test_a_sealed_file_that_goes_because_somebody_wrote_a_removed_session_into_it_is_missed(vault: Vault) -> None:
    """Its seal is that of a session which nobody removed; for a moment no verdict told that the file is gone."""
    who = {"session_id": "5e55-two", "session_key": "one key"}
    name, raw = made.summary(**who)
    vault.put((name, raw))
    vault.reindex()
    vault.put(made.tombstone(**who | {"session_id": "5e55-three"}, session_ids=("5e55-three",)), "memory/tombstones")
    vault.put(made.tombstone(**who, agent_id="scout"), "memory/tombstones")
    vault.put((name, raw.replace(b'agent_id: "default"', b'agent_id: "scout"')))
    for arguments in ((), ("--full",)):
        assert vault.problems(vault.reindex(*arguments))[f"memory/{name}"][1] in ("tombstoned", "vanished")
        assert vault.rows("select code from files where path = ?", f"memory/{name}") == [("vanished",)]
    assert vault.call("violations", "restore", "--all", "--yes").code == 0 and (vault.memory / name).read_bytes() == raw


def remembered(vault: Vault) -> str:
    """Remembers something, which somebody writes into our part of the page once more; gives its id."""
    vault.session(1)
    with open_to_write(str(vault.root), Settings()) as workspace:
        memory_id = remember(workspace, FORGOTTEN)
    (vault / "MEMORY.md").write_text(vault.page().replace("## ", f"> {FORGOTTEN}\n\n## ", 1))
    return memory_id


def test_nothing_is_forgotten_where_a_copy_of_the_page_cannot_be_cleaned(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = remembered(vault)
    vault.reindex()
    (kept,) = vault.root.glob("MEMORY.user-*")
    real = writing._rename

    def refuse(*given: Any) -> Any:
        if kept.name in map(str, given):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return real(*given)

    monkeypatch.setattr(writing, "_rename", refuse)
    answer = vault.call("forget", memory_id, "--json")
    assert answer.code != 0 and "nothing was forgotten" in answer.out, answer
    assert vault.rows("select id from memories") == [(memory_id,)]


@pytest.mark.parametrize("name", ["session end", "remember"])
def test_the_first_write_after_an_upgrade_hides_nothing_of_the_vault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A pass over the few paths of one ending would make a page of that session alone."""
    monkeypatch.chdir(tmp_path)
    of_another_version(tmp_path)
    vault = Vault(tmp_path / "vault")
    assert OPERATIONS[name].work(vault.root) == 0
    assert all(f"step number {number} bounded" in vault.page() for number in (1, 2))
    before = vault.dump()
    page = vault.page()
    vault.reindex()
    assert vault.dump() == before == vault.dump_from_scratch() and vault.page() == page


def test_a_backup_made_while_the_clock_was_ahead_is_not_taken_for_the_newest(vault: Vault) -> None:
    vault.session(1)
    vault.reindex(now="2027-01-01T00:00:00.000Z")
    with open_to_write(str(vault.root), Settings()) as workspace:
        memory_id = remember(workspace, FORGOTTEN)
    vault.db.unlink()
    vault.reindex()
    assert vault.rows("select id from memories") == [(memory_id,)]
