"""Says in plain words what the index calls by its own terms: problems, levels of nodes, entities, events. Pure."""

import re
from collections.abc import Mapping
from typing import NamedTuple


class Cause(NamedTuple):
    """Why a file is a problem: a heading, and what that means."""

    title: str
    meaning: str


_NOT_READ = "Nothing of the file is searched or shown until it is valid again."
_KEPT = "Search and pages keep using the sealed text."
_ALONE = "The file is left alone and is not searched."
# By the code of a file's verdict.
CAUSES: Mapping[str, Cause] = {
    "mutated": Cause("Changed after sealing", f"What a session wrote was edited, cut or replaced. {_KEPT}"),
    "replaced": Cause("Replaced by a link or folder", f"In the place of a sealed file is something else. {_KEPT}"),
    "vanished": Cause("Missing", f"A sealed file was deleted, moved or renamed. {_KEPT}"),
    "frontmatter-missing": Cause("No fields at the beginning", f"The lines between --- are missing. {_NOT_READ}"),
    "frontmatter-invalid": Cause("Fields that cannot be read", f"The lines between --- are not valid. {_NOT_READ}"),
    "field-missing": Cause("A field is missing", f"The lines between --- are incomplete. {_NOT_READ}"),
    "field-invalid": Cause("A field has a wrong value", _NOT_READ),
    "hash-mismatch": Cause(
        "Text differs from its checksum", f"The file was edited or damaged before it was first seen. {_NOT_READ}"
    ),
    "kind-mismatch": Cause("Name and content differ in kind", f"The file was renamed. {_NOT_READ}"),
    "token-mismatch": Cause("Name of another session", f"The file was renamed. {_NOT_READ}"),
    "captured-at-mismatch": Cause("Name and content differ in time", f"The file was renamed. {_NOT_READ}"),
    "agent-invalid": Cause("Unusable name of an agent", _NOT_READ),
    "not-utf8": Cause("Not UTF-8 text", _NOT_READ),
    "too-large": Cause("Too large", "The file is larger than the setting reconcile.max_file_bytes allows."),
    "path-escape": Cause(
        "A link that leads outside", "A path named in the file leaves the workspace; it is not followed."
    ),
    "not-a-file": Cause("Not a regular file", "Links, folders and devices are never followed."),
    "unreadable": Cause("Cannot be read", "What was last read of the file stays in use."),
    "tombstone-invalid": Cause("Damaged record of a removal", "While it cannot be read, its name decides."),
    "conflict-copy": Cause(
        "A second version", "A sync service or file manager left a copy beside the file; it is not searched."
    ),
    "case-clash": Cause(
        "A name that differs in case only", "Some file systems take it for the file of ours; it is not searched."
    ),
    "foreign-name": Cause("Not one of our files", _ALONE),
    "temporary": Cause("A temporary file of another program", _ALONE),
    "tombstoned": Cause("Came back after its removal", "The file belongs to a session that was removed for good."),
}


def cause_of(code: str, message: str = "") -> Cause:
    """Returns the cause of a code; for one without an entry, what was reported."""
    return CAUSES.get(code) or Cause(code, message)


# ── nodes ──

_LEVELS = {"arc": "week", "epoch": "quarter", "chunk": "part of a transcript"}
_LEVEL = re.compile(rf"({'|'.join(_LEVELS)})(?= \d{{4}}-)")


def level(name: str) -> str:
    """Returns `week` for an arc, `quarter` for an epoch; other kinds as they are."""
    return _LEVELS.get(name, name)


def plain(label: str) -> str:
    """Returns the label of a node with its kind in plain words."""
    return _LEVEL.sub(lambda match: _LEVELS[match[1]], label, count=1) if _LEVEL.match(label) else label


# ── entities ──

KINDS: Mapping[str, str] = {"user": "user", "part": "part", "relationship": "relationship"}
# What an event did, before the name of the section.
_DONE = {
    "create": "created",
    "set": "wrote",
    "clear": "emptied",
    "undo": "took back an edit of",
    "resolve": "settled",
    "restate": "removed text from",
    "append": "added to",
    "append_item": "added an item to",
    "prune_item": "removed an item from",
    "deprecate": "marked as outdated",
    "status": "changed the status of",
    "pin": "pinned",
    "unpin": "unpinned",
    "lock": "locked",
    "unlock": "unlocked",
    "propose": "proposed a change of",
    "approve": "approved a change of",
    "reject": "rejected a change of",
    "schema": "changed the form of",
    "human_edit": "edited",
    "erase": "removed text from",
}


def done(op: str, file: str, section: str) -> str:
    """Returns what an event did: `added an item to open questions`, `wrote inbox in the notes`."""
    whole = "the notes" if file == "notes" else "the entity"
    what = f"{section.replace('-', ' ')}{' in the notes' if file == 'notes' else ''}" if section else whole
    return f"{_DONE.get(op, op.replace('_', ' '))} {what}"
