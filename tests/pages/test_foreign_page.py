"""The page of another machine's agent, brought here by a sync service, is not fought over."""

from __future__ import annotations

from pathlib import Path

from workbench import NOW, Vault

from signet_sync.app.workspace import open_to_write
from signet_sync.formats.managed_block import block
from signet_sync.formats.timestamps import parse_instant
from signet_sync.settings.model import Settings
from signet_sync.sync.engine import run_pass
from signet_sync.sync.workspace import Request

NOW_US = parse_instant(NOW) or 0


def one_pass(vault: Vault, *, daemon: bool) -> None:
    with open_to_write(str(vault.root), Settings()) as workspace:
        paths = frozenset({"MEMORY.md"})
        run_pass(workspace, Request(now_us=NOW_US, paths=paths, settle_seconds=2.0 if daemon else 0.0))


def test_the_agent_lets_another_machines_page_stand_until_it_has_something_to_say(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    vault.reindex()
    theirs = block("# Working Memory\n\n- what the other machine remembers ^m-abcdefghijkl")
    for page in (theirs, b"My own words.\n\n" + theirs):
        (vault / "MEMORY.md").write_bytes(page)
        one_pass(vault, daemon=True)
        one_pass(vault, daemon=True)
        assert (vault / "MEMORY.md").read_bytes() == page
    vault.session(2)
    with open_to_write(str(vault.root), Settings()) as workspace:
        run_pass(workspace, Request(now_us=NOW_US, settle_seconds=2.0))
    assert "number 2 bounded" in vault.page() and "My own words." in vault.page()
    assert "other machine" not in vault.page() and not list(vault.root.glob("MEMORY.user-*"))


def test_a_block_that_somebody_typed_into_is_written_again_and_so_is_any_by_reindex(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    vault.reindex()
    ours = vault.page()
    (vault / "MEMORY.md").write_text(ours.replace("# Working Memory", "# Working Memory\n\ntyped", 1))
    one_pass(vault, daemon=True)
    assert vault.page() == ours
    (vault / "MEMORY.md").write_bytes(block("# Working Memory\n\n- an old one"))
    vault.reindex()
    assert vault.page() == ours


def test_a_copy_of_a_manifest_goes_unless_somebody_wrote_in_it(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    vault.session(1)
    vault.reindex()
    (manifest,) = vault.memory.glob("*--manifest.md")
    raw, copy = manifest.read_text(), manifest.with_name(manifest.name.replace(".md", " 2.md"))
    for words, left in (("", False), ("\nMine.\n", True)):
        copy.write_text(raw.replace("revision: ", "revision: 7") + words)
        manifest.write_text(raw)
        vault.reindex()
        assert copy.exists() is left
