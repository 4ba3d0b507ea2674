"""Plans our hooks and our MCP server in one harness's settings, and says how they stand. Nothing here writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from signet_sync.errors import SignetSyncError
from signet_sync.host.harness_settings import files, hook_groups, mcp_server, script_file
from signet_sync.host.harness_settings.condition import Condition, Edit, HarnessProblem, Server, SettingsPlan
from signet_sync.host.harness_settings.hook_groups import Handler
from signet_sync.host.harness_settings.mcp_server import NAME, ServerList
from signet_sync.host.harness_settings.program import Program, command_problems, workspace_of
from signet_sync.host.harness_settings.settings_text import SettingsText, found

Environ = Mapping[str, str]
Data = Mapping[str, Any]
Flags = Sequence[str] | None  # of our MCP server
# The events that call us, the words of the first call, and what is wrong with the calls.
Calls = tuple[tuple[str, ...], list[str], list[HarnessProblem]]
_OUTDATED = "the hooks were written by another version; what they do at prompts may differ"


@dataclass(frozen=True, slots=True)
class Harness:
    """Where one harness has what, and what we write there.

    `events` have the fields of their handler beside the command, in the file `hooks`; a harness without such a file
    runs `scripts`: their places below the folder, the main one first, and what is shipped for them. `by_hand` is
    what a person has to do after an installation, `left` after a removal, `asks` what the harness itself will ask.
    """

    name: str
    folder: Callable[[Environ], str]
    events: Mapping[str, Handler]
    hooks: str = ""
    scripts: Mapping[str, str] = field(default_factory=dict)
    servers: ServerList | None = None
    by_hand: Callable[[Program, Flags], tuple[str, ...]] = lambda program, flags: ()
    left: Callable[[Environ], tuple[str, ...]] = lambda environ: ()
    asks: str = ""

    def path(self, environ: Environ) -> str:
        """Returns the file that has our hooks, or is our hook."""
        return os.path.join(self.folder(environ), self.hooks or next(iter(self.scripts)))

    def install(self, program: Program, environ: Environ, flags: Flags = None) -> SettingsPlan:
        """Plans to add our hooks, and with `flags` our MCP server; an existing server of ours is renewed in any case.

        Raises `ConfigError` for settings that cannot be edited safely.
        """
        texts = self._opened(environ, server=flags is not None)
        if self.hooks:
            hook_groups.merge(texts[self.path(environ)], self._handlers(program))
        if self.servers and (settings := texts.get(self.servers.path(environ))):
            self.servers.merge(settings, program, flags, environ)
        edits = [script_file.writing(path, text) for path, text in self._shipped(program, environ).items()]
        asked = (self.asks,) if self.asks else ()
        return _plan(edits + [one.edit() for one in texts.values()], (*asked, *self.by_hand(program, flags)))

    def uninstall(self, environ: Environ) -> SettingsPlan:
        """Plans to take out our hooks and our server; a file that we made goes when nothing else is in it.

        Raises `ConfigError` likewise.
        """
        texts = self._opened(environ)
        if self.hooks:
            hook_groups.strip(texts[self.path(environ)])
        if self.servers and (settings := texts.get(self.servers.path(environ))):
            self.servers.strip(settings)
        edits = [script_file.removing(os.path.join(self.folder(environ), place)) for place in self.scripts]
        edits += [one.edit(made_by_us=files.is_new(one.path)) for one in texts.values()]
        return _plan(edits, self.left(environ))

    def condition(self, program: Program, environ: Environ) -> Condition:
        """Reports the state; never raises for damaged settings."""
        problems: list[HarnessProblem] = []
        path = self.path(environ)
        data = {path: _data(path, problems)} if self.hooks else {}
        if self.servers and (listed := self.servers.path(environ)) not in data:
            data[listed] = _data(listed, problems, NAME)
        called = self._called(program, data[path]) if self.hooks else self._scripted(program, environ, problems)
        events, words, wrong = called
        server = self._server(program, environ, data, wrong)
        missing = tuple(event for event in self.events if event not in events)
        if events and missing:
            message = f"not installed for: {', '.join(missing)}"
            wrong.append(HarnessProblem("partly", message, program.again(self.name)))
        there, all_problems = os.path.isdir(self.folder(environ)), tuple(dict.fromkeys((*problems, *wrong)))
        asks = self.asks if events else ""
        return Condition(self.name, there, path, events, missing, workspace_of(words), all_problems, server, asks=asks)

    def _called(self, program: Program, data: Data) -> Calls:
        handlers, ours = self._handlers(program), hook_groups.places(data)
        wrong: list[HarnessProblem] = []
        for place in ours:
            wrong += command_problems(place.words, program, self.name, program.hook(self.name))
        calling = [place.event for place in ours]
        if not wrong and any(place.own != handlers.get(place.event) for place in ours):
            wrong = [HarnessProblem("outdated", _OUTDATED, program.again(self.name))]
        elif not wrong and (twice := [event for event in handlers if calling.count(event) > 1]):
            message = f"called more than once for: {', '.join(twice)}"
            wrong = [HarnessProblem("twice", message, program.again(self.name))]
        others = sorted({*calling} - handlers.keys())
        return (*(e for e in handlers if e in calling), *others), ours[0].words if ours else [], wrong

    def _scripted(self, program: Program, environ: Environ, problems: list[HarnessProblem]) -> Calls:
        wanted = self._shipped(program, environ)
        there = {}
        for path in wanted:
            there[path], unreadable = script_file.read(path)
            problems += unreadable
        text = there[self.path(environ)]
        if text is None:
            return (), [], []
        words = script_file.words(text)
        wrong = command_problems(words, program, self.name, program.start)
        if not wrong and there != wanted:
            wrong = [HarnessProblem("outdated", _OUTDATED, program.again(self.name))]
        return tuple(self.events), words, wrong

    def _server(
        self, program: Program, environ: Environ, data: Mapping[str, Data], wrong: list[HarnessProblem]
    ) -> Server | None:
        if self.servers is None:
            return None
        path = self.servers.path(environ)
        way = (*self.servers.way(data[path]), NAME)
        entry = found(data[path], way)
        words = mcp_server.words_of(entry)
        if not mcp_server.is_ours(words):
            return None
        wrong += mcp_server.problems(words, program, self.name, environ)
        return Server(path, tuple(words))

    def _handlers(self, program: Program) -> dict[str, Handler]:
        command = program.command(self.name)
        return {event: {"type": "command", "command": command, **more} for event, more in self.events.items()}

    def _shipped(self, program: Program, environ: Environ) -> dict[str, str]:
        folder = self.folder(environ)
        return {os.path.join(folder, place): script_file.script(name, program) for place, name in self.scripts.items()}

    def _opened(self, environ: Environ, *, server: bool = False) -> dict[str, SettingsText]:
        """Returns the editors of its files; of servers only if `server` asks for it, or the file may have ours."""
        texts = {}
        if self.hooks:
            path = self.path(environ)
            texts[path] = files.opened(path, files.read(path))
        if self.servers and (path := self.servers.path(environ)) not in texts:
            raw = files.read(path)
            if server or NAME.encode() in (raw or b""):
                texts[path] = files.opened(path, raw)
        return texts


def _plan(edits: list[Edit], by_hand: tuple[str, ...]) -> SettingsPlan:
    """Returns a plan of the first edit, which is that of the hooks, and of the others that change something."""
    return SettingsPlan((edits[0], *(edit for edit in edits[1:] if edit.kind != "unchanged")), by_hand)


def _data(path: str, problems: list[HarnessProblem], needle: str = "") -> Data:
    """Returns the values of a settings file; none if it cannot be read, which is a problem, or lacks `needle`."""
    try:
        raw = files.read(path)
        return files.opened(path, raw).data if needle.encode() in (raw or b"") else {}
    except SignetSyncError as error:
        message = error.message
    except OSError as error:
        message = error.strerror or str(error)
    hint = "until this is corrected, nothing of ours can be added there or taken out"
    problems.append(HarnessProblem("settings-unparsable", f"{path}: {message}", hint))
    return {}
