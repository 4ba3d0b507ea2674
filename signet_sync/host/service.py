"""Installs, starts, lists and removes the operating system's services: units for systemd and launchd.

A unit is rendered from the shipped template (`systemd/`, `launchd/`): only the lines that name the program, the
workspace or a folder are replaced. Several workspaces run side by side, one unit each. The service manager's programs
are called with argument lists and a time limit; a call that fails becomes a command for the person (`Done.by_hand`),
never an exception.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import plistlib
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Literal
from xml.parsers.expat import ExpatError

from signet_sync.errors import SignetSyncError, UsageError
from signet_sync.storage.durable import publish, unlink

Kind = Literal["systemd", "systemd-system", "launchd"]

BASE_NAME = "signet-sync"
BASE_LABEL = "dev.signet-sync.agent"
SYSTEM_UNITS = "/etc/systemd/system"
TEMPLATES: Mapping[Kind, str] = {
    "systemd": "signet-sync.service",
    "systemd-system": "signet-sync@.service",
    "launchd": "dev.signet-sync.agent.plist",
}
# What systemd starts after an agent failed permanently; one for all units of ours. launchd has no equivalent.
FAILURE_TEMPLATES: Mapping[Kind, str] = {
    "systemd": "signet-sync-failed@.service",
    "systemd-system": "signet-sync-failed-for@.service",
}
# Where the agent finds its files; without them it would use other paths than the shell that installed it.
PASSED_ON = (
    "XDG_CONFIG_HOME", "XDG_STATE_HOME", "SIGNET_CONFIG", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME",
)  # fmt: skip

_TIMEOUT = 30.0
_START_TIMEOUT = 60.0
_HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108 - names that the sandbox hides, not used
_SANDBOX_FAILED = ("217", "218", "226")  # EXIT_USER, EXIT_CAPABILITIES, EXIT_NAMESPACE: systemd.exec(5)
_HEADER = """\
# Written by `signet-sync service install`, which replaces it; changes belong into drop-ins.

"""
_DROP_IN = "10-without-user-namespaces.conf"
_WITHOUT_NAMESPACES = """\
# Written by `signet-sync service install`: this machine gives no user namespaces to a person's own services.
# Without them systemd may neither arrange mounts for one nor drop capabilities (which it has not got anyway).
[Service]
PrivateUsers=no
CapabilityBoundingSet=~
BindPaths=
BindReadOnlyPaths=
PrivateDevices=no
PrivateNetwork=no
PrivateTmp=no
ProtectClock=no
ProtectControlGroups=no
ProtectHome=no
ProtectHostname=no
ProtectKernelLogs=no
ProtectKernelModules=no
ProtectKernelTunables=no
ProtectProc=default
ProtectSystem=no
"""


@dataclass(frozen=True, slots=True)
class Done:
    """What was done, as sentences (`steps`), and what is left to do, as shell commands (`by_hand`).

    Lines of `by_hand` that begin with `#` explain the command below them. `path` is the unit's file, None if none was
    written or found; `running` is the state that the service manager reports at the end.
    """

    kind: str
    path: str | None
    steps: tuple[str, ...]
    by_hand: tuple[str, ...]
    running: bool


@dataclass(frozen=True, slots=True)
class ServiceState:
    """One unit of ours. `enabled` and `active` are None if the service manager is not available."""

    name: str
    workspace: str | None
    path: str
    enabled: bool | None
    active: bool | None


def template(name: str) -> str:
    """Returns the text of a shipped unit, from the installed package or the checkout. Raises `SignetSyncError`."""
    packaged = resources.files("signet_sync.host").joinpath("units", name)
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    checkout = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = os.path.join(checkout, "launchd" if name.endswith(".plist") else "systemd", name)
    try:
        with open(path, encoding="utf-8") as handle:
            return handle.read()
    except FileNotFoundError as error:
        raise SignetSyncError(
            "the unit is not part of this installation", path=path, hint="install signet-sync again"
        ) from error


def service_name(workspace: str, *, default: str) -> str:
    """Returns `signet-sync` for the default workspace, else `signet-sync-<slug>-<8 hex of sha256(real path)>`."""
    real = os.path.realpath(workspace)
    if real == os.path.realpath(default):
        return BASE_NAME
    slug = "-".join(re.findall(r"[a-z0-9]+", os.path.basename(real).lower()))[:32].strip("-") or "workspace"
    return f"{BASE_NAME}-{slug}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:8]}"


def systemd_quote(text: str) -> str:
    """Quotes one word of a unit's line, so that no quote, blank, colon, `%` or backslash of `text` can break it.

    `$` is not escaped: commands are written with systemd's `:` prefix, which disables it; nothing else interprets it.
    Raises `UsageError` for control characters and bytes that are not UTF-8: a unit cannot contain them.
    """
    _check_nameable(text)
    if re.fullmatch(r"[\w@+=./,-]+", text, re.ASCII):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


def render(
    kind: Kind,
    *,
    executable: Sequence[str],
    workspace: str,
    state: str,
    name: str,
    readable: Sequence[str] = (),
    network: bool = False,
    desktop: bool = False,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Returns the unit's text for one workspace; `executable` is the command before signet-sync's own arguments.

    `state` is the folder of all our state; `readable` are folders to read, of harnesses or a program; `network` lets
    the
    agent call a language model, `desktop` show notifications; `environment` is passed to the agent. Paths are resolved,
    because a symlink in the home folder does not exist in the sandbox. Raises `UsageError` for what a unit cannot
    contain.
    """
    if not executable or not os.path.isabs(executable[0]):
        raise UsageError("a service needs the absolute path of the program", hint="name it from its root folder on")
    passed = dict(sorted((environment or {}).items()))
    workspace, state = os.path.realpath(workspace), os.path.realpath(state)
    if kind == "launchd":
        return _render_launchd([*executable, "--workspace", workspace, "run"], name, passed)
    return _render_systemd(kind, executable, workspace, state, passed, readable, network=network, desktop=desktop)


