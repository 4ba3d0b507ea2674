"""Gives a session back to a harness: writes our transcripts in its own format, so that it can be resumed."""

import json
import os
import re
import uuid
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from signet_sync.capture import store
from signet_sync.capture.harnesses import registry
from signet_sync.capture.harnesses.texts import IMAGE
from signet_sync.errors import UsageError
from signet_sync.formats.ids import UUID
from signet_sync.formats.lazy_pattern import late
from signet_sync.storage.database.connection import Database
from signet_sync.storage.durable import publish
from signet_sync.sync.store import sessions
from signet_sync.sync.store.texts import text_at
from signet_sync.text.chunking import HEAD

_HEADS = late(rf"^{HEAD}", re.MULTILINE | re.ASCII)
_DIVIDER = "***"  # above a compaction


def restore(database: Database, agent_id: str, session: str, harness: str, folder: str) -> dict[str, Any]:
    """Writes a session to where a harness ("": its own) keeps its sessions, as one of its project, else of `folder`.

    Raises `UsageError` if that is there already, and for a harness that takes none.
    """
    ref = sessions.one(database, agent_id, session)
    files = sessions.files(database, ref)
    own, project = files[-1].harness or "", files[-1].project or ""
    harness = harness or own
    write = registry.restorer(harness)
    texts = [text_at(database, file.source_path) for file in files if file.source_kind == "transcript"]
    turns = turns_of(texts)
    if write is None or not turns:
        what = f"the session has no words for {harness or 'a harness'}" if write is not None else "it takes none"
        able = ", ".join(name for name in registry.names() if registry.restorer(name) is not None)
        raise UsageError(what, hint=f"sessions are restored to {able}: --to-harness NAME", code="not-restorable")
    same = harness == own and UUID.fullmatch(ref.session_id) is not None
    session_id = ref.session_id if same else str(uuid.uuid5(uuid.NAMESPACE_URL, f"{agent_id}/{ref.session_id}"))
    folder = project if os.path.isdir(project) else folder
    place, records, command = write(session_id, os.path.realpath(folder), turns)
    home = registry.facts(harness).own(os.environ)
    made = os.path.join(home, place)
    held = [path for _, path, _ in store.sources(database, agent_id, {ref.session_id}, None) if same]
    # Codex looks for it where its own list of sessions says.
    kept = os.path.realpath(os.path.join(home, registry.facts(harness).folders[0]))
    path = next((one for one in held if os.path.realpath(one).startswith(f"{kept}/")), made)
    for one in (path, made, *held):
        if os.path.lexists(one):
            hint = f"{command} continues it" if one == path else "the harness itself can resume it"
            raise UsageError(f"the session is there already: {one}", hint=hint, code="exists")
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    os.close(publish(path, "".join(f"{json.dumps(one)}\n" for one in records).encode()))
    said = "\n".join(text for _, _, text in turns)
    return {
        "session_id": session_id,
        "harness": harness,
        "path": path,
        "command": command,
        "folder": folder,
        "turns": len(turns),
        "redacted": said.count("[REDACTED:"),
        "images": said.count(IMAGE),
        "cut": said.count(" characters left out"),
    }


def turns_of(transcripts: Iterable[str]) -> list[tuple[str, str, str]]:
    """Returns the person's words, and between them the agent's with its calls and what these gave back.

    Each turn is the role `user` or `assistant`, the time (ISO 8601) and the text.
    """
    found: list[tuple[str, str, list[str]]] = []
    for text in transcripts:
        heads = list(_HEADS.finditer(text))
        for head, after in zip_longest(heads, heads[1:]):
            said = text[head.end() : after.start() if after else None].strip().removesuffix(_DIVIDER).strip()
            if head["role"] in ("Harness", "Compaction"):
                continue
            if head["tool"]:
                said = f"- {head['sub'] or ''}{head['tool']} {said}"
            role = "user" if head["role"] == "User" else "assistant"
            if said and (role == "user" or not found or found[-1][0] == "user"):
                found.append((role, head["at"], [said]))
            elif said:
                found[-1][2].append(said)
    return [(role, at, "\n\n".join(parts)) for role, at, parts in found]
