"""Renders session notes: one small page a session, called by day and sentence, with properties that link its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from signet_sync.entities.documents import frontmatter_edit
from signet_sync.formats.file_names import readable_name
from signet_sync.formats.frontmatter import FrontmatterProblem, read, split
from signet_sync.formats.paths import session_notes_folder
from signet_sync.formats.session_log_rows import LedgerRow, Part
from signet_sync.formats.wikilinks import wikilink
from signet_sync.pages.session_log import newest_parts

ASPECTS = {"decisions": "decision", "blockers": "blocker"}

_NAME = 80  # characters of the sentence in a name
_BASE32 = b"abcdefghijklmnopqrstuvwxyz234567" * 8
_LINKED = ("summary", "transcript", "compaction", "manifest")
# The properties that we keep; a person's own keys beside them stay.
_OURS = ("aliases", "tags", "date", "project", "harness", *_LINKED, *ASPECTS)
_FENCES = "---\n---\n"


def mark_of(row: LedgerRow) -> str:
    """Returns the eight characters at the end of a note's name that stand for its session."""
    digest = sha256(f"{row.session_token} {row.session_id}".encode("utf-8", "replace")).digest()
    return digest[:8].translate(_BASE32).decode("ascii")


def path_of_note(row: LedgerRow) -> str:
    """Returns the path that a new note gets; later it keeps it, even if the sentence changes."""
    name = readable_name(row.sentence, _NAME) or "Session"
    return f"{session_notes_folder(row.agent_id)}/{row.day[:4]}/{row.day} {name} · {mark_of(row)}.md"


def properties(row: LedgerRow, parts: Sequence[Part], stated: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Returns the properties of a note; those that it lacks are None. `stated` has lists by property."""
    newest = newest_parts(parts)
    project = readable_name((row.project or "").rpartition("/")[2], _NAME)
    links = {kind: wikilink(newest[kind].source_path, kind) if kind in newest else None for kind in _LINKED}
    return {
        "aliases": [row.sentence],
        "tags": ["session"],
        "date": row.day,
        "project": project or None,
        **links,
        **{name: list(stated.get(name, ())) for name in ASPECTS},
    }


def text(row: LedgerRow, fields: Mapping[str, Any]) -> str:
    """Returns the generated text of a note: its title, then what it links."""
    links = " · ".join(str(fields[name]) for name in ("project", *_LINKED) if fields.get(name))
    return f"# {row.sentence}\n\n{links}"


def with_properties(data: bytes, fields: Mapping[str, Any]) -> bytes:
    """Returns a page with these properties at its top; keys of a person's, and what they wrote below, stay."""
    head, rest = _split(data)
    known = _fields(head)
    present = {key: value for key, value in fields.items() if value}
    gone = [key for key in _OURS if key in known and key not in present]
    return (frontmatter_edit.changed(head, known, present, gone) + rest).encode("utf-8", "surrogateescape")


def without_properties(data: bytes | None) -> bytes | None:
    """Returns a page without our properties; None if nothing is left."""
    if data is None:
        return None
    head, rest = _split(data)
    known = _fields(head)
    head = frontmatter_edit.changed(head, known, {}, [key for key in _OURS if key in known])
    left = (rest.lstrip("\n") if head == _FENCES else head + rest).encode("utf-8", "surrogateescape")
    return left if left.strip() else None


def _split(data: bytes) -> tuple[str, str]:
    """Returns the frontmatter of a page with its fences, empty ones if it has none, and the rest."""
    whole = data.decode("utf-8", "surrogateescape")
    try:
        _, body = split(whole)
    except FrontmatterProblem:
        return _FENCES, whole
    return whole[: len(whole) - len(body)], body


def _fields(head: str) -> Mapping[str, Any]:
    try:
        return read(split(head)[0])
    except FrontmatterProblem:
        return {}