def render_failure(kind: Kind, *, executable: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Returns the unit that notifies a person when an agent failed permanently.

    Raises `UsageError` for what a unit cannot contain.
    """
    shipped = template(FAILURE_TEMPLATES[kind])
    told = shipped.partition("signet-sync notify ")[2].partition("\n")[0]
    usual = shipped.partition("\nEnvironment=")[2].partition("\n")[0]
    words = " ".join(systemd_quote(word) for word in _startable(executable))
    passed = [systemd_quote(f"{key}={value}") for key, value in sorted((environment or {}).items())]
    return _with_lines(
        _HEADER + shipped.partition("\n\n")[2],
        {"ExecStart": [f":{words} notify {told}"], "Environment": [usual, *passed]},
    )


def install(
    *,
    executable: Sequence[str],
    workspace: str,
    state: str,
    name: str,
    readable: Sequence[str] = (),
    network: bool = False,
    desktop: bool = False,
    system: bool = False,
    linger: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> Done:
    """Writes, enables and starts the unit; returns what it did and what is left to do.

    `system`: a system unit for the user who called sudo (root only). `linger`: the user's services keep running after
    logout. Raises `UsageError` for what a unit cannot contain, `OSError` if its file cannot be written.
    """
    passed = {key: environ[key] for key in PASSED_ON if environ.get(key)}
    command = [*executable, "--workspace", os.path.realpath(workspace)]
    if _is_macos():
        if system:
            return Done("launchd", None, (), _by_hand_login_only(command), False)
        text = render("launchd", executable=executable, workspace=workspace, state=state, name=name, environment=passed)
        return _install_launchd(text, name, environ)
    if system and not _is_root():
        return Done("systemd-system", None, (), _by_hand_as_root(command, _unit(name, True, environ)), False)
    kind: Kind = "systemd-system" if system else "systemd"
    text = render(
        kind,
        executable=executable,
        workspace=workspace,
        state=state,
        name=name,
        readable=readable,
        network=network,
        desktop=desktop,
        environment=passed,
    )
    manager = _Systemd(system, environ)
    unit = _unit(name, system, environ)
    path = os.path.join(manager.folder, unit)
    told = render_failure(kind, executable=executable, environment=passed)
    work = _Work([_write(path, text), _write(os.path.join(manager.folder, FAILURE_TEMPLATES[kind]), told)], [])
    if not work.ask(manager.call("daemon-reload"), manager.command("daemon-reload")):
        work.by_hand.append(manager.command("enable", "--now", unit))
        work.by_hand += _by_hand_without_systemd([*command, "run"])
        return work.done(kind, path, running=False)
    _start(manager, unit, workspace, work)
    if not system:
        _linger(linger, environ, work)
    return work.done(kind, path, running=manager.is_active(unit) is True)


def uninstall(*, name: str, system: bool = False, environ: Mapping[str, str] = os.environ) -> Done:
    """Stops and disables the unit, and removes its file; the workspace, its state and people's drop-ins are kept."""
    if _is_macos():
        return _uninstall_launchd(name, environ)
    kind: Kind = "systemd-system" if system else "systemd"
    unit = _unit(name, system, environ)
    manager = _Systemd(system, environ)
    path = os.path.join(manager.folder, unit)
    if system and not _is_root():
        files = [path, *_failure_unit(manager, kind, but=unit)]
        by_hand = (
            f"sudo systemctl disable --now {shlex.quote(unit)}",
            f"sudo rm {shlex.join(files)}",
            "sudo systemctl daemon-reload",
        )
        return Done(kind, None, (), by_hand, manager.is_active(unit) is True)
    if not os.path.lexists(path):
        return Done(kind, None, (f"there is no {path}",), (), False)
    work = _Work([], [])
    work.ask(manager.call("disable", "--now", unit), manager.command("disable", "--now", unit), f"stopped {unit}")
    _remove(path, work)
    _remove(os.path.join(path + ".d", _DROP_IN), work)
    with contextlib.suppress(OSError):  # a person's own drop-ins are kept, and so is their folder
        os.rmdir(path + ".d")
    for told in _failure_unit(manager, kind, but=unit):
        _remove(told, work)
    work.ask(manager.call("daemon-reload"), manager.command("daemon-reload"))
    # Only a failed unit is still listed now; for any other this fails, without harm.
    manager.call("reset-failed", unit)
    return work.done(kind, path, running=manager.is_active(unit) is True)


def installed(environ: Mapping[str, str] = os.environ) -> list[ServiceState]:
    """Returns all our units of this user and of the system, whatever their workspace, ordered by name."""
    if _is_macos():
        found = [_launchd_state(name, path, environ) for name, path in _our_agents(environ)]
    else:
        found = [
            _systemd_state(manager, name, path)
            for manager in (_Systemd(False, environ), _Systemd(True, environ))
            for name, path in _our_units(manager)
        ]
    return sorted(found, key=lambda state: (state.name, state.path))


def lingering(environ: Mapping[str, str] = os.environ) -> bool | None:
    """Whether this user's services run without a login; None if logind is not available."""
    answer = _call(["loginctl", "show-user", _user(), "--property=Linger"], environ)
    return {"Linger=yes": True, "Linger=no": False}.get(answer.out.strip()) if answer.ok else None


def is_here(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this machine has a service manager."""
    return shutil.which("launchctl" if _is_macos() else "systemctl", path=environ.get("PATH", os.defpath)) is not None


def outlives_login(state: ServiceState, environ: Mapping[str, str] = os.environ) -> bool | None:
    """Whether a unit keeps running when its user logs out; None if unknown."""
    if _is_macos():
        return False
    return True if _is_of_the_system(state) else lingering(environ)


def restart_command(state: ServiceState) -> str:
    """Returns what a person types to start or restart a unit."""
    if _is_macos():
        return shlex.join(["launchctl", "kickstart", "-k", f"{_domain()}/{_label(state.name)}"])
    system = _is_of_the_system(state)
    return ("sudo " if system else "") + _Systemd(system, {}).command("restart", f"{state.name}.service")


def restart(state: ServiceState, environ: Mapping[str, str] = os.environ) -> Done:
    """Starts or restarts a unit, including one that systemd gave up."""
    work = _Work([], [])
    if _is_macos():
        _bootstrap(state.path, environ)  # fails if it is loaded, without harm
        answer = _call(["launchctl", "kickstart", "-k", f"{_domain()}/{_label(state.name)}"], environ)
        work.ask(answer, restart_command(state), f"started {state.name}")
        return work.done("launchd", state.path, running=_launchd_active(_label(state.name), environ) is True)
    system = _is_of_the_system(state)
    if system and not _is_root():
        return Done("systemd-system", state.path, (), (restart_command(state),), state.active is True)
    manager, unit = _Systemd(system, environ), f"{state.name}.service"
    manager.call("reset-failed", unit)  # fails if the unit has not failed, without harm
    work.ask(manager.call("restart", unit, timeout=_START_TIMEOUT), restart_command(state), f"started {unit}")
    return work.done("systemd-system" if system else "systemd", state.path, running=manager.is_active(unit) is True)


def gone(state: ServiceState, environ: Mapping[str, str] = os.environ) -> str | None:
    """Returns the program that a unit starts, or its interpreter, if it no longer exists."""
    if _is_macos():
        words = _arguments(state.path)
    else:
        words = _started(state.name, state.path, system=_is_of_the_system(state), environ=environ)
    if words[:2] == ["/bin/sh", "-c"]:  # `_startable`: the program comes after the script and its name
        words = words[4:]
    if not words or not os.path.isabs(words[0]):
        return None
    needed = filter(None, (words[0], interpreter_of(words[0])))
    return next((path for path in needed if not os.access(path, os.X_OK)), None)


def interpreter_of(script: str) -> str | None:
    """Returns the interpreter that a script's first line names, or None."""
    try:
        with open(script, "rb") as file:
            first = file.readline(4096)
    except OSError:
        return None
    words = first.removeprefix(b"#!").split()
    return os.fsdecode(words[0]) if first.startswith(b"#!") and words else None


def _is_of_the_system(state: ServiceState) -> bool:
    return state.path.startswith(SYSTEM_UNITS + os.sep)


# ── rendering ──


def _check_nameable(text: str) -> None:
    if any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in text):
        raise UsageError(
            "a service cannot name a path with control characters or broken text",
            path=text,
            hint="rename the folder, or start `signet-sync run` by other means",
        )


def _render_systemd(
    kind: Kind,
    executable: Sequence[str],
    workspace: str,
    state: str,
    environment: Mapping[str, str],
    more: Sequence[str],
    *,
    network: bool,
    desktop: bool,
) -> str:
    system = kind == "systemd-system"
    shipped = template(TEMPLATES[kind])
    run = [*_startable(executable), "--workspace", workspace, "run"]
    make_state = "+:runuser -u %i -- mkdir -p -m 0700 " if system else "+:mkdir -p -m 0700 "
    wait = "+:timeout 10m sh -c 'until test -d \"$0\"; do sleep 2; done' "
    readable = [_settings_place(state, environment), *_program_folders(executable), *map(os.path.realpath, more)]
    # A configured language model is called over the network, from inside the same sandbox.
    connected = {"PrivateNetwork": ["no"], "RestrictAddressFamilies": ["AF_UNIX AF_INET AF_INET6"], "IPAddressDeny": []}
    return _with_lines(
        _HEADER + shipped.partition("\n\n")[2],
        {
            "Description": [f"signet-sync{' of %i' if system else ''} ({workspace.replace('%', '%%')})"],
            "ExecStartPre": [make_state + systemd_quote(state), wait + systemd_quote(workspace)],
            "ExecStart": [":" + " ".join(systemd_quote(word) for word in run)],
            "Environment": [systemd_quote(f"{key}={value}") for key, value in environment.items()],
            "BindPaths": [
                *(systemd_quote("-" + path) for path in (workspace, state)),
                *([] if system else ["-%t/systemd/notify"]),
                *(["-%t/bus"] if desktop and not system else []),
            ],
            "BindReadOnlyPaths": [systemd_quote("-" + path) for path in readable],
            **(connected if network else {}),
        },
    )


def _startable(executable: Sequence[str]) -> Sequence[str]:
    """Starts a program with quotes or backslashes in its path through a shell, because systemd refuses it."""
    if re.search(r"[\\\"']", executable[0]):
        return ["/bin/sh", "-c", 'exec "$@"', "sh", *executable]
    return executable


def _with_lines(text: str, lines: Mapping[str, Sequence[str]]) -> str:
    """Replaces all lines of a key in `text` by lines of the given values, at the position of the first one."""
    result: list[str] = []
    written: set[str] = set()
    for line in text.splitlines():
        key = line.partition("=")[0]
        if key not in lines:
            result.append(line)
        elif key not in written:
            written.add(key)
            result += [f"{key}={value}" for value in lines[key]]
    assert written == set(lines), "the template lost a line that is filled in"
    return "\n".join(result) + "\n"


def _settings_place(state: str, environment: Mapping[str, str]) -> str:
    """Returns the user's settings folder or file, as the agent will find it; by default next to the state."""
    if environment.get("SIGNET_CONFIG"):
        return os.path.abspath(os.path.expanduser(environment["SIGNET_CONFIG"]))
    usual = "/.local/state/" + BASE_NAME
    home = state.removesuffix(usual) if state.endswith(usual) else os.path.expanduser("~")
    return os.path.join(environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), BASE_NAME)


