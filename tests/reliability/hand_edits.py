"""What people, editors and sync services do to the files of a vault, as functions of names and bytes."""

from __future__ import annotations

import json
import os
import time
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


def _in_place(path: Path, raw: bytes) -> None:
    """Truncates the file and writes it."""
    path.write_bytes(raw)


def _over_it(path: Path, raw: bytes) -> None:
    """Has the file open for a while, writes over what is there, then cuts off what is left; it must be there."""
    with open(path, "r+b", buffering=0) as file:
        time.sleep(0.0005)
        file.write(raw)
        file.truncate()


def _beside_and_over(path: Path, raw: bytes) -> None:
    """Writes a new file and gives it the name."""
    beside = path.with_name(f".{path.name[-40:]}.swp")
    beside.write_bytes(raw)
    os.replace(beside, path)


def _old_one_away(path: Path, raw: bytes) -> None:
    """As vim does: tries whether it may create, puts the old file aside, makes a new one, deletes the old one."""
    probe = path.with_name("4913")
    probe.touch()
    probe.unlink()
    away = path.with_name(f"{path.name}~")
    if path.exists():
        path.rename(away)
    path.write_bytes(raw)
    away.unlink(missing_ok=True)


def _in_halves(path: Path, raw: bytes) -> None:
    """Truncates, writes a half, is slow, and writes the other one."""
    with open(path, "wb", buffering=0) as file:
        file.write(raw[: len(raw) // 2])
        time.sleep(0.0005)
        file.write(raw[len(raw) // 2 :])


def _in_a_hundred_bits(path: Path, raw: bytes) -> None:
    """Written a hundred times within a moment."""
    with open(path, "wb", buffering=0) as file:
        for _ in range(99):
            file.write(b"x")
        file.seek(0)
        file.truncate()
        file.write(raw)


def _linked(path: Path, raw: bytes) -> None:
    """Published by a hard link, as we do it."""
    temporary = path.parent.parent / "unfinished"
    temporary.write_bytes(raw)
    path.unlink(missing_ok=True)
    os.link(temporary, path)
    temporary.unlink()


EDITORS: dict[str, Callable[[Path, bytes], None]] = {
    "in place": _in_place,
    "beside and over": _beside_and_over,
    "old one away": _old_one_away,
    "over it": _over_it,
    "in halves": _in_halves,
    "in a hundred bits": _in_a_hundred_bits,
    "linked": _linked,
}
SAVINGS = ("in place", "beside and over", "old one away")


def save(path: Path, raw: bytes, how: str = "in place") -> None:
    """Saves as an editor does, in a folder that may be new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    EDITORS[how](path, raw)


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
