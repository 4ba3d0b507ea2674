"""What people, editors and sync services do to the files of a vault, as functions of names and bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

# What a name becomes when two machines have written the same file, by whose hands.
CONFLICTS: dict[str, str] = {
    "Dropbox": "{stem} (Ada's conflicted copy 2026-03-29).md",
    "Dropbox, German": "{stem} (In Konflikt stehende Kopie von Ada 2026-03-29).md",
    "Dropbox, other letters": "{stem} (case conflict).md",
    "Google Drive": "{stem} (1).md",
    "Nextcloud": "{stem} (conflicted copy 2026-03-29 120000).md",
    "Obsidian Sync": "{stem} (Conflicted copy laptop 202603291200).md",
    "OneDrive": "{stem}-LAPTOP.md",
    "Resilio": "{stem}.Conflict.md",
    "Syncthing": "{stem}.sync-conflict-20260329-120000-ABCDEFG.md",
    "iCloud": "{stem} 2.md",
    "ownCloud": "{stem}_conflict-20260329-120000.md",
}


def conflict_name(name: str, service: str) -> str:
    """The name of the copy that a service makes of a file."""
    return CONFLICTS[service].format(stem=name.removesuffix(".md"))


def as_obsidian(raw: bytes) -> bytes:
    """The same values as Obsidian writes properties: other order, few quotes, no null, a key of its own."""
    return _rewritten(raw, lambda lines: sorted(map(_plain, lines)), "tags: [work]\n")


def as_a_linter(raw: bytes) -> bytes:
    """The same values in single quotes, backwards, with a date of its own."""
    return _rewritten(raw, lambda lines: [*map(_single, lines)][::-1], "modified: 2026-03-29T12:00:00\n")


def as_windows(raw: bytes) -> bytes:
    """The same text with the byte order mark and the line ends of another system."""
    return b"\xef\xbb\xbf" + raw.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def with_trailing_blanks(raw: bytes) -> bytes:
    """The same text with blanks that nobody sees at the end of its lines and of the file."""
    head, fence, body = raw.replace(b"\r\n", b"\n").partition(b"\n---\n")
    return head + fence + body.replace(b"\n", b" \t\n") + b"\n\n"


# Whoever saves a file so has changed no value of it.
RESAVINGS: dict[str, Callable[[bytes], bytes]] = {
    "obsidian": as_obsidian,
    "linter": as_a_linter,
    "windows": as_windows,
    "blanks": with_trailing_blanks,
    "unchanged": lambda raw: raw,
}


def save(path: Path, raw: bytes, how: str = "in place") -> None:
    """Saves as editors do: into the file, beside it and over it, or with the old one moved away first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if how == "in place":
        path.write_bytes(raw)
        return
    beside = path.with_name(f".{path.name[-40:]}.tmp")
    beside.write_bytes(raw)
    if how == "old one away" and path.exists():
        away = path.with_name(f"{path.name}~")
        path.rename(away)
        beside.rename(path)
        away.unlink()
    else:
        os.replace(beside, path)


SAVINGS = ("in place", "beside and over", "old one away")


def _rewritten(raw: bytes, order: Callable[[list[str]], list[str]], more: str) -> bytes:
    head, fence, body = raw.removeprefix(b"---\n").partition(b"---\n")
    if not (fence and raw.startswith(b"---\n")) or b"\r" in raw or more.encode() in raw:
        return raw  # it is of another hand, or of this one
    # A list under its key belongs to it.
    lines = head.decode().replace("\n  - ", "\0").splitlines()
    text = "\n".join(order(lines)).replace("\0", "\n  - ")
    return f"---\n{text}\n{more}---\n".encode() + body


def _plain(line: str) -> str:
    key, _, value = line.partition(": ")
    value = "" if value == "null" else value
    if value.startswith('"') and ": " not in value and value[1:2].isalpha():
        value = json.loads(value)
    return f"{key}: {value}".rstrip()


def _single(line: str) -> str:
    key, _, value = line.partition(": ")
    if value.startswith('"') and "\\" not in value:
        value = "'" + json.loads(value).replace("'", "''") + "'"
    return f"{key}: {value}".rstrip()
