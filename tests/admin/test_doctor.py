"""`doctor` looks at what a person has set up beside the vault: Obsidian, hooks that lead elsewhere, the file system."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest
from workbench import Vault

from signet_sync.admin import hooks_install
from signet_sync.admin.doctor import index, programs
from signet_sync.admin.doctor import vault as checks_vault
from signet_sync.admin.doctor.installation import Finding, Installation
from signet_sync.capture import spool
from signet_sync.capture.spool import Job
from signet_sync.storage import state_dir


@pytest.fixture
def vault() -> Vault:
    """An empty vault below the home folder."""
    return Vault(Path(os.environ["HOME"]) / "notes/agents")


def installation(vault: Vault) -> Installation:
    return Installation(str(vault.root), str(vault.db))


def obsidian(vault: Vault, place: Path, **settings: object) -> Finding:
    """What is said of an Obsidian that has opened a folder with these settings."""
    app = place / ".obsidian/app.json"
    app.parent.mkdir(exist_ok=True)
    app.write_text(json.dumps(settings))
    (finding,) = checks_vault.obsidian(installation(vault))
    return finding


@pytest.mark.parametrize("above", [0, 1, 2])
def test_an_obsidian_that_rewrites_links_is_told_of_wherever_its_vault_begins(vault: Vault, above: int) -> None:
    place = [vault.root, *vault.root.parents][above]
    finding = obsidian(vault, place, alwaysUpdateLinks=True)
    assert finding.level == "warning" and str(place) in finding.message and "switch off" in finding.remedy
    finding = obsidian(vault, place, alwaysUpdateLinks=False)
    inside = "" if above == 0 else os.path.relpath(vault.root, place) + "/"
    assert finding.level == "ok" and finding.remedy.endswith(f"add {inside}memory/")
    finding = obsidian(vault, place, userIgnoreFilters=[f"{inside}memory/"])
    assert (finding.level, finding.remedy) == ("ok", "")


def test_nothing_above_home_is_looked_at_and_no_pipe_is_waited_for(vault: Vault) -> None:
    app = Path(os.environ["HOME"]).parent / ".obsidian/app.json"
    app.parent.mkdir()
    app.write_text('{"alwaysUpdateLinks": true}')
    (vault / ".obsidian").mkdir()
    os.mkfifo(vault / ".obsidian/app.json")
    assert checks_vault.obsidian(installation(vault)) == []
    (vault / ".obsidian/app.json").unlink()
    (vault / ".obsidian/app.json").write_bytes(b'["no object')
    assert checks_vault.obsidian(installation(vault))[0].level == "ok"


def test_a_remedy_names_workspace_and_database_only_where_it_has_to(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = str(vault.root / "an other.db")
    words = shlex.split(Installation(str(vault.root), other).command("reindex"))
    assert words == ["signet-sync", "--workspace", str(vault.root), "--db", other, "reindex"]
    monkeypatch.setenv("SIGNET_WORKSPACE", str(vault.root))
    assert installation(vault).command("reindex") == "signet-sync reindex"


def test_what_was_given_up_and_what_is_not_finished_is_told(vault: Vault) -> None:
    folder = state_dir.locate(str(vault.root))
    job = Job(event="end", harness="codex", session_id="s", agent_id="default", at="2026-03-20T10:00:00.000Z", tries=7)
    assert not spool.begin(spool.put(folder.spool, job))
    begun = Path(folder.journal) / f"{'a' * 32}.json"
    begun.parent.mkdir(parents=True)
    begun.write_text("{}")
    os.utime(begun, (1.0, 1.0))
    found = {one.name: one for one in index.waiting(installation(vault))}
    assert "could not be processed: 1;" in found["spool-given-up"].message
    assert "not finished: 1" in found["unfinished"].message and found["unfinished"].fix


def test_hooks_that_feed_a_workspace_are_left_to_it_until_it_is_gone(vault: Vault, tmp_path: Path) -> None:
    (Path(os.environ["HOME"]) / ".claude").mkdir()
    other = Vault(tmp_path / "other")
    hooks_install.install(str(other.root), ["claude-code"], now="2026-03-20T10:00:00.000Z")
    (finding,) = programs.harness(installation(vault))
    assert str(other.root) in finding.message and not finding.fix and programs.broken(installation(vault)) == []
    shutil.rmtree(other.root)
    (finding,) = programs.harness(installation(vault))
    assert finding.fix and finding.remedy == installation(vault).command("hooks install claude-code")
    assert programs.broken(installation(vault)) == ["claude-code"]
