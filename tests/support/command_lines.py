"""One line for every command of the registry, and a vault in which each of them has something to do.

A command without a line here fails `tests/cli/test_every_command.py`, which holds each to what holds for all.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from other_memories import lay
from session_inputs import end
from transcript_builder import claude
from workbench import NOW, Answer, Vault, cast, numbered, path_of

from signet_sync.cli.main import group

Words = tuple[str, ...]
WHO: dict[str, object] = {
    "agent_id": "default", "session_key": "agent:main/one", "project": "/home/ada/lantern", "harness": "codex",
    "captured_at": "2026-03-28T12:00:00.000Z", "started_at": None, "ended_at": None, "idempotency_key": "once",
    "memory_sentence": "Bounded the retry loop of src/queue.py in lantern so that the queue drains in the end.\n",
}  # fmt: skip
ENDING = WHO | {
    "session_id": "5e55e0d0-0000-4000-8000-000000000001",
    "transcript": "## User\n\nBound the loop of src/queue.py.\n",
    "transcript_is": "whole",
    "summary": "# Queue\n\n- lantern bounds the loop of src/queue.py.\n",
}
COMPACTION = WHO | {
    "session_id": "5e55e0d0-0000-4000-8000-000000000002",
    "compaction": "# Queue\n\n- The retry loop of src/queue.py ends.\n",
}
TALK = "5e55e0d0-0000-4000-8000-000000000003"
TURN = {"turn": 0, "role": "user", "text": "Does the queue drain?\n", "at": NOW}
# What each event of a harness says that a job of the spool keeps.
_EVENT = {"session_id": "h1", "cwd": "/home/ada", "transcript_path": "{folder}/transcript.jsonl"}
HOOKS = {
    "prompt": _EVENT | {"hook_event_name": "UserPromptSubmit", "prompt": "Why does it wait?\n"},
    "compaction": _EVENT | {"hook_event_name": "PostCompact", "trigger": "auto", "compact_summary": "# Queue\n"},
    "end": _EVENT | {"hook_event_name": "SessionEnd", "reason": "other"},
}


@dataclass(frozen=True)
class Line:
    """What follows the command's name, and its input; `{name}` is filled in with what `note` was given.

    `reads`: it writes nothing at all. `serves`: it ends only when it is told to, so that no line is run.
    """

    words: str = ""
    given: Mapping[str, object] | None = None
    reads: bool = False
    serves: bool = False

    def arguments(self, known: dict[str, str]) -> list[str]:
        """The words with what is known of the vault."""
        return [word.format(**known) for word in self.words.split()]

    def input(self, known: dict[str, str]) -> bytes:
        """The input as a line of JSON."""
        if self.given is None:
            return b""
        text = json.dumps(self.given)
        for name, value in known.items():
            text = text.replace(f"{{{name}}}", value)
        return text.encode() + b"\n"


def reads(words: str = "") -> Line:
    """A line that writes nothing."""
    return Line(words, reads=True)


SERVES = Line(serves=True)
COMMAND_LINES: dict[str, Line] = {
    "setup": Line("--yes --no-service"),
    "init": Line("{beside}"),
    "demo": Line("{beside} --yes"),
    "run": SERVES,
    "reindex": Line("--full"),
    "check": reads(),
    "render": reads(),
    "status": reads(),
    "recall": Line("lantern"),
    "open": Line("{session}"),
    "expand": Line("{memory}"),
    "violations accept": Line("{changed} --reason mine"),
    "violations list": reads(),
    "violations restore": Line("{changed}"),
    "remove": Line("{session} --reason asked --yes --quoting keep"),
    "redact": Line("{other} --reason asked --yes"),
    "checkpoint": Line("noted"),
    "history": reads(),
    "history close-sessions": Line(),
    "history forget": Line("--yes"),
    "hook": Line("claude-code --strict", HOOKS["prompt"]),
    "context": Line(),
    "handoff": reads("{session}"),
    "restore": Line("{session} --to-harness claude-code"),
    "remember": Line("Ada-trims-the-wick"),
    "note": Line("Next: oil the door"),
    "forget": Line("{memory}"),
    "pin": Line("{memory}"),
    "statements done": Line("{statement}"),
    "statements withdraw": Line("{statement}"),
    "statements keep": Line("{statement}"),
    "statements list": reads(),
    "dream": Line(),
    "entity create": Line("part Perfectionist"),
    "entity show": reads("{entity}"),
    "entity set": Line("{entity} role --text It-guards."),
    "entity append": Line("{entity} highlights --text It-stops."),
    "entity prune": Line("{entity} highlights 1 --reason old"),
    "entity status": Line("{entity} resting"),
    "entity protect": Line("lock {entity} role"),
    "entity review": Line("approve {proposal}"),
    "entity log": reads("{entity}"),
    "entity check": reads("{entity}"),
    "entity undo": Line("{edit}"),
    "fleet check": reads("{workspace} --workers 1"),
    "mcp": SERVES,
    "ui": SERVES,
    "backup create": Line("{folder}/new.backup"),
    "backup list": reads(),
    "backup restore": Line("{folder}/file.backup --yes"),
    "session compact": Line("--input -", COMPACTION),
    "session end": Line("--input -", ENDING),
    "session take-spool": Line(),
    "transcript append": Line("--session-key live", TURN),
    "hooks install": Line("claude-code"),
    "hooks status": reads(),
    "hooks uninstall": Line("claude-code"),
    "import": Line("claude-code {folder}/transcript.jsonl"),
    "migrate": Line("claude-mem {folder}/claude-mem.db"),
    "service install": SERVES,
    "service uninstall": SERVES,
    "eject": Line("--yes"),
    "logs": reads(),
    "settings": Line("watch.mode off"),
    "fleet report": SERVES,  # needs shares: tests/fleet/test_fleet_query.py
    "doctor": Line(),
    "fleet share": Line("--at {folder}/tables"),
    "fleet search": SERVES,  # as above
    "fleet remove": Line("hlsgdojfn5rbswr6 --undo --at {folder}/tables"),
}


def leaves(
    command: click.Command = group, words: Words = (), *, hidden: bool = True
) -> Iterator[tuple[Words, click.Command]]:
    """Every command that does something, with the words that call it."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    if command.invoke_without_command and words:
        yield words, command
    context = click.Context(command, info_name=words[-1] if words else "signet-sync")
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        if below is not None and (hidden or not below.hidden):
            yield from leaves(below, (*words, name), hidden=hidden)