def _program_folders(executable: Sequence[str]) -> list[str]:
    """Returns folders in hidden places that the program needs to read: its own, its interpreter's, its packages'."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    program = executable[0]
    wanted = {
        os.path.dirname(program),
        os.path.dirname(os.path.realpath(program)),
        sys.prefix,
        sys.base_prefix,
        os.path.realpath(sys.prefix),
        os.path.realpath(sys.base_prefix),
        package,
    }
    places = {*_HIDDEN, *map(os.path.realpath, _HIDDEN)}
    hidden = sorted(path for path in wanted if any(_below(path, place) for place in places))
    return [path for path in hidden if not any(path != other and _below(path, other) for other in hidden)]


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _render_launchd(run: Sequence[str], name: str, environment: Mapping[str, str]) -> str:
    for word in (*run, *environment.values()):
        _check_nameable(word)
    unit = plistlib.loads(template(TEMPLATES["launchd"]).encode("utf-8"))
    log = os.path.join(os.path.expanduser("~"), "Library", "Logs", name + ".log")
    unit |= {
        "Label": _label(name),
        "ProgramArguments": list(run),
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    unit["EnvironmentVariables"] |= environment
    return plistlib.dumps(unit, sort_keys=False).decode("utf-8")


# ── common to the service managers ──


@dataclass(frozen=True, slots=True)
class _Answer:
    ok: bool
    out: str
    err: str


@dataclass(slots=True)
class _Work:
    """What was done so far, and what is left to the person."""

    steps: list[str]
    by_hand: list[str]

    def ask(self, answer: _Answer, command: str, done: str = "") -> bool:
        """Records a call of the service manager: a step, or the same command for the person, with the reason."""
        if answer.ok:
            self.steps += [done] if done else []
        else:
            self.by_hand += ["# not done: " + answer.err, command]
        return answer.ok

    def done(self, kind: Kind, path: str, *, running: bool) -> Done:
        return Done(kind, path, tuple(self.steps), tuple(self.by_hand), running)


def _is_macos() -> bool:
    return sys.platform == "darwin"


def _is_root() -> bool:
    return os.geteuid() == 0


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or os.path.expanduser("~")


def _call(command: Sequence[str], environ: Mapping[str, str], timeout: float = _TIMEOUT) -> _Answer:
    """Runs a program of the operating system; a missing program, an error and a timeout are answers, too."""
    program = shutil.which(command[0], path=environ.get("PATH", os.defpath))
    if program is None:
        return _Answer(False, "", f"there is no {command[0]} on this machine")
    try:
        ended = subprocess.run(
            [program, *command[1:]],
            env=with_runtime_folder(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _Answer(False, "", f"{command[0]} did not answer within {timeout:g} s")
    except OSError as error:
        return _Answer(False, "", f"{command[0]}: {error.strerror}")
    said = ended.stderr.decode("utf-8", "replace").split("\n")[0].strip()
    return _Answer(ended.returncode == 0, ended.stdout.decode("utf-8", "replace"), said or f"exit {ended.returncode}")


def with_runtime_folder(environ: Mapping[str, str]) -> dict[str, str]:
    """Adds the variable that locates a user's manager and bus, which `su`, cron and system units lose."""
    folder = f"/run/user/{os.getuid()}"
    known = {"XDG_RUNTIME_DIR": folder} if os.path.isdir(folder) else {}
    return known | dict(environ)


