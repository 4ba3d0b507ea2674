"""Makes the sample workspace: sessions dated relative to now, one broken file, one conflict copy; and entities."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from importlib.resources import files as package_files
from typing import Any

from signet_sync.entities import operations
from signet_sync.errors import UsageError, WorkspaceError, reason
from signet_sync.formats.artifact import SESSION_FIELDS
from signet_sync.formats.paths import DEFAULT_AGENT, MEMORY
from signet_sync.formats.timestamps import DAY, SECOND, iso
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import CompactionInput, SessionInput
from signet_sync.storage import state_dir, writing
from signet_sync.sync.workspace import Workspace

MARKER = ".signet-demo"


def is_demo(root: str) -> bool:
    """Returns whether a folder is that of an earlier demo."""
    return os.path.isfile(os.path.join(root, MARKER))


def make(root: str) -> None:
    """Creates the folder of the sample workspace.

    Raises `UsageError` for a folder that is neither empty nor an earlier demo; an earlier one is replaced.
    """
    if os.path.isdir(root) and os.listdir(root):
        if not is_demo(root):
            raise UsageError(
                "the folder is not empty and not an earlier demo",
                path=root,
                hint="give another: signet-sync demo PATH",
                code="not-empty",
            )
        shutil.rmtree(state_dir.locate(root).path, ignore_errors=True)
        shutil.rmtree(root)
    try:
        os.makedirs(root, mode=0o700, exist_ok=True)
    except OSError as error:
        why = "it is a file" if os.path.isfile(root) else reason(error)
        hint = "name another folder: signet-sync demo PATH"
        raise WorkspaceError(f"the folder of the demo cannot be created: {why}", path=root, hint=hint) from None
    writing.create_once(root, MARKER, b"A demo workspace of signet-sync; delete it whenever you like.\n")


def write_sessions(workspace: Workspace, now_us: int) -> None:
    """Ends every sample session as a harness would, breaks a transcript, and puts a copy beside a summary."""
    samples = tomllib.loads((package_files("signet_sync.admin") / "demo_sessions.toml").read_text("utf-8"))
    by_session = [_session(workspace, sample, now_us) for sample in samples["session"]]
    broken, conflict = samples["broken"], samples["conflict"]
    with open(os.path.join(workspace.root, by_session[broken["session"]]["transcript"]), "ab") as handle:
        handle.write(broken["append"].encode())
    summary = os.path.join(workspace.root, by_session[conflict["session"]]["summary"])
    shutil.copyfile(summary, f"{summary.removesuffix('.md')} ({conflict['label']}).md")


def _session(workspace: Workspace, sample: dict[str, Any], now_us: int) -> dict[str, Any]:
    """Ends a session; returns the answer, which names its files."""
    hours, minutes = sample["started"].split(":")
    start = (now_us // DAY - sample["days_ago"]) * DAY + (int(hours) * 3600 + int(minutes) * 60) * SECOND
    end = start + sample["minutes"] * 60 * SECOND
    who: dict[str, Any] = {
        **{name: sample.get(name) for name in SESSION_FIELDS},
        "captured_at": iso(end),
        "started_at": iso(start),
        "ended_at": iso(end),
    }
    if "compaction" in sample:
        sessions_operations.write(workspace, CompactionInput(**who, compaction=sample["compaction"]), now_us=end)
    given = SessionInput(**who, transcript=_spread_turns(sample["transcript"], start, end))
    return sessions_operations.write(workspace, given, now_us=end)


def _spread_turns(text: str, start: int, end: int) -> str:
    """Returns a conversation in the format of harness transcripts, its turns spread over its time."""
    turns = re.split(r"^(User|Assistant): ", text.strip(), flags=re.MULTILINE)[1:]
    spoken = list(zip(turns[::2], turns[1::2], strict=True))
    step = (end - start) // len(spoken)
    return "\n".join(
        f"## {speaker} · {iso(start + number * step)}\n\n{_time_calls(words.strip(), iso(start + number * step))}\n"
        for number, (speaker, words) in enumerate(spoken)
    )


def _time_calls(words: str, at: str) -> str:
    """Gives the calls of tools in an answer their time, as transcripts have it."""
    return re.sub(r"^- `(\w+)` (.+)$", rf"- `\1` · {at} · `\2`", words, flags=re.MULTILINE)


def make_entities(workspace: Workspace, now_us: int) -> None:
    """Makes the sample entities of an indexed sample workspace."""
    samples = tomllib.loads((package_files("signet_sync.admin") / "demo_entities.toml").read_text("utf-8"))
    for sample in samples["entity"]:
        _make_entity(workspace, sample, now_us)


def _make_entity(workspace: Workspace, sample: dict[str, Any], now_us: int) -> None:
    made = operations.create(
        workspace,
        DEFAULT_AGENT,
        sample["kind"],
        sample["name"],
        relation=sample.get("type"),
        between=sample.get("between", ()),
        now_us=now_us,
    )
    for section, text in sample["sections"].items():
        operations.set_section(workspace, DEFAULT_AGENT, made.id, section, text, now_us=now_us)
    for item in sample.get("items", ()):
        operations.append(workspace, DEFAULT_AGENT, made.id, item["section"], item["text"], now_us=now_us)
    for item in sample.get("evidence", ()):
        source = _line(workspace.root, item["says"])
        operations.append(workspace, DEFAULT_AGENT, made.id, "evidence", item["why"], evidence=source, now_us=now_us)
    for section in sample.get("pins", ()):
        operations.guard("pin", workspace, DEFAULT_AGENT, made.id, section, now_us=now_us)


def _line(root: str, words: str) -> str:
    """Returns `PATH#LINE` of the newest summary with these words, else of the newest transcript. Names sort by time."""
    names = sorted(os.listdir(os.path.join(root, MEMORY)), key=lambda name: (name.endswith("--summary.md"), name))
    for name in reversed(names):
        if name.endswith(("--summary.md", "--transcript.md")):
            with open(os.path.join(root, MEMORY, name), encoding="utf-8") as handle:
                for number, line in enumerate(handle, 1):
                    if words in line and not line.startswith("memory_sentence"):
                        return f"{MEMORY}/{name}#{number}"
    raise LookupError(f"no sample says {words!r}")
