"""Writes a past session as Codex keeps it."""

import os
from typing import Any

from signet_sync.capture.harnesses.codex import FACTS
from signet_sync.capture.harnesses.restored import PastSession, Restored
from signet_sync.host.harness_settings.facts import Environ

_BLOCKS = {"user": "input_text", "assistant": "output_text"}


def restore(session: PastSession, environ: Environ) -> Restored:
    """Returns what Codex resumes, as a rollout of the day on which the session began."""
    began = session.turns[0].at
    meta: dict[str, Any] = {
        "id": session.id,
        "timestamp": began,
        "cwd": os.path.realpath(session.folder),
        "source": "cli",
    }
    meta |= {"originator": "codex_cli_rs", "cli_version": "0.100.0", "model_provider": None}
    records = [{"timestamp": began, "type": "session_meta", "payload": meta}]
    for turn in session.turns:
        content = [{"type": _BLOCKS[turn.role], "text": turn.text}]
        said = {"type": "message", "role": turn.role, "content": content}
        records.append({"timestamp": turn.at, "type": "response_item", "payload": said})
        if turn.role == "user":
            shown = {"type": "user_message", "message": turn.text, "kind": "plain"}  # its list of sessions reads these
            records.append({"timestamp": turn.at, "type": "event_msg", "payload": shown})
    name = f"rollout-{began[:19].replace(':', '-')}-{session.id}.jsonl"
    path = os.path.join(FACTS.homes(environ)[0], "sessions", *began[:10].split("-"), name)
    return Restored(path, records, f"codex resume {session.id}")