def _write(path: str, text: str) -> str:
    """Writes the unit's file completely or not at all; returns the step."""
    data = text.encode("utf-8")
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as old:
        if old.read() == data:
            return f"{path} is up to date"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.close(publish(path, data, 0o644))
    return f"wrote {path}"


def _remove(path: str, work: _Work) -> None:
    if unlink(path):
        work.steps.append(f"removed {path}")


def _after(words: Sequence[str], flag: str) -> str | None:
    """Returns the word that follows `flag`."""
    return next((value for word, value in itertools.pairwise(words) if word == flag), None)


# ── systemd ──


@dataclass(frozen=True, slots=True)
class _Systemd:
    """The user's own service manager, or the system's."""

    system: bool
    environ: Mapping[str, str]

    @property
    def folder(self) -> str:
        if self.system:
            return SYSTEM_UNITS
        config = self.environ.get("XDG_CONFIG_HOME") or os.path.join(_home(self.environ), ".config")
        return os.path.join(config, "systemd", "user")

    def call(self, *arguments: str, timeout: float = _TIMEOUT) -> _Answer:
        return _call(["systemctl", *([] if self.system else ["--user"]), *arguments], self.environ, timeout)

    def command(self, *arguments: str) -> str:
        """Returns the same call, for a person to type."""
        return shlex.join(["systemctl", *([] if self.system else ["--user"]), *arguments])

    def facts(self, unit: str) -> dict[str, str]:
        """Returns properties of a unit; empty if the manager is not available."""
        answer = self.call("show", unit, "--property=ActiveState,SubState,UnitFileState,ExecMainStatus")
        pairs = (line.partition("=") for line in answer.out.splitlines()) if answer.ok else ()
        return {key: value for key, _, value in pairs}

    def is_active(self, unit: str) -> bool | None:
        return _active(self.facts(unit))


