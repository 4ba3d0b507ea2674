"""Small made-up transcripts, grown turn by turn as a harness would, and what capturing them needs around it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from workbench import Answer, Vault, spawn

from signet_sync.formats.timestamps import instant_of

SESSION = "7a1b0c00-0000-4000-8000-000000000001"
PROJECT = "/home/ada/lantern"
START = datetime(2026, 3, 20, 10, tzinfo=UTC)
SECRET = "ghp_7kQ2mX9vB4nR8tW3yZ6cF1hJ5pL0sD2gA8eK"


def at(second: float) -> str:
    """So many seconds after ten o'clock on 20 March 2026."""
    return (START + timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def micros(second: float) -> int:
    """The same as microseconds since 1970 UTC."""
    return instant_of(START + timedelta(seconds=second))


class TranscriptBuilder:
    """A transcript of Claude Code; every method appends one record, `second` is when."""

    harness = "claude-code"

    def __init__(self, folder: Path, session: str = SESSION, project: str = PROJECT) -> None:
        self.session = session
        self.project = project
        self.path = folder / f"{session}.jsonl"
        self.tip: str | None = None
        self._number = 0
        folder.mkdir(parents=True, exist_ok=True)

    def record(self, kind: str, second: float, **more: Any) -> str:
        self._number += 1
        uuid = f"00000000-0000-4000-9000-{self._number:012d}"
        shared = {
            "type": kind, "uuid": uuid, "parentUuid": self.tip, "sessionId": self.session, "cwd": self.project,
            "timestamp": at(second), "isSidechain": False,
        }  # fmt: skip
        self.raw(json.dumps(shared | more).encode() + b"\n")
        self.tip = uuid
        return uuid

    def raw(self, line: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(line)

    def user(self, text: str, second: float, **more: Any) -> str:
        return self.record("user", second, message={"role": "user", "content": text}, **more)

    def assistant(self, text: str, second: float) -> str:
        return self.record(
            "assistant", second, message={"role": "assistant", "content": [{"type": "text", "text": text}]}
        )

    def call(self, command: str, second: float, call: str = "c1") -> str:
        block = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}
        return self.record("assistant", second, message={"role": "assistant", "content": [block]})

    def result(self, text: str, second: float, call: str = "c1") -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        return self.record("user", second, message={"role": "user", "content": [block]})

    def compacted(self, summary: str, second: float) -> None:
        self.record("system", second, subtype="compact_boundary", compactMetadata={"trigger": "manual"})
        preamble = "This session is being continued from a previous conversation that ran out of context.\n\n"
        self.user(f"{preamble}Summary:\n{summary}", second, isCompactSummary=True)

    def exchange(self, number: int, second: float | None = None) -> None:
        """A question and its answer, with words of their own."""
        second = 10 * number if second is None else second
        self.user(f"Question {number}: why does question{number}word of src/queue.py wait?", second)
        self.assistant(f"Answer {number}: answer{number}word bounds the retry loop.", second + 1)

    def idle(self, seconds: float = 3600) -> None:
        """The file looks as if nobody had written to it for so long."""
        moment = time.time() - seconds
        os.utime(self.path, (moment, moment))

    def payload(self, event: str = "SessionEnd", **more: Any) -> bytes:
        document = {
            "session_id": self.session, "transcript_path": str(self.path), "cwd": self.project,
            "hook_event_name": event,
        }  # fmt: skip
        return json.dumps(document | more).encode()


def claude(*said: str, session: str, project: str, day: str = "2026-03-28") -> str:
    """What Claude Code writes where a person and the agent say this in turn, a second apart, from ten o'clock on."""
    records = [
        {
            "type": (role := ("user", "assistant")[number % 2]), "uuid": f"u{number}", "sessionId": session,
            "parentUuid": f"u{number - 1}" if number else None, "cwd": project,
            "timestamp": f"{day}T10:00:{number:02d}.000Z", "message": {"role": role, "content": text},
        }
        for number, text in enumerate(said)
    ]  # fmt: skip
    return "".join(json.dumps(record) + "\n" for record in records)


def fire(vault: Vault, talk: TranscriptBuilder, event: str = "SessionEnd", **given: Any) -> Answer:
    """The hook, as the harness runs it; `environ` adds to its environment, all else goes into the payload."""
    environ = given.pop("environ", {})
    return spawn(
        *("--workspace", vault.root, "hook", talk.harness, "--strict"),
        input=talk.payload(event, **given),
        environ=environ,
    )


def fired(vault: Vault, talk: TranscriptBuilder, event: str = "SessionEnd", **given: Any) -> None:
    """The hook, which takes what it is told."""
    answer = fire(vault, talk, event, **given)
    assert (answer.code, answer.out, answer.err) == (0, "", ""), answer


def import_(vault: Vault, *arguments: str | os.PathLike[str], code: int = 0) -> Any:
    """`import --json` in this process; gives the document."""
    answer = vault.call("import", "--json", *map(os.fspath, arguments))
    assert answer.code == code, answer
    return answer.json


def plugged_in(vault: Vault, *harnesses: str, since: str = "2020-01-01T00:00:00.000Z") -> None:
    """As if hooks of these harnesses had been installed for this workspace."""
    vault.state.mkdir(parents=True, exist_ok=True)
    (vault.state / "harnesses.json").write_text(json.dumps({name: {"since": since} for name in harnesses}))


def store(home: Path) -> Path:
    """The folder in which Claude Code keeps a project's transcripts."""
    return home / ".claude" / "projects" / "-home-ada-lantern"


def worker(vault: Vault, *, sweep: bool = False, **environ: str) -> Answer:
    """The worker in this process, until it ends."""
    with pytest.MonkeyPatch.context() as machine:
        for name, value in environ.items():
            machine.setenv(name, value)
        return vault.call("session", "take-spool", *(["--sweep"] if sweep else []))


def provider(path: Path, script: str, *, timeout: float = 120.0) -> None:
    """The user's settings name a program as the language model; `script` is Python, the prompt in `prompt`."""
    program = path / "model.py"
    program.write_text(f"import sys, time\nprompt = sys.stdin.read()\n{script}\n")
    settings = Path(os.environ["SIGNET_CONFIG"])
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(
        f'[llm]\nprovider = "command"\ncommand = ["{sys.executable}", "{program}"]\ntimeout = {timeout}\n'
    )


def turns_of(text: str) -> Iterator[str]:
    """The lines of a transcript's body that hold words, headings left out."""
    return (line for line in text.splitlines() if line.strip() and not line.startswith("## "))
