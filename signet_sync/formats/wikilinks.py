"""Reads and writes Obsidian wikilinks with paths relative to the workspace root."""

from __future__ import annotations

import re
from collections.abc import Sequence

from signet_sync.formats.lazy_pattern import late

_LINK = late(r"\[\[([^\[\]\n|#^]+)(?:[#^][^\[\]\n|]*)?(?:\|([^\[\]\n]*))?\]\]")
_LINKS = late(r"(?:\[\[[^\[\]\n]+\]\] *)+")
_ARTIFACT_TARGET = late(r"--[a-z2-7]{16}--(?:summary|transcript|compaction|manifest)(?:\.md)?$", re.ASCII)


def wikilink(path: str, label: str | None = None) -> str:
    """Returns `[[path|label]]`; the path is relative to the workspace."""
    return f"[[{path}|{label}]]" if label else f"[[{path}]]"


def add_links(body: str, links: Sequence[tuple[str, str]]) -> str:
    """Adds links to a manifest's body: after a line of nothing but links, else at its end."""
    present = set(targets(body))
    added = " ".join(wikilink(path, kind) for kind, path in links if path not in present)
    if not added:
        return body
    lines = body.split("\n")
    for number, line in enumerate(lines):
        if _LINKS.fullmatch(line):
            lines[number] = f"{line.rstrip()} {added}"
            return "\n".join(lines)
    return f"{body.rstrip()}\n\n{added}\n" if body.strip() else added


def targets(text: str) -> list[str]:
    """Lists the targets of all wikilinks in a text, without heading, block or label, in order."""
    if "[[" not in text:
        return []
    return [match[1].strip() for match in _LINK.finditer(text)]


def stray_artifact_links(text: str) -> list[str]:
    """Lists targets that name an artifact, but not relative to the workspace (`memory/…`)."""
    return [t for t in targets(text) if _ARTIFACT_TARGET.search(t) and not t.startswith("memory/")]


def leaves_workspace(path: str) -> bool:
    """Returns whether a link field, read as a relative path, could name something outside the workspace.

    Absolute paths, drive letters, UNC, `~`, URLs, NUL and any `..`; percent-encoded characters count as themselves.
    """
    text = path.strip()
    if not text:
        return False
    if "\0" in text:
        return True
    if "%" in text:
        from urllib.parse import unquote  # slow to load, and hardly any link needs it

        text = unquote(text)
    lowered = text.lower().replace("\\", "/")
    if "\0" in lowered:
        return True
    if lowered.startswith(("/", "~")) or re.match(r"[a-z][a-z0-9+.-]*:", lowered):
        return True
    return any(part == ".." for part in lowered.split("/"))
