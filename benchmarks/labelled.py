"""Sessions that somebody labelled: as transcripts, in a workspace, and compared by the keys of their labels.

A file a session: `id`, `harness`, `project`, `started_at`, `ended_at`, `turns` (`role` is `user`, `assistant` or
`tool`, with `text`, `at`, and for a tool `tool`: `name`, `input`, `output`), `gold` and `questions` (`q`,
`session_ids`). `gold` has `outcome_keys`, `status`, lists of items by kind (`text`, `keys`), `optional_items` and
`not_items` (passages that look like items and are none). Keys are groups of alternatives; a text has an item that hits
a key of each group.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import unicodedata
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

INSIDE = 12  # characters from which on an item may lie inside a passage that is none

Record = dict[str, Any]


def records(session: Record) -> Iterator[Record]:
    """A session as the lines of a transcript of Claude Code."""
    parent: str | None = None
    made = 0

    def record(speaker: str, content: object, at: str) -> Record:
        nonlocal parent, made
        made += 1
        own = str(uuid.uuid5(uuid.UUID(session["id"]), str(made)))
        line = {
            "type": speaker, "uuid": own, "parentUuid": parent, "sessionId": session["id"], "timestamp": at,
            "cwd": session["project"], "message": {"role": speaker, "content": content},
        }  # fmt: skip
        parent = own
        return line

    for place, turn in enumerate(session["turns"]):
        if turn["role"] == "user":
            yield record("user", turn["text"], turn["at"])
        elif turn["role"] == "assistant":
            yield record("assistant", [{"type": "text", "text": turn["text"]}], turn["at"])
        else:
            tool, call = turn["tool"], f"toolu_{place}"
            use = {"type": "tool_use", "id": call, "name": tool["name"], "input": tool["input"]}
            yield record("assistant", [use], turn["at"])
            result = {"type": "tool_result", "tool_use_id": call, "content": tool["output"] or ""}
            yield record("user", [result], turn["at"])


class Workspace(NamedTuple):
    """A workspace, and the environment in which it is the usual one."""

    root: Path
    environment: Mapping[str, str]

    def run(self, *command: str, given: str = "") -> None:
        """Runs a command on it."""
        called = [sys.executable, "-m", "signet_sync", *command]
        subprocess.run(called, env=self.environment, check=True, stdout=subprocess.DEVNULL, input=given.encode())

    def take(self, sessions: Sequence[Record]) -> None:
        """Imports sessions."""
        with tempfile.TemporaryDirectory(dir=self.root.parent) as source:
            for session in sessions:
                lines = "".join(json.dumps(record) + "\n" for record in records(session))
                Path(source, f"{session['id']}.jsonl").write_text(lines, "utf-8")
            self.run("import", "claude-code", source)


@contextmanager
def workspace(sessions: Sequence[Record]) -> Iterator[Workspace]:
    """A workspace into which the sessions were imported."""
    with tempfile.TemporaryDirectory() as folder:
        made = workspace_in(Path(folder))
        made.run("init")
        if sessions:
            made.take(sessions)
        yield made


def workspace_in(folder: Path) -> Workspace:
    """The workspace of a folder, which also holds its state and is its home; nothing is written."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SIGNET_", "XDG_"))}
    root = folder / "workspace"
    own = {"HOME": str(folder), "SIGNET_STATE": str(folder / "state"), "SIGNET_WORKSPACE": str(root)}
    return Workspace(root, {**kept, **own})


def sessions_of(folder: Path) -> list[Record]:
    """The sessions of a folder, by file name."""
    read = (json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json")))
    return [session for session in read if isinstance(session, dict) and "gold" in session]


# ── the keys ──


def plain(text: str) -> str:
    """A text as it is compared: NFKC, without case, with single blanks, without the marks of emphasis and code."""
    return " ".join(unicodedata.normalize("NFKC", re.sub(r"[`*]", "", text)).casefold().split())


def holds(text: str, groups: Sequence[Sequence[str]]) -> bool:
    """Whether a text has a key of each group; one of digits only stands alone."""
    told = plain(text)
    return bool(groups) and all(any(_has(told, plain(key)) for key in group) for group in groups)


def _has(told: str, key: str) -> bool:
    if key.isdigit():
        return re.search(rf"(?<!\d)(?<!\d[.,]){key}(?![.,]?\d)", told) is not None
    return bool(key) and key in told


def is_junk(text: str, passages: Sequence[str]) -> bool:
    """Whether a text holds a passage that is no item, or lies in one."""
    told = plain(text)
    return any(one and (one in told or (len(told) >= INSIDE and told in one)) for one in map(plain, passages))


def share(part: int, whole: int) -> str:
    """A share as a percentage; a dash where there is nothing to share."""
    return f"{100 * part / whole:5.1f} %" if whole else "      -"
