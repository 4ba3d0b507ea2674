"""The names of an entity's files: as the disk has them, and nobody else's file is taken for one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from workbench import Vault

from signet_sync.app.workspace import opened
from signet_sync.entities import operations, reports
from signet_sync.entities.drift_resolution import resolve
from signet_sync.entities.erase import erase
from signet_sync.entities.observe import observe
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir
from signet_sync.sync.workspace import Workspace

ME = "default"
NOW_US = 1_774_785_600_000_000


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workspace]:
    with opened(str(Vault(tmp_path / "vault").root), Settings()) as workspace:
        yield workspace


def jo(work: Workspace, name: str = "Jo") -> Path:
    """The profile of a new part."""
    return Path(work.root) / operations.create(work, ME, "part", name, now_us=NOW_US).path


def put(work: Workspace, ref: str, section: str, text: str) -> Path:
    return Path(work.root) / operations.set_section(work, ME, ref, section, text, now_us=NOW_US).path


def look(work: Workspace) -> list[str]:
    """What waits for a maintainer after a look at all files."""
    with state_dir.workspace_lock(work.state):
        observe(work, ME, None, NOW_US)
    return [one.code for one in reports.drift(work, ME)]


def names(profile: Path) -> list[str]:
    return sorted(path.name for path in profile.parent.iterdir())


def test_notes_follow_a_profile_that_a_person_renamed(work: Workspace) -> None:
    profile = jo(work)
    profile.rename(profile.with_name("Johanna.md"))
    assert look(work) == []
    assert names(profile) == ["Johanna notes.md", "Johanna.md"]
    assert put(work, "jo", "role", "Reviews.").name == "Johanna.md"
    profile.with_name("Johanna.md").rename(profile.with_name("profile.md"))
    assert look(work) == [] and names(profile) == ["notes.md", "profile.md"]


def test_a_new_index_finds_the_files_by_what_they_say(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    with opened(str(vault.root), Settings()) as work:
        profile = jo(work)
        profile.rename(profile.with_name("Zed.md"))
        (profile.parent / "A note.md").write_text("# Mine\n")
        look(work)
    shutil.rmtree(os.environ["SIGNET_STATE"])
    vault.reindex()
    (found,) = vault.call("entity", "list", "--json").json["entities"]
    assert found["path"].endswith("/Zed.md") and (profile.parent / "A note.md").read_text() == "# Mine\n"


def test_a_persons_note_in_the_folder_is_no_profile_and_is_not_overwritten(work: Workspace) -> None:
    profile = jo(work)
    mine = profile.with_name("A.md")
    mine.write_text("---\nkind: part\n---\n# Mine\n")
    assert look(work) == []
    profile.unlink()
    assert look(work) == ["file-missing"]
    resolve(work, ME, "jo", "events", actor="maintainer", now_us=NOW_US)
    assert profile.exists() and mine.read_text() == "---\nkind: part\n---\n# Mine\n" and look(work) == []


def test_a_removal_takes_its_words_out_of_the_names_of_files(work: Workspace) -> None:
    profile = jo(work, "The zzlantern")
    other = jo(work, "Jo")
    operations.append(work, ME, "jo", "highlights", f"[[{profile.relative_to(work.root)}]]", now_us=NOW_US)
    (at,) = Path(work.root).glob("entities/parts/*/The zzlantern.md")
    assert at.name in other.read_text()
    with state_dir.workspace_lock(work.state):
        erase(work, ME, paths=(), needles=[b"zzlantern"], tombstone="memory/tombstones/x.md", now_us=NOW_US)
    for path in Path(work.root, "entities").rglob("*"):
        assert "zzlantern" not in path.name and (path.is_dir() or b"zzlantern" not in path.read_bytes())
    (after,) = Path(work.root).glob("entities/parts/*/Part.md")
    assert names(after) == ["Part notes.md", "Part.md"]
    assert look(work) == []
