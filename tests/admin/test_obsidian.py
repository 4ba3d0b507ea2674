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


def test_setup_and_status_say_how_each_file_stands_and_what_fills_the_views(there: Vault) -> None:
    there.call("obsidian", "setup", "--plugin", "--yes")
    (there.root / ".obsidian/app.json").write_text("{}")
    (there.root / "Memory.base").write_text("views: []\n")
    (there.root / ".obsidian/plugins/signet-sync/main.js").unlink()
    said = there.call("obsidian", "status").out
    for path, condition in (
        ("app.json", "not there any more: Files and links, Excluded files: memory/"),
        ("graph.json", "set, besides what is yours"),
        ("Memory.base", "changed since, now yours"),
        ("main.js", "not there any more"),
        ("manifest.json", "as it was set up"),
    ):
        assert f"{path}: {condition}\n" in said, said
    lines = said.partition("reindex:\n")[2]
    (there.root / "signet-sync.toml").write_text("".join(line.strip() + "\n" for line in lines.splitlines()[:2]))
    assert "Session notes are off" not in there.call("obsidian", "status").out
    there.reindex()
    assert [*there.root.glob("sessions/*/*.md")]


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


@pytest.fixture
def old(vault: Vault) -> Vault:
    """A vault with entities whose files are called as versions before this one called them, and notes that link one."""
    for name in ("Jo", "Sam"):
        path = vault.root / vault.call("entity", "create", "part", name, "--json").json["path"]
        path.with_name(f"{name} notes.md").rename(path.with_name("notes.md"))
        path.rename(path.with_name("profile.md"))
    vault.reindex()
    vault.call("entity", "append", "sam", "highlights", "--text", f"Likes [[{profile(vault, 'jo')}|Jo]].")
    (vault.root / "Mine").mkdir()
    (vault.root / "Mine/day.md").write_text(f"[[{profile(vault, 'jo')}|her]] and [[profile]]\r\n")
    (vault.root / "Mine/other.md").write_text("nothing\n")
    return vault


def profile(vault: Vault, entity: str) -> str:
    listed = vault.call("entity", "list", "--json").json["entities"]
    return next(str(one["path"]) for one in listed if one["title"].lower() == entity)


def test_entity_files_are_renamed_only_if_asked_and_back_to_the_byte(old: Vault) -> None:
    before, former = outside_state(old), profile(old, "jo")
    assert old.call("obsidian", "setup", "--yes").code == 0
    assert profile(old, "jo") == former
    shown = old.call("obsidian", "setup", "--rename", "--dry-run", "--json").json
    assert {one["to"].rpartition("/")[2] for one in shown["renamed"]} == {
        "Jo.md", "Jo notes.md", "Sam.md", "Sam notes.md",
    }  # fmt: skip
    assert shown["notes"] == ["Mine/day.md"] and profile(old, "jo") == former
    done = old.call("obsidian", "setup", "--rename", "--links", "--yes")
    assert done.code == 0, done
    after = profile(old, "jo")
    assert after.endswith("/Jo.md") and not (old / former).exists()
    assert (old / "Mine/day.md").read_bytes() == f"[[{after}|her]] and [[profile]]\r\n".encode()
    assert f"[[{after}|Jo]]" in (old / profile(old, "sam")).read_text()
    assert old.reindex()["entity_drift"] == []
    assert old.call("entity", "check", "--log").code == 0 and old.call("expand", former).code == 0
    assert old.call("obsidian", "undo", "--links", "--yes").code == 0
    left = outside_state(old)
    mine = [path for path in before if path.startswith(("Mine/", "entities/parts/jo--"))]
    assert len(mine) == 4 and {path: left[path] for path in mine} == {path: before[path] for path in mine}
    assert left.keys() == before.keys()


def test_notes_stay_as_they_are_without_a_persons_word(old: Vault) -> None:
    note = (old / "Mine/day.md").read_bytes()
    assert old.call("obsidian", "setup", "--rename", "--yes").code == 0
    assert profile(old, "jo").endswith("/Jo.md") and (old / "Mine/day.md").read_bytes() == note
    # Asked again, the links of files renamed earlier follow.
    done = old.call("obsidian", "setup", "--rename", "--links", "--yes", "--json").json
    assert done["notes"] == ["Mine/day.md"]
    assert f"[[{profile(old, 'jo')}|her]]".encode() in (old / "Mine/day.md").read_bytes()


def test_a_name_that_is_taken_and_a_drifted_entity_are_left(old: Vault) -> None:
    jo, sam = profile(old, "jo"), profile(old, "sam")
    (old / jo).with_name("JO.md").write_text("mine\n")  # the same name on file systems that ignore case
    (old / sam).write_text((old / sam).read_text().replace("id:", "identity:", 1))
    assert old.reindex()["entity_drift"]
    done = old.call("obsidian", "setup", "--rename", "--links", "--yes", "--json").json
    assert done["renamed"] == [] and (old / jo).exists() and (old / sam).exists()
    assert profile(old, "jo") == jo
