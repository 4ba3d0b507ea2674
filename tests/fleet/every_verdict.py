"""One vault with every kind of verdict, note and entity, and its copies in other places."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import zipfile
from pathlib import Path

import artifacts_fixture as made
from workbench import Vault

REMOVED = "0195d7a2-6f00-7cc0-8a44-0000000000ff"


def make(root: Path) -> Path:
    """Makes the vault in a new folder: sessions, an entity with its events, and what is wrong in each way."""
    vault = Vault(root)
    for number in range(1, 16):
        vault.session(number)
    vault.reindex()
    assert vault.call("entity", "create", "user", "Ada").code == 0
    next(iter(root.glob("entities/*/*/profile.md"))).write_bytes(b"no frontmatter")
    bad = [made.summary(session_id=f"0195d7a2-6f00-7cc0-8a44-{number:012x}") for number in range(1, 5)]
    for (name, raw), changed in zip(bad, (b"six tries", b"\xff\xfe", None, b"five tries"), strict=True):
        vault.put((name, b"" if changed is None else raw.replace(b"five tries", changed)))
    folder = vault.memory / made.path_for("summary", session_id="in its place is a folder").removeprefix("memory/")
    folder.mkdir()
    (folder / "a.md").write_bytes(b"a")
    vault.put(made.summary(session_id="its manifest is gone", manifest_path="memory/not-there.md"))
    vault.put({"big.md": b"x" * 70_000, "a\nb.md": b"strange", "a?b#c%20d[e]*.md": b"characters of URLs", "ü.md": b""})
    vault.put(made.session(session_id=REMOVED))
    vault.put(made.tombstone(session_id=REMOVED), "memory/tombstones")
    vault.put(made.tombstone(session_id="lifted"), "memory/tombstones/lifted")
    vault.put((made.tombstone(session_id="broken")[0], b"---\nkind: tombstone\n"), "memory/tombstones")
    (vault / "signet-sync.toml").write_bytes(b'[projection]\nbudget_tokens = "many"\n[llm]\nprovider = "openai"\n')
    page = vault / "MEMORY.md"
    page.write_bytes(page.read_bytes().replace(b" the ", b" no ", 3))
    vault.put({"MEMORY.md": page.read_bytes()}, "agents/helper")
    return root


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
