"""Plans our hooks and our MCP server in one harness's settings, and says how they stand. Nothing here writes.

The commands that settings use to call us are composed here, and recognised later.
"""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, NamedTuple

from signet_sync.errors import ConfigError, SignetSyncError, UsageError, reason
from signet_sync.host.harness_settings import files
from signet_sync.host.harness_settings.facts import Environ, HarnessFacts
from signet_sync.host.harness_settings.settings_text import (
    Condition,
    Edit,
    HarnessProblem,
    Server,
    SettingsPlan,
    SettingsText,
    Way,
    find_value,
)

# ── the commands in settings ──


# Every command of ours, of any version, Python and workspace: an installer replaces and removes these.
OURS = re.compile(r"signet[_-]sync\b.*\shook\s+[a-z][a-z0-9-]*\b", re.DOTALL)
_SERVER = re.compile(r"(?<![\w-])signet[_-]sync(?![\w-]).*\smcp(?:\s|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Program:
    """The words that start signet-sync; `workspace` is an absolute path, None for the default one."""

    words: tuple[str, ...]
    workspace: str | None = None

    @classmethod
    def identify(cls, workspace: str | None) -> "Program":
        """Returns this installation, for a virtual environment by always the same of its interpreter's names.

        `-P` keeps Python from importing modules from a session's folder. Raises `UsageError` for paths with control
        characters or bytes that are not UTF-8: settings cannot contain them.
        """
        python = os.path.abspath(sys.executable)
        usual = os.path.join(os.path.dirname(python), "python3")
        if sys.prefix != sys.base_prefix and os.path.realpath(usual) == os.path.realpath(python):
            python = usual
        for path in (python, workspace or ""):
            if not path.isprintable():
                message = "a hook cannot name a path with control characters or broken text"
                raise UsageError(message, path=path, hint="rename the folder")
        return cls((python, "-P", "-m", "signet_sync"), workspace)

    @property
    def start(self) -> list[str]:
        """Returns the words before the name of a command."""
        return [*self.words, *(("--workspace", self.workspace) if self.workspace else ())]

    def hook(self, harness: str) -> list[str]:
        """Returns the words of the hook."""
        return [*self.start, "hook", harness]

    def reinstall_command(self, harness: str) -> str:
        """Returns what a person types to install our hooks again, for their workspace."""
        place = ["--workspace", self.workspace] if self.workspace else []
        return shlex.join(["signet-sync", *place, "hooks", "install", harness])

    def command(self, harness: str) -> str:
        """Returns the hook as one string for a shell, which all harnesses run; few support a list of words."""
        return shlex.join(self.hook(harness))

    def problems(
        self, kind: str, words: Sequence[str], harness: str, environ: Mapping[str, str]
    ) -> list[HarnessProblem]:
        """Returns what is wrong with a command of ours, of `hooks` or `server`, that a new installation solves."""
        again, hooks = self.reinstall_command(harness), kind == "hooks"
        calls = "the hooks call" if hooks else "the MCP server is started by"
        if not words or shutil.which(words[0], path=environ.get("PATH")) is None:
            name = words[0] if words else "a command that cannot be read"
            return [HarnessProblem(f"{kind}-gone", f"{calls} {name}, which does not exist", again)]
        if workspace_of(words) != self.workspace:
            other = workspace_of(words) or "the default workspace"
            message = f"its sessions go to {other}" if hooks else f"its MCP server serves {other}"
            return [HarnessProblem(f"{kind}-elsewhere", message, f"{again} points them to this one")]
        # A server that we did not write is a person's own way to start it, which is fine.
        if words[0] != self.words[0] and (hooks or tuple(words[1:4]) == self.words[1:4]):
            return [HarnessProblem(f"{kind}-outdated", f"{calls} {words[0]}, not this installation", again)]
        return []


def workspace_of(words: Sequence[str]) -> str | None:
    """Returns the workspace that a command names; None for the default one."""
    return words[words.index("--workspace") + 1] if "--workspace" in words[:-1] else None


def server_words(entry: object) -> list[str]:
    """Returns the words with which an MCP server's entry starts a program, in any notation; empty if it starts none."""
    if not isinstance(entry, dict):
        return []
    command, arguments = entry.get("command"), entry.get("args")
    words = command if isinstance(command, list) else [command] if isinstance(command, str) else []
    return [*map(str, words), *map(str, arguments if isinstance(arguments, list) else ())]


def is_our_server(words: Sequence[str]) -> bool:
    """Returns whether these words start our MCP server; one that only has our name is another program's."""
    return _SERVER.search(" ".join(words)) is not None


# ── what stands in settings, and what is to ──


NAME = "signet-sync"
Handler = dict[str, Any]  # in `{"hooks": {EVENT: [{"hooks": [handler, …]}, …]}}`, which three harnesses have
Data = Mapping[str, Any]
Flags = Sequence[str] | None  # of our MCP server
# The events that call us, the words of the first call, and what is wrong with the calls.
Calls = tuple[tuple[str, ...], list[str], list[HarnessProblem]]
_OURS = b"signet-sync hooks install"  # in every script of ours
_ASK = "// [ask.js]\n"  # where a script gets what all of them share
_PROGRAM = re.compile(r"^const PROGRAM = (\[.*\])$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Harness:
    """What of ours is in the settings of one harness, and what is to be there."""

    name: str
    facts: HarnessFacts

    def folder(self, environ: Environ) -> str:
        """Returns the folder of its settings."""
        return self.facts.settings_folder(environ)

    @property
    def _events(self) -> tuple[str, ...]:
        return self.facts.script_events or tuple(event for event, *_ in self.facts.events)

    def path(self, environ: Environ) -> str:
        """Returns the file that has our hooks, or is our hook."""
        return os.path.join(self.folder(environ), self.facts.hooks or self.facts.scripts[0][0])

    def install(self, program: Program, environ: Environ, flags: Flags = None) -> SettingsPlan:
        """Plans to add our hooks, and with `flags` our MCP server; an existing server of ours is renewed in any case.

        Raises `ConfigError` for settings that cannot be edited safely.
        """
        texts = self._open_files(environ, server=flags is not None)
        if self.facts.hooks:
            merge(
                texts[self.path(environ)],
                self._handlers(program),
                {event: tools for event, _, tools in self.facts.events if tools},
            )
        if self.facts.servers and (settings := texts.get(self.facts.server_file(environ))):
            self._merge_server(settings, program, flags, environ)
        shipped = self._render_scripts(program, environ)
        edits = [Edit(path, _own_script(path), text.encode(), ours=True) for path, text in shipped.items()]
        asked = (self.facts.asks,) if self.facts.asks else ()
        return _plan(edits + [one.edit() for one in texts.values()], (*asked, *self.facts.manual_steps(program, flags)))

    def uninstall(self, environ: Environ) -> SettingsPlan:
        """Plans to take out our hooks and our server; a file that we made goes when nothing else is in it.

        Raises `ConfigError` likewise.
        """
        texts = self._open_files(environ)
        if self.facts.hooks:
            take_out(texts[self.path(environ)], places(texts[self.path(environ)].data))
        if self.facts.servers and (settings := texts.get(self.facts.server_file(environ))):
            way = (*self.facts.server_way(settings.data), NAME)
            if is_our_server(server_words(settings.find(way))):
                settings.remove(way)
        edits = []
        for path in (os.path.join(self.folder(environ), place) for place, _ in self.facts.scripts):
            raw = files.read(path)
            edits.append(Edit(path, raw, None if raw is None or _OURS in raw else raw, ours=True))
        edits += [one.edit(made_by_us=files.is_new(one.path)) for one in texts.values()]
        return _plan(edits, self.facts.leftovers(environ))

    def condition(self, program: Program, environ: Environ) -> Condition:
        """Reports the state; never raises for damaged settings."""
        problems: list[HarnessProblem] = []
        path = self.path(environ)
        data = {path: _data(path, problems)} if self.facts.hooks else {}
        events, words, wrong = (
            self._find_hook_calls(program, data[path], environ)
            if self.facts.hooks
            else self._find_script_calls(program, environ, problems)
        )
        server = None
        if self.facts.servers:
            place = self.facts.server_file(environ)
            listed = data[place] if place in data else _data(place, problems, NAME)
            calls = server_words(find_value(listed, (*self.facts.server_way(listed), NAME)))
            if is_our_server(calls):
                server = Server(place, tuple(calls))
                wrong += program.problems("server", calls, self.name, environ)
        missing = tuple(event for event in self._events if event not in events)
        if events and missing:
            message = f"not installed for: {', '.join(missing)}"
            wrong.append(HarnessProblem("hooks-partly", message, program.reinstall_command(self.name)))
        there, all_problems = os.path.isdir(self.folder(environ)), tuple(dict.fromkeys((*problems, *wrong)))
        asks = self.facts.asks if events else ""
        return Condition(self.name, there, path, events, missing, workspace_of(words), all_problems, server, asks=asks)

    def _merge_server(self, settings: SettingsText, program: Program, flags: Flags, environ: Environ) -> None:
        """Puts our server with these flags there; with None renews one of ours that would not start or serves another
        workspace, with its own flags. What a person has added to it stays. Raises `ConfigError`.
        """
        way = (*self.facts.server_way(settings.data), NAME)
        present = settings.find(way)
        words = server_words(present)
        if flags is None:
            if not is_our_server(words) or not program.problems("server", words, "", environ):
                return
            flags = words[words.index("mcp") + 1 :] if "mcp" in words else []
        elif present is not None and not is_our_server(words):
            message, hint = f"an MCP server named {NAME} already exists and is not ours", "give it another name"
            raise ConfigError(message, path=settings.path, hint=f"{hint}, then try again; nothing was written")
        entry = self.facts.server_entry([*program.start, "mcp", *flags])
        if present is None:
            settings.put(way, entry | self.facts.fresh_entry(environ))
        for key, value in entry.items():
            settings.put((*way, key), value)

    def _find_hook_calls(self, program: Program, data: Data, environ: Environ) -> Calls:
        handlers, ours = self._handlers(program), places(data)
        wrong = [each for place in ours for each in program.problems("hooks", place.words, self.name, environ)]
        calling = [place.event for place in ours]
        known = all(place.own == handlers.get(place.event) for place in ours) and len(calling) == len({*calling})
        others = sorted({*calling} - handlers.keys())
        words = ours[0].words if ours else []
        return (*(e for e in handlers if e in calling), *others), words, wrong if known else wrong or self._old(program)

    def _find_script_calls(self, program: Program, environ: Environ, problems: list[HarnessProblem]) -> Calls:
        wanted = self._render_scripts(program, environ)
        there: dict[str, str | None] = {}
        for path in wanted:
            try:
                raw = _own_script(path)
                there[path] = None if raw is None else raw.decode("utf-8", "replace")
            except (SignetSyncError, OSError) as error:
                there[path] = None
                problems.append(
                    HarnessProblem("foreign-file", reason(error), "move it away, so that ours can be written")
                )
        text = there[self.path(environ)]
        if text is None:
            return (), [], []
        words = script_words(text)
        wrong = program.problems("hooks", words, self.name, environ)
        return self._events, words, wrong if there == wanted else wrong or self._old(program)

    def _old(self, program: Program) -> list[HarnessProblem]:
        message = "the hooks are not as this version writes them, or stand there twice"
        return [HarnessProblem("hooks-outdated", message, program.reinstall_command(self.name))]

    def _handlers(self, program: Program) -> dict[str, Handler]:
        command = program.command(self.name)
        return {event: self.facts.handler(command, seconds) for event, seconds, _ in self.facts.events}

    def _render_scripts(self, program: Program, environ: Environ) -> dict[str, str]:
        folder, scripts = self.folder(environ), self.facts.scripts
        return {os.path.join(folder, place): script(self.name, name, program) for place, name in scripts}

    def _open_files(self, environ: Environ, *, server: bool = False) -> dict[str, SettingsText]:
        """Returns the editors of its files; of servers only if `server` asks for it, or the file may have ours."""
        texts = {}
        if self.facts.hooks:
            path = self.path(environ)
            texts[path] = files.open_settings(path, files.read(path))
        if self.facts.servers and (path := self.facts.server_file(environ)) not in texts:
            raw = files.read(path)
            if server or NAME.encode() in (raw or b""):
                texts[path] = files.open_settings(path, raw)
        return texts


class Place(NamedTuple):
    """A handler that calls a command: its event, what leads to it, and itself."""

    event: str
    way: Way
    own: Handler

    @property
    def words(self) -> list[str]:
        """Returns the command's words; empty if a shell could not split them."""
        try:
            return shlex.split(str(self.own["command"]))
        except ValueError:
            return []


def places(data: Mapping[str, Any]) -> list[Place]:
    """Returns the handlers that call us in the document's order; other shapes are left out."""
    there = []
    hooks = data.get("hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for position, group in enumerate(groups if isinstance(groups, list) else ()):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for index, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                if isinstance(handler, dict) and OURS.search(str(handler.get("command", ""))):
                    there.append(Place(event, ("hooks", event, position, "hooks", index), handler))
    return there


def merge(settings: SettingsText, wanted: Mapping[str, Handler], matchers: Mapping[str, str] = {}) -> None:
    """Puts one handler of ours at each event, in place of the first; takes the others out. Raises `ConfigError`."""
    first: dict[str, Way] = {}
    for place in places(settings.data):
        first.setdefault(place.event, place.way)
    surplus = [place for place in places(settings.data) if place.event not in wanted or place.way != first[place.event]]
    for event, handler in wanted.items():
        if event in first:
            settings.put(first[event], handler)
        else:
            matcher = {"matcher": matchers[event]} if event in matchers else {}
            settings.append(("hooks", event), {**matcher, "hooks": [handler]})
    take_out(settings, surplus)


def take_out(settings: SettingsText, gone: list[Place]) -> None:
    """Takes out handlers, and the groups that had only these. Raises `ConfigError`."""
    for place in reversed(gone):
        *group, _, _ = place.way
        settings.remove(tuple(group) if len(settings.find(place.way[:-1])) == 1 else place.way)


def script(harness: str, name: str, program: Program) -> str:
    """Returns a file as it is shipped; a script in it calls this program, by words in ASCII, which are JSON, too."""
    package = f"signet_sync.capture.harnesses.{harness.replace('-', '_')}"
    text = resources.files(package).joinpath(name).read_text(encoding="utf-8")
    ask = resources.files(__package__).joinpath("ask.js").read_text(encoding="utf-8")
    line = f"const PROGRAM = {json.dumps(program.start)}"
    return _PROGRAM.sub(lambda _: line, text.replace(_ASK, ask), count=1)


def script_words(text: str) -> list[str]:
    """Returns the words with which a script of ours starts us; empty if it was changed beyond recognition."""
    match = _PROGRAM.search(text)
    try:
        return [str(word) for word in json.loads(match[1])] if match else []
    except (ValueError, RecursionError):
        return []


def _own_script(path: str) -> bytes | None:
    raw = files.read(path)
    if raw is not None and _OURS not in raw:
        hint = "move it away, then try again; nothing was written"
        raise ConfigError("a file of this name already exists and is not ours", path=path, hint=hint)
    return raw


def _plan(edits: list[Edit], by_hand: tuple[str, ...]) -> SettingsPlan:
    """Returns a plan of the first edit, which is that of the hooks, and of the others that change something."""
    return SettingsPlan((edits[0], *(edit for edit in edits[1:] if edit.kind != "unchanged")), by_hand)


def _data(path: str, problems: list[HarnessProblem], needle: str = "") -> Data:
    """Returns the values of a settings file; none if it cannot be read, which is a problem, or lacks `needle`."""
    try:
        raw = files.read(path)
        return files.open_settings(path, raw).data if needle.encode() in (raw or b"") else {}
    except (SignetSyncError, OSError) as error:
        hint = "until this is corrected, nothing of ours can be added there or taken out"
        problems.append(HarnessProblem("settings-unparsable", f"{path}: {reason(error)}", hint))
        return {}
