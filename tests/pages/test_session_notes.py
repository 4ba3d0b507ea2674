"""Session notes: one for each session, called by what it says, gone with it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from workbench import Vault, contents, tree

from signet_sync.formats.file_names import readable_name
from signet_sync.formats.paths import page_agent, session_note

SUMMARY = (
    "# Queue\n\n- Bounded the loop.\n\n## Decisions\n\n- The queue stops at five.\n\n## Blockers\n\n- Waits for Ada.\n"
)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    """A vault of two sessions that has notes."""
    found = Vault(tmp_path / "vault")
    (found.root / "signet-sync.toml").write_text("[obsidian]\nsession_notes = true\n")
    found.session(1, body=SUMMARY, project="/home/ada/lantern")
    found.session(2)
    found.reindex()
    return found


def notes(vault: Vault) -> list[Path]:
    return sorted(vault.root.glob("sessions/*/*.md"), reverse=True)


def properties(note: Path) -> Any:
    """The properties, as YAML reads them."""
    return yaml.safe_load(note.read_text().split("---\n")[1])


def token_of(note: Path) -> str:
    return str(properties(note)["manifest"]).split("--")[1]


def test_a_note_is_called_by_its_sentence_and_links_its_files(vault: Vault) -> None:
    note, _ = notes(vault)
    found = properties(note)
    assert note.name.startswith(f"{found['date']} ") and found["aliases"][0][:20] in note.name
    assert f"\n# {found['aliases'][0]}\n" in note.read_text()
    for kind in ("summary", "transcript", "manifest"):
        path = found[kind].removeprefix("[[").partition("|")[0]
        assert (vault / path).is_file() and found[kind].endswith(f"|{kind}]]")
    assert (found["project"], found["tags"]) == ("lantern", ["session"])
    assert (found["decisions"], found["blockers"]) == (["The queue stops at five."], ["Waits for Ada."])
    relative = str(note.relative_to(vault.root))
    assert session_note(relative) and page_agent(relative) == "default"


def test_a_name_ends_with_a_word_and_has_no_bracket_that_lost_its_sign() -> None:
    for text, name in (
        ("The archive moved to the bucket in 368 batches", "The archive moved to the bucket in 368"),
        ("(#219) src/slug.rs keeps dots", "src slug.rs keeps dots"),
        ("Keeps (see `x`) it", "Keeps (see x) it"),
        ("The archive moved over night (as was asked for)", "The archive moved over night"),
        ("a" * 50, "a" * 40),
        ("short enough, as it is (yes)", "short enough, as it is (yes)"),
    ):
        assert readable_name(text, 40) == name


def test_nothing_is_written_again_whatever_is_forgotten(vault: Vault) -> None:
    before = tree(vault / "sessions")
    vault.reindex()
    vault.reindex("--full")
    assert tree(vault / "sessions") == before
    shutil.rmtree(os.environ["SIGNET_STATE"])
    vault.reindex()
    assert tree(vault / "sessions") == before


def test_what_a_person_adds_stays_and_a_session_that_is_removed_leaves_only_that(vault: Vault) -> None:
    one, two = notes(vault)
    said = properties(one)["aliases"][0]
    mine = one.read_text().replace("---\n", "---\nrating: 5\n", 1) + "\nMy thought.\n"
    one.write_text(mine)
    vault.reindex()
    assert one.read_text() == mine
    for note in (one, two):
        assert vault.call("remove", token_of(note), "--reason", "asked", "--yes").code == 0
    (left,) = notes(vault)
    assert left.name.startswith(f"{one.name[:10]} Note · ") and said[:20] not in left.name
    assert left.read_text() == "---\nrating: 5\n---\n\nMy thought.\n"
    vault.reindex("--full")
    assert notes(vault) == [left]


def test_a_removed_session_leaves_no_note(vault: Vault) -> None:
    note, other = notes(vault)
    shutil.copy(note, note.with_name(note.name.replace("-28 ", "-28 A copy of ")))
    said = properties(note)["aliases"][0].encode()
    answer = vault.call("remove", token_of(note), "--reason", "asked", "--yes", "--json").json
    assert notes(vault) == [other] and "sessions/" not in str(answer)
    for place in (vault.root, vault.state):
        assert [path for path in place.rglob("*") if path.is_file() and said in path.read_bytes()] == []


def test_a_name_stays_while_the_sentence_changes_but_no_secret_stays_in_it(vault: Vault) -> None:
    note, _ = notes(vault)
    said = note.name.partition(" · ")
    for words, stays in (("Another sentence", True), ("Token ghp_16C7e42F292c6912E7710c838347Ae178B4a", False)):
        now = note.with_name(f"{said[0][:10]} {words} · {said[2]}")
        note.rename(now)
        vault.reindex("--full")
        assert now.exists() == stays
        note = notes(vault)[0]
    assert "ghp_" not in str(contents(vault.root))


def test_without_the_setting_there_are_none(vault: Vault) -> None:
    (vault.root / "signet-sync.toml").unlink()
    vault.reindex("--full")
    assert not (vault / "sessions").exists()
    vault.session(3)
    vault.reindex()
    assert not (vault / "sessions").exists()


def test_eject_leaves_no_page_of_ours(vault: Vault) -> None:
    assert vault.call("eject", "--blank", "--yes").code == 0
    assert notes(vault) == []
