"""`obsidian`: what setup writes into a vault, and what undo takes back."""

import json
from pathlib import Path

import pytest
from workbench import Vault, contents


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    """A vault with one session."""
    found = Vault(tmp_path / "vault")
    found.session(1)
    found.reindex()
    return found


@pytest.fixture
def there(vault: Vault) -> Vault:
    """A vault that is open in Obsidian, with settings of a person."""
    folder = vault.root / ".obsidian"
    folder.mkdir()
    (folder / "app.json").write_text('{"alwaysUpdateLinks":true,"userIgnoreFilters":["Archive/"]}')
    (folder / "graph.json").write_text('{"search":"tag:#mine"}')
    return vault


def outside_state(vault: Vault) -> dict[str, str]:
    return contents(vault.root, but=(".signet",))


def test_setup_and_undo_leave_every_byte_as_it_was(there: Vault) -> None:
    before = outside_state(there)
    shown = there.call("obsidian", "setup", "--plugin", "--dry-run")
    assert shown.code == 0 and "+++ .obsidian/app.json" in shown.out and outside_state(there) == before
    done = there.call("obsidian", "setup", "--plugin", "--yes")
    assert done.code == 0 and "Community plugins" in done.out, done
    app = json.loads((there.root / ".obsidian/app.json").read_text())
    assert app == {"alwaysUpdateLinks": False, "userIgnoreFilters": ["Archive/", "memory/"]}
    assert json.loads((there.root / ".obsidian/graph.json").read_text()) == {"search": "tag:#mine -path:memory/"}
    assert (there.root / ".obsidian/plugins/signet-sync/main.js").is_file()
    assert not (there.root / ".obsidian/community-plugins.json").exists()  # a person enables it
    again = outside_state(there)
    assert "nothing to change" in there.call("obsidian", "setup", "--plugin", "--yes").out
    assert outside_state(there) == again
    assert there.call("obsidian", "status", "--json").json["missing"] == []
    assert there.call("obsidian", "undo", "--yes").code == 0
    assert outside_state(there) == before
    assert there.call("obsidian", "undo", "--yes", "--json").json["files"] == []


def test_nothing_is_left_in_a_vault_that_obsidian_never_opened(vault: Vault) -> None:
    before = outside_state(vault)
    assert vault.call("obsidian", "setup", "--yes").code == 0
    assert (vault.root / "Memory.base").is_file() and not (vault.root / ".obsidian/plugins").exists()
    assert vault.call("obsidian", "undo", "--yes").code == 0
    assert outside_state(vault) == before and not (vault.root / ".obsidian").exists()


def test_what_a_person_changed_since_stays_and_is_named(there: Vault) -> None:
    assert there.call("obsidian", "setup", "--yes").code == 0
    base, app = there.root / "Memory.base", there.root / ".obsidian/app.json"
    base.write_text("views: []\n")
    app.write_text(json.dumps(json.loads(app.read_text()) | {"vimMode": True}, indent=2))
    assert "Memory.base stays as it is" in there.call("obsidian", "setup", "--yes").out
    done = there.call("obsidian", "undo", "--yes")
    assert "Memory.base stays: it changed since the setup" in done.out
    assert base.read_text() == "views: []\n"
    expected = {"alwaysUpdateLinks": True, "userIgnoreFilters": ["Archive/"], "vimMode": True}
    assert json.loads(app.read_text()) == expected


def test_status_says_what_obsidian_took_out(there: Vault) -> None:
    assert "obsidian setup" in there.call("obsidian", "status").out
    there.call("obsidian", "setup", "--yes")
    (there.root / ".obsidian/app.json").write_text("{}")
    (there.root / "Memory.base").unlink()
    answer = there.call("obsidian", "status", "--json")
    assert answer.code == 1
    assert answer.json["missing"] == ["Memory.base", "Files and links, Excluded files: memory/"]


@pytest.mark.parametrize("content", ["// a comment\n{}", "[]", "{", "\udcff"])
def test_settings_that_cannot_be_edited_are_left_alone(there: Vault, content: str) -> None:
    app = there.root / ".obsidian/app.json"
    app.write_bytes(content.encode("utf-8", "surrogateescape"))
    before = outside_state(there)
    answer = there.call("obsidian", "setup", "--yes")
    assert answer.code in (2, 3) and "app.json" in answer.err and "try again" in answer.err, answer
    assert outside_state(there) == before


def test_nothing_is_written_through_a_link(there: Vault, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text("{}")
    app = there.root / ".obsidian/app.json"
    app.unlink()
    app.symlink_to(elsewhere)
    assert there.call("obsidian", "setup", "--yes").code == 3
    assert elsewhere.read_text() == "{}" and app.is_symlink()


def test_a_question_needs_an_answer(there: Vault) -> None:
    answer = there.call("obsidian", "setup")
    assert answer.code == 2 and "--yes" in answer.err
    assert not (there.root / "Memory.base").exists()
