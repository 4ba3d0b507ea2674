"""What random sequences have found: each the shortest of its kind, and mended since."""

from __future__ import annotations

import itertools
from pathlib import Path

import artifacts_fixture as made
import crash_runner
import hands
import pytest
from workbench import Vault, tree


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault")


def test_files_that_are_ignored_for_their_names_are_told_by_every_rebuild(vault: Vault) -> None:
    """The second one took them for known, and forgot them with all that was to be made anew."""
    vault.session(1)
    vault.put(("note.md", b"mine\n"))
    for arguments in ((), ("--full",), ("--full",), ()):
        assert vault.problems(vault.reindex(*arguments)) == {"memory/note.md": ("ignored", "foreign-name")}


def test_a_manifest_that_is_written_on_the_way_to_a_removal_is_known_when_the_pass_ends(vault: Vault) -> None:
    """With a tombstone a first page is written before the look at the files ends; its references were not read."""
    vault.session(1)
    vault.put(made.summary(session_id="5e55-no-manifest", captured_at="2026-03-28T09:00:00.000Z"))
    vault.put(made.tombstone(session_id="5e55-elsewhere"), "memory/tombstones")
    vault.reindex()
    assert {row[0] for row in vault.rows("select revision from memory_artifacts where revision is not null")} == {2}
    assert vault.dump() == vault.dump_from_scratch()


def test_a_removed_file_under_a_name_of_another_token_leaves_no_trace(vault: Vault) -> None:
    """It was deleted, and its verdict stood there until the pass after the next."""
    name, raw = made.summary(session_id="5e55-removed", session_key="a key")
    vault.put(made.tombstone(session_id="5e55-removed", session_key="a key"), "memory/tombstones")
    vault.put((name.replace(made.token_for(session_key="a key"), "abcdefghijklmnop"), raw))
    document = vault.reindex()
    assert document["counts"]["tombstoned"] == 1 and not list(vault.memory.glob("*.md"))
    rows = vault.dump()
    assert not [row for row in rows if "abcdefghijklmnop" in str(row)]
    before = tree(vault.root)
    assert not vault.reindex()["problems"]
    assert (vault.dump(), tree(vault.root)) == (rows, before)


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


def test_a_form_that_was_sealed_anew_after_a_loss_is_no_other_form(vault: Vault) -> None:
    """It was told as another one by the pass that sealed it, and by none after that."""
    path = vault / vault.session(1)["summary"]
    vault.reindex()
    path.write_bytes(hands.as_obsidian(path.read_bytes()))
    assert [note["code"] for note in vault.reindex()["notes"]] == ["reformatted"]
    vault.db.unlink()
    assert vault.reindex()["notes"] == [] == vault.reindex("--full")["notes"]


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
