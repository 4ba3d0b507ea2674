"""Makes the sample workspace: sessions dated relative to now, one broken file, one conflict copy; and entities."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from contextlib import suppress
from importlib.resources import files as package_files
from typing import Any

from signet_sync.entities import operations
from signet_sync.errors import UsageError, WorkspaceError, reason
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


def write_sessions(workspace: Workspace, now_us: int) -> list[str]:
    """Ends every sample session as a harness would, and damages two files; returns the paths of the artifacts."""
    samples = tomllib.loads((package_files("signet_sync.admin") / "demo_sessions.toml").read_text("utf-8"))
    written: list[str] = []
    by_session = [_session(workspace, sample, now_us) for sample in samples["session"]]
    for paths in by_session:
        written += paths.values()
    _break(workspace.root, samples["broken"], by_session)
    _copy(workspace.root, samples["conflict"], by_session)
    return written


def _session(workspace: Workspace, sample: dict[str, Any], now_us: int) -> dict[str, str]:
    hours, minutes = sample["started"].split(":")
    start = (now_us // DAY - sample["days_ago"]) * DAY + (int(hours) * 3600 + int(minutes) * 60) * SECOND
    end = start + sample["minutes"] * 60 * SECOND
    who: dict[str, Any] = {
        **{name: sample.get(name) for name in ("agent_id", "session_id", "session_key", "project", "harness")},
        "captured_at": iso(end),
        "started_at": iso(start),
        "ended_at": iso(end),
    }
    paths: dict[str, str] = {}
    if "compaction" in sample:
        given = CompactionInput(**who, compaction=sample["compaction"])
        paths["compaction"] = sessions_operations.compact(workspace, given, now_us=end)["compaction"]
    answer = sessions_operations.end(
        workspace, SessionInput(**who, transcript=_spread_turns(sample["transcript"], start, end)), now_us=end
    )
    return paths | {kind: answer[kind] for kind in ("transcript", "summary", "manifest")}


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


def _break(root: str, broken: dict[str, Any], by_session: list[dict[str, str]]) -> None:
    path = os.path.join(root, by_session[broken["session"]]["transcript"])
    with open(path, "ab") as handle:
        handle.write(broken["append"].encode())


def _copy(root: str, conflict: dict[str, Any], by_session: list[dict[str, str]]) -> None:
    path = os.path.join(root, by_session[conflict["session"]]["summary"])
    with suppress(FileExistsError):
        shutil.copyfile(path, f"{path.removesuffix('.md')} ({conflict['label']}).md")


def make_entities(workspace: Workspace, now_us: int) -> list[str]:
    """Makes the sample entities of an indexed sample workspace; returns the paths of their profiles."""
    samples = tomllib.loads((package_files("signet_sync.admin") / "demo_entities.toml").read_text("utf-8"))
    return [_make_entity(workspace, sample, now_us) for sample in samples["entity"]]


def _make_entity(workspace: Workspace, sample: dict[str, Any], now_us: int) -> str:
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
    return made.path


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
