"""`obsidian`: what it writes into a vault, and what it leaves alone."""

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
    (folder / "app.json").write_text('{"vimMode":true,"alwaysUpdateLinks":true,"userIgnoreFilters":["Archive/"]}')
    (folder / "graph.json").write_text('{"search":"tag:#mine"}')
    return vault


def outside_state(vault: Vault) -> dict[str, str]:
    return contents(vault.root, but=(".signet",))


def test_what_is_missing_is_set_once_and_the_rest_stays(there: Vault) -> None:
    before = outside_state(there)
    shown = there.call("obsidian", "--dry-run", "--json").json
    assert [one["path"] for one in shown["files"]] == [".obsidian/app.json", ".obsidian/graph.json", "Memory.base"]
    assert outside_state(there) == before
    done = there.call("obsidian", "--yes")
    assert done.code == 0 and "Excluded files: memory/" in done.out and "Reload" in done.out, done
    text = (there.root / ".obsidian/app.json").read_text()
    assert list(json.loads(text).items()) == [
        ("vimMode", True), ("alwaysUpdateLinks", False), ("userIgnoreFilters", ["Archive/", "memory/"]),
    ]  # fmt: skip
    assert text.startswith('{\n  "vimMode": true,\n')  # as Obsidian writes it
    assert json.loads((there.root / ".obsidian/graph.json").read_text()) == {"search": "tag:#mine -path:memory/"}
    again = outside_state(there)
    assert "nothing to change" in there.call("obsidian", "--yes").out and outside_state(there) == again


def test_a_base_that_a_person_changed_stays(there: Vault) -> None:
    (there.root / "Memory.base").write_text("views: []\n")
    assert there.call("obsidian", "--yes").code == 0
    assert (there.root / "Memory.base").read_text() == "views: []\n"


@pytest.mark.parametrize("content", ["// a comment\n{}", "[]", "{", "\udcff"])
def test_settings_that_cannot_be_edited_are_left_alone(there: Vault, content: str) -> None:
    app = there.root / ".obsidian/app.json"
    app.write_bytes(content.encode("utf-8", "surrogateescape"))
    before = outside_state(there)
    answer = there.call("obsidian", "--yes")
    assert answer.code in (2, 3) and "app.json" in answer.err and "try again" in answer.err, answer
    assert outside_state(there) == before


def test_nothing_is_written_through_a_link(there: Vault, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text("{}")
    app = there.root / ".obsidian/app.json"
    app.unlink()
    app.symlink_to(elsewhere)
    assert there.call("obsidian", "--yes").code == 3
    assert elsewhere.read_text() == "{}" and app.is_symlink()