def _active(facts: Mapping[str, str]) -> bool | None:
    """Whether a unit is active: waiting for its workspace counts as active, waiting for a restart does not."""
    if not facts.get("ActiveState"):
        return None
    return facts["ActiveState"] in ("active", "reloading", "activating") and facts.get("SubState") != "auto-restart"


def _unit(name: str, system: bool, environ: Mapping[str, str]) -> str:
    """Returns the file name of the unit; a system unit is an instance with the user's name."""
    if not system:
        return name + ".service"
    user = environ.get("SUDO_USER") or _user()
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", user):
        raise UsageError(
            f"a unit cannot carry the user name {user!r}", hint="write a unit by hand: see systemd/README.md"
        )
    return f"{name}@{user}.service"


def _start(manager: _Systemd, unit: str, workspace: str, work: _Work) -> None:
    """Enables and (re)starts; relaxes the sandbox if the machine refuses it to a user's own services."""
    work.ask(manager.call("enable", unit), manager.command("enable", unit), f"enabled {unit}")
    if not os.path.isdir(workspace):
        answer = manager.call("restart", "--no-block", unit)
        work.ask(answer, manager.command("restart", unit), f"started {unit}; it waits for {workspace}")
        return
    answer = manager.call("restart", unit, timeout=_START_TIMEOUT)
    if not answer.ok and not manager.system and manager.facts(unit).get("ExecMainStatus") in _SANDBOX_FAILED:
        answer = _restart_without_namespaces(manager, unit, work)
    if not work.ask(answer, manager.command("status", unit), f"started {unit}"):
        work.by_hand.append(f"journalctl {'' if manager.system else '--user '}-e -u {unit}")


