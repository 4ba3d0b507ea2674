"""One vault with every kind of verdict, note and entity, and its copies in other places."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import artifacts_fixture as made
from workbench import Vault

REMOVED = "0195d7a2-6f00-7cc0-8a44-0000000000ff"
HALF_REMOVED = "0195d7a2-6f00-7cc0-8a44-0000000000fe"


def make(root: Path) -> Path:
    """Makes the vault in a new folder, beginning with sessions and entities with their events."""
    vault = Vault(root)
    for number in range(1, 16):
        vault.session(number)
    vault.reindex()
    for kind, name in (("user", "Ada"), ("part", "Critic")):
        assert vault.call("entity", "create", kind, name).code == 0
    _invalid(vault)
    _odd(vault)
    _removed(vault)
    _entities(vault)
    _others(vault)
    return root


def _session(number: int) -> dict[str, Any]:
    return {"session_id": f"0195d7a2-6f00-7cc0-8a44-{number:012x}", "captured_at": f"2026-03-0{number}T10:00:00.000Z"}


def _invalid(vault: Vault) -> None:
    name, raw = made.summary(**_session(1))
    vault.put((name, raw.replace(b"five tries", b"six tries")))  # hash-mismatch
    name, raw = made.summary(**_session(2))
    vault.put((name, raw.replace(b"five", b"\xff\xfe")))  # not UTF-8
    name, raw = made.summary(**_session(3))
    vault.put((name, b"no frontmatter\n"))
    name, raw = made.summary(**_session(4), harness=made.ABSENT)
    vault.put((name, raw))
    name, raw = made.summary(**_session(5))
    vault.put((name, b""))
    vault.put(made.transcript(**_session(6), manifest_path="../../outside.md"))
    vault.put(made.summary(**_session(7), manifest_path="memory/not-there.md"))  # a link that leads nowhere
    future = {"session_id": _session(8)["session_id"], "captured_at": "2099-01-01T00:00:00.000Z"}
    vault.put(made.session(**future))
    vault.put({"big.md": b"x" * 70_000, "notes.txt": b"mine", "MEMORY.md": b"a page in the wrong place"})


def _odd(vault: Vault) -> None:
    (vault.memory / made.path_for("summary", **_session(9)).removeprefix("memory/") / "inside").mkdir(parents=True)
    (vault.memory / made.path_for("summary", **_session(9)).removeprefix("memory/") / "inside/a.md").write_bytes(b"a")
    vault.put({"a\nb.md": b"strange", "naïve ü.md": b"letters", "a?b#c%20d[e]*.md": b"characters of URLs"})


def _removed(vault: Vault) -> None:
    vault.put(made.session(session_id=REMOVED))
    vault.put(made.tombstone(session_id=REMOVED), "memory/tombstones")
    name, raw = made.tombstone(session_id=HALF_REMOVED)
    vault.put((f"{name[:-3]} (conflicted copy 2026-03-29).md", raw), "memory/tombstones")
    vault.put(made.session(session_id=HALF_REMOVED))
    name, _ = made.tombstone(session_id="broken")
    vault.put((name, b"---\nkind: tombstone\n"), "memory/tombstones")
    lifted = made.tombstone(session_id=_session(1)["session_id"])
    vault.put(lifted, "memory/tombstones")
    vault.put(lifted, "memory/tombstones/lifted")


def _entities(vault: Vault) -> None:
    """A profile that is none, one with a strange name, an event log with a changed line."""
    profiles = sorted(vault.root.glob("entities/*/*/*.md"))
    assert len(profiles) > 2
    profiles[0].write_bytes(b"\xff")
    profiles[1].write_bytes(b"no frontmatter")
    profiles[2].rename(profiles[2].with_name("Another name.md"))
    log = next(iter(sorted(vault.root.glob("entities/ledger/*.jsonl"))))
    log.write_bytes(log.read_bytes().replace(b'"at":"2', b'"at":"3', 1))


def _others(vault: Vault) -> None:
    (vault / "signet-sync.toml").write_bytes(b'[projection]\nbudget_tokens = "many"\n[llm]\nprovider = "openai"\n')
    page = vault / "MEMORY.md"
    page.write_bytes(page.read_bytes().replace(b" the ", b" no ", 3))
    vault.put(made.session(agent_id="helper", session_id=_session(1)["session_id"]))
    vault.put({"MEMORY.md": page.read_bytes()}, "agents/helper")


def files(root: Path) -> dict[str, bytes]:
    """The regular files of a vault by path, but for what is only of this machine."""
    found = {}
    for where, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".signet"]
        for name in names:
            path = Path(where) / name
            if stat.S_ISREG(path.lstat().st_mode):
                found[os.path.relpath(path, root)] = path.read_bytes()
    return found


def zipped(root: Path, place: Path, folder: str = "") -> Path:
    """Packs a vault into an archive as CI does, with symlinks as entries."""
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for where, _, names in os.walk(root):
            for name in sorted(names):
                path = Path(where) / name
                inner = os.path.join(folder, os.path.relpath(path, root))
                if path.is_symlink():
                    info = zipfile.ZipInfo(inner)
                    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
                    archive.writestr(info, os.readlink(path))
                else:
                    archive.write(path, inner)
    return place


def committed(root: Path, place: Path) -> Path:
    """Commits a vault into a new repository; nothing but its files is in it."""
    shutil.copytree(root, place, symlinks=True, ignore=shutil.ignore_patterns(".signet", ".git"))
    for words in (["init", "-q", "-b", "main"], ["add", "-f", "."], ["commit", "-q", "-m", "all"]):
        git = ["git", "-C", str(place), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run([*git, *words], check=True)
    return place
