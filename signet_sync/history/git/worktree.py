"""Lists the workspace's files that belong in a history: regular files that no rule ignores, by names and stats only."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from signet_sync.errors import WorkspaceError
from signet_sync.formats.paths import OWN
from signet_sync.formats.snapshot import Found
from signet_sync.history.git import ignore
from signet_sync.storage import files
from signet_sync.storage.safe_paths import folder

RULES_LIMIT = 256 * 1024  # bytes of a `.gitignore`
LONGEST = 4095  # bytes of a path: git cannot check out a longer one

# What HFS+ ignores in comparisons of names: `.g\\u200cit` would be `.git` there.
_LEFT_OUT = dict.fromkeys((*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))


@dataclass(frozen=True, slots=True)
class WorktreeScan:
    """`files` by path; `odd` are paths that we do not read, with everything below them, and the reason.

    A path is relative, with `/`; bytes that are not UTF-8 are encoded as `os.fsdecode` does.
    """

    files: dict[str, os.stat_result] = field(default_factory=dict)
    odd: dict[str, str] = field(default_factory=dict)


def is_gits(name: str) -> bool:
    """Returns whether some file system treats this name as `.git`: no tree may contain it."""
    if name.isascii() and name[:2].lower() not in (".g", "gi"):
        return False
    plain = name.translate(_LEFT_OUT).rstrip(". ").lower()
    return plain in (".git", "git~1") or name.lower().startswith(".git:")


def scan(root: str, base: Sequence[ignore.Layer], *, any_case: bool) -> WorktreeScan:
    """Scans the workspace. `base` are rules with a lower priority than any `.gitignore`.

    Links are not followed, other repositories not entered, `.git` and `.signet` skipped. One scandir a folder and one
    stat an entry; only folders and `.gitignore` files are opened.
    """
    seen = WorktreeScan()
    pending: list[tuple[str, tuple[ignore.Layer, ...]]] = [("", tuple(base))]
    while pending:
        where, layers = pending.pop()
        try:
            found = _entries(root, where)
        except (OSError, WorkspaceError):
            seen.odd[where] = "unreadable"
            continue
        if where and ".git" in found:
            seen.odd[where] = "nested-repository"
            continue
        prefix = f"{where}/" if where else ""
        if ".gitignore" in found and (own := _rules(root, prefix, any_case)) is not None:
            layers = (own, *layers)
        for name, status in found.items():
            path = prefix + name
            is_folder = stat.S_ISDIR(status.st_mode)
            if is_gits(name) or path == OWN or (layers and ignore.ignored(path, is_folder, layers)):
                continue
            if len(path) > LONGEST // 4 and len(os.fsencode(path)) > LONGEST:
                seen.odd[path] = "too-deep"
            elif is_folder:
                pending.append((path, layers))
            elif stat.S_ISREG(status.st_mode):
                seen.files[path] = status
            else:
                seen.odd[path] = "not-a-file"
    return seen


def _entries(root: str, where: str) -> Mapping[str, os.stat_result]:
    found = {}
    with folder(root, where) as descriptor, os.scandir(descriptor) as entries:
        for entry in entries:
            try:
                found[entry.name] = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
    return found


def _rules(root: str, prefix: str, any_case: bool) -> ignore.Layer | None:
    found = files.read(root, f"{prefix}.gitignore", RULES_LIMIT)
    # A link or a pipe: no rules, as in git itself; the path is reported as `not-a-file`.
    return rules(prefix, found.raw, any_case=any_case) if isinstance(found, Found) else None


def rules(prefix: str, raw: bytes, *, any_case: bool) -> ignore.Layer | None:
    """Parses the rules in the bytes of a file."""
    return ignore.layer(prefix, os.fsdecode(raw), any_case=any_case)


def state_of(root: str, path: str) -> os.stat_result | None:
    """Returns the stat of a path, or None if nothing is there. Raises `OSError`, `WorkspaceError` if it is unknown."""
    where, _, name = path.rpartition("/")
    try:
        with folder(root, where) as descriptor:
            return os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None