def _restart_without_namespaces(manager: _Systemd, unit: str, work: _Work) -> _Answer:
    path = os.path.join(manager.folder, unit + ".d", _DROP_IN)
    work.steps.append("this machine refuses user namespaces to the unit: " + _write(path, _WITHOUT_NAMESPACES))
    for arguments in (["daemon-reload"], ["reset-failed", unit]):
        manager.call(*arguments)
    return manager.call("restart", unit, timeout=_START_TIMEOUT)


def _linger(wanted: bool, environ: Mapping[str, str], work: _Work) -> None:
    """Enables lingering, or suggests it: without it a user's services end with the last logout."""
    command = ["loginctl", "enable-linger", _user()]
    if lingering(environ):
        return
    if wanted:
        work.ask(_call(command, environ), shlex.join(command), "the agent keeps running while you are logged out")
    else:
        work.by_hand += [
            "# it runs while you are logged in; lingering lets it run from boot on and after logging out:",
            shlex.join(command),
        ]


def _by_hand_without_systemd(run: Sequence[str]) -> list[str]:
    # In a crontab a percent sign ends the command.
    line = "@reboot " + shlex.join(run).replace("%", "\\%")
    return [
        "# or, on a machine without systemd, now and at every start:",
        f"nohup {shlex.join(run)} >/dev/null 2>&1 &",
        f"(crontab -l 2>/dev/null; printf '%s\\n' {shlex.quote(line)}) | crontab -",
    ]