EVERY: dict[str, click.Command] = {" ".join(words): command for words, command in leaves()}


def run(vault: Vault, name: str, *more: str, line: Line | None = None, folder: Path | None = None) -> Answer:
    """Runs the line of a command."""
    line = line or COMMAND_LINES[name]
    known = json.loads((vault.root.parent / "known.json").read_text())
    above = vault.root.parent
    known |= {"beside": str(above / "beside"), "folder": str(above), "workspace": str(vault.root)}
    given = line.input(known)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(vault.root.parent)
        return vault.call(*name.split(), *line.arguments(known), *more, given=given)


def note(vault: Vault, **known: str) -> None:
    """Notes what the lines are filled in with: two sessions, a memory, entities, a proposal, a changed artifact."""
    (vault.root.parent / "known.json").write_text(json.dumps(known))


def furnish(vault: Vault) -> None:
    """Sessions of others and of us, a change of a sealed file, memories, entities, live turns, a history."""
    folder = vault.root.parent
    Path(os.environ["SIGNET_CONFIG"]).parent.mkdir(parents=True, exist_ok=True)
    Path(os.environ["SIGNET_CONFIG"]).write_text("[history]\nenabled = true\n")
    (folder / "home").mkdir(exist_ok=True)
    for number in (1, 2, 3):
        vault.session(number)
    vault.session(4, agent_id="scout")
    at = ("--now", NOW)
    (vault / "MEMORY.md").write_text("# What I wrote myself\n")
    (vault / "notes.md").write_text("of a person\n")
    vault.reindex()
    before = {"session_id": "5e55e0d0-0000-4000-8000-000000000009", "session_key": None, "idempotency_key": "before"}
    end(vault, **ENDING | before | {"captured_at": "2026-03-27T12:00:00.000Z"})
    memory = vault.call("remember", "The lantern queue is drained at night.", "--json", *at).json["id"]
    vault.call("pin", memory)
    for query in ("lantern", "queue", "night"):
        vault.call("recall", query)
    entity = vault.call("entity", "create", "part", "Critic", "--json", *at).json["id"]
    read = ("--json", *at)
    edit = vault.call("entity", "append", entity, "highlights", "--text", "It stops at four.", *read).json["token"]
    vault.call("entity", "protect", "lock", entity, "role", *at)
    proposal = vault.call("entity", "set", entity, "role", "--propose", "--text", "It waits.", *read).json["event_id"]
    vault.call("entity", "protect", "unlock", entity, "role", *at)
    drifted = vault.call("entity", "create", "part", "Judge", "--json", *at).json["id"]
    (profile,) = vault.root.glob(f"entities/parts/*{drifted}/profile.md")
    profile.write_text(profile.read_text().replace("id:", "identity:", 1))
    vault.call("entity", "set", entity, "extensions", "--text", "### Mood\n\nCalm.", *at)
    talk = claude("Bound the loop of src/queue.py of lantern.", session=TALK, project="/home/ada")
    (folder / "transcript.jsonl").write_text(talk)
    lay(folder)
    vault.call("checkpoint", "first")
    assert vault.call("backup", "create", str(folder / "file.backup"), "--now", NOW).code == 0
    changed = path_of(number=2)
    (vault / changed).write_bytes((vault / changed).read_bytes() + b"edited\n")
    vault.call("reindex", "--now", NOW)
    (vault.state / "logs").mkdir(exist_ok=True)
    (vault.state / "logs/signet-sync.log").write_text("2026-03-29 12:00:00 INFO began\n")
    known = {"session": numbered(1)["session_id"], "other": numbered(3)["session_id"], "memory": memory}
    known |= {"entity": entity, "edit": edit, "proposal": proposal, "changed": changed}
    ((known["statement"],),) = vault.rows("select id from statements where newest = 1 order by id limit 1")
    note(vault, **known)


def furnished(folder: Path) -> Callable[..., Vault]:
    """Furnishes a vault once, in a module's own folder; what comes back puts all of it into the folder of a test.

    It was moved, which only the next pass notes: one that is not `settled` has not had it.
    """
    copied = cast(folder, furnish)

    def placed(where: Path, *, settled: bool = True) -> Vault:
        vault = copied(where)
        for name in ("file.backup", "transcript.jsonl", "known.json", "claude-mem.db"):
            shutil.copy(folder / name, where / name)
        shutil.copy(folder / "config.toml", os.environ["SIGNET_CONFIG"])
        if settled:
            vault.call("reindex", "--now", NOW)
        return vault

    return placed