def _by_hand_as_root(command: Sequence[str], unit: str) -> tuple[str, ...]:
    path = shlex.quote(os.path.join(SYSTEM_UNITS, unit))
    told = shlex.quote(os.path.join(SYSTEM_UNITS, FAILURE_TEMPLATES["systemd-system"]))
    return (
        "# a system unit needs root:",
        f"{shlex.join(command)} service print --system | sudo tee {path} >/dev/null",
        f"{shlex.join(command)} service print --system --on-failure | sudo tee {told} >/dev/null",
        "sudo systemctl daemon-reload",
        f"sudo systemctl enable --now {shlex.quote(unit)}",
    )


def _our_units(manager: _Systemd) -> Iterator[tuple[str, str]]:
    """Yields name and path of our units; an enabled instance of a template counts, the template does not."""
    ours = re.compile(rf"{BASE_NAME}(-[a-z0-9-]+-[0-9a-f]{{8}})?(@.+)?\.service")
    seen: set[str] = set()
    for folder in (manager.folder, os.path.join(manager.folder, "multi-user.target.wants")):
        for file in _names(folder):
            if ours.fullmatch(file) and file not in seen:
                seen.add(file)
                yield file.removesuffix(".service"), os.path.join(folder, file)


def _failure_unit(manager: _Systemd, kind: Kind, *, but: str) -> list[str]:
    """Returns the unit shared by all of ours, if none of them is left but one."""
    path = os.path.join(manager.folder, FAILURE_TEMPLATES[kind])
    others = [name for name, _ in _our_units(manager) if f"{name}.service" != but]
    return [path] if os.path.lexists(path) and not others else []


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _systemd_state(manager: _Systemd, name: str, path: str) -> ServiceState:
    facts = manager.facts(name + ".service")
    state = facts.get("UnitFileState")
    return ServiceState(
        name=name,
        workspace=_after(_started(name, path, system=manager.system, environ=manager.environ), "--workspace"),
        path=path,
        enabled=state.startswith("enabled") if state else None,
        active=_active(facts),
    )


def _started(name: str, path: str, *, system: bool, environ: Mapping[str, str]) -> list[str]:
    """Returns the words of the command that a systemd unit starts."""
    home = "/root" if system else _home(environ)
    return _words(_exec_start(path).removeprefix(":"), {"h": home, "i": name.partition("@")[2]})


def _exec_start(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            lines = handle.read().splitlines()
    except OSError:
        return ""
    return next((line.partition("=")[2] for line in lines if line.startswith("ExecStart=")), "")


def _words(line: str, specifiers: Mapping[str, str]) -> list[str]:
    """Splits a unit's line into words: the reverse of `systemd_quote`, with the specifiers that we ship."""
    words = []
    for quoted, bare in re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', line):
        word = re.sub(r"\\(.)", r"\1", quoted) if quoted else bare
        words.append(re.sub("%(.)", lambda match: specifiers.get(match[1], match[1]), word))
    return words


# ── launchd ──


def _label(name: str) -> str:
    return BASE_LABEL + name.removeprefix(BASE_NAME).replace("-", ".", 1)


def _agents_folder(environ: Mapping[str, str]) -> str:
    return os.path.join(_home(environ), "Library", "LaunchAgents")


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _install_launchd(text: str, name: str, environ: Mapping[str, str]) -> Done:
    target = f"{_domain()}/{_label(name)}"
    path = os.path.join(_agents_folder(environ), _label(name) + ".plist")
    os.makedirs(os.path.join(_home(environ), "Library", "Logs"), exist_ok=True)
    work = _Work([_write(path, text)], [])
    was_loaded = _call(["launchctl", "bootout", target], environ).ok
    _call(["launchctl", "enable", target], environ)
    answer = _bootstrap(path, environ)
    if was_loaded and not answer.ok:
        time.sleep(2)  # the old one is still ending
        answer = _bootstrap(path, environ)
    work.ask(answer, shlex.join(["launchctl", "bootstrap", _domain(), path]), f"loaded and started {_label(name)}")
    return work.done("launchd", path, running=_launchd_active(_label(name), environ) is True)


def _bootstrap(path: str, environ: Mapping[str, str]) -> _Answer:
    return _call(["launchctl", "bootstrap", _domain(), path], environ)


def _uninstall_launchd(name: str, environ: Mapping[str, str]) -> Done:
    path = os.path.join(_agents_folder(environ), _label(name) + ".plist")
    if not os.path.lexists(path):
        return Done("launchd", None, (f"there is no {path}",), (), False)
    work = _Work([], [])
    command = ["launchctl", "bootout", f"{_domain()}/{_label(name)}"]
    if _launchd_active(_label(name), environ) is not False:
        work.ask(_call(command, environ), shlex.join(command), f"stopped {_label(name)}")
    _remove(path, work)
    return work.done("launchd", path, running=_launchd_active(_label(name), environ) is True)


def _launchd_active(label: str, environ: Mapping[str, str]) -> bool | None:
    """Whether a label is running; None if there is no launchctl. A label that is not loaded is not active."""
    if shutil.which("launchctl", path=environ.get("PATH", os.defpath)) is None:
        return None
    return "state = running" in _call(["launchctl", "print", f"{_domain()}/{label}"], environ).out


def _our_agents(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    folder = _agents_folder(environ)
    for file in _names(folder):
        found = re.fullmatch(rf"{re.escape(BASE_LABEL)}(?:\.(.+))?\.plist", file)
        if found:
            yield "-".join(filter(None, (BASE_NAME, found[1]))), os.path.join(folder, file)


def _launchd_state(name: str, path: str, environ: Mapping[str, str]) -> ServiceState:
    workspace = _after(_arguments(path), "--workspace")
    # launchd starts what is in the folder at the next login unless it was disabled by hand.
    return ServiceState(name, workspace, path, True, _launchd_active(_label(name), environ))


def _arguments(path: str) -> list[str]:
    """Returns the words of the command that a launchd agent starts."""
    try:
        with open(path, "rb") as handle:
            return [str(word) for word in plistlib.load(handle).get("ProgramArguments", [])]
    except (OSError, plistlib.InvalidFileException, ExpatError, AttributeError):
        return []


def _by_hand_login_only(command: Sequence[str]) -> tuple[str, ...]:
    return (
        "# on macOS the agent belongs to a login; there is no unit for the whole machine. Without --system:",
        f"{shlex.join(command)} service install",
    )
